"""Demo reports for tests that need one: each is simulated once a run, whatever worker asks first.

Tests of the simulation itself call ``nsys_tui.demo.report.make_report``.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import sqlite3
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from nsys_tui.demo.report import Made
from nsys_tui.demo.report import make_report as simulated

_kept: list[Path] = []
"""The folder of the demos that were made; workers share it."""


def keep_in(folder: Path) -> None:
    """Says where demos are kept for copies; ends with the run's other temporary folders."""
    _kept[:] = [folder]


@dataclass
class Demo:
    path: Path
    truth: dict[str, Any]
    logs: list[Path]
    connection: sqlite3.Connection

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(query, values).fetchall()


def make(folder: Path, **arguments: Any) -> Demo:
    """The demo with its truth and its logs."""
    shutil.copytree(_made(**arguments), folder, dirs_exist_ok=True)
    path = folder / "demo.sqlite"
    truth = json.loads((folder / "truth.json").read_text())
    return Demo(path, truth, sorted((folder / "logs").iterdir()), sqlite3.connect(path))


def make_report(output: Path, *, truth_path: Path | None = None, **arguments: Any) -> Made:
    """As the program's own, without logs."""
    made = _made(**arguments)
    shutil.copyfile(made / "demo.sqlite", output)
    if truth_path is not None:
        shutil.copyfile(made / "truth.json", truth_path)
    return Made(output, truth_path, [])


@cache
def _made(**arguments: Any) -> Path:
    (kept,) = _kept
    kept.mkdir(exist_ok=True)
    name = "-".join(["demo", *(f"{key}={value}" for key, value in sorted(arguments.items()))])
    folder, unfinished = kept / name, kept / f"{name}.part"
    with (kept / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished.mkdir()
            simulated(
                unfinished / "demo.sqlite",
                truth_path=unfinished / "truth.json",
                log_path=unfinished / "logs",
                **arguments,
            )
            unfinished.rename(folder)
    return folder
