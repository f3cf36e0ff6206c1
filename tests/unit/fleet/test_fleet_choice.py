"""Some processes, GPUs or streams of every rank: figures against SQL and counts of kernels."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from synth import Synth
from unit.fleet.fleet_reports import STEP, US, Run, both_in_one

from nsys_tui import cli
from nsys_tui.analysis.window import Choice
from nsys_tui.errors import NoDataError
from nsys_tui.fleet.fleet import Clock
from nsys_tui.fleet.loading import run_fleet
from nsys_tui.fleet.mapping import Opening
from nsys_tui.fleet.summary import SPLIT, Options

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.fleet.fleet import Fleet

UNCACHED = Opening(use_cache=False)
GPU_1, PROCESS_1 = Choice(devices=(1,)), Choice(processes=(2001,))


@pytest.fixture(scope="module")
def run() -> Run:
    return Run(ranks=3, begun={1: 170 * US, 2: 40 * US})


@pytest.fixture(scope="module")
def node(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return both_in_one(tmp_path_factory.mktemp("node") / "node.sqlite", run)


def chosen(choice: Choice, **options: Any) -> Options:
    return Options(choice=choice, **options)


def kernels(fleet: Fleet) -> list[int]:
    place = SPLIT.index("kernels")
    return [int(member.process.splits[:, place].sum()) for member in fleet.members]


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (chosen(GPU_1), "only GPU 1 of each report"),
        (chosen(PROCESS_1), "only process 2001 of each report"),
        (chosen(GPU_1, step="2"), "only GPU 1 of each report"),
    ],
)
def test_a_gpu_or_process_of_a_node_is_its_rank_alone(
    node: Path, options: Options, note: str
) -> None:
    whole = run_fleet([node], Options(step=options.step), opening=UNCACHED)
    fleet = run_fleet([node], options, opening=UNCACHED)
    (member,) = fleet.members
    other = whole.members[1]
    assert (member.rank, member.process.pid) == (other.rank, 2001)
    assert member.base == other.base
    assert member.process.splits.tolist() == other.process.splits.tolist()
    assert fleet.notes[0] == note


def test_a_stream_counts_alone_in_every_figure(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(7).gpu().session(STEP)
    for place in range(6):
        at = place * 100 * US
        synth.kernel("gemm", at, at + 50 * US, stream=7)
        synth.kernel("ncclDevKernel_AllReduce_Sum", at + 20 * US, at + 60 * US, stream=9)
    path = synth.write()
    with sqlite3.connect(path) as base:
        (wanted,) = base.execute(
            "SELECT sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE streamId = 9"
        ).fetchone()
    (member,) = run_fleet(
        [path], chosen(Choice(streams=(9,)), pace="gemm"), opening=UNCACHED
    ).members
    split = dict(zip(SPLIT, member.process.splits[0].tolist(), strict=True))
    assert (split["busy"], split["comm"], split["exposed_comm"]) == (wanted, wanted, wanted)
    assert split["kernels"] == len(member.process.collectives.start) == 6
    assert member.process.pace.kind == ""
    assert member.process.stats[0].names == ("AllReduce sum",)
    (other,) = run_fleet(
        [path], chosen(Choice(streams=(7,)), pace="gemm"), opening=UNCACHED
    ).members
    assert len(other.process.collectives.start) == 0
    assert len(other.process.pace.start) == 6


def test_ranks_and_clocks_are_those_of_the_whole_reports(run: Run, tmp_path: Path) -> None:
    paths = run.write(tmp_path, utc=False)
    whole = run_fleet(paths, opening=UNCACHED)
    for window in (None, (STEP, 2 * STEP)):
        part = run_fleet(paths, chosen(Choice((1001, 1002))), opening=UNCACHED, window=window)
        assert part.clock is whole.clock is Clock.ENDS
        assert [m.rank for m in part.members] == [1, 2]
        assert [m.offset for m in part.members] == [m.offset for m in whole.members[1:]]
        assert [f.reason for f in part.failures] == ["no process 1001 in this report\nit has 1000"]


def test_a_window_and_a_gpu_go_together(run: Run, node: Path) -> None:
    fleet = run_fleet(
        [node], chosen(Choice(devices=(0, 2))), opening=UNCACHED, window=(STEP, 2 * STEP)
    )
    assert [m.process.pid for m in fleet.members] == [2000, 2002]
    assert kernels(fleet) == [3, 3]


def test_metrics_are_of_the_chosen_gpus(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(7).session(STEP)
    for gpu in (0, 1):
        synth.gpu(gpu, cu_device=gpu).cuda_device(7, gpu, gpu)
        synth.kernel("k", 0, STEP, device=gpu)
        synth.gpu_metric(US, "SM Active [%]", 10 + gpu, gpu=gpu)
    path = synth.write()
    fleet = run_fleet([path], chosen(Choice(devices=(1,))), opening=UNCACHED)
    assert fleet.members[0].report.metric_gpus == (1,)
    assert fleet.members[0].report.metric_sum.sum() == 11


def test_on_the_command_line(
    run: Run, node: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = run.write_rank(tmp_path / "alone.sqlite", 0)

    def ranks(*words: str) -> list[dict[str, Any]]:
        words = (*words, "--no-cache", "--format", "json", "--section", "ranks")
        assert cli.main(["fleet", str(node), *words]) == 0
        rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["sections"]["ranks"][
            "rows"
        ]
        return rows

    whole = ranks()
    assert len(whole) == 3
    assert ranks("--device", "1") == ranks("--process", "2001") == [whole[1]]
    assert ranks("--device", "1", "--device", "2") == whole[1:]
    assert cli.main(["fleet", str(node), str(alone), "--device", "2", "--no-cache"]) == 0
    assert "alone.sqlite: no GPU 2 in this report; it has 0" in capsys.readouterr().err
    assert cli.main(["fleet", str(alone), "--stream", "99", "--no-cache"]) == 66
    assert "none of the reports has what was asked for" in capsys.readouterr().err
    assert cli.main(["fleet", str(alone), "--open", "--device", "0"]) == 64


def test_nothing_of_what_was_asked_for_is_said_so(node: Path) -> None:
    with pytest.raises(NoDataError, match="none of the reports"):
        run_fleet([node], chosen(Choice((2001,), (0,))), opening=UNCACHED)
