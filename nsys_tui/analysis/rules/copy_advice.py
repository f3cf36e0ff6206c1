"""What to do about copies that nothing hides, and what pinning their memory costs."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui.analysis.breakdown import UVM_COPY_KINDS
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.idle_causes import ON_FLAG, ON_PAGES
from nsys_tui.analysis.rules.nsys import (
    DEVICE_TO_HOST,
    HOST_COPIES,
    MEMCPY,
    PAGEABLE,
    SMALL_COPY,
    TO_HOST,
    WITHIN_GPU,
)
from nsys_tui.analysis.rules.run import A_RUN
from nsys_tui.analysis.rules.staging import staged_advice
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Integers
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.events import FARTHEST, Operations
from nsys_tui.model.target import PROCESS_MASK

_BUS: Final = ((9, 55.0), (8, 26.0), (6, 13.0))
"""GB/s that pinned copies reach at most, by the first major compute capability on such a bus.

PCI Express 5, 4 and 3 with 16 lanes, less what its protocol takes.
"""
_SHARED: Final = "map the host's memory, or manage it: this GPU shares it, so no copy is needed"
LITTLE_HIDES: Final = "too little runs to hide copies behind"
"""Why advice is to copy less, which gives back more than the price of hiding them."""
_OFTEN: Final = 3
"""Rounds of copies from which pinning, which takes as long as a slow one, pays."""
_PAYS: Final = 1.5
"""So many times as long as pinning takes must copies take together before it pays."""
_PINS: Final = (0.25, 6.5)
"""Part of the bus's rate at which a host pins pages, and GB/s at most: 3 to 5 are usual."""
_OR_KEEP: Final = ", or keep the data on the GPU"
KEEP: Final = "keep the data on the GPU: what comes to the host goes straight back, it seems"
GATHER: Final = "gather small copies in one buffer"
_ON_THE_GPU: Final = "do on the GPU what the host makes of these, and copy only the result"
_WORKS: Final = (Cause.HOST, Cause.NOTHING)
_READS: Final = (0.5, 30.0)
"""GB/s at which a host goes through an array."""
_EVICTED: Final = 4
"""Cause of migrations: the GPU's memory is full."""
_EVICTED_SHARE: Final = 10
_PAGE: Final = 65536
"""Bytes of a page at most."""
_STAGED: Final = "give MPI the GPU's buffers (GPU-aware MPI): these copies stage its messages"
_BY_MPI: Final = "MPI makes these copies: give it one packed GPU buffer, and check its GPUDirect"
_LITTLE: Final = 0.1
"""Part of what the busiest stream computes up to which a stream is one for copies."""
_NEAR_NS: Final = 100_000
"""Copies so near to an MPI call bring its message."""


def bus_rate(case: Case, device: int) -> float:
    """Bytes a nanosecond that pinned copies of a device reach at most, 0 where not known."""
    info = case.report.devices[device].info
    if info is None or info.discrete == 0:
        return 0.0
    major = (info.compute_capability or (0, 0))[0]
    return next((rate for first, rate in _BUS if major >= first), 0.0)


def copy_advice(case: Case, rows: Indices, exposed: int, hides: bool, saved: int) -> str:
    """What to do about copies of one kind.

    Args:
        case: the report.
        rows: the copies, of one GPU.
        exposed: how long nothing hides them.
        hides: whether enough else runs to hide them behind.
        saved: what hiding them could save.
    """
    ops, first = case.report.operations, rows[0]
    if ops.kind[first] == OpKind.MEMSET:
        return "clear less, or let the kernel that writes first do it"
    if ops.copy_kind[first] in UVM_COPY_KINDS:
        return page_advice(case, rows)
    if ops.copy_kind[first] in WITHIN_GPU:
        return "swap pointers, or let kernels write their results where they are needed"
    if advice := mpi_advice(case, rows) or staged_advice(case, rows):
        return advice
    took, small = ops.durations(rows), ops.bytes[rows] <= SMALL_COPY
    if 2 * int(took[small].sum()) > int(took.sum()):
        return f"{GATHER}{_OR_KEEP}"
    if (info := case.report.devices[ops.device[first]].info) and info.discrete == 0:
        return _SHARED
    if ops.copy_kind[first] == DEVICE_TO_HOST and _are_worked_on(case, rows):
        return _ON_THE_GPU
    again = " if it is copied again" * too_few_to_pin(case, rows)
    pageable = from_pageable(ops, rows)
    if not hides:
        pin = f"pin the host memory{again}, and " if pageable else ""
        gain, back = min(saved, int(took.sum())), _back(case, rows)
        lasts = int(ops.durations(back).sum())
        apart = 2 * intervals.overlap_length(ops.runs(rows), ops.runs(back)) <= lasts
        both = apart and 0 < gain <= 2 * lasts
        less = "copy both ways at once, in pieces" if both else "copy less"
        return f"{pin}{less}{_OR_KEEP}: {LITTLE_HIDES}"
    pin = f"pin the host memory{again}, then " if pageable else ""
    kernels = case.where(lambda rows: ops.category[rows] == Category.COMPUTE)
    if 2 * _around_all(ops, rows, kernels) > exposed:
        return f"{pin}copy in smaller pieces: nothing computes before the first, or after the last"
    if 2 * int(took[_on_streams_of_copies(case, rows, kernels)].sum()) > int(took.sum()):
        if ops.copy_kind[first] in TO_HOST:
            return f"{pin}let the next kernels begin before each copy is done (two buffers)"
        return f"{pin}start each copy earlier (two buffers), beside the kernels before"
    keep = _OR_KEEP if 2 * _alike_back_ns(case, rows) >= took.sum() else ""
    return f"{pin}copy on a stream of its own while kernels run{keep}"


