"""What the Logs screen can show: the sections of the logs and of their join with the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.nccl.collectives import collectives
from nsys_tui.analysis.nccl.ranks import Traced
from nsys_tui.analysis.nccl.tables import TABLES
from nsys_tui.logs import read_logs
from nsys_tui.logs.hangs import find_hangs
from nsys_tui.logs.joining import join_calls
from nsys_tui.logs.tables import SECTIONS, make_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsys_tui.analysis.nccl.result import Collectives
    from nsys_tui.logs.hangs import HangReport
    from nsys_tui.logs.result import LogResult
    from nsys_tui.model.progress import Progress
    from nsys_tui.model.report import Report
    from nsys_tui.model.table import Table

JOINED: Final = {
    "bandwidth": "operations",
    "waiting": "ranks",
    "which kernel": "collectives",
}
"""Sections of the join by the name on the screen; their tables in ``nccl_tables``."""


@dataclass(frozen=True, eq=False)
class Opened:
    """Logs that were read."""

    paths: tuple[Path, ...]
    result: LogResult
    hangs: HangReport


def open_logs(paths: Sequence[Path], progress: Progress) -> Opened:
    """Reads logs and looks for hangs in them.

    Raises:
        UnreadableReportError: none of them can be read.
    """
    result = read_logs(paths, progress=progress)
    return Opened(tuple(paths), result, find_hangs(result))


def find_collectives(report: Report, opened: Opened | None) -> Collectives:
    """The collectives of a report: sizes from the logs, or from the report itself."""
    return collectives([Traced(report)], join_calls(opened.result) if opened else None)


def sections(opened: Opened | None, joined: Collectives | None) -> list[str]:
    """Names of what can be shown, in reading order."""
    own = list(SECTIONS) if opened is not None else []
    return [*(JOINED if joined is not None and len(joined) else ()), *own]


def section_table(name: str, opened: Opened | None, joined: Collectives | None) -> Table | None:
    """The table of a section; None where nothing has it."""
    if name in JOINED and joined is not None:
        return TABLES[JOINED[name]](joined, None)
    if opened is not None and name in SECTIONS:
        return make_table(name, opened.result, opened.hangs)
    return None
