"""Figures of the shared logs against the goldens, through the command line as a user gets them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from paths import LOGS, goldens, needs_logs

from nsys_tui.cli import main

pytestmark = needs_logs

SYNTHETIC = "nemo-8rank-synthetic.log"
NCCL_TESTS = "nccl-tests-2.27.7-allreduce-1proc-2gpu.log"
KEYS = ("collective_lines", "per_op", "histogram", "aggregate")


def payload(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["logs", "--format", "json", *arguments]) == 0
    return dict(json.loads(capsys.readouterr().out))


def golden(name: str) -> dict[str, Any]:
    return dict(goldens()["logs"][name]) if LOGS.is_dir() else {}


def whole_files() -> list[tuple[str, dict[str, Any]]]:
    entries = goldens()["logs"].items() if LOGS.is_dir() else ()
    found = [(name, one.get("whole_file", one)) for name, one in entries]
    return [(name, one) for name, one in found if "per_op" in one]


@pytest.mark.parametrize(("name", "expected"), whole_files())
def test_sizes_of_a_whole_file(
    name: str, expected: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    found = payload(capsys, str(LOGS / name), "--calls")
    assert {key: found[key] for key in KEYS} == {key: expected[key] for key in KEYS}
    assert {key: found["files"][0][key] for key in KEYS} == {key: expected[key] for key in KEYS}
    calls = [f"{c['op']} {c['count']} {c['dtype']} {c['bytes']}" for c in found["calls"]]
    if "in_file_order" in expected:
        assert calls == expected["in_file_order"]
    assert len(calls) == expected["collective_lines"]


@pytest.mark.parametrize(
    ("window", "key"),
    [
        (["--steps", "45-49"], "window_iterations_45_to_49_right_ownership"),
        (["--steps", "45-50"], "window_iterations_45_to_50_right_ownership"),
        (["--legacy-window"], "legacy_window_44_lt_state_le_50"),
        (["--legacy-window", "--steps", "45-50"], "legacy_window_44_lt_state_le_50"),
    ],
)
def test_step_windows(window: list[str], key: str, capsys: pytest.CaptureFixture[str]) -> None:
    expected = golden(SYNTHETIC)[key]
    found = payload(capsys, str(LOGS / SYNTHETIC), *window)
    assert {name: found[name] for name in KEYS} == {name: expected[name] for name in KEYS}
    if "lines" in expected:
        held = "steps_whose_collectives_it_really_holds"
        assert found["lines"] == expected["lines"] == 246
        assert found["window"]["step_lines_inside"] == expected["step_lines_inside"]
        assert found["window"][held] == expected[held]
    else:
        assert found["window"]["steps"] == expected["steps"]


def test_one_step_of_one_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    expected = golden(SYNTHETIC)["one_step_one_rank"]
    found = payload(capsys, str(LOGS / SYNTHETIC), "--steps", "47", "--gpu", "3")
    assert {name: found[name] for name in KEYS} == {name: expected[name] for name in KEYS}


@pytest.mark.parametrize(
    ("name", "arguments", "key"),
    [
        (SYNTHETIC, ["--steps", "45-49"], "average_45_to_49"),
        (SYNTHETIC, [], "average_43_to_52"),
        (SYNTHETIC, ["--legacy-window"], "average_45_to_49"),
        ("trainer-nemo-b200-iter45-49.log", ["--steps", "45-49"], "average_45_to_49"),
        ("trainer-nemo-b200-iter45-49.log", [], "average_45_to_49"),
    ],
)
def test_average_step_time_and_tflops(
    name: str, arguments: list[str], key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = golden(name)[key]
    found = payload(capsys, str(LOGS / name), *arguments)["average"]
    assert {part: found[part] for part in expected} == expected


def test_facts_of_the_nccl_tests_log(capsys: pytest.CaptureFixture[str]) -> None:
    expected = golden(NCCL_TESTS)
    found = payload(capsys, str(LOGS / NCCL_TESTS))
    for key in (
        "lines",
        "header_lines",
        "header_not_at_column_0",
        "torn_lines",
        "all_opcount_zero",
        "tuning_lines",
        "nccl_version",
    ):
        assert found[key] == expected[key], key
    fields = ("comm", "rank", "cuda_device", "bus_id", "collective_lines")
    assert [{f: one[f] for f in fields} for one in found["communicators"]] == expected[
        "communicators"
    ]
    assert {one["comm_id"] for one in found["communicators"]} == {expected["comm_id"]}
    assert {row["calls"] for row in found["tuning"]} == {expected["tuning_per_size"]}
    assert {row["algorithm"] for row in found["tuning"]} == {expected["tuning_algo"]}
    assert {row["protocol"] for row in found["tuning"]} == {expected["tuning_proto"]}


def test_the_planted_mismatch_is_found_and_alone(capsys: pytest.CaptureFixture[str]) -> None:
    name = "excerpt-prefixes-and-oddities.log"
    expected = golden(name)["mismatch"]
    (found,) = payload(capsys, str(LOGS / name))["mismatches"]
    assert found["opcount"] == expected["opcount"]
    assert found["ops"] == expected["ops"]
    assert {member["host"] for member in found["members"]} == {expected["host"]}
    assert [member["pid"] for member in found["members"]] == expected["pids"]
    assert not found["certain"]


@pytest.mark.parametrize(
    ("name", "torn"),
    [
        ("excerpt-prefixes-and-oddities.log", 3),
        ("excerpt-megatron-tp2dp2-4xa100.log", 1),
        (SYNTHETIC, 0),
    ],
)
def test_torn_lines(name: str, torn: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert payload(capsys, str(LOGS / name))["torn_lines"] == torn


def test_launcher_labels_give_the_rank(capsys: pytest.CaptureFixture[str]) -> None:
    found = payload(capsys, str(LOGS / "excerpt-slurm-label-fsdp.log"))
    assert {(p["host"], p["rank"]) for p in found["processes"]} == {
        ("node-0", 2),
        ("node-1", 0),
        ("node-2", 3),
        ("node-3", 1),
    }
    calls = {row["rank"]: row["calls"] for row in found["per_rank"] if row["op"] == "AllGather"}
    assert calls == {0: 1, 1: 1, 3: 1}


def test_all_shared_logs_at_once_keep_their_own_figures(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = [name for name, _ in whole_files()]
    found = payload(capsys, *(str(LOGS / name) for name in names))
    expected = dict(whole_files())
    for name, one in zip(names, found["files"], strict=True):
        assert {key: one[key] for key in KEYS} == {key: expected[name][key] for key in KEYS}
    assert found["collective_lines"] == sum(one["collective_lines"] for one in expected.values())
