"""Our rule on kernels that a tuner tries in turn, of which the quickest is used afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Finding
from nsys_tui.analysis.rules.nsys import HOST_COPIES
from nsys_tui.analysis.rules.register import Arguments, Result, cut, rule
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Integers
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import BLOCK, FARTHEST
from nsys_tui.model.groups import factorise, factorise_rows, first_rows, sums
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


@dataclass(frozen=True)
class Trial:
    """Candidates that were launched one after the other, each waited for."""

    rows: Indices
    window: tuple[int, int]
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
    nowhere else, and the quickest runs again later. The host copies nothing between them: steps of
    one algorithm hand something on. What comes before the second of named steps is warm-up, of
    which its own rule tells.
    """
    found = [one for device in case.by_device for one in trials(case, device)]
    start, end = np.array([one.window for one in found], np.int64).reshape(-1, 2).T
    order, hidden = cut(np.argsort(start - end, kind="stable"), arguments)
    columns = (
        (Column("Time", Unit.NS), (end - start)[order]),
        (Column("Start", Unit.NS), start[order]),
        (Column("Kernels", Unit.COUNT), np.array([one.candidates for one in found], int)[order]),
    )
    findings = [one for device in case.by_device for one in _tried(case, device)]
    return Result(columns, findings, hidden=hidden)


def _tried(case: Case, device: int) -> list[Finding]:
    ops = case.report.operations
    since = int(case.set_up_until[device]) if case.has_named_steps else -FARTHEST
    tried = [one for one in trials(case, device) if one.window[0] >= since]
    if not tried:
        return []
    others = np.setdiff1d(case.by_device[device], np.concatenate([one.rows for one in tried]))
    gone = intervals.subtract(_windows(tried), ops.runs(others))
    took, count = intervals.total(*gone), sum(one.candidates for one in tried)
    return case.finding(
        "tried_kernels",
        f"{units.format_count(count)} kernels tried in turn on {case.device_labels([device])},"
        f" {units.format_count(sum(one.chosen for one in tried))} of them used after:"
        f" {units.format_duration(took)}",
        "tune once: keep the tuner's cache, pad to few shapes, or cudnn.benchmark = False",
        subject="kernels tried in turn",
        saved_ns=took,
        window=max((one.window for one in tried), key=lambda window: window[1] - window[0]),
        device=device,
        lost=case.idle_time.idle_part(device, gone),
        gone=gone,
        when=gone,
    )


def _windows(some: Sequence[Trial]) -> Intervals:
    return intervals.union(*np.array([one.window for one in some], np.int64).reshape(-1, 2).T)


def tried_before(case: Case, device: int, until: int) -> Intervals:
    """When kernels are tried on a device, as far as that begins before a time."""
    return _windows([one for one in trials(case, device) if one.window[0] < until])


def trials(case: Case, device: int) -> list[Trial]:
    """Those on a device, of each thread that launches its kernels."""
    return case.once(f"trials {device}", lambda: _bare(case, device, [*_trials(case, device)]))


def _bare(case: Case, device: int, some: Sequence[Trial]) -> list[Trial]:
    """Those in which the host copies nothing from or to a device."""
    ops, copies = case.report.operations, case.copies if some else case.copies[:0]
    copies = copies[(ops.device[copies] == device) & np.isin(ops.copy_kind[copies], HOST_COPIES)]
    begun = np.sort(ops.start[copies])
    return [one for one in some if len(set(np.searchsorted(begun, one.window).tolist())) == 1]


def _trials(case: Case, device: int) -> Iterator[Trial]:
    ops, launch, api = case.report.operations, case.report.launch_attributes, case.report.api
    rows, calls = case.by_device[device], case.report.calls[case.by_device[device]]
    what = ops.name[rows] * np.int64(len(launch.table)) + launch.code[rows]
    waits = np.flatnonzero(case.work.api_classes == Cause.SYNC)
    waited = np.sort(api.thread[waits] * np.int64(len(api)) + waits)

    def turn(places: Indices) -> Integers:
        """How often the thread of each launch had waited for a GPU before, and others ahead."""
        thread = api.thread[calls[places]].astype(np.int64)
        return np.searchsorted(waited, thread * len(api) + calls[places]) + thread

    first, last = first_rows(what), len(what) - 1 - first_rows(what[::-1])
    known = (ops.kind[rows[first]] == OpKind.KERNEL) & (calls[first] >= 0) & (calls[last] >= 0)
    if _in_turn(turn(first[known]), turn(last[known])) < _LEAST - 1:
        return
    launched = np.flatnonzero((calls >= 0) & (ops.kind[rows] == OpKind.KERNEL))
    thread = api.thread[calls[launched]]
    order = np.lexsort((calls[launched], thread))
    launched = launched[order]
    group = np.cumsum(np.diff(turn(launched), prepend=-1) > 0) + thread[order]
    yield from _among(case.report, rows[launched], group, factorise(what[launched])[0])


def _in_turn(begun: Integers, done: Integers) -> int:
    """How many of some stretches follow one another, at most."""
    count, until = 0, -1
    for end, start in sorted(zip(done.tolist(), begun.tolist(), strict=True)):
        if start > until:
            count, until = count + 1, end
    return count


def _among(report: Report, rows: Indices, group: Integers, what: Integers) -> Iterator[Trial]:
    """Trials among kernels in the order of their launches.

    Args:
        report: the report.
        rows: the kernels.
        group: ascending, the same between two waits, one more after one, two after another thread.
        what: code of name and launch configuration.
    """
    ops, launch, total = report.operations, report.launch_attributes, np.bincount(what)
    codes, parts = factorise_rows((group, what))
    groups, kernels = parts.T
    count, time = np.bincount(codes), sums(codes, ops.durations(rows), len(parts))
    first = first_rows(codes)
    # Of each group of few kernels the one that runs least, and groups with the same in a row.
    few = np.flatnonzero(np.bincount(groups)[groups] <= _TOGETHER)
    order = few[np.lexsort((first[few], total[kernels[few]], groups[few]))]
    key = order[np.diff(groups[order], prepend=-1) > 0]
    alike = (np.diff(groups[key], prepend=-2) == 1) & (np.diff(kernels[key], prepend=-1) == 0)
    run = np.cumsum(~alike) - 1
    heads, tails = key[~alike], groups[key[np.diff(run, append=len(key)) > 0]]
    own = np.bincount(run, count[key])
    took = np.bincount(run, time[key]) / own
    # A kernel that was tried runs beside others where it is used.
    beside = np.setdiff1d(order, key)
    beside = beside[np.isin(kernels[beside], kernels[heads])]
    uses = np.bincount(run[np.searchsorted(groups[key], groups[beside])], minlength=len(heads)) > 0
    once, new = own == total[kernels[heads]], np.isin(heads, first_rows(kernels))
    shown = rows[first[heads]]
    config, _ = launch.alike(shown, launch.table[:, BLOCK.start :].T)
    kinds = np.stack((ops.name[shown], config)).T
    for burst in _bursts(once | new, uses, groups[heads], tails, kinds):
        chosen, each = ~once[burst], took[burst]
        picks = chosen.any() and each[chosen].min() <= _QUICKEST * each.min()
        if picks and len(burst) >= max(_LEAST, _FOR_ONE * chosen.sum()):
            tried = rows[first[heads[burst[0]]] : np.searchsorted(group, tails[burst[-1]], "right")]
            window = int(ops.start[tried].min()), int(ops.end[tried].max())
            yield Trial(tried, window, len(burst), int(chosen.sum()))


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
