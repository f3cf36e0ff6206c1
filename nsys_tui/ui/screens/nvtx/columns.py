"""Columns of the NVTX screen: the tree, ranges by name, kernels and instances below a range."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsys_tui.analysis.kernel_table import PARTS, KernelTable
from nsys_tui.analysis.nvtx.table import NvtxTable
from nsys_tui.model.arrays import Float64, Indices, Int64
from nsys_tui.model.categories import Category
from nsys_tui.model.report import Report
from nsys_tui.model.table import Unit
from nsys_tui.render.cells import category_ink, style, word_ink
from nsys_tui.render.glyphs import Glyphs
from nsys_tui.state import Display
from nsys_tui.ui.widgets.table.columns import TableColumn, counts, durations, numbers, taken, texts
from nsys_tui.ui.widgets.table.event_columns import begun, span_columns, when_column
from nsys_tui.units import format_duration, format_percent

NARROW_WHEN, WIDE_WHEN = 8, 12
"""Cells of the sparkline; both divide ``PARTS``."""


def tree_columns(table: NvtxTable, glyphs: Glyphs, wide: bool) -> tuple[TableColumn, ...]:
    """Name and figures of each node."""
    tree = table.tree
    name = texts("range", 25, np.arange(len(table.labels)), table.labels, grow=True)
    return (
        name,
        *_host(tree.count, tree.straddling, tree.host, tree.host_self),
        *_gpu(table.report, tree.gpu, tree.gpu_busy, tree.busy_share),
        _when(table.when, glyphs, wide),
        *((counts("open", 5, tree.open, extra=True),) if tree.open.any() else ()),
    )


def flat_columns(table: NvtxTable, glyphs: Glyphs, wide: bool) -> tuple[TableColumn, ...]:
    """Name and figures of each name, whatever its path."""
    flat = table.flat
    labels = [table.names[code] for code in flat.label.tolist()]
    when = np.array([table.when[nodes].sum(axis=0) for nodes in flat.nodes]).reshape(-1, PARTS)
    name = texts("range", 25, np.arange(len(labels)), labels, grow=True)
    return (
        name,
        *_host(flat.count, flat.straddling, flat.host, flat.host_self),
        *_gpu(table.report, flat.gpu, flat.gpu_busy, flat.busy_share),
        _when(when, glyphs, wide),
    )


def _host(count: Int64, straddling: Int64, total: Int64, self_ns: Int64) -> tuple[TableColumn, ...]:
    return (
        begun("count", 7, count, straddling),
        durations("total", 8, total, format_duration),
        durations("self", 8, self_ns, format_duration),
    )


def _gpu(report: Report, gpu: Int64, busy: Int64, share: Float64) -> tuple[TableColumn, ...]:
    """Work under the ranges; where the report has none at all, its zeros would tell nothing."""
    if not len(report.operations):
        return ()
    shares = 100 * share
    return (
        durations("GPU time", 8, gpu, format_duration, extra=True),
        durations("busy time", 9, busy, format_duration, extra=True),
        numbers("GPU busy", 8, shares, format_percent, unit=Unit.PERCENT, decimals=1),
        numbers("idle", 6, 100 - shares, format_percent, unit=Unit.PERCENT, decimals=1),
    )


def _when(when: Int64, glyphs: Glyphs, wide: bool) -> TableColumn:
    ink = style(category_ink(Category.NVTX))
    return when_column(when, glyphs, WIDE_WHEN if wide else NARROW_WHEN, lambda _: ink)


def kernel_columns(table: KernelTable) -> tuple[TableColumn, ...]:
    """GPU work under a range, by name."""
    inks = [style(word_ink(int(code))) for code in table.category]
    shares = 100 * table.share
    return (
        numbers("of sum", 6, shares, format_percent, unit=Unit.PERCENT, decimals=1),
        durations("total", 8, table.total, format_duration),
        counts("calls", 7, table.count, extra=True),
        texts(
            "name",
            14,
            np.arange(len(table)),
            table.labels,
            grow=True,
            names=True,
            ink=inks.__getitem__,
        ),
        durations("avg", 8, table.mean, format_duration, extra=True, decimals=1),
        durations("p99", 8, table.p99, format_duration, extra=True, decimals=1),
    )


def range_columns(
    report: Report, rows: Indices, display: Display, threads: Sequence[str]
) -> tuple[TableColumn, ...]:
    """Single ranges.

    Args:
        report: the report.
        rows: rows of its ranges.
        display: how times are written.
        threads: name of each thread code of the ranges.
    """
    ranges = report.ranges
    return (
        *span_columns(report, ranges, rows, display),
        texts("thread", 16, taken(rows, ranges.thread), threads),
        texts("name", 16, taken(rows, ranges.name), ranges.names, grow=True),
    )
