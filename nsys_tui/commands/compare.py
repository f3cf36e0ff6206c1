"""``nsys-tui compare``: two reports, windows or iterations side by side, with a verdict."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsys_tui.commands.destinations import room, say, text_file, write
from nsys_tui.commands.options import (
    add_format,
    add_names,
    add_overwriting,
    add_reading,
    add_rows,
    add_scope,
    scope_from,
)
from nsys_tui.commands.printing import DATA_FORMATS, print_document, print_tables
from nsys_tui.errors import GATE_HIT, NOT_COMPARABLE, OK, UsageError
from nsys_tui.units import parse_percent

if TYPE_CHECKING:
    from nsys_tui.analysis.compare.comparison import Comparison
    from nsys_tui.analysis.compare.measure import Plan
    from nsys_tui.analysis.compare.side import Side
    from nsys_tui.analysis.window import Scope
    from nsys_tui.export.baselines import Baseline
    from nsys_tui.model.report import Report

FORMATS: Final = ("text", "table", "json", "csv", "tsv", "markdown", "html")
SECTIONS: Final = ("summary", "kernels", "copies", "ranges", "api", "stalls", "findings")

EPILOG = """\
A is before, B is after: less time in B is better. With five steady steps on both sides, steps are
compared; otherwise durations of the same kernels, and the verdict says so.

  nsys-tui compare before.nsys-rep after.nsys-rep
  nsys-tui compare new.nsys-rep --baseline main --gate 3% --format markdown
  nsys-tui compare run.nsys-rep --iteration-a 3 --iteration-b 7
  nsys-tui compare before.sqlite after.sqlite --folded | flamegraph.pl > difference.svg

