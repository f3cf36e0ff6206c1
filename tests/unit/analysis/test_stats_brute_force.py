"""Every figure of every summary on every real report, against plain SQL and loops."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from brute import Figures, grouped, query
from paths import needs_reports, report_paths

from nsys_tui.analysis.stats.reports import run_report
from nsys_tui.errors import NoDataError
from nsys_tui.model.table import plain
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.model.report import Report
    from nsys_tui.model.table import Table

CUPTI = "CUPTI_ACTIVITY_KIND"
KERNELS = (
    "select s.value, k.end - k.start from {cupti}_KERNEL k join StringIds s on s.id = k.{column}"
)
API = (
    """select s.value, r.end - r.start from {cupti}_RUNTIME r join StringIds s on s.id = r.nameId"""
)
OSRT = """select s.value, o.end - o.start from OSRT_API o join StringIds s on s.id = o.nameId
          where o.eventClass = 27"""
NVTX = """select coalesce(d.text || ':', '') || coalesce(e.text, s.value),
                 e.end - e.start, e.eventType
          from NVTX_EVENTS e left join StringIds s on s.id = e.textId
          left join NVTX_EVENTS d on d.eventType = 75 and d.domainId = e.domainId
               and d.globalTid >> 24 = e.globalTid >> 24
          where e.eventType in (59, 60, 70, 71) and e.end is not null"""
COPIES = """select copyKind, {value} from {cupti}_MEMCPY
            union all select -1, {value} from {cupti}_MEMSET"""
LABELS = (
    "Unknown", "Host-to-Device", "Device-to-Host", "Host-to-Array", "Array-to-Host",
    "Array-to-Array", "Array-to-Device", "Device-to-Array", "Device-to-Device", "Host-to-Host",
    "Peer-to-Peer", "Unified Host-to-Device", "Unified Device-to-Host",
    "Unified Device-to-Device",
)  # fmt: skip

every_report = pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
pytestmark = needs_reports


@cache
def opened(path: Path) -> Report:
    return open_report(path, use_cache=False)


def computed(path: Path, name: str) -> Table | None:
    try:
        return run_report(opened(path), name)
    except NoDataError:
        return None


def same(table: Table | None, expected: dict[Any, Figures], *labels: str) -> None:
    """The table has exactly the expected groups and figures, and is sorted by total."""
    if table is None:
        assert not expected
        return
    found = {}
    first = 0 if table.columns[0].header == "Total" else 1
    place = [column.header for column in table.columns].index(labels[0])
    for row in table.rows():
        key = row[place] if len(labels) == 1 else row[place : place + len(labels)]
        assert key not in found
        found[key] = row[first : first + 7]
    assert found.keys() == expected.keys()
    for key, want in expected.items():
        total, count, mean, median, least, most, deviation = found[key]
        assert (total, count, least, most) == (want.total, want.count, want.least, want.most), key
        assert mean == want.mean
        assert median == want.median
        assert deviation == pytest.approx(want.deviation, rel=1e-9, abs=1e-6)
    totals = [row[first] for row in table.rows()]
    assert totals == sorted(totals, reverse=True)


@every_report
@pytest.mark.parametrize(
    ("argument", "column"), [("", "demangledName"), (":base", "shortName"), (":mangled", "")]
)
def test_kernels(path: Path, argument: str, column: str) -> None:
    rows = query(path, KERNELS.format(cupti=CUPTI, column=column or "mangledName"))
    rows = rows or query(path, KERNELS.format(cupti=CUPTI, column="demangledName"))
    same(computed(path, f"cuda_gpu_kern_sum{argument}"), grouped(rows), "Name")


@every_report
def test_api_calls_by_recorded_name(path: Path) -> None:
    rows = query(path, API.format(cupti=CUPTI))
    table = computed(path, "cuda_api_sum")
    by_recorded = grouped(rows)
    assert sorted(figures[:2] for figures in by_recorded.values()) == sorted(
        row[1:3] for row in (table.rows() if table else [])
    )
    plain = {re.sub(r"_v\d{4}$", "", str(name)) for name in by_recorded}
    assert plain == set(table["Name"] if table else ())


@every_report
def test_merged_api_calls(path: Path) -> None:
    rows = query(path, API.format(cupti=CUPTI) + " where r.eventClass <> 67")
    expected = grouped((re.sub(r"_v\d{4,5}$", "", name), value) for name, value in rows)
    same(computed(path, "cuda_api_sum:merged"), expected, "Name")


@every_report
def test_os_runtime_calls(path: Path) -> None:
    same(computed(path, "osrt_sum"), grouped(query(path, OSRT)), "Name")


@every_report
def test_ranges(path: Path) -> None:
    rows = query(path, NVTX)
    style = {59: "PushPop", 70: "PushPop", 60: "StartEnd", 71: "StartEnd"}
    expected = grouped(((style[kind], name), value) for name, value, kind in rows)
    same(computed(path, "nvtx_sum"), expected, "Style", "Range")
    pushed = grouped((name, value) for name, value, kind in rows if kind in (59, 70))
    same(computed(path, "nvtx_pushpop_sum"), pushed, "Range")


def label(kind: int) -> str:
    return "[CUDA memset]" if kind == -1 else f"[CUDA memcpy {LABELS[kind]}]"


def copies(path: Path, value: str) -> list[tuple[str, int]]:
    both = COPIES.format(cupti=CUPTI, value=value)
    rows = query(path, both) or query(path, both.partition("union")[0])
    return [(label(kind), amount) for kind, amount in rows]


@every_report
def test_memory_operations_by_time_and_size(path: Path) -> None:
    same(computed(path, "cuda_gpu_mem_time_sum"), grouped(copies(path, "end - start")), "Operation")
    same(computed(path, "cuda_gpu_mem_size_sum"), grouped(copies(path, "bytes")), "Operation")


@every_report
def test_gpu_summary_is_kernels_and_memory_together(path: Path) -> None:
    kernels = query(path, KERNELS.format(cupti=CUPTI, column="demangledName"))
    rows = [(("CUDA_KERNEL", name), value) for name, value in kernels]
    rows += [(("MEMORY_OPER", name), value) for name, value in copies(path, "end - start")]
    same(computed(path, "cuda_gpu_sum"), grouped(rows), "Category", "Operation")


@every_report
def test_shares_add_up_and_follow_the_totals(path: Path) -> None:
    for name in ("cuda_api_sum", "cuda_gpu_kern_sum", "osrt_sum", "nvtx_sum"):
        table = computed(path, name)
        if table is not None:
            whole = sum(table["Total Time"])
            assert list(table["Time"]) == [100.0 * total / whole for total in table["Total Time"]]


@every_report
def test_queue_time_of_launches(path: Path) -> None:
    rows = query(
        path,
        f"""select k.start, k.end, min(r.start), r.end from {CUPTI}_KERNEL k
            join {CUPTI}_RUNTIME r on r.correlationId = k.correlationId
                 and r.globalTid & ~16777215 = k.globalPid and r.eventClass <> 67
            group by k.rowid""",
    )
    table = computed(path, "cuda_kern_exec_trace")
    if table is None:
        assert not rows
        return
    expected = sorted(
        (call, done - call, None if start < done else start - done, start, max(done, end) - call)
        for start, end, call, done in rows
    )
    columns = ("API Start", "API Dur", "Queue Dur", "Kernel Start", "Total Dur")
    found = zip(*(plain(table[c]) for c in columns), strict=True)
    assert sorted(found, key=lambda row: row[3:]) == sorted(expected, key=lambda row: row[3:])
    sums = computed(path, "cuda_kern_exec_sum")
    assert sums is not None
    assert sum(sums["Count"]) == len(rows)
    assert sum(sums["QCount"]) == sum(row[2] is not None for row in expected)


PROJECTED = f"""
    select n.rowid, min(g.start), max(g.end), count(*)
    from NVTX_EVENTS n
    join {CUPTI}_RUNTIME r on r.globalTid = n.globalTid and r.start >= n.start and r.end <= n.end
         and r.eventClass <> 67
    join (select start, end, correlationId, globalPid from {CUPTI}_KERNEL
          union all select start, end, correlationId, globalPid from {CUPTI}_MEMCPY
          union all select start, end, correlationId, globalPid from {CUPTI}_MEMSET) g
         on g.correlationId = r.correlationId and g.globalPid = r.globalTid & ~16777215
    where n.eventType in (59, 60) and n.endGlobalTid is null and n.end is not null
          and n.rowid % 5 = 0
    group by n.rowid
"""


@pytest.mark.parametrize(
    "path", [p for p in report_paths() if "pytorch" in p.name or "windows" in p.name]
)
def test_projection_of_ranges(path: Path, tmp_path: Path) -> None:
    # The join is quadratic without indexes, which a copy may have and the report may not.
    import shutil
    import sqlite3

    copy = tmp_path / "copy.sqlite"
    shutil.copyfile(path, copy)
    with sqlite3.connect(copy) as connection:
        connection.execute(f"create index a on {CUPTI}_RUNTIME(globalTid, start)")
        for kind in ("KERNEL", "MEMCPY", "MEMSET"):
            connection.execute(f"create index g{kind} on {CUPTI}_{kind}(correlationId)")
    table = computed(path, "nvtx_gpu_proj_trace")
    assert table is not None
    columns = ("RangeId", "Projected Start", "Projected Duration", "NumGPUOps")
    found = [row for row in zip(*(list(table[c]) for c in columns), strict=True) if row[0] % 5 == 0]
    expected = [(row, lo, hi - lo, n) for row, lo, hi, n in query(copy, PROJECTED)]
    assert expected
    assert sorted(found) == sorted(expected)
