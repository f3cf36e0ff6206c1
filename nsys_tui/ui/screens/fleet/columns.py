"""Columns of the fleet screen: one row per rank and GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.fleet.steps import fleet_steps
from nsys_tui.fleet.summary import SPLIT
from nsys_tui.model.categories import Category
from nsys_tui.render.cells import category_ink, style
from nsys_tui.times import duration_text
from nsys_tui.ui.widgets.table.columns import counts, durations, numbers, strings

if TYPE_CHECKING:
    from nsys_tui.analysis.aggregate import Float64
    from nsys_tui.fleet.fleet import Fleet, Member
    from nsys_tui.ui.widgets.table.columns import TableColumn


BUSY: Final = SPLIT.index("busy")


@dataclass(frozen=True)
class RankRow:
    """One row of the table."""

    member: int
    """Place in ``Fleet.members``."""
    device: int | None
    """Place among its devices; None for a rank without GPU work."""


def rank_rows(fleet: Fleet) -> list[RankRow]:
    """A row per rank and GPU, in rank order; ranks without GPU work have one too."""
    rows = []
    for place, member in enumerate(fleet.members):
        devices = range(len(member.process.devices))
        rows += [RankRow(place, device) for device in devices] or [RankRow(place, None)]
    return rows


def rank_columns(fleet: Fleet, rows: list[RankRow]) -> tuple[TableColumn, ...]:
    """Who it is, where its time went, its steps, and its part in collectives."""
    members = [fleet.members[row.member] for row in rows]
    late = fleet.collectives.by_rank()
    places = np.array([row.member for row in rows], np.int64)
    found = fleet_steps(fleet)
    wins: dict[int, int] = {}
    if found is not None:
        wins = dict(zip(found.ranks, found.times_slowest.tolist(), strict=True))

    def share(
        header: str, figure: str, category: Category | None = None, *, extra: bool = False
    ) -> TableColumn:
        ink = style(category_ink(category)) if category is not None else 0
        values = _shares(fleet, rows, figure)
        return numbers(
            header, 5, values, "{:.1f}".format, decimals=1, ink=lambda _: ink, extra=extra
        )

    return (
        numbers("rank", 5, np.array([m.rank for m in members], np.int64), str),
        strings("host", 8, [m.report.host or "-" for m in members]),
        strings("GPU", 5, [_gpu(m, r) for m, r in zip(members, rows, strict=True)]),
        share("busy%", "busy"),
        share("comp%", "compute", Category.COMPUTE, extra=True),
        share("comm%", "comm", Category.COMM),
        share("expo%", "exposed_comm", Category.COMM),
        share("over%", "compute_comm_overlap", extra=True),
        share("mem%", "memory", Category.MEMORY, extra=True),
        durations("step med", 8, np.array([_median_step(m) for m in members]), duration_text),
        counts("slowest", 7, np.array([wins.get(m.rank, 0) for m in members], np.int64)),
        counts("last", 6, late.last[places]),
        durations("held up", 8, late.held_up[places], duration_text),
        durations("waited", 8, late.waited[places], duration_text),
        strings("rank from", 12, [m.source for m in members], extra=True),
        strings("report", 12, [m.file for m in members], grow=True),
    )


def _gpu(member: Member, row: RankRow) -> str:
    return "-" if row.device is None else member.process.devices[row.device].removeprefix("GPU ")


def _shares(fleet: Fleet, rows: list[RankRow], figure: str) -> Float64:
    place = SPLIT.index(figure)
    found = np.full(len(rows), np.nan)
    for number, row in enumerate(rows):
        member = fleet.members[row.member]
        if row.device is not None and member.lasted:
            found[number] = 100.0 * member.process.splits[row.device, place] / member.lasted
    return found


def _median_step(member: Member) -> float:
    steps = member.process.steps
    return float(np.median(steps.steady)) if len(steps.labels) else np.nan


def typical(fleet: Fleet) -> int | None:
    """The member whose median step, else whose busy time, is nearest to the median of all."""
    members = [place for place, member in enumerate(fleet.members) if member.process.devices]
    steps = [_median_step(fleet.members[place]) for place in members]
    busy = [float(fleet.members[place].process.splits[:, BUSY].sum()) for place in members]
    values = np.array(steps if np.isfinite(steps).all() else busy)
    if not len(values):
        return None
    return members[int(np.argmin(np.abs(values - np.median(values))))]
