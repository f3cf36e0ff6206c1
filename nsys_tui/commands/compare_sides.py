"""What ``compare`` compares: reports, parts of them and baselines, measured."""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nsys_tui.commands.options import opener, scope_from
from nsys_tui.errors import UsageError
from nsys_tui.paths import told_apart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.analysis.compare.comparison import Comparison
    from nsys_tui.analysis.compare.plan import Plan
    from nsys_tui.analysis.compare.side import Found, Side
    from nsys_tui.analysis.window import Scope
    from nsys_tui.export.measured_sides import SideCache
    from nsys_tui.model.report import Report


@dataclass(frozen=True)
class Part:
    """One side before it is measured."""

    plan: Plan
    label: str
    identity: str
    cache: SideCache


def two_parts(arguments: argparse.Namespace) -> tuple[Part, Part]:
    """Two reports, or two parts of one."""
    opening = opener(arguments)
    first = opening(arguments.reports[0])
    second = first if len(arguments.reports) == 1 else opening(arguments.reports[1])
    a, b = part_of(arguments, first, "a"), part_of(arguments, second, "b")
    if first.name == second.name and first.path.absolute() != second.path.absolute():
        names = told_apart([first.path, second.path])
        a, b = (
            replace(part, label=name + part.label.removeprefix(report.name))
            for part, name, report in zip((a, b), names, (first, second), strict=True)
        )
    return a, b


def part_of(arguments: argparse.Namespace, report: Report, letter: str) -> Part:
    """What the arguments choose of a report that stands on side ``letter``."""
    from nsys_tui import __version__
    from nsys_tui.analysis.compare.plan import identity_of, plan
    from nsys_tui.analysis.compare.stats import SEED
    from nsys_tui.config import load_config
    from nsys_tui.export.measured_sides import side_cache
    from nsys_tui.reader.filecheck import report_id

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
        by_step=chosen is None,
        seed=SEED if arguments.seed is None else arguments.seed,
    )
    known = report_id(report.path)
    identity = identity_of(known, scope, arguments.iteration, arguments.names)
    cache = side_cache(load_config(), __version__, use_cache=not arguments.no_cache)
    return Part(made, label, identity, cache)


def _iteration(report: Report, scope: Scope, chosen: str, pattern: str | None) -> tuple[Scope, str]:
    """The scope cut to one iteration, and what it is called."""
    from nsys_tui.analysis.compare.plan import iteration_scope
    from nsys_tui.analysis.iterations.detection import find_iterations

    iterations = find_iterations(report, pattern, scope)
    if (number := iterations.number_of(chosen)) is None:
        there = f"it has {len(iterations)} iterations {iterations.rule}: 0 to {len(iterations) - 1}"
        raise UsageError(
            f"{report.name}: no iteration {chosen!r}",
            there if len(iterations) else "no iterations were found in it",
            "--iteration REGEX says which NVTX names are steps",
        )
    return iteration_scope(
        iterations, number, scope
    ), f"iteration {number}: {iterations.labels[number]}"


def kernel_names(asked: str | None, kept: str | None, what: str) -> str:
    """How kernels are named on both sides.

    Args:
        asked: what the user chose.
        kept: how a baseline has them, if one is compared with.
        what: the baseline's name.
    """
    if asked is not None and kept not in (None, asked):
        raise UsageError(
            f"{what} was saved with --names {kept}",
            hint="leave --names out, or save the baseline again",
        )
    return kept or asked or "short"


def measured(arguments: argparse.Namespace) -> tuple[Side, Side]:
    """Both sides, each of one run or of several."""
    from nsys_tui.analysis.compare.pooling import pooled_side

    sides: list[Side] = []
    opening = opener(arguments)
    paths = [(path, "a") for path in arguments.reports] + [(p, "b") for p in arguments.against]
    for by_step in (True, False):
        parts = (part_of(arguments, opening(path), letter) for path, letter in paths)
        sides = [_measured(part, by_step) for part in parts]
        if _alike(sides):
            break
    count = len(arguments.reports)
    return pooled_side(sides[:count]), pooled_side(sides[count:])


def with_file(arguments: argparse.Namespace) -> tuple[Side, Side]:
    """The runs of a baseline's file, and the reports as runs of B.

    Raises:
        UsageError: the file cannot be used, or its runs are not of a kind.
    """
    from nsys_tui.analysis.compare.history import sentences, shifts, since_jump
    from nsys_tui.analysis.compare.pooling import pooled_side, runs_of
    from nsys_tui.export import baselines
    from nsys_tui.units import plural

    kept = baselines.load_runs(arguments.baseline_file)
    sides, name = [run.side for run in kept.runs], kept.path.name
    if not _alike(sides):
        raise UsageError(f"{name}: some of its runs have steps, others none", hint="add them again")
    arguments.names = kernel_names(arguments.names, sides[0].style, name)
    opening = opener(arguments)
    after: list[Side] = []
    for by_step in (sides[0].by_step, False):
        parts = (part_of(arguments, opening(path), "b") for path in arguments.reports)
        after = [_with_digests(_measured(part, by_step)) for part in parts]
        if _alike(after):
            break
    mine = {side.identity for side in after}
    rest = [side for side in sides if side.identity not in mine] or sides
    others = runs_of(rest)
    jumps = shifts(others)
    notes = [f"{name}: {text}" for text in sentences(jumps, [side.label for side in others])]
    first = since_jump(jumps)
    if first:
        notes.append(f"{name}: only the {len(others) - first} runs since then are compared with")
    if len(rest) < len(sides):
        notes.append(f"{name}: it holds B itself, which is left out")
    before = pooled_side(others[first:])
    more = before.run_count - 1
    label = f"{name}: {others[first].label}" + (f", and {plural(more, 'more run')}" if more else "")
    return replace(before, label=label, notes=(*before.notes, *notes)), pooled_side(after)


def _with_digests(side: Side) -> Side:
    """A side whose identity is written as in a baseline's file."""
    from nsys_tui.analysis.identity import digest

    return replace(side, identity=digest(side.identity), run=digest(side.run))


def _measured(part: Part, by_step: bool) -> Side:
    from nsys_tui.analysis.compare.comparison import as_whole

    plan = part.plan if by_step else as_whole(part.plan)
    return part.cache.measured(plan, part.label, part.identity)


def _alike(sides: Sequence[Side]) -> bool:
    """Whether all are measured by steps that were found in the same way, or all as a whole."""
    from nsys_tui.analysis.iterations.steps import Rule

    kinds = {(side.by_step, side.by_step and side.steps.rule is Rule.PATTERN) for side in sides}
    return len(kinds) == 1


def measured_pair(first: Part, second: Part, *, at_first: bool = False) -> tuple[Side, Side]:
    """Two parts, measured at the same time, or looked at first."""
    from nsys_tui.analysis.compare.comparison import measure_both

    return measure_both(
        first.plan,
        second.plan,
        labels=(first.label, second.label),
        identities=(first.identity, second.identity),
        measuring=first.cache.look if at_first else first.cache.measured,
    )


def with_findings(comparison: Comparison, parts: Sequence[Part | None]) -> Comparison:
    """The comparison with what the expert rules find in A and B; None is a baseline."""
    from nsys_tui.analysis.compare.comparison import with_findings

    def findings(part: Part | None) -> tuple[Found, ...] | None:
        return None if part is None else part.cache.findings(part.plan, part.identity)

    with ThreadPoolExecutor(2) as pool:
        a, b = pool.map(findings, parts)
    return with_findings(comparison, a, b)
