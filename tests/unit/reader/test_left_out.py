"""Rows whose required number is none are left out of every part, and that is said each time."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from synth import Synth

from nsys_tui.analysis.thread_states import Scheduling
from nsys_tui.analysis.timeline.facts import facts_of
from nsys_tui.cli import main
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import REGISTERS, told
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.model.events import Operations
    from nsys_tui.model.report import Report

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Ten kernels of 10 to 19 registers, ten ranges; the second and third of each are not whole."""
    made = Synth(tmp_path / "r.sqlite")
    for i in range(10):
        made.kernel(f"k{i}", 10 * i, 10 * i + 5, registersPerThread=10 + i)
        made.nvtx(f"range {i}", 10 * i, 10 * i + 5)
    made.sql(f"UPDATE {KERNELS} SET start = 'soon' WHERE rowid IN (2, 3)")
    made.sql("UPDATE NVTX_EVENTS SET globalTid = x'00' WHERE rowid IN (2, 3)")
    return made.write()


def names(ops: Operations) -> list[str]:
    return [ops.names[code].short for code in ops.name.tolist()]


def check(report: Report) -> None:
    kept = [0, 3, 4, 5, 6, 7, 8, 9]
    assert names(report.operations) == [f"k{i}" for i in kept]
    assert report.launch_attributes.of(slice(None), REGISTERS).tolist() == [10 + i for i in kept]
    ranges = report.ranges
    assert [ranges.names[code] for code in ranges.name] == [f"range {i}" for i in kept]
    assert set(report.notes.texts) >= {
        f"2 rows with text in `start` of {KERNELS} left out",
        "2 rows with a blob in `globalTid` of NVTX_EVENTS left out",
    }


def test_they_are_left_out_of_every_part_and_said_again_from_the_cache(path: Path) -> None:
    for _ in range(2):
        report = open_report(path)
        check(report)
        report.close()


def test_the_same_where_the_file_is_not_in_order_of_start(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"UPDATE {KERNELS} SET start = 200 - start, end = 205 - start")
        db.execute(f"UPDATE {KERNELS} SET start = 'soon' WHERE rowid IN (2, 3)")
        db.commit()
    report = open_report(path, use_cache=False)
    kept = [9, 8, 7, 6, 5, 4, 3, 0]
    assert names(report.operations) == [f"k{i}" for i in kept]
    assert report.launch_attributes.of(slice(None), REGISTERS).tolist() == [10 + i for i in kept]


@pytest.mark.parametrize("use_cache", [False, True])
def test_times_that_cannot_be_are_told_by_table_and_column(tmp_path: Path, use_cache: bool) -> None:
    made = Synth(tmp_path / "r.sqlite").kernel("k", 0, 2**60).kernel("k", 7, 7)
    made.kernel("k", 20, 10).kernel("k", 5, 2**60 + 1).nvtx("r", 9, 8).api("cudaFree", 9, -1)
    path = made.write()
    early = "1 row with a time before its start in `end` of"
    for _ in range(1 + use_cache):
        with closing(open_report(path, use_cache=use_cache)) as report:
            ops = report.operations
            assert list(zip(ops.start, ops.end, strict=True)) == [
                (0, 2**60), (5, 2**60), (7, 7), (20, 20)
            ]  # fmt: skip
            assert (report.ranges.end, report.api.end) == ([9], [9])
            assert set(report.notes.texts) == {
                f"{early} {KERNELS}: taken for moments",
                f"{early} NVTX_EVENTS: taken for moments",
                f"{early} CUPTI_ACTIVITY_KIND_RUNTIME: taken for moments",
                "1 row with a time more than 36 years from the session's start in `end` of"
                f" {KERNELS}: cut there",
            }


def test_an_event_without_a_gpu_a_process_or_a_time_is_none(tmp_path: Path) -> None:
    made = Synth(tmp_path / "r.sqlite")
    for i in range(5):
        made.launch(f"k{i}", (10 * i, 10 * i + 1), (10 * i + 2, 10 * i + 5))
    made.sql(f"CREATE TABLE loose AS SELECT * FROM {KERNELS}")
    made.sql(f"DROP TABLE {KERNELS}").sql(f"ALTER TABLE loose RENAME TO {KERNELS}")
    for row, column in enumerate(("deviceId", "start", "globalPid"), 1):
        made.sql(f"UPDATE {KERNELS} SET {column} = NULL WHERE rowid = {row}")
    made.sql("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET globalTid = NULL WHERE rowid = 4")
    report = open_report(made.write())
    assert names(report.operations) == ["k3", "k4"]
    assert [device.members[0].ordinal for device in report.devices] == [0]
    assert report.calls.tolist() == [-1, 3]
    assert {note.column for note in report.notes} == {
        "deviceId", "start", "globalPid", "globalTid"
    }  # fmt: skip


