"""What comparing two large reports costs after loading: a script, prints a table, asserts nothing.

    python tests/benchmarks/bench_compare.py [A B]

Without reports it writes two of 5 M kernels first. Loading is not counted; the columns are touched
once before, since a report from the cache is mapped and read on first use.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.compare.comparison import compare, measure_both
from nsys_tui.analysis.compare.measure import measure
from nsys_tui.analysis.compare.plan import plan
from nsys_tui.analysis.compare.stacks import differential_stacks
from nsys_tui.analysis.compare.stats import Sample, judge
from nsys_tui.analysis.rules.ranking import find
from nsys_tui.demo.report import make_report
from nsys_tui.model.report import PARTS
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.model.report import Report

KERNELS = 5_000_000
REPEATS = 5


def bench(what: str, work: Callable[[], object], repeats: int = REPEATS) -> None:
    """Prints the median and the fastest of some runs, wall and CPU seconds."""
    wall, cpu = [], []
    for _ in range(repeats):
        begun, used = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - used)
    print(
        f"{what:44} {statistics.median(wall):8.2f} s {min(wall):8.2f} {statistics.median(cpu):8.2f}"
    )


def loaded(path: Path) -> Report:
    """A report with every column in memory."""
    report = open_report(path)
    for part in PARTS:
        events = getattr(report, part)
        for field in fields(events):
            values = getattr(events, field.name)
            if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
                values.max(initial=0)
    report.extent, report.calls.max(initial=0)
    return report


def run(first: Path, second: Path) -> None:
    """Measures two reports."""
    reports = loaded(first), loaded(second)
    for report in reports:
        sets = (report.operations, report.api, report.ranges, report.osrt)
        print(f"{report.name}: " + ", ".join(f"{type(s).__name__} {len(s):,}" for s in sets))
    print(f"{'':44} {'median':>10} {'fastest':>8} {'CPU':>8}")
    plans = [plan(report) for report in reports]
    bench("find the steps of both", lambda: [plan(report) for report in reports])
    bench("measure one side", lambda: measure(plans[0]))
    bench("measure both, two threads", lambda: measure_both(*plans))
    sides = measure_both(*plans)
    bench("compare the measured sides", lambda: compare(*sides))
    bench("all of it: the verdict", lambda: compare(*measure_both(*map(plan, reports))))
    bench("findings of one side", lambda: find(reports[0]), 2)
    bench("differential stacks", lambda: differential_stacks(*plans), 1)
    values = np.sort(np.random.default_rng(0).integers(1000, 2000, KERNELS))
    samples = Sample.of(values), Sample.of(values + 1)
    bench("one verdict over 5 M instances", lambda: judge(*samples))


def main(argv: list[str]) -> None:
    """Runs on the reports given, or on two made for the purpose."""
    if argv:
        run(Path(argv[0]), Path(argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{steps}.sqlite" for steps in (10, 12)]
        for path, steps in zip(paths, (10, 12), strict=True):
            make_report(path, kernels=KERNELS, steps=steps)
        run(*paths)


if __name__ == "__main__":
    main(sys.argv[1:])
