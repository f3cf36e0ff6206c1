"""Idle time: columns of gaps and groups, its causes as a pane or a line, and what is left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.analysis.stalls.gaps import IdleTotals
from nsys_tui.analysis.stalls.rows import HEAD, TAIL, StallGroup, StallTable
from nsys_tui.model.report import Report
from nsys_tui.model.table import Unit
from nsys_tui.names import cell_len, visible
from nsys_tui.render.cells import BOLD, MUTED, STALL, Line
from nsys_tui.render.glyphs import Glyphs
from nsys_tui.state import TimeFormat
from nsys_tui.times import moment_text
from nsys_tui.ui.widgets.table.columns import (
    TableColumn,
    counts,
    durations,
    numbers,
    strings,
    taken,
    texts,
)
from nsys_tui.units import format_count, format_duration, format_percent, format_share, plural

SEVERITIES: Final = (" -", " L", " M", "!H")
NAMES: Final = ((140, 28, 22), (96, 18, 14), (0, 13, 8))
"""Cells of operation and range, by the least width of a row."""
STEPS: Final = 100_000
"""Moments are told apart to this part of what is shown."""
DIRECTION: Final = re.compile(r"\b([A-Z])\w*-to-([A-Z])\w*")


def shortened(operation: str, cells: int) -> str:
    """``[CUDA memcpy Host-to-Device]`` as ``[memcpy HtoD]`` without room; kernels as they are."""
    if "[CUDA " not in operation or cell_len(operation) <= cells:
        return operation
    return DIRECTION.sub(r"\1to\2", operation.replace("[CUDA ", "["))


def plain_duration(ns: int) -> str:
    """A round duration without needless zeros: ``10 us``."""
    number, unit = format_duration(ns).split()
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"


def gap_columns(
    table: StallTable, report: Report, time: TimeFormat, width: int
) -> tuple[TableColumn, ...]:
    """Columns of gaps and launch-bound runs.

    Args:
        table: the rows.
        report: their report.
        time: how moments are written.
        width: cells of a row, which decide how much of names is shown.
    """
    (lo, hi), gaps, rows = table.result.bounds, table.result.gaps, table.numbers
    step = max(1, (hi - lo) // STEPS)

    def moment(ns: float) -> str:
        return moment_text(int(ns), step, time, report, lo).removesuffix(" s")

    gpus = tuple(device.label.removeprefix("GPU ") for device in report.devices)
    ends = gaps.start[[rows.min(), rows.max()]].tolist() if len(rows) else []
    starts = [*map(moment, ends)]
    operation, inside = next((o, i) for least, o, i in NAMES if width >= least)
    severity = taken(rows, table.severity)
    fixed: list[TableColumn] = [
        numbers(
            "sev",
            3,
            severity,
            SEVERITIES.__getitem__,
            right=False,
            unit=Unit.TEXT,
            ink=lambda row: BOLD if severity.at(row) == len(SEVERITIES) - 1 else 0,
        ),
        texts("gpu", max(map(len, ("gpu", *gpus))), taken(rows, gaps.device), gpus),
        durations("start", max([6, *map(cell_len, starts)]), taken(rows, gaps.start), moment),
        durations("idle", 9, taken(rows, gaps.idle), format_duration),
    ]
    following = [shortened(name, operation) for name in table.next.labels]
    names: list[TableColumn] = [
        texts("next", operation, taken(rows, table.next.codes), following),
        texts("range", inside, taken(rows, table.range.codes), table.range.labels),
    ]
    thread = taken(rows, table.thread.codes)
    extra: list[TableColumn] = [
        texts("thread", 15, thread, table.thread.labels, extra=True),
        counts("gaps", 6, taken(rows, gaps.count), extra=True),
    ]
    cause = texts("cause", 20, taken(rows, table.cause.codes), table.cause.labels, grow=True)
    return (*fixed, cause, *names, *extra)


def group_columns(
    groups: Sequence[StallGroup], title: str, whole: int, width: int
) -> tuple[TableColumn, ...]:
    """Columns of idle time in groups.

    Args:
        groups: the rows.
        title: what they have in common.
        whole: ns that shares are of; before the first operation and after the last have none.
        width: cells of a row.
    """
    idle = np.array([group.idle_ns for group in groups], np.int64)
    apart = np.array([group.key in (HEAD, TAIL) for group in groups], bool)
    shares = np.where(apart | (whole == 0), np.nan, 100 * idle / max(whole, 1))
    longest = np.array([group.longest_ns for group in groups], np.int64)
    return (
        numbers("share", 6, shares, format_percent, unit=Unit.PERCENT, decimals=1),
        durations("idle", 9, idle, format_duration),
        counts("gaps", 7, np.array([group.count for group in groups], np.int64)),
        durations("longest", 9, longest, format_duration, absent=0),
        strings(title, max(20, width - 43), [group.key for group in groups]),
    )


BAR: Final = 6
BELOW: Final = "below threshold"
NOT_CAUSES: Final = (HEAD, TAIL, BELOW)


@dataclass(frozen=True)
class Sums:
    """Idle time over all GPUs in scope."""

    whole: IdleTotals
    causes: tuple[StallGroup, ...]
    """Between operations, largest first."""
    base_ns: int
    """What shares of time are of: span or window, for each GPU."""
    device_count: int
    exposed_ns: int
    """Communication that nothing hides; not idle, but waiting too."""
    notes: tuple[str, ...]
    """What makes causes coarser."""

    @property
    def inner_share(self) -> str:
        """Idle between operations as a share of the time of all GPUs."""
        return format_share(self.whole.inner_ns, self.base_ns)


def sum_lines(sums: Sums, threshold_ns: int, width: int) -> list[Line]:
    """Two lines for screens without room for the pane: causes, and what is not in the table."""
    if not sums.device_count:
        return []
    whole = sums.whole
    rest = (
        f"below {plain_duration(threshold_ns)}: {plural(whole.below_count, 'gap')},"
        f" {format_duration(whole.below_ns)};"
        f"  before work {format_duration(whole.head_ns)}, after {format_duration(whole.tail_ns)}"
    )
    lines: list[Line] = [[(f" {_causes_text(sums, width - 2)}", 0)], [(f" {rest}", MUTED)]]
    return lines + [[(f" {note}", MUTED)] for note in sums.notes]


def _causes_text(sums: Sums, width: int) -> str:
    """As many causes as fit, and how many do not."""
    text = ""
    for place, group in enumerate(sums.causes):
        part = f"{group.key} {format_duration(group.idle_ns)} ({format_count(group.count)})"
        left = len(sums.causes) - place - 1
        more = f", {left} more (g)" if left else ""
        joined = f"{text}, {part}" if text else part
        if text and cell_len(joined + more) > width:
            return f"{text}, {left + 1} more (g)"
        text = joined
    return text or "no gap from the threshold on"


def cause_lines(sums: Sums, threshold_ns: int, width: int, glyphs: Glyphs) -> list[Line]:
    """The pane: a bar, share of idle time between operations, total, gaps and name of each cause.

    Args:
        sums: the figures.
        threshold_ns: shortest gap listed.
        width: cells of a line.
        glyphs: the characters of this terminal.
    """
    if not sums.device_count:
        return []
    whole = sums.whole
    lines: list[Line] = [[(f"{'':<{BAR}}of idle      time   gaps  cause", MUTED)]]
    for group in sums.causes:
        share = group.idle_ns / whole.inner_ns if whole.inner_ns else 0.0
        bar = glyphs.bar * max(1, round(BAR * share))
        figures = (
            f" {format_share(group.idle_ns, whole.inner_ns):>6} {format_duration(group.idle_ns):>9}"
            f" {format_count(group.count):>6}  "
        )
        lines.append([(f"{bar:<{BAR}}", STALL), (figures, 0), (visible(group.key), 0)])
    below = format_share(whole.below_ns, whole.inner_ns)
    figures = (
        f" {below:>6} {format_duration(whole.below_ns):>9} {format_count(whole.below_count):>6}  "
    )
    lines.append([(f"{'':<{BAR}}{figures}below {plain_duration(threshold_ns)}", MUTED)])
    apart = (
        ("between operations", whole.inner_ns, f"  {sums.inner_share} of the time"),
        (HEAD, whole.head_ns, ""),
        (TAIL, whole.tail_ns, ""),
        ("exposed communication", sums.exposed_ns, "  busy, not hidden"),
    )
    lines.append([("", 0)])
    lines += [
        [(f"{label:<27}{format_duration(ns):>9}{more}"[:width], 0)] for label, ns, more in apart
    ]
    return [*lines, *([(note, MUTED)] for note in sums.notes)]
