from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest

from nsys_tui.capture.launchers import Target
from nsys_tui.capture.options.presets import presets
from nsys_tui.capture.plan import (
    Form,
    form_from_plan,
    make_plan,
    plan_from_form,
    plan_from_json,
)
from nsys_tui.config import CaptureConfig, Config, TargetConfig
from nsys_tui.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

REMOTE = Target("box", TargetConfig(host="gpu-box"))


def test_argv_is_nsys_its_options_and_the_program() -> None:
    plan = make_plan(
        REMOTE,
        ["python", "train.py", "--steps", "20"],
        options={"trace": ("cuda", "nvtx"), "cuda-graph-trace": "node", "delay": "5"},
        extra=["--isr=true"],
        output="r1",
    )
    assert plan.argv("/opt/nsys") == [
        "/opt/nsys", "profile", "--trace=cuda,nvtx", "--cuda-graph-trace=node", "--delay=5",
        "--isr=true", "--output=r1", "python", "train.py", "--steps", "20",
    ]  # fmt: skip


def test_command_text_reads_back_as_the_argv() -> None:
    plan = make_plan(REMOTE, ["sh", "-c", "echo 'a b'; x=$(y)"], options={"trace": "cuda"})
    assert shlex.split(plan.command_text()) == plan.argv()


def test_target_preset_and_request_in_that_order() -> None:
    settings = TargetConfig(
        host="h", cwd="/t", command=("prog",), env={"A": "1", "B": "1"},
        options={"trace": ("cuda",), "sample": "none", "backtrace": "lbr"},
    )  # fmt: skip
    plan = make_plan(
        Target("t", settings),
        preset="hpc mpi",
        options={"trace": ("nvtx",), "backtrace": ""},
        env={"B": "2"},
    )
    assert plan.options == {"trace": ("nvtx",), "sample": "process-tree"}
    assert plan.env == {"A": "1", "B": "2"}
    assert (plan.program, plan.cwd) == (("prog",), "/t")


def test_an_older_nsys_is_given_its_own_names() -> None:
    plan = make_plan(
        REMOTE, ["true"], options={"gpu-metrics-devices": "cuda-visible"}, functions_json="[]"
    )
    known = ("gpu-metrics-device", "python-nvtx-annotations")
    words = plan.argv(job_dir="/j", known=known)
    assert "--gpu-metrics-device=all" in words
    assert "--python-nvtx-annotations=/j/functions.json" in words
    assert "--gpu-metrics-devices=cuda-visible" in plan.argv()
    plan = make_plan(REMOTE, ["true"], extra=["--gpu-metrics-devices=0"])
    assert "--gpu-metrics-device=0" in plan.argv(known=known)


def test_an_option_passed_on_wins_since_nsys_takes_it_once() -> None:
    plan = make_plan(REMOTE, ["true"], options={"trace": "osrt"}, extra=["-t", "nvtx"])
    assert plan.argv()[2:4] == ["-t", "nvtx"]


def test_a_report_without_name_goes_into_the_job_folder() -> None:
    plan = make_plan(REMOTE, ["/usr/bin/python3", "-u", "my train.py"])
    assert plan.argv(job_dir="/jobs/ID")[-4] == "--output=/jobs/ID/my_train"


def test_several_ranks_get_a_name_each() -> None:
    slurm = TargetConfig(host="h", launcher="srun", tables={"slurm": {"args": ("-n", "4")}})
    plan = make_plan(Target("c", slurm), ["./a.out"])
    assert plan.processes == 4
    assert plan.argv(job_dir="/j")[-2] == "--output=/j/a.out.%q{SLURM_PROCID}"


