"""``nsys-tui explain``: what a term, column, cause, rule, report, capability or exit code means."""

from __future__ import annotations

import sys
from itertools import chain
from typing import TYPE_CHECKING

from nsys_tui import errors
from nsys_tui.commands.printing import room, write
from nsys_tui.errors import EXIT_CODES, OK, NsysTuiError, UsageError
from nsys_tui.text.folding import wrapped

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from nsys_tui.text.definitions import Definition


DESCRIPTION = (
    "Says what a word means: a term, a column or its key, a cause of idle time, a"
    " rule, a statistical report, what a report can hold, an exit code."
)
EPILOG = (
    "nsys-tui explain alone lists the terms; nsys-tui explain agents prints what an agent needs to"
    " know to use this command line."
)
AGENTS = "agents"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    parser.add_argument("words", nargs="*", metavar="WORD", help="such as busy, or launch latency")


def run(arguments: argparse.Namespace) -> int:
    """Prints what is known of the word; without one, all terms."""
    word = " ".join(arguments.words).strip()
    if word == AGENTS:
        write(sys.stdout, (agents_text(),))
        return OK
    parts = [*explanations(word)] if word else [*_contents()]
    if not parts:
        raise _unknown(word)
    write(sys.stdout, ("\n".join(parts),))
    return OK


def agents_text() -> str:
    """How an agent asks this program: rules, exit codes and recipes, as Markdown."""
    from importlib.resources import files

    return files("nsys_tui.agents").joinpath("skill.md").read_text("utf-8")


def explanations(word: str) -> Iterator[str]:
    """Everything of that name, as printed: what is called just so before words that are near."""
    from nsys_tui.text.definitions import define

    named = filter(None, (make(word) for make in (_capability, _exit_code, _rule, _report)))
    return chain(named, map(_paragraph, define(word)))


def _paragraph(definition: Definition) -> str:
    also = f" (also: {', '.join(definition.also)})" if definition.also else ""
    return _entry(definition.name + also, definition.text)


def _entry(head: str, text: str) -> str:
    return f"{_lines(head)}\n\n{_lines(text, '    ')}\n"


def _lines(text: str, indent: str = "") -> str:
    """Broken to fit a terminal, whole elsewhere."""
    cells = room(sys.stdout)
    lines = [text] if cells is None else wrapped(text, cells - len(indent))
    return "\n".join(indent + line for line in lines)


def _capability(word: str) -> str:
    from nsys_tui.model.capabilities import Capability, explain

    kind = next((kind for kind in Capability if kind.lower() == word.lower()), None)
    if kind is None:
        return ""
    remedy = explain(kind).partition(": ")[2]
    return _entry(kind, f"What a report can hold. Where it has none: {remedy}.")


def _exit_code(word: str) -> str:
    code = word.removeprefix("exit code ")
    meaning = exit_codes().get(int(code)) if code.isdecimal() else None
    return _entry(f"exit code {code}", meaning) if meaning else ""


def exit_codes() -> dict[int, str]:
    """What each exit status says, from the errors that carry it."""
    from nsys_tui.capture import failures

    meanings = dict(EXIT_CODES)
    for kind in (*vars(errors).values(), *vars(failures).values()):
        if isinstance(kind, type) and issubclass(kind, NsysTuiError) and "exit_code" in vars(kind):
            summary = " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
            before = meanings.get(kind.exit_code, summary)
            meanings[kind.exit_code] = before if summary in before else f"{before} {summary}"
    return meanings


def _rule(word: str) -> str:
    from nsys_tui.analysis.rules.ranking import RULES
    from nsys_tui.commands.analyze import rule_help

    return "\n".join([*rule_help(RULES[word]), ""]) if word in RULES else ""


def _report(word: str) -> str:
    from nsys_tui.analysis.stats.reports import named
    from nsys_tui.commands.stats_help import report_help

    report = named(word)
    return report_help(report) if report else ""


def _contents() -> Iterator[str]:
    """All terms by topic, and where the rest is listed."""
    from nsys_tui.text.definitions import definitions

    topics: dict[str, list[str]] = {}
    for definition in definitions():
        topics.setdefault(definition.topic, []).append(definition.name)
    for topic, names in topics.items():
        yield _entry(topic, ", ".join(names))
    yield "rules:   nsys-tui analyze --help-rules"
    yield "reports: nsys-tui stats --help-reports\n"


def _unknown(word: str) -> UsageError:
    import difflib

    near = difflib.get_close_matches(word.lower(), [*_all_words()], 3)
    known = f"did you mean {', '.join(near)}?" if near else "nsys-tui explain lists the terms"
    return UsageError(f"nothing is called {word!r}", hint=known)


def _all_words() -> Iterator[str]:
    from nsys_tui.analysis.rules.ranking import RULES
    from nsys_tui.analysis.stats.query import REPORTS
    from nsys_tui.model.capabilities import Capability
    from nsys_tui.text.definitions import definitions

    for definition in definitions():
        yield from definition.words
    yield from (*RULES, *REPORTS, *Capability)
