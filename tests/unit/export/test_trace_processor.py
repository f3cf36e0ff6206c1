"""Exported traces in the program that they are made for."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
import trace_processor
from demo_making import make_report
from paths import REPORTS

from nsys_tui.export.perfetto import trace
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

DEMO = "demo"
FIGURES = {
    "category in ('compute', 'comm')": "CUPTI_ACTIVITY_KIND_KERNEL",
    "category = 'OS runtime'": "OSRT_API",
    "category = 'graph'": "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
}
"""Slices of a trace to the table that holds the same events."""

COUNTERS = {DEMO: {"memory in use bytes", "SM Active Throughput %"}}
"""Counters of a trace, with their units."""


@pytest.fixture(params=[DEMO, "many-kernels-2025.5", "pytorch-nccl-2gpu-2026.2"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == DEMO:
        made = tmp_path / "demo.sqlite"
        make_report(made, steps=4)
        return made
    real = REPORTS / f"{request.param}.sqlite"
    if not real.exists():
        pytest.skip("needs the real reports in ../shared/reports, which are absent")
    return real


async def test_perfetto_reads_the_events_and_times_of_the_report(path: Path) -> None:
    report = open_report(path, use_cache=False)
    with closing(sqlite3.connect(path)) as base:
        tables = {name for (name,) in base.execute("select name from sqlite_master")}
        wanted = {
            part: base.execute(f"select count(*), sum(end - start) from {table}").fetchone()
            for part, table in FIGURES.items()
            if table in tables
        }
    async with trace_processor.loaded("".join(trace(report)).encode()) as query:
        for part, figures in wanted.items():
            found = await query(f"select count(*), sum(dur) from slice where {part}")
            assert found == [figures], part
        launched = int((report.calls >= 0).sum())
        assert launched
        assert await query("select count(*) from flow") == [(launched,)]
        # What does not nest or match would be dropped and counted here.
        lost = "select name, value from stats where severity != 'info' and value > 0"
        assert await query(lost) == []
        names = {name for (name,) in await query("select distinct name from process_counter_track")}
        assert COUNTERS.get(path.stem, set()) <= names
