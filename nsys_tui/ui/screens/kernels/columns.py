"""Columns of the kernels screen: groups of GPU work, and the instances of one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from nsys_tui.analysis.kernel_table import PARTS, GroupBy, KernelTable, shape_text, stream_labels
from nsys_tui.analysis.launches import launches
from nsys_tui.analysis.nvtx.operation_paths import OperationPaths
from nsys_tui.model.arrays import Array, Indices, Int64, Integers
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import SHAPE
from nsys_tui.model.groups import factorise
from nsys_tui.model.report import Report
from nsys_tui.model.table import Unit
from nsys_tui.render.cells import category_ink, style, word_ink
from nsys_tui.render.glyphs import Glyphs
from nsys_tui.state import Display
from nsys_tui.ui.widgets.table.columns import (
    Numbers,
    TableColumn,
    durations,
    numbers,
    strings,
    taken,
    texts,
    written,
)
from nsys_tui.ui.widgets.table.event_columns import begun, span_columns, when_column
from nsys_tui.units import format_bytes, format_duration, format_number, format_percent

NARROW_WHEN = PARTS // 2


def group_columns(
    table: KernelTable, report: Report, glyphs: Glyphs, wide: bool
) -> tuple[TableColumn, ...]:
    """Columns of grouped GPU work.

    Args:
        table: the groups.
        report: the report they are of.
        glyphs: characters of the sparkline.
        wide: draws ``when`` at full width.
    """

    def time(header: str, values: Array, **options: Any) -> Numbers:
        return durations(header, 8, values, format_duration, **options)

    shares = 100 * table.share
    inks = [style(category_ink(int(code))) for code in table.category]
    words = [style(word_ink(int(code))) for code in table.category]
    return (
        numbers("of sum", 6, shares, format_percent, unit=Unit.PERCENT, decimals=1, wanted=8),
        time("total", table.total),
        begun("calls", 7, table.count, table.straddling),
        time("avg", table.mean, decimals=1),
        time("med", table.median, extra=True, decimals=1),
        time("p99", table.p99, decimals=1),
        time("min", table.min, extra=True),
        time("max", table.max, extra=True),
        time("stddev", table.std, extra=True, decimals=1),
        when_column(table.when, glyphs, PARTS if wide else NARROW_WHEN, inks.__getitem__),
        strings("GPU", 5, [_devices(report, places) for places in table.devices], extra=True),
        strings("stream", 7, [_streams(report, places) for places in table.streams], extra=True),
        texts(
            str(table.by),
            20,
            np.arange(len(table)),
            table.labels,
            grow=True,
            names=table.by in (GroupBy.NAME, GroupBy.SHAPE),
            ink=words.__getitem__,
        ),
    )


_ROUNDED: Final[dict[Unit, Callable[[Any], str]]] = {
    Unit.NS: format_duration,
    Unit.COUNT: format_number,
}
"""How estimates are written."""


def sampled_columns(
    table: KernelTable, report: Report, glyphs: Glyphs, wide: bool
) -> tuple[TableColumn, ...]:
    """The same columns for figures from a sample: at the same places, marked as estimates."""

    def estimated(column: TableColumn) -> TableColumn:
        if not isinstance(column, Numbers):
            return column
        write = _ROUNDED.get(column.unit, column.write)
        return replace(column, write=lambda value: f"≈{write(value)}")

    return tuple(estimated(column) for column in group_columns(table, report, glyphs, wide))


def _devices(report: Report, places: Sequence[int]) -> str:
    numbers_ = [str(report.devices[device].number) for device in places]
    return _few(["?" if number == "None" else number for number in numbers_], 3)


def _streams(report: Report, places: Sequence[int]) -> str:
    return _few([str(i) for i in sorted({report.streams[stream].id for stream in places})], 2)


def _few(parts: Sequence[str], most: int) -> str:
    """``0,1``; of many the first ones and how many more: ``7,13 +4``."""
    more = len(parts) - most
    return ",".join(parts) if more <= 0 else f"{','.join(parts[:most])} +{more}"


def instance_columns(
    report: Report,
    rows: Indices,
    display: Display,
    paths: OperationPaths | None,
) -> tuple[TableColumn, ...]:
    """Columns of single operations.

    Args:
        report: the report; launch latency is shown once its API calls are loaded.
        rows: rows of its operations.
        display: how names and times are written.
        paths: NVTX paths, if they are there already.
    """
    ops = report.operations
    streams, names = stream_labels(report), ops.texts(display.names)
    columns = span_columns(report, ops, rows, display)
    columns.append(texts("stream", 17, taken(rows, ops.stream), streams, grow=True))
    columns += _launch_columns(report, rows)
    if paths is not None:
        columns.append(_path_column(paths, rows))
    columns.append(
        texts("name", 12, taken(rows, ops.name), names, grow=True, names=True, extra=True)
    )
    return tuple(columns)


def _launch_columns(report: Report, rows: Indices) -> list[TableColumn]:
    """Launch shape of kernels, bytes of copies, latency where the calls are loaded."""
    ops, columns = report.operations, list[TableColumn]()
    if not len(rows) or ops.kind[rows[0]] != OpKind.KERNEL:
        columns.append(numbers("bytes", 9, taken(rows, ops.bytes), format_bytes, unit=Unit.BYTES))
    # Drawing must not wait for the file: without the shapes there is no column.
    elif report.loaded("launch_attributes") and report.can(Capability.LAUNCH_SHAPES):
        columns.append(_shape_column(report, rows))
    if report.loaded("api"):
        latency = taken(rows, partial(_latency, report))
        columns.append(durations("latency", 9, latency, format_duration, extra=True))
    return columns


def _latency(report: Report, rows: Indices) -> Int64:
    """From call to start, masked where no call is known."""
    latency = launches(report, rows)
    return np.ma.masked_array(latency.latency, ~latency.called)


def _shape_column(report: Report, rows: Indices) -> TableColumn:
    launch = report.launch_attributes

    def write(place: int) -> str:
        return shape_text(tuple(launch.of(rows[place], SHAPE).tolist()))

    def load() -> tuple[Integers, list[str]]:
        codes, shapes = launch.alike(rows, launch.table[:, SHAPE].T)
        return codes, [shape_text(tuple(shape)) for shape in shapes.tolist()]

    return written("grid x block", 20, write, load, extra=True)


def _path_column(paths: OperationPaths, rows: Indices) -> TableColumn:
    def write(place: int) -> str:
        return paths.text(int(paths.node[rows[place]]))

    def load() -> tuple[Integers, list[str]]:
        codes, distinct = factorise(paths.node[rows])
        return codes, [paths.text(node) for node in distinct.tolist()]

    return written("NVTX path", 24, write, load, extra=True, grow=True)
