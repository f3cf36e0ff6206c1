"""Clocks of sessions against planted offsets and drifts, and what must not pass for aligned."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest
from synth import Synth
from unit.fleet.fleet_reports import ALL_REDUCE, STEP, US, UTC, Run

from nsys_tui import cli
from nsys_tui.fleet.clocks import fitted, judged
from nsys_tui.fleet.collectives import match
from nsys_tui.fleet.fleet import Clock
from nsys_tui.fleet.loading import run_fleet
from nsys_tui.fleet.overlap import overlapping
from nsys_tui.fleet.summary import Collectives
from nsys_tui.fleet.table_parts import Ask
from nsys_tui.fleet.tables import SECTIONS
from nsys_tui.fleet.times import SessionClock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsys_tui.model.arrays import Int64


MS = 1000 * US
S = 1000 * MS


@dataclass
class Planted:
    """Calls of which true times, and what each clock makes of them, are known."""

    ranks: int
    calls: int = 200
    period: int = 50 * MS
    regular: bool = False
    jitter: int = 3 * US
    """Deviation of the ends of one call."""
    offset: dict[int, int] = field(default_factory=dict)
    """ns to add to a session's times to get true ones, at its zero."""
    drift: dict[int, float] = field(default_factory=dict)
    seed: int = 1

    def __post_init__(self) -> None:
        random = np.random.default_rng(self.seed)
        gaps = np.full(self.calls, self.period)
        if not self.regular:
            gaps = random.integers(self.period // 2, self.period * 2, self.calls)
        leave = np.cumsum(gaps)
        self.late = random.exponential(2 * MS, (self.ranks, self.calls)).astype(np.int64)
        arrive = leave - 10 * MS + np.minimum(self.late, 9 * MS)
        ends = leave + random.normal(0, self.jitter, (self.ranks, self.calls)).astype(np.int64)
        self.start, self.end = arrive, ends

    def own(self, rank: int, true: Int64) -> Int64:
        """What the rank's clock shows at true times."""
        rate = 1 + self.drift.get(rank, 0.0)
        return np.rint((true - self.offset.get(rank, 0)) / rate).astype(np.int64)

    def seen(self, keep: dict[int, slice] | None = None) -> list[Collectives]:
        found = []
        for rank in range(self.ranks):
            part = (keep or {}).get(rank, slice(None))
            start, end = (self.own(rank, times[rank][part]) for times in (self.start, self.end))
            found.append(Collectives((("sum", "c"),), np.zeros(len(start), np.int32), start, end))
        return found


def fit(
    own: Sequence[Collectives],
    starts: Sequence[int | None] | None = None,
    sessions: Sequence[int] | None = None,
) -> list[SessionClock]:
    sessions = sessions or range(len(own))
    groups = match(own, [SessionClock(0)] * len(own)).groups
    return fitted(groups, sessions, starts or [None] * (max(sessions) + 1))


def calls(*times: tuple[int, int], key: tuple[str, str] = ("sum", "c")) -> Collectives:
    start, end = (np.array([t[n] for t in times], np.int64) for n in (0, 1))
    return Collectives((key,), np.zeros(len(times), np.int32), start, end)


@pytest.mark.parametrize("ranks", [2, 8, 64])
def test_planted_offsets_and_drifts_are_found(ranks: int) -> None:
    random = np.random.default_rng(ranks)
    planted = Planted(
        ranks,
        offset={rank: int(random.integers(-5 * S, 5 * S)) for rank in range(1, ranks)},
        drift={rank: float(random.uniform(-80e-6, 80e-6)) for rank in range(1, ranks)},
    )
    found = fit(planted.seen())
    for rank, clock in enumerate(found):
        assert clock.aligned
        assert abs(clock.offset - planted.offset.get(rank, 0)) < 5 * US
        assert clock.drift == pytest.approx(planted.drift.get(rank, 0.0), abs=1e-6)
        times = planted.own(rank, planted.end[rank])
        assert np.abs(clock.fleet(times) - planted.end[rank]).max() < 25 * US
        assert clock.session_time(clock.fleet_time(7 * S)) == pytest.approx(7 * S, abs=1)


def test_the_error_does_not_grow_with_the_ranks() -> None:
    worst = []
    for ranks in (4, 256):
        found = fit(Planted(ranks, calls=60).seen())
        worst.append(max(abs(clock.fleet_time(2 * S) - 2 * S) for clock in found))
    assert max(worst) < 3 * US, "the deviation of a single end"


def test_waiting_is_the_planted_one_although_clocks_drift() -> None:
    planted = Planted(4, jitter=0, offset={1: 3 * S, 2: -S}, drift={1: 60e-6, 3: -40e-6})
    own = planted.seen()
    late = match(own, fit(own)).by_rank()
    true = (planted.start.max(axis=0) - planted.start).sum(axis=1)
    assert np.abs(late.waited - true).max() < planted.calls * US


def test_one_late_rank_moves_no_clock() -> None:
    planted = Planted(8, jitter=0)
    planted.start[5] += 900 * US
    assert [clock.offset for clock in fit(planted.seen())] == [0] * 8


def test_ends_that_scatter_are_not_aligned() -> None:
    apart = fit(Planted(4, jitter=5 * MS).seen())
    assert [clock.aligned for clock in apart] == [False] * 4
    assert min(clock.residual or 0 for clock in apart) > MS
    near = fit(Planted(4, jitter=100 * US).seen())
    assert [clock.aligned for clock in near] == [True] * 4, "a tenth of the calls' time is near"


def test_one_rank_that_does_not_fit_is_told_from_the_others() -> None:
    planted = Planted(6)
    planted.end[4] += np.random.default_rng(3).integers(-9 * MS, 9 * MS, planted.calls)
    found = fit(planted.seen())
    assert [clock.aligned for clock in found] == [True, True, True, True, False, True]


def test_a_capture_that_began_later_does_not_pass_for_another_clock() -> None:
    later = {2: slice(3, None)}
    for regular in (False, True):
        planted = Planted(5, regular=regular)
        assert not fit(planted.seen(later))[2].aligned
    # UTC tells which call is which, where it is as good as half of the time between calls.
    ended = {2: slice(None, -3)}
    known = Planted(5, regular=True)
    assert all(c.aligned for c in fit(known.seen(ended), [0] * 5))
    assert not any(c.aligned for c in fit(known.seen(ended))), "nobody knows whose calls lack"
    assert all(c.aligned for c in fit(Planted(5).seen(ended))), "irregular calls know themselves"


@pytest.mark.parametrize(
    ("regular", "utc", "found"),
    [(False, False, True), (False, True, True), (True, True, True), (True, False, False)],
)
def test_captures_that_overlap_in_part_are_matched_where_they_do(
    regular: bool, utc: bool, found: bool
) -> None:
    planted = Planted(
        5, regular=regular, offset={1: S, 2: -3 * S, 4: 7 * MS}, drift={2: 50e-6}, jitter=US
    )
    own = planted.seen({2: slice(37, None), 4: slice(5, -20)})
    # UTC is off by up to 10 ms, a fifth of the time between two calls.
    starts = [planted.offset.get(rank, 0) + 2 * MS * rank for rank in range(5)]
    told = starts if utc else [None] * 5
    left, missing = overlapping(own, told)
    assert missing == ([37, 37, 0, 37, 32] if found else [0] * 5)
    clocks = fit(left, told)
    assert [clock.aligned for clock in clocks] == [found] * 5
    if found:
        waited = match(left, clocks).by_rank().waited[:4]
        kept = slice(37, -20)
        late = planted.start[:, kept].max(axis=0) - planted.start[:, kept]
        assert np.abs(waited - late.sum(axis=1)[:4]).max() < planted.calls * 10 * US


@pytest.mark.parametrize(("off", "found"), [(2 * MS, True), (20 * MS, False)])
def test_calls_that_come_regularly_within_a_step_are_told_by_the_steps(
    off: int, found: bool
) -> None:
    """Fifty calls a step, 300 us apart, and a step every 40 ms: UTC is off by several calls."""
    planted = Planted(3, calls=1000, jitter=US)
    true = np.repeat(np.arange(20) * 40 * MS, 50) + np.tile(np.arange(50) * 300 * US, 20)
    planted.end = true + np.zeros((3, 1), np.int64)
    planted.start = planted.end - 100 * US
    left, missing = overlapping(planted.seen({2: slice(63, None)}), [0, 0, off])
    assert missing == ([63, 63, 0] if found else [0, 0, 0])
    assert all(c.aligned for c in fit(left, [0, 0, off])) is found


def test_calls_of_other_times_are_not_matched() -> None:
    planted = Planted(3)
    own = planted.seen({0: slice(None, 80), 1: slice(None, 80), 2: slice(90, None)})
    assert overlapping(own, [0, 0, 0])[1] == [0, 0, 0]


def test_a_rank_captured_later_is_in_the_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Later(Run):
        def compute(self, rank: int, step: int) -> tuple[int, int]:
            start, end = super().compute(rank, step)
            return start, end + 17 * US * (step * step % 7)

    run = Later(ranks=4, steps=40)
    paths = [run.write_rank(tmp_path / f"{rank}.sqlite", rank) for rank in range(3)]
    synth = Synth(tmp_path / "3.sqlite").gpu(0, "Test GPU").session(40 * STEP, utc=UTC + 11 * STEP)
    for text in ("SLURM_PROCID=3", "SLURM_NTASKS=4"):
        synth.meta("PROCESS_0:ENVIRONMENT_VARIABLE", text, capture=True)
    synth.process(1003, "python3")
    for step in range(12, 40):
        start, end = (time - 11 * STEP for time in run.collective(3, step))
        synth.launch(ALL_REDUCE, (start - 2 * US, start - US), (start, end), stream=13)
    fleet = run_fleet([*paths, synth.write()])
    assert all(member.clock.aligned for member in fleet.members)
    assert fleet.collectives.by_rank().calls.tolist() == [28] * 4
    assert fleet.collectives.by_rank().waited.tolist() == [
        sum(max(run.arrivals(step)) - run.arrivals(step)[rank] for step in range(12, 40))
        for rank in range(4)
    ]
    assert cli.main(["fleet", str(tmp_path), "--section", "reports"]) == 0
    said = "rank 3 captured later than others: of these up to 12 collectives before that are in no"
    assert said in capsys.readouterr().out


def test_utc_that_is_off_is_judged_by_the_ends() -> None:
    own = Planted(3, jitter=0).seen()
    groups = match(own, [SessionClock(0)] * 3).groups
    wrong = judged(groups, range(3), [SessionClock(0), SessionClock(3 * MS), SessionClock(0)])
    assert [clock.aligned for clock in wrong] == [True, False, True]
    right = judged(groups, range(3), [SessionClock(0), SessionClock(8 * US), SessionClock(0)])
    assert all(clock.aligned for clock in right)


def test_ends_of_collectives_set_clocks_right() -> None:
    # All leave together at 100, 200, 300; the clocks of sessions 1 and 2 are off.
    off = [0, 700, -40]
    own = [
        calls(*((end - 30 - 5 * rank - by, end - by) for end in (100, 200, 300)))
        for rank, by in enumerate(off)
    ]
    assert [clock.offset for clock in fit(own)] == off
    # What UTC said is where the search begins; the result is the same.
    assert [clock.offset for clock in fit(own, [0, 650, 5])] == off


def test_sessions_that_share_no_collective_keep_their_clocks() -> None:
    own = [calls((0, 10)), calls((5, 20)), calls((3, 4), key=("sum", "other"))]
    assert [clock.offset for clock in fit(own, [0, 0, 77])] == [0, -10, 77]
    assert [clock.residual for clock in fit(own, [0, 0, 77])] == [0, 0, None]


def test_ranks_of_one_session_move_together() -> None:
    own = [calls((0, 100)), calls((0, 101)), calls((0, 30)), calls((0, 31))]
    assert [clock.offset for clock in fit(own, sessions=[0, 0, 1, 1])] == [0, 70]


def test_sessions_are_reached_over_several_communicators() -> None:
    pairs = {(0, 1): "a", (1, 2): "b", (2, 3): "c"}
    off, ends = [0, 500, -3000, 70_000], np.arange(1, 41) * MS
    own = []
    for session, by in enumerate(off):
        keys = tuple(("sum", name) for pair, name in pairs.items() if session in pair)
        key = np.repeat(np.arange(len(keys), dtype=np.int32), len(ends))
        end = np.tile(ends - by, len(keys))
        own.append(Collectives(keys, key, end - US, end))
    assert [clock.offset for clock in fit(own)] == off


def test_a_broadcast_is_no_common_end() -> None:
    key = ("ncclDevKernel_Broadcast_RING_LL", "c")
    own = [calls((0, 10), key=key), calls((0, 90), key=key)]
    assert [clock.residual for clock in fit(own)] == [None, None]


class Off(Run):
    """Sessions whose UTC start is wrong."""

    def write_rank(
        self, path: Path, rank: int, *, utc: bool = True, variable: str = "SLURM_PROCID"
    ) -> Path:
        true = self.begun
        self.begun = {**true, rank: true.get(rank, 0)}
        try:
            return super().write_rank(path, rank, utc=utc, variable=variable)
        finally:
            self.begun = true

    def events(self, synth: object, rank: int, begun: int = 0, device: int = 0) -> None:
        super().events(synth, rank, begun + 3 * MS * (rank == 2), device)  # type: ignore[arg-type]


def test_a_wrong_utc_start_is_seen_and_ends_take_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = Off(ranks=4, steps=20).write(tmp_path)
    fleet = run_fleet(paths)
    assert fleet.clock is Clock.ENDS
    assert [m.offset for m in fleet.members] == [0, 0, 3 * MS, 0]
    true = run_fleet(Run(ranks=4, steps=20).write(tmp_path / "true"))
    assert true.clock is Clock.UTC
    assert fleet.collectives.by_rank().waited.tolist() == true.collectives.by_rank().waited.tolist()
    asked = run_fleet(paths, clock=Clock.UTC)
    assert [m.clock.aligned for m in asked.members] == [True, True, False, True]
    assert asked.collectives.by_rank().calls.tolist() == [20, 20, 0, 20], "no figure of rank 2"
    assert cli.main(["fleet", *map(str, paths), "--clock", "utc", "--section", "reports"]) == 0
    assert "not aligned: rank 2, whose collectives end 3.000 ms from" in capsys.readouterr().out


def test_a_drift_within_the_bound_is_corrected_all_the_same(tmp_path: Path) -> None:
    class Drifting(Off):
        def events(self, synth: object, rank: int, begun: int = 0, device: int = 0) -> None:
            Run.events(self, synth, rank, begun + 9 * US * (rank == 2), device)  # type: ignore[arg-type]

    fleet = run_fleet(Drifting(ranks=4, steps=20).write(tmp_path))
    assert [m.offset for m in fleet.members] == [0, 0, 9 * US, 0]


def test_who_made_fewer_calls_is_named(tmp_path: Path) -> None:
    run = Run(ranks=4, steps=20)
    paths = [Run(ranks=4, steps=13 if r == 2 else 20).write_rank(tmp_path / f"{r}.sqlite", r)
             for r in range(run.ranks)]  # fmt: skip
    told = " ".join(SECTIONS["stragglers"](run_fleet(paths), Ask(top=20)).notes)
    assert "rank 2 made 13 of 20 calls of AllReduce sum f32 ring LL" in told


def test_a_window_is_cut_at_the_same_moment_of_drifting_clocks() -> None:
    clock = SessionClock(5 * STEP, 1e-4)
    lo = clock.fleet_time(0)
    assert clock.session_time(lo) == 0
    assert clock.fleet(np.array([10 * S]))[0] == 10 * S + 5 * STEP + MS


def test_few_calls_between_hosts_that_end_apart_are_seen_beside_many_within() -> None:
    """Two hosts 30 ms apart: their ranks reduce 120 times alone and 30 times together."""
    keys = (("sum", "a"), ("sum", "b")), ("sum", "world")
    every = np.arange(1, 151) * MS
    own = []
    for rank in range(4):
        key = np.where(np.arange(150) % 5 == 4, 1, 0).astype(np.int32)
        own.append(Collectives((keys[0][rank // 2], keys[1]), key, every - 100 * US, every))
    groups = match(own, [SessionClock(0)] * 4).groups
    told = judged(groups, range(4), [SessionClock(rank // 2 * 30 * MS) for rank in range(4)])
    assert not any(clock.aligned for clock in told)
    assert all(clock.residual == 15 * MS for clock in told)
    assert all(clock.aligned for clock in judged(groups, range(4), [SessionClock(0)] * 4))
