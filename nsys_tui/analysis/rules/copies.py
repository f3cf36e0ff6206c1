"""Our rule on copies that nothing hides, and what is said of those before the first step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.breakdown import OF_CATEGORY, UVM_COPY_KINDS, DeviceSplit
from nsys_tui.analysis.rules.case import AND_OTHERS, Case
from nsys_tui.analysis.rules.copy_advice import (
    KEEP,
    bus_rate,
    copy_advice,
    from_pageable,
    mpi_advice,
    pinning_ns,
    too_few_to_pin,
)
from nsys_tui.analysis.rules.finding import TITLE_CELLS, Finding, Severity, longest_of
from nsys_tui.analysis.rules.gap_facts import few_steps
from nsys_tui.analysis.rules.nsys import (
    PAGEABLE,
    PINNED,
    TO_HOST,
    WITHIN_GPU,
    of_memory,
)
from nsys_tui.analysis.rules.register import Arguments, Result, cut, most_of, rule
from nsys_tui.analysis.rules.run import A_RUN
from nsys_tui.analysis.rules.staging import (
    ONLY_NEEDED,
    round_trips,
    staged_advice,
    while_staged,
)
from nsys_tui.analysis.stats.gpu import MEMORY_LABELS
from nsys_tui.analysis.window import clipped
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Float64, Indices, Int64
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.groups import factorise_rows, rows_of_values, sums
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.table import Column, Unit

LARGE: Final = 1_000_000
"""Bytes from which a copy's rate is the bus's or the memory's, not that of its start."""
FAST: Final = 0.9
"""Quantile of the rates of a direction that copies of it can reach."""
_ONCE: Final = (
    "leave them out of what you measure, or move fewer bytes",
    "pin the host memory if it is copied again: pinning takes as long as one copy",
)
"""What to do about copies of set-up, from pinned memory or pageable."""
_STAGE: Final = "copy through two small pinned buffers by turns: even once that is quicker here"
_TOUCHED: Final = 2
"""Pages are touched first either way, which takes half as long as pinning them."""
_SMALL_PART: Final = 3
"""Part of the time, one of so many, below which what is copied seldom stands behind what recurs."""
_RESULTS: Final = "after its last kernel"
_FETCHED: Final = "the host may need the data before it launches on: then nothing can hide its copy"
NOT_HIDDEN: Final = "copies not hidden"
"""What findings are about that tell of copies to, from and between GPUs."""
_FAMILIES: Final = (
    ("copies within the GPU", WITHIN_GPU),
    ("pages not hidden", UVM_COPY_KINDS),
    (NOT_HIDDEN, [*{*range(256)} - {*WITHIN_GPU, *UVM_COPY_KINDS}]),
)
"""Copies that one change helps: what findings are about, and their kinds."""


def rates(size: Int64, time: Int64) -> Float64:
    """Bytes a second."""
    return np.asarray(size * 1e9 / np.maximum(time, 1), np.float64)


def case_labels(case: Case, places: Int64) -> list[str]:
    """Labels of devices."""
    return [case.report.devices[device].label for device in places.tolist()]


def exposed_ns(case: Case, device: int) -> int:
    """Time of copies and memsets of a device that nothing hides, without those that come once."""
    splits = case.steady_splits
    return next((split.exposed_memory_ns for split in splits if split.index == device), 0)


