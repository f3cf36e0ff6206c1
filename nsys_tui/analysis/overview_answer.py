"""An overview as tables, section by section, and all of it as one document for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from nsys_tui import units
from nsys_tui.analysis.breakdown import DeviceSplit
from nsys_tui.analysis.memory import DeviceMemory
from nsys_tui.analysis.overview import Overview
from nsys_tui.analysis.overview_columns import (
    BREAKDOWN,
    DEVICE,
    EACH,
    FIGURE,
    HEADLINE,
    HOST,
    MEMORY,
    MISSING,
    PIECE_ROW,
    REPORT,
    SHARE_OF,
    THREAD,
    TOP,
    WAITING,
)
from nsys_tui.analysis.pieces import Pieces
from nsys_tui.analysis.rules.verdict import PART, Part, verdict_facts
from nsys_tui.analysis.window import Rows
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.report import Report
from nsys_tui.model.table import (
    FACTS,
    Column,
    Document,
    Form,
    Table,
    data,
    number,
    record,
    records,
    table_of,
)
from nsys_tui.model.target import counted_names
from nsys_tui.units import plural


@dataclass(frozen=True)
class OverviewAnswer:
    """An overview with what stands beside it."""

    report: Report
    result: Overview
    memory: Sequence[DeviceMemory] = ()
    pieces: Pieces | None = None
    verdict: str = ""
    """How busy the GPUs were and what is worth fixing; empty where nobody looked."""
    bound: Sequence[Part] = ()
    """Classes of time, the largest first; empty where nobody looked."""

    def tables(self, *, printed: bool = False) -> dict[str, Table]:
        """The sections by name, in the order they are read.

        Args:
            printed: only what people see of the devices; the rest takes long for many events.
        """
        result, pieces = self.result, self.pieces
        count = result.open_range_count
        opened = [f"{count} ranges never closed are left out"] if count else []
        each = () if pieces is None else (_pieces_table(self, pieces),)
        memory = table_of("memory", "GPU memory (whole trace)", MEMORY, self.memory)
        named = (
            self._facts(),
            table_of(
                "devices", _device_title(result), _device_columns(result, printed),
                result.devices, self, _device_notes(result)
            ),
            *([memory] if self.memory else []),
            _top(
                "kernels", "kernel", "Top kernels", "Kernel", result.kernels,
                _others(result), result.gpu_known
            ),
            *self._host(),
            _top(
                "ranges", "range", "Top NVTX ranges (host time)", "Range", result.ranges, opened
            ),
            *([_breakdown_table(result)] if result.breakdown else []),
            table_of(
                "missing", "Not in this report", MISSING, result.missing, None,
                () if result.missing else ("nothing is missing",)
            ),
            *each
        )  # fmt: skip
        return {table.name: table for table in named}

    def _host(self) -> list[Table]:
        """What the host did, where it was looked at."""
        host = self.result.host
        if host is None:
            return []
        none = "neither context switches nor CPU samples tell where threads ran"
        title = f"Threads by CPU time, shares of the {_whole(self.result)}"
        notes = () if host.threads else (none,)
        threads = table_of("threads", title, THREAD, host.threads, None, notes)
        calls = _top("osrt", "call", "Top OS runtime calls", "Call", self.result.calls, [])
        mpi = _top("mpi", "call", "Top MPI calls", "Call", self.result.mpi, [])
        return [threads, *([mpi] if self.result.mpi else []), calls]

    def _facts(self) -> Table:
        result, data, (lo, hi) = self.result, self.result.metadata, self.result.base
        why = self.report.lacks(Capability.KERNELS).partition(": ")[2]
        none = f"none: {why}" if why else "none"
        session, span = data.session_duration_ns, none if result.gpu_known else "not known"
        if hi > lo:
            begin, end = units.format_moment(lo), units.format_moment(hi)
            span = f"{begin} to {end} ({units.format_duration(hi - lo)})"
        facts = {
            **dict(verdict_facts(self.verdict, self.bound)),
            "report": self.report.name,
            "command": " ".join(data.command),
            "host": data.machine,
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
        return table_of("report", "Report", FACTS, known, None, [*result.notes, *warnings])

    @property
    def tells_of_gpus(self) -> bool:
        """Whether the report has GPU work, so that none in the scope means none."""
        return len(self.report.operations) > 0

    @property
    def is_based(self) -> bool:
        """Whether the time that shares are of is known."""
        return self.tells_of_gpus or self.result.scope.window is not None

    @cached_property
    def rows_by_device(self) -> dict[int, Rows]:
        """Operations in scope of each device, by its place."""
        return dict(self.result.scope.by_device(self.report))


def _device_title(result: Overview) -> str:
    what = "the window" if result.scope.window else "the span of GPU work"
    if not result.headline.base_ns:
        return f"Time of each GPU, as a share of {what}"
    length = units.format_duration(result.headline.base_ns)
    return f"Time of each GPU, as a share of {what} ({length})"


def _device_columns(result: Overview, printed: bool) -> tuple[Column, ...]:
    """All columns, or those that people see; waiting for ranks only where it is known."""
    known = any(split.comm_waiting_ns is not None for split in result.devices)
    chosen = [each for each in DEVICE if known or each is not WAITING]
    return tuple(each for each in chosen if each.header or not printed)


def _device_notes(result: Overview) -> list[str]:
    line = result.headline
    if not result.gpu_known:
        return ["not known"]
    if not line.device_count:
        return ["no GPU work here"]
    said = []
    share, session = line.share(line.busy_ns), line.session_share(line.busy_ns)
    if share is not None:
        said.append(
            f"{plural(line.device_count, 'GPU')} busy {units.format_share(share)} of the time"
            " on average"
        )
    if session is not None:
        said.append(f"{units.format_share(session)} of the recorded session")
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


def _whole(result: Overview) -> str:
    return "window" if result.scope.window else "session"


def _breakdown_table(result: Overview) -> Table:
    of = _whole(result)
    rows = [
        (of if name == "session_ns" else name.removesuffix("_ns"), value)
        for name, value in result.breakdown.items()
        if name.endswith("_ns")
    ]
    percent = result.breakdown["utilisation_percent"]
    note = "not known: the session's length was not recorded"
    if percent is not None:
        note = f"{units.format_percent(percent)} of the {of}"
    if not result.gpu_known:
        note = "and GPU time are not known"
    title = f"The whole {of}, all GPUs in one union, by kernel name"
    return table_of("breakdown", title, FIGURE, rows, None, [f"utilisation {note}"])


def _top(
    name: str,
    kind: str,
    title: str,
    header: str,
    entries: Sequence[Any],
    notes: Sequence[str],
    known: bool = True,
) -> Table:
    shown = (*TOP, Column(header, key="", read=lambda entry, _: entry.name))
    title = f"{title}, shares of {SHARE_OF[kind]}"
    if not entries:
        notes = [*notes, "none" if known else "not known"]
    return table_of(name, title, shown, entries, None, notes)


def _others(result: Overview) -> list[str]:
    """The rest of the GPU's time, so that shares add up."""
    listed = [f"{one.name} {units.format_share(one.share)}" for one in result.other_work]
    return [f"beside kernels: {', '.join(listed)}"] if listed else []


