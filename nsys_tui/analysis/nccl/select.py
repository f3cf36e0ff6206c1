"""Some of the collectives: those of a time window, of a GPU, process or stream, or of some calls.

A collective is kept whole, with its figures over all ranks, if a part of it that was asked for
starts in the window.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nsys_tui.analysis.nccl.result import Collectives, Parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.analysis.nccl.rank_matching import Traced
    from nsys_tui.analysis.window import Scope
    from nsys_tui.model.events import Bool


def restrict(
    found: Collectives, traced: Sequence[Traced], scopes: Sequence[Scope | None]
) -> Collectives:
    """The collectives that were asked for.

    Args:
        found: all of them.
        traced: the reports.
        scopes: what of each report is asked for, None for nothing of it; the window, on the clock
            of the first report, is that of the first scope.
    """
    parts = found.parts
    kept = parts.chosen.copy()
    of_report = np.array([member.report for member in found.members] or [0])[parts.member]
    for number, (one, scope) in enumerate(zip(traced, scopes, strict=True)):
        mine = of_report == number
        if scope is None:
            kept &= ~mine
            continue
        asked = np.zeros(len(one.report.operations), bool)
        asked[replace(scope, window=None).operations(one.report.operations)] = True
        kept[mine] &= asked[parts.row[mine]]
    rows = np.zeros(len(found), bool)
    rows[parts.collective[kept]] = True
    window = next((scope.window for scope in scopes if scope), None)
    if window:
        rows &= (found.start >= window[0]) & (found.start < window[1])
    return found if rows.all() else _taken(found, rows)


def _taken(found: Collectives, rows: Bool) -> Collectives:
    number = np.cumsum(rows) - 1
    own = rows[found.parts.collective]
    parts = Parts(**{one.name: getattr(found.parts, one.name)[own] for one in fields(Parts)})
    places = np.flatnonzero(rows)
    columns: dict[str, Any] = {}
    for one in fields(Collectives):
        values = getattr(found, one.name)
        if isinstance(values, np.ndarray):
            columns[one.name] = values[rows]
        elif one.name in ("label", "communicator", "kernel"):
            columns[one.name] = tuple(values[place] for place in places.tolist())
    left = f"{len(places):,} of {len(found):,} collectives, with their figures over all ranks"
    return replace(
        found,
        **columns,
        parts=replace(parts, collective=number[parts.collective]),
        notes=(left, *found.notes),
    )
