from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_tui.demo.report import make_report

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Demo:
    path: Path
    truth: dict[str, Any]
    logs: list[Path]
    connection: sqlite3.Connection

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(query, values).fetchall()


def make(folder: Path, **arguments: Any) -> Demo:
    truth = folder / "truth.json"
    made = make_report(
        folder / "demo.sqlite", truth_path=truth, log_path=folder / "logs", **arguments
    )
    return Demo(made.report, json.loads(truth.read_text()), made.logs, sqlite3.connect(made.report))
