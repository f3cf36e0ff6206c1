"""What the Logs screen can show: the sections of the logs and of their join with the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from nsys_tui.analysis.nccl.collectives import collectives
from nsys_tui.analysis.nccl.rank_matching import Traced
from nsys_tui.analysis.nccl.result import Collectives
from nsys_tui.analysis.nccl.tables import TABLES, by_operation
from nsys_tui.errors import NsysTuiError
from nsys_tui.fleet.mapping import told_rank
from nsys_tui.logs import read_logs
from nsys_tui.logs.nccl.hang_report import HangReport
from nsys_tui.logs.nccl.hangs import find_hangs
from nsys_tui.logs.report_join import join_calls
from nsys_tui.logs.result import LogResult
from nsys_tui.logs.sections.advice import advise
from nsys_tui.logs.sections.headline import headline
from nsys_tui.logs.sections.section import LogAnswer
from nsys_tui.logs.sections.tables import SECTIONS
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.model.table import Table

JOINED: Final = {
    "bandwidth": "operations",
    "waiting": "ranks",
    "which kernel": "collectives",
}
"""Sections of the join by the name on the screen; their tables in ``analysis.nccl.tables``."""


@dataclass(frozen=True, eq=False)
class Opened:
    """Logs that were read."""

    paths: tuple[Path, ...]
    result: LogResult
    hangs: HangReport
    states: tuple[tuple[int, int], ...] = ()
    """Size and time of each file when it was read."""


def open_logs(paths: Sequence[Path], progress: Progress) -> Opened:
    """Reads logs and looks for hangs in them.

    Raises:
        UnreadableReportError: none of them can be read.
    """
    states = _states(paths)
    result = read_logs(paths, progress=progress)
    return Opened(tuple(paths), result, find_hangs(result), states)


def reopen_grown(opened: Opened) -> Opened | None:
    """The logs read anew if one of them has changed since; None if not, or if none can be read."""
    if _states(opened.paths) == opened.states:
        return None
    try:
        return open_logs(opened.paths, lambda *_: None)
    except NsysTuiError:
        return None


def _states(paths: Sequence[Path]) -> tuple[tuple[int, int], ...]:
    states = []
    for path in paths:
        try:
            state = path.stat()
        except OSError:
            continue
        states.append((state.st_size, state.st_mtime_ns))
    return tuple(states)


@dataclass(frozen=True, eq=False)
class Joined:
    """Collectives of the reports of one run."""

    calls: Collectives
    places: tuple[Place, ...]
    """The reports, in the order of ``Member.report``; the one in front is the first."""


class Place(NamedTuple):
    """An open report."""

    path: Path
    report: Report


def find_collectives(
    front: Place, others: Sequence[Place], notes: Sequence[str], opened: Opened | None
) -> Joined:
    """The collectives of a report and of those of the same run: sizes from the logs, or their own.

    Args:
        front: the report in front.
        others: other open reports; those of another time are another run and left out.
        notes: what to say besides.
        opened: the logs.
    """
    ours = [
        opened_report for opened_report in others if _same_run(front.report, opened_report.report)
    ]
    said = [*notes]
    if strangers := [
        opened_report.path.name for opened_report in others if opened_report not in ours
    ]:
        said.append(f"captured at another time, so not joined: {', '.join(strangers)}")
    if ours:
        names = ", ".join(opened_report.path.name for opened_report in (front, *ours))
        said.append(f"{1 + len(ours)} open reports of one run are joined: {names}")
    places = (front, *ours)
    traced = [
        Traced(opened_report.report, named_rank=told_rank(opened_report.report, opened_report.path))
        for opened_report in places
    ]
    calls = collectives(traced, join_calls(opened.result) if opened else None)
    if opened and not len(calls):
        said += ["the logs fit no open report, so sizes are the report's own", *calls.notes]
        calls = collectives(traced)
    return Joined(replace(calls, notes=(*said, *calls.notes)), places)


def _same_run(report: Report, other: Report) -> bool:
    """Whether two sessions overlap in time; False where a report does not tell its time."""
    here, there = (_session(one) for one in (report, other))
    return here is not None and there is not None and here[0] < there[1] and there[0] < here[1]


def _session(report: Report) -> tuple[int, int] | None:
    begin = report.metadata.session_start_utc_ns
    if begin is None:
        return None
    lo, hi = report.extent
    return begin + lo, begin + max(hi, lo + 1)


def sections(opened: Opened | None, joined: Joined | None) -> list[str]:
    """Names of what can be shown, in reading order."""
    of_logs = [] if opened is None else [name for name in SECTIONS if _listed(name, opened)]
    return [*(JOINED if joined is not None and len(joined.calls) else ()), *of_logs]


def _listed(name: str, opened: Opened) -> bool:
    """Whether a section has something to show; that all ranks agree is something too."""
    agree = name == "hangs" and len(opened.result.calls) > 0
    return agree or SECTIONS[name].has_rows(LogAnswer(opened.result, opened.hangs))


_TELLING: Final = (
    *("hangs", "timeouts", "steps", "throughput", "benchmarks", "per-op", "mpip", "measured"),
    *("recorder", "warnings"),
)


def telling(opened: Opened) -> str:
    """The section that is shown at first, with what the logs say in short."""
    answer = LogAnswer(opened.result, opened.hangs)
    return next((name for name in _TELLING if SECTIONS[name].has_rows(answer)), "files")


def call_of(section: str, calls: Collectives, row: int) -> int | None:
    """The collective of a row: of an operation its longest; None where it is of none."""
    if section == "bandwidth":
        of_operation = by_operation(calls)[row]
        return int(of_operation[np.argmax(calls.time[of_operation])])
    return row if section == "which kernel" else None


def section_table(name: str, opened: Opened | None, joined: Joined | None) -> Table | None:
    """The table of a section; None where nothing has it."""
    if name in JOINED and joined is not None:
        return TABLES[JOINED[name]](joined.calls, None)
    if opened is None or name not in SECTIONS:
        return None
    answer = LogAnswer(opened.result, opened.hangs)
    table = SECTIONS[name].table(answer)
    notes = [*table.notes]
    if name == telling(opened):
        notes = [*headline(answer), *notes]
    if name == "files":
        notes += [one.text for one in advise(opened.result)]
        notes += joined.calls.notes if joined is not None and not len(joined.calls) else ()
    return replace(table, notes=tuple(dict.fromkeys(notes)))
