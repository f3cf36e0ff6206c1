"""What a rank is: GPUs of one process, copies, captures of another run, ranks that users tell."""

from __future__ import annotations

import json
import shutil
import sqlite3
from typing import TYPE_CHECKING

import pytest
from synth import Synth
from unit.fleet.fleet_reports import ALL_REDUCE, STEP, US, UTC, Run

from nsys_tui import cli
from nsys_tui.analysis.identity import from_environment
from nsys_tui.errors import UsageError
from nsys_tui.fleet.fleet import Clock
from nsys_tui.fleet.loading import run_fleet
from nsys_tui.fleet.name_stats import merge
from nsys_tui.fleet.ranks import BY_ORDER, GIVEN, conflicts, read_ranks
from nsys_tui.fleet.reduction import reduce
from nsys_tui.fleet.summary import Options
from nsys_tui.fleet.table_parts import Ask
from nsys_tui.fleet.tables import SECTIONS

if TYPE_CHECKING:
    from pathlib import Path

SLOW = {(5, step): 200 * US for step in range(2, 5)}


def one_process(path: Path, run: Run, *variables: str) -> Path:
    """One process that drives a GPU for every rank of a run."""
    synth = Synth(path).session(run.steps * STEP, utc=UTC)
    synth.environment("Hostname", path.stem)
    for text in variables:
        synth.meta("PROCESS_0:ENVIRONMENT_VARIABLE", text, capture=True)
    synth.process(4000, "python3")
    for rank in range(run.ranks):
        synth.gpu(rank, "Test GPU", cu_device=rank).cuda_device(4000, rank, rank)
        run.events(synth, rank, device=rank)
    return synth.write()


def test_every_gpu_of_one_process_is_a_rank(tmp_path: Path) -> None:
    run = Run(ranks=8, slow=SLOW)
    path = one_process(tmp_path / "node.sqlite", run)
    fleet = run_fleet([path])
    assert [(m.rank, m.gpus, m.source) for m in fleet.members] == [
        (rank, f"GPU {rank}", BY_ORDER) for rank in range(8)
    ]
    arrivals = [run.arrivals(step) for step in range(5)]
    late = fleet.collectives.by_rank()
    worst = [a.index(max(a)) for a in arrivals]
    assert worst == [7, 7, 5, 5, 5]
    assert late.last.tolist() == [worst.count(rank) for rank in range(8)]
    assert late.waited.tolist() == [sum(max(a) - a[rank] for a in arrivals) for rank in range(8)]
    with sqlite3.connect(path) as base:
        (kernels,) = base.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
        (ranges,) = base.execute("SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 59").fetchone()
    for family, count in (("kernels", kernels), ("ranges", ranges)):
        place = Options().families.index(family)
        merged = merge([member.process.stats[place] for member in fleet.members])
        assert int(merged.count.sum()) == count, family
    part = run_fleet([path], window=(STEP, 2 * STEP))
    assert [m.gpus for m in part.members] == [m.gpus for m in fleet.members]


def test_gpus_of_processes_of_several_nodes_count_on(tmp_path: Path) -> None:
    paths = [
        one_process(tmp_path / f"node{node}.sqlite", Run(ranks=2), f"SLURM_PROCID={node}")
        for node in range(3)
    ]
    fleet = run_fleet(paths)
    assert [(m.rank, m.file, m.gpus) for m in fleet.members] == [
        (2 * node + gpu, f"node{node}.sqlite", f"GPU {gpu}") for node in range(3) for gpu in (0, 1)
    ]
    assert fleet.members[0].source == "≈ SLURM_PROCID × 2 + order of GPUs"


