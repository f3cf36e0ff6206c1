"""What the summaries cost: run as a script, prints a table, asserts nothing.

    python tests/benchmarks/bench_stats.py REPORT.sqlite

Ours is measured after the event set is loaded and gives medians and deviations too. Beside it
stands SQLite's own GROUP BY over the same table in the same run, without median or deviation.
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
COMPARED = {
    "cuda_gpu_kern_sum": (f"{CUPTI}KERNEL", "demangledName"),
    "cuda_gpu_kern_sum:base": (f"{CUPTI}KERNEL", "shortName"),
    "cuda_gpu_kern_gb_sum": (
        f"{CUPTI}KERNEL",
        "demangledName, gridX, gridY, gridZ, blockX, blockY, blockZ",
    ),
    "cuda_api_sum": (f"{CUPTI}RUNTIME", "nameId"),
    "cuda_api_sum:merged": (f"{CUPTI}RUNTIME", "nameId"),
    "cuda_gpu_mem_time_sum": (f"{CUPTI}MEMCPY", "copyKind"),
    "nvtx_sum": ("NVTX_EVENTS", "domainId, textId, text"),
    "osrt_sum": ("OSRT_API", "nameId"),
}
ALONE = (
    "cuda_gpu_sum",
    "gpu_work_sum",
    "cuda_gpu_kern_sum:busy",
    "cuda_kern_exec_sum",
    "nvtx_gpu_proj_sum",
    "nvtx_kern_sum",
)
PARTS = ("operations", "api", "calls", "launch_attributes", "ranges", "marks", "osrt")


def best(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Shortest of some runs in seconds; NaN where the report has no such data."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        try:
            work()
        except NoDataError:
            return float("nan")
        times.append(time.perf_counter() - start)
    return min(times)


def group_by(path: Path, table: str, key: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        return connection.execute(GROUP_BY.format(table=table, key=key)).fetchall()
    finally:
        connection.close()


def main() -> None:
    path = Path(sys.argv[1])
    report: Report = open_report(path, use_cache=False)
    print(f"{'load':28}{'s':>8}")
    for part in PARTS:
        print(f"{part:28}{best(lambda part=part: report.load(part), 1):8.2f}")
    sizes = f"{len(report.operations):,} operations, {len(report.api):,} calls"
    print(f"\n{sizes}, {len(report.ranges):,} ranges\n")
    print(f"{'report':28}{'ours s':>8}{'SQL s':>8}{'ratio':>8}")
    for name, (table, key) in COMPARED.items():
        ours = best(lambda name=name: run_report(report, name))
        if ours != ours:
            continue
        theirs = best(lambda table=table, key=key: group_by(path, table, key), 1)
        print(f"{name:28}{ours:8.3f}{theirs:8.2f}{theirs / ours:8.1f}")
    for name in ALONE:
        print(f"{name:28}{best(lambda name=name: run_report(report, name), 1):8.3f}")


if __name__ == "__main__":
    main()