@rule(
    "Copies and memsets that nothing hides",
    advice="While these run, nothing computes: overlap them with kernels on another stream, or move"
    " fewer bytes.",
    nothing="No copies, or all of them are hidden behind kernels.",
)
def exposed_copies(case: Case, arguments: Arguments) -> Result:
    """Time of copies and memsets during which no kernel runs, with volume and rate by direction.

    The finding leaves out what comes once, before the first step or after the last kernel:
    ``warm_up`` tells of it.
    """
    worst = max(case.steady_splits, key=lambda split: split.exposed_memory_ns, default=None)
    ops = case.report.operations
    rows = case.where(lambda rows: ops.category[rows] == Category.MEMORY)
    codes, kinds = factorise_rows(
        (ops.device[rows], ops.name[rows], ops.src_kind[rows], ops.dst_kind[rows])
    )
    time = sums(codes, ops.durations(rows), len(kinds))
    size = sums(codes, ops.bytes[rows], len(kinds))
    order, hidden = cut(np.argsort(-time, kind="stable"), arguments)
    findings: list[Finding] = []
    if worst is not None and worst.exposed_memory_ns:
        mine = rows[ops.device[rows] == worst.index]
        alone = bare(case, worst.index, mine, (Category.COMPUTE, Category.COMM))
        for subject, ways in _FAMILIES:
            chosen = np.isin(ops.copy_kind[mine], ways) & (ops.kind[mine] == OpKind.MEMCPY)
            if alone[chosen].any():
                findings += _exposed(case, worst, subject, mine[chosen], alone[chosen])
    columns = (
        (Column("GPU"), case_labels(case, kinds[order, 0])),
        (Column("GPU Time", Unit.NS), time[order]),
        (Column("Count", Unit.COUNT), np.bincount(codes, minlength=len(kinds))[order]),
        (Column("Bytes", Unit.BYTES), size[order]),
        (Column("Throughput", Unit.MB_PER_S, 1), rates(size, time)[order]),
        (Column("Src Kind"), MEMORY_LABELS[kinds[order, 2]]),
        (Column("Dst Kind"), MEMORY_LABELS[kinds[order, 3]]),
        (Column("Operation"), [ops.names[code].short for code in kinds[order, 1].tolist()]),
    )
    return Result(columns, findings, hidden=hidden)


def bare(case: Case, device: int, rows: Indices, hiding: Sequence[Category]) -> Int64:
    """Of each of some operations of a device how long nothing hides it, from the first step on.

    A graph that is traced as a whole may hide it: nobody knows, so it does.
    """
    ops, graphs = case.report.operations, case.doing(device, Category.GRAPH)
    start, end = ops.start[rows], ops.end[rows]
    for times in (start, end):
        np.clip(times, *case.steady, out=times)
    whole, sets = ops.runs(graphs[ops.counted[graphs]]), case.device_coverage[device].sets
    names, alone = [OF_CATEGORY[one] for one in hiding], end - start
    if case.scope.window is not None:
        names, whole = [], intervals.joined(whole, case.runs(device, *hiding))
    for name in names:
        alone -= sets[name].within(start, end)
        whole = intervals.subtract(whole, sets[name].pair)
    if len(names) > 1:  # Compute comes first, and one other: sooner than one set of both.
        alone += sets["_".join((*names, "overlap"))].within(start, end)
    return np.asarray(alone - intervals.covered(whole, start, end), np.int64)


