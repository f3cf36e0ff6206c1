"""Columns of the stalls: gaps one by one, or idle time in groups."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.stalls.rows import HEAD, TAIL
from nsys_tui.model.table import Unit
from nsys_tui.names import cell_len
from nsys_tui.render.cells import BOLD
from nsys_tui.times import moment_text
from nsys_tui.ui.widgets.table.columns import counts, durations, numbers, strings, texts
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.analysis.stalls.rows import StallGroup, StallTable
    from nsys_tui.model.report import Report
    from nsys_tui.state import TimeFormat
    from nsys_tui.ui.widgets.table.columns import TableColumn

SEVERITIES: Final = (" -", " L", " M", "!H")
NAMES: Final = ((140, 26, 24), (96, 18, 14), (0, 13, 8))
"""Cells of operation and range, by the least width of a row."""
ALL_COLUMNS: Final = 116
"""Cells of a row from which thread and number of gaps have room too."""
STEPS: Final = 100_000
"""Moments are told apart to this part of what is shown."""
SIDE_CELLS: Final = 2
"""Margin and scroll bar."""
DIRECTION: Final = re.compile(r"\b([A-Z])\w*-to-([A-Z])\w*")


def shortened(operation: str) -> str:
    """``[CUDA memcpy Host-to-Device]`` as ``[memcpy HtoD]``; kernels as they are."""
    if "[CUDA " not in operation:
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
        width: cells of a row; causes take what the others leave.
    """
    lo, hi = table.result.bounds
    step = max(1, (hi - lo) // STEPS)

    def moment(ns: float) -> str:
        return moment_text(int(ns), step, time, report, lo).removesuffix(" s")

    gpus = tuple(device.label.removeprefix("GPU ") for device in report.devices)
    starts = [moment(ns) for ns in (table.start.min(), table.start.max())] if len(table) else []
    operation, inside = next((o, i) for least, o, i in NAMES if width >= least)
    fixed: list[TableColumn] = [
        numbers(
            "sev",
            3,
            table.severity,
            SEVERITIES.__getitem__,
            right=False,
            unit=Unit.TEXT,
            ink=lambda row: BOLD if table.severity[row] == len(SEVERITIES) - 1 else 0,
        ),
        texts("gpu", max(map(len, ("gpu", *gpus))), table.place, gpus),
        durations("start", max([6, *map(cell_len, starts)]), table.start, moment),
        durations("idle", 9, table.idle, format_duration),
    ]
    names: list[TableColumn] = [
        texts("next", operation, table.next.codes, [*map(shortened, table.next.labels)]),
        texts("range", inside, *table.range),
    ]
    extra: list[TableColumn] = [
        texts("thread", 15, *table.thread, extra=True),
        counts("gaps", 6, table.gaps, extra=True),
    ]
    beside = [*fixed, *names, *(extra if width >= ALL_COLUMNS else [])]
    room = width - SIDE_CELLS - sum(column.width + 1 for column in beside)
    cause = texts("cause", max(20, room), *table.cause)
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
        numbers("share", 6, shares, "{:.1f}%".format, unit=Unit.PERCENT, decimals=1),
        durations("idle", 9, idle, format_duration),
        counts("gaps", 7, np.array([group.count for group in groups], np.int64)),
        durations("longest", 9, longest, format_duration, absent=0),
        strings(title, max(20, width - 43), [shortened(group.key) for group in groups]),
    )
