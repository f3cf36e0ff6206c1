"""Vulkan, OpenGL, Direct3D and video: calls and debug ranges; queues of the Windows display driver.

A packet of such a queue is two rows, its start and its stop; a queue belongs to a process, GPU,
context and engine.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from nsys_tui.analysis.aggregate import grouped_union
from nsys_tui.analysis.stats.host import rows_summary
from nsys_tui.analysis.stats.query import Columns, Needs, Query, report
from nsys_tui.analysis.stats.summary import NAME, RANGE, moments, pick, summarise, thread_columns
from nsys_tui.analysis.window import EVERYTHING, clipped
from nsys_tui.errors import NoDataError
from nsys_tui.model.arrays import Float64, Int64, Integers
from nsys_tui.model.events import EventSet
from nsys_tui.model.groups import regroup
from nsys_tui.model.kinds import Kind
from nsys_tui.model.report import Report
from nsys_tui.model.table import Column, Unit
from nsys_tui.model.target import pid_of

_GL_DEBUG_CLASS: Final = 4
"""Event class of OpenGL debug ranges on the host; the others are on the GPU."""
_VIDEO: Final = {
    Kind.VIDEO_ENCODER: "Encoder",
    Kind.VIDEO_DECODER: "Decoder",
    Kind.VIDEO_JPEG: "JPEG",
}


_MARKERS: Final = frozenset((55, 56, 84, 85, 87, 88, 90, 91))
"""Event class of rows that mark the start and the end of a trace."""


def _calls(query: Query, kind: Kind, *fields: str) -> list[dict[str, Any]]:
    """Calls of an API without the markers."""
    rows = query.raw(kind, "name", "event_class", *fields)
    return [row for row in rows if row["event_class"] not in _MARKERS]


VULKAN: Final = Needs("Vulkan API trace", "--trace=vulkan")


@report("Vulkan API Summary", VULKAN, old="vulkanapisum")
def vulkan_api_sum(query: Query) -> Columns:
    """Vulkan calls by function and their durations."""
    rows = _calls(query, Kind.VULKAN_CALL)
    names = [(row["name"] or "",) for row in rows]
    return rows_summary(query, rows, names, "Num Calls", (NAME,))


@report("Vulkan API Trace", VULKAN, old="vulkanapitrace")
def vulkan_api_trace(query: Query) -> Columns:
    """Every Vulkan call by its start."""
    rows = _calls(query, Kind.VULKAN_CALL, "context_id", "correlation_id")
    rows = sorted((row for row in rows if row["end"] is not None), key=lambda row: row["start"])
    if not rows:
        raise NoDataError("no Vulkan calls")
    threads = np.array([row["global_tid"] or 0 for row in rows], np.int64)
    return [
        (Column("Start", Unit.NS), [row["start"] for row in rows]),
        (Column("Duration", Unit.NS), [row["end"] - row["start"] for row in rows]),
        (NAME, [row["name"] or "" for row in rows]),
        (Column("Event Class", Unit.NONE), [row["event_class"] for row in rows]),
        (Column("Context", Unit.NONE), [row["context_id"] for row in rows]),
        (Column("CorrID", Unit.NONE), [row["correlation_id"] for row in rows]),
        *thread_columns(query, threads),
    ]


def _range_summary(query: Query, rows: list[dict[str, Any]]) -> Columns:
    """Ranges by their text; rows without a text are no ranges."""
    texted = [row for row in rows if row["text"] is not None]
    names = [(row["text"],) for row in texted]
    return rows_summary(query, texted, names, "Instances", (RANGE,))


def _raw(kind: Kind) -> Callable[[Query], list[dict[str, Any]]]:
    return lambda query: query.raw(kind, "text")


def _opengl(*, on_gpu: bool) -> Callable[[Query], list[dict[str, Any]]]:
    def rows(query: Query) -> list[dict[str, Any]]:
        debug = query.raw(Kind.OPENGL_DEBUG, "text", "event_class")
        return [row for row in debug if (row["event_class"] != _GL_DEBUG_CLASS) == on_gpu]

    return rows


_RANGES: Final = (
    ("vulkan_marker_sum", "vulkanmarkerssum", "Vulkan Range Summary", "vulkan",
     "Vulkan Debug Extension (Vulkan Debug Util)",
     "Vulkan debug ranges on the host", _raw(Kind.VULKAN_RANGE)),
    ("vulkan_gpu_marker_sum", "vulkangpumarkersum", "Vulkan GPU Range Summary", "vulkan",
     "GPU Vulkan Debug Extension (GPU Vulkan Debug markers)",
     "Vulkan debug ranges on the GPU", _raw(Kind.VULKAN_GPU_RANGE)),
    ("opengl_khr_range_sum", "khrdebugsum", "OpenGL KHR_debug Range Summary", "opengl",
     "KHR Extension (KHR_DEBUG)",
     "OpenGL KHR_debug ranges on the host", _opengl(on_gpu=False)),
    ("opengl_khr_gpu_range_sum", "khrdebuggpusum", "OpenGL KHR_debug GPU Range Summary", "opengl",
     "GPU KHR Extension (KHR_DEBUG)",
     "OpenGL KHR_debug ranges on the GPU", _opengl(on_gpu=True)),
    ("dx11_pix_sum", "dx11pixsum", "DX11 PIX Range Summary", "dx11",
     "DX11 CPU debug marker",
     "Direct3D 11 PIX ranges on the host", _raw(Kind.DX11_RANGE)),
    ("dx12_pix_sum", "pixsum dx12pixsum", "DX12 PIX Range Summary", "dx12",
     "DX12 CPU debug marker",
     "Direct3D 12 PIX ranges on the host", _raw(Kind.DX12_RANGE)),
    ("dx12_gpu_marker_sum", "dx12gpumarkersum", "DX12 GPU Command List PIX Ranges Summary", "dx12",
     "DX12 GPU debug marker",
     "Direct3D 12 PIX ranges of GPU command lists", _raw(Kind.DX12_GPU_RANGE)),
)  # fmt: skip
"""Reports of debug ranges: name, older names, title, what is traced, data, about, rows."""


def _register_ranges() -> None:
    for name, old, title, traced, data, about, rows in _RANGES:

        def ranges(query: Query, rows: Callable[..., list[dict[str, Any]]] = rows) -> Columns:
            return _range_summary(query, rows(query))

        ranges.__name__, ranges.__doc__ = name, f"{about} and their durations."
        where = " (on Windows)" * traced.startswith("dx")
        report(title, Needs(data, f"--trace={traced}-annotations{where}"), old=old)(ranges)


_register_ranges()


@report("NvVideo API Summary", Needs("NvVideo trace", "--trace=nvvideo"), old="nvvideoapisum")
def nvvideo_api_sum(query: Query) -> Columns:
    """Video encoder, decoder and JPEG calls by function and their durations."""
    rows, names = [], []
    for kind, label in _VIDEO.items():
        for row in _calls(query, kind):
            rows.append(row)
            names.append((label, row["name"] or ""))
    return rows_summary(query, rows, names, "Num Calls", (Column("Event Type"), NAME))


_QUEUES: Final = (
    (
        (0, "queue"),
        (Kind.WDDM_QUEUE_START, "submit_sequence"),
        (Kind.WDDM_QUEUE_STOP, "submit_sequence"),
    ),
    (
        (1, "dma"),
        (Kind.WDDM_DMA_START, "uli_submission_id"),
        (Kind.WDDM_DMA_STOP, "uli_completion_id"),
    ),
)
"""Type and name, and the kinds of start and stop rows with the fields that pair them."""
_ENGINES: Final = (
    "Other",
    "3D",
    "Video Decode",
    "Video Encode",
    "Video Processing",
    "Scene Assembly",
    "Copy",
    "Overlay",
    "Crypto",
)
_OTHER, _3D = 0, 1
_SHARED_BY: Final = 2
"""A 3D context above more hardware queues than this runs compute work as well."""


@report(
    "WDDM Queue Utilization Summary",
    Needs("WDDM context", "--trace=wddm (on Windows)"),
    old="wddmqueuesdetails",
)
def wddm_queue_sum(query: Query) -> Columns:
    """Queues of the Windows display driver by how busy they were, with the time of their packets.

    Utilization is the part of the time from the first to the last packet of the process, in any of
    its queues, in which the queue held at least one packet.
    """
    packets = [row for row in _packets(query.report) if query.keeps(row)]
    if not packets:
        raise NoDataError("no queue packets")
    codes, queues = regroup(np.arange(len(packets)), [row["queue"] for row in packets])
    start = np.array([row["start"] for row in packets], np.int64)
    end = np.array([row["end"] for row in packets], np.int64)
    by_start = np.argsort(start, kind="stable")
    codes, start, end = codes[by_start], start[by_start], end[by_start]
    events = EventSet(start, end, np.arange(len(packets)))
    summary = summarise(query, events, EVERYTHING, codes, len(queues))
    start, end = clipped(events, EVERYTHING, query.scope.window if query.clip else None)
    busy = _utilization(codes, start, end, [pid for _, pid, *_ in queues])
    names = _names(query.report, queues)
    # As NVIDIA sorts, by the printed figure; of equals the earlier queue first.
    order = np.argsort(-np.round(busy, 1), kind="stable")
    kinds, pids, gpus, contexts, engines = (list(values) for values in zip(*queues, strict=True))
    titles = dict(queue for queue, _, _ in _QUEUES)
    nodes = {row["context"]: row["node_ordinal"] for row in _contexts(query.report)}
    labels: Columns = [
        (NAME, names),
        (Column("Q Type", Unit.NONE), kinds),
        (Column("Q Name"), [titles[kind] for kind in kinds]),
        (Column("PID", Unit.NONE), pids),
        (Column("GPU ID", Unit.NONE), gpus),
        (Column("Context"), [f"0x{context & 0xFFFFFFFFFFFFFFFF:x}" for context in contexts]),
        (Column("Engine", Unit.NONE), engines),
        (Column("Node Ord", Unit.NONE), [nodes.get(context) or 0 for context in contexts]),
    ]
    return [
        (Column("Utilization", Unit.PERCENT, 1), busy[order]),
        (Column("Instances", Unit.COUNT), summary.instances.counts[order]),
        *moments(summary.instances, order, Unit.NS, 1),
        *((column, pick(values, order)) for column, values in labels),
    ]


def _packets(report: Report) -> list[dict[str, Any]]:
    """Packets as rows of start, end, thread and queue; one that never stopped takes no part."""
    packets = []
    for (kind, _), (start, begun), (stop, done) in _QUEUES:
        stops: defaultdict[tuple[Any, Any], list[int]] = defaultdict(list)
        for row in _timed(report, stop, "context", done):
            stops[row["context"], row[done]].append(row["start"])
        for times in stops.values():
            times.sort()
        fields = ("global_tid", "gpu", "context", begun, "engine_type")
        for row in _timed(report, start, *fields):
            times = stops.get((row["context"], row[begun]), [])
            place = bisect_left(times, row["start"])
            if place == len(times):
                continue
            pid = pid_of(row["global_tid"] or 0)
            queue = (kind, pid, row["gpu"], row["context"] or 0, row["engine_type"] or _OTHER)
            thread = {"global_tid": row["global_tid"], "global_pid": None}
            packets.append({"start": row["start"], "end": times[place], "queue": queue, **thread})
    return packets


def _timed(report: Report, kind: Kind, *fields: str) -> list[dict[str, Any]]:
    """Rows that have a start."""
    rows = report.rows(kind, "start", *fields).dictionaries()
    return [row for row in rows if row["start"] is not None]


def _utilization(codes: Integers, start: Int64, end: Int64, pids: list[int]) -> Float64:
    """Percentage of its process's time in which each queue held a packet."""
    busy = grouped_union(codes, start, end, len(pids))
    process = np.array(pids)[codes]
    rows = {pid: process == pid for pid in set(pids)}
    lengths = {pid: int(end[mine].max() - start[mine].min()) for pid, mine in rows.items()}
    spans = np.array([lengths[pid] for pid in pids])
    return np.asarray(100.0 * busy / np.maximum(spans, 1), np.float64)


def _contexts(report: Report) -> list[dict[str, Any]]:
    return report.rows(Kind.WDDM_CONTEXT, "context", "node_ordinal", "friendly_name").dictionaries()


def _names(report: Report, queues: list[tuple[int, int, int, int, int]]) -> list[str]:
    """What each queue is called: its engine, or what the driver calls its context."""
    friendly = {row["context"]: row["friendly_name"] for row in _contexts(report)}
    children: defaultdict[int, set[int]] = defaultdict(set)
    fields = ("context", "hw_queue", "parent_dxg_hw_queue")
    for context, queue, parent in zip(
        *report.rows(Kind.WDDM_HARDWARE_QUEUE, *fields).lists(), strict=True
    ):
        if context != parent:
            children[parent].add(queue)
    return [_name(engine, context, friendly, children) for *_, context, engine in queues]


def _name(
    engine: int, context: int, friendly: Mapping[int, str], children: Mapping[int, set[int]]
) -> str:
    if engine == _3D and len(children.get(context, ())) > _SHARED_BY:
        return "3D/Comp"
    if engine == _OTHER:
        return friendly.get(context) or _ENGINES[_OTHER]
    return _ENGINES[engine] if 0 <= engine < len(_ENGINES) else f"engine {engine}"
