from __future__ import annotations

import csv
import io
import json
import sys
from collections import defaultdict
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from demo_making import make_report
from paths import needs_reports, report_paths
from synth import Synth

from nsys_tui import cli
from nsys_tui.export.events import _KINDS, _TOLD_BY, EVENT_SETS, event_table
from nsys_tui.model.kinds import OPERATIONS, Kind
from nsys_tui.reader import open_report
from nsys_tui.reader.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable

Out = pytest.CaptureFixture[str]
RENDERING = set(OPERATIONS[4:])
"""Whose calls are not looked for."""


@pytest.fixture
def capture(tmp_path: Path) -> str:
    made = Synth(tmp_path / "r.sqlite").process(7, "train").thread(7, "main").gpu(0, "A100")
    made.nvtx("a", 0, 100).nvtx("crosses", 50, 150, type=60, domain=2).domain(2, "io")
    made.launch("gemm(float*)", (10, 20), (30, 60)).launch("x()", (22, 25), (40, 70), stream=7)
    made.memcpy(80, 90, bytes=4096).osrt("read", 5, 9).overhead("flush", 90, 95)
    return str(made.write())


def run(capsys: Out, *words: str) -> tuple[int, str, str]:
    status = cli.main(["export", *words, "--no-cache"])
    out, err = capsys.readouterr()
    return status, out, err


def test_a_table_of_events_has_names_instead_of_codes(capture: str, capsys: Out) -> None:
    _, out, _ = run(capsys, capture, "--table", "operations", "--format", "json")
    first = json.loads(out)[0]
    wanted = {
        "start (ns)": 30, "duration (ns)": 30, "kind": "kernel", "category": "compute", "pid": 7,
        "device": "GPU 0", "stream": 7, "name": "gemm(float*)", "short_name": "gemm",
    }  # fmt: skip
    assert first | wanted == first
    _, out, _ = run(capsys, capture, "--table", "ranges")
    ranges = list(csv.DictReader(io.StringIO(out)))
    assert [(r["name"], r["domain"], r["thread"]) for r in ranges] == [
        ("a", "", "main"),
        ("crosses", "io", "main"),
    ]


def test_the_first_rows_are_enough_where_so_many_are_asked_for(capture: str, capsys: Out) -> None:
    limited = (capture, "--limit", "1")
    _, out, _ = run(capsys, *limited, "--table", "kernels", "--format", "json")
    assert [row["name"] for row in json.loads(out)] == ["gemm(float*)"]
    assert run(capsys, *limited, "--perfetto", "-")[0] == 64


def test_a_report_exports_under_its_name(capture: str, capsys: Out, tmp_path: Path) -> None:
    path = tmp_path / "k.md"
    words = (capture, "--table", "cuda_gpu_kern_sum:base", "--format", "markdown", "-o", str(path))
    assert run(capsys, *words)[0] == 0
    assert "| gemm |" in path.read_text()
    assert run(capsys, *words)[0] == 64


def test_unknown_tables_and_missing_data(capture: str, capsys: Out) -> None:
    assert run(capsys, capture, "--table", "nonsense")[0] == 64
    assert run(capsys, capture, "--table", "samples")[0] == 66
    assert run(capsys, capture, "--table", "api", "--format", "parquet")[0] == 64


