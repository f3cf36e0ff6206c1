"""Our rule on kernels that a tuner tries in turn, of which the quickest is used afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Finding
from nsys_tui.analysis.rules.register import Arguments, Result, cut, rule
from nsys_tui.analysis.stalls.causes import Cause, api_name_class
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Integers
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import BLOCK, FARTHEST, Operations
from nsys_tui.model.groups import factorise_rows, rows_of_values
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.report import Report
from nsys_tui.model.table import Column, Unit

_LEAST: Final = 5
"""Candidates from which on they are tried."""
_FOR_ONE: Final = 4
"""So many are tried for one that is used again, or more."""
_QUICKEST: Final = 1.05
"""What is chosen takes so many times as long as the quickest at most: a tuner measures noise."""
_TOGETHER: Final = 4
"""Kernels of one candidate at most: it converts its input, and the tuner clears caches."""
_MIX: Final = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Trial:
    """Candidates that were launched one after the other, each waited for."""

    rows: Indices
    candidates: int
    chosen: int
    """Those that run again."""


@rule(
    "Kernels tried in turn",
    advice="A tuner tries them at each new shape: keep its cache, pad to few shapes, or turn it off"
    " (torch.backends.cudnn.benchmark = False).",
    nothing="No different kernels run in turn, each waited for, of which one is used again.",
)
def tried_kernels(case: Case, arguments: Arguments) -> Result:
    """Stretches in which a thread launches one candidate after the other and waits for each.

    Candidates differ in name, block, registers or shared memory; most of them, with their grid, run
    nowhere else, and the quickest runs again later. What comes before the second of named steps is
    warm-up, of which its own rule tells.
    """
    ops, findings = case.report.operations, list[Finding]()
    for device in case.by_device:
        findings += _tried(case, device)
    found = [one for device in case.by_device for one in trials(case, device)]
    time = np.array([int(np.ptp(_span(ops, one))) for one in found], np.int64)
    order, hidden = cut(np.argsort(-time, kind="stable"), arguments)
    shown = [found[place] for place in order.tolist()]
    columns = (
        (Column("Time", Unit.NS), time[order]),
        (Column("Start", Unit.NS), ops.start[[int(one.rows[0]) for one in shown]]),
        (Column("Kernels", Unit.COUNT), np.array([one.candidates for one in shown], np.int64)),
    )
    return Result(columns, findings, hidden=hidden)


def _tried(case: Case, device: int) -> list[Finding]:
    ops, since = case.report.operations, -FARTHEST
    if case.has_named_steps:
        since = int(case.set_up_until[device])
    tried = [one for one in trials(case, device) if ops.start[one.rows[0]] >= since]
    if not tried:
        return []
    spans = np.array([_span(ops, one) for one in tried])
    others = np.setdiff1d(case.by_device[device], np.concatenate([one.rows for one in tried]))
    gone = intervals.subtract((spans[:, 0], spans[:, 1]), ops.runs(others))
    took, count = intervals.total(*gone), sum(one.candidates for one in tried)
    return case.finding(
        "tried_kernels",
        f"{units.format_count(count)} kernels tried in turn on {case.device_labels([device])},"
        f" {units.format_count(sum(one.chosen for one in tried))} of them used after:"
        f" {units.format_duration(took)}",
        "tune once: keep the tuner's cache, pad to few shapes, or cudnn.benchmark = False",
        subject="kernels tried in turn",
        saved_ns=took,
        window=tuple(spans[int(np.argmax(spans[:, 1] - spans[:, 0]))].tolist()),
        device=device,
        lost=case.idle_time.idle_part(device, gone),
        gone=gone,
        when=gone,
    )


def _span(ops: Operations, trial: Trial) -> tuple[int, int]:
    return int(ops.start[trial.rows].min()), int(ops.end[trial.rows].max())


def tried_before(case: Case, device: int, until: int) -> Intervals:
    """When kernels are tried on a device, as far as that begins before a time."""
    ops = case.report.operations
    spans = [_span(ops, one) for one in trials(case, device) if ops.start[one.rows[0]] < until]
    return intervals.joined(*((np.array([start]), np.array([end])) for start, end in spans))


def trials(case: Case, device: int) -> list[Trial]:
    """Those on a device, of each thread that launches its kernels."""
    return case.once(f"trials {device}", lambda: [*_trials(case, device)])


def _trials(case: Case, device: int) -> Iterator[Trial]:
    report, ops, api = case.report, case.report.operations, case.report.api
    rows, calls = case.by_device[device], report.calls[case.by_device[device]]
    launched = (calls >= 0) & (ops.kind[rows] == OpKind.KERNEL)
    order = np.flatnonzero(launched)[np.argsort(calls[launched], kind="stable")]
    rows, calls = rows[order], calls[order]
    waits = np.array([api_name_class(name) == Cause.SYNC for name in api.names], bool)
    waiting = np.flatnonzero(waits[api.name] & api.real)
    for thread, mine in rows_of_values(api.thread[calls]):
        waited = waiting[api.thread[waiting] == thread]
        yield from _of_thread(report, rows[mine], np.searchsorted(waited, calls[mine]))


def _of_thread(report: Report, rows: Indices, waits: Integers) -> Iterator[Trial]:
    """Trials among kernels in the order of their launches.

    Args:
        report: the report.
        rows: the kernels.
        waits: how often the thread had waited for a GPU before it launched each.
    """
    ops, launch = report.operations, report.launch_attributes
    starts = np.flatnonzero(np.diff(waits, prepend=-1))
    what, _ = factorise_rows((ops.name[rows], launch.code[rows]))
    bits = np.uint64(1) << (what.astype(np.uint64) * np.uint64(_MIX) >> np.uint64(58))
    held = np.bitwise_or.reduceat(bits, starts).view(np.uint8).reshape(-1, 8)
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(rows))))
    small = np.flatnonzero((np.unpackbits(held, axis=1).sum(axis=1) <= _TOGETHER)[group])
    if not len(small):
        return
    total = np.bincount(what)
    first = np.empty_like(total)
    first[what[::-1]] = np.arange(len(rows))[::-1]  # of equal places the last that is set stays
    # Of each group the kernel that runs least, and groups with the same one after each other.
    order = small[np.lexsort((total[what[small]], group[small]))]
    key = order[np.flatnonzero(np.diff(group[order], prepend=-1))]
    same = (np.diff(group[key], prepend=-2) == 1) & (np.diff(what[key], prepend=-1) == 0)
    run = np.cumsum(~same) - 1
    place = np.searchsorted(group[key], group[small])
    alone = what[small] == what[key][place]
    own = np.bincount(run[place][alone])
    took = np.bincount(run[place][alone], ops.durations(rows[small[alone]])) / own
    heads, tails = key[~same], group[key[np.append(~same[1:], True)]]
    # A kernel that was tried runs beside others where it is used.
    tried = np.zeros(len(total), np.bool_)
    tried[what[heads]] = True
    uses = np.bincount(run[place][tried[what[small]] & ~alone], minlength=len(heads)) > 0
    once = own == total[what[heads]]
    new = first[what[heads]] >= starts[group[heads]]
    code, _ = launch.alike(rows[heads], launch.table[:, BLOCK.start :].T)
    kinds = np.stack((ops.name[rows[heads]], code)).T
    for burst in _bursts(once | new, uses, group[heads], tails, kinds):
        chosen, each = ~once[burst], took[burst]
        picks = chosen.any() and each[chosen].min() <= _QUICKEST * each.min()
        if picks and len(burst) >= max(_LEAST, _FOR_ONE * chosen.sum()):
            end = int(np.searchsorted(group, tails[burst[-1]], "right"))
            yield Trial(rows[heads[burst[0]] : end], len(burst), int(chosen.sum()))


def _bursts(
    candidate: Bool, uses: Bool, begins: Integers, ends: Integers, kinds: Integers
) -> Iterator[list[int]]:
    """Candidates one right after the other, none of a kind that was among them."""
    burst, seen = list[int](), set[tuple[int, ...]]()
    for place in np.flatnonzero(candidate).tolist():
        kind = tuple(kinds[place].tolist())
        if burst and (uses[place] or begins[place] != ends[burst[-1]] + 1 or kind in seen):
            yield burst
            burst, seen = [], set()
        burst.append(place)
        seen.add(kind)
    yield burst
