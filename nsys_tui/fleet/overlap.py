"""Captures that began at different times: the calls that all ranks recorded.

Calls are matched by their order, so those before the last capture began must not count. The
distances between the ends of a rank's first calls tell which calls of another rank these are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from nsys_tui.fleet.clocks import CLOSE_NS, CLOSE_SHARE
from nsys_tui.fleet.summary import Collectives
from nsys_tui.model.arrays import Bool, Indices, Int64
from nsys_tui.units import format_count, named_ranks

_FEWEST: Final = 8
"""Calls that tell which ones they are."""
_PROBE: Final = 32
_LIKELY: Final = 1.25
"""With so many times the calls that differ in the best match another one may be meant."""
_SURE: Final = 0.25
"""Part of the time between two such matches up to which UTC may be off to tell them."""
_TRIED: Final = 64
"""Places that are looked at over all calls."""
_MOST: Final = 1 << 14
"""Calls of a rank among which others are looked for."""


def overlapping(
    calls_of: Sequence[Collectives], starts: Sequence[int | None]
) -> tuple[list[Collectives], list[int]]:
    """The collectives without those that came before the last capture began.

    Args:
        calls_of: collectives of each rank.
        starts: UTC start of each rank's session, ns: it decides where calls come regularly.

    Returns:
        The calls that are left, and how many of each rank are not.
    """
    members = _members(calls_of)
    kept = [np.ones(len(mine.key), bool) for mine in calls_of]
    for offsets in _offsets(calls_of, starts, members):
        for rows_of in members.values():
            known = {m: rows for m, rows in rows_of.items() if m in offsets}
            ends = {m: calls_of[m].end[rows] + offsets[m] for m, rows in known.items()}
            first = max((int(end[0]) for end in ends.values()), default=0)
            for member, rows in known.items():
                kept[member][rows[: np.argmin(np.abs(ends[member] - first))]] = False
    cut = [_cut(mine, keep) for mine, keep in zip(calls_of, kept, strict=True)]
    return cut, [int((~keep).sum()) for keep in kept]


def told(ranks: Sequence[int], missing: Sequence[int]) -> list[str]:
    """What is to be said of the calls that are left out."""
    later = [rank for rank, count in zip(ranks, missing, strict=True) if not count]
    if not any(missing) or not later:
        return []
    return [
        f"{named_ranks(later)} captured later than others: of these up to"
        f" {format_count(max(missing))} collectives before that are in no figure across ranks"
    ]


def _cut(mine: Collectives, keep: Bool) -> Collectives:
    fields = {
        name: values[keep]
        for name in ("key", "start", "end", "gap", "before")
        if len(values := getattr(mine, name))
    }
    return replace(mine, **fields)


def _members(calls_of: Sequence[Collectives]) -> dict[tuple[str, str], dict[int, Indices]]:
    """Rows of each key in the ranks that have it, where it is more than one."""
    rows: dict[tuple[str, str], dict[int, Indices]] = {}
    for member, mine in enumerate(calls_of):
        for code, key in enumerate(mine.keys):
            rows.setdefault(key, {})[member] = np.flatnonzero(mine.key == code)
    return {key: of for key, of in rows.items() if len(of) > 1 and all(map(len, of.values()))}


def _offsets(
    calls_of: Sequence[Collectives],
    starts: Sequence[int | None],
    members: dict[tuple[str, str], dict[int, Indices]],
) -> list[dict[int, int]]:
    """What to add to times of ranks to get those of the first one of those that overlap."""
    found: list[dict[int, int]] = []
    done = set[int]()
    for root in range(len(calls_of)):
        if root in done:
            continue
        offsets, waiting = {root: 0}, deque([root])
        while waiting:
            rank = waiting.popleft()
            for other, apart in _neighbours(calls_of, starts, members, rank, offsets):
                offsets[other] = offsets[rank] + apart
                waiting.append(other)
        found.append(offsets)
        done |= {*offsets}
    return found


def _neighbours(
    calls_of: Sequence[Collectives],
    starts: Sequence[int | None],
    members: dict[tuple[str, str], dict[int, Indices]],
    rank: int,
    done: dict[int, int],
) -> Iterator[tuple[int, int]]:
    """Ranks that share calls with a rank, and how much earlier their clocks are."""
    for rows in members.values():
        for other in [one for one in rows if rank in rows and one not in done]:
            mine, theirs = (calls_of[one].end[rows[one]] for one in (rank, other))
            lasted = calls_of[rank].end[rows[rank]] - calls_of[rank].start[rows[rank]]
            bound = max(CLOSE_NS, CLOSE_SHARE * float(np.median(lasted)))
            start, begun = starts[rank], starts[other]
            told = None if start is None or begun is None else begun - start
            apart = _apart(mine, theirs, bound, told)
            if apart is not None:
                yield other, apart


def _apart(mine: Int64, theirs: Int64, bound: float, told: int | None) -> int | None:
    """How much earlier a clock is by which the same calls end at other times.

    Args:
        mine: ends by one clock.
        theirs: ends by the other one, whose capture began earlier or later.
        bound: distance up to which ends are the same, ns.
        told: what UTC says.
    """
    fits = [*_fits(mine, theirs, bound, told)]
    swapped = None if told is None else -told
    fits += [(off, -place) for off, place in _fits(theirs, mine, bound, swapped)]
    fewest = min((off for off, _ in fits), default=0.0)
    likely = {place for off, place in fits if off <= _LIKELY * fewest + 2 / len(theirs)}
    if told is None:
        return likely.pop() if len(likely) == 1 else None
    near = sorted(likely, key=lambda place: abs(place - told))
    if len(near) > 1 and abs(near[0] - told) > _SURE * abs(near[1] - near[0]):
        return None
    return near[0] if near else None


def _fits(
    mine: Int64, theirs: Int64, bound: float, told: int | None
) -> Iterator[tuple[float, int]]:
    """Distances at which the first calls of one rank lie on those of another.

    Lengths from call to call are compared: clocks may drift. Beside each stands the part of them
    that differ, over all calls of both: a step in which calls come regularly fits in itself.
    """
    head = theirs[:_PROBE]
    if len(head) < _FEWEST or len(mine) < len(head):
        return
    windows = np.lib.stride_tricks.sliding_window_view(np.diff(mine[:_MOST]), len(head) - 1)
    errors = np.median(np.abs(windows - np.diff(head)), axis=1)
    places = np.flatnonzero(errors <= bound)
    if told is not None:
        places = places[np.argsort(np.abs(mine[places] - head[0] - told), kind="stable")]
    for at in places[:_TRIED].tolist():
        both = min(len(mine) - at, len(theirs))
        apart = np.diff(mine[at : at + both]) - np.diff(theirs[:both])
        place = int(np.median(mine[at : at + len(head)] - head))
        yield float(np.mean(np.abs(apart) > bound)), place
