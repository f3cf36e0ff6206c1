"""Pace of one kernel or range: every instance on every rank, and how far behind each rank is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from nsys_tui.fleet.fleet import Fleet
    from nsys_tui.model.events import Int64


@dataclass(frozen=True, eq=False)
class RankPace:
    """Instances on one rank, in order of their starts."""

    rank: int
    start: Int64
    """Fleet time, ns."""
    duration: Int64
    behind: Int64
    """ns after the first rank's start of the same instance."""

    @property
    def cumulative(self) -> Int64:
        """Sum of the durations up to and with each instance."""
        return np.cumsum(self.duration)

    @property
    def drift(self) -> float | None:
        """ns that the rank falls back from one instance to the next (least squares)."""
        count = len(self.behind)
        if count < 2:
            return None
        place = np.arange(count) - (count - 1) / 2
        return float((place * self.behind).sum() / (place * place).sum())


@dataclass(frozen=True, eq=False)
class FleetPace:
    """One kernel or range over all ranks that have it."""

    name: str
    kind: str
    ranks: tuple[RankPace, ...]


def fleet_pace(fleet: Fleet) -> FleetPace | None:
    """Puts the instances of the ranks side by side, the k-th of each together.

    Returns:
        None where no rank has the kernel or range that was asked for.
    """
    having = [m for m in fleet.members if m.process.pace.kind and m.clock.aligned]
    if not having:
        return None
    starts = [member.clock.fleet(member.process.pace.start) for member in having]
    first = np.full(max(map(len, starts)), np.iinfo(np.int64).max)
    for own in starts:
        first[: len(own)] = np.minimum(first[: len(own)], own)
    pace = having[0].process.pace
    ranks = tuple(
        RankPace(member.rank, own, member.process.pace.duration, own - first[: len(own)])
        for member, own in zip(having, starts, strict=True)
    )
    return FleetPace(pace.name, pace.kind, ranks)
