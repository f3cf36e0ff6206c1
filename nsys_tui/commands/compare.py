"""``nsys-tui compare``: two reports, windows or iterations side by side, with a verdict."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsys_tui.commands import options, printing
from nsys_tui.errors import GATE_HIT, INCONCLUSIVE, NOT_COMPARABLE, OK, UsageError
from nsys_tui.units import parse_percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsys_tui.analysis.compare.comparison import Comparison
    from nsys_tui.analysis.compare.judgement import Outcome
    from nsys_tui.analysis.compare.side import Side
    from nsys_tui.commands.compare_sides import Part

FORMATS: Final = ("text", "table", "json", "csv", "tsv", "markdown", "html")
SECTIONS: Final = (
    *("summary", "kernels", "copies", "ranges", "api", "mpi_calls", "os_calls", "ranks"),
    *("stalls", "findings"),
)

EPILOG = """\
A is before, B is after: less time in B is better. With five steady steps on both sides, steps are
compared; otherwise durations of the same kernels, and the verdict says so.

exit status: 0 compared, 1 worse by the gate or more, 2 not comparable, 3 inconclusive (0 with
--inconclusive pass)
"""


DESCRIPTION = "Compares two reports, a report and a baseline, or two parts of one report."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    parser.add_argument(
        "reports",
        metavar="REPORT",
        nargs="+",
        help="A and B, the report before and the one after; B is A if left out; with --against all"
        " are runs of A, with a baseline all are runs of B",
    )
    options.add(parser, "--against REPORT", "runs of B, one or more", nargs="+")
    options.add(parser, "--baseline NAME", "compare with this instead of a report")
    options.add(parser, "--baseline-file FILE", "compare with all runs in this file", type=Path)
    options.add_reading(parser)
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
    options.add(group, "--iteration REGEX", "NVTX names that are steps, instead of the usual ones")
    options.add_scope(group)


def _add_judging(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("verdict")
    option = partial(options.add, group)
    option("--threshold PERCENT", "smaller changes count as none (default 1%%)")
    option(
        "--gate LIMIT",
        "exit with 1 if worse by more: 3%% for the verdict, or a row such as step:3%%,"
        " kernel:REGEX:5%%, exposed:+10ms (repeatable)",
        action="append",
    )
    option(
        "--inconclusive",
        "exit with 3 (default) or with 0 where nothing can be told",
        choices=("fail", "pass"),
        default="fail",
    )
    option(
        "--run-noise PERCENT",
        "standard deviation from run to run, where too few runs show it (default 2%%)",
    )
    option("--force", "compare also what does different work")
    option("--seed N", "seed of the bootstrap intervals", type=options.count)
    options.add_names(
        group,
        "how kernels are named, and so which are one (default: short, or as in the baseline)",
        None,
    )
    option(
        "--findings",
        "run the expert rules on both sides, which takes longer than all the rest",
        action=argparse.BooleanOptionalAction,
        default=True,
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    options.add_format(group, "analysis.compare.answer", FORMATS)
    options.add(
        group, "--section", "print only this part (repeatable)", choices=SECTIONS, action="append"
    )
    options.add_rows(group, "--top", "rows of a table, 0 for all (default 15)", 15)
    options.add(
        group,
        "--folded",
        "print stacks of GPU time by NVTX path with A's and B's ns instead of the comparison",
    )
    options.add(group, "--svg FILE", "also write a differential flame graph", type=Path)
    options.add(group, "--junit FILE", "also write the gates as JUnit XML", type=Path)
    options.add_step_summary(group)
    options.add_overwriting(group)


def run(arguments: argparse.Namespace) -> int:
    """Compares and prints.

    Raises:
        UsageError: the arguments do not name two sides.
    """
    from nsys_tui.analysis.compare.comparison import compare
    from nsys_tui.analysis.compare.gates import outcomes, parse_gate
    from nsys_tui.analysis.compare.stats import RUN_NOISE, SEED, THRESHOLD

    _check(arguments)
    gates = [parse_gate(text) for text in arguments.gate or ()]
    whole = [gate.threshold for gate in gates if not gate.kind]
    asked = THRESHOLD if arguments.threshold is None else parse_percent(arguments.threshold)
    compared = partial(
        compare,
        threshold=min(whole, default=asked),
        seed=SEED if arguments.seed is None else arguments.seed,
        noise=RUN_NOISE if arguments.run_noise is None else parse_percent(arguments.run_noise),
        force=arguments.force,
    )
    sides, parts, head = _sides(arguments, compared)
    if sides is None:
        return OK
    comparison = compared(*sides)
    results = outcomes(comparison, gates)
    status = _status(arguments, comparison, results)
    _print(arguments, comparison, results, parts if arguments.findings else [], head)
    return status


def _first_told(
    arguments: argparse.Namespace, parts: tuple[Part, Part], compared: Callable[..., Comparison]
) -> str:
    """Prints the head of a text as soon as the verdict is sure: the rest takes twice as long."""
    from nsys_tui.analysis.compare.comparison import aligned, is_settled
    from nsys_tui.commands.compare_sides import measured_pair
    from nsys_tui.text.compare import head_as_text

    plans = aligned(*(part.plan for part in parts))
    if arguments.format not in ("text", "table") or not all(plan.by_step for plan in plans):
        return ""
    look = compared(*measured_pair(*parts, at_first=True), keys=())
    if not is_settled(look, *plans):
        return ""
    head = head_as_text(look, printing.room(sys.stdout))
    printing.print_painted([head])
    sys.stdout.flush()
    return head


def _sides(
    arguments: argparse.Namespace, compared: Callable[..., Comparison]
) -> tuple[tuple[Side, Side] | None, Sequence[Part | None], str]:
    """Both sides, none where stacks are all; A and B where rules can look at them; what is told."""
    from nsys_tui.commands import compare_sides
    from nsys_tui.export import baselines

    if arguments.baseline_file is not None:
        return compare_sides.with_file(arguments), [], ""
    if arguments.baseline is not None:
        named = baselines.load(arguments.baseline)
        arguments.names = compare_sides.kernel_names(
            arguments.names, named.side.style, f"baseline {named.name}"
        )
        report = options.opener(arguments)(arguments.reports[0])
        part = compare_sides.part_of(arguments, report, "b")
        side = part.cache.measured(part.plan, part.label, part.identity)
        return (named.as_side, side), (None, part), ""
    arguments.names = arguments.names or "short"
    if arguments.against:
        return compare_sides.measured(arguments), [], ""
    parts = compare_sides.two_parts(arguments)
    if arguments.folded or arguments.svg:
        _stacks(arguments, *parts)
    if arguments.folded:
        return None, parts, ""
    head = _first_told(arguments, parts, compared)
    return compare_sides.measured_pair(*parts), parts, head


def _status(
    arguments: argparse.Namespace, comparison: Comparison, results: Sequence[Outcome]
) -> int:
    """The exit status: gates that are hit, then what cannot be compared, then doubt."""
    verdicts = {str(result.verdict) for result in results} or {str(comparison.verdict)}
    for result in results:
        if result.verdict in ("worse", "inconclusive", "not comparable"):
            hit = {"worse": "hit"}.get(str(result.verdict), str(result.verdict))
            printing.say(f"nsys-tui: gate {result.gate.text} {hit}: {result.reason}")
    if not (results or sys.stdout.isatty()) and comparison.verdict == "not comparable":
        printing.say(f"nsys-tui: not comparable: {comparison.judgement.reason}")
    if results and "worse" in verdicts:
        return GATE_HIT
    if "not comparable" in verdicts:
        return NOT_COMPARABLE
    if "inconclusive" in verdicts and arguments.inconclusive == "fail":
        return INCONCLUSIVE
    return OK


def _check(arguments: argparse.Namespace) -> None:
    kept = arguments.baseline is not None or arguments.baseline_file is not None
    if (arguments.folded or arguments.svg) and (kept or arguments.against):
        what = "a baseline holds no stacks" if kept else "stacks of several runs are not compared"
        raise UsageError(what, hint="compare two reports")
    if kept and (arguments.window_a or arguments.iteration_a):
        raise UsageError(
            "A is the baseline, which has no parts", hint="--window-b is the report's part"
        )
    if arguments.baseline is not None and (len(arguments.reports) > 1 or arguments.against):
        raise UsageError("--baseline takes the place of a report: give one report, not two")
    if kept and (arguments.against or (arguments.baseline and arguments.baseline_file)):
        raise UsageError("give one A: reports, --baseline or --baseline-file")
    if kept or arguments.against:
        return
    given = (arguments.window_a, arguments.window_b, arguments.iteration_a, arguments.iteration_b)
    if len(arguments.reports) > 2:
        raise UsageError(
            f"{len(arguments.reports)} reports, and which are A and which B?",
            hint="compare A1 A2 --against B1 B2",
        )
    if len(arguments.reports) == 1 and not any(given):
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


def _print(
    arguments: argparse.Namespace,
    comparison: Comparison,
    results: Sequence[Outcome],
    parts: Sequence[Part | None],
    head: str,
) -> None:
    """Prints what is asked for, but for the head that is printed already: findings come last."""
    from nsys_tui.analysis.compare.answer import DOCUMENT, rows_table
    from nsys_tui.commands.compare_sides import with_findings
    from nsys_tui.text import compare as text

    sections = tuple(arguments.section or SECTIONS)
    top = max(arguments.top, 0)
    if arguments.format in ("text", "table"):
        wide = printing.room(sys.stdout)
        whole = text.as_text(comparison, sections, top, wide)
        printing.print_painted([whole.removeprefix(head), text.gates_as_text(results)])
        sys.stdout.flush()
    told = arguments.format not in ("csv", "tsv") or arguments.step_summary
    if parts and told and "findings" in sections:
        comparison = with_findings(comparison, parts)
    markdown = text.as_markdown(comparison, sections, top) + text.gates_as_markdown(results)
    if arguments.format == "json":
        left_out = set(SECTIONS) - set(sections)
        only = [c.name for c in DOCUMENT.columns if c.name not in left_out]
        printing.print_document(
            DOCUMENT, replace(comparison, gates=results), None, comparison.notes, only=only
        )
    elif arguments.format in printing.DATA_FORMATS:
        printing.print_tables([rows_table(comparison, sections)], arguments.format)
    elif arguments.format == "markdown":
        printing.write(sys.stdout, [markdown])
    elif arguments.format == "html":
        printing.print_tables(text.all_tables(comparison, sections, top), "html")
    elif "findings" in sections:
        printing.print_painted([text.findings_as_text(comparison, wide)])
    if arguments.junit:
        with printing.text_file(arguments.junit, overwrite=arguments.force_overwrite) as file:
            file.write(text.gates_as_junit(comparison, results, arguments.inconclusive == "fail"))
    if arguments.step_summary:
        printing.append_summary(arguments.step_summary, markdown)


def _stacks(arguments: argparse.Namespace, first: Part, second: Part) -> None:
    from nsys_tui.analysis.compare.stacks import differential_stacks
    from nsys_tui.export.folded import differential_graph, differential_lines

    stacks = differential_stacks(first.plan, second.plan)
    what = f"{stacks.a.unit} {stacks.steps}".rstrip()
    of = "CPU samples" if stacks.is_sampled else "GPU time"
    if arguments.svg:
        graph = differential_graph(stacks, f"{first.label} and {second.label}: {of}, {what}")
        with printing.text_file(arguments.svg, overwrite=arguments.force_overwrite) as file:
            file.write(graph)
        printing.say(f"nsys-tui: differential flame graph in {arguments.svg}")
    if arguments.folded:
        for line in differential_lines(stacks):
            sys.stdout.write(line + "\n")
        printing.say(f"nsys-tui: the two numbers are {what} of A and of B")
