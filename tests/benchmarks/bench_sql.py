"""Views against plain SQL over nsys's tables, on a report of any size: CPU seconds and ratios.

python tests/benchmarks/bench_sql.py REPORT
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

from nsys_tui.reader import open_report
from nsys_tui.sql.console import Console

if TYPE_CHECKING:
    from collections.abc import Callable

PAIRS = {
    "sum of all": (
        "select count(*), sum(duration_ns) from kernels",
        'select count(*), sum("end" - start) from CUPTI_ACTIVITY_KIND_KERNEL',
    ),
    "by GPU": (
        "select device, count(*), sum(duration_ns) from kernels group by 1",
        'select deviceId, count(*), sum("end" - start) from CUPTI_ACTIVITY_KIND_KERNEL group by 1',
    ),
    "by name": (
        "select name, count(*), sum(duration_ns) from kernels group by 1",
        'select s.value, count(*), sum(k."end" - k.start) from CUPTI_ACTIVITY_KIND_KERNEL k'
        " join StringIds s on s.id = k.shortName group by 1",
    ),
    "longest": (
        "select name, duration_ns from kernels order by duration_ns desc limit 20",
        'select s.value, k."end" - k.start from CUPTI_ACTIVITY_KIND_KERNEL k'
        " join StringIds s on s.id = k.shortName order by 2 desc limit 20",
    ),
}


def taken(work: Callable[[], Any]) -> float:
    began = process_time()
    work()
    return process_time() - began


def main(path: Path) -> None:
    report = open_report(path, use_cache=False)
    began = process_time()
    console = Console(report)
    page = "select * from kernels"
    first = taken(lambda: console.run(page, limit=1_000))
    print(
        f"first page of {page!r}: {first:.3f} s; opened in {process_time() - began - first:.3f} s"
    )
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as plain:
        plain.execute(PAIRS["sum of all"][1]).fetchall()  # pages come from memory from now on
        for name, (own, other) in PAIRS.items():
            ours = taken(lambda own=own: console.run(own))
            theirs = taken(lambda other=other: plain.execute(other).fetchall())
            print(f"{name}: {ours:.2f} s, sqlite3 {theirs:.2f} s, ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
