from __future__ import annotations

import time
from typing import Any

import pytest

from nsys_tui.capture.launchers import Target
from nsys_tui.capture.options.table import OPTIONS
from nsys_tui.capture.plan import make_plan
from nsys_tui.capture.preflight import checks, exit_code, read_probe
from nsys_tui.capture.supervisor import Answer
from nsys_tui.config import TargetConfig

GOOD = {
    "host": "box", "system": "Linux x86_64", "user": "me", "uid": "1000", "paranoid": "2",
    "tools": "setsid sha256sum srun sbatch squeue scancel", "head": "yes", "jobs": "/j",
    "free": str(10**11), "cwd": "/w", "cwd_free": str(10**11), "preamble": "0",
    "nsys": "/opt/nsys", "version": "NVIDIA Nsight Systems version 2025.1.1.0",
}  # fmt: skip


def lines(target: TargetConfig | None = None, **changes: str | None) -> dict[str, tuple[str, str]]:
    """Findings by name, for a machine that differs from a good one in these answers."""
    values = {"clock": str(int(time.time())), **GOOD, **changes}
    answers = [Answer(key, value) for key, value in values.items() if value is not None]
    found = checks(read_probe(answers), Target("t", target or TargetConfig()))
    return {check.name: (check.severity, f"{check.text}; {check.remedy}") for check in found}


def test_a_good_machine() -> None:
    found = lines()
    assert {severity for severity, _ in found.values()} == {"ok"}
    assert found["nsys"][1].startswith("2025.1.1 at /opt/nsys")


@pytest.mark.parametrize(
    ("changes", "name", "severity", "says"),
    [
        ({"cwd": None, "cwd_missing": "/w"}, "cwd", "error", "no such folder there: /w"),
        ({"cwd_readonly": ""}, "cwd", "warning", "cannot be written"),
        ({"nsys": None, "no_nsys": ""}, "nsys", "error", "/opt/nvidia/nsight-systems*"),
        (
            {"broken": "nsys: libelf.so.1: lost"},
            "nsys",
            "error",
            "does not start there: nsys: libelf",
        ),
        ({"preamble": "3"}, "preamble", "error", "ended with status 3"),
        ({"jobs": None, "jobs_bad": "/j"}, "jobs folder", "error", "jobs_dir"),
        ({"free": "1000"}, "disk", "warning", "1.00 kB free"),
        ({"tmp_free": "300 /t m"}, "temporary folder", "warning", "kB free: nsys may hang"),
        ({"paranoid": "4"}, "CPU sampling", "warning", "perf_event_paranoid is 4"),
        ({"paranoid": "4", "uid": "0"}, "CPU sampling", "ok", "(root)"),
        ({"gpu_admin_only": "1"}, "GPU metrics", "warning", "administrators only"),
        ({"gpu_admin_only": "0"}, "GPU metrics", "ok", "open to all"),
        ({"status": "CPU Profiling Environment: Fail"}, "nsys status", "warning", "Fail"),
        ({"tools": "sha256sum"}, "setsid", "error", "neither setsid"),
        ({"tools": "setsid"}, "sha256sum", "warning", "cksum"),
        ({"head": None}, "head -c", "warning", "byte by byte"),
        ({"clock": "1000"}, "clock", "warning", "differs from ours"),
        ({"locked": "20260101-000000-aaaaaa me"}, "lock", "warning", "a capture runs there"),
    ],
)
def test_each_lack_is_told(changes: dict[str, Any], name: str, severity: str, says: str) -> None:
    found = lines(**changes)
    assert found[name][0] == severity
    assert says in found[name][1]


def test_slurm_needs_its_tools_and_nsys_only_on_the_nodes() -> None:
    target = TargetConfig(launcher="sbatch", tables={"slurm": {}})
    found = lines(target, tools="setsid sha256sum squeue", nsys=None)
    assert found["sbatch"] == ("error", "not found there: sbatch, scancel; ")
    assert found["nsys"][0] == "warning"


def test_the_exit_status_follows_the_first_error() -> None:
    def status(**changes: str | None) -> int:
        answers = [Answer(k, v) for k, v in {**GOOD, **changes}.items() if v is not None]
        return exit_code(checks(read_probe(answers), Target("t")))

    assert status(nsys=None) == 69
    assert status(cwd=None, cwd_missing="/w", nsys=None) == 74


def test_a_plan_is_checked_against_that_nsys() -> None:
    target = Target("t", TargetConfig(host="h"))
    plan = make_plan(target, ["true"], options={"pytorch": "functions-trace"})
    answers = [Answer(k, v) for k, v in GOOD.items()]
    answers += [Answer("help", f"\t--{name}=") for name in OPTIONS if name != "pytorch"]
    found = checks(read_probe(answers), target, plan)
    told = [check for check in found if check.name == "pytorch"]
    assert told[0].severity == "error"
    assert "nsys 2025.1.1 does not know --pytorch" in told[0].text


def test_what_the_far_side_says_cannot_reach_the_terminal() -> None:
    found = lines(host="box\x1b[31m", cwd_missing="\x07", cwd=None)
    assert "\x1b" not in str(found)
    assert "\x07" not in str(found)
