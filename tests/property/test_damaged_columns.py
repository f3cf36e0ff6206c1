"""Numbers that are none, in tables that few reports have: statistics skip them and never fail."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from synth import Synth

from nsys_tui.analysis.stats.query import REPORTS
from nsys_tui.analysis.stats.reports import run_report
from nsys_tui.errors import NoDataError
from nsys_tui.model.kinds import Kind
from nsys_tui.reader import open_report
from nsys_tui.text.tables import render

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS: Final = (
    ("CUDA_UM_CPU_PAGE_FAULT_EVENTS", "start address CpuInstruction"),
    ("CUDA_UM_GPU_PAGE_FAULT_EVENTS", "start end address numberOfPageFaults"),
    ("CUPTI_ACTIVITY_KIND_KERNEL", "greenContextId registersPerThread gridX"),
    ("CUPTI_ACTIVITY_KIND_MEMCPY", "start end bytes copyKind virtualAddress"),
    ("NET_NIC_METRIC", "start end value globalId metricsIdx"),
    ("ThreadNames", "priority nameId globalTid"),
    ("VULKAN_API", "start end globalTid nameId eventClass"),
    ("WDDM_QUEUE_PACKET_START_EVENTS", "start globalTid gpu context submitSequence engineType"),
    ("WDDM_QUEUE_PACKET_STOP_EVENTS", "start context submitSequence"),
)
VALUES: Final = ("NULL", "'oops'", "x'ff41'", "9e999", "1.5", "9223372036854775807")


@pytest.fixture(scope="module")
def rare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with tables of Windows, networks and unified memory."""
    made = Synth(tmp_path_factory.mktemp("rare") / "rare.sqlite").process(100, "app").gpu(0)
    thread = made.gtid()
    made.thread(100, "main").launch("gemm()", (0, 10), (20, 30))
    made.memcpy(40, 50, kind="UVM HtoD", bytes=4096, virtualAddress=0x1000)
    made.page_faults(gpu=0x2000, cpu=0x3000)
    metric = {"metricsListId": 1, "metricsIdx": 0, "description": "", "unit": ""}
    made.add("TARGET_INFO_NETWORK_METRICS", name="IB: Send waits", **metric)
    made.add(
        "NET_NIC_METRIC", start=0, end=1_000_000, globalId=4, portId=1, metricsListId=1,
        metricsIdx=0, value=20_000,
    )  # fmt: skip
    packet = [
        "start INTEGER", "end INTEGER", "globalTid INTEGER", "gpu INTEGER", "context INTEGER",
        "submitSequence INTEGER", "engineType INTEGER",
    ]  # fmt: skip
    made.raw("WDDM_QUEUE_PACKET_START_EVENTS", packet, [(0, 0, thread, 0, 5, 1, 1)])
    made.raw("WDDM_QUEUE_PACKET_STOP_EVENTS", packet, [(20, 20, thread, 0, 5, 1, 1)])
    call = [
        "start INTEGER", "end INTEGER", "globalTid INTEGER", "nameId INTEGER",
        "eventClass INTEGER", "contextId INTEGER", "correlationId INTEGER",
    ]  # fmt: skip
    made.raw("VULKAN_API", call, [(0, 9, thread, made.string("vkQueueSubmit"), 53, 1, 1)])
    return made.write()


@given(
    place=st.sampled_from([(t, c) for t, columns in COLUMNS for c in columns.split()]),
    value=st.sampled_from(VALUES),
)
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
def test_statistics_live_with_numbers_that_are_none(
    rare: Path, place: tuple[str, str], value: str
) -> None:
    table, column = place
    path = rare.with_name("damaged.sqlite")
    shutil.copyfile(rare, path)
    with closing(sqlite3.connect(path)) as db, suppress(sqlite3.Error):
        db.execute(f'UPDATE "{table}" SET "{column}" = {value}')
        db.commit()
    report = open_report(path, use_cache=False)
    for name in REPORTS:
        with suppress(NoDataError):
            found = run_report(report, name)
            assert render(found, "csv").count("\n") == len(found) + 1
            render(found, "column")
    report.close()


def test_what_is_no_number_is_none_in_a_column_of_numbers(rare: Path) -> None:
    path = rare.with_name("priority.sqlite")
    shutil.copyfile(rare, path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE ThreadNames SET priority = 'high'")
        db.commit()
    found = open_report(path, use_cache=False).rows(Kind.THREAD, "priority", "name")
    assert found["priority"] == [None] * len(found)
    assert None not in found["name"]
