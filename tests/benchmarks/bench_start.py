"""CPU time of short commands, as multiples of a floor of the same run; asserts nothing.

    python tests/benchmarks/bench_start.py [REPORT.sqlite]

The floor is a Python that imports numpy. With a report, verbs that read all of it are timed,
from their second time on, when the cache holds it. All run
from bytecode, as what is installed does.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from statistics import median
from typing import Final

RUNS: Final = 5
FLOOR: Final = "import numpy"
_HOME: Final = """
import asyncio
from pathlib import Path
from nsys_tui.config import load_config
from nsys_tui.ui.screens.home.app import HomeApp
from nsys_tui.ui.terminal import probe
async def first_frame():
    async with HomeApp(load_config(), probe(), Path(), "").run_test(size=(160, 45)):
        pass
asyncio.run(first_frame())
"""
_SQL: Final = "select device, count(*), sum(duration_ns) from kernels group by 1"


def verb(*words: str) -> str:
    """A program that runs the command line without starting a shell."""
    return f"import sys; from nsys_tui.cli import main; sys.exit(main({[*words]!r}))"


def cpu_of(program: str) -> float:
    """CPU seconds of a program, its children included; the median of some runs after a first."""
    taken = []
    for _ in range(RUNS + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return median(taken[1:])


def main(report: str | None = None) -> None:
    """Prints the table."""
    programs = {
        "--version": verb("--version"),
        "import nsys_tui": "import nsys_tui",
        "import nsys_tui.api": "import nsys_tui.api",
        "home, first frame": _HOME,
    }
    if report is not None:
        programs |= {
            "report": verb("report", report),
            "sql": verb("sql", report, _SQL),
            "overview": verb("overview", report),
            "analyze": verb("analyze", report),
            "iterations": verb("iterations", report),
        }
    floor = cpu_of(FLOOR)
    print(f"{'what':20}{'CPU s':>8}{'x floor':>9}    floor: {FLOOR}, {floor:.2f} s")
    for name, program in programs.items():
        taken = cpu_of(program)
        print(f"{name:20}{taken:8.2f}{taken / floor:9.1f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        main(*sys.argv[1:])
