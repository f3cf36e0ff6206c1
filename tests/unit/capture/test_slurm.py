from __future__ import annotations

import pytest

from nsys_tui.capture.launchers.slurm import (
    argument,
    batch_script,
    expected_processes,
    lint,
    parse_job,
    seconds,
)


@pytest.mark.parametrize(
    ("args", "count"),
    [
        ([], 1),
        (["-n", "4"], 4),
        (["-n4"], 4),
        (["--ntasks=8"], 8),
        (["--ntasks", "8"], 8),
        (["-N2", "--ntasks-per-node=4"], 8),
        (["--nodes=2-2", "--ntasks-per-node", "3"], 6),
        (["--nodes=3"], 3),
        (["--nodelist=n1", "--nice"], 1),
        (["-n", "2", "-n", "3"], 3),
    ],
)
def test_expected_processes(args: list[str], count: int) -> None:
    assert expected_processes(args) == count


@pytest.mark.parametrize(
    ("limit", "expected"),
    [("20", 1200), ("20:30", 1230), ("1:00:00", 3600), ("2-0", 172800), ("1-2:03:04", 93784),
     ("1-2", 93600), ("infinite", None)],
)  # fmt: skip
def test_time_limits(limit: str, expected: int | None) -> None:
    assert seconds(limit) == expected


def test_the_last_spelling_of_an_argument_counts() -> None:
    assert argument(["--time=10", "-t", "20"], "time") == "20"


def test_a_script_gets_right_directives() -> None:
    text, rest = batch_script(["--partition=gpu", "--gres=gpu:4", "--time=00:20:00"], "srun x\n")
    assert text.splitlines() == [
        "#!/bin/sh", "#SBATCH --partition=gpu", "#SBATCH --gres=gpu:4", "#SBATCH --time=00:20:00",
        "srun x",
    ]  # fmt: skip
    assert rest == []
    assert lint(text) == []


def test_arguments_that_no_directive_can_carry_stay_on_the_command_line() -> None:
    args = ["--comment=a b", "--partition=gpu"]
    assert batch_script(args, "x\n") == ("#!/bin/sh\nx\n", args)


@pytest.mark.parametrize("word", ["#SABTCH", "#SBTACH", "#sbatch", "# SBATCH", "#SBACTH"])
def test_misspelt_directives_are_flagged(word: str) -> None:
    [fault] = lint(f"#!/bin/bash\n{word} --time=10\necho x\n")
    assert fault.startswith("line 2:")
    assert "Slurm ignores it" in fault


def test_comments_are_no_directives() -> None:
    assert (
        lint("#!/bin/bash\n# SBATCH is explained here\n#SBATCH -n 1\n# a batch - of things\nx\n")
        == []
    )


def test_a_directive_after_the_first_command_is_flagged() -> None:
    [fault] = lint("#!/bin/bash\nmodule load cuda\n#SBATCH --gres=gpu:1\n")
    assert fault == "line 3: #SBATCH after the first command (line 2) is ignored"


@pytest.mark.parametrize(
    "line",
    ["nsys profile srun x", "/opt/nsys profile -o %p --trace=cuda \\\n  -f true srun -n 4 x"],
)
def test_nsys_around_srun_is_flagged(line: str) -> None:
    [fault] = lint(f"#!/bin/sh\n#SBATCH -n 4\n{line}\n")
    assert fault == "line 3: nsys sees srun alone, not its tasks: srun nsys profile ..."


@pytest.mark.parametrize(
    "line",
    [
        "srun nsys profile -o %p x",
        "# nsys profile srun x",
        "nsys profile -o out\nsrun x",
        "nsys profile x && srun y",
        "nsys profile python x.py --launcher srun",
        "nsys profile -o srun x",
    ],
)
def test_nsys_beside_srun_is_not(line: str) -> None:
    assert lint(f"#!/bin/sh\n{line}\n") == []


def test_unknown_options_and_short_limits_are_flagged() -> None:
    faults = lint("#!/bin/sh\n#SBATCH --patition=gpu --time=1\nx\n", needed_s=200)
    assert "did you mean --partition?" in faults[0]
    assert "a time limit of 60 s, and the capture needs 200 s" in faults[1]


@pytest.mark.parametrize(
    ("line", "queued", "over", "words"),
    [
        ("7|PENDING|Resources|", True, False, "waiting for free resources"),
        ("7|PENDING|(JobHeldUser)|", True, False, "held by the user: scontrol release starts it"),
        ("7|PENDING|SomethingNew|", True, False, "SomethingNew"),
        ("7|RUNNING|None|node1", False, False, "running"),
        ("7|CANCELLED by 0|None|", False, True, "the job was cancelled"),
        ("7|TIMEOUT|TimeLimit|n1", False, True, "the job ran into its time limit (TimeLimit)"),
        ("7|NODE_FAIL|None|", False, True, "a node failed"),
        ("7|PREEMPTED|None|", False, True, "the job was pre-empted by another"),
    ],
)
def test_queue_answers(line: str, queued: bool, over: bool, words: str) -> None:
    state = parse_job(line)
    assert (state.job, state.queued, state.failed, state.words) == ("7", queued, over, words)
