"""Groups of ranks on streams for which NCCL names no communicator, against planted ones."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from unit.fleet.fleet_reports import US

from nsys_tui.fleet.collectives import match
from nsys_tui.fleet.communicators import told_apart
from nsys_tui.fleet.summary import Collectives
from nsys_tui.fleet.times import SessionClock

TENSOR, DATA, ALL = "tensor", "data", "all"


@dataclass
class Planted:
    """Ranks that compute for unequal times and then wait for each other, each on its own clock."""

    seed: int
    ranks: int = 8
    tensor: int = 4
    jitter: float = 12 * US
    scatter: float = 1 * US
    calls: dict[str, list[int]] = field(
        default_factory=lambda: {k: [] for k in (TENSOR, DATA, ALL)}
    )
    """Number in the stream of the calls of each kind."""

    def groups(self, kind: str) -> list[list[int]]:
        every = [*range(self.ranks)]
        if kind == TENSOR:
            return [every[at : at + self.tensor] for at in every[:: self.tensor]]
        return [every[at :: self.tensor] for at in range(self.tensor)] if kind == DATA else [every]

    def run(self, kinds: list[str], steps: int = 40) -> list[Collectives]:
        """What each rank shows, a call of each kind after some compute, in every step."""
        random = np.random.default_rng(self.seed)
        now = random.uniform(0, 50 * US, self.ranks)
        start: list[list[float]] = [[] for _ in range(self.ranks)]
        end: list[list[float]] = [[] for _ in range(self.ranks)]
        for number in range(steps * len(kinds)):
            kind = kinds[number % len(kinds)]
            now += 400 * US + np.abs(random.normal(0, self.jitter, self.ranks))
            if number % len(kinds) == 0:  # what else keeps the groups together
                now += (now.max() - now) * 0.9
            self.calls[kind].append(number)
            for members in self.groups(kind):
                left = now[members].max() + 60 * US
                for rank in members:
                    start[rank].append(now[rank])
                    now[rank] = left + abs(random.normal(0, self.scatter))
                    end[rank].append(now[rank])
        own = []
        for rank in range(self.ranks):
            offset, rate = random.uniform(-1e9, 1e9), 1 + random.normal(0, 20e-6)
            begun, ended = (
                np.rint(np.array(t[rank]) * rate + offset).astype(np.int64) for t in (start, end)
            )
            key = np.zeros(len(start[rank]), np.int32)
            own.append(Collectives((("AllReduce", "stream 1"),), key, begun, ended))
        return own

    def told(self, own: list[Collectives], keep: list[int] | None = None) -> dict[str, int]:
        """Calls of each group by its members."""
        ranks = keep or [*range(self.ranks)]
        clocks = [SessionClock(0)] * len(ranks)
        found = told_apart([own[r] for r in ranks], clocks, range(len(ranks)), ranks, self.ranks)
        groups = match(found, clocks).groups
        assert len({group.communicator for group in groups}) == len(groups)
        return {" ".join(str(ranks[m]) for m in group.members): group.calls for group in groups}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", [TENSOR, DATA])
def test_groups_on_a_stream_are_told_apart(kind: str, seed: int) -> None:
    world = Planted(seed)
    own = world.run([kind] * 4)
    members = [" ".join(map(str, group)) for group in world.groups(kind)]
    assert world.told(own) == dict.fromkeys(members, 160)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("jitter", "scatter"), [(12, 1), (100, 1), (12, 20), (2, 20)])
def test_ranks_that_all_reduce_together_stay_together(jitter: int, scatter: int, seed: int) -> None:
    world = Planted(seed, jitter=jitter * US, scatter=scatter * US)
    assert world.told(world.run([ALL] * 4)) == {"0 1 2 3 4 5 6 7": 160}


@pytest.mark.parametrize("seed", range(5))
def test_two_kinds_of_groups_share_a_stream(seed: int) -> None:
    world = Planted(seed, ranks=16, jitter=40 * US)
    told = world.told(world.run([TENSOR, TENSOR, DATA, TENSOR]))
    members = [" ".join(map(str, group)) for group in world.groups(TENSOR)]
    assert {*members} < {*told}
    assert [told[name] for name in members] == pytest.approx([120] * 4, abs=8)


def test_a_rank_that_is_missing_changes_no_group() -> None:
    world = Planted(3)
    told = world.told(world.run([TENSOR] * 4), [0, 1, 2, 3, 4, 6, 7])
    assert told == {"0 1 2 3": 160, "4 6 7": 160}


def test_what_ranks_have_not_equally_many_of_is_left_as_it_is() -> None:
    world = Planted(4)
    own = world.run([TENSOR] * 4)
    short = own[5]
    own[5] = Collectives(short.keys, short.key[:100], short.start[:100], short.end[:100])
    assert world.told(own) == {"0 1 2 3 4 5 6 7": 100}