def _exposed(
    case: Case, split: DeviceSplit, subject: str, rows: Indices, alone: Int64
) -> list[Finding]:
    """What nothing hides of some copies: if that can save little, what is left is to copy less.

    Nobody knows the gain of that, but of what goes straight back.
    """
    ops, graphs = case.report.operations, split.exposed_is_upper_bound
    codes, kinds = factorise_rows((ops.name[rows], ops.src_kind[rows], ops.dst_kind[rows]))
    of_kind, every = sums(codes, alone, len(kinds)), int(alone.sum())
    most = int(of_kind.max())
    top = rows[(alone > 0) & (codes == np.argmax(of_kind))]
    time, size = int(ops.durations(top).sum()), int(ops.bytes[top].sum())
    what = ops.names[ops.name[top[0]]].short.removeprefix("[CUDA memcpy ").strip("]")
    kernels = case.runs(split.index, Category.COMPUTE, Category.COMM)
    spans = intervals.union(*clipped(ops, rows, case.steady))
    exposed = intervals.total(*intervals.subtract(spans, kernels))
    known = every if graphs else exposed
    few = [at for _, at in rows_of_values(codes) if too_few_to_pin(case, rows[at])]
    pins = sum(min(int(alone[at].sum()), pinning_ns(case, rows[at]) // _TOUCHED) for at in few)
    saved, hides = _can_hide(case, split, rows, exposed, known)
    saved = min(saved, every - pins)
    advice = copy_advice(case, top, most, hides, saved)
    trips = intervals.covered(round_trips(case, split.index), ops.start[rows], ops.end[rows])
    back = int(alone[trips == ops.durations(rows)].sum())
    goes_back = 2 * back > every and not mpi_advice(case, top)
    idle, again = intervals.empty(), 0
    if goes_back or staged_advice(case, top):
        idle, again = while_staged(case, split.index)
    waits = intervals.total(*idle)
    if goes_back:
        saved, advice = back + again, KEEP
    elif 2 * again > waits:
        saved = again + every * again // waits
    elif waits:
        saved, advice = 0, ONLY_NEEDED
    seldom = 2 * sum(int(alone[at].sum()) for at in few) > every and saved > 0
    seldom &= _SMALL_PART * known < case.judged_ns
    told = f", {units.format_duration(waits)} {'idle around' if goes_back else 'staged'}"
    title = (
        f"{split.device.label}{_others(case, split)}:"
        f" {'at most ' * graphs}{units.format_duration(exposed)} of copies exposed"
        f"{told * bool(waits)};"
        f" {most_of(most, every)} {what}:"
        f" {units.format_bytes(size)} at {units.format_rate(size * 1e9 / max(time, 1))}"
    )
    steps = few_steps(case, ops.start[top], ops.end[top], ops.durations(top))
    if steps and len(f"{title} in {steps}") <= TITLE_CELLS:
        title += f" in {steps}"
    return case.finding(
        "exposed_copies",
        title,
        advice,
        subject=f"{subject}{', and staging them' * bool(waits and not goes_back)}",
        saved_ns=saved,
        stake_ns=known + waits,
        lost=idle if waits else None,
        when=ops.runs(top),
        window=longest_of(ops, top),
        device=split.index,
        at_most=Severity.MEDIUM if seldom else None,
        doubt=_FETCHED * (ops.copy_kind[top[0]] in TO_HOST),
    )


def _can_hide(
    case: Case, split: DeviceSplit, rows: Indices, exposed: int, known: int
) -> tuple[int, bool]:
    """Time of copies that kernels, or others of them, can hide, and whether enough do."""
    ops, (first, last) = case.report.operations, case.steady
    work = split.busy_ns - min(known, split.exposed_memory_ns)
    least = _at_least(case, split.index, rows[(ops.end[rows] > first) & (ops.start[rows] < last)])
    saved = min(exposed - max(0, least - work), known)
    return saved, 2 * saved >= known and 2 * work >= min(least, known)


_HELD_BY: Final = ("cuda_memcpy_sync", "cuda_memcpy_async")
"""Rules on the idle time in calls of copies."""
_WORTH_SAYING: Final = 0.05


def with_calls(findings: Iterable[Finding]) -> list[Finding]:
    """Copies that nothing hides with the idle time in their calls: one change ends both.

    Args:
        findings: of rules; those on the calls become a part of the other one of their GPU.
    """
    every = [*findings]
    whole = {one.device: one for one in every if one.subject.startswith(NOT_HIDDEN)}
    parts = [one for one in every if one.rule in _HELD_BY and one.device in whole]
    for part in parts:
        whole[part.device] = _with_part(whole[part.device], part)
    return [
        replace(one, severity=Severity.LOW, same_as=whole[one.device].subject)
        if one in parts
        else whole[one.device]
        if one.subject.startswith(NOT_HIDDEN)
        else one
        for one in every
    ]


def _with_part(whole: Finding, part: Finding) -> Finding:
    idle = 0 if whole.lost else part.saved_ns  # What is staged has it already.
    stake = whole.stake_ns + idle
    title = whole.title.replace(
        " exposed;", f" exposed, {units.format_duration(idle)} idle around;"
    )
    fits = len(title) <= TITLE_CELLS and idle >= _WORTH_SAYING * stake
    return replace(
        whole,
        title=title if fits else whole.title,
        saved_ns=min(whole.saved_ns + idle, whole.of_ns),
        stake_ns=stake,
        severity=max(whole.severity, part.severity, key=lambda level: level.rank),
    )


def moved_once(case: Case) -> list[Finding]:
    """Copies and communication before all steps, or after them, on the GPU that has most of it."""
    ops, (first, last) = case.report.operations, case.steady
    before = case.where(lambda rows: ops.start[rows] < first)
    after = case.where(lambda rows: ops.start[rows] >= last)
    begun = "before the first step" if case.has_named_steps else "before most of its work"
    parts = zip(case.moved_once, (before, after), (begun, _RESULTS), strict=True)
    return [one for part in parts for one in _moved_once(case, *part)]


def _moved_once(case: Case, parts: dict[int, Intervals], rows: Indices, when: str) -> list[Finding]:
    """Copies still take what they need on the bus.

    Before pageable memory is as quick it must be pinned, which pays for a run of results alone:
    the host touches the pages of a few results first either way, which is what takes long.
    """
    ops = case.report.operations
    lasts = {device: intervals.total(*moved) for device, moved in parts.items()}
    device = max(lasts, key=lambda one: lasts[one], default=-1)
    if device < 0 or not lasts[device]:
        return []
    moved, rows = parts[device], rows[ops.device[rows] == device]
    copies, sent = (
        rows[ops.category[rows] == category] for category in (Category.MEMORY, Category.COMM)
    )
    others = AND_OTHERS if sum(2 * one > lasts[device] for one in lasts.values()) > 1 else ""
    saved, what = lasts[device], "communication"
    advice = "leave the warm-up out of what you measure"
    if ops.durations(copies).sum() > ops.durations(sent).sum():
        what, longest = "copies", copies[np.argsort(-ops.durations(copies), kind="stable")]
        pageable = from_pageable(ops, longest)
        saved, advice = saved - _at_least(case, device, copies), _ONCE[pageable]
        if pageable and when != _RESULTS:
            saved -= pinning_ns(case, copies)
        elif pageable and len(copies) < A_RUN:
            saved = 0
        if pageable and saved > 0:
            advice = _STAGE
    return case.finding(
        "warm_up",
        f"{case.device_labels([device])}{others}: {units.format_duration(lasts[device])} of {what}"
        f" {when}: only once",
        advice,
        subject=f"{what} of {'results' if when == _RESULTS else 'set-up'} (once)",
        saved_ns=max(0, saved),
        stake_ns=lasts[device],
        at_most=Severity.MEDIUM,
        window=(int(moved[0][0]), int(moved[1][-1])),
        device=device,
    )


def _others(case: Case, worst: DeviceSplit) -> str:
    """That other devices lose about as much, empty where one alone does."""
    much = [2 * split.exposed_memory_ns > worst.exposed_memory_ns for split in case.steady_splits]
    return AND_OTHERS if sum(much) > 1 else ""


def _at_least(case: Case, device: int, rows: Indices) -> int:
    """Time that the direction with most of some copies still takes.

    Pinned copies are as quick as they are. Pageable memory can be as quick as pinned memory one way
    among them, else as the bus; it, and pages that nobody asks for before they are touched, as
    their quickest tenth. Copies within the GPU can be left out.
    """
    ops = case.report.operations
    rows, most = rows[~np.isin(ops.copy_kind[rows], WITHIN_GPU)], 0.0
    for kind in np.unique(ops.copy_kind[rows]).tolist():
        mine = rows[ops.copy_kind[rows] == kind]
        spans = clipped(ops, mine, case.scope.window)
        time = float(intervals.total(*spans))
        rate = ops.bytes[mine] / np.maximum(ops.durations(mine), 1)
        large, pageable = ops.bytes[mine] >= LARGE, of_memory(ops, mine, PAGEABLE)
        shown = rate[large & of_memory(ops, mine, PINNED)]
        pinned = np.quantile(shown, FAST) if len(shown) else bus_rate(case, device)
        slow = large & (pageable | case.on_demand(mine))
        if slow.any():
            best = np.maximum(np.quantile(rate[slow], FAST), pinned * pageable[slow])
            time -= float((ops.bytes[mine[slow]] * (1 / rate[slow] - 1 / best)).clip(0).sum())
        most = max(most, time)
    return round(most)
