"""Why a set of nsys options will not do what its user hopes: all rules, asked at once.

The rules here are about single options: values, old names, versions, and what an option costs.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Final

from nsys_tui.capture.options import clashes  # noqa: F401 - they register
from nsys_tui.capture.options.draft import ERROR, NOTE, RULES, WARNING, Check, Draft, rule
from nsys_tui.capture.options.table import OPTIONS, RANGE_ENDS, RENAMED, Kind, Option, name_there
from nsys_tui.redaction import holds_secret

_NUMBER = re.compile(r"\d+(\.\d+)?")
_OLD: Final = (2022, 4)
"""Releases up to this one were seen to cut seconds off, and to refuse less than one, or no ns."""
_RANGE_END = re.compile(
    r"none|stop(?:-shutdown)?|(repeat(?:-shutdown)?)(:\d+)?(:(defer|sync|async))?"
)


@rule
def values_fit(draft: Draft) -> Iterator[Check]:
    """Values that cannot be what the option takes."""
    for name in draft.options:
        option, text = OPTIONS.get(name), draft.value(name)
        if not text:
            yield Check(ERROR, name, f"--{name} has no value", "give one or remove the option")
        elif option is None and not draft.facts.options:
            yield from _unknown_name(name)
        elif words := _own_words(draft, name):
            yield from _unlisted(draft, name, words)
        elif option is None:
            continue
        elif option.kind is Kind.FLAG and text not in ("true", "false"):
            yield Check(ERROR, name, f"--{name}={text}: takes true or false")
        elif option.kind is Kind.NUMBER and not text.isdecimal():
            yield Check(ERROR, name, f"--{name}={text}: takes a whole number")
        elif name == "osrt-threshold" and int(text) == 0 and _of_2022(draft):
            said = f"--{name}={text}: nsys {draft.facts.version} takes no 0"
            yield Check(ERROR, name, said, "1 keeps every call")
        elif option.kind is Kind.SECONDS:
            yield from _seconds(draft, name, text)
        elif option.kind in (Kind.CHOICE, Kind.WORDS) and option.choices:
            yield from _unknown_words(option, draft.words(name))


def _of_2022(draft: Draft) -> bool:
    return (draft.facts.nsys_version or (9999,))[:2] <= _OLD


def _seconds(draft: Draft, name: str, text: str) -> Iterator[Check]:
    if not _NUMBER.fullmatch(text):
        yield Check(ERROR, name, f"--{name}={text}: takes a number")
    elif not text.isdecimal() and _of_2022(draft):
        said = f"--{name}={text}: nsys {draft.facts.version} takes whole seconds"
        yield Check(ERROR, name, said, "a newer one takes parts of them")


def _own_words(draft: Draft, name: str) -> tuple[str, ...]:
    """The values that the nsys there lists itself."""
    option = draft.facts.options.get(name_there(name, draft.facts.options))
    return option.values if option else ()


def _unlisted(draft: Draft, name: str, legal: tuple[str, ...]) -> Iterator[Check]:
    for word in draft.words(name):
        if word.partition(":")[0] not in legal:
            said = f"--{name}={word}: nsys {draft.facts.version} does not list that value"
            yield Check(WARNING, name, said, "it lists " + ", ".join(legal))


def _unknown_name(name: str) -> Iterator[Check]:
    if name in RENAMED:
        return
    near = difflib.get_close_matches(name, OPTIONS, 1, 0.8)
    remedy = f"did you mean --{near[0]}?" if near else "it is passed on as it is"
    yield Check(WARNING, name, f"--{name} is no option known here", remedy)


def _unknown_words(option: Option, words: list[str]) -> Iterator[Check]:
    for word in words:
        if word not in option.choices:
            near = difflib.get_close_matches(word, option.choices, 1)
            remedy = f"did you mean {near[0]}?" if near else "it is passed on as it is"
            yield Check(WARNING, option.name, f"--{option.name}: {word!r} is not known", remedy)


@rule
def range_end_is_spelled_right(draft: Draft) -> Iterator[Check]:
    """``--capture-range-end`` has a little grammar of its own."""
    text = draft.value("capture-range-end")
    match = _RANGE_END.fullmatch(text)
    if match is None:
        yield Check(
            ERROR, "capture-range-end", f"--capture-range-end={text} is not understood by nsys",
            "one of " + ", ".join(RANGE_ENDS) + "; repeat:N takes N ranges",
        )  # fmt: skip
    elif match[1] == "repeat-shutdown" and not match[2]:
        yield Check(
            ERROR, "capture-range-end", "repeat-shutdown needs a count", "write repeat-shutdown:3"
        )
    elif match[1]:
        yield Check(NOTE, "capture-range-end", "every range becomes a report of its own")


@rule
def deprecated(draft: Draft) -> Iterator[Check]:
    """Old names, with what took their place."""
    for old, new in RENAMED.items():
        if not draft.given(old):
            continue
        value = draft.value(old)
        if old == "stop-on-range-end":
            value = "stop" if value == "true" else "none"
        yield Check(WARNING, old, f"--{old} is an old name", f"use --{new}={value}")
    if draft.value("sample") == "cpu":
        yield Check(NOTE, "sample", "--sample=cpu is an old name", "use --sample=process-tree")


@rule
def known_to_this_nsys(draft: Draft) -> Iterator[Check]:
    """Options that the nsys on the target does not have."""
    facts = draft.facts
    for name in draft.options:
        older = name_there(name, facts.options)
        if older != name:
            yield Check(NOTE, name, f"--{name} is called --{older} there, and given so")
        elif facts.options and name not in facts.options:
            severity = ERROR if name in OPTIONS or name in RENAMED else WARNING
            said = f"nsys {facts.version or 'there'} does not know --{name}"
            listing = "nsys-tui targets check --options lists its own"
            yield Check(severity, name, said, _has_it(name) if name in OPTIONS else listing)


def _has_it(name: str) -> str:
    lacking = OPTIONS[name].lacking
    return f"an nsys newer than {lacking} has it" if lacking else "another nsys has it"


@rule
def costs(draft: Draft) -> Iterator[Check]:
    """Options that are correct and dear."""
    if draft.value("backtrace") == "dwarf":
        yield Check(WARNING, "backtrace", "dwarf stacks make large reports", "fp is cheaper")
    for name in ("cuda-um-cpu-page-faults", "cuda-um-gpu-page-faults"):
        if draft.wants(name):
            yield Check(WARNING, name, f"--{name} slows the program down much")
    duration = draft.value("duration")
    if _NUMBER.fullmatch(duration) and float(duration) > 300:
        yield Check(
            WARNING, "duration", "NVIDIA does not support captures over 5 minutes",
            "use --delay and a shorter --duration, or fewer traces",
        )  # fmt: skip
    elif _NUMBER.fullmatch(duration) and 0 < float(duration) < 2 and not draft.given("delay"):
        yield Check(
            WARNING, "duration", "nsys counts the second or more that the program's start takes",
            "a longer --duration",
        )  # fmt: skip
    if draft.wants("force-overwrite"):
        yield Check(WARNING, "force-overwrite", "an existing report of that name is lost")


@rule
def program_is_sound(draft: Draft) -> Iterator[Check]:
    """The program itself, and secrets on its command line."""
    if draft.program and draft.program[0].startswith("-"):
        yield Check(
            ERROR, "program", f"nsys takes {draft.program[0]!r} for an option of its own",
            f"write ./{draft.program[0]}",
        )  # fmt: skip
    if any(holds_secret(word) for word in draft.program):
        yield Check(
            WARNING, "program", "an argument looks like a secret, and every user there sees it",
            "pass it by environment and name it in env_from",
        )  # fmt: skip
    if draft.env_from:
        yield Check(
            NOTE, "env_from", "nsys writes the whole environment of the program into the report",
            "do not share the .nsys-rep; values of " + ", ".join(draft.env_from) + " are in it",
        )  # fmt: skip


_ORDER: Final = (ERROR, WARNING, NOTE)


def advise(draft: Draft) -> list[Check]:
    """All remarks on a draft, errors first.

    An error is a command that nsys would refuse or that would collect nothing; the rest is for
    the user to judge.
    """
    remarks = [advice for rule in RULES for advice in rule(draft)]
    return sorted(remarks, key=lambda advice: _ORDER.index(advice.severity))
