"""What the summaries cost: run as a script, prints a table, asserts nothing.

    python tests/benchmarks/bench_stats.py REPORT.sqlite

Ours is measured after the event set is loaded and gives medians and deviations too. Beside it
stands SQLite's own GROUP BY over the same tables in the same run, without median or deviation. The
ratio is of CPU seconds, which other work on the machine changes least.
``demo/make_report.py --kernels 5000000 -o REPORT.sqlite`` writes a report of the size to reach.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_tui.analysis.stats.reports import run_report
from nsys_tui.errors import NoDataError
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.model.report import Report

REPEATS = 3
GROUP_BY = (
    "select {key}, count(*), sum(end - start), avg(end - start), min(end - start), max(end - start)"
    " from {table} group by {key}"
)
CUPTI = "CUPTI_ACTIVITY_KIND_"
SHAPE = "gridX, gridY, gridZ, blockX, blockY, blockZ"
COMPARED = {
    "cuda_gpu_kern_sum": {f"{CUPTI}KERNEL": "demangledName"},
    "cuda_gpu_kern_sum:base": {f"{CUPTI}KERNEL": "shortName"},
    "cuda_gpu_kern_gb_sum": {f"{CUPTI}KERNEL": f"demangledName, {SHAPE}"},
    "cuda_api_sum": {f"{CUPTI}RUNTIME": "nameId"},
    "cuda_api_sum:merged": {f"{CUPTI}RUNTIME": "nameId"},
    "cuda_gpu_mem_time_sum": {f"{CUPTI}MEMCPY": "copyKind", f"{CUPTI}MEMSET": "1"},
    "nvtx_sum": {"NVTX_EVENTS": "domainId, textId, text"},
    "osrt_sum": {"OSRT_API": "nameId"},
}
"""Report: tables that it reads, each with what it is grouped by."""
ALONE = (
    "cuda_gpu_sum",
    "gpu_work_sum",
    "cuda_gpu_kern_sum:busy",
    "cuda_kern_exec_sum",
    "nvtx_gpu_proj_sum",
    "nvtx_kern_sum",
)
PARTS = ("operations", "api", "calls", "launch_attributes", "ranges", "marks", "osrt")


def best(work: Callable[[], object], repeats: int = REPEATS) -> tuple[float, float]:
    """Shortest of some runs, wall and CPU seconds; NaN where the report has no such data."""
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            work()
        except NoDataError:
            return float("nan"), float("nan")
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return min(walls), min(cpus)


def group_by(path: Path, tables: dict[str, str]) -> None:
    connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        for table, key in tables.items():
            connection.execute(GROUP_BY.format(table=table, key=key)).fetchall()
    finally:
        connection.close()


def main() -> None:
    path = Path(sys.argv[1])
    report: Report = open_report(path, use_cache=False)
    print(f"{'load':28}{'s':>8}")
    for part in PARTS:
        print(f"{part:28}{best(lambda part=part: report.load(part), 1)[0]:8.2f}")
    sizes = f"{len(report.operations):,} operations, {len(report.api):,} calls"
    print(f"\n{sizes}, {len(report.ranges):,} ranges\n")
    print(f"{'report':28}{'ours s':>8}{'CPU s':>8}{'SQL s':>8}{'CPU s':>8}{'ratio':>8}")
    for name, tables in COMPARED.items():
        wall, cpu = best(lambda name=name: run_report(report, name))
        if wall != wall:
            continue
        theirs, used = best(lambda tables=tables: group_by(path, tables))
        print(f"{name:28}{wall:8.3f}{cpu:8.3f}{theirs:8.2f}{used:8.2f}{used / cpu:8.1f}")
    for name in ALONE:
        wall, cpu = best(lambda name=name: run_report(report, name), 2)
        print(f"{name:28}{wall:8.3f}{cpu:8.3f}")


if __name__ == "__main__":
    main()
