from __future__ import annotations

import json
import shutil
import sqlite3
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nsys_tui.demo.report import make_report


@dataclass
class Demo:
    path: Path
    truth: dict[str, Any]
    logs: list[Path]
    connection: sqlite3.Connection

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(query, values).fetchall()


def make(folder: Path, **arguments: Any) -> Demo:
    """The demo with its truth and its logs; the second of the same arguments is a copy."""
    shutil.copytree(_made(**arguments).name, folder, dirs_exist_ok=True)
    path = folder / "demo.sqlite"
    truth = json.loads((folder / "truth.json").read_text())
    return Demo(path, truth, sorted((folder / "logs").iterdir()), sqlite3.connect(path))


@cache
def _made(**arguments: Any) -> TemporaryDirectory[str]:
    kept = TemporaryDirectory(prefix="demo")
    folder = Path(kept.name)
    make_report(
        folder / "demo.sqlite",
        truth_path=folder / "truth.json",
        log_path=folder / "logs",
        **arguments,
    )
    return kept
