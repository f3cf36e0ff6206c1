"""Estimates from a sample of the kernels, for the first seconds of a large report.

A sample holds whole pages of the kernel table: runs of neighbouring rows. Inside a run nothing is
missing, so the share of its time that is busy is that of its surroundings; between runs nothing is
known. Every figure from here carries "≈".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nsys_tui.analysis.kernel_table import GroupBy, KernelTable, kernel_table
from nsys_tui.analysis.window import Scope
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Float64, Int64
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.events import Operations
from nsys_tui.model.lanes import Lane
from nsys_tui.model.report import Report
from nsys_tui.names import NameStyle

CATEGORIES = (Category.COMPUTE, Category.COMM)


class Shares(NamedTuple):
    """Parts of the time of one device, 0 to 1 each; they overlap as the kernels do."""

    busy: float
    compute: float
    comm: float


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of neighbouring kernels of one device, in the order of their starts."""

    start: Int64
    length: Int64
    """Nanoseconds from the first start to the last, at least 1: what runs longer is cut there."""
    busy: Float64
    """Share of the length per category of ``CATEGORIES``, at most 1 in all: [categories, runs]."""
    shares: Shares

    def lane(self) -> Lane:
        """A lane whose coverage of a wide cell is the estimated one.

        Each run stands for the time up to the next one: its busy share is laid at the beginning of
        that time, category after category. Events of this lane are no events of the report.
        """
        begin, end = self.start, np.append(self.start[1:], self.start[-1:] + self.length[-1:])
        room = np.maximum(end - begin, 0)
        edges = [begin]
        for share in self.busy:
            edges.append(edges[-1] + (share * room).astype(np.int64))
        starts = np.concatenate(edges[:-1])
        ends = np.concatenate(edges[1:])
        codes = np.repeat(np.array(CATEGORIES, np.uint8), len(begin))
        kept = np.flatnonzero(ends > starts)
        return Lane.build(starts[kept], ends[kept], kept, codes)


def sampled_kernels(
    report: Report, sample: Operations, scope: Scope, style: NameStyle
) -> tuple[Report, KernelTable]:
    """Kernels by name as a sample lets expect them.

    The sample is spread evenly over the kernel table, whose last row number says how many rows
    each sampled one stands for; totals and counts are scaled by that.

    Args:
        report: the report; of its operations only the sample is there.
        sample: operations as ``Report.sampled_operations`` gives them.
        scope: what to look at.
        style: how kernels are named.

    Returns:
        the report with nothing but the sampled kernels, and its table.
    """
    kernels = sample.take(np.flatnonzero(sample.kind == OpKind.KERNEL))
    sampled = report.with_sample(kernels)
    table = kernel_table(sampled, GroupBy.NAME, scope, style=style)
    rows = int(kernels.rowid.max(initial=0)) / max(len(kernels), 1)
    return sampled, replace(
        table,
        total=np.round(table.total * rows).astype(np.int64),
        count=np.round(table.count * rows).astype(np.int64),
        straddling=np.zeros(len(table), np.int64),
    )


def kernel_runs(sample: Operations, device: int) -> Runs:
    """Runs of neighbouring kernels of one device.

    Args:
        sample: operations as ``Report.sampled_operations`` gives them.
        device: index into ``sample.devices``.
    """
    kernels = np.flatnonzero(sample.kind == OpKind.KERNEL)
    kernels = kernels[np.argsort(sample.rowid[kernels], kind="stable")]
    page = np.cumsum(np.diff(sample.rowid[kernels], prepend=0) != 1)
    mine = sample.device[kernels] == device
    rows, page = kernels[mine], page[mine]
    if not len(rows):
        none = np.empty(0, np.int64)
        return Runs(none, none, np.empty((len(CATEGORIES), 0)), Shares(0.0, 0.0, 0.0))
    heads = np.flatnonzero(np.diff(page, prepend=page[0] - 1))
    start = np.minimum.reduceat(sample.start[rows], heads)
    last = np.maximum.reduceat(sample.start[rows], heads)
    length = np.maximum(last - start, 1)
    own_last = np.repeat(last, np.diff(np.append(heads, len(rows))))
    ends = np.clip(sample.end[rows], sample.start[rows], own_last)
    duration = ends - sample.start[rows]
    busy = np.stack(
        [
            np.add.reduceat(np.where(sample.category[rows] == code, duration, 0), heads) / length
            for code in CATEGORIES
        ]
    )
    busy /= np.maximum(busy.sum(axis=0), 1.0)
    order = np.argsort(start, kind="stable")
    whole = int(length.sum())
    masks = (np.ones(len(rows), bool), *(sample.category[rows] == code for code in CATEGORIES))
    parts = [
        min(1.0, intervals.total(sample.start[rows][mask], ends[mask]) / whole) for mask in masks
    ]
    return Runs(start[order], length[order], busy[:, order], Shares(*parts))
