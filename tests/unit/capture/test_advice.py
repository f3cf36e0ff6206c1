from __future__ import annotations

from typing import Any

import pytest

from nsys_tui.capture.options.advice import advise
from nsys_tui.capture.options.draft import Check, Draft
from nsys_tui.capture.options.functions_trace import make
from nsys_tui.capture.options.target_facts import Facts, OwnOption, parse_version, refused_scopes


def given(options: dict[str, Any], **rest: Any) -> list[Check]:
    return advise(Draft(options, **{"program": ("./a.out",), **rest}))


FUNCTIONS = make(["train:step"])
KNOWN = {"trace": OwnOption()}
OWN = {
    "backtrace": OwnOption("lbr", ("lbr", "fp", "none")),
    "gpuctxsw": OwnOption("false", ("true", "false")),
    "sample": OwnOption("none", ("process-tree", "none")),
    "trace": OwnOption("nvtx", ("cuda", "nvtx")),
    "cpuctxsw": OwnOption("none"),
}

OF_2022 = Facts((2022, 4, 2))

CASES: list[tuple[dict[str, Any], dict[str, Any], str, str, str]] = [
    # options, rest of the draft, severity, option, part of the text or remedy
    ({"capture-range": "nvtx"}, {}, "error", "nvtx-capture", "needs the name of the range"),
    ({"nvtx-capture": "s@*"}, {}, "warning", "nvtx-capture", "add --capture-range=nvtx"),
    ({"stop-on-exit": "false"}, {}, "warning", "stop-on-exit", "add --duration"),
    (
        {"capture-range": "nvtx", "nvtx-capture": "s@*", "delay": "5"},
        {},
        "warning",
        "delay",
        "be the range open or not",
    ),
    (
        {"capture-range": "nvtx", "nvtx-capture": "s@*"},
        {},
        "warning",
        "nvtx-capture",
        "NSYS_NVTX_PROFILER_REGISTER_ONLY=0",
    ),
    (
        {"capture-range": "nvtx", "nvtx-capture": "step *@*"},
        {},
        "warning",
        "nvtx-capture",
        "step * is no pattern",
    ),
    ({"duration": "1"}, {}, "warning", "duration", "nsys counts the second or more"),
    ({"capture-range-end": "stop"}, {}, "error", "capture-range-end", "add --capture-range"),
    ({"capture-range-end": "stop:2"}, {}, "error", "capture-range-end", "not understood"),
    ({"capture-range": "cudaProfilerApi"}, {}, "note", "capture-range-end", "program is ended"),
    ({"capture-range-end": "stoop"}, {}, "error", "capture-range-end", "not understood"),
    ({"capture-range-end": "repeat-shutdown"}, {}, "error", "capture-range-end", "needs a count"),
    ({"capture-range-end": "repeat:3:defer"}, {}, "note", "capture-range-end", "report of its own"),
    ({"stop-on-range-end": "true"}, {}, "warning", "stop-on-range-end", "--capture-range-end=stop"),
    (
        {"stop-on-range-end": "false"},
        {},
        "warning",
        "stop-on-range-end",
        "--capture-range-end=none",
    ),
    (
        {"gpu-metrics-device": "all"},
        {},
        "warning",
        "gpu-metrics-device",
        "--gpu-metrics-devices=all",
    ),
    ({"sample": "cpu"}, {}, "note", "sample", "process-tree"),
    ({"duration": "10"}, {}, "note", "duration", "--kill=none"),
    ({"duration": "400"}, {}, "warning", "duration", "5 minutes"),
    ({"cuda-graph-trace": "node"}, {}, "note", "cuda-graph-trace", "costs time"),
    ({"cuda-graph-trace": "graph"}, {}, "note", "cuda-graph-trace", "node shows them"),
    ({"trace": "nvtx"}, {}, "warning", "trace", "without cuda"),
    ({"trace": "none,cuda"}, {}, "error", "trace", "none cannot stand"),
    ({"trace": "cuda,nvtxx"}, {}, "warning", "trace", "did you mean nvtx?"),
    (
        {"nvtx-domain-include": "a", "nvtx-domain-exclude": "b"},
        {},
        "error",
        "nvtx-domain-include",
        "cannot stand together",
    ),
    (
        {"cudabacktrace": "all", "sample": "none"},
        {},
        "warning",
        "cudabacktrace",
        "nothing without CPU sampling",
    ),
    ({"python-backtrace": "cuda"}, {}, "warning", "python-backtrace", "--cudabacktrace=all"),
    ({"cpuctxsw": "none"}, {}, "note", "cpuctxsw", "value of --sample"),
    ({}, {"facts": Facts(paranoid=4)}, "warning", "sample", "perf_event_paranoid is 4"),
    ({}, {"facts": Facts(paranoid=2)}, "note", "sample", "user space only"),
    (
        {"gpu-metrics-devices": "all"},
        {"facts": Facts(gpu_admin_only=True)},
        "warning",
        "gpu-metrics-devices",
        "administrators",
    ),
    (
        {"gpu-metrics-devices": "all"},
        {"processes": 4},
        "warning",
        "gpu-metrics-devices",
        "per node",
    ),
    ({}, {"processes": 4, "output": "r"}, "error", "output", "%h.%p"),
    ({}, {"program": ("/usr/bin/torchrun", "x.py")}, "note", "program", "torchrun"),
    ({}, {"program": ("srun", "-n4", "./a.out")}, "warning", "program", "hold srun alone"),
    ({}, {"program": ("-x",)}, "error", "program", "./-x"),
    ({}, {"program": ("p", "--api-key=sk-0123456789abcdefghij")}, "warning", "program", "secret"),
    ({}, {"program": ("p", "hf_" + "a" * 24)}, "warning", "program", "secret"),
    ({}, {"env_from": ("WANDB_API_KEY",)}, "note", "env_from", "WANDB_API_KEY"),
    ({"stats": "true"}, {}, "note", "stats", "end of the run"),
    ({"stats": "yes"}, {}, "error", "stats", "true or false"),
    ({"delay": "5s"}, {}, "error", "delay", "takes a number"),
    ({"delay": "0.5"}, {"facts": OF_2022}, "error", "delay", "nsys 2022.4.2 takes whole seconds"),
    ({"osrt-threshold": "0"}, {"facts": OF_2022}, "error", "osrt-threshold", "takes no 0"),
    ({"osrt-threshold": "1.5"}, {}, "error", "osrt-threshold", "takes a whole number"),
    ({"trace": ""}, {}, "error", "trace", "has no value"),
    ({"tarce": "cuda"}, {}, "warning", "tarce", "did you mean --trace?"),
    ({"backtrace": "dwarf"}, {}, "warning", "backtrace", "large"),
    ({"cuda-um-gpu-page-faults": "true"}, {}, "warning", "cuda-um-gpu-page-faults", "slows"),
    ({"force-overwrite": "true"}, {}, "warning", "force-overwrite", "lost"),
    (
        {"pytorch": "functions-trace"},
        {"facts": Facts(options=KNOWN)},
        "error",
        "pytorch",
        "does not know --pytorch",
    ),
    (
        {"gpu-metrics-devices": "all"},
        {"facts": Facts(options={"gpu-metrics-device": OwnOption()})},
        "note",
        "gpu-metrics-devices",
        "is called --gpu-metrics-device there, and given so",
    ),
    (
        {"backtrace": "auto"},
        {"facts": Facts((2023, 4, 4), OWN)},
        "warning",
        "backtrace",
        "--backtrace=auto: nsys 2023.4.4 does not list that value",
    ),
    (
        {"gpuctxsw": "yes"},
        {"facts": Facts(options=OWN)},
        "warning",
        "gpuctxsw",
        "does not list that value",
    ),
    ({"show-output": "false"}, {}, "note", "show-output", "log"),
    (
        {"sample": "process-tree"},
        {"facts": Facts(root=True, refused_scopes=frozenset({"process-tree"}))},
        "warning",
        "sample",
        "nsys status -e there: CPU profiling (process-tree) fails",
    ),
    (
        {},
        {"functions_json": FUNCTIONS, "program": ("python", "src/train.py")},
        "warning",
        "python-functions-trace",
        "train is the script itself",
    ),
    (
        {},
        {"functions_json": FUNCTIONS, "facts": Facts(options=KNOWN)},
        "error",
        "python-functions-trace",
        "does not know it",
    ),
]