def _on_streams_of_copies(case: Case, rows: Indices, kernels: Indices) -> Bool:
    """Which of some copies have a stream beside those of kernels: not the default stream."""
    ops, api = case.report.operations, case.report.api
    computes = np.bincount(ops.stream[kernels], ops.durations(kernels), len(ops.streams))
    shared = np.array([stream.default for stream in ops.streams], np.bool_)
    shared |= computes > _LITTLE * computes.max()
    called, calls = case.report.called(rows)
    stops = np.array([MEMCPY.match(name) is not None for name in api.names], np.bool_)
    return np.asarray(
        ~shared[ops.stream[rows]] & ~np.isin(rows, called[stops[api.name[calls]]]), np.bool_
    )


def page_advice(case: Case, rows: Integers) -> str:
    """What to do about pages that migrate one way, by whether they fit and are prefetched already.

    Args:
        case: the report.
        rows: these migrations, of one GPU.
    """
    ops = case.report.operations
    pages = case.copies[np.isin(ops.copy_kind[case.copies], UVM_COPY_KINDS)]
    evicted = ops.bytes[pages[ops.migration[pages] == _EVICTED]].sum()
    if _EVICTED_SHARE * evicted > ops.bytes[pages].sum():
        return "work on parts that fit the GPU's memory: its pages are evicted for others"
    back = pages[ops.copy_kind[pages] == UVM_COPY_KINDS[1]]
    owners = ops.processes[ops.process[back]]
    within = case.within_mpi(owners, ops.start[back], ops.end[back]).sum()
    if 2 * int(within) > int(ops.durations(back).sum()):
        return "MPI works on these pages on the host: give it memory of the GPU, not managed"
    if is_one_page(case, int(ops.device[rows[0]])):
        return ON_FLAG
    if ops.copy_kind[rows[0]] == UVM_COPY_KINDS[1] and case.on_demand(rows).mean() > 0.5:
        return ON_PAGES
    if not case.prefetches:
        return "prefetch the pages (cudaMemPrefetchAsync), or copy them ahead of the work"
    computes = case.runs(int(ops.device[rows[0]]), Category.COMPUTE)
    before = intervals.busy_before(computes, intervals.prefix(*computes), ops.start[rows].max())
    if 2 * int(before) < int(ops.durations(rows).sum()):
        return "let a kernel fill these pages: nothing computes before that hides their prefetch"
    return "prefetch earlier, on a stream of its own, so that kernels hide it"


def is_one_page(case: Case, device: int) -> bool:
    """Whether launch by launch no more than a page of unified memory goes to a GPU and back."""
    ops, pages = case.report.operations, case.copies[case.on_demand(case.copies)]
    pages = pages[ops.device[pages] == device]
    launched = ops.start[case.doing(device, Category.COMPUTE)]
    for kind in UVM_COPY_KINDS[:2]:
        mine = pages[ops.copy_kind[pages] == kind]
        moved = np.bincount(np.searchsorted(launched, ops.start[mine]), ops.bytes[mine])
        moved = moved[moved > 0]
        if len(moved) < A_RUN or 2 * int((moved <= _PAGE).sum()) <= len(moved):
            return False
    return True


def _back(case: Case, rows: Indices) -> Indices:
    """Copies of a GPU that go the other way than some of one kind."""
    ops = case.report.operations
    kind, device = sum(HOST_COPIES) - int(ops.copy_kind[rows[0]]), ops.device[rows[0]]
    return case.where(lambda rows: (ops.copy_kind[rows] == kind) & (ops.device[rows] == device))


