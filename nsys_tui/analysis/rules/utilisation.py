"""nsys's rules on idle and little used GPUs: ``gpu_gaps`` and ``gpu_time_util``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.nsys import COMPAT
from nsys_tui.analysis.rules.register import Arguments, Parameter, Result, cut, rule
from nsys_tui.analysis.stats.kernels import member_ordinals
from nsys_tui.analysis.window import clipped
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Indices, Int64
from nsys_tui.model.categories import OpKind
from nsys_tui.model.groups import factorise_rows, rows_of_codes
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.table import Column, Unit
from nsys_tui.model.target import pid_of

_PROFILER_STALL: Final = re.compile(
    r"(?i)(cuda|vulkan|opengl|dx1[12]|directx).*profiling( data flush| stop)?.*overhead"
)
_MS: Final = 1_000_000


@dataclass(frozen=True)
class _Part:
    """GPU work of one process on one device, as nsys looks at it."""

    pid: int
    global_pid: int
    ordinal: int
    contexts: Int64
    """Of each operation."""
    starts: Int64
    ends: Int64

    def contexts_before(self, times: Int64) -> list[int | None]:
        """The contexts of the operations that ended last, at some times; None where unknown."""
        by_end = np.argsort(self.ends, kind="stable")
        last = np.searchsorted(self.ends[by_end], times, side="right") - 1
        contexts = self.contexts[by_end[last]].tolist()
        return [None if context < 0 else context for context in contexts]


def _parts(case: Case, compat: bool) -> Iterator[_Part]:
    """Work by (process, device) in start order.

    nsys leaves graph launches out and takes each graphics library by itself.
    """
    ops = case.report.operations
    each: list[tuple[int, int, int, Indices]] = []
    for device, rows in case.by_device.items():
        columns = [ops.process]
        if compat:
            rows = rows[(ops.kind[rows] != OpKind.GRAPH) & (ops.start[rows] > 0)]
            columns.append(np.where(ops.kind > OpKind.GRAPH, ops.kind, 0))
        codes, pairs = factorise_rows([column[rows] for column in columns])
        parts = rows_of_codes(codes, len(pairs))
        each += [
            (
                process,
                device,
                family[0] if family else 0,
                rows if len(pairs) == 1 else rows[of_part],
            )
            for (process, *family), of_part in zip(pairs.tolist(), parts, strict=True)
        ]
    ordinal = member_ordinals(ops)
    contexts = np.array([stream.context for stream in ops.streams], np.int64)
    for process, device, _, mine in sorted(each, key=lambda part: part[:3]):
        global_pid = int(ops.processes[process])
        yield _Part(
            pid_of(global_pid),
            global_pid,
            ordinal.get((device, pid_of(global_pid)), -1),
            contexts[ops.stream[mine]],
            *clipped(ops, mine, None),
        )


@rule(
    "Long idle gaps of a GPU",
    advice="The GPU waits for the host here: nsys-tui stalls says what the host did meanwhile.",
    nothing="No idle gap longer than the limit.",
    parameters=(Parameter("gap", 500.0, "list gaps longer than this, in ms"), COMPAT),
    of_nsys=True,
    finds=False,
)
def gpu_gaps(case: Case, arguments: Arguments) -> Result:
    """Times between the first and the last operation of a process on a GPU when nothing ran.

    nsys does not count graph launches as work and reports false gaps there, and errs where
    operations nest; ours takes the union of all work. Profiler stalls are no gaps in either.
    """
    compat = arguments.flag("compat")
    limit = int(arguments.number("gap") * _MS)
    long_gaps: list[tuple[int, int, _Part, int | None]] = []
    for part in _parts(case, compat):
        begin, finish = _idle(case, part, compat)
        long = finish - begin > limit
        begin, finish = begin[long], finish[long]
        contexts = part.contexts_before(begin)
        long_gaps += [
            (start, end, part, context)
            for start, end, context in zip(begin.tolist(), finish.tolist(), contexts, strict=True)
        ]
    long_gaps.sort(key=lambda gap: (gap[0] - gap[1], gap[0]))
    gaps, hidden = cut(long_gaps, arguments)
    columns = (
        (Column("Row#", Unit.NONE), [row + 1 for row in range(len(gaps))]),
        (Column("Duration", Unit.NS), [end - start for start, end, *_ in gaps]),
        (Column("Start", Unit.NS), [start for start, *_ in gaps]),
        (Column("PID", Unit.NONE), [part.pid for _, _, part, _ in gaps]),
        (Column("Device ID", Unit.NONE), [part.ordinal for _, _, part, _ in gaps]),
        (Column("Context ID", Unit.NONE), [context for *_, context in gaps]),
    )
    return Result(columns, hidden=hidden)


def _idle(case: Case, part: _Part, compat: bool) -> Intervals:
    """Idle intervals between operations; profiler stalls count as work."""
    events = case.report.host_events
    names = np.array([_PROFILER_STALL.search(name) is not None for name in events.names], bool)
    of_process = events.thread_process == part.global_pid
    lo, hi = int(part.starts[0]), int(part.ends.max())
    stalls = np.zeros(0, np.intp)
    if len(events):
        inside = (events.start >= lo) & (events.end <= hi)
        stalls = np.flatnonzero(names[events.name] & of_process[events.thread] & inside)
    starts, ends = part.starts, part.ends
    if len(stalls):
        starts = np.concatenate((starts, events.start[stalls]))
        ends = np.concatenate((ends, events.end[stalls]))
    if not compat:
        return intervals.gaps(starts, ends, lo, hi)
    begin, finish = np.sort(ends)[:-1], np.sort(starts)[1:]
    return begin[finish > begin], finish[finish > begin]


@rule(
    "Times of low GPU utilisation",
    advice="In these stretches the GPU is idle most of the time: look at what the host does, with"
    " nsys-tui stalls --window.",
    nothing="The GPU is used above the limit all the time.",
    parameters=(
        Parameter("threshold", 50.0, "list stretches used less than this, in percent"),
        Parameter("chunks", 30, "pieces that the time of GPU work is cut into, 1 to 1000"),
        COMPAT,
    ),
    of_nsys=True,
    finds=False,
)
def gpu_time_util(case: Case, arguments: Arguments) -> Result:
    """Stretches between first and last operation in which a GPU is used little.

    nsys adds durations, so that overlapping operations pass 100%, and leaves graph launches out;
    ours takes the union of all work.
    """
    compat = arguments.flag("compat")
    chunks = min(max(arguments.count("chunks"), 1), 1000)
    low: list[tuple[float, int, int, _Part, int | None]] = []
    for part in _parts(case, compat):
        (context,) = part.contexts_before(part.ends.max(keepdims=True))
        stretches = _low(part, chunks, arguments.number("threshold"), compat)
        low += [(used, length, start, part, context) for used, start, length in stretches]
    low.sort(key=lambda row: (round(row[0], 1), row[1], row[2]))
    rows, hidden = cut(low, arguments)
    columns = (
        (Column("Row#", Unit.NONE), [number + 1 for number in range(len(rows))]),
        (Column("In-Use", Unit.PERCENT, 1), [row[0] for row in rows]),
        (Column("Duration", Unit.NS), [row[1] for row in rows]),
        (Column("Start", Unit.NS), [row[2] for row in rows]),
        (Column("PID", Unit.NONE), [row[3].pid for row in rows]),
        (Column("Device ID", Unit.NONE), [row[3].ordinal for row in rows]),
        (Column("Context ID", Unit.NONE), [row[4] for row in rows]),
    )
    return Result(columns, hidden=hidden)


def _low(
    part: _Part, chunks: int, threshold: float, compat: bool
) -> Iterator[tuple[float, int, int]]:
    """(percent in use, start, length) of stretches of chunks below the threshold."""
    lo, hi = int(part.starts[0]), int(part.ends.max())
    size = -(-(hi - lo) // chunks)
    if not size:
        return
    edges = np.minimum(lo + size * np.arange(-(-(hi - lo) // size) + 1, dtype=np.int64), hi)
    busy = intervals.union(part.starts, part.ends)
    used = _summed(part, edges) if compat else intervals.covered(busy, edges[:-1], edges[1:])
    lengths = np.diff(edges)
    low = 100 * used / lengths < threshold
    heads = np.flatnonzero(low & np.append(True, ~low[:-1]))
    for head in heads.tolist():
        tail = head + int(np.argmin(np.append(low[head:], False)))
        length = int(lengths[head:tail].sum())
        yield 100 * int(used[head:tail].sum()) / length, int(edges[head]), length


def _summed(part: _Part, edges: Int64) -> Int64:
    """Durations that fall into each cell, overlaps counted as often as they occur."""
    before = _elapsed(np.sort(part.starts), edges) - _elapsed(np.sort(part.ends), edges)
    return np.diff(before)


def _elapsed(times: Int64, edges: Int64) -> Int64:
    """Sum over all ``times`` of how long before each edge they lie; 0 for later ones."""
    count = np.searchsorted(times, edges, side="left")
    sums = np.append(0, np.cumsum(times - times[0]))
    elapsed: Int64 = count * (edges - times[0]) - sums[count]
    return elapsed