def test_what_every_export_fills_is_missed_where_it_is_null(tmp_path: Path) -> None:
    made = Synth(tmp_path / "r.sqlite").gpu().sched(0, True).sched(5, False)
    made.launch("k", (0, 1), (2, 5)).memcpy(6, 7).nvtx("range", 0, 9)
    made.sql(f"UPDATE {KERNELS} SET correlationId = NULL")
    made.sql("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET srcKind = NULL")
    made.sql("UPDATE TARGET_INFO_GPU SET smCount = NULL, name = x'41'")
    made.sql("UPDATE SCHED_EVENTS SET globalTid = NULL")
    report = open_report(made.write())
    assert report.calls.tolist() == [-1, -1]
    assert report.devices[0].name == "A"
    assert Scheduling(report).off_by_why(0) == {}
    assert set(report.notes.texts) == {
        f"1 row with NULL in `correlationId` of {KERNELS}: taken as missing",
        "1 row with NULL in `srcKind` of CUPTI_ACTIVITY_KIND_MEMCPY: taken as missing",
        "1 row with NULL in `smCount` of TARGET_INFO_GPU: taken as missing",
        "1 row with a blob in `name` of TARGET_INFO_GPU: read as text",
        "2 rows with NULL in `globalTid` of SCHED_EVENTS left out",
    }


def test_a_name_that_is_a_number_is_told(tmp_path: Path) -> None:
    made = Synth(tmp_path / "r.sqlite").launch("k", (0, 1), (2, 5))
    made.sql(
        "CREATE TABLE loose AS SELECT id, value + 0.5 AS value FROM StringIds WHERE value = 'k'"
    )
    made.sql("CREATE TABLE names (id INTEGER PRIMARY KEY, value)")
    made.sql("INSERT INTO names SELECT * FROM loose").sql("DROP TABLE StringIds")
    made.sql("ALTER TABLE names RENAME TO StringIds")
    report = open_report(made.write())
    assert names(report.operations) == ["0.5"]
    assert "1 row with a fraction in `value` of StringIds: read as text" in report.notes.texts


def test_values_of_enums_that_nobody_knows_are_said(tmp_path: Path) -> None:
    made = Synth(tmp_path / "r.sqlite").launch("k", (0, 5), (10, 20))
    made.api("cudaLaunchKernel_v7000", 30, 35, corr=900, event_class=256).kernel(
        "k", 40, 50, corr=900
    )
    made.nvtx("known", 0, 5).nvtx("strange", 6, 9, type=199)
    with closing(open_report(made.write())) as report:
        assert (report.calls >= 0).tolist() == [True, False]
        assert [report.ranges.names[code] for code in report.ranges.name] == ["known"]
        assert report.notes.texts == (
            "1 row with unknown values in `eventClass` of CUPTI_ACTIVITY_KIND_RUNTIME: taken for"
            " no launch",
            "1 row with unknown values in `eventType` of NVTX_EVENTS left out",
        )


def test_a_result_beyond_belief_is_no_success(tmp_path: Path) -> None:
    made = Synth(tmp_path / "r.sqlite").api("cudaFree", 1, 2, returned=2**32)
    with closing(open_report(made.write(), use_cache=False)) as report:
        assert not told(report.api.return_value).any()
        assert report.notes.texts == (
            "1 row with a number beyond 32 bits in `returnValue` of CUPTI_ACTIVITY_KIND_RUNTIME:"
            " taken as missing",
        )