def test_a_process_that_only_touches_another_gpu_is_one_rank(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").session(STEP * 5, utc=UTC).process(7, "python3")
    for gpu in (0, 1):
        synth.gpu(gpu, "Test GPU", cu_device=gpu).cuda_device(7, gpu, gpu)
    Run(ranks=1).events(synth, 0, device=1)
    synth.kernel("touch", 0, US, device=0)
    (member,) = run_fleet([synth.write()]).members
    assert member.gpus == "GPU 0, GPU 1"


def test_copies_are_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = Run().write(tmp_path)
    copy = tmp_path / "sub" / "report_1 (copy).sqlite"
    copy.parent.mkdir()
    shutil.copyfile(paths[1], copy)
    again = tmp_path / "report_2_new_export.sqlite"
    shutil.copyfile(paths[2], again)
    with sqlite3.connect(again) as base:
        base.execute("CREATE TABLE OF_A_NEWER_EXPORT (id INTEGER)")
    fleet = run_fleet([*paths, copy, again])
    assert [m.file for m in fleet.members] == [path.name for path in paths]
    assert [(f.path, f.reason) for f in fleet.left_out] == [
        (str(copy), "the same file as report_1.sqlite"),
        (str(again), "the same capture as report_2.sqlite"),
    ]
    names = [str(path) for path in (*paths, copy, again)]
    assert cli.main(["fleet", *names, "--format", "json", "--section", "ranks", "--strict"]) == 0
    printed = capsys.readouterr()
    assert "left out: report_2_new_export.sqlite: the same capture as" in printed.err
    found = json.loads(printed.out)
    assert [entry["report"] for entry in found["left_out"]] == [str(copy), str(again)]
    assert (found["ranks"], found["skipped"]) == (4, [])


def test_ranks_that_do_the_same_are_no_copies(tmp_path: Path) -> None:
    class Same(Run):
        def compute(self, rank: int, step: int) -> tuple[int, int]:
            return super().compute(0, step)

    fleet = run_fleet(Same().write(tmp_path))
    assert [m.rank for m in fleet.members] == [0, 1, 2, 3]
    assert fleet.left_out == ()


def other_run(folder: Path, name: str, run: Run, begun: int) -> list[Path]:
    """The same ranks some time later."""
    later = Run(run.ranks, run.steps, {(0, 0): 3 * US})
    folder.mkdir(exist_ok=True)
    found = []
    for rank in range(run.ranks):
        synth = Synth(folder / name.format(rank=rank)).gpu(0, "Test GPU")
        synth.session(run.steps * STEP, utc=UTC + begun)
        synth.meta("PROCESS_0:ENVIRONMENT_VARIABLE", f"SLURM_PROCID={rank}", capture=True)
        later.events(synth.process(5000 + rank, "python3"), rank)
        found.append(synth.write())
    return found


def test_ranks_of_another_run_are_left_out(tmp_path: Path) -> None:
    run = Run()
    paths = run.write(tmp_path)
    others = other_run(tmp_path, "other_{rank}.sqlite", Run(ranks=2), 3600 * 10**9)
    fleet = run_fleet([*others, *paths])
    assert [m.file for m in fleet.members] == [path.name for path in paths]
    assert [f.reason for f in fleet.left_out] == [
        f"another run: report_{rank}.sqlite is rank {rank} too (SLURM_PROCID), at another time"
        for rank in range(2)
    ]


def jobs(folder: Path, *variables: str) -> list[Path]:
    """Ranks 0 and 1 of two jobs at the same time; ``{rank}`` counts on over both."""
    paths = []
    for number in range(4):
        job, local = divmod(number, 2)
        synth = Synth(folder / f"{'ab'[job]}{local}.sqlite").gpu(0, "Test GPU")
        synth.session(5 * STEP, utc=UTC).environment("Hostname", f"node{number}")
        for text in (f"SLURM_PROCID={local}", f"SLURM_JOB_ID={70 + job}", *variables):
            value = text.format(rank=number)
            synth.meta("PROCESS_0:ENVIRONMENT_VARIABLE", value, capture=True)
        Run(slow={(0, 0): job * 3 * US}).events(synth.process(100 + number, "python3"), local)
        paths.append(synth.write())
    return paths


def test_ranks_of_another_job_at_the_same_time_are_left_out(tmp_path: Path) -> None:
    fleet = run_fleet(jobs(tmp_path))
    assert [(m.rank, m.file) for m in fleet.members] == [(0, "a0.sqlite"), (1, "a1.sqlite")]
    assert [f.reason for f in fleet.left_out] == [
        f"another run: a{rank}.sqlite is rank {rank} too (SLURM_PROCID), with another SLURM_JOB_ID"
        for rank in range(2)
    ]


@pytest.mark.parametrize("link", [False, True])
def test_ranks_without_a_common_collective_may_be_of_several_runs(
    tmp_path: Path, link: bool
) -> None:
    paths = []
    for number in range(4):
        synth = Synth(tmp_path / f"r_{number}.sqlite").gpu(0, "Test GPU")
        synth.session(5 * STEP, utc=UTC).process(100 + number, "python3")
        for call in range(4):
            own = 9 if link and call == 3 else number // 2
            at = (call + 1) * 100 * US
            text = json.dumps({"NCCL communicator ID": own, "Message size [bytes]": 4})
            synth.nvtx("ncclAllReduce", at, at + 9, json=text)
            synth.launch(ALL_REDUCE, (at + 2, at + 5), (at + US, at + 20 * US), stream=13)
        paths.append(synth.write())
    said = "≈ ranks 0, 1 and ranks 2, 3 have no collective in common: groups of one run, or "
    assert (said + "several runs" in run_fleet(paths).notes) is not link


@pytest.mark.parametrize("silent", [(3,), (), (1, 2, 3)])
def test_ranks_without_any_collective_are_told_where_others_have_some(
    tmp_path: Path, silent: tuple[int, ...]
) -> None:
    paths = []
    for number in range(4):
        synth = Synth(tmp_path / f"r_{number}.sqlite").gpu(0, "Test GPU")
        synth.session(5 * STEP, utc=UTC).process(100 + number, "python3")
        for call in range(4):
            at = (call + 1) * 100 * US
            name = "gemm" if number in silent else ALL_REDUCE
            synth.launch(name, (at + 2, at + 5), (at + US, at + 20 * US), stream=13)
        paths.append(synth.write())
    said = "rank 3 took part in no collective" in run_fleet(paths).notes
    assert said is (silent == (3,))


@pytest.mark.parametrize(("world", "source"), [(2, "NCCL"), (4, "file name")])
def test_nccl_numbers_the_ranks_of_a_communicator_of_all(
    tmp_path: Path, world: int, source: str
) -> None:
    paths = []
    for number in range(2):
        synth = Synth(tmp_path / f"rank_{number}.sqlite").gpu(0, "Test GPU").process(7, "python3")
        synth.meta("PROCESS_0:ENVIRONMENT_VARIABLE", f"WORLD_SIZE={world}", capture=True)
        fields = {"NCCL communicator ID": 5, "No. of ranks": 2, "Rank": 1 - number}
        synth.nvtx("ncclCommInitRank", 1, 5, json=json.dumps(fields))
        paths.append(synth.kernel("k", 10, 20 + number).write())
    fleet = run_fleet(paths)
    assert [(m.rank, m.source) for m in fleet.members] == [(0, source), (1, source)]
    assert any("says another" in note for note in fleet.notes) is (world == 2)


def test_jobs_that_number_their_ranks_together_are_one_run(tmp_path: Path) -> None:
    fleet = run_fleet(jobs(tmp_path, "RANK={rank}"))
    assert ([m.rank for m in fleet.members], fleet.left_out) == ([0, 1, 2, 3], ())


def test_a_rank_that_only_another_run_has_stays(tmp_path: Path) -> None:
    paths = Run().write(tmp_path)[:3]
    (*_, lonely) = other_run(tmp_path, "other_{rank}.sqlite", Run(), 3600 * 10**9)
    assert [m.rank for m in run_fleet([*paths, lonely]).members] == [0, 1, 2, 3]


def test_runs_one_after_the_other_stay_side_by_side(tmp_path: Path) -> None:
    paths = [
        other_run(tmp_path, f"run_{number}.sqlite", Run(ranks=1), number * 3600 * 10**9)[0]
        for number in range(3)
    ]
    fleet = run_fleet(paths)
    assert (len(fleet.members), fleet.left_out) == (3, ())
    others = "run_1.sqlite, run_2.sqlite: begun at another time than the rest"
    assert any(others in note for note in fleet.notes)
    begin = "clocks aligned by the UTC start of most sessions; the others begin with the first"
    assert begin in fleet.notes
    assert fleet.span[1] < 3600 * 10**9, "hours between them are in no map"
    alone = run_fleet(paths[:1])
    apart = "another run, not in this: run_1.sqlite, run_2.sqlite"
    for name in ("total", "steps", "step-ranks", "kernels", "ranges"):
        table, own = (SECTIONS[name](found, Ask()) for found in (fleet, alone))
        assert (table.rows(), apart in table.notes) == (own.rows(), True), name
    assert len(SECTIONS["ranks"](fleet, Ask()).rows()) == 3
    assert run_fleet(paths, clock=Clock.UTC).span[1] > 7200 * 10**9


def test_ranks_follow_from_hosts_and_local_ranks(tmp_path: Path) -> None:
    paths = []
    for host in (10, 9):
        for local in (1, 0):
            synth = Synth(tmp_path / f"{host}{local}x.sqlite").gpu(0, "Test GPU")
            synth.session(STEP, utc=UTC + host + local).environment("Hostname", f"gpu{host}")
            synth.meta("PROCESS_0:ENVIRONMENT_VARIABLE", f"LOCAL_RANK={local}", capture=True)
            paths.append(synth.process(1, "p").kernel("k", 0, US).write())
    fleet = run_fleet(paths)
    assert [(m.report.host, m.report.local) for m in fleet.members] == [
        ("gpu9", 0), ("gpu9", 1), ("gpu10", 0), ("gpu10", 1),
    ]  # fmt: skip
    assert {m.source for m in fleet.members} == {"≈ order of hosts × 2 + local rank"}


def test_node_and_local_rank_make_a_rank() -> None:
    found = from_environment(["GROUP_RANK=2", "LOCAL_RANK=3", "LOCAL_WORLD_SIZE=8"])
    assert (found.node, found.local, found.local_size, found.rank) == (2, 3, 8, None)


def test_evidence_that_disagrees_is_named() -> None:
    members = [((0, "MPI"), (7, "file name")), ((1, "MPI"), (1, "file name"))]
    assert conflicts(members, [(0, "MPI"), (1, "MPI")]) == [
        "rank 0 by MPI, although the file name says another"
    ]
    script = (0, "SLURM_PROCID")
    shared = [(script, (rank, "file name")) for rank in range(3)]
    assert conflicts(shared, [(rank, "file name") for rank in range(3)]) == [
        "SLURM_PROCID says rank 0 for 3 ranks: not used"
    ]
    agreed = [((rank, "MPI"), (rank, "file name"), (rank + 1, BY_ORDER)) for rank in range(3)]
    assert conflicts([own[:2] for own in agreed], [(rank, "MPI") for rank in range(3)]) == []


@pytest.mark.parametrize(
    ("slurm", "ranks", "said"),
    [
        ((0, 1), [0, 1], "ranks 0, 1 by SLURM_PROCID, although RANK says another"),
        ((0, 0), [4, 5], "SLURM_PROCID says rank 0 for 2 ranks: not used"),
    ],
)
def test_variables_that_disagree_are_named(
    tmp_path: Path, slurm: tuple[int, int], ranks: list[int], said: str
) -> None:
    paths = []
    for place, job in enumerate(slurm):
        synth = Synth(tmp_path / f"{'ab'[place]}.sqlite").gpu(0, "Test GPU").session(STEP, utc=UTC)
        for text in (f"SLURM_PROCID={job}", f"RANK={4 + place}"):
            synth.meta("PROCESS_0:ENVIRONMENT_VARIABLE", text, capture=True)
        paths.append(synth.process(1, "p").kernel("k", 0, US + place).write())
    fleet = run_fleet(paths)
    assert [member.rank for member in fleet.members] == ranks
    assert said in fleet.notes


def test_a_file_of_ranks_overrides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = Run(ranks=3).write(tmp_path)
    told = tmp_path / "ranks.txt"
    told.write_text("# mine\nreport_0.sqlite 5\n\nreport_1.sqlite   4\n")
    names = [str(path) for path in paths]
    fleet = run_fleet(paths, given=read_ranks(str(told), names))
    assert [(m.rank, m.file, m.source) for m in fleet.members] == [
        (2, "report_2.sqlite", "SLURM_PROCID"),
        (4, "report_1.sqlite", GIVEN),
        (5, "report_0.sqlite", GIVEN),
    ]
    assert cli.main(["fleet", *names, "--ranks", str(told), "--section", "reports"]) == 0
    assert GIVEN in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("report_9.sqlite 1", "line 1: no report of the fleet has the name"),
        ("report_0.sqlite one", "line 1: not a report and its ranks"),
        ("report_0.sqlite 1\nreport_1.sqlite 0-2", "gives rank 1 to more than one"),
        (".sqlite 1", "no report of the fleet has"),
    ],
)
def test_a_file_of_ranks_that_cannot_be_meant_is_refused(
    tmp_path: Path, text: str, match: str
) -> None:
    told = tmp_path / "ranks.txt"
    told.write_text(text)
    with pytest.raises(UsageError, match=match):
        read_ranks(str(told), ["/a/report_0.sqlite", "/a/report_1.sqlite"])


