from __future__ import annotations

from typing import Any

import pytest

from nsys_tui.capture.launchers import Target
from nsys_tui.capture.plan import make_plan
from nsys_tui.capture.scripts import typed_command
from nsys_tui.capture.targets import all_targets, check_host, checked, find_target, from_snapshot
from nsys_tui.config import Config, TargetConfig
from nsys_tui.errors import ConfigError, UsageError
from nsys_tui.redaction import looks_secret


@pytest.mark.parametrize(
    "host",
    ["-oProxyCommand=touch pwned", "a b", "a;b", "$(x)", "", "a\nb", "-", "`x`", "a'b", "ssh://a"],
)
def test_hosts_that_could_be_an_option_or_a_command_are_refused(host: str) -> None:
    with pytest.raises(UsageError):
        check_host(host)


@pytest.mark.parametrize(
    "host", ["gpu-box", "user@host", "10.0.0.1", "user@[fe80::1%eth0]", "a.b.c", "h_1"]
)
def test_usual_hosts_are_accepted(host: str) -> None:
    assert check_host(host) == host


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"host": "-oProxyCommand=x"}, "host"),
        ({"launcher": "docker", "tables": {"container": {"name": "-x"}}}, "container.name"),
        (
            {"launcher": "docker", "tables": {"container": {"name": "c", "user": "u v"}}},
            "container.user",
        ),
        ({"launcher": "docker"}, "container.name is missing"),
        ({"launcher": "kubectl"}, "kubernetes.pod is missing"),
        (
            {"launcher": "kubectl", "tables": {"kubernetes": {"pod": "--as=root"}}},
            "kubernetes.pod",
        ),
        (
            {"launcher": "kubectl", "tables": {"kubernetes": {"context": "-c", "pod": "p"}}},
            "kubernetes.context",
        ),
        ({"env": {"A-B": "x"}}, "A-B"),
        ({"env_from": ("A B",)}, "A B"),
    ],
)
def test_bad_names_are_refused_with_file_and_key(settings: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked("t", TargetConfig(**settings), "/etc/c.toml")
    assert "/etc/c.toml" in caught.value.title
    assert "targets.t" in caught.value.title
    assert key in caught.value.title


@pytest.mark.parametrize(
    ("settings", "title", "more"),
    [
        ({"launcher": "dokcer"}, "t.launcher must be one of none, mpirun, sbatch,", "dokcer"),
        ({"tables": {"container": {"nam": "x"}}}, "unknown key targets.t.container.nam", "name?"),
        ({"tables": {"contaner": {"name": "x"}}}, "unknown key targets.t.contaner", "container?"),
        ({"tables": {"slurm": {"args": "-n 2"}}}, "t.slurm.args must be a list", "-n 2"),
    ],
)
def test_what_no_launcher_declares_is_refused(
    settings: dict[str, Any], title: str, more: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        checked("t", TargetConfig(**settings), "/etc/c.toml")
    assert caught.value.title.startswith("/etc/c.toml: ")
    assert title in caught.value.title
    assert more in caught.value.message + caught.value.hint


def test_unknown_targets_get_a_near_match() -> None:
    config = Config(targets={"gpu-box": TargetConfig(host="h")})
    with pytest.raises(UsageError) as caught:
        find_target(config, "gpu-bxo")
    assert caught.value.hint == "did you mean gpu-box?"


def test_this_machine_is_always_there() -> None:
    config = Config(targets={"b": TargetConfig(host="h"), "local": TargetConfig(cwd="/x")})
    assert [target.name for target in all_targets(config)] == ["local", "b"]
    assert find_target(config, "local").settings.cwd == "/x"
    assert find_target(Config()).name == "local"


@pytest.mark.parametrize(
    ("settings", "argv"),
    [
        (TargetConfig(), []),
        (TargetConfig(host="h", launcher="srun"), []),
        (
            TargetConfig(launcher="docker", tables={"container": {"name": "c"}}),
            ["docker", "exec", "-i", "c", "sh", "-s"],
        ),
        (
            TargetConfig(launcher="podman", tables={"container": {"name": "c", "user": "1000"}}),
            ["podman", "exec", "-i", "-u", "1000", "c", "sh", "-s"],
        ),
        (
            TargetConfig(
                launcher="kubectl",
                tables={
                    "kubernetes": {"context": "x", "namespace": "n", "pod": "p", "container": "m"}
                },
            ),
            [
                "kubectl",
                "--context",
                "x",
                "exec",
                "-i",
                "-n",
                "n",
                "p",
                "-c",
                "m",
                "--",
                "sh",
                "-s",
            ],
        ),
        (
            TargetConfig(launcher="kubectl", tables={"kubernetes": {"pod": "p"}}),
            ["kubectl", "exec", "-i", "p", "--", "sh", "-s"],
        ),
    ],
)
def test_container_commands(settings: TargetConfig, argv: list[str]) -> None:
    target = Target("t", settings)
    assert target.launcher.shell_argv(target) == argv


def test_a_snapshot_keeps_no_values_of_the_environment() -> None:
    target = Target("t", TargetConfig(host="h", env={"A": "hidden"}, command=("x",)))
    snapshot = target.snapshot()
    assert "hidden" not in repr(snapshot)
    assert snapshot["env"] == ["A"]
    again = from_snapshot(snapshot)
    assert again.settings.command == ("x",)
    assert again.settings.host == "h"


@pytest.mark.parametrize("name", ["WANDB_API_KEY", "HF_TOKEN", "my_password", "AWS_SECRET_ACCESS"])
def test_secret_names(name: str) -> None:
    assert looks_secret(name)


def test_plain_names_are_no_secrets() -> None:
    assert not any(looks_secret(name) for name in ("PATH", "OMP_NUM_THREADS", "CUDA_HOME"))


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (TargetConfig(), "cd /w && nsys profile --output=r ./a.out 'x y'"),
        (
            TargetConfig(env={"A": "1 2"}),
            "cd /w && env 'A=1 2' nsys profile --output=r ./a.out 'x y'",
        ),
        (
            TargetConfig(
                launcher="docker", tables={"container": {"name": "c", "user": "7"}}, env={"A": "1"}
            ),
            "docker exec -i -u 7 -w /w -e A=1 c nsys profile --output=r ./a.out 'x y'",
        ),
        (
            TargetConfig(launcher="kubectl", tables={"kubernetes": {"namespace": "n", "pod": "p"}}),
            'kubectl exec -i -n n p -- sh -c \'cd "$1" && shift && exec "$@"\' sh /w '
            "nsys profile --output=r ./a.out 'x y'",
        ),
        (
            TargetConfig(launcher="srun", tables={"slurm": {"args": ("-n1", "--gres=gpu:1")}}),
            "cd /w && srun -n1 --gres=gpu:1 nsys profile --output=r ./a.out 'x y'",
        ),
        (
            TargetConfig(host="h", preamble="module load gcc"),
            "ssh h 'cd /w && module load gcc && nsys profile --output=r ./a.out '\"'\"'x y'\"'\"''",
        ),
    ],
)
def test_the_command_as_one_would_type_it(settings: TargetConfig, line: str) -> None:
    plan = make_plan(Target("t", settings), ["./a.out", "x y"], cwd="/w", output="r")
    assert typed_command(plan) == line


def test_a_file_on_stdin_is_read_in_the_container() -> None:
    settings = TargetConfig(launcher="docker", tables={"container": {"name": "c"}})
    plan = make_plan(Target("t", settings), ["./a.out"], cwd="/w", output="r", stdin="in")
    inner = "sh -c 'exec \"$@\" < in' sh nsys profile --output=r ./a.out"
    assert typed_command(plan) == f"docker exec -i -w /w c {inner}"
