"""How the time of each verb grows: a shape of report at n and at 10 n, in CPU seconds.

Prints a table; nothing is asserted. Ten times the events should take about ten times as long, and
what takes a hundred times as long is quadratic.

    python tests/benchmarks/bench_scaling.py [--n 3000] [--limit 120] [SHAPE...] [--verbs V,V]
"""

from __future__ import annotations

import argparse
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from synth import Synth

VERBS = {
    "overview": ["overview", "--format", "json"],
    "analyze": ["analyze", "--format", "json"],
    "stalls": ["stalls", "--format", "json"],
    "iterations": ["iterations", "--format", "json"],
    "folded": ["stacks"],
    "svg": ["stacks", "--format", "svg"],
    "stacks json": ["stacks", "--format", "json"],
    "tree": ["stacks", "--format", "tree"],
    "collectives": ["collectives", "--format", "json"],
    "kernel stats": ["stats", "-r", "cuda_gpu_kern_sum,cuda_kern_exec_sum,cuda_api_sum"],
    "nvtx stats": ["stats", "-r", "nvtx_sum,nvtx_gpu_proj_sum,nvtx_kern_sum"],
    "nvtx trace": ["stats", "-r", "nvtx_pushpop_trace"],
    "fleet": ["fleet", "--workers", "1", "--format", "json"],
    "compare": ["compare", "--format", "json"],
}


RANGES = "NVTX_EVENTS"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
PROCESS = 1 << 24
"""From the global id of one process to that of the next."""


@dataclass(frozen=True)
class Shape:
    """A report in SQL expressions of ``i``, the number of the row."""

    ranges: tuple[tuple[str, str, str], ...] = ()
    """Text, start and end, one table of rows for each."""
    call: str = "i * 100 + 2"
    """Start of a launch; it takes 2 ns."""
    kernel: tuple[str, str] = ("i * 100 + 10", "i * 100 + 90")
    style: int = 59
    name: str = "gemm"
    range_columns: dict[str, str] = field(default_factory=dict)
    call_columns: dict[str, str] = field(default_factory=dict)
    kernel_columns: dict[str, str] = field(default_factory=dict)
    names: bool = False
    """Whether every kernel has a name of its own."""

    def write(self, path: Path, n: int) -> Path:
        """Writes n launches and n of each kind of range."""
        synth = Synth(path).process(1000)
        synth.launch(self.name, (0, 1), (2, 3))
        for _ in self.ranges[:1]:
            synth.nvtx("", 0, 1, type=self.style)
        synth.write()
        numbers = {"correlationId": "i + 1"}
        start, end = self.kernel
        named = {"demangledName": "1000 + i", "shortName": "1000 + i"} if self.names else {}
        columns = {"start": start, "end": end} | numbers | named | self.kernel_columns
        _spread(path, n, KERNELS, columns)
        columns = {"start": self.call, "end": f"{self.call} + 2"} | numbers | self.call_columns
        _spread(path, n, CALLS, columns)
        for text, start, end in self.ranges:
            columns = {"text": text, "start": start, "end": end.format(n=n)} | self.range_columns
            _spread(path, n, RANGES, columns)
        if self.names:
            _spread(path, n, "StringIds", {"id": "1000 + i", "value": "'gemm_' || i || '_k(int)'"})
        return path


def _spread(path: Path, count: int, table: str, columns: dict[str, str]) -> None:
    """Repeats the first row of a table with other columns; the row itself goes unless text."""
    with sqlite3.connect(path) as connection:
        known = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        values = ", ".join(columns.get(name, f"first.{name}") for name in known)
        first = f"(SELECT * FROM {table} ORDER BY rowid LIMIT 1) first"
        connection.execute(
            "WITH RECURSIVE counter(i) AS "
            f"(SELECT 0 UNION ALL SELECT i + 1 FROM counter LIMIT {count}) "
            f"INSERT INTO {table} SELECT {values} FROM counter, {first}"
        )


LETTERS = "'range ' || char(97 + i % 26, 97 + i / 26 % 26, 97 + i / 676 % 26, 97 + i / 17576)"
"""A name without digits, which stand for each other, for each row."""

SHAPES = {
    "steps": Shape((("'step ' || i", "i * 100", "i * 100 + 95"),
                    ("'forward'", "i * 100 + 1", "i * 100 + 80"))),
    "nested": Shape((("'level ' || i", "i * 100", "{n} * 300 - i * 100"),)),
    "recursion": Shape((("'visit'", "i * 100", "{n} * 300 - i * 100"),)),
    "crossing": Shape((("'request ' || i % 7", "i * 100", "{n} * 200 + i * 100"),), style=60),
    "chained": Shape((("'request ' || i % 7", "i * 100", "i * 100 + 150"),), style=60),
    "tangled": Shape((("'request ' || i % 7", "i * 100", "i * 100 + 100 + i % 50 * 100"),),
                     style=60),
    "devices": Shape(kernel_columns={"deviceId": "i"}),
    "streams": Shape(kernel_columns={"streamId": "i"}),
    "threads": Shape((("'work'", "i * 100", "i * 100 + 50"),),
                     range_columns={"globalTid": "first.globalTid + i"},
                     call_columns={"globalTid": "first.globalTid + i"}),
    "processes": Shape((("'work'", "i * 100", "i * 100 + 50"),),
                       range_columns={"globalTid": f"first.globalTid + i * {PROCESS}"},
                       call_columns={"globalTid": f"first.globalTid + i * {PROCESS}"},
                       kernel_columns={"globalPid": f"first.globalPid + i * {PROCESS}"}),
    "names": Shape(((LETTERS, "i * 100", "i * 100 + 95"),), names=True),
    "gaps": Shape(call="i * 100000 + 50000", kernel=("i * 100000 + 60000", "i * 100000 + 90000")),
    "collectives": Shape((("'ncclAllReduce'", "i * 1000", "i * 1000 + 50"),),
                         call="i * 1000 + 10", kernel=("i * 1000 + 100", "i * 1000 + 700"),
                         name="ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"),
}  # fmt: skip


def seconds(verb: str, report: Path, limit: float) -> tuple[float, int]:
    """CPU seconds of a verb, and its peak memory in MiB; infinite where it is not done in time."""
    arguments = [*VERBS[verb]]
    command = [sys.executable, "-m", "nsys_tui", *arguments, str(report)]
    if verb == "compare":
        command.append(str(report))
    began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + limit
    peak = 0
    while process.poll() is None:
        peak = max(peak, _resident(process.pid))
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            return float("inf"), peak
        time.sleep(0.05)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began, peak


def _resident(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/statm").read_text()
    except OSError:
        return 0
    return int(status.split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("shapes", nargs="*", default=[*SHAPES])
    parser.add_argument("--n", type=int, default=3000)
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--verbs", default=",".join(VERBS))
    options = parser.parse_args()
    print(f"{'shape':12} {'verb':14} {'n':>9} {'s':>7} {'MiB':>6} {'10 n: s':>8} {'MiB':>6}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for shape in options.shapes:
            paths = [
                SHAPES[shape].write(Path(folder) / f"{shape}-{n}.sqlite", n)
                for n in (options.n, 10 * options.n)
            ]
            for verb in options.verbs.split(","):
                figures = [seconds(verb, path, options.limit) for path in paths]
                (small, low), (large, high) = figures
                told = f"{shape:12} {verb:14} {options.n:9} {small:7.1f} {low:6}"
                print(f"{told} {large:8.1f} {high:6}", flush=True)


if __name__ == "__main__":
    main()
