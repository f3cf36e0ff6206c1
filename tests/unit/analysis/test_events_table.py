from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest
from demo_making import make
from synth import Synth

from nsys_tui.analysis.events_table import EventsTable, events_table
from nsys_tui.analysis.window import Scope
from nsys_tui.names import NameStyle
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.model.report import Report

US = 1_000
TABLES = {
    "CUPTI_ACTIVITY_KIND_KERNEL": "1",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "1",
    "CUPTI_ACTIVITY_KIND_MEMSET": "1",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "1",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "eventClass != 67",
    "NVTX_EVENTS": "eventType in (34, 59, 60, 70, 71)",
    "OSRT_API": "eventClass = 27",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "1",
    "PROFILER_OVERHEAD": "1",
    "CUPTI_ACTIVITY_KIND_OVERHEAD": "1",
}


@pytest.fixture
def report(tmp_path: Path) -> Report:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(100, "train").thread(100, "main")
    synth.nvtx("step", 0, 100 * US).mark("here", 15 * US)
    synth.launch("gemm()", (10 * US, 12 * US), (20 * US, 50 * US), corr=41)
    synth.api("cudaLaunchKernel_v7000", 9 * US, 13 * US, corr=41, event_class=67)
    synth.osrt("poll", 1 * US, 90 * US).mpi("MPI_Barrier", 60 * US, 70 * US)
    synth.sync(30 * US, 50 * US, corr=42)
    synth.api("cudaStreamSynchronize", 29 * US, 51 * US, corr=42)
    return open_report(synth.write(), use_cache=False)


def listed(table: EventsTable) -> list[tuple[str, str]]:
    kinds, names = table.kinds, table.names
    rows = table.order.tolist()
    return [(kinds.labels[kinds.at(row)], names.labels[names.at(row)]) for row in rows]


def test_all_kinds_stand_in_time_order_without_backtrace_duplicates(report: Report) -> None:
    table = events_table(report, Scope(), NameStyle.SHORT)
    assert listed(table) == [
        ("NVTX", "step"),
        ("OSRT", "poll"),
        ("API", "cudaLaunchKernel"),
        ("mark", "here"),
        ("kernel", "gemm"),
        ("API", "cudaStreamSynchronize"),
        ("sync", "stream sync"),
        ("MPI", "MPI_Barrier"),
    ]
    found = [table.correlation(row) for row in table.order.tolist()]
    assert found == [-1, -1, 41, -1, 41, 42, 42, -1]
    assert table.correlations().tolist() == [table.correlation(row) for row in range(8)]


def test_whole_columns_say_the_same_as_single_rows(report: Report) -> None:
    table = events_table(report, Scope(), NameStyle.SHORT)
    for column in (table.kinds, table.names, table.places):
        assert column.codes().tolist() == [column.at(row) for row in range(len(table))]
    places = [table.places.labels[table.places.at(row)] for row in table.order.tolist()]
    assert places[4] == "GPU 0 str 7"
    assert places[6] == "main", "a wait belongs to the thread that called"


def test_a_window_lists_what_touches_it(report: Report) -> None:
    table = events_table(report, Scope(window=(14 * US, 21 * US)), NameStyle.SHORT)
    assert [name for _, name in listed(table)] == ["step", "poll", "here", "gemm"]


def test_short_events_are_hidden_and_counted_but_marks_stay(report: Report) -> None:
    table = events_table(report, Scope(), NameStyle.SHORT, min_duration=10 * US)
    assert table.hidden == 1
    assert ("mark", "here") in listed(table)
    assert ("API", "cudaLaunchKernel") not in listed(table)


def test_an_area_lists_only_its_lanes(report: Report) -> None:
    stream = next(iter(report.streams))
    lane = f"gpu:0/100:{stream.context}:{stream.id}"
    table = events_table(report, Scope(), NameStyle.SHORT, lanes=(lane,))
    assert listed(table) == [("kernel", "gemm")]
    thread = f"thread:{int(report.api.threads[0])}"
    table = events_table(report, Scope(), NameStyle.SHORT, lanes=(f"{thread}/api",))
    assert {kind for kind, _ in listed(table)} == {"API"}
    table = events_table(report, Scope(), NameStyle.SHORT, lanes=(thread,))
    assert {kind for kind, _ in listed(table)} == {"NVTX", "OSRT", "API", "mark", "sync", "MPI"}


def test_an_event_is_found_again(report: Report) -> None:
    table = events_table(report, Scope(), NameStyle.SHORT)
    for row in range(len(table)):
        member, place = table.locate(row)
        assert table.row_of(member.events, place) == row
    narrow = events_table(report, Scope(window=(14 * US, 21 * US)), NameStyle.SHORT)
    member, place = table.locate(int(table.order[7]))
    assert narrow.row_of(member.events, place) is None


def test_the_demo_lists_as_many_events_as_its_tables_hold(tmp_path: Path) -> None:
    demo = make(tmp_path, steps=3)
    report = open_report(demo.path, use_cache=False)
    table = events_table(report, Scope(), NameStyle.SHORT)
    database = sqlite3.connect(demo.path)
    rows = 0
    for name, condition in TABLES.items():
        if database.execute("select 1 from sqlite_master where name = ?", (name,)).fetchone():
            rows += database.execute(f"select count(*) from {name} where {condition}").fetchone()[0]
    assert len(table) == rows
    starts = table.column(lambda member: member.events.start[member.rows])[table.order].tolist()
    assert starts == sorted(starts)
