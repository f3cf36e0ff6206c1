"""An overview as tables, section by section, and all of it as one document for programs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from nsys_tui import units
from nsys_tui.analysis.breakdown import FIGURES, ten_figures
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.table import (
    Column,
    Document,
    Form,
    Table,
    Unit,
    column,
    columns,
    data,
    number,
    record,
    records,
    table_of,
)
from nsys_tui.model.target import counted_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.analysis.breakdown import DeviceSplit
    from nsys_tui.analysis.iterations.breakdown import Pieces
    from nsys_tui.analysis.memory import DeviceMemory
    from nsys_tui.analysis.overview import Overview
    from nsys_tui.analysis.window import Rows
    from nsys_tui.model.report import Report


@dataclass(frozen=True)
class OverviewAnswer:
    """An overview with what stands beside it."""

    report: Report
    result: Overview
    memory: Sequence[DeviceMemory] = ()
    pieces: Pieces | None = None
    verdict: str = ""
    """How busy the GPUs were and what is worth fixing; empty where nobody looked."""

    def tables(self) -> dict[str, Table]:
        """The sections by name, in the order they are read."""
        result, pieces = self.result, self.pieces
        count = result.open_range_count
        opened = [f"{count} ranges never closed are left out"] if count else []
        each = () if pieces is None else (_pieces_table(self, pieces),)
        memory = table_of("memory", "GPU memory (whole trace)", _MEMORY, self.memory)
        found = (
            self._facts(),
            table_of(
                "devices", _device_title(result), _device_columns(result), result.devices, self,
                _device_notes(result)
            ),
            _breakdown_table(result),
            *([memory] if self.memory else []),
            _top(
                "kernels", "Top kernels", "Kernel", result.kernels,
                _others(result), result.gpu_known
            ),
            *self._host(),
            _top("ranges", "Top NVTX ranges (host time)", "Range", result.ranges, opened),
            table_of(
                "missing", "Not in this report", _MISSING, result.missing, None,
                () if result.missing else ("nothing is missing",)
            ),
            *each
        )  # fmt: skip
        return {table.name: table for table in found}

    def _host(self) -> list[Table]:
        """What the host did, where it was looked at."""
        host = self.result.host
        if host is None:
            return []
        none = "neither context switches nor CPU samples tell where threads ran"
        threads = table_of(
            "threads", "Threads by CPU time", _THREAD, host.threads, None,
            () if host.threads else (none,)
        )  # fmt: skip
        calls = _top("osrt", "Top OS runtime calls", "Call", self.result.calls, [])
        return [threads, calls]

    def _facts(self) -> Table:
        result, data, (lo, hi) = self.result, self.result.metadata, self.result.base
        why = self.report.lacks(Capability.KERNELS).partition(": ")[2]
        none = f"none: {why}" if why else "none"
        session, span = data.session_duration_ns, none if result.gpu_known else "not known"
        if hi > lo:
            shown = [units.format_duration(ns) for ns in (lo, hi, hi - lo)]
            span = f"{shown[0]} to {shown[1]} ({shown[2]})"
        facts = {
            "verdict": self.verdict,
            "report": self.report.name,
            "command": " ".join(data.command),
            "host": ", ".join(part for part in (data.host, data.os, data.cpu) if part),
            "GPUs": counted_names(gpu.name for gpu in data.gpus),
            "nsys": data.product_version or "not known (export of 2021 or older)",
            "driver": data.driver,
            "session": "not known" if session is None else units.format_duration(session),
            "window" if result.scope.window else "GPU work": span,
            "recorded": "" if result.host is None else ", ".join(result.host.recorded),
        }
        warnings = [
            f"{message.first.severity}: {message.text}"
            for message in result.messages
            if message.serious
        ]
        known = [(name, value) for name, value in facts.items() if value]
        return table_of("report", "Report", _FACT, known, None, [*result.notes, *warnings])

    @property
    def is_based(self) -> bool:
        """Whether the time that shares are of is known."""
        return self.result.gpu_known or self.result.scope.window is not None

    @cached_property
    def rows_by_device(self) -> dict[int, Rows]:
        """Operations in scope of each device, by its place."""
        return dict(self.result.scope.by_device(self.report))


def _device_title(result: Overview) -> str:
    what = "the window" if result.scope.window else "the span of GPU work"
    if not result.gpu_known:
        return f"Time of each GPU, as a share of {what}"
    length = units.format_duration(result.headline.base_ns)
    return f"Time of each GPU, as a share of {what} ({length})"


def _device_columns(result: Overview) -> tuple[Column, ...]:
    """All columns; waiting for ranks only where it is known."""
    if any(split.comm_waiting_ns is not None for split in result.devices):
        return _DEVICE
    return tuple(each for each in _DEVICE if each is not _WAITING)


def _device_notes(result: Overview) -> list[str]:
    line = result.headline
    if not result.gpu_known:
        return ["not known"]
    if not line.device_count:
        return ["no GPU work here"]
    said = []
    share, session = line.share(line.busy_ns), line.session_share(line.busy_ns)
    if share is not None:
        said.append(f"{line.device_count} GPU busy {100 * share:.1f}% of the time on average")
    if session is not None:
        said.append(f"{100 * session:.2f}% of the recorded session")
    straddling = sum(split.straddling_count for split in result.devices)
    notes = [", ".join(said)] if said else []
    notes += [_waiting_note(split) for split in result.devices if split.comm_waiting_ns]
    notes += [result.waits_note] if result.waits_note else []
    if straddling:
        notes.append(f"+{straddling} operations straddle the start of the window")
    return notes


def _waiting_note(split: DeviceSplit) -> str:
    waited, whole, bare = (
        units.format_duration(ns or 0)
        for ns in (split.comm_waiting_ns, split.comm_ns, split.exposed_waiting_ns)
    )
    return (
        f"{split.device.label} waits for other ranks in {waited} of {whole} of communication;"
        f" no compute hides {bare} of that"
    )


def _breakdown_table(result: Overview) -> Table:
    rows = [
        (name.removesuffix("_ns"), value)
        for name, value in result.breakdown.items()
        if name.endswith("_ns")
    ]
    percent = result.breakdown["utilisation_percent"]
    note = "not known: the session's length was not recorded" if percent is None else f"{percent}%"
    if not result.gpu_known:
        note = "and GPU time are not known"
    title = "Breakdown by kernel name, all GPUs in one union (the older rule)"
    return table_of("breakdown", title, _FIGURE, rows, None, [f"utilisation {note}"])


def _top(
    name: str,
    title: str,
    header: str,
    entries: Sequence[Any],
    notes: Sequence[str],
    known: bool = True,
) -> Table:
    shown = (*_TOP, Column(header, key="", read=lambda entry, _: entry.name))
    if not entries:
        notes = [*notes, "none" if known else "not known"]
    return table_of(name, title, shown, entries, None, notes)


def _others(result: Overview) -> list[str]:
    """The rest of the GPU's time, so that shares add up."""
    listed = [f"{one.name} {units.format_share(one.share, 1)}" for one in result.other_work]
    return [f"shares are of all GPU work; beside kernels: {', '.join(listed)}"] if listed else []


