"""The true figures of a simulated run, as JSON that later analyses can be checked against.

Definitions: busy is the union of a device's operations; communication is every ``nccl`` kernel; a
gap's cause follows the call of the operation that ends it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from nsys_tui.demo import brute
from nsys_tui.demo.events import GRAPH, KERNEL, MEMCPY, MEMSET, Operation, Phase, Trace
from nsys_tui.demo.problems import GAP_THRESHOLD, planted_problems
from nsys_tui.demo.tiling import Tiling

Parts: TypeAlias = Sequence[tuple[int, Sequence[Operation]]]


def truth(trace: Trace, tiling: Tiling) -> dict[str, Any]:
    """Every figure of the run, ready for JSON. Times in ns since the session's start.

    Where the loop is repeated, totals count every copy; the lists of steps and problems hold the
    first copy's, and figures that depend on what lies between copies are left out.
    """
    views = [brute.RankView(trace, info.rank) for info in trace.ranks]
    parts = _parts(trace.operations, tiling)
    first, last = brute.span(trace.operations)
    figures = {
        "steps": trace.steps * tiling.copies,
        "copies": tiling.copies,
        "period_ns": tiling.period,
        "session_ns": trace.duration,
        "extent": list(brute.extent(trace)),
        "span": [first, last + tiling.shift(tiling.copies - 1)["time"]],
        "operations": _totals(parts),
        "devices": [_device(trace, view, tiling) for view in views],
        "kernels": _kernels(parts),
        "copies_by_kind": _copies(parts),
        "step_times": _steps(trace),
        "problems": planted_problems(trace, views),
    }
    if tiling.copies == 1:
        figures |= {
            "api": _sums((call.name, call.end - call.start) for call in trace.calls),
            "nvtx": _nvtx(trace),
            "collectives": _collectives(trace),
            "folded": _folded(views),
        }
    return figures


def _parts(operations: Sequence[Operation], tiling: Tiling) -> Parts:
    """Groups of operations with the number of times each counts.

    Only the first copy of the loop can overlap the setup, and only the last one the epilogue.
    """
    if tiling.copies == 1:
        return [(1, operations)]
    return [
        (1, [o for o in operations if o.phase is not Phase.EPILOGUE]),
        (tiling.copies - 2, [o for o in operations if o.phase is Phase.LOOP]),
        (1, [o for o in operations if o.phase is not Phase.SETUP]),
    ]


def _totals(parts: Parts) -> dict[str, int]:
    return {
        "count": sum(times * len(group) for times, group in parts),
        "total_ns": sum(times * sum(o.ns for o in group) for times, group in parts),
    }


def _device(trace: Trace, view: brute.RankView, tiling: Tiling) -> dict[str, Any]:
    first, last = brute.span(trace.operations)
    info = trace.ranks[view.rank]
    figures: Counter[str] = Counter()
    for times, group in _parts(view.operations, tiling):
        figures.update({name: times * value for name, value in _measure(group).items()})
    length_of_all = last + tiling.shift(tiling.copies - 1)["time"] - first
    truth_of = {
        "gpu_id": info.gpu,
        "rank": info.rank,
        "pid": info.pid,
        "idle_ns": length_of_all - figures["busy_ns"],
        **figures,
    }
    return truth_of | ({"gaps": _gaps(view, brute.extent(trace))} if tiling.copies == 1 else {})


def _measure(group: Sequence[Operation]) -> dict[str, int]:
    """All that is counted per device, of one group of operations."""
    parts = {
        kind: brute.union((o.start, o.end) for o in group if brute.category(o) == kind)
        for kind in ("compute", "comm", "memory", "graph")
    }
    return {
        "busy_ns": brute.length(brute.union((o.start, o.end) for o in group)),
        **{f"{kind}_ns": brute.length(covered) for kind, covered in parts.items()},
        "exposed_comm_ns": brute.length(brute.minus(parts["comm"], parts["compute"])),
        "exposed_memory_ns": brute.length(
            brute.minus(parts["memory"], parts["compute"] + parts["comm"])
        ),
        "operation_ns": sum(o.ns for o in group),
        "kernel_count": sum(o.kind == KERNEL for o in group),
        "memcpy_count": sum(o.kind == MEMCPY for o in group),
        "memset_count": sum(o.kind == MEMSET for o in group),
        "graph_count": sum(o.kind == GRAPH for o in group),
    }


def _gaps(view: brute.RankView, whole: brute.Interval) -> dict[str, Any]:
    """Idle time between operations by cause; before the first and after the last apart."""
    first, last = brute.span(view.operations)
    gaps = [(start, end, view.cause((start, end))) for start, end in view.gaps()]
    return {
        "head_ns": first - whole[0],
        "tail_ns": whole[1] - last,
        "count": len(gaps),
        "total_ns": sum(end - start for start, end, _ in gaps),
        "by_cause": _sums((cause, end - start) for start, end, cause in gaps),
        "threshold_ns": GAP_THRESHOLD,
        "listed": [
            {"start": start, "end": end, "cause": cause}
            for start, end, cause in gaps
            if end - start >= GAP_THRESHOLD
        ],
    }


def _kernels(parts: Parts) -> list[dict[str, Any]]:
    by_name: dict[str, dict[str, Any]] = {}
    for times, group in parts:
        for o in group:
            if o.kernel is not None and times:
                row = by_name.setdefault(
                    o.kernel.full,
                    {"name": o.kernel.full, "count": 0, "total_ns": 0, "min_ns": o.ns, "max_ns": 0},
                )
                row["count"] += times
                row["total_ns"] += times * o.ns
                row["min_ns"] = min(row["min_ns"], o.ns)
                row["max_ns"] = max(row["max_ns"], o.ns)
    return sorted(by_name.values(), key=lambda row: (-row["total_ns"], row["name"]))


def _copies(parts: Parts) -> dict[str, dict[str, int]]:
    by_kind: dict[str, dict[str, int]] = {}
    for times, group in parts:
        for o in group:
            if o.kind == MEMCPY:
                name = {1: "HtoD", 2: "DtoH", 8: "DtoD"}[o.copy_kind]
                _add(by_kind, name, count=times, bytes=times * o.bytes, total_ns=times * o.ns)
    return by_kind


def _sums(named: Iterable[tuple[str, int]]) -> dict[str, dict[str, int]]:
    """How many there are of each name, and their time."""
    sums: dict[str, dict[str, int]] = {}
    for name, ns in named:
        _add(sums, name, count=1, total_ns=ns)
    return sums


def _add(sums: dict[str, dict[str, int]], name: str, **amounts: int) -> None:
    entry = sums.setdefault(name, dict.fromkeys(amounts, 0))
    for key, amount in amounts.items():
        entry[key] += amount


def _nvtx(trace: Trace) -> dict[str, int]:
    ranges = [r for r in trace.ranges if r.event_type in (59, 60)]
    return {
        "ranges": len(ranges),
        "open": sum(r.end is None for r in ranges),
        "other_thread_end": sum(r.end_tid not in (None, r.tid) for r in ranges),
    }


def _steps(trace: Trace) -> list[dict[str, Any]]:
    """Step times per rank: start to the next start; the last one that ended, to its own end."""
    rows = []
    for info in trace.ranks:
        steps = [r for r in trace.ranges if r.rank == info.rank and r.name.startswith("Train step")]
        for this, following in zip(steps, [*steps[1:], None], strict=True):
            if this.end is not None:
                ends = this.end if following is None else following.start
                rows.append(
                    {
                        "rank": info.rank,
                        "name": this.name,
                        "start": this.start,
                        "end": this.end,
                        "time_ns": ends - this.start,
                    }
                )
    return rows


def _collectives(trace: Trace) -> dict[str, Any]:
    parts = trace.collectives
    kernels = [o for o in trace.operations if brute.category(o) == "comm"]
    by_call: dict[int, list[tuple[int, int]]] = {}
    for part in parts:
        by_call.setdefault(part.op_count, []).append((part.start, part.end))
    return {
        "count": len(parts),
        "bytes": sum(part.bytes for part in parts),
        "kernel_ns": sum(o.ns for o in kernels),
        "time_ns": sum(max(e for _, e in p) - max(s for s, _ in p) for p in by_call.values()),
        "skew_ns": sum(max(s for s, _ in p) - min(s for s, _ in p) for p in by_call.values()),
    }


def _folded(views: Sequence[brute.RankView]) -> list[dict[str, Any]]:
    """GPU time by the ranges open at the call on its own thread, with the operation as leaf."""
    sums: dict[tuple[str, ...], list[int]] = {}
    for view in views:
        paths = view.paths()
        for operation in view.operations:
            path = paths.get(operation.correlation, ["[no API call]"])
            key = (*(path or ["[no NVTX range]"]), brute.label(operation))
            entry = sums.setdefault(key, [0, 0])
            entry[0] += 1
            entry[1] += operation.ns
    return [
        {"path": list(path[:-1]), "leaf": path[-1], "count": count, "gpu_ns": ns}
        for path, (count, ns) in sorted(sums.items())
    ]
