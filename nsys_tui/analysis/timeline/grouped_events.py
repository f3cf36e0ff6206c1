"""Events in the order of their thread or stream: what lanes are cut from without a copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.model.arrays import Int32, Int64, Integers
from nsys_tui.model.events import EventSet
from nsys_tui.model.report import Report

LARGE: Final = 500_000
"""Events from which their order is kept in the cache: of 6 M calls it takes 120 MB of memory."""

FEW: Final = 16
"""Codes that are looked for one by one."""


@dataclass(frozen=True, eq=False)
class InGroups:
    """Events in the order of their groups, and within each of their starts."""

    rows: Int32
    """Rows of the event set, int32 [n]."""
    start: Int64
    """Of each of ``rows``, int64 [n] ns."""
    end: Int64
    """int64 [n] ns."""
    codes: Integers
    """Code of each group that has events, ascending: [g]."""
    edges: Int64
    """Where each group begins, and where the last one ends: int64 [g + 1]."""


def in_groups(
    events: EventSet,
    rows: Integers | None,
    codes: Integers,
) -> InGroups:
    """Puts some events in the order of their codes.

    Args:
        events: the event set, in start order.
        rows: the chosen ones, ascending; None for all.
        codes: of each of these.
    """
    order = _order(codes)
    codes, chosen = codes[order], order if rows is None else rows[order].astype(np.int32)
    is_head = np.ones(len(codes), bool)
    np.not_equal(codes[1:], codes[:-1], out=is_head[1:])
    heads = np.flatnonzero(is_head)
    edges = np.append(heads, len(chosen))
    return InGroups(chosen, events.start[chosen], events.end[chosen], codes[heads], edges)


def _order(codes: Integers) -> Int32:
    """Places of some codes, of equal ones in ascending order."""
    most = int(codes.max()) if len(codes) else 0
    if most < FEW:  # a third of the memory and of the time
        return np.concatenate(
            [np.flatnonzero(codes == code) for code in range(most + 1)], dtype=np.int32
        )
    if most < np.iinfo(np.int16).max:
        codes = codes.astype(np.int16)  # small codes are sorted by radix: three times as fast
    return np.argsort(codes, kind="stable").astype(np.int32)


def kept_groups(
    report: Report,
    name: str,
    events: EventSet,
    choose: Callable[[], tuple[Integers | None, Integers]],
) -> InGroups:
    """``in_groups`` of a report's events; of many, its arrays are mapped from the cache.

    Args:
        report: the report.
        name: what the order is called there.
        events: the event set.
        choose: gives the rows and their codes; always the same ones for a report.
    """
    if len(events) < LARGE:
        return in_groups(events, *choose())
    return InGroups(**report.derived(name, lambda: vars(in_groups(events, *choose()))))


def stored_groups(report: Report, name: str, events: EventSet) -> InGroups | None:
    """What ``kept_groups`` stored, None where it did not yet."""
    arrays = report.stored(name) if len(events) >= LARGE else None
    return None if arrays is None else InGroups(**arrays)
