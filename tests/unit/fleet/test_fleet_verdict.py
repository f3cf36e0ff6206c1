"""The line that a fleet begins with: a slow rank is named, ordinary differences are not."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import pytest
from synth import Synth
from unit.fleet import fleet_reports
from unit.fleet.fleet_reports import ALL_REDUCE, STEP, US, Run

from nsys_tui import cli
from nsys_tui.fleet.answer import verdict
from nsys_tui.fleet.loading import run_fleet
from nsys_tui.fleet.table_parts import Ask
from nsys_tui.fleet.tables import SECTIONS, summary_sections

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass
class Late(Run):
    """Each rank comes some ns later to the collective of a step of 1 ms than the one before."""

    by: int = 0

    def compute(self, rank: int, step: int) -> tuple[int, int]:
        start = step * STEP + 5 * US
        return start, start + 300 * US + self.by * rank


@pytest.mark.parametrize(
    ("by", "said"),
    [
        (1 * US, "no rank holds the others up: waiting for one costs "),
        (100 * US, "rank 1 cost the others "),
    ],
)
def test_lateness_is_told_where_it_costs_the_others_time(
    tmp_path: Path, by: int, said: str
) -> None:
    paths = Late(ranks=2, steps=8, by=by).write(tmp_path)
    assert verdict(run_fleet(paths)).text.startswith(said)


def test_who_is_not_there_is_not_cleared(tmp_path: Path) -> None:
    paths = Late(ranks=4, steps=8, by=1 * US).write(tmp_path)
    told = verdict(run_fleet([path for path in paths if path.name != "report_2.sqlite"])).text
    assert told.startswith("no rank here holds the others up: waiting for one costs ")
    assert told.endswith("; rank 2, of which there is no report, may")


def test_of_two_that_hold_the_others_up_both_are_named(tmp_path: Path) -> None:
    steps = range(32)  # of 8 calls, chance gives so much to one of four
    late = {(rank, step): 200 * US for step in steps for rank in (1, 3) if (step + rank) % 4 < 2}
    told = verdict(run_fleet(Run(steps=32, slow=late).write(tmp_path)))
    assert told.text.startswith("rank 3 cost the others ")
    assert (told.rank, told.collective.partition("_")[0]) == (3, "ncclDevKernel")
    assert "; rank 1 " in told.text


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ranks", [2, 4])
def test_who_is_last_by_chance_is_not_named_and_who_is_for_a_reason_is(
    tmp_path: Path, ranks: int, seed: int
) -> None:
    """Durations differ by a fifth; rank 1 also takes so much longer."""
    for longer in (0, 150 * US):
        random = Random(seed)
        drawn = {(n, step): random.randrange(60) * US for step in range(24) for n in range(ranks)}
        slow = {key: ns + longer * (key[0] == 1) - 10 * US * key[0] for key, ns in drawn.items()}
        paths = Run(ranks=ranks, steps=24, slow=slow).write(tmp_path / str(longer))
        assert verdict(run_fleet(paths)).rank == (1 if longer else None)


@pytest.mark.parametrize(("steps", "once"), [((7,), True), (range(2, 12), False)])
def test_what_one_call_costs_is_told_as_such(
    tmp_path: Path, steps: Sequence[int], once: bool
) -> None:
    slow = {(2, step): 500 * US for step in steps}
    told = verdict(run_fleet(Run(steps=16, slow=slow).write(tmp_path)))
    assert told.text.startswith("rank 2 cost the others ")
    assert told.text.endswith(", mostly in one call") is once


def test_ranks_that_are_late_by_turns_are_not_one_that_holds_the_others_up(tmp_path: Path) -> None:
    late = {(step % 4, step): 300 * US for step in range(1, 17)}
    told = verdict(run_fleet(Run(steps=17, slow=late).write(tmp_path)))
    assert told.rank is None
    assert "of waiting, hidden or not, by turns, none of them more than " in told.text


@pytest.mark.parametrize(
    ("late", "said"),
    [
        (200 * US, "ranks 1, 4 cost the others 6.4"),
        (2 * US, "no rank holds the others up: waiting for one costs "),
    ],
)
def test_two_that_are_late_together_are_told_together(tmp_path: Path, late: int, said: str) -> None:
    slow = {  # of a run whose later ranks compute longer, 10 us each
        (rank, step): 10 * US * (5 - rank) + late * (rank in (1, 4))
        for step in range(8)
        for rank in range(6)
    }
    told = verdict(run_fleet(Run(ranks=6, steps=8, slow=slow).write(tmp_path)))
    assert told.text.startswith(said)


def test_who_stops_before_the_others_is_named_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = Run(steps=20).write(tmp_path)
    Run(steps=12).write_rank(paths[2], 2)
    assert cli.main(["fleet", *map(str, paths)]) == 0
    out = capsys.readouterr().out
    assert "verdict  rank 2 made 12 of 20 calls of AllReduce" in out
    assert out.count("rank 2 made 12 of 20") == 1
    assert out.count("Held up: ") == 1


def test_that_nothing_is_common_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [report(tmp_path / f"{n}.sqlite", n, 10**6) for n in range(2)]
    assert cli.main(["fleet", *map(str, paths)]) == 0
    assert capsys.readouterr().out.count("no collective that two ranks have in common") == 1


def report(path: Path, rank: int, step: int, steps: int = 6, kernel: int = 400 * US) -> Path:
    """Steps of ``step`` ns each, without collectives; none for 0."""
    synth = Synth(path).gpu(0, "Test GPU").session(10**8).process(1000 + rank, "python3")
    synth.meta("PROCESS_0:ENVIRONMENT_VARIABLE", f"RANK={rank}", capture=True)
    for number in range(steps if step else 1):
        at = number * step
        if step:
            synth.nvtx(f"train step {number}", at, at + step - US)
        synth.launch("gemm(float*)", (at, at + US), (at + 2 * US, at + kernel + rank * US))
    return synth.write()


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (
            (1_000, 1_001, 1_000),
            "steps take as long on all ranks: their medians are 1.000 ms to 1.001 ms; no coll",
        ),
        ((1_000, 1_300, 1_000), "rank 1 is slowest in 5 of 5 steps, its median 300.0 us above"),
        ((1_000, 1_300), "rank 1 is slowest in 5 of 5 steps, its median 300.0 us above"),
        ((1_000, 1_300, 1_310, 1_305), "steps of ranks 1-3 take 310.0 us longer than those of"),
        (
            (1_300, 1_000, 1_310, 1_000),
            "steps of ranks 0, 2 take 310.0 us longer than those of the others, perhaps",
        ),
        ((0, 0, 0), "GPUs are busy "),
    ],
)
def test_only_a_rank_that_stands_out_is_named(
    tmp_path: Path, steps: tuple[int, ...], said: str
) -> None:
    paths = [report(tmp_path / f"{n}.sqlite", n, us * US) for n, us in enumerate(steps)]
    assert verdict(run_fleet(paths)).text.startswith(said)


def test_steps_that_are_equal_clear_no_rank_that_the_others_may_wait_for(tmp_path: Path) -> None:
    kernels = enumerate((400 * US, 700 * US, 400 * US))
    paths = [report(tmp_path / f"{n}.sqlite", n, 10**6, kernel=kernel) for n, kernel in kernels]
    told = verdict(run_fleet(paths))
    assert told.rank == 1
    assert told.text.startswith("rank 1 computes 300.0 us a step longer than the others; steps")


def test_ranks_without_gpu_work_are_told_by_their_mpi_calls(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").session(100 * US)
    for rank in (0, 1):
        synth.process(10 + rank, "solver").mpi_rank(rank)
        synth.mpi("MPI_Barrier", (10 + 40 * rank) * US, 90 * US)
    fleet = run_fleet([synth.write()])
    assert [member.rank for member in fleet.members] == [0, 1]
    assert fleet.mpi_shares() == {0: 0.8, 1: 0.4}
    assert verdict(fleet).text == (
        "no GPU work in these reports; in MPI calls for 40.0% (rank 1) to 80.0% (rank 0)"
        " of the session"
    )
    table = SECTIONS["mpi"](fleet, Ask())
    assert "mpi" in summary_sections(fleet)
    assert (list(table["Name"]), list(table["Total"])) == (["MPI_Barrier"], [120 * US])


def test_ranks_that_cannot_be_aligned_are_not_cleared(tmp_path: Path) -> None:
    """Groups without names: the one with the slow rank ends apart from the others."""

    @dataclass
    class Grouped(Run):
        def compute(self, rank: int, step: int) -> tuple[int, int]:
            start = step * STEP + 5 * US
            return start, start + (500 if rank == 3 else 300) * US + step % 5 * 40 * US * (
                rank == 3
            )

        def arrivals(self, step: int) -> list[int]:
            return [self.compute(rank, step)[1] + 2 * US for rank in range(self.ranks)]

        def collective(self, rank: int, step: int) -> tuple[int, int]:
            arrived = self.arrivals(step)
            own = arrived[2:4] if rank in (2, 3) else arrived[:2] + arrived[4:]
            return arrived[rank], max(own) + 50 * US

    told = verdict(run_fleet(Grouped(ranks=5, steps=20).write(tmp_path)))
    said = told.text
    assert told.rank == 3
    assert said.startswith("rank 3 computes 280.0 us a step longer than the others; who holds")
    assert said.endswith("ranks 2, 3 cannot be aligned")


@dataclass
class Pairs(Run):
    """Neighbours reduce twice a step, then all do: who is slow in a pair holds it up, and all."""

    ranks: int = 8

    def events(self, synth: Synth, rank: int, begun: int = 0, device: int = 0) -> None:
        now = [10 * US] * self.ranks
        for step in range(self.steps):
            synth.nvtx(f"train step {step}", step * 2 * STEP - begun, (step + 1) * 2 * STEP - begun)
            now = [step * 2 * STEP + 20 * US] * self.ranks
            for part in range(3):
                slow = [self.slow.get((r, step), 0) for r in range(self.ranks)]
                came = [at + (200 * US + slow[r] if part < 2 else US) for r, at in enumerate(now)]
                size = 2 if part < 2 else self.ranks
                ends = [max(came[r // size * size :][:size]) + 40 * US for r in range(self.ranks)]
                kernels = (
                    ("gemm", 7, now[rank], came[rank] - US),
                    (ALL_REDUCE, 13 + part // 2, came[rank], ends[rank]),
                )
                for name, stream, start, end in kernels:
                    call = start - 9 * US - begun
                    synth.launch(
                        name, (call, call + US), (start - begun, end - begun), stream=stream
                    )
                now = [end + 2 * US for end in ends]


@pytest.mark.parametrize(
    ("slow", "said"),
    [
        (
            (5,),
            "rank 5 cost the others 16.80 ms of waiting, hidden or not,"
            " also through rank 4 that it holds up",
        ),
        (
            (4, 5),
            "ranks 4, 5 cost the others 14.40 ms of waiting, hidden or not,"
            " together: they leave collectives of",
        ),
    ],
)
def test_ranks_that_are_late_out_of_their_own_collectives_are_not_cleared(
    tmp_path: Path, slow: tuple[int, ...], said: str
) -> None:
    """Its pair hides who is slow from all others, each of whom waits for two equally late ranks.

    A mean step has 120 us of it, for which six ranks wait, and the other of the pair.
    """
    run = Pairs(steps=20, slow={(r, s): (s % 5 + 1) * 20 * US for r in slow for s in range(20)})
    assert verdict(run_fleet(run.write(tmp_path))).text.startswith(said)


@pytest.mark.parametrize(("steps", "said"), [(10, ""), (22, "rank 2 computes ")])
def test_ranks_of_several_runs_are_not_ranked_by_their_steps(
    tmp_path: Path, steps: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two jobs whose collectives look alike; with as many steps they may be one run."""
    paths = [Run(steps=22).write_rank(tmp_path / f"r_{rank}.sqlite", rank) for rank in (0, 1)]
    monkeypatch.setattr(fleet_reports, "STEP", 13 * STEP // 10)
    other = Run(steps=steps, slow=dict.fromkeys(((2, step) for step in range(22)), 100 * US))
    paths += [other.write_rank(tmp_path / f"r_{rank}.sqlite", rank) for rank in (2, 3)]
    told = verdict(run_fleet(paths))
    silent = (
        "who holds the others up is not known: ranks 0-3 cannot be aligned, as ranks of several"
    )
    assert told.text.startswith(said or silent)
    assert ("steps of ranks 2, 3 take" in told.text) is bool(said)
    assert (told.rank is None) is not bool(said)