def _pieces_table(answer: OverviewAnswer, pieces: Pieces) -> Table:
    pairs = [
        (piece, device)
        for piece in range(len(pieces.labels))
        for device in range(len(pieces.places))
    ]
    note = "GPU work counts where it runs, not where it was launched"
    return table_of("each", f"Each {pieces.what}", _PIECE_ROW, pairs, answer, [note])


def _figure(name: str, header: str = "") -> Column:
    """A figure of a piece, read from the pair of piece and device."""
    return column(f"{name}_ns", header, lambda at, a: int(a.pieces.figures[at[1]][name][at[0]]))


def _piece_idle(at: tuple[int, int], answer: Any) -> int:
    busy = answer.pieces.figures[at[1]]["busy"][at[0]]
    return int(answer.pieces.lengths[at[0]] - busy)


def _titled(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _alone(split: DeviceSplit, answer: Any) -> dict[str, Any]:
    return ten_figures(answer.report, answer.result.scope, answer.rows_by_device[split.place])


def _part(name: str, header: str = "") -> Column:
    """The share of a device's time that something took."""

    def read(split: DeviceSplit, _: Any) -> float | None:
        ns = getattr(split, f"{name}_ns")
        return 100 * int(ns) / split.base_ns if split.base_ns and ns is not None else None

    key = "busy_share" if name == "busy" else ""
    return Column(header or _titled(name), Unit.PERCENT, 2, key, read)


_FACT: Final = (
    Column("Fact", read=lambda fact, _: fact[0]),
    Column("Value", read=lambda fact, _: fact[1]),
)
_FIGURE: Final = (
    Column("Figure", read=lambda figure, _: figure[0]),
    Column("Time", Unit.NS, read=lambda figure, _: figure[1]),
)
_BREAKDOWN: Final = (
    *columns(
        "session_ns gpu_active_ns gpu_idle_ns compute_ns communication_ns memory_ns"
        " compute_comm_overlap_ns compute_memory_overlap_ns comm_memory_overlap_ns"
    ),
    *columns("utilisation_percent", Unit.NONE),
    *columns("exposed_communication_ns"),
)
_WAITING: Final = _part("comm_waiting", "Waiting")
_DEVICE: Final = (
    number("id", lambda split, _: split.device.id),
    number("gpu_id", lambda split, _: split.device.gpu_id),
    records("members", columns("pid ordinal", Unit.COUNT), lambda split, _: split.device.members),
    Column("GPU", key="", read=lambda split, _: split.device.label),
    column("name", "Name", lambda split, _: split.device.name),
    *map(_part, ("busy", "compute", "comm", "exposed_comm")),
    _WAITING,
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
    record("breakdown", _BREAKDOWN, _alone),
)
_MEMORY: Final = (
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
_TOP: Final = (
    column("name"),
    Column("Time", Unit.PERCENT, 1, "share", lambda entry, _: 100 * entry.share),
    column("total_ns", "Total"),
    column("count", "Count", unit=Unit.COUNT),
    column("straddling", unit=Unit.COUNT),
    column("mean_ns", "Mean"),
)
_THREAD: Final = (
    column("name", "Thread"),
    column("process", "Process"),
    column("cpu_ns", "CPU time"),
    Column("Time", Unit.PERCENT, 1, "share", lambda thread, _: 100 * thread.share),
    column("witness", "Known by"),
)
_HOST: Final = (
    records("threads", _THREAD, lambda host, _: host.threads),
    records("os_runtime_calls", _TOP, lambda _, a: a.result.calls),
)
_MISSING: Final = (
    column("kind", "Data"),
    Column("Why", key="", read=lambda one, _: one.reason.partition(": ")[2] or one.reason),
    column("reason"),
)
_SHOWN: Final = ("busy", "compute", "comm", "exposed_comm", "memory", "exposed_memory", "graph")
_PIECE_ROW: Final = (
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


_REPORT: Final = (
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
_HEADLINE: Final = (
    *columns("device_count kernel_count", Unit.COUNT),
    *columns(
        "base_ns session_ns busy_ns idle_ns compute_ns comm_ns memory_ns graph_ns exposed_comm_ns"
        " exposed_memory_ns max_gap_ns comm_waiting_ns exposed_waiting_ns"
    ),
    data("busy_share", lambda line, _: line.share(line.busy_ns)),
    data("busy_session_share", lambda line, _: line.session_share(line.busy_ns)),
    data("exposed_comm_share", lambda line, _: line.share(line.exposed_comm_ns)),
)
_EACH: Final = (
    data("what", lambda a, _: a.pieces.what),
    records("rows", _PIECE, lambda a, _: range(len(a.pieces.labels))),
)
DOCUMENT: Final = Document(
    "overview",
    (
        record("report", _REPORT, lambda a, _: a),
        data("window_ns", lambda a, _: a.result.scope.window, form=Form.LIST),
        data("base_ns", lambda a, _: a.result.base if a.is_based else None, form=Form.LIST),
        data("span_ns", lambda a, _: a.report.span, form=Form.LIST),
        record(
            "headline", _HEADLINE, lambda a, _: a.result.headline if a.result.gpu_known else None
        ),
        data("verdict", lambda a, _: a.verdict, optional=True),
        records("devices", _DEVICE, lambda a, _: a.result.devices),
        record("breakdown", _BREAKDOWN, lambda a, _: a.result.breakdown),
        records("gpu_memory", _MEMORY, lambda a, _: a.memory),
        records("top_kernels", _TOP, lambda a, _: a.result.kernels),
        records("other_gpu_work", _TOP, lambda a, _: a.result.other_work),
        records("top_ranges", _TOP, lambda a, _: a.result.ranges),
        number("open_ranges", lambda a, _: a.result.open_range_count),
        records("missing", _MISSING, lambda a, _: a.result.missing),
        Column(key="host", read=lambda a, _: a.result.host, inner=_HOST, optional=True),
        Column(
            key="each",
            read=lambda a, _: None if a.pieces is None else a,
            inner=_EACH,
            optional=True,
        ),
    ),
)
"""An overview as JSON; ``breakdown`` is by the older rule, all GPUs in one union."""
_SECTION: Final[dict[str, tuple[str, ...]]] = {
    "report": ("report", "verdict"),
    "devices": ("headline", "devices"),
    "memory": ("gpu_memory",),
    "kernels": ("top_kernels", "other_gpu_work"),
    "ranges": ("top_ranges", "open_ranges"),
    "threads": ("host",),
    "osrt": ("host",),
}
"""Keys that hold a section; one of another name has its own key."""


def keys_of(sections: Sequence[str] | None) -> list[str] | None:
    """The keys of some sections, with the times that they are of; None for everything."""
    if sections is None:
        return None
    keys = [key for name in sections for key in _SECTION.get(name, (name,))]
    return ["window_ns", "base_ns", "span_ns", *keys]
