"""How a fleet grows: CPU time per rank, what two workers gain, how fast a heat map is drawn.

    python tests/benchmarks/bench_fleet.py [--ranks 8 64 512 4096] [--kernels 2000] [--gain]

A script: prints a table. One report is written, and again for every rank with another host, so that
all cost the same. What two workers can gain here at all is measured by a bare numpy loop in two
processes: the share of that gain is the figure to look at.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.demo.report import make_report
from nsys_tui.fleet.engine import local_pool
from nsys_tui.fleet.heat_maps import heat_map
from nsys_tui.fleet.loading import run_fleet
from nsys_tui.fleet.mapping import Opening
from nsys_tui.fleet.table_parts import Ask
from nsys_tui.fleet.tables import SECTIONS, summary_sections
from nsys_tui.render.glyphs import UNICODE
from nsys_tui.render.heatmap import heat

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.fleet.engine import Result
    from nsys_tui.fleet.fleet import Fleet
    from nsys_tui.fleet.heat_maps import HeatMap

UNCACHED = Opening(use_cache=False)
BINS = 500


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


def write_ranks(first: Path, made: int, count: int) -> list[Path]:
    """Reports of different ranks, the one of ``first`` on as many hosts; those ``made`` are there.

    Its bytes with another host and another user version (bytes 60-63 of the SQLite header), each of
    the same length: so a rank costs one write, and none is left out as a copy.
    """
    content = bytearray(first.read_bytes())
    place = content.find(b"demo-node")
    paths = [first.with_name(f"rank_{rank}.sqlite") for rank in range(count)]
    for rank in range(made, count):
        content[60:64] = rank.to_bytes(4, "big")
        content[place : place + 9] = b"n%08d" % rank
        paths[rank].write_bytes(content)
    return paths


def children() -> float:
    """CPU seconds of all workers that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def worker_peak() -> float:
    """Most resident memory of a running worker, MiB; rusage would count what it was forked from."""
    found = [0.0]
    for child in multiprocessing.active_children():
        status = Path(f"/proc/{child.pid}/status").read_text()
        found += [int(line.split()[1]) / 1024 for line in status.splitlines() if "VmHWM" in line]
    return max(found)


def scaling(first: Path, counts: list[int], opening: Opening) -> Fleet:
    """CPU time per rank over the number of ranks: opening, putting together, every section.

    What a worker's start with its first report costs is told apart: once for all ranks.
    """
    made, cost, starts = 1, 0.0, []
    one = write_ranks(first, 0, 1)
    for _ in range(3):
        begun = children()
        run_fleet(one, engine=local_pool(1), opening=UNCACHED)
        starts.append(children() - begun)
    start = statistics.median(starts)
    print(f"a worker's start with its first report: {start * 1e3:.0f} ms, once; beside that:")
    print(f"{'ranks':>6} {'map':>9} {'here':>9} {'sections':>9} {'a rank':>9} {'worker':>8}")
    for count in counts:
        paths = write_ranks(first, made, count)
        made = count
        before, begun = children(), time.process_time()
        peaks: list[float] = []

        def told(
            _path: str, _result: Result, done: int, total: int, peaks: list[float] = peaks
        ) -> None:
            if done == total:
                peaks.append(worker_peak())

        fleet = run_fleet(paths, engine=local_pool(1), opening=opening, told=told)
        mapped, here = children() - before, time.process_time() - begun
        assert len(fleet.members) == count, fleet.left_out[:1]
        begun = time.process_time()
        for name in summary_sections(fleet):
            SECTIONS[name](fleet, Ask(top=20))
        shown = time.process_time() - begun
        mapped = (mapped - start) * count / (count - 1)
        cost = (mapped + here + shown) / count
        parts = "".join(f" {part / count * 1e3:>6.2f} ms" for part in (mapped, here, shown))
        print(f"{count:>6}{parts} {cost * 1e3:>6.2f} ms {max(peaks):>4.0f} MiB", flush=True)
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    held = resident * 16_384 / made / 1024
    print(
        f"{resident:.0f} MiB here; 16,384 ranks: ≈ {cost * 16_384 / 60:.1f} CPU min, {held:.1f} GiB"
    )
    return fleet


def gains(paths: list[Path], rounds: int = 3) -> None:
    """What two workers gain, beside what a bare loop gains at the same moment."""
    print(f"{'':>8} {'numpy loop':>11} {'fleet':>7} {'share':>7}")
    for number in range(rounds):
        floor = bare(1, len(paths)) / bare(2, len(paths))
        one = timed(lambda: run_fleet(paths, opening=UNCACHED))
        two = timed(lambda: run_fleet(paths, opening=UNCACHED, workers=2))
        print(f"round {number + 1:>2} {floor:>11.2f} {one / two:>7.2f} {one / two / floor:>7.0%}")


def drawing(fleet: Fleet) -> None:
    """A heat map of all ranks, from the summaries to the cells."""
    made: list[HeatMap] = []
    spent = timed(lambda: made.append(heat_map(fleet, "busy", BINS)))
    print(f"map of {len(fleet.rows)} x {BINS}: {spent * 1e3:.0f} ms")
    drawn = timed(lambda: heat(made[0].values, 60, 200, UNICODE, 100.0)) * 1e3
    print(f"drawn into 60 x 200 cells: {drawn:.1f} ms")


def main() -> None:
    """Writes the reports and measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 64, 512])
    parser.add_argument("--kernels", type=int, default=2_000)
    parser.add_argument("--cache", action="store_true", help="keep summaries, as by default")
    parser.add_argument("--gain", action="store_true", help="what two workers gain, at 64 ranks")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NSYS_TUI_CACHE"] = f"{folder}/cache"
        first = Path(folder) / "first.sqlite"
        make_report(first, kernels=arguments.kernels, gpus=1)
        size = first.stat().st_size / 1e6
        print(f"{arguments.kernels:,} kernels, {size:.1f} MB a report; CPU time a rank:")
        opening = Opening(use_cache=arguments.cache)
        drawing(scaling(first, sorted(arguments.ranks), opening))
        if arguments.gain:
            gains(write_ranks(first, 0, 64))


if __name__ == "__main__":
    main()