exit status: 0 compared, 1 worse by the gate or more, 2 not comparable
"""


DESCRIPTION = "Compares two reports, a report and a baseline, or two parts of one report."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    parser.add_argument("a", metavar="A", help="report before; with --baseline, the report after")
    parser.add_argument("b", metavar="B", nargs="?", help="report after; A if left out")
    parser.add_argument("--baseline", metavar="NAME", help="compare with this instead of a report")
    add_reading(parser)
    _add_parts(parser)
    _add_judging(parser)
    _add_output(parser)


def _add_parts(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("parts")
    for letter in "ab":
        group.add_argument(
            f"--window-{letter}",
            metavar="START/END",
            help=f"of {letter.upper()} only this, such as 1.2s/1.5s (instead of --window)",
        )
        group.add_argument(
            f"--iteration-{letter}", metavar="N", help="one iteration: number from 0, or its name"
        )
    group.add_argument(
        "--iteration", metavar="REGEX", help="NVTX names that are steps, instead of the usual ones"
    )
    add_scope(group)


def _add_judging(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("verdict")
    group.add_argument(
        "--threshold", metavar="PERCENT", help="smaller changes count as none (default 1%%)"
    )
    group.add_argument(
        "--gate", metavar="PERCENT", help="the same, and exit with 1 if the verdict is worse"
    )
    group.add_argument("--seed", type=int, metavar="N", help="seed of the bootstrap intervals")
    add_names(
        group,
        "how kernels are named, and so which are one (default: normalised, or as in the baseline)",
        None,
    )
    group.add_argument(
        "--findings",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="run the expert rules on both sides, which takes longer than all the rest",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    add_format(group, "analysis.compare.answer", FORMATS)
    group.add_argument(
        "--section", choices=SECTIONS, action="append", help="print only this part (repeatable)"
    )
    add_rows(group, "--top", "rows of a table, 0 for all (default 15)", 15)
    group.add_argument(
        "--folded",
        action="store_true",
        help="print stacks of GPU time by NVTX path with A's and B's ns instead of the comparison",
    )
    group.add_argument(
        "--svg", type=Path, metavar="FILE", help="also write a differential flame graph"
    )
    add_overwriting(group)


@dataclass(frozen=True)
class _Part:
    """One side before it is measured."""

    plan: Plan
    label: str
    identity: str


def run(arguments: argparse.Namespace) -> int:
    """Compares and prints.

    Raises:
        UsageError: the arguments do not name two sides.
    """
    from nsys_tui.analysis.compare.comparison import compare
    from nsys_tui.analysis.compare.stats import SEED, THRESHOLD
    from nsys_tui.export import baselines

    _check(arguments)
    gate = None if arguments.gate is None else parse_percent(arguments.gate)
    threshold = gate
    if threshold is None:
        asked = arguments.threshold
        threshold = THRESHOLD if asked is None else parse_percent(asked)
    baseline = None if arguments.baseline is None else baselines.load(arguments.baseline)
    arguments.names = _names(arguments.names, baseline)
    parts = _parts(arguments)
    if arguments.folded or arguments.svg:
        _stacks(arguments, parts)
    if arguments.folded:
        return OK
    a, b = _sides(parts, baseline)
    seed = SEED if arguments.seed is None else arguments.seed
    found = compare(a, b, threshold=threshold, seed=seed)
    _print(arguments, found)
    return _status(found, gate)


def _status(found: Comparison, gate: float | None) -> int:
    if found.verdict == "not comparable":
        say(f"nsys-tui: not comparable: {found.judgement.reason}")
        return NOT_COMPARABLE
    if gate is not None and found.verdict == "worse":
        text = f"gate {100 * gate:g}% hit: {found.judgement.reason}"
        say(f"nsys-tui: {text}")
        return GATE_HIT
    return OK


def _check(arguments: argparse.Namespace) -> None:
    if arguments.baseline is not None:
        if arguments.b is not None:
            raise UsageError("--baseline takes the place of a report: give one report, not two")
        if arguments.folded or arguments.svg:
            raise UsageError("a baseline holds no stacks", hint="compare two reports")
        if arguments.window_a or arguments.iteration_a:
            raise UsageError(
                "A is the baseline, which has no parts", hint="--window-b is the report's part"
            )
        return
    given = (arguments.window_a, arguments.window_b, arguments.iteration_a, arguments.iteration_b)
    if arguments.b is None and not any(given):
        raise UsageError(
            "one report, and nothing to compare it with",
            hint="give a second report, --baseline NAME, or two parts: --window-a, --window-b",
        )
    for letter in "ab":
        window, number = (
            getattr(arguments, f"{what}_{letter}") for what in ("window", "iteration")
        )
        if window and number:
            raise UsageError(f"--window-{letter} and --iteration-{letter} exclude each other")


def _parts(arguments: argparse.Namespace) -> list[_Part]:
    """Both sides, or the one that is compared with a baseline."""
    from nsys_tui.commands.options import log_to, tell_notes
    from nsys_tui.config import load_config
    from nsys_tui.reader.settings import open_configured

    if arguments.log:
        log_to(arguments.log)
    config = load_config()
    opened: dict[str, Report] = {}

    def report(path: str) -> Report:
        if path not in opened:
            opened[path] = open_configured(
                Path(path), config, arguments.nsys, use_cache=not arguments.no_cache
            )
            tell_notes(opened[path], opened[path].name)
        return opened[path]

    if arguments.baseline is not None:
        return [_part(arguments, report(arguments.a), "b")]
    return [
        _part(arguments, report(arguments.a), "a"),
        _part(arguments, report(arguments.b or arguments.a), "b"),
    ]


def _part(arguments: argparse.Namespace, report: Report, letter: str) -> _Part:
    from nsys_tui.analysis.compare.measure import identity_of, plan
    from nsys_tui.reader.cache import report_id

    window = getattr(arguments, f"window_{letter}") or arguments.window
    scope = scope_from(argparse.Namespace(**vars(arguments) | {"window": window}), report)
    chosen = getattr(arguments, f"iteration_{letter}")
    label = f"{report.name} {window}" if window else report.name
    if chosen is not None:
        scope, name = _iteration(report, scope, chosen, arguments.iteration)
        label = f"{report.name} {name}"
    made = plan(
        report,
        scope,
        pattern=arguments.iteration,
        style=arguments.names,
        findings=arguments.findings and "findings" in (arguments.section or SECTIONS),
        by_step=chosen is None,
    )
    known = report_id(report.path)
    identity = identity_of(known, scope, arguments.iteration, arguments.names)
    return _Part(made, label, identity)


def _iteration(report: Report, scope: Scope, chosen: str, pattern: str | None) -> tuple[Scope, str]:
    """The scope cut to one iteration, and what it is called."""
    from nsys_tui.analysis.compare.measure import iteration_scope
    from nsys_tui.analysis.iterations.detection import find_iterations

    found = find_iterations(report, pattern, scope)
    number = int(chosen) if chosen.isdecimal() else -1
    if chosen in found.labels:
        number = found.labels.index(chosen)
    if not 0 <= number < len(found):
        there = f"it has {len(found)} iterations {found.rule}: 0 to {len(found) - 1}"
        raise UsageError(
            f"{report.name}: no iteration {chosen!r}",
            there if len(found) else "no iterations were found in it",
            "--iteration REGEX says which NVTX names are steps",
        )
    return iteration_scope(found, number, scope), f"iteration {number}: {found.labels[number]}"


def _names(asked: str | None, baseline: Baseline | None) -> str:
    """How kernels are named on both sides."""
    if baseline is None:
        return asked or "normalised"
    if asked not in (None, baseline.side.style):
        raise UsageError(
            f"baseline {baseline.name} was saved with --names {baseline.side.style}",
            hint="leave --names out, or save the baseline again",
        )
    return baseline.side.style


def _sides(parts: list[_Part], kept: Baseline | None) -> tuple[Side, Side]:
    from dataclasses import replace

    from nsys_tui.analysis.compare.comparison import measure_both
    from nsys_tui.analysis.compare.measure import measure

    if kept is None:
        first, second = parts
        return measure_both(
            first.plan,
            second.plan,
            labels=(first.label, second.label),
            identities=(first.identity, second.identity),
        )
    (part,) = parts
    gone = "" if kept.there else "; its report is no longer there"
    side = replace(kept.side, label=f"baseline {kept.name}: {kept.side.label}{gone}")
    return side, measure(part.plan, part.label, part.identity)


def _print(arguments: argparse.Namespace, found: Comparison) -> None:
    from nsys_tui.analysis.compare.answer import DOCUMENT, rows_table
    from nsys_tui.text import compare as text

    sections = tuple(arguments.section or SECTIONS)
    top = max(arguments.top, 0)
    if arguments.format == "json":
        left_out = set(SECTIONS) - set(sections)
        only = [c.name for c in DOCUMENT.columns if c.name not in left_out]
        print_document(DOCUMENT, found, None, found.notes, only=only)
    elif arguments.format in DATA_FORMATS:
        print_tables([rows_table(found, sections)], arguments.format)
    elif arguments.format == "markdown":
        write(sys.stdout, [text.as_markdown(found, sections, top)])
    elif arguments.format == "html":
        print_tables(text.all_tables(found, sections, top), "html")
    else:
        write(sys.stdout, [text.as_text(found, sections, top, room(sys.stdout))])


def _stacks(arguments: argparse.Namespace, parts: list[_Part]) -> None:
    from nsys_tui.analysis.compare.stacks import differential_stacks
    from nsys_tui.export.differential import differential_graph, differential_lines

    first, second = parts
    stacks = differential_stacks(first.plan, second.plan)
    what = "ns per steady step" if stacks.by_step else "ns"
    if arguments.svg:
        graph = differential_graph(stacks, f"{first.label} and {second.label}: GPU time, {what}")
        with text_file(arguments.svg, overwrite=arguments.force_overwrite) as file:
            file.write(graph)
        say(f"nsys-tui: differential flame graph in {arguments.svg}")
    if arguments.folded:
        for line in differential_lines(stacks):
            sys.stdout.write(line + "\n")
        say(f"nsys-tui: the two numbers are {what} of A and of B")
