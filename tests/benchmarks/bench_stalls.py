"""What breakdown and stalls of a large report cost: a script, prints a table, asserts nothing.

    python tests/benchmarks/bench_stalls.py [REPORT]

Without a report it writes one of 5 M kernels first. Loading is not counted, but the first figure
includes touching the mapped columns. The floor is one union of all operations of each device.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.breakdown import device_splits, ten_figures
from nsys_tui.analysis.overview import overview
from nsys_tui.analysis.stalls.gaps import stalls
from nsys_tui.analysis.stalls.host_activity import HostWork
from nsys_tui.analysis.stalls.rows import stall_groups, stall_rows
from nsys_tui.demo.report import make_report
from nsys_tui.model import intervals
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.model.report import Report

KERNELS = 5_000_000
REPEATS = 5


def measure(what: str, work: Callable[[], object]) -> None:
    """Prints the median and the fastest of some runs, wall and CPU seconds."""
    wall, cpu = [], []
    for _ in range(REPEATS):
        begun, used = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - used)
    print(
        f"{what:40} {statistics.median(wall):8.2f} s {min(wall):8.2f} {statistics.median(cpu):8.2f}"
    )


def floor(report: Report) -> None:
    """The least that any of these has to do."""
    ops = report.operations
    for place in range(len(ops.devices)):
        rows = np.flatnonzero(ops.device == place)
        intervals.union(ops.start[rows], ops.end[rows])


def run(path: Path) -> None:
    """Measures one report."""
    report = open_report(path)
    sets = (report.operations, report.api, report.ranges, report.osrt)
    report.extent, report.calls  # noqa: B018
    print(f"{path.name}: " + ", ".join(f"{type(s).__name__} {len(s):,}" for s in sets))
    print(f"{'':40} {'median':>10} {'fastest':>8} {'CPU':>8}")
    measure("floor: union per device", lambda: floor(report))
    measure("device splits, overlaps, exposed", lambda: device_splits(report))
    measure("ten figures", lambda: ten_figures(report))
    measure("overview, all of it", lambda: overview(report))
    measure("stalls with causes", lambda: stalls(report))
    work = HostWork(report)
    result = stalls(report, work=work)
    measure(
        "stalls again, another threshold", lambda: stalls(report, threshold_ns=20_000, work=work)
    )
    measure("100 rows", lambda: stall_rows(report, result, 100))
    measure("groups by range", lambda: stall_groups(report, result, "range"))


def main(argv: list[str]) -> None:
    """Runs on the report given, or on one made for the purpose."""
    if argv:
        run(Path(argv[0]))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "five.sqlite"
        make_report(path, kernels=KERNELS)
        run(path)


if __name__ == "__main__":
    main(sys.argv[1:])
