"""A window, a step or a range of every rank: figures against counts of microseconds and SQL."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import numpy as np
import pytest
from synth import Synth
from unit.fleet.fleet_reports import ALL_REDUCE, REDUCED, STEP, US, Run, both_in_one

from nsys_tui import cli
from nsys_tui.errors import NoDataError
from nsys_tui.fleet.collectives import Group
from nsys_tui.fleet.fleet import Clock
from nsys_tui.fleet.loading import run_fleet
from nsys_tui.fleet.mapping import Opening, map_report
from nsys_tui.fleet.name_stats import merge
from nsys_tui.fleet.summary import SPLIT, Options, ReportSummary

if TYPE_CHECKING:
    from pathlib import Path

UNCACHED = Opening(use_cache=False)
LO, HI = STEP + 250 * US, 3 * STEP + 20 * US
"""In the kernel of step 1, and in that of step 3."""


@pytest.fixture(scope="module")
def run() -> Run:
    return Run(ranks=3, slow={(1, 2): 90 * US}, begun={1: 170 * US, 2: 40 * US})


@pytest.fixture(scope="module")
def paths(run: Run, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return run.write(tmp_path_factory.mktemp("window"))


def microseconds(run: Run, rank: int, lo: int, hi: int) -> dict[str, int]:
    """Busy time by kind of kernel, counted one microsecond after the other."""
    kinds = {"compute": (run.compute, run.hidden), "comm": (run.collective,)}
    sets = {
        kind: {
            at
            for make in makers
            for step in range(run.steps)
            for at in range(*(t // US for t in make(rank, step)))
            if lo <= at * US < hi
        }
        for kind, makers in kinds.items()
    }
    counts = {kind: len(found) * US for kind, found in sets.items()}
    return counts | {
        "busy": len(sets["compute"] | sets["comm"]) * US,
        "compute_comm_overlap": len(sets["compute"] & sets["comm"]) * US,
    }


def test_a_window_on_the_common_clock_cuts_every_rank_there(run: Run, paths: list[Path]) -> None:
    fleet = run_fleet(paths, opening=UNCACHED, window=(LO, HI))
    assert "only the window 1.250 ms to 3.020 ms" in fleet.notes
    assert fleet.span == (LO, HI)
    for member in fleet.members:
        split = dict(zip(SPLIT, member.process.splits[0].tolist(), strict=True))
        for name, ns in microseconds(run, member.rank, LO, HI).items():
            assert split[name] == ns, (member.rank, name)
        assert split["idle"] == HI - LO - split["busy"]
        # The gemm of step 1 began before, that of step 3 counts.
        assert split["kernels"] == 2 + 3 + 1
    grid = fleet.grid(64)
    busy = [microseconds(run, rank, LO, HI)["busy"] for rank in range(3)]
    assert fleet.heat("busy", grid).sum(axis=1).tolist() == busy


def test_what_starts_in_the_window_counts_and_times_are_cut(run: Run, paths: list[Path]) -> None:
    fleet = run_fleet(paths, Options(pace="gemm"), opening=UNCACHED, window=(LO, HI))
    found = merge([member.process.stats[0] for member in fleet.members])
    place = found.names.index("gemm")
    whole = [run.compute(rank, step) for rank in range(3) for step in range(run.steps)]
    lengths = [end - start for start, end in whole if LO <= start < HI]
    cut = sum(max(0, min(end, HI) - max(start, LO)) for start, end in whole)
    assert found.count[place] == len(lengths) == 6
    assert found.inside[place] == cut
    assert found.mean[place] == np.mean(lengths)
    assert (found.least[place], found.most[place]) == (min(lengths), max(lengths))
    for member in fleet.members:
        assert member.process.steps.labels == ("train step 2", "train step 3")
        assert not member.process.steps.warm_up
        starts = [run.compute(member.rank, step)[0] for step in (2, 3)]
        assert (member.process.pace.start + member.offset).tolist() == starts
    (group,) = fleet.collectives.groups
    assert group.start.tolist() == [[run.collective(r, s)[0] for s in (1, 2)] for r in range(3)]


def test_a_name_that_only_reaches_into_the_window_is_kept(paths: list[Path]) -> None:
    fleet = run_fleet(paths, opening=UNCACHED, window=(LO, LO + 10 * US))
    found = merge([member.process.stats[0] for member in fleet.members])
    assert found.names == ("gemm",)
    assert found.inside.tolist() == [3 * 10 * US]
    assert found.count.tolist() == [0]
    assert np.isnan(found.quartiles).all()
    assert cli.main(["fleet", *map(str, paths), "--window", "1250us/1260us", "--no-cache"]) == 0


def test_without_a_common_clock_the_window_is_of_each_session(paths: list[Path]) -> None:
    fleet = run_fleet(paths, opening=UNCACHED, window=(0, STEP), clock=Clock.SESSION)
    assert [member.base for member in fleet.members] == [(0, STEP)] * 3
    open_end = run_fleet(paths, opening=UNCACHED, window=(STEP, None), clock=Clock.SESSION)
    assert all(member.base[1] > 4 * STEP for member in open_end.members)


def test_a_window_on_clocks_aligned_by_collectives(run: Run, tmp_path: Path) -> None:
    paths = run.write(tmp_path, utc=False)
    whole = run_fleet(paths, opening=UNCACHED)
    part = run_fleet(paths, opening=UNCACHED, window=(LO, HI))
    assert whole.clock is part.clock is Clock.ENDS
    assert [m.offset for m in part.members] == [m.offset for m in whole.members]
    assert [m.base for m in part.members] == [(LO - m.offset, HI - m.offset) for m in whole.members]


@pytest.mark.parametrize("step", ["2", "train step 2"])
def test_a_step_of_every_rank_is_its_own(run: Run, paths: list[Path], step: str) -> None:
    fleet = run_fleet(paths, Options(step=step), opening=UNCACHED)
    for member in fleet.members:
        lo, hi = 2 * STEP, 3 * STEP
        assert member.base == (lo - member.offset, hi - member.offset)
        split = dict(zip(SPLIT, member.process.splits[0].tolist(), strict=True))
        assert split["busy"] == microseconds(run, member.rank, lo, hi)["busy"]
        assert member.process.steps.labels == ("train step 2",)


def test_a_range_of_every_process_of_one_report(tmp_path: Path) -> None:
    run = Run(ranks=2)
    path = both_in_one(tmp_path / "node.sqlite", run)
    fleet = run_fleet([path], Options(nvtx="train step #/3"), opening=UNCACHED)
    assert [m.base for m in fleet.members] == [(3 * STEP, 4 * STEP - 10 * US)] * 2
    split = [dict(zip(SPLIT, m.process.splits[0].tolist(), strict=True)) for m in fleet.members]
    wanted = [microseconds(run, rank, 3 * STEP, 4 * STEP)["comm"] for rank in range(2)]
    assert [s["comm"] for s in split] == wanted


def test_a_report_without_that_step_is_skipped_with_the_reason(
    paths: list[Path], tmp_path: Path
) -> None:
    short = Run(ranks=4, steps=3).write_rank(tmp_path / "short.sqlite", 3)
    fleet = run_fleet([*paths, short], Options(step="4"), opening=UNCACHED)
    assert [m.rank for m in fleet.members] == [0, 1, 2]
    assert [f.reason for f in fleet.failures] == ["no step '4': it has steps 0 to 2"]
    with pytest.raises(NoDataError, match="none of the reports has"):
        run_fleet(paths, Options(nvtx="no such range"), opening=UNCACHED)


def test_memory_held_and_metrics_are_those_of_the_window(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "memory.sqlite").gpu(0, "Test GPU").process(1, "p")
    synth.launch("gemm", (0, 10), (10, 100_000))
    for at, address, size in ((10, 1, 1_000), (20_000, 2, 500), (60_000, 3, 9_000)):
        synth.memory_usage(at, size, address=address)
    path = synth.write()
    found = map_report(str(path), Options(window=(15_000, 50_000)), UNCACHED)
    assert isinstance(found, ReportSummary)
    assert found.processes[0].memory_peak.tolist() == [1_500]
    assert found.processes[0].memory.max() == 1_500
    assert found.processes[0].memory[0, 0] == 1_000


def test_all_reduce_of_the_window_equals_sql(paths: list[Path], run: Run) -> None:
    fleet = run_fleet(paths, opening=UNCACHED, window=(LO, HI))
    group = fleet.collectives.groups[0]
    assert isinstance(group, Group)
    assert group.name == REDUCED
    for row, path in enumerate(paths):
        offset = run.offset(row)
        with sqlite3.connect(path) as base:
            starts = base.execute(
                "SELECT start + ? FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds"
                " ON demangledName = id WHERE value = ? AND start + ? >= ? AND start + ? < ?"
                " ORDER BY start",
                (offset, ALL_REDUCE, offset, LO, offset, HI),
            ).fetchall()
        assert group.start[row].tolist() == [start for (start,) in starts]
