from __future__ import annotations

import socket
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from paths import REPORTS, needs_reports

from nsys_tui.capture.launchers import Target
from nsys_tui.capture.plan import make_plan
from nsys_tui.capture.profile_again import (
    plan_again,
    plan_from_metadata,
    plan_from_record,
    read_metadata,
    replayed_values,
    suggested_target,
)
from nsys_tui.capture.record import Record, ReportFile, Store, new_id
from nsys_tui.config import Config, TargetConfig
from nsys_tui.errors import NoDataError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = [
    ("DEVICE_DISPLAY_NAME", "node7.cluster.example"),
    ("CAPTURE_EVENT_TYPE", "OSRuntime"),
    ("CAPTURE_EVENT_TYPE", "Cuda"),
    ("CAPTURE_EVENT_TYPE", "NvtxEvents"),
    ("CAPTURE_EVENT_TYPE", "FtraceEvents"),
    ("PROCESS_0:COMMAND", "torchrun"),
    ("PROCESS_0:ARGUMENT_0", "a0"),
    ("PROCESS_0:ARGUMENT_10", "a 10"),
    ("PROCESS_0:ARGUMENT_2", "$(a2)"),
    ("PROCESS_0:WORKING_DIR", "/work dir"),
    ("PROCESS_0:COLLECT_CUDA_TRACE", "false"),
    ("PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node"),
    ("PROCESS_0:COLLECT_GPU_MEMORY_USAGE", "true"),
    ("COLLECT_UVM_GPU_PAGE_FAULTS", "true"),
    ("PROCESS_0:COLLECT_UVM_GPU_PAGE_FAULTS", "false"),
    ("COLLECT_UVM_CPU_PAGE_FAULTS", "false"),
    ("LINUX_PERF_OPTIONS:COLLECT_IP_BACKTRACE_SAMPLES", "true"),
    ("LINUX_PERF_OPTIONS:COLLECT_CPU_CTXSW_TRACE", "false"),
    ("USE_DWARF", "true"),
    ("USE_LBRS", "true"),
    ("OS_RUNTIME_OPTIONS:DURATION_THRESHOLD_NS", "0"),
    ("OS_RUNTIME_OPTIONS:BACKTRACES_THRESHOLD_NS", "80000"),
    ("START_DELAY_MS", "2500"),
    ("RUN_DURATION_MS", "1198"),
    ("PROCESS_0:ENVIRONMENT_VARIABLE", 'OMP_NUM_THREADS="8"'),
    ("PROCESS_0:ENVIRONMENT_VARIABLE", 'MULTI="one\ntwo="quoted""'),
    ("PROCESS_0:ENVIRONMENT_VARIABLE", 'HF_TOKEN="hf_abcdef"'),
    ("PROCESS_0:ENVIRONMENT_VARIABLE", 'SLURM_JOB_ID="77"'),
    ("PROCESS_0:ENVIRONMENT_VARIABLE", 'LD_PRELOAD="{}/lib.so"'),
    ("PROCESS_0:ENVIRONMENT_VARIABLE", 'BASH_FUNC_module%%="() { x; }"'),
]


def test_rows_become_a_command_and_options() -> None:
    again = read_metadata(PAIRS)
    assert again.program == ("torchrun", "a0", "$(a2)", "a 10")
    assert again.cwd == "/work dir"
    assert again.options == {
        "trace": ("cuda", "nvtx", "osrt"),
        "cuda-memory-usage": "true",
        "cuda-um-gpu-page-faults": "true",
        "sample": "process-tree",
        "cpuctxsw": "none",
        "delay": "2.5",
    }
    assert any("started by sbatch or srun" in remark for remark in again.remarks)
    assert any("FtraceEvents" in remark for remark in again.remarks)


SAMPLED = ("LINUX_PERF_OPTIONS:COLLECT_IP_BACKTRACE_SAMPLES", "true")
BY_NODE = [("CAPTURE_EVENT_TYPE", "Cuda"), ("PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node")]
OSRT = ("CAPTURE_EVENT_TYPE", "OSRuntime")


@pytest.mark.parametrize(
    ("pairs", "driver", "option", "value"),
    [
        (BY_NODE, "", "cuda-graph-trace", None),
        (BY_NODE, "470.57", "cuda-graph-trace", None),
        (BY_NODE, "550.54.15", "cuda-graph-trace", "node"),
        ([SAMPLED, ("USE_DWARF", "true")], "", "backtrace", None),
        ([SAMPLED, ("USE_LBRS", "true")], "", "backtrace", None),
        ([SAMPLED, ("USE_FRAME_POINTERS", "true")], "", "backtrace", "fp"),
        ([SAMPLED, ("USE_DWARF", "false"), ("SHOW_BACKTRACE", "false")], "", "backtrace", "none"),
        ([OSRT, ("OS_RUNTIME_OPTIONS:DURATION_THRESHOLD_NS", "0")], "", "osrt-threshold", None),
        ([OSRT, ("OS_RUNTIME_OPTIONS:DURATION_THRESHOLD_NS", "1000")], "", "osrt-threshold", None),
        ([OSRT, ("OS_RUNTIME_OPTIONS:DURATION_THRESHOLD_NS", "50")], "", "osrt-threshold", "50"),
    ],
)
def test_what_nsys_chose_itself_is_not_asked_for_again(
    pairs: list[tuple[str, str]], driver: str, option: str, value: str | None
) -> None:
    again = read_metadata(pairs, driver)
    assert again.options.get(option) == value
    chosen = value is None and pairs[-1][1] in ("Node", "true") and "LBR" not in pairs[-1][0]
    assert any("if it was asked for: --" + option in said for said in again.remarks) == chosen