def test_a_result_that_is_not_there_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Synth(tmp_path / "r.sqlite").api("cudaFree", 1, 2).api("cudaMalloc", 3, 4)
    made.osrt("read", 5, 6).osrt("write", 7, 8)
    for table in ("CUPTI_ACTIVITY_KIND_RUNTIME", "OSRT_API"):
        made.sql(f"UPDATE {table} SET returnValue = 'oops' WHERE rowid = 2")
    path = str(made.write())
    with closing(open_report(path, use_cache=False)) as report:
        for events, missing in ((report.api, {}), (report.osrt, {"returned": "-"})):
            assert told(events.return_value).tolist() == [True, False]
            first, second = (
                dict(facts_of(report, events, row, "short", str).facts) for row in (0, 1)
            )
            assert first["returned"].startswith("0")
            assert {name: text for name, text in second.items() if name == "returned"} == missing
    assert main(["export", path, "--table", "api", "--format", "json", "--no-cache"]) == 0
    out, err = capsys.readouterr()
    assert [row["return_value"] for row in json.loads(out)] == [0, None]
    assert "1 row with text in `returnValue` of CUPTI_ACTIVITY_KIND_RUNTIME" in err


def test_numbers_that_do_not_fit_are_told_and_never_become_others(tmp_path: Path) -> None:
    made = Synth(tmp_path / "r.sqlite").launch("k", (0, 5), (10, 20)).launch("k", (6, 7), (30, 40))
    made.memcpy(50, 60).memcpy(70, 80).sample(1, []).sample(2, [])
    for size in (1, 2, 3):
        made.memory_usage(size, size)
    beyond = {
        KERNELS: {"gridX": (2**32 + 1, 2**31 - 1)},
        "CUPTI_ACTIVITY_KIND_MEMCPY": {"srcKind": (257, 255)},
        "COMPOSITE_EVENTS": {"cpu": (2**32 + 5, 5), "threadState": (-1, 3)},
        "CUDA_GPU_MEMORY_USAGE_EVENTS": {"memoryOperationType": (256, 0), "memKind": (2, 2)},
    }
    for table, columns in beyond.items():
        for column, values in columns.items():
            for row, value in enumerate(values, 1):
                made.sql(f"UPDATE {table} SET {column} = {value} WHERE rowid = {row}")
    made.write()
    for _ in range(2):
        with closing(open_report(made.path)) as report:
            kernels = report.operations.of_kind(OpKind.KERNEL)
            assert report.launch_attributes.of(kernels, 0).tolist() == [0, 2**31 - 1]
            copies = report.operations.of_kind(OpKind.MEMCPY)
            assert report.operations.src_kind[copies].tolist() == [255, 255]
            assert report.samples.cpu.tolist() == [-1, 5]
            assert report.samples.state.tolist() == [0, 3]
            assert report.memory_usage.bytes.tolist() == [2, 3]
            assert set(report.notes.texts) == {
                f"1 row with a number beyond 32 bits in `gridX` of {KERNELS}: taken as missing",
                "1 row with a number beyond 8 bits in `srcKind` of CUPTI_ACTIVITY_KIND_MEMCPY:"
                " taken as missing",
                "1 row with a number beyond 32 bits in `cpu` of COMPOSITE_EVENTS: taken as missing",
                "1 row with a number beyond 8 bits in `threadState` of COMPOSITE_EVENTS:"
                " taken as missing",
                "1 row with a number beyond 8 bits in `memoryOperationType` of"
                " CUDA_GPU_MEMORY_USAGE_EVENTS left out",
            }


def test_rows_that_stand_twice_are_counted_and_told(tmp_path: Path) -> None:
    made = Synth(tmp_path / "r.sqlite").launch("k", (0, 5), (10, 20)).launch("k", (6, 7), (30, 40))
    made.kernel("k", 10, 20, stream=9).memcpy(50, 60)
    for table in (KERNELS, "CUPTI_ACTIVITY_KIND_MEMCPY"):
        made.sql(f"INSERT INTO {table} SELECT * FROM {table} WHERE start IN (30, 50)")
    with closing(open_report(made.write(), use_cache=False)) as report:
        assert len(report.operations) == 6
        assert report.notes.texts == tuple(
            f"1 row of {table} repeats another in everything: counted all the same"
            for table in (KERNELS, "CUPTI_ACTIVITY_KIND_MEMCPY")
        )


def test_migrations_that_are_alike_are_not_taken_for_doubles(tmp_path: Path) -> None:
    made = Synth(tmp_path / "r.sqlite").memcpy(50, 60, kind=11).memcpy(50, 60, kind=11)
    with closing(open_report(made.write(), use_cache=False)) as report:
        assert len(report.operations) == 2
        assert report.notes.texts == ()