def _pieces_table(answer: OverviewAnswer, pieces: Pieces) -> Table:
    pairs = [
        (piece, device)
        for piece in range(len(pieces.labels))
        for device in range(len(pieces.places))
    ]
    note = "GPU work counts where it runs, not where it was launched"
    return table_of("each", f"Each {pieces.what}", PIECE_ROW, pairs, answer, [note])


_SECTIONS: Final = {
    "report": ("report", "verdict", "bound"),
    "devices": ("headline", "devices"),
    "memory": ("gpu_memory",),
    "kernels": ("top_kernels", "other_gpu_work"),
    "ranges": ("top_ranges", "open_ranges"),
    "threads": ("host",),
    "osrt": ("top_os_calls",),
    "mpi": ("top_mpi_calls",),
}
DOCUMENT: Final = Document(
    "overview",
    (
        record("report", REPORT, lambda a, _: a),
        data("window_ns", lambda a, _: a.result.scope.window, form=Form.LIST),
        data("base_ns", lambda a, _: a.result.base if a.is_based else None, form=Form.LIST),
        data("span_ns", lambda a, _: a.report.span, form=Form.LIST),
        record(
            "headline", HEADLINE, lambda a, _: a.result.headline if a.result.gpu_known else None
        ),
        data("verdict", lambda a, _: a.verdict, optional=True),
        records("bound", PART, lambda a, _: a.bound),
        records("devices", DEVICE, lambda a, _: a.result.devices),
        record("breakdown", BREAKDOWN, lambda a, _: a.result.breakdown),
        records("gpu_memory", MEMORY, lambda a, _: a.memory),
        records("top_kernels", TOP, lambda a, _: a.result.kernels),
        records("other_gpu_work", TOP, lambda a, _: a.result.other_work),
        records("top_ranges", TOP, lambda a, _: a.result.ranges),
        number("open_ranges", lambda a, _: a.result.open_range_count),
        records("top_mpi_calls", TOP, lambda a, _: a.result.mpi),
        records("top_os_calls", TOP, lambda a, _: a.result.calls),
        records("missing", MISSING, lambda a, _: a.result.missing),
        Column(key="host", read=lambda a, _: a.result.host, inner=HOST, optional=True),
        Column(
            key="each",
            read=lambda a, _: None if a.pieces is None else a,
            inner=EACH,
            optional=True,
        ),
    ),
    sections=_SECTIONS,
    shared=("window_ns", "base_ns", "span_ns"),
)
"""An overview as JSON; ``breakdown`` is by the older rule, all GPUs in one union."""