@pytest.mark.parametrize(
    "args", [("-n", "4"), ("--hostfile", "h", "-np", "4"), ("-np", "1", "--np", "4")]
)
def test_each_mpi_tells_a_rank_its_number(args: tuple[str, ...]) -> None:
    place = Target("c", TargetConfig(launcher="mpirun", tables={"mpi": {"args": args}}))
    plan = make_plan(place, ["./a.out"])
    assert plan.processes == 4
    told = ["sh", "-c", 'echo "$NSYS_TUI_RANK"']
    command = place.launcher.command(place, "ID", told)
    assert command[: len(args) + 1] == ["mpirun", *args]
    for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"):
        env = {"PATH": os.environ["PATH"], name: "3"}
        assert subprocess.check_output(command[len(args) + 1 :], env=env) == b"3\n"
    assert plan.argv(job_dir="/j")[-2] == "--output=/j/a.out.%q{NSYS_TUI_RANK}"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"program": []}, "no program to profile"),
        ({"program": ["a\0b"]}, "NUL"),
        ({"preset": "nope"}, "no preset is called 'nope'"),
        ({"extra": ["stats"]}, "cannot be passed on"),
        ({"extra": ["--output=/x"]}, "cannot be passed on"),
        ({"extra": ["-o"]}, "--output cannot be passed on"),
        ({"extra": ["-o/tmp/x"]}, "--output cannot be passed on"),
        ({"extra": ["--env-var", "A=1"]}, "--env-var cannot be passed on"),
        ({"extra": ["-s", "none", "stats"]}, "'stats' cannot be passed on"),
        ({"extra": ["--"]}, "'--' cannot be passed on"),
        ({"output": "a\nb"}, "line break"),
        ({"env": {"API_TOKEN": "x"}}, "a secret cannot be given as a plain value"),
        ({"env": {"A B": "x"}}, "is no name of an environment variable"),
        ({"env_from": ["X;rm"]}, "is no name of an environment variable"),
        ({"functions_trace_file": "/no/such.json"}, "cannot be read"),
    ],
)
def test_refused_plans(change: dict[str, object], says: str) -> None:
    arguments: dict[str, object] = {"program": ["true"]} | change
    with pytest.raises((UsageError, ConfigError)) as caught:
        make_plan(REMOTE, **arguments)  # type: ignore[arg-type]
    assert says in str(caught.value)


def test_options_passed_on_are_judged_like_those_of_the_form() -> None:
    typed = ["--stop-on-range-end=true", "-s", "cpu", "-tcuda,nvtx", "--isr", "--cpuctxsw"]
    plan = make_plan(REMOTE, ["true"], extra=typed)
    assert plan.argv()[2:8] == typed
    told = {(advice.severity, advice.name): advice for advice in plan.advice()}
    assert told["warning", "stop-on-range-end"].remedy == "use --capture-range-end=stop"
    assert "old name" in told["note", "sample"].text
    assert told["error", "cpuctxsw"].text == "--cpuctxsw has no value"
    assert not [option for _, option in told if option in ("trace", "isr")]


def test_a_plan_survives_its_record() -> None:
    settings = TargetConfig(host="h", env={"PLAIN": "v"}, env_from=("T",))
    plan = make_plan(
        Target("t", settings),
        ["p", "\udcff"],
        options={"trace": ("cuda",)},
        extra=["--x=1"],
        cwd="c",
    )
    again = plan_from_json(plan.to_json())
    assert again.argv() == plan.argv()
    assert (again.env, again.env_from, again.cwd) == (plan.env, plan.env_from, plan.cwd)


def test_this_machine_runs_where_the_user_is() -> None:
    assert make_plan(Target("local"), ["true"]).cwd == os.getcwd()
    assert make_plan(REMOTE, ["true"]).cwd == ""


def test_form_to_plan_and_back() -> None:
    config = Config(targets={"box": TargetConfig(host="gpu-box")})
    form = Form(
        program="python 'my train.py' --name \"a b\"",
        target="box",
        cwd="~/x",
        options={"trace": ("cuda", "nvtx")},
        extra="--isr=true",
        env={"A": "1"},
    )
    plan = plan_from_form(form, config)
    assert plan.program == ("python", "my train.py", "--name", "a b")
    assert plan_from_form(form_from_plan(plan), config) == plan


def test_a_form_with_an_open_quote_is_told_which_field() -> None:
    with pytest.raises(UsageError, match="program: No closing quotation"):
        plan_from_form(Form(program="python 'x"), Config())


def test_every_preset_is_free_of_errors() -> None:
    for preset in presets().values():
        plan = make_plan(REMOTE, ["true"], preset=preset.name)
        assert [item for item in plan.advice() if item.severity == "error"] == [], preset.name


def test_a_users_preset_wins() -> None:
    config = Config(capture=CaptureConfig(presets={"inference": {"trace": ("nvtx",)}}))
    plan = make_plan(REMOTE, ["true"], preset="inference", config=config)
    assert plan.options == {"trace": ("nvtx",)}


def test_functions_file_is_read_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text('[{"module": "__main__", "functions": ["f"]}]')
    with pytest.raises(UsageError, match="belongs to __main__"):
        make_plan(REMOTE, ["true"], options={"python-functions-trace": str(path)})
    path.write_text('[{"module": "m", "functions": ["f"]}]')
    plan = make_plan(REMOTE, ["true"], options={"python-functions-trace": str(path)})
    assert "--python-functions-trace=/j/functions.json" in plan.argv(job_dir="/j")


def test_a_function_written_otherwise_is_told_how() -> None:
    with pytest.raises(UsageError, match="as module:function") as raised:
        make_plan(REMOTE, ["true"], options={"python-functions-trace": "model.GPT.forward"})
    first, second, third = raised.value.one_line.split("; ")
    assert first == "model.GPT.forward: cannot be read"
    assert second == "No such file or directory"
    assert third == raised.value.hint