def test_the_measured_length_is_no_request() -> None:
    assert "duration" not in read_metadata(PAIRS).options


def test_no_perf_rows_means_sampling_was_off() -> None:
    options = read_metadata([("CAPTURE_EVENT_TYPE", "Cuda"), ("USE_DWARF", "true")]).options
    assert options == {"trace": ("cuda",), "sample": "none", "cpuctxsw": "none"}


def test_the_environment_is_names_and_lengths() -> None:
    again = read_metadata(PAIRS)
    names = {variable.name: variable for variable in again.variables}
    assert (names["OMP_NUM_THREADS"].length, names["OMP_NUM_THREADS"].refused) == (1, "")
    assert names["MULTI"].length == len('one\ntwo="quoted"')
    for name in ("HF_TOKEN", "SLURM_JOB_ID", "LD_PRELOAD", "BASH_FUNC_module%%"):
        assert names[name].refused, name
    assert "hf_abcdef" not in repr(again)


def test_only_ticked_values_are_read() -> None:
    assert replayed_values(PAIRS, []) == {}
    assert replayed_values(PAIRS, ["MULTI"]) == {"MULTI": 'one\ntwo="quoted"'}
    with pytest.raises(UsageError, match="is not replayed"):
        replayed_values(PAIRS, ["HF_TOKEN"])
    with pytest.raises(UsageError, match="is not in the report's environment"):
        replayed_values(PAIRS, ["ABSENT"])


def test_a_plan_of_a_report_keeps_no_value_of_its_environment() -> None:
    plan, again = plan_from_metadata(PAIRS, Config())
    assert plan.program == again.program
    assert plan.cwd == "/work dir"
    assert "quoted" not in repr(plan.to_json())
    assert any("node7.cluster.example" in remark for remark in again.remarks)


def test_the_target_is_suggested_by_host() -> None:
    config = Config(
        targets={"a": TargetConfig(host="me@node7"), "b": TargetConfig(host="elsewhere")}
    )
    found = suggested_target(config, "node7.cluster.example")
    assert found is not None
    assert found.name == "a"
    own = suggested_target(config, socket.gethostname())
    assert own is not None
    assert own.name == "local"
    assert suggested_target(config, "unheard.of") is None


def test_a_report_without_rows_says_so() -> None:
    with pytest.raises(NoDataError, match="does not say how it was made"):
        plan_from_metadata([], Config())


def test_our_own_record_comes_first(tmp_path: Path) -> None:
    store = Store(tmp_path)
    config = Config(targets={"box": TargetConfig(host="h", env={"A": "now"})})
    made = make_plan(Target("box", TargetConfig(host="h")), ["mine"], options={"trace": "nvtx"})
    report = ReportFile("/r.nsys-rep", 1, report_id="abc")
    store.save(replace(Record(id=new_id(), plan=made.to_json()), reports=(report,)))
    plan, again = plan_again(PAIRS, "abc", config, store)
    assert again is None
    assert plan.program == ("mine",)
    assert plan.target.settings.host == "h"
    other, again = plan_again(PAIRS, "other", config, store)
    assert again is not None
    assert other.program[0] == "torchrun"


def test_a_record_of_a_target_that_is_gone_still_repeats(tmp_path: Path) -> None:
    made = make_plan(Target("old", TargetConfig(host="h")), ["mine"])
    record = Store(tmp_path).save(Record(id=new_id(), plan=made.to_json()))
    assert plan_from_record(record, Config()).target.settings.host == "h"
    with pytest.raises(UsageError):
        plan_from_record(record, Config(), "nowhere")


def rows(name: str) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(f"file:{REPORTS / name}?immutable=1", uri=True)) as database:
        return [(k, str(v)) for k, v in database.execute("SELECT * FROM META_DATA_CAPTURE")]


@needs_reports
@pytest.mark.parametrize(
    ("name", "program", "options"),
    [
        ("cloverleaf-a100-2024.5.sqlite",
         ("cuda-cloverleaf", "--in", "../CloverLeaf-hip/InputDecks/clover_bm32_prof.in"),
         {"trace": ("cuda", "nvtx", "osrt", "opengl"), "sample": "process-tree",
          "cpuctxsw": "process-tree"}),
        ("cuda-graph-2025.5.sqlite", ("/tmp/flameox-nsight-smoke",),
         {"trace": ("cuda", "nvtx", "osrt"), "cuda-graph-trace": "graph", "sample": "none",
          "cpuctxsw": "none"}),
        ("pytorch-nccl-2gpu-2026.2.sqlite",
         ("torchrun", "--nnodes=1", "--nproc_per_node=2", "--master_port=29506",
          "/tmp/fv_mfu_training.py"),
         {"trace": ("cuda", "nvtx"), "cuda-graph-trace": "graph", "sample": "none",
          "cpuctxsw": "none"}),
    ],
)  # fmt: skip
def test_real_reports(name: str, program: tuple[str, ...], options: dict[str, object]) -> None:
    plan, _ = plan_from_metadata(rows(name), Config())
    assert plan.program == program
    assert plan.options == options
    assert [advice for advice in plan.advice() if advice.severity == "error"] == []
