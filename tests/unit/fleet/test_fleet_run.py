from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from synth import Synth
from unit.fleet.fleet_reports import REDUCED, STEP, US, UTC, Run, both_in_one

from nsys_tui.errors import UnreadableReportError
from nsys_tui.fleet.fleet import Clock, Fleet
from nsys_tui.fleet.heat_maps import heat_map, map_names
from nsys_tui.fleet.loading import run_fleet
from nsys_tui.fleet.name_tables import names_table
from nsys_tui.fleet.ranks import BY_ORDER
from nsys_tui.fleet.step_tables import fleet_pace
from nsys_tui.fleet.steps import fleet_steps
from nsys_tui.fleet.summary import MAPPED, SPLIT, STEP_FIGURES, Options

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SLOW = {(2, 3): 150 * US, (0, 1): 95 * US}
BEGUN = {1: 200 * US, 3: 350 * US}


@pytest.fixture(scope="module")
def run() -> Run:
    return Run(ranks=4, steps=5, slow=SLOW, begun=BEGUN)


@pytest.fixture(scope="module")
def paths(run: Run, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return run.write(tmp_path_factory.mktemp("ranks"))


@pytest.fixture(scope="module")
def fleet(paths: list[Path]) -> Fleet:
    return run_fleet(paths)


def covered(intervals: Iterable[tuple[int, int]]) -> set[int]:
    """Microseconds that intervals cover, one by one."""
    return {us for start, end in intervals for us in range(start // US, end // US)}


def kernels(run: Run, rank: int, steps: Iterable[int]) -> dict[str, set[int]]:
    comm = covered(run.collective(rank, step) for step in steps)
    compute = covered(times(rank, step) for step in steps for times in (run.compute, run.hidden))
    return {
        "busy": comm | compute,
        "compute": compute,
        "comm": comm,
        "compute_comm_overlap": comm & compute,
        "exposed_comm": comm - compute,
        "memory": set(),
    }


def test_every_rank_is_known_by_its_environment(fleet: Fleet) -> None:
    assert [(m.rank, m.source) for m in fleet.members] == [
        (rank, "SLURM_PROCID") for rank in range(4)
    ]
    assert [m.report.host for m in fleet.members] == ["node0", "node0", "node1", "node1"]
    assert [m.report.world for m in fleet.members] == [4] * 4
    assert fleet.failures == ()


def test_sessions_are_put_on_one_clock_by_their_utc_start(run: Run, fleet: Fleet) -> None:
    assert fleet.clock is Clock.UTC
    assert [m.offset for m in fleet.members] == [run.offset(rank) for rank in range(4)]
    assert fleet.notes[0] == "clocks aligned by the UTC start of each session"


def test_the_breakdown_of_every_rank_equals_a_count_of_microseconds(run: Run, fleet: Fleet) -> None:
    for member in fleet.members:
        found = dict(zip(SPLIT, member.process.splits[0].tolist(), strict=True))
        for name, expected in kernels(run, member.rank, range(run.steps)).items():
            assert found[name] == len(expected) * US, name
        assert found["kernels"] == 3 * run.steps


def test_bins_of_the_heat_map_hold_what_ran_in_them(run: Run, fleet: Fleet) -> None:
    grid = fleet.grid(60)
    edges = fleet.edges(grid)
    assert 20 <= grid.count <= 60
    for figure in MAPPED:
        found = fleet.heat(figure, grid)
        for row, member in enumerate(fleet.members):
            ran = kernels(run, member.rank, range(run.steps))[figure]
            expected = [
                sum(max(0, min((us + 1) * US, int(hi)) - max(us * US, int(lo))) for us in ran)
                for lo, hi in itertools.pairwise(edges)
            ]
            assert found[row].tolist() == expected, (figure, member.rank)


def test_maps_are_in_per_cent_and_exposed_is_what_remains(fleet: Fleet) -> None:
    assert map_names(fleet) == ["busy", "compute", "comm", "overlap", "exposed", "memory"]
    maps = {name: heat_map(fleet, name, 50) for name in map_names(fleet)}
    assert maps["busy"].values.max() <= 100
    difference = maps["comm"].values - maps["overlap"].values
    assert maps["exposed"].values == pytest.approx(difference)
    assert maps["busy"].labels == ("0", "1", "2", "3")


def test_steps_name_the_slowest_rank_and_who_computed_most(run: Run, fleet: Fleet) -> None:
    steps = fleet_steps(fleet)
    assert steps is not None
    assert steps.by_label
    assert steps.labels == tuple(f"train step {step}" for step in range(5))
    assert steps.rules == ("train step # (by NVTX name)",)
    assert steps.time[:, :4].tolist() == [[float(STEP)] * 4] * 4
    assert steps.start.tolist() == [[float(step * STEP) for step in range(5)]] * 4
    assert steps.skew.tolist() == [0.0] * 5
    for place, name in enumerate(STEP_FIGURES):
        for rank in range(4):
            for step in range(5):
                expected = len(kernels(run, rank, [step])[name]) * US
                assert steps.figures[place, rank, step] == expected
    ends = [[(run.compute(rank, step)[1], -rank) for rank in range(4)] for step in range(5)]
    busiest = [-max(of_step)[1] for of_step in ends]
    assert [steps.ranks[row] for row in steps.most("compute").tolist()] == busiest
    assert busiest == [3, 0, 3, 2, 3]


def test_collectives_tell_who_is_late_and_how_long_the_others_wait(run: Run, fleet: Fleet) -> None:
    matched = fleet.collectives
    assert [(g.name, g.communicator, g.calls) for g in matched.groups] == [(REDUCED, "stream 1", 5)]
    group, late = matched.groups[0], matched.by_rank()
    arrivals = [run.arrivals(step) for step in range(5)]
    assert group.skew.tolist() == [max(a) - min(a) for a in arrivals]
    assert group.time.tolist() == [50 * US] * 5
    assert late.waited.tolist() == [sum(max(a) - a[rank] for a in arrivals) for rank in range(4)]
    worst = [a.index(max(a)) for a in arrivals]
    assert late.last.tolist() == [worst.count(rank) for rank in range(4)]
    held = [0] * 4
    for a in arrivals:
        held[a.index(max(a))] += max(a) - sorted(a)[-2]
    assert late.held_up.tolist() == held
    assert not group.apart.any()
    assert matched.end_spread == 0


@pytest.mark.parametrize("name", ["gemm", "gemm(float*)"])
def test_the_pace_of_a_kernel_shows_who_falls_behind(
    run: Run, paths: list[Path], name: str
) -> None:
    pace = fleet_pace(run_fleet(paths, Options(pace=name)))
    assert pace is not None
    assert pace.kind == "kernel"
    for own in pace.ranks:
        times = [run.compute(own.rank, step) for step in range(5)]
        assert own.start.tolist() == [start for start, _ in times]
        assert own.duration.tolist() == [end - start for start, end in times]
        assert own.cumulative.tolist() == np.cumsum([e - s for s, e in times]).tolist()
        assert own.behind.tolist() == [0] * 5
    ranges = fleet_pace(run_fleet(paths, Options(pace="train step 4")))
    assert ranges is not None
    assert (ranges.kind, len(ranges.ranks[0].start)) == ("range", 5)
    assert fleet_pace(run_fleet(paths, Options(pace="nobody"))) is None


def test_kernels_of_other_template_arguments_are_apart_and_followed_by_the_shown_name(
    tmp_path: Path,
) -> None:
    paths = []
    for rank, types in enumerate((["float"], ["float", "double"])):
        synth = Synth(tmp_path / f"{rank}.sqlite").gpu(0, "Test GPU")
        synth.session(STEP, utc=UTC).meta(
            "PROCESS_0:ENVIRONMENT_VARIABLE", f"SLURM_PROCID={rank}", capture=True
        )
        synth.process(1000 + rank, "app")
        for place, type_ in enumerate(types):
            at = place * 100 * US
            kernel = f"void vector_add<{type_}>({type_}*)"
            synth.launch(kernel, (at, at + US), (at + 2 * US, at + (10 + place) * US))
        paths.append(synth.write())
    options = Options(pace="vector_add f64", families=("kernels",))
    fleet = run_fleet(paths, options)
    for by_rank, ranks in ((False, ()), (True, (0, 1, 1))):
        table = names_table(fleet, "kernels", by_rank).rows()
        names = [row[-1] for row in table]
        assert sorted(names) == sorted(["vector_add f64", *["vector_add f32"] * (1 + by_rank)])
        assert not by_rank or [row[0] for row in table] == list(ranks)
    pace = fleet_pace(fleet)
    assert pace is not None
    assert [own.duration.tolist() for own in pace.ranks] == [[9 * US]]


def test_a_rank_that_drifts_is_told_by_how_much(tmp_path: Path) -> None:
    class Drifting(Run):
        def compute(self, rank: int, step: int) -> tuple[int, int]:
            start, end = super().compute(rank, step)
            return start + rank * step * 30 * US, end + rank * step * 30 * US

    pace = fleet_pace(run_fleet(Drifting(ranks=3).write(tmp_path), Options(pace="gemm")))
    assert pace is not None
    assert [own.drift for own in pace.ranks] == pytest.approx([0, 30 * US, 60 * US])


def test_without_utc_clocks_are_aligned_by_the_ends_of_collectives(
    run: Run, tmp_path: Path
) -> None:
    fleet = run_fleet(run.write(tmp_path, utc=False))
    assert fleet.clock is Clock.ENDS
    assert [m.offset for m in fleet.members] == [0, 200 * US, 0, 350 * US]
    late = fleet.collectives.by_rank()
    arrivals = [run.arrivals(step) for step in range(5)]
    assert late.waited.tolist() == [sum(max(a) - a[rank] for a in arrivals) for rank in range(4)]


def test_without_utc_and_collectives_the_clock_is_said_to_be_unknown(
    run: Run, tmp_path: Path
) -> None:
    fleet = run_fleet(run.write(tmp_path, utc=False), clock=Clock.SESSION)
    assert [m.offset for m in fleet.members] == [0] * 4
    assert fleet.notes[0] == "clocks not aligned: every session starts at 0"
    assert "no UTC start in report_0.sqlite" in fleet.notes[1]


def test_several_ranks_of_one_report_are_kept_apart(tmp_path: Path) -> None:
    run = Run(ranks=3, slow=SLOW)
    fleet = run_fleet([both_in_one(tmp_path / "node.sqlite", run)])
    assert [(m.rank, m.source, m.gpus) for m in fleet.members] == [
        (rank, BY_ORDER, f"GPU {rank}") for rank in range(3)
    ]
    for member in fleet.members:
        found = dict(zip(SPLIT, member.process.splits[0].tolist(), strict=True))
        assert found["exposed_comm"] == (
            len(kernels(run, member.rank, range(5))["exposed_comm"]) * US
        )
        assert len(member.process.steps.labels) == 5
    arrivals = [run.arrivals(step) for step in range(5)]
    assert fleet.collectives.groups[0].skew.tolist() == [max(a) - min(a) for a in arrivals]


def test_a_job_scripts_rank_gives_way_to_the_file_name(run: Run, tmp_path: Path) -> None:
    paths = [run.write_rank(tmp_path / f"r_{rank}.sqlite", rank, variable="") for rank in range(4)]
    fleet = run_fleet(paths[::-1])
    assert [(m.rank, m.file, m.source) for m in fleet.members] == [
        (rank, f"r_{rank}.sqlite", "file name") for rank in range(4)
    ]


def test_a_missing_rank_is_named(paths: list[Path]) -> None:
    fleet = run_fleet([paths[0], paths[3]])
    assert "no report of ranks 1, 2 of 4" in fleet.notes


def test_a_broken_report_is_left_out_and_named(paths: list[Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(paths[0].read_bytes()[:7000])
    gone = tmp_path / "gone.sqlite"
    fleet = run_fleet([paths[0], broken, gone, paths[1]])
    assert len(fleet.members) == 2
    assert {failure.path for failure in fleet.failures} == {str(broken), str(gone)}
    assert all(failure.reason for failure in fleet.failures)
    with pytest.raises(UnreadableReportError):
        run_fleet([broken, gone])


def test_a_number_in_the_name_of_a_lonely_report_is_no_rank(tmp_path: Path) -> None:
    path = both_in_one(tmp_path / "training-2gpu-2026.2.sqlite", Run(ranks=2))
    fleet = run_fleet([path])
    assert [(m.rank, m.source) for m in fleet.members] == [(0, BY_ORDER), (1, BY_ORDER)]
    others = Run(ranks=2).write(tmp_path, "report{rank}.sqlite")
    for rank, other in enumerate(others):
        Run(ranks=2).write_rank(other, rank, variable="")
    assert [m.rank for m in run_fleet(others).members] == [0, 1]
