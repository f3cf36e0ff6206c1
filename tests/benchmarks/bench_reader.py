"""What reading a report's columns costs: run as a script, prints ratios, asserts nothing.

    python tests/benchmarks/bench_reader.py REPORT.sqlite

Every way of reading runs in a process of its own over the same kernel columns, so that memory is
its own too, and gives the same checksum; quick ways run five times for a median. The floor is
reading the file's bytes and nothing else.
``demo/make_report.py --kernels 5000000 -o REPORT.sqlite`` writes a report of the size to reach.
"""

from __future__ import annotations

import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

from nsys_tui.reader import btree, columns
from nsys_tui.reader.cache import Sidecar
from nsys_tui.reader.cells import PagesRefusedError
from nsys_tui.reader.sqlite import Database, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Values = dict[str, NDArray[np.int64]]

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
COLUMNS = (
    "start",
    "end",
    "deviceId",
    "contextId",
    "streamId",
    "correlationId",
    "shortName",
    "gridX",
)
SELECT = f"SELECT {', '.join(map(quoted, COLUMNS))} FROM {KERNELS}"
MB = 1e6
REPEATS = 5
SLOW_SECONDS = 8


def read_bytes(path: Path) -> Values:
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 22):
            pass
    return {}


def read_pages(path: Path) -> Values:
    with Database.open(path) as db:
        raw = columns.read_columns(db, KERNELS, COLUMNS)
    assert raw.method == "pages", raw.why
    return raw.values


def read_fallback(path: Path) -> Values:
    with Database.open(path) as db, mock.patch.object(columns, "TablePages", Refusing):
        raw = columns.read_columns(db, KERNELS, COLUMNS)
    assert raw.method == "sqlite3"
    return raw.values


class Refusing:
    """A decoder that handles nothing."""

    @staticmethod
    def open(*_: object) -> None:
        raise PagesRefusedError("measured")


def read_fetchall(path: Path) -> Values:
    db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    values = np.array(db.execute(SELECT).fetchall(), np.int64)
    return dict(zip(COLUMNS, values.T, strict=True))


def read_pandas(path: Path) -> Values:
    import pandas as pd

    db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    frame = pd.read_sql(SELECT, db)
    return {name: frame[name].to_numpy() for name in COLUMNS}


def checksum(values: Values) -> int:
    return sum(int(array.astype(np.uint64).sum()) for array in values.values()) % 2**64


WAYS: dict[str, Callable[[Path], Values]] = {
    "floor: the file's bytes": read_bytes,
    "pages (ours)": read_pages,
    "sqlite3 (our fall-back)": read_fallback,
    "sqlite3 fetchall": read_fetchall,
    "pandas.read_sql": read_pandas,
}


def measure_way(path: Path, way: str) -> dict[str, Any]:
    """Runs one way in fresh processes and takes the median; a slow one runs once."""
    command = [sys.executable, __file__, str(path), way]
    runs: list[dict[str, Any]] = []
    while not runs or (len(runs) < REPEATS and runs[0]["wall"] < SLOW_SECONDS):
        done = subprocess.run(command, check=True, capture_output=True)
        runs.append(json.loads(done.stdout))
    return sorted(runs, key=lambda run: run["cpu"])[len(runs) // 2]


def run_way(path: Path, way: str) -> dict[str, Any]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    values = WAYS[way](path)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    return {"checksum": checksum(values), "wall": wall, "cpu": cpu, "memory": memory}


def timed(what: str, work: Callable[[], object]) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    note = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{what:76} {wall:7.3f} s {cpu:7.3f} cpu s  {note}")


def compare_ways(path: Path) -> None:
    figures = {way: measure_way(path, way) for way in WAYS}
    pandas = figures["pandas.read_sql"]["cpu"]
    print(f"{'8 kernel columns':28} {'wall s':>8} {'cpu s':>8} {'MB':>7} {'× pandas':>9}  checksum")
    for way, figure in figures.items():
        print(
            f"{way:28} {figure['wall']:8.2f} {figure['cpu']:8.2f} {figure['memory'] / MB:7.0f}"
            f" {pandas / max(figure['cpu'], 1e-3):9.1f}  {figure['checksum']:016x}"
        )


OTHER_TABLES = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end globalTid correlationId nameId",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start end bytes copyKind streamId",
    "NVTX_EVENTS": "start end eventType globalTid textId domainId",
    "OSRT_API": "start end globalTid nameId",
}


def measure_parts(path: Path) -> None:
    """Times what the first screens wait for, each on its own."""
    with Database.open(path) as db:
        timed("row count of kernels", lambda: f"{db.row_count(KERNELS):,} rows")
        for rows in (10_000, 200_000):
            sample = partial(columns.sample_columns, db, KERNELS, COLUMNS, rows)
            timed(f"sample of {rows:,} kernels", lambda sample=sample: sample().method)
        for table, wanted in OTHER_TABLES.items():
            read = partial(columns.read_columns, db, table, wanted.split())
            timed(f"{table}: {wanted}", lambda read=read: read().method)
        read_names = partial(columns.read_text_column, db, "NVTX_EVENTS", "text")
        timed("NVTX texts", lambda: f"{len(read_names()[1]):,} distinct")
        read_strings = partial(columns.read_text, db, "StringIds", "id", "value")
        timed("StringIds", lambda: f"{len(read_strings()[1]):,} texts")
        timed("kernels again, piece by piece", lambda: f"longest {longest_piece(db) * 1e3:.1f} ms")
        raw = columns.read_columns(db, KERNELS, COLUMNS)
    with tempfile.TemporaryDirectory() as root:
        with Database.open(path) as db:
            sidecar = Sidecar.for_report(db.descriptor, Path(root))
        arrays = raw.values  # noqa: PD011
        size = sum(array.nbytes for array in arrays.values())
        timed("sidecar stored", lambda: sidecar.store("k", arrays, {}) and f"{size / MB:.0f} MB")
        timed("sidecar mapped again", lambda: f"{len(sidecar.load('k') or ())} parts")


def longest_piece(db: Database) -> float:
    pages, longest = btree.TablePages.open(db, KERNELS), 0.0
    for chunk in pages.chunks():
        begun = time.perf_counter()
        pages.decode(chunk, COLUMNS)
        longest = max(longest, time.perf_counter() - begun)
    return longest


def main() -> None:
    path = Path(sys.argv[1])
    if len(sys.argv) > 2:
        print(json.dumps(run_way(path, sys.argv[2])))
        return
    compare_ways(path)
    print()
    measure_parts(path)


if __name__ == "__main__":
    main()
