"""The sections of the text overview as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_tui import units
from nsys_tui.model.table import Column, Table, Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.analysis.iterations.pieces import Pieces
    from nsys_tui.analysis.memory import DeviceMemory
    from nsys_tui.analysis.overview import Overview, TopName
    from nsys_tui.model.report import Report


def tables_of(
    report: Report, result: Overview, memory: list[DeviceMemory], pieces: Pieces | None
) -> dict[str, Table]:
    """The sections of the text overview by name, in the order they are read."""
    return {
        "report": _facts_table(report, result),
        "devices": _device_table(result),
        "breakdown": _breakdown_table(result),
        **({"memory": _memory_table(memory)} if memory else {}),
        "kernels": _top_table("kernels", "Top kernels", "Kernel", result.kernels, ()),
        "ranges": _top_table(
            "ranges", "Top NVTX ranges (host time)", "Range", result.ranges, _open_note(result)
        ),
        "missing": _missing_table(result),
        **({} if pieces is None else {"each": _pieces_table(report, pieces)}),
    }


def _facts_table(report: Report, result: Overview) -> Table:
    data, (lo, hi) = result.metadata, result.base
    session = data.session_duration_ns
    facts = {
        "report": report.name,
        "command": " ".join(data.command),
        "host": ", ".join(part for part in (data.host, data.os, data.cpu) if part),
        "GPUs": ", ".join(_counted([gpu.name for gpu in data.gpus])),
        "nsys": data.product_version or "not known (export of 2021 or older)",
        "driver": data.driver,
        "session": "not known" if session is None else units.format_duration(session),
        "window" if result.scope.window else "GPU work": (
            f"{units.format_duration(lo)} to {units.format_duration(hi)}"
            f" ({units.format_duration(hi - lo)})"
            if hi > lo
            else "none"
        ),
    }
    known = {name: value for name, value in facts.items() if value}
    warnings = tuple(
        f"{message.severity}: {message.text}"
        for message in data.diagnostics
        if message.severity.lower() in ("warning", "error")
    )
    return Table(
        "report",
        "Report",
        (Column("Fact"), Column("Value")),
        (list(known), list(known.values())),
        (*result.notes, *warnings),
    )


def _counted(names: Sequence[str]) -> list[str]:
    return [
        f"{names.count(name)} x {name}" if names.count(name) > 1 else name
        for name in dict.fromkeys(names)
    ]


def _device_table(result: Overview) -> Table:
    splits = result.devices
    shares = ("busy", "compute", "comm", "exposed_comm", "memory", "graph", "idle")
    columns = [Column("GPU"), Column("Name")]
    data: list[Sequence[Any]] = [[s.device.label for s in splits], [s.device.name for s in splits]]
    for name in shares:
        columns.append(Column(name.replace("_", " ").capitalize(), Unit.PERCENT, 2))
        data.append([_percent(getattr(s, f"{name}_ns"), s.base_ns) for s in splits])
    for name in ("busy", "idle", "max_gap"):
        columns.append(Column(f"{name.replace('_', ' ').capitalize()} time", Unit.NS))
        data.append([getattr(s, f"{name}_ns") for s in splits])
    columns.append(Column("Kernels", Unit.COUNT))
    data.append([s.kernel_count for s in splits])
    return Table(
        "devices", _device_title(result), tuple(columns), tuple(data), _device_notes(result)
    )


def _device_title(result: Overview) -> str:
    what = "the window" if result.scope.window else "the span of GPU work"
    return (
        f"Time of each GPU, as a share of {what} ({units.format_duration(result.headline.base_ns)})"
    )


def _device_notes(result: Overview) -> tuple[str, ...]:
    line = result.headline
    if not line.device_count:
        return ("no GPU work here",)
    notes = []
    share = line.share(line.busy_ns)
    if share is not None:
        notes.append(f"{line.device_count} GPU busy {100 * share:.1f}% of the time on average")
    session = line.session_share(line.busy_ns)
    if session is not None:
        notes.append(f"{100 * session:.2f}% of the recorded session")
    notes = [", ".join(notes)] if notes else []
    straddling = sum(split.straddling_count for split in result.devices)
    if straddling:
        notes.append(f"+{straddling} operations straddle the start of the window")
    return tuple(notes)


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def _breakdown_table(result: Overview) -> Table:
    rows = {name: value for name, value in result.breakdown.items() if name.endswith("_ns")}
    percent = result.breakdown["utilisation_percent"]
    note = "not known: the session's length was not recorded" if percent is None else f"{percent}%"
    return Table(
        "breakdown",
        "Breakdown by kernel name, all GPUs in one union (the older rule)",
        (Column("Figure"), Column("Time", Unit.NS)),
        ([name.removesuffix("_ns") for name in rows], list(rows.values())),
        (f"utilisation {note}",),
    )


def _memory_table(entries: list[DeviceMemory]) -> Table:
    columns: list[tuple[Column, list[Any]]] = [
        (Column("GPU"), [entry.device.label for entry in entries]),
        (Column("Peak", Unit.BYTES), [entry.peak[0] for entry in entries]),
        (Column("At", Unit.NS), [entry.peak[1] for entry in entries]),
        (Column("Allocations", Unit.COUNT), [entry.allocations for entry in entries]),
        (Column("Frees", Unit.COUNT), [entry.frees for entry in entries]),
        (Column("Never Freed", Unit.COUNT), [len(entry.never_freed) for entry in entries]),
        (Column("Never Freed Bytes", Unit.BYTES), [entry.never_freed_bytes for entry in entries]),
    ]
    return Table(
        "memory",
        "GPU memory (whole trace)",
        tuple(column for column, _ in columns),
        tuple(data for _, data in columns),
    )


def _top_table(
    name: str, title: str, header: str, entries: Sequence[TopName], notes: tuple[str, ...]
) -> Table:
    return Table(
        name,
        title,
        (
            Column("Time", Unit.PERCENT, 1),
            Column("Total", Unit.NS),
            Column("Count", Unit.COUNT),
            Column("Mean", Unit.NS),
            Column(header),
        ),
        (
            [100 * entry.share for entry in entries],
            [entry.total_ns for entry in entries],
            [entry.count for entry in entries],
            [entry.mean_ns for entry in entries],
            [entry.name for entry in entries],
        ),
        notes if entries else (*notes, "none"),
    )


def _open_note(result: Overview) -> tuple[str, ...]:
    count = result.open_range_count
    return (f"{count} ranges never closed are left out",) if count else ()


def _missing_table(result: Overview) -> Table:
    return Table(
        "missing",
        "Not in this report",
        (Column("Data"), Column("Why")),
        (
            [entry.kind for entry in result.missing],
            [entry.reason.partition(": ")[2] or entry.reason for entry in result.missing],
        ),
        () if result.missing else ("nothing is missing",),
    )


def _pieces_table(report: Report, pieces: Pieces) -> Table:
    count, devices = len(pieces.labels), len(pieces.places)
    order = [(piece, device) for piece in range(count) for device in range(devices)]
    shown = ("busy", "compute", "comm", "exposed_comm", "memory", "exposed_memory", "graph")
    columns: list[tuple[Column, list[Any]]] = [
        (Column("Piece"), [pieces.labels[piece] for piece, _ in order]),
        (Column("GPU"), [report.devices[pieces.places[device]].label for _, device in order]),
        (Column("Start", Unit.NS), [int(pieces.starts[piece]) for piece, _ in order]),
        (Column("Time", Unit.NS), [int(pieces.lengths[piece]) for piece, _ in order]),
    ]
    for name in shown:
        values = [int(pieces.figures[device][name][piece]) for piece, device in order]
        columns.append((Column(name.replace("_", " ").capitalize(), Unit.NS), values))
    busy = [pieces.figures[device]["busy"][piece] for piece, device in order]
    idle = [int(pieces.lengths[piece] - ns) for (piece, _), ns in zip(order, busy, strict=True)]
    columns.append((Column("Idle", Unit.NS), idle))
    return Table(
        "each",
        f"Each {pieces.what}",
        tuple(column for column, _ in columns),
        tuple(data for _, data in columns),
        ("GPU work counts where it runs, not where it was launched",),
    )
