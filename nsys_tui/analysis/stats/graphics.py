"""Vulkan, OpenGL, Direct3D and video: calls and debug ranges, where the tables are simple."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.analysis.stats.host import rows_summary
from nsys_tui.analysis.stats.query import Columns, Needs, report
from nsys_tui.analysis.stats.summary import NAME, RANGE, thread_columns
from nsys_tui.errors import NoDataError
from nsys_tui.model.kinds import Kind
from nsys_tui.model.table import Column, Unit

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.analysis.stats.query import Query

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


VULKAN: Final = Needs("Vulkan API", "--trace=vulkan")


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
        found = query.raw(Kind.OPENGL_DEBUG, "text", "event_class")
        return [row for row in found if (row["event_class"] != _GL_DEBUG_CLASS) == on_gpu]

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
        report(title, Needs(data, f"--trace={traced}-annotations"), old=old)(ranges)


_register_ranges()


@report("NvVideo API Summary", Needs("NvVideo API", "--trace=nvvideo"), old="nvvideoapisum")
def nvvideo_api_sum(query: Query) -> Columns:
    """Video encoder, decoder and JPEG calls by function and their durations."""
    rows, names = [], []
    for kind, label in _VIDEO.items():
        for row in _calls(query, kind):
            rows.append(row)
            names.append((label, row["name"] or ""))
    return rows_summary(query, rows, names, "Num Calls", (Column("Event Type"), NAME))
