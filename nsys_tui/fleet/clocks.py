"""Clocks of sessions: an offset and a drift for each, fitted to the ends of collectives.

All ranks leave a collective together, so its ends are one moment seen by many clocks. Medians
decide: over the ranks when that moment was, over the calls how a clock differs from it. What then
remains is a rank's residual; where that is large, nothing may be said across ranks.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.fleet.collectives import Group
from nsys_tui.fleet.times import SessionClock
from nsys_tui.model.arrays import Float64

CLOSE_NS: Final = 20_000
"""A residual up to this is never too large: kernels of one collective end so far apart anyway."""
CLOSE_SHARE: Final = 0.1
"""Nor is one up to this share of the median time in a collective."""
_APART_NS: Final = 2_000
"""UTC that puts ends less than this apart is not doubted."""
MOST_DRIFT: Final = 1e-3
"""No clock of a computer is off by more, ns per ns; real ones drift by less than 100 ppm."""
_FEWEST: Final = 8
"""Calls of which a drift can be told."""
_MOST: Final = 1024
"""Calls of a rank that a fit looks at, evenly chosen."""
_ROUNDS: Final = 3
_SHIFTS: Final = 64
"""Calls by which a match may be off, as far as is looked."""
_QUANTILE: Final = 0.75
_LEAVES_ALONE: Final = re.compile(r"(?i)nccl\w*?_(Broadcast|Reduce(?!Scatter))")
"""Collectives that a rank may leave before others have come."""


@dataclass(frozen=True, eq=False)
class _Seen:
    """Collectives of one group, as the clocks of their sessions saw them end."""

    sessions: tuple[int, ...]
    """Session of each row."""
    end: Float64
    """Shape (rows, calls)."""

    def moved(self, offset: Float64, rate: Float64) -> Float64:
        """Ends in fleet time."""
        rows = np.array(self.sessions, np.intp)
        return np.asarray(offset[rows, None] + rate[rows, None] * self.end)


def _seen(groups: Sequence[Group], sessions: Sequence[int]) -> list[_Seen]:
    """What clocks can be fitted to: groups of several sessions that leave together."""
    seen = []
    for group in groups:
        seen_by = tuple(sessions[member] for member in group.members)
        if group.calls and len(set(seen_by)) > 1 and not _LEAVES_ALONE.search(group.name):
            step = -(-group.calls // _MOST)
            seen.append(_Seen(seen_by, group.end[:, ::step].astype(np.float64)))
    return seen


def fitted(
    groups: Sequence[Group], sessions: Sequence[int], starts: Sequence[int | None]
) -> list[SessionClock]:
    """Fits offset and drift of every session.

    The first session that shares collectives keeps its start and its rate: drifts are against it.

    Args:
        groups: collectives of the ranks, in the times of their sessions.
        sessions: session of each rank.
        starts: UTC time of each session's zero, ns, None where unknown: it decides for sessions
            that share no collective with another, and between matches that fit equally well.
    """
    seen = _seen(groups, sessions)
    begun = np.array([start or 0 for start in starts], np.float64)
    offset, rate = begun.copy(), np.ones(len(starts))
    _spread(seen, offset, rate)
    for _ in range(_ROUNDS):
        for session, (times, apart) in _points(seen, offset, rate).items():
            offset[session], rate[session] = line(times, apart)
    if seen:
        first = min(min(group.sessions) for group in seen)
        shared = sorted({session for group in seen for session in group.sessions})
        offset[shared] = begun[first] + (offset[shared] - offset[first]) / rate[first]
        rate[shared] = rate[shared] / rate[first]
    clocks = [
        SessionClock(round(shift), float(speed - 1))
        for shift, speed in zip(offset, rate, strict=True)
    ]
    clocks = judged(groups, sessions, clocks)
    for session in _doubtful(groups, sessions, starts, clocks):
        clocks[session] = clocks[session]._replace(aligned=False)
    return clocks


def _doubtful(
    groups: Sequence[Group],
    sessions: Sequence[int],
    starts: Sequence[int | None],
    clocks: Sequence[SessionClock],
) -> set[int]:
    """Sessions whose calls may be matched with those before or after.

    That is where ranks have not equally many calls and these come so regularly that a shift fits
    as well: then UTC must say which one is meant.
    """
    doubtful: set[int] = set()
    bound = close(groups)
    for group in groups:
        period = _period(group, bound) if group.unmatched else None
        seen_by = {sessions[member] for member in group.members}
        if period is None or len(seen_by) < 2:
            continue
        for session in seen_by:
            start = starts[session]
            if start is None or abs(clocks[session].offset - start) > period / 2:
                doubtful.add(session)
    return doubtful


def _period(group: Group, bound: float) -> float | None:
    """Time between calls that look alike, where a match shifted by them would go unnoticed."""
    ends = np.median(group.end - group.end[:, :1], axis=0)
    for shift in range(1, min(group.unmatched, _SHIFTS, len(ends) - 2) + 1):
        apart = ends[shift:] - ends[:-shift]
        usual = float(np.median(apart))
        if np.quantile(np.abs(apart - usual), _QUANTILE) <= bound:
            return usual
    return None


def _spread(seen: Sequence[_Seen], offset: Float64, rate: Float64) -> None:
    """A first fit: from one session to those that share collectives with it, and on from them."""
    groups_of: dict[int, list[_Seen]] = {}
    for group in seen:
        for session in dict.fromkeys(group.sessions):
            groups_of.setdefault(session, []).append(group)
    done: set[int] = set()
    for first in sorted(groups_of):
        if first in done:
            continue
        done.add(first)
        waiting = deque(groups_of.pop(first))
        while waiting:
            group = waiting.popleft()
            known = np.array([session in done for session in group.sessions], bool)
            if known.all():
                continue
            reference = np.median(group.moved(offset, rate)[known], axis=0)
            for row in np.flatnonzero(~known).tolist():
                session = group.sessions[row]
                if session not in done:
                    offset[session], rate[session] = line(group.end[row], reference)
                    done.add(session)
                    waiting.extend(groups_of.get(session, ()))


def _points(
    seen: Sequence[_Seen], offset: Float64, rate: Float64
) -> dict[int, tuple[Float64, Float64]]:
    """Of each session: ends by its own clock, and the median of those ends over the ranks."""
    times: dict[int, list[Float64]] = {}
    middles: dict[int, list[Float64]] = {}
    for group in seen:
        middle = np.median(group.moved(offset, rate), axis=0)
        for row, session in enumerate(group.sessions):
            times.setdefault(session, []).append(group.end[row])
            middles.setdefault(session, []).append(middle)
    return {s: (np.concatenate(times[s]), np.concatenate(middles[s])) for s in times}


def line(times: Float64, wanted: Float64) -> tuple[float, float]:
    """Offset and rate that take times to those wanted, by medians: of slopes, then of distances.

    A slope is taken over half of the calls each, which leaves a quarter of them free to be wrong.
    """
    step = -(-len(times) // _MOST)
    order = np.argsort(times, kind="stable")[::step]
    at, apart = times[order], wanted[order] - times[order]
    half = len(at) // 2
    drift = 0.0
    if len(at) >= _FEWEST:
        across = at[-half:] - at[:half]
        kept = across > 0
        if kept.any():
            drift = float(np.median((apart[-half:] - apart[:half])[kept] / across[kept]))
    return float(np.median(apart - drift * at)), 1 + drift


def judged(
    groups: Sequence[Group], sessions: Sequence[int], clocks: Sequence[SessionClock]
) -> list[SessionClock]:
    """The clocks with their residuals, and whether these are small enough.

    Args:
        groups: collectives of the ranks, in the times of their sessions.
        sessions: session of each rank.
        clocks: of the sessions.
    """
    offset = np.array([clock.offset for clock in clocks], np.float64)
    rate = 1 + np.array([clock.drift for clock in clocks])
    bound, results = close(groups), list(clocks)
    seen = _seen(groups, sessions)
    # Many calls inside a host must not hide that a few between hosts end apart.
    alone = [[one] for one in seen if one.end.shape[1] >= _FEWEST]
    residuals: dict[int, float] = {}
    for part in (seen, *alone):
        for session, (times, middle) in _points(part, offset, rate).items():
            moved = offset[session] + rate[session] * times
            residual = float(np.quantile(np.abs(moved - middle), _QUANTILE))
            residuals[session] = max(residual, residuals.get(session, 0.0))
    for session, residual in residuals.items():
        aligned = residual <= bound and abs(clocks[session].drift) <= MOST_DRIFT
        results[session] = clocks[session]._replace(residual=round(residual), aligned=aligned)
    off = [session for session, clock in enumerate(results) if not clock.aligned]
    shared = sum(clock.residual is not None for clock in results)
    if 2 * len(off) >= shared > 0 and off:  # a median of clocks that mostly disagree says nothing
        return [c._replace(aligned=c.residual is None) for c in results]
    return results


def closer(fit: Sequence[SessionClock], told: Sequence[SessionClock]) -> bool:
    """Whether fitted clocks agree clearly better than those that UTC told."""
    if not all(clock.aligned for clock in told):
        return True
    pairs = [(f.residual, t.residual) for f, t in zip(fit, told, strict=True)]
    return all(clock.aligned for clock in fit) and any(
        now is not None and before is not None and before > max(_APART_NS, 2 * now)
        for now, before in pairs
    )


def close(groups: Sequence[Group]) -> float:
    """The largest residual of ranks that may be compared, ns."""
    lasting = [(group.end - group.start).ravel() for group in groups if group.calls]
    usual = float(np.median(np.concatenate(lasting))) if lasting else 0.0
    return max(CLOSE_NS, CLOSE_SHARE * usual)
