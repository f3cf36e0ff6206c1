"""An overview as data: JSON values, times in ns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.analysis.breakdown import ten_figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.analysis.breakdown import DeviceSplit
    from nsys_tui.analysis.iterations.pieces import Pieces
    from nsys_tui.analysis.memory import DeviceMemory
    from nsys_tui.analysis.overview import Overview, TopName
    from nsys_tui.model.report import Report


def as_json(report: Report, result: Overview, memory: Sequence[DeviceMemory]) -> dict[str, Any]:
    """The overview as JSON values: times in ns, shares from 0 to 1."""
    line = result.headline
    return {
        "report": _facts_json(report, result),
        "window_ns": result.scope.window,
        "base_ns": result.base,
        "span_ns": report.span,
        "headline": {
            **{name: getattr(line, name) for name in _HEADLINE},
            "busy_share": line.share(line.busy_ns),
            "busy_session_share": line.session_share(line.busy_ns),
            "exposed_comm_share": line.share(line.exposed_comm_ns),
        },
        "devices": [_device_json(report, result, split) for split in result.devices],
        "breakdown": result.breakdown,
        "gpu_memory": [_memory_json(entry) for entry in memory],
        "top_kernels": [_top_json(entry) for entry in result.kernels],
        "top_ranges": [_top_json(entry) for entry in result.ranges],
        "open_ranges": result.open_range_count,
        "missing": [{"kind": entry.kind, "reason": entry.reason} for entry in result.missing],
        "notes": list(result.notes),
    }


SECTION_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "report": ("report", "notes"),
    "devices": ("headline", "devices"),
    "breakdown": ("breakdown",),
    "memory": ("gpu_memory",),
    "kernels": ("top_kernels",),
    "ranges": ("top_ranges", "open_ranges"),
    "missing": ("missing",),
    "each": ("each",),
}
"""Keys that hold a section."""


def only(found: dict[str, Any], sections: Sequence[str] | None) -> dict[str, Any]:
    """The keys of some sections, with the times that they are of; everything for None."""
    if sections is None:
        return found
    left_out = {key for name in SECTION_KEYS.keys() - sections for key in SECTION_KEYS[name]}
    return {key: value for key, value in found.items() if key not in left_out}


_HEADLINE = (
    "device_count",
    "base_ns",
    "session_ns",
    "busy_ns",
    "idle_ns",
    "compute_ns",
    "comm_ns",
    "memory_ns",
    "graph_ns",
    "exposed_comm_ns",
    "exposed_memory_ns",
    "kernel_count",
    "max_gap_ns",
)
_SPLIT = (
    "base_ns",
    "busy_ns",
    "idle_ns",
    "compute_ns",
    "comm_ns",
    "memory_ns",
    "graph_ns",
    "uvm_ns",
    "exposed_comm_ns",
    "exposed_memory_ns",
    "compute_comm_overlap_ns",
    "compute_memory_overlap_ns",
    "comm_memory_overlap_ns",
    "sum_ns",
    "max_gap_ns",
    "kernel_count",
    "operation_count",
    "straddling_count",
    "exposed_is_upper_bound",
)


def _device_json(report: Report, result: Overview, split: DeviceSplit) -> dict[str, Any]:
    device = split.device
    alone = replace(result.scope, devices=frozenset((split.place,)))
    return {
        "id": device.id,
        "gpu_id": device.gpu_id,
        "members": [member._asdict() for member in device.members],
        "name": device.name,
        **{name: getattr(split, name) for name in _SPLIT},
        "busy_share": split.busy_ns / split.base_ns if split.base_ns else None,
        "max_gap_start_ns": split.max_gap[0] if split.max_gap else None,
        "breakdown": ten_figures(report, alone),
    }


def _top_json(entry: TopName) -> dict[str, Any]:
    return {
        "name": entry.name,
        "total_ns": entry.total_ns,
        "count": entry.count,
        "straddling": entry.straddling,
        "mean_ns": entry.mean_ns,
        "share": entry.share,
    }


def _facts_json(report: Report, result: Overview) -> dict[str, Any]:
    data = result.metadata
    return {
        "name": report.name,
        "nsys_version": data.product_version or None,
        "schema_version": data.schema_version or None,
        "command": list(data.command),
        "host": data.host or None,
        "os": data.os or None,
        "cpu": data.cpu or None,
        "driver": data.driver or None,
        "session_start_utc_ns": data.session_start_utc_ns,
        "session_ns": data.session_duration_ns,
        "gpus": [{"gpu_id": gpu.id, "name": gpu.name} for gpu in data.gpus],
        "diagnostics": [
            {"time_ns": m.time, "severity": m.severity, "source": m.source, "text": m.text}
            for m in data.diagnostics
        ],
    }


def _memory_json(entry: DeviceMemory) -> dict[str, Any]:
    peak, time = entry.peak
    return {
        "device": entry.device.number,
        "peak_bytes": peak,
        "peak_time_ns": time,
        "allocations": entry.allocations,
        "frees": entry.frees,
        "unmatched_frees": entry.unmatched_frees,
        "never_freed": len(entry.never_freed),
        "never_freed_bytes": entry.never_freed_bytes,
    }


def pieces_json(report: Report, pieces: Pieces) -> dict[str, Any]:
    """Each piece with its figures per GPU."""
    return {
        "what": pieces.what,
        "rows": [
            {
                "label": label,
                "start_ns": int(pieces.starts[piece]),
                "end_ns": int(pieces.ends[piece]),
                "devices": [
                    {
                        "device": report.devices[place].number,
                        "idle_ns": int(pieces.lengths[piece] - figures["busy"][piece]),
                        **{f"{name}_ns": int(values[piece]) for name, values in figures.items()},
                    }
                    for place, figures in zip(pieces.places, pieces.figures, strict=True)
                ],
            }
            for piece, label in enumerate(pieces.labels)
        ],
    }