def test_parquet_without_pyarrow_says_how_to_get_it(
    capture: str, capsys: Out, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = str(tmp_path / "x.parquet")
    status, _, err = run(capsys, capture, "--table", "api", "--format", "parquet", "-o", path)
    assert status == 64
    assert "install pyarrow" in err.replace("'", "")


def test_parquet_keeps_exact_values(capture: str, capsys: Out, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow (the parquet extra)")
    path = str(tmp_path / "x.parquet")
    words = (capture, "--table", "cuda_gpu_mem_size_sum", "--format", "parquet", "-o", path)
    assert run(capsys, *words)[0] == 0
    (row,) = parquet.read_table(path).to_pylist()
    assert row["Total (B)"] == 4096


def slices(text: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    return events


def test_a_perfetto_trace_has_slices_tracks_and_launch_arrows(
    capture: str, capsys: Out, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    assert run(capsys, capture, "--perfetto", str(path))[0] == 0
    events = slices(path.read_text())
    drawn = {event["name"]: event for event in events if event["ph"] == "X"}
    assert set(drawn) == {
        "a", "crosses", "gemm(float*)", "x()", "cudaLaunchKernel", "[CUDA memcpy Host-to-Device]",
        "read", "flush",
    }  # fmt: skip
    assert (drawn["gemm(float*)"]["ts"], drawn["gemm(float*)"]["dur"]) == (0.03, 0.03)
    # Slices that cross each other stand on tracks of their own.
    assert drawn["a"]["tid"] != drawn["crosses"]["tid"]
    assert drawn["gemm(float*)"]["tid"] != drawn["x()"]["tid"]
    begun = {event["id"] for event in events if event["ph"] == "s"}
    assert begun == {event["id"] for event in events if event["ph"] == "f"}
    assert len(begun) == 2
    named = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert {"GPU 0 A100", "train", "pid 7 str 7", "pid 7 str 7 (2)", "7 main: NVTX"} <= named


def test_a_window_of_a_trace(capture: str, capsys: Out) -> None:
    _, out, _ = run(capsys, capture, "--perfetto", "-", "--window", "75/100")
    drawn = {event["name"] for event in slices(out) if event["ph"] == "X"}
    assert drawn == {"a", "crosses", "[CUDA memcpy Host-to-Device]", "flush"}


@needs_reports
@pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
def test_every_real_report_exports(path: Path) -> None:
    from nsys_tui.errors import NoDataError
    from nsys_tui.export.perfetto import trace

    report = open_report(path, use_cache=False)
    slices("".join(trace(report)))
    for name in EVENT_SETS:
        try:
            table = event_table(report, name)
        except NoDataError:
            continue
        assert len(table) == len(getattr(report, name))


def test_counters_of_a_trace_are_memory_and_metrics(tmp_path: Path) -> None:
    from nsys_tui.analysis.memory import recorded_memory
    from nsys_tui.analysis.window import Scope
    from nsys_tui.export.perfetto import trace

    make_report(tmp_path / "demo.sqlite", steps=4)
    report = open_report(tmp_path / "demo.sqlite", use_cache=False)
    counted = [event for event in slices("".join(trace(report))) if event["ph"] == "C"]
    held = recorded_memory(report)
    memory = [event["args"]["bytes"] for event in counted if event["name"] == "memory in use"]
    assert memory == [used for one in held for used in one.used.tolist()]
    assert len(counted) - len(memory) == len(report.gpu_metrics)
    middle = sum(report.extent) // 2
    part = slices("".join(trace(report, Scope(window=(middle, middle + 1)))))
    started = [event for event in part if event["ph"] == "C" and event["name"] == "memory in use"]
    assert [event["args"]["bytes"] for event in started] == [
        one.at(np.array([middle])).item() for one in held
    ]
    assert {event["ts"] for event in started} == {middle / 1000}


def test_counters_of_a_gpu_without_known_work_are_in_a_trace(tmp_path: Path, capsys: Out) -> None:
    made = Synth(tmp_path / "idle.sqlite").process(7, "train").gpu(0, "A100").gpu(1, "A100")
    made.launch("gemm()", (10, 20), (30, 60)).memory_usage(40, 4096, device=1)
    made.gpu_metric(50, "SM Active [%]", 3, gpu=2)
    events = slices(run(capsys, str(made.write()), "--perfetto", "-")[1])
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    counted = [(names[e["pid"]], e["args"]) for e in events if e["ph"] == "C"]
    assert counted == [("GPU 1", {"bytes": 4096}), ("GPU 2", {"%": 3})]


def test_a_gpu_whose_work_was_not_recorded_is_not_called_idle(tmp_path: Path) -> None:
    from nsys_tui.analysis.timeline.metrics import metric_tracks

    made = Synth(tmp_path / "metrics.sqlite").process(7, "train")
    made.gpu_metric(50, "SM Active [%]", 3)
    heading, _ = metric_tracks(open_report(made.write(), use_cache=False))
    assert heading.title == "no work of GPU 0 is known"


def test_what_a_report_does_not_tell_of_calls_is_no_column(tmp_path: Path, capsys: Out) -> None:
    calls = "CUPTI_ACTIVITY_KIND_RUNTIME"
    hidden: dict[str, Iterable[str]] = {
        calls: ["returnValue", "eventClass"], "OSRT_API": ["returnValue"],
    }  # fmt: skip
    made = Synth(tmp_path / "r.sqlite", omit_columns=hidden).launch("k", (10, 20), (30, 60))
    path = str(made.osrt("read", 5, 9).write())
    for table, known in (("api", set()), ("osrt", {"event_class"})):
        status, out, err = run(capsys, path, "--table", table, "--format", "json")
        (row,) = json.loads(out)
        assert row.keys() & {"return_value", "event_class"} == known
        assert status == 0
        assert "`" not in err
        assert f"{calls} has no column returnValue" in err


def test_what_one_of_two_tables_does_not_tell_is_no_value_in_what_they_are_together(
    tmp_path: Path, capsys: Out
) -> None:
    gpu = "CUPTI_ACTIVITY_KIND_"
    hidden: dict[str, Iterable[str]] = {
        f"{gpu}KERNEL": ("correlationId", "graphNodeId"), f"{gpu}MEMSET": ("memKind",),
    }  # fmt: skip
    made = Synth(tmp_path / "r.sqlite", omit_columns=hidden).kernel("k", 1, 2, corr=8)
    path = str(made.memcpy(3, 4, corr=7).memset(5, 6, corr=9).write())
    for table in ("operations", "copies"):
        _, out, _ = run(capsys, path, "--table", table, "--format", "json")
        rows = {row["kind"]: row for row in json.loads(out)}
        assert [rows[kind]["correlation"] for kind in ("memcpy", "memset")] == [7, 9]
        assert rows["memcpy"]["src_kind"] is not None
        assert rows["memset"]["src_kind"] is None
        if table == "operations":
            assert (rows["kernel"]["correlation"], rows["kernel"]["graph_node"]) == (None, None)


def test_rendering_has_no_correlation_nor_memory_kind(tmp_path: Path, capsys: Out) -> None:
    made = Synth(tmp_path / "r.sqlite").process(7, "game").gpu(0)
    path = str(made.render("VULKAN", 100, 200).render("OPENGL", 300, 500).write())
    first, second = json.loads(run(capsys, path, "--table", "operations", "--format", "json")[1])
    assert (first["kind"], second["kind"]) == ("vulkan", "opengl")
    assert not {"correlation", "graph_node", "migration", "src_kind", "dst_kind"} & {*first}

    path = str(made.launch("k", (1_000, 1_100), (2_000, 3_000), corr=8).write())
    rows = json.loads(run(capsys, path, "--table", "operations", "--format", "json")[1])
    assert [row["correlation"] for row in rows] == [None, None, 8]
    run(capsys, path, "--perfetto", str(tmp_path / "trace.json"))
    drawn = [event for event in slices((tmp_path / "trace.json").read_text()) if "args" in event]
    linked = {event["name"]: event["args"].get("correlation") for event in drawn}
    assert [linked[name] for name in ("[Vulkan ]", "k", "cudaLaunchKernel")] == [None, 8, 8]


def test_links_that_only_the_calls_lack_stay_those_of_the_work(tmp_path: Path, capsys: Out) -> None:
    made = Synth(
        tmp_path / "r.sqlite", omit_columns={"CUPTI_ACTIVITY_KIND_RUNTIME": ("correlationId",)}
    )
    path = str(made.api("cudaFree", 0, 1).kernel("k", 1, 2, corr=7).write())
    for table, links in (("kernels", [7]), ("api", [None])):
        status, out, _ = run(capsys, path, "--table", table, "--format", "json")
        assert (status, [row.get("correlation") for row in json.loads(out)]) == (0, links)


def test_fields_that_a_column_may_be_absent_for_are_known(capture: str) -> None:
    report, columns = open_report(Path(capture)), defaultdict[Kind | None, set[str]](set)
    for table in TABLES.values():
        columns[table.kind] |= {each.field for each in table.columns.values() if not each.required}
    optional = {
        (field.name, kind)
        for name in EVENT_SETS
        for kind in set(_KINDS.get(name, ())) - RENDERING
        for field in fields(getattr(report, name))
        if {field.name, f"{field.name}_id"} & columns[kind]
    }
    told = {(field, kind) for field, by_kind in _TOLD_BY.items() for kind in by_kind}
    assert ("graph_node", Kind.KERNEL) in optional
    assert sorted(optional - told) == [], "add to _TOLD_BY of export/events.py"


@pytest.mark.parametrize("omit", [True, False])
def test_what_a_report_does_not_tell_of_events_is_no_column(
    tmp_path: Path, capsys: Out, omit: bool
) -> None:
    gpu, columns = "CUPTI_ACTIVITY_KIND_", ("correlationId", "graphNodeId")
    hidden: dict[str, Iterable[str]] = {
        f"{gpu}KERNEL": columns,
        f"{gpu}MEMCPY": ("srcKind", "dstKind", "migrationCause", *columns),
        f"{gpu}MEMSET": ("graphNodeId",),
        "COMPOSITE_EVENTS": ("cpu", "threadState"),
        "NVTX_EVENTS": ("color",),
    }
    made = Synth(tmp_path / "r.sqlite", omit_columns=hidden if omit else {}).kernel("k", 1, 2)
    path = str(made.memcpy(3, 4).memset(5, 6).sample(7).nvtx("range", 8, 9).write())
    work = ["correlation", "graph_node", "migration", "src_kind", "dst_kind"]
    for table, optional, kept in (
        ("kernels", work[:2], []),
        ("copies", work, ["correlation", "src_kind"]),
        ("operations", work, ["correlation", "src_kind"]),
        ("samples", ["cpu", "state"], []),
        ("ranges", ["color", "nvtx_category"], ["nvtx_category"]),
    ):
        status, out, _ = run(capsys, path, "--table", table, "--format", "json")
        assert status == 0
        told = [key for key in json.loads(out)[0] if key in optional]
        assert sorted(told) == sorted(kept if omit else optional)