@pytest.mark.parametrize(("options", "rest", "severity", "option", "says"), CASES)
def test_each_clash_is_explained(
    options: dict[str, Any], rest: dict[str, Any], severity: str, option: str, says: str
) -> None:
    found = [a for a in given(options, **rest) if (a.severity, a.name) == (severity, option)]
    assert any(says in f"{advice.text} {advice.remedy}" for advice in found), given(options, **rest)


@pytest.mark.parametrize(
    ("options", "rest", "option"),
    [
        ({}, {}, "trace"),
        (
            {"capture-range": "cudaProfilerApi", "capture-range-end": "stop"},
            {},
            "capture-range-end",
        ),
        (
            {"capture-range": "nvtx", "nvtx-capture": "s", "trace": "cuda,nvtx"},
            {"env": {"NSYS_NVTX_PROFILER_REGISTER_ONLY": "0"}},
            "nvtx-capture",
        ),
        ({"duration": "10", "kill": "none"}, {}, "duration"),
        ({"duration": "10", "stop-on-exit": "false"}, {}, "stop-on-exit"),
        ({"duration": "10", "kill": "none"}, {"facts": OF_2022}, "duration"),
        ({"osrt-threshold": "1"}, {"facts": OF_2022}, "osrt-threshold"),
        ({"osrt-threshold": "0"}, {"facts": Facts((2023, 4, 4))}, "osrt-threshold"),
        ({"delay": "0.5"}, {"facts": Facts((2023, 4, 4))}, "delay"),
        ({"trace": "nvtx", "capture-range": "cudaProfilerApi"}, {}, "trace"),
        ({}, {"facts": Facts(paranoid=4, root=True)}, "sample"),
        ({"sample": "none", "cpuctxsw": "none"}, {"facts": Facts(paranoid=4)}, "sample"),
        ({"nccl-trace": "all"}, {"facts": Facts(nsys_version=(2025, 6, 0))}, "nccl-trace"),
        ({"backtrace": "lbr", "gpuctxsw": "true"}, {"facts": Facts(options=OWN)}, "backtrace"),
        ({"trace": "cuda:x,nvtx"}, {"facts": Facts(options=OWN)}, "trace"),
        ({"trace": "cuda"}, {"facts": Facts(options=OWN, paranoid=4)}, "sample"),
        ({}, {"processes": 4, "output": "r.%q{SLURM_PROCID}"}, "output"),
        ({}, {"program": ("python", "train.py", "--lr", "0.1")}, "program"),
    ],
)
def test_what_is_right_is_not_remarked_on(
    options: dict[str, Any], rest: dict[str, Any], option: str
) -> None:
    assert [advice for advice in given(options, **rest) if advice.name == option] == []


def test_errors_come_first() -> None:
    found = given({"duration": "400", "stats": "true", "trace": "none,cuda"})
    order = [advice.severity for advice in found]
    assert order == sorted(order, key=["error", "warning", "note"].index)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVIDIA Nsight Systems version 2024.5.1.113-245134619542v0", (2024, 5, 1)),
        ("NVIDIA Nsight Systems version 2021.3", (2021, 3, 0)),
        ("nsys: command not found", None),
    ],
)
def test_versions(text: str, version: tuple[int, int, int] | None) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize(
    ("lines", "refused"),
    [
        (["CPU Profiling Environment (process-tree): OK"], set()),
        (["CPU Profiling Environment (process-tree): Fail"], {"process-tree"}),
        (
            ["CPU Profiling Environment (process-tree): OK",
             "CPU Profiling Environment (system-wide): FAIL"], {"system-wide"},
        ),
        (["Linux Kernel Paranoid Level = 4: Fail"], set()),
    ],
)  # fmt: skip
def test_scopes_that_nsys_calls_a_failure(lines: list[str], refused: set[str]) -> None:
    assert refused_scopes(lines) == refused
