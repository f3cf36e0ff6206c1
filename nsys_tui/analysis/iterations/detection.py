"""Training steps and other repeats: found from NVTX names, or from a repeating kernel pattern.

The rules are tried in the order of definitions ("Iterations"); the result says which one applied.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import numpy as np

from nsys_tui.analysis.iterations.kernel_pattern import COVERED, FEWEST, repeated
from nsys_tui.analysis.iterations.named_ranges import PART_NAME, Candidates
from nsys_tui.analysis.iterations.steps import CALLED_STEPS, Iterations, Rule
from nsys_tui.analysis.iterations.warm_up import warm_up_steps
from nsys_tui.analysis.window import WHOLE_REPORT, Scope
from nsys_tui.errors import NoDataError
from nsys_tui.model.arrays import Bool
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.events import EventSet
from nsys_tui.model.report import Report

STEP_NAME: Final = re.compile(
    r"(?i)\b(train|(time)?step|iter(ation)?|batch)\b|train(ing)?_?(step|iter|batch)(?![a-z])"
)
JOINED_STEP_NAME: Final = re.compile(
    r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))(?i:step|iter(ation)?|batch)(?![a-z]|(?i:_?norm))"
)
"""The same inside a word: ``training_step``, ``ProfilerStep#3``; not ``batch_norm``."""
_OPERATOR_NAME: Final = re.compile(r"^aten::|\bseq = ")
"""Operators of PyTorch, which many parts of a step use."""
_AHEAD: Final = 0.25
_NOTABLE: Final = 0.01
"""Part of a step that counts."""


def find_iterations(
    report: Report, pattern: str | None = None, scope: Scope = WHOLE_REPORT
) -> Iterations:
    """Finds the iterations of a report by the first rule that applies.

    Of several names or threads that qualify, the one that covers most time is taken, then the
    lower thread id.

    Args:
        report: the report.
        pattern: a regular expression for range names; then only this rule is tried.
        scope: restricts processes and time.

    Raises:
        UsageError: the pattern is no regular expression, or takes too long.
    """
    candidates = Candidates.of(report, scope)
    if pattern is not None:
        found = candidates.best(candidates.named(pattern) & candidates.apart, Rule.ASKED)
    else:
        found = _by_range(report, candidates) or _by_pattern(report, candidates, scope)
    if found is None:
        none, rows = np.empty(0, np.int64), np.empty(0, np.intp)
        return Iterations(Rule.NONE, "", none, none, (), rows, np.empty(0, bool))
    first = found.counts_from in (0, 1)
    warm_up = warm_up_steps(report, scope, found.start, found.duration, first=first)
    # nsys ends what the program left open with the session, to the nanosecond.
    ended = found.own_end == (report.metadata.session_duration_ns or 0)
    ended[-1] |= _lasts_longer(found)
    return replace(
        found,
        warm_up=warm_up,
        never_closed=found.never_closed | ended,
        cuda=_cuda_of(report, found.process),
    )


def _cuda_of(report: Report, process: int) -> tuple[int, int] | None:
    """From the first to the last row of CUDA of a process; None where it has no GPU work."""
    api, ops = report.api, report.operations
    work, calls = ops.processes == process, api.thread_process == process
    spans = [_span(ops, work[ops.process]), _span(api, calls[api.thread])]
    if spans[0] is None:
        return None
    starts, ends = zip(*filter(None, spans), strict=True)
    return min(starts), max(ends)


def _span(events: EventSet, mine: Bool) -> tuple[int, int] | None:
    """From the first to the last of some events; the last to begin tells which may end later."""
    if not mine.any():
        return None
    last = int(events.end[len(mine) - 1 - np.argmax(mine[::-1])])
    later = np.flatnonzero(events.end > last)
    return int(events.start[np.argmax(mine)]), int(events.end[later[mine[later]]].max(initial=last))


def _lasts_longer(found: Iterations) -> bool:
    """Whether the last step lasts longer than its own range or kernels, as the others do.

    Where a range that is called a step ends, its program says.
    """
    if found.rule in CALLED_STEPS:
        return False
    pause = np.median(found.start[1:] - found.own_end[:-1])
    return bool(pause > _NOTABLE * np.median(found.duration[:-1]))


def required_iterations(
    report: Report, pattern: str | None = None, scope: Scope = WHOLE_REPORT
) -> Iterations:
    """``find_iterations``, where nothing can be said without any.

    Raises:
        NoDataError: no iterations were found.
        UsageError: the pattern is no regular expression.
    """
    iterations = find_iterations(report, pattern, scope)
    if iterations.rule is not Rule.NONE:
        return iterations
    why = str(Rule.NONE)
    if pattern is not None and report.can(Capability.NVTX):
        why = f"no NVTX ranges that do not overlap match {pattern!r}"
    hint = report.lacks(Capability.NVTX) or (
        "name their NVTX ranges: nsys-tui iterations REPORT --iteration REGEX"
    )
    raise NoDataError(f"{report.name}: {why}", hint=hint)


def gpu_step_ns(report: Report, iterations: Iterations) -> float | None:
    """About how long the GPUs take for a step, where the host launches far ahead of them.

    Then steps take as long as their launches, and tell nothing of the GPUs: those work on after the
    last step for a quarter of the time of all. None where steps tell the truth.
    """
    ops, api = report.operations, report.api
    if iterations.rule in (Rule.NONE, Rule.PATTERN) or len(iterations) < FEWEST or not len(ops):
        return None
    until = int(iterations.end[-1])
    rows = np.arange(np.searchsorted(ops.start, until), len(ops))
    rows = rows[ops.processes[ops.process[rows]] == iterations.process]
    rows, calls = report.called(rows)
    late = ops.end[rows[api.start[calls] < until]].max(initial=until)
    if late - until <= _AHEAD * (until - iterations.start[0]):
        return None
    return float(late - iterations.start[1]) / len(iterations)


def _by_range(report: Report, candidates: Candidates) -> Iterations | None:
    span = report.span or report.ranges.bounds()
    if span is None:
        return None
    needed = COVERED * (span[1] - span[0])
    fit = (candidates.count >= FEWEST) & candidates.apart
    # Of a host that runs far ahead no range covers much; a count tells that they are steps.
    steps = candidates.named(JOINED_STEP_NAME) & ~candidates.named(PART_NAME)
    steps &= (candidates.covered >= needed) | candidates.counts_up
    if named := candidates.best(fit & (candidates.named(STEP_NAME) | steps), Rule.NAME):
        return named
    top = candidates.outermost(candidates.count >= FEWEST)
    kept = (top.count >= FEWEST) & top.apart & ~top.named(_OPERATOR_NAME)
    part = top.named(PART_NAME)
    turns = kept & top.turns & part
    numbered = (turns | kept & top.counts_up & ~part) & (top.reach >= needed)
    others = kept & ~turns & (top.covered >= needed)
    found = (top.best(others, Rule.OUTERMOST), top.best(numbered, Rule.NUMBERED))
    return next((one for one in found if one and candidates.are_steps(one)), None)


def _by_pattern(report: Report, candidates: Candidates, scope: Scope) -> Iterations | None:
    repeats = repeated(report, scope)
    if repeats is None:
        return None
    _, start, end, process = repeats
    name, labels = repeats.name, tuple(f"repeat {number}" for number in range(len(start)))
    rows, never_closed = np.empty(0, np.intp), np.zeros(len(start), bool)
    found = Iterations(Rule.PATTERN, name, start, end, labels, rows, never_closed, process)
    return found if candidates.are_steps(found) else None
