"""What a capture is to find out: a question stands for options, as far as the target has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_tui.capture.advice import advise
from nsys_tui.capture.draft import NOTE, Draft
from nsys_tui.capture.options import OPTIONS, Kind, name_there, read_words
from nsys_tui.capture.presets import presets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsys_tui.capture.presets import Preset
    from nsys_tui.capture.target_facts import Facts
    from nsys_tui.config_values import OptionValue

KEPT_GROUPS = ("window", "net")
"""Options that say when, not what, is recorded: another question leaves them as they are."""


@dataclass(frozen=True)
class Fit:
    """What of some options the target can do."""

    options: Mapping[str, OptionValue]
    lost: tuple[str, ...]
    """What it cannot, and why."""


def questions() -> list[Preset]:
    """The presets that answer a question."""
    return [preset for preset in presets().values() if preset.asks]


def fitted(options: Mapping[str, OptionValue], facts: Facts | None) -> Fit:
    """Leaves out what the target's own help and rights refuse.

    Args:
        options: as one would like them.
        facts: what is known of the target; None leaves all in.
    """
    if facts is None:
        return Fit(dict(options), ())
    left, lost = _known_words(options, facts), []
    refused = True
    while refused:
        remarks = advise(Draft(left, program=("program",), facts=facts))
        refused = False
        for remark in remarks:
            if remark.severity == NOTE or left.get(remark.name, "none") == "none":
                continue
            refused = True
            lost.append(remark.text)
            left.pop(remark.name)
            if remark.name == "sample":
                left |= {"sample": "none", "cpuctxsw": "none"}
    return Fit(left, tuple(lost))


def _known_words(options: Mapping[str, OptionValue], facts: Facts) -> dict[str, OptionValue]:
    """Lists without the words that the nsys there does not list."""
    left = dict(options)
    for name, value in options.items():
        own = facts.options.get(name_there(name, facts.options))
        if isinstance(value, tuple) and own is not None and own.values:
            left[name] = tuple(word for word in value if word in own.values)
    return left


def changed(
    options: Mapping[str, OptionValue], wanted: Mapping[str, OptionValue]
) -> dict[str, OptionValue]:
    """Options of a capture that asks something else: when it records stays, what goes."""
    kept = {
        name: value
        for name, value in options.items()
        if name not in OPTIONS or OPTIONS[name].group in KEPT_GROUPS
    }
    return kept | dict(wanted)


def added(options: Mapping[str, OptionValue], line: str) -> dict[str, OptionValue]:
    """Options with those of a command line such as ``nsys profile --cpuctxsw=process-tree``.

    Lists are joined; words that are no options are passed over.
    """
    given = read_words(word for word in line.split() if word.startswith("--") and "=" in word)
    found = dict(options)
    for name, text in given.items():
        option = OPTIONS.get(name)
        if option is None or option.kind is not Kind.WORDS:
            found[name] = text
            continue
        before = found.get(name, option.default)
        words = before.split(",") if isinstance(before, str) else before
        words = [word for word in words if word != "none"]
        found[name] = tuple(dict.fromkeys([*words, *text.split(",")]))
    return found
