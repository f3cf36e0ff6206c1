"""Columns of the sections of an overview, for its tables and its document alike."""

from __future__ import annotations

from typing import Any, Final

from nsys_tui.analysis.breakdown import FIGURES, DeviceSplit, ten_figures
from nsys_tui.model.table import Column, Form, Unit, column, columns, data, number, record, records


def _figure(name: str, header: str = "") -> Column:
    """A figure of a piece, read from the pair of piece and device."""
    return column(f"{name}_ns", header, lambda at, a: int(a.pieces.figures[at[1]][name][at[0]]))


def _piece_idle(at: tuple[int, int], answer: Any) -> int:
    busy = answer.pieces.figures[at[1]]["busy"][at[0]]
    return int(answer.pieces.lengths[at[0]] - busy)


def _titled(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _alone(split: DeviceSplit, answer: Any) -> dict[str, Any]:
    return ten_figures(answer.report, answer.result.scope, answer.rows_by_device[split.index])


def _part(name: str, header: str = "") -> Column:
    """The share of a device's time that something took."""

    def read(split: DeviceSplit, _: Any) -> float | None:
        ns = getattr(split, f"{name}_ns")
        return 100 * int(ns) / split.base_ns if split.base_ns and ns is not None else None

    key = "busy_share" if name == "busy" else ""
    return Column(header or _titled(name), Unit.PERCENT, 2, key, read)


def _over_gpus(name: str, unit: Unit | None = None) -> Column:
    """A figure of all GPUs, null where the report tells of none."""
    return data(name, lambda line, a: getattr(line, name) if a.tells_of_gpus else None, unit)


def _other_name(split: DeviceSplit, _: Any) -> str:
    device = split.device
    return "" if device.name == device.label else device.name


FIGURE: Final = (
    Column("Figure", read=lambda figure, _: figure[0]),
    Column("Time", Unit.NS, read=lambda figure, _: figure[1]),
)
BREAKDOWN: Final = (
    *columns(
        "session_ns gpu_active_ns gpu_idle_ns compute_ns communication_ns memory_ns"
        " compute_comm_overlap_ns compute_memory_overlap_ns comm_memory_overlap_ns"
    ),
    *columns("utilisation_percent", Unit.NONE),
    *columns("exposed_communication_ns"),
)
WAITING: Final = _part("comm_waiting", "Waiting")
DEVICE: Final = (
    number("id", lambda split, _: split.device.id),
    number("gpu_id", lambda split, _: split.device.gpu_id),
    records("members", columns("pid ordinal", Unit.COUNT), lambda split, _: split.device.members),
    Column("GPU", key="", read=lambda split, _: split.device.label),
    data("name", lambda split, _: split.device.name),
    Column("Name", key="", read=_other_name),
    *map(_part, ("busy", "compute", "comm", "exposed_comm")),
    WAITING,
    *map(_part, ("memory", "graph", "idle")),
    column("busy_ns", "Busy time"),
    column("idle_ns", "Idle time"),
    column("max_gap_ns", "Max gap time"),
    column("kernel_count", "Kernels", unit=Unit.COUNT),
    *columns(
        "base_ns compute_ns comm_ns comm_waiting_ns comm_transfer_ns exposed_waiting_ns memory_ns"
        " graph_ns uvm_ns exposed_comm_ns exposed_memory_ns compute_comm_overlap_ns"
        " compute_memory_overlap_ns comm_memory_overlap_ns sum_ns"
    ),
    *columns("operation_count straddling_count", Unit.COUNT),
    *columns("exposed_is_upper_bound", Unit.FLAG),
    data("max_gap_start_ns", lambda split, _: split.max_gap[0] if split.max_gap else None),
    record("breakdown", BREAKDOWN, _alone),
)
MEMORY: Final = (
    number("device", lambda entry, _: entry.device.number),
    Column("GPU", key="", read=lambda entry, _: entry.device.label),
    column("peak_bytes", "Peak", lambda entry, _: entry.peak[0]),
    column("peak_time_ns", "At", lambda entry, _: entry.peak[1]),
    column("allocations", "Allocations", unit=Unit.COUNT),
    column("frees", "Frees", unit=Unit.COUNT),
    column("unmatched_frees", unit=Unit.COUNT),
    column("never_freed", "Never Freed", lambda entry, _: len(entry.never_freed), Unit.COUNT),
    column("never_freed_bytes", "Never Freed Bytes"),
)
TOP: Final = (
    column("name"),
    Column("Time", Unit.PERCENT, 1, "share", lambda entry, _: 100 * entry.share),
    column("total_ns", "Total"),
    column("count", "Count", unit=Unit.COUNT),
    column("straddling", unit=Unit.COUNT),
    column("mean_ns", "Mean"),
)
SHARE_OF: Final = {
    "kernel": "GPU time",
    "other": "GPU time",
    "call": "all calls",
    "range": "summed times",
}
"""What the shares of a list of names are of."""
THREAD: Final = (
    column("name", "Thread"),
    column("process", "Process"),
    column("cpu_ns", "CPU time"),
    Column("Time", Unit.PERCENT, 1, "share", lambda thread, _: 100 * thread.share),
    column("witness", "Known by"),
)
HOST: Final = (
    records("threads", THREAD, lambda host, _: host.threads),
    records("os_runtime_calls", TOP, lambda _, a: a.result.calls),
)
MISSING: Final = (
    column("kind", "Data"),
    Column("Why", key="", read=lambda one, _: one.reason.partition(": ")[2] or one.reason),
    column("reason"),
)
_SHOWN: Final = ("busy", "compute", "comm", "exposed_comm", "memory", "exposed_memory", "graph")
PIECE_ROW: Final = (
    Column("Piece", read=lambda at, a: a.pieces.labels[at[0]]),
    Column("GPU", read=lambda at, a: a.report.devices[a.pieces.places[at[1]]].label),
    Column("Start", Unit.NS, read=lambda at, a: a.pieces.starts[at[0]]),
    Column("Time", Unit.NS, read=lambda at, a: a.pieces.lengths[at[0]]),
    *(_figure(name, _titled(name)) for name in _SHOWN),
    Column("Idle", Unit.NS, read=_piece_idle),
)
_PIECE: Final = (
    data("label", lambda piece, a: a.pieces.labels[piece]),
    data("start_ns", lambda piece, a: a.pieces.starts[piece]),
    data("end_ns", lambda piece, a: a.pieces.ends[piece]),
    records(
        "devices",
        (
            data(
                "device", lambda at, a: a.report.devices[a.pieces.places[at[1]]].number, Unit.COUNT
            ),
            data("idle_ns", _piece_idle),
            *map(_figure, FIGURES),
        ),
        lambda piece, a: [(piece, device) for device in range(len(a.pieces.places))],
    ),
)


def _known(name: str, key: str | None = None) -> Column:
    """A fact of the metadata, null where it is empty."""
    return column(key or name, "", lambda a, _: getattr(a.result.metadata, name) or None)


REPORT: Final = (
    data("name", lambda a, _: a.report.name),
    _known("product_version", "nsys_version"),
    _known("schema_version"),
    data("command", lambda a, _: a.result.metadata.command, form=Form.LIST),
    *map(_known, ("host", "os", "cpu", "driver")),
    data("session_start_utc_ns", lambda a, _: a.result.metadata.session_start_utc_ns),
    data("session_ns", lambda a, _: a.result.metadata.session_duration_ns),
    records(
        "gpus",
        (number("gpu_id", lambda gpu, _: gpu.id), column("name")),
        lambda a, _: a.result.metadata.gpus,
    ),
    records(
        "diagnostics",
        (data("time_ns", lambda message, _: message.time), *columns("severity source text")),
        lambda a, _: a.result.metadata.diagnostics,
    ),
)
HEADLINE: Final = (
    *(_over_gpus(name, Unit.COUNT) for name in ("device_count", "kernel_count")),
    data("base_ns", lambda line, a: line.base_ns if a.is_based else None),
    *columns("session_ns"),
    *map(_over_gpus, ("busy_ns", "idle_ns", "compute_ns", "comm_ns", "memory_ns", "graph_ns")),
    *map(_over_gpus, ("exposed_comm_ns", "exposed_memory_ns", "max_gap_ns")),
    *map(_over_gpus, ("comm_waiting_ns", "exposed_waiting_ns")),
    data("busy_share", lambda line, _: line.share(line.busy_ns)),
    data("busy_session_share", lambda line, _: line.session_share(line.busy_ns)),
    data("exposed_comm_share", lambda line, _: line.share(line.exposed_comm_ns)),
)
EACH: Final = (
    data("what", lambda a, _: a.pieces.what),
    records("rows", _PIECE, lambda a, _: range(len(a.pieces.labels))),
)
