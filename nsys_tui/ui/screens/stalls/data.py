"""What the stalls screen shows, gathered in a worker: rows, groups and sums for one wish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.breakdown import device_splits
from nsys_tui.analysis.stacks.folding import StackSource
from nsys_tui.analysis.stalls.gaps import THRESHOLD_NS, Stalls
from nsys_tui.analysis.stalls.rows import (
    StallGroup,
    StallTable,
    group_codes,
    stall_groups,
    stall_table,
)
from nsys_tui.analysis.window import Scope, touching
from nsys_tui.model.arrays import Bool
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.report import Report
from nsys_tui.names import NameStyle
from nsys_tui.state import Window
from nsys_tui.ui.screens.stalls.panes import NOT_CAUSES, Sums
from nsys_tui.ui.stack_options import Options

if TYPE_CHECKING:
    from nsys_tui.analysis.stalls.rows import StallRow
    from nsys_tui.model.report import Report
    from nsys_tui.ui.host import Host


def show_stacks(app: Host, stall: StallRow | None) -> None:
    """Goes to the stacks of a gap; where nothing was sampled in it, of the window as it is."""
    report = app.session.report
    options = host_stacks(report, stall) if report is not None and stall is not None else None
    if options is None or stall is None:
        if report is not None and stall is not None:
            app.say(report.lacks(Capability.SAMPLES) or "no CPU sample and no backtrace in the gap")
        app.show("stacks")
        return
    app.show("stacks", window=Window(stall.start, stall.end))
    if (front := app.front) is not None:
        front.call_after_refresh(front.restore, options)


def host_stacks(report: Report, stall: StallRow) -> Options | None:
    """What to fold: samples of the launching thread, of any thread, or calls with backtraces."""
    samples = report.samples
    lo, hi = np.searchsorted(samples.start, (stall.start, stall.end))
    if hi > lo:
        of_thread = samples.threads == stall.thread
        if len(of_thread) and of_thread[samples.thread[lo:hi]].any():
            return Options(source=StackSource.CPU, thread=stall.thread)
        return Options(source=StackSource.CPU)
    window = (stall.start, stall.end)
    if (report.osrt.callchain[touching(report.osrt, window)] > 0).any():
        return Options(source=StackSource.OSRT)
    if (report.api.callchain[touching(report.api, window)] > 0).any():
        return Options(source=StackSource.CUDA)
    return None


WAYS: Final = ("", "cause", "thread", "range", "pair", "device")
"""What ``g`` goes through; empty for the gaps one by one."""
TITLES: Final = {"pair": "operations around", "range": "NVTX range", "device": "GPU"}

Key = tuple[int, int] | str
"""What a row is known by when others take its place: device and start of a gap, or a group."""


@dataclass(frozen=True)
class Wish:
    """What to show."""

    threshold: int = THRESHOLD_NS
    by: str = ""
    """How to group, one of ``WAYS``."""
    inside: str = ""
    """Key of the group whose gaps are listed."""

    @property
    def title(self) -> str:
        """What groups have in common, in words."""
        return TITLES.get(self.by, self.by)


@dataclass(frozen=True, eq=False)
class Found:
    """What the screen shows."""

    wish: Wish
    result: Stalls
    rows: StallTable
    """Gaps and runs; with ``inside`` those of the group, and of groups the longest of each."""
    groups: tuple[StallGroup, ...]
    """Rows where idle time is grouped."""
    sums: Sums

    @property
    def grouped(self) -> bool:
        """Whether the table lists groups."""
        return bool(self.wish.by) and not self.wish.inside

    def gap_at(self, row: int | None) -> int | None:
        """The place among ``rows`` that a row of the table stands for; the last may have none."""
        return row if row is not None and row < len(self.rows) else None

    def key_of(self, row: int) -> Key:
        """What a row of the table is known by."""
        if self.grouped:
            return self.groups[row].key
        gaps, number = self.result.gaps, self.rows.numbers[row]
        return int(gaps.device[number]), int(gaps.start[number])

    def row_of(self, key: Key | None) -> int | None:
        """The row of the table that is known by a key, None where there is none."""
        if isinstance(key, str) and self.grouped:
            keys = [group.key for group in self.groups]
            return keys.index(key) if key in keys else None
        if isinstance(key, tuple) and not self.grouped:
            gaps = self.result.gaps
            return self._row_where((gaps.device == key[0]) & (gaps.start == key[1]))
        return None

    def row_from(self, start: int) -> int | None:
        """The first row whose gap begins at a time, None where there is none."""
        return self._row_where(self.result.gaps.start == start)

    def _row_where(self, fits: Bool) -> int | None:
        here = np.flatnonzero(fits[self.rows.numbers])
        return int(here[0]) if len(here) else None


def exposed_communication(report: Report, scope: Scope) -> int:
    """Communication of all GPUs that nothing hides, ns; the same at every threshold."""
    return sum(split.exposed_comm_ns for split in device_splits(report, scope))


def gather(
    report: Report, result: Stalls, wish: Wish, exposed_ns: int, names: str = NameStyle.SHORT
) -> Found:
    """Rows, groups and sums of some stalls.

    Args:
        report: the report.
        result: its stalls from the threshold of the wish on.
        wish: how to group them, or whose gaps to list.
        exposed_ns: ``exposed_communication`` in the same scope.
        names: how operations are named.
    """
    groups, numbers = [], None
    if wish.inside:
        keys, codes = group_codes(report, result, wish.by, names)
        wanted = keys.index(wish.inside) if wish.inside in keys else -1
        numbers = result.longest_first(codes == wanted)
    elif wish.by:
        groups = stall_groups(report, result, wish.by, names)
        numbers = np.array([one.longest for one in groups if one.longest >= 0], np.int32)
    rows = stall_table(report, result, names, numbers)
    return Found(wish, result, rows, tuple(groups), _sums(report, result, exposed_ns))


def _sums(report: Report, result: Stalls, exposed_ns: int) -> Sums:
    lo, hi = result.scope.base(report)
    reason, count = report.lacks(Capability.API), len(result.totals)
    return Sums(
        whole=result.whole,
        causes=tuple(g for g in stall_groups(report, result) if g.key not in NOT_CAUSES),
        base_ns=(hi - lo) * count,
        device_count=count,
        exposed_ns=exposed_ns,
        notes=(f"no causes: {reason}",) if reason else (),
    )