def _alike_back_ns(case: Case, rows: Indices) -> int:
    """How long those of the sizes of some last, such as of a field, where most come between these.

    A program's input goes up before its results come back.
    """
    ops, back = case.report.operations, _back(case, rows)
    back = back[np.isin(ops.bytes[back], ops.bytes[rows])]
    start, lasts = ops.start[back], ops.durations(back)
    between = (start > ops.start[rows].min()) & (start < ops.start[rows].max())
    return int(lasts.sum()) * (2 * int(lasts[between].sum()) >= int(lasts.sum()))


def from_pageable(ops: Operations, rows: Indices) -> bool:
    """Whether the first of some copies is from or to pageable memory."""
    return PAGEABLE in (ops.src_kind[rows[0]], ops.dst_kind[rows[0]])


def _pin_rate(case: Case, rows: Indices) -> float:
    """Bytes a nanosecond that the host of a copy pins, 0 on an unknown bus."""
    part, most = _PINS
    return min(bus_rate(case, int(case.report.operations.device[rows[0]])) * part, most)


def pinning_ns(case: Case, rows: Indices) -> int:
    """How long the host pins the memory of copies: for ever on an unknown bus."""
    rate = _pin_rate(case, rows)
    return round(int(case.report.operations.bytes[rows].sum()) / rate) if rate else FARTHEST


def too_few_to_pin(case: Case, rows: Indices) -> bool:
    """Whether the report has so few pageable copies like some that pinning takes as long.

    Quick ones need more rounds before it pays. Those of most of the bytes count; as one where no
    kernel runs between: they are of several arrays, such as a program's input or its results.
    """
    ops = case.report.operations
    if not (from_pageable(ops, rows) or staged_advice(case, rows)):
        return False
    kind = (ops.device, ops.name, ops.src_kind, ops.dst_kind)
    alike = np.logical_and.reduce([one[ops.others] == one[rows[0]] for one in kind])
    alike = ops.others[alike]
    alike = alike[np.argsort(-ops.bytes[alike], kind="stable")]
    size = np.cumsum(ops.bytes[alike])
    least = ops.bytes[alike[np.searchsorted(2 * size, size[-1])]]
    if least <= SMALL_COPY:
        return False  # their starts take the time
    alike = alike[ops.bytes[alike] >= least]
    kernels = np.flatnonzero((ops.kind == OpKind.KERNEL) & (ops.device == ops.device[rows[0]]))
    rounds = np.unique(np.searchsorted(ops.start[kernels], ops.start[alike]))
    rate = int(ops.bytes[alike].sum()) / max(int(ops.durations(alike).sum()), 1)
    pins = _pin_rate(case, rows)
    often = max(_OFTEN, _PAYS * rate / pins) if pins else _OFTEN
    return min(len(alike), len(rounds) if len(kernels) else len(alike)) < often


def _are_worked_on(case: Case, rows: Indices) -> bool:
    """Whether after most of some copies the host works as long as it takes to go through them."""
    gaps = case.stalls.gaps
    gaps = gaps.take(np.isin(gaps.previous, rows) & np.isin(gaps.cause, _WORKS))
    rate = case.report.operations.bytes[gaps.previous] / np.maximum(gaps.idle, 1)
    works = int(((rate >= _READS[0]) & (rate <= _READS[1])).sum())
    return works >= A_RUN and 2 * works >= len(rows)


def _around_all(ops: Operations, rows: Indices, kernels: Indices) -> int:
    """Time of some copies of a GPU before all of its kernels, and after them."""
    kernels = kernels[ops.device[kernels] == ops.device[rows[0]]]
    if not len(kernels):
        return 0
    first, last = ops.start[kernels].min(), ops.end[kernels].max()
    starts, ends = ops.runs(rows)
    before, after = np.minimum(ends, first) - starts, ends - np.maximum(starts, last)
    return int(before.clip(0).sum() + after.clip(0).sum())


def mpi_advice(case: Case, rows: Indices) -> str:
    """What to do about copies that MPI makes, or most of which are near its calls; else empty."""
    ops, (thread, start, end) = case.report.operations, case.mpi_calls
    own = np.isin(thread & PROCESS_MASK, ops.processes[np.unique(ops.process[rows])])
    around = intervals.union(start[own] - _NEAR_NS, end[own] + _NEAR_NS)
    copies = ops.runs(rows)
    near = intervals.meet(copies, around)
    if 2 * len(near[0]) <= len(copies[0]):
        return ""
    return _BY_MPI if _called_by_mpi(case, rows) else _STAGED


def _called_by_mpi(case: Case, rows: Indices) -> bool:
    """Whether most of some copies are called for within MPI calls, of the same threads."""
    api, (_, calls) = case.report.api, case.report.called(rows)
    threads = api.threads[api.thread[calls]]
    within = case.within_mpi(threads, api.start[calls], api.end[calls])
    return 2 * int(np.count_nonzero(within == api.durations(calls))) > len(rows)
