from __future__ import annotations

import pytest

from nsys_tui.analysis.identity import Identity, digest, from_environment, from_name, merged
from nsys_tui.fleet.ranks import BY_ORDER, decide


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        (
            "profile_77_node_1_rank_13_on_gpu-4",
            Identity(rank=13, node=1, host="gpu-4", job="77"),
        ),
        ("report_big_job991_rank2_on_ip-10-0-3-7", Identity(rank=2, host="ip-10-0-3-7", job="991")),
        ("auto_python_train-worker-3_main_1712345678_9f3a", Identity(host="train-worker-3")),
        ("nsys-report-gpu004-31337", Identity(host="gpu004", pid=31337)),
        ("r_12", Identity(rank=12)),
        ("report.3", Identity(number=3)),
        ("run-17", Identity(number=17)),
        ("report3", Identity()),
        ("heat-a100-2024.5", Identity()),
        ("report.882024.5", Identity(number=5)),
        ("heat-2024.5.3", Identity(number=3)),
        ("heat-2024-5", Identity(number=5)),
        ("profile.1234567", Identity(job="1234567")),
        ("model_rank_3_of_8", Identity(rank=3, world=8)),
        ("local_rank_1_node2", Identity(rank=1, local=1, node=2)),
        ("frankfurt", Identity()),
        ("", Identity()),
    ],
)
def test_naming_schemes_of_launch_scripts_are_read(stem: str, expected: Identity) -> None:
    assert from_name(stem) == expected


def test_host_and_pid_are_told_apart_by_what_the_report_knows() -> None:
    assert from_name("trace-ip-10-0-1-5-4411", "ip-10-0-1-5.ec2.internal") == Identity(
        host="ip-10-0-1-5.ec2.internal", pid=4411
    )
    # A number that is a process of the report is no rank.
    assert from_name("my.run.4411", pids={4411}).number is None
    assert from_name("my_box7-4411", pids={4411}) == Identity(host="box7", pid=4411)


def test_ranks_come_from_the_launcher_closest_to_the_process() -> None:
    found = from_environment(
        ["SLURM_PROCID=0", "OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_SIZE=8", "SLURM_NODEID=1"]
    )
    assert (found.rank, found.world, found.node) == (5, 8, 1)
    assert found.variable == "OMPI_COMM_WORLD_RANK"
    assert found.others == ((0, "SLURM_PROCID"),)


def test_a_whole_environment_in_one_text_is_split() -> None:
    for separator in ("\n", "\0", "\r\n"):
        text = separator.join(["HOME=/root", "PMI_RANK=3", "PMI_SIZE=4", "PMI_LOCAL_RANK=1"])
        found = from_environment([text])
        assert (found.rank, found.world, found.local) == (3, 4, 1)


def test_nothing_but_numbers_of_ranks_leaves_an_environment() -> None:
    secret = ["API_TOKEN=12345", "SLURM_PROCID=0x12", "RANK=hunter2"]
    assert from_environment(secret) == Identity()
    (job,) = from_environment(["CI_JOB_ID=99"]).jobs
    assert job == ("CI_JOB_ID", digest("99"))


def test_what_one_source_leaves_open_another_fills() -> None:
    first, second = Identity(rank=1, host="a"), Identity(rank=2, world=8, host="b")
    assert merged(first, second) == Identity(rank=1, world=8, host="a")


def test_the_surest_evidence_wins() -> None:
    assert decide([((3, "MPI"), (0, "file name")), ((1, "MPI"),)]) == [(3, "MPI"), (1, "MPI")]


def test_evidence_that_all_share_tells_nothing() -> None:
    job_script = (0, "SLURM_PROCID")
    members = [(job_script, (1, "file name")), (job_script, (0, "file name"))]
    assert decide(members) == [(1, "file name"), (0, "file name")]


def test_what_a_source_says_of_several_takes_no_rank_from_one_that_another_tells() -> None:
    """NCCL numbers groups of two: its 1 of ranks 3 and 7 is not file 1's."""
    nccl, names = {0: 0, 3: 1, 4: 0, 7: 1}, [(rank, "file name") for rank in range(8)]
    members = [(*([(nccl[n], "NCCL")] if n in nccl else []), names[n]) for n in range(8)]
    assert decide(members) == names


def test_without_evidence_files_are_numbered_in_order_around_the_known() -> None:
    members = [(), ((0, "MPI"),), (), ((2, "MPI"),)]
    expected = [(1, BY_ORDER), (0, "MPI"), (3, BY_ORDER), (2, "MPI")]
    assert decide(members) == expected


def test_every_process_gets_a_rank_of_its_own_whatever_the_evidence() -> None:
    same = tuple((0, f"way {n}") for n in range(3))
    assert sorted(rank for rank, _ in decide([same] * 5)) == [0, 1, 2, 3, 4]
    assert decide([]) == []