def test_as_many_ranks_are_given_as_there_are(tmp_path: Path) -> None:
    path = one_process(tmp_path / "node.sqlite", Run(ranks=4))
    given = {str(path): (8, 9, 10, 11)}
    assert [m.rank for m in run_fleet([path], given=given).members] == [8, 9, 10, 11]
    with pytest.raises(UsageError, match="holds 4 ranks, 2 are given"):
        run_fleet([path], given={str(path): (0, 1)})


def test_no_report_is_no_fault() -> None:
    assert reduce([], Options()).members == ()


@pytest.mark.parametrize(
    ("host", "variables", "told"),
    [
        ("gpu-4", ("SLURM_PROCID=0", "SLURMD_NODENAME=gpu-7"), True),
        ("GPU-7.cluster.example", ("SLURM_PROCID=0", "SLURMD_NODENAME=gpu-7"), False),
        ("gpu-4", ("OMPI_COMM_WORLD_RANK=0", "SLURM_PROCID=0", "SLURMD_NODENAME=gpu-7"), False),
    ],
)
def test_a_host_that_slurm_calls_otherwise_is_named(
    tmp_path: Path, host: str, variables: tuple[str, ...], told: bool
) -> None:
    """Under mpirun in a job of Slurm's all ranks have the variables of the job's script."""
    synth = Synth(tmp_path / "a.sqlite").gpu(0, "Test GPU").process(7, "python3")
    synth.environment("Hostname", host)
    for text in variables:
        synth.meta("PROCESS_0:ENVIRONMENT_VARIABLE", text, capture=True)
    notes = run_fleet([synth.kernel("k", 10, 20).write()]).notes
    said = "SLURMD_NODENAME says another: gpu-4 and gpu-7 of rank 0"
    assert any(note.endswith(said) for note in notes) == told
