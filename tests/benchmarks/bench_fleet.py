"""How a fleet grows: time per report, what two workers gain, and how fast a heat map is drawn.

    python tests/benchmarks/bench_fleet.py [--reports 64] [--kernels 200000]

A script: prints a table, asserts nothing. One report is written and copied, so that all cost the
same. What two workers can gain here at all is measured by a bare numpy loop in two processes: the
share of that gain is the figure to look at. Nothing is kept between measurements.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.demo.report import make_report
from nsys_tui.fleet.heat_maps import heat_map
from nsys_tui.fleet.loading import run_fleet
from nsys_tui.fleet.mapping import Opening, map_report
from nsys_tui.fleet.reduction import reduce
from nsys_tui.fleet.summary import Options, ReportSummary
from nsys_tui.fleet.table_parts import Ask
from nsys_tui.fleet.tables import SECTIONS, summary_sections
from nsys_tui.render.glyphs import UNICODE
from nsys_tui.render.heatmap import heat

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.fleet.fleet import Fleet

UNCACHED = Opening(use_cache=False)
RANKS, BINS = 1024, 500


def timed(work: Callable[[], object]) -> float:
    """Wall seconds."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def numpy_loop(seed: int) -> float:
    """Work of the kind that summaries are made of, and nothing else: about as long as a report."""
    random = np.random.default_rng(seed)
    total = 0.0
    for _ in range(6):
        values = random.integers(0, 1 << 40, 400_000)
        order = np.argsort(values, kind="stable")
        total += float(np.cumsum(values[order])[-1])
    return total


def bare(workers: int, tasks: int) -> float:
    """Wall seconds of the numpy loop, many times over, in some processes."""
    if workers == 1:
        return timed(lambda: [numpy_loop(n) for n in range(tasks)])

    def pool() -> None:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, mp_context=context) as executor:
            list(executor.map(numpy_loop, range(tasks)))

    return timed(pool)


def growth(paths: list[Path]) -> None:
    """Time over the number of reports, in one process and in two."""
    print(f"{'reports':>8} {'1 worker':>10} {'per report':>11} {'2 workers':>10} {'gain':>6}")
    count = max(len(paths) // 4, 1)
    while count <= len(paths):
        part = paths[:count]
        one = timed(lambda part=part: run_fleet(part, opening=UNCACHED))
        two = timed(lambda part=part: run_fleet(part, opening=UNCACHED, workers=2))
        print(f"{count:>8} {one:>9.2f}s {one / count * 1e3:>9.1f}ms {two:>9.2f}s {one / two:>6.2f}")
        count *= 2


def gains(paths: list[Path], rounds: int = 3) -> None:
    """What two workers gain, beside what a bare loop gains at the same moment."""
    print(f"{'':>8} {'numpy loop':>11} {'fleet':>7} {'share':>7}")
    for number in range(rounds):
        floor = bare(1, len(paths)) / bare(2, len(paths))
        one = timed(lambda: run_fleet(paths, opening=UNCACHED))
        two = timed(lambda: run_fleet(paths, opening=UNCACHED, workers=2))
        print(f"round {number + 1:>2} {floor:>11.2f} {one / two:>7.2f} {one / two / floor:>7.0%}")


def drawing(path: Path) -> None:
    """A heat map of a thousand ranks, from the summaries to the cells."""
    summary = map_report(str(path), Options(), UNCACHED)
    assert isinstance(summary, ReportSummary)
    several = [(f"r_{n}", summary) for n in range(RANKS // len(summary.processes))]
    made: list[Fleet] = []
    print(f"reduce {RANKS} ranks: {timed(lambda: made.append(reduce(several))) * 1e3:.0f} ms")
    fleet = made[0]
    _ = fleet.rows
    print(f"map of {RANKS} x {BINS}: {timed(lambda: heat_map(fleet, 'busy', BINS)) * 1e3:.0f} ms")
    shown = heat_map(fleet, "busy", BINS)
    drawn = timed(lambda: heat(shown.values, 60, 200, UNICODE, 100.0)) * 1e3
    print(f"drawn into 60 x 200 cells: {drawn:.1f} ms")
    ask = Ask(top=20)
    every = timed(lambda: [SECTIONS[name](fleet, ask) for name in summary_sections(fleet)])
    print(f"all sections of {RANKS} ranks: {every:.2f} s")


def main() -> None:
    """Writes the reports and measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=64)
    parser.add_argument("--kernels", type=int, default=200_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NSYS_TUI_CACHE"] = f"{folder}/cache"
        first = Path(folder) / "rank_0.sqlite"
        made = make_report(first, kernels=arguments.kernels)
        size = first.stat().st_size / 1e6
        print(f"{made.kernels:,} kernels, {size:.0f} MB a report")
        paths = [first]
        for rank in range(1, arguments.reports):
            paths.append(first.with_name(f"rank_{rank}.sqlite"))
            shutil.copyfile(first, paths[-1])
        drawing(first)
        growth(paths)

        gains(paths)


if __name__ == "__main__":
    main()
