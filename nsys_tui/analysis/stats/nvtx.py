"""NVTX range summaries and the push/pop trace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.analysis.stats.enclosing import STYLES, closed_ranges, label_codes
from nsys_tui.analysis.stats.query import Columns, Needs, Query, nothing, report
from nsys_tui.analysis.stats.summary import RANGE, pids, summarise, tids, time_columns
from nsys_tui.analysis.window import row_count
from nsys_tui.errors import NoDataError
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.groups import pair_codes, sums
from nsys_tui.model.table import Column, Unit
from nsys_tui.model.tree import MOST_FRAMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.analysis.aggregate import Int64
    from nsys_tui.model.events import Ranges

PUSH_POP: Final = (59, 70)
START_END: Final = (60, 71)
NAMES: Final = np.array([STYLES.get(style, "") for style in range(256)], object)
"""Printed style of each NVTX event type."""


def _summary(query: Query, styles: tuple[int, ...], *, with_style: bool) -> Columns:
    ranges = query.report.ranges
    rows = query.events(ranges, np.isin(ranges.style, styles) & ~ranges.open)
    if not row_count(ranges, rows):
        raise NoDataError("no closed NVTX ranges of that kind")
    chosen = ranges.take(rows)
    label, texts = label_codes(chosen)
    paired = np.isin(chosen.style, START_END).astype(np.int64)
    codes, name, style = pair_codes(label, paired, 2)
    labels: Columns = [(RANGE, [texts[place] for place in name.tolist()])]
    if with_style:
        labels.insert(0, (Column("Style"), np.array(["PushPop", "StartEnd"], object)[style]))
    summary = summarise(query, ranges, rows, codes, len(name))
    return time_columns(summary, "Instances", labels)


def open_ranges(query: Query) -> tuple[str, ...]:
    """A note on ranges that were never closed."""
    count = int(query.report.ranges.open.sum())
    return (f"{count} ranges were never closed and are left out",) if count else ()


NVTX: Final = Needs(
    "NV Tools Extension (NVTX)", "--trace=nvtx", (Capability.NVTX,), notes=open_ranges
)
PUSH_POPS: Final = replace(NVTX, data=f"{NVTX.data} push/pop range")
START_ENDS: Final = replace(NVTX, data=f"{NVTX.data} start/end range")


@report("NVTX Range Summary", NVTX, old="nvtxsum")
def nvtx_sum(query: Query) -> Columns:
    """Push/pop and start/end ranges by name (with its domain's) and their durations on the host."""
    return _summary(query, PUSH_POP + START_END, with_style=True)


@report("NVTX Push/Pop Range Summary", PUSH_POPS, old="nvtxppsum")
def nvtx_pushpop_sum(query: Query) -> Columns:
    """Push/pop ranges by name (with its domain's) and their durations on the host."""
    return _summary(query, PUSH_POP, with_style=False)


@report("NVTX Start/End Range Summary", START_ENDS, old="nvtxsssum nvtxsesum nvtxstartendsum")
def nvtx_startend_sum(query: Query) -> Columns:
    """Start/end ranges by name (with its domain's) and their durations on the host."""
    return _summary(query, START_END, with_style=False)


@dataclass(frozen=True, eq=False)
class Nesting:
    """Which range of a thread is directly inside which, over ranges from ``closed_ranges``."""

    parent: Int64
    """Place of the tightest enclosing range on the same thread, -1 for none."""
    level: Int64
    children: Int64
    stack: list[str]
    """Row ids from the outermost range to this one: ``:1:5:9``; of a range deeper than
    ``MOST_FRAMES`` those in the middle are counted: ``:1:5:[... 12 ranges]:9``."""


def nesting(ranges: Ranges) -> Nesting:
    """Finds the parent of every range; crossing ranges are not inside each other."""
    n = len(ranges)
    parent, level = np.full(n, -1, np.int64), np.zeros(n, np.int64)
    active: dict[int, list[int]] = {}
    ends = ranges.end.tolist()
    for place, thread in enumerate(ranges.thread.tolist()):
        enclosing = active.setdefault(thread, [])
        # One that ends before this one encloses nothing more that this one does not enclose too.
        while enclosing and ends[enclosing[-1]] < ends[place]:
            enclosing.pop()
        if enclosing:
            parent[place] = enclosing[-1]
            level[place] = level[enclosing[-1]] + 1
        enclosing.append(place)
    children = np.bincount(parent[parent >= 0], minlength=n).astype(np.int64)
    return Nesting(parent, level, children, _stacks(ranges.rowid, parent, level))


def _stacks(rowid: Int64, parent: Int64, level: Int64) -> list[str]:
    stacks: list[str] = []
    trunks: list[str] = []
    for row, outer, depth in zip(rowid.tolist(), parent.tolist(), level.tolist(), strict=True):
        above = stacks[outer] if depth else ""
        trunk = above if depth <= MOST_FRAMES else trunks[outer]
        left_out = f":[... {depth - MOST_FRAMES} ranges]" if depth > MOST_FRAMES else ""
        stacks.append(f"{trunk}{left_out}:{row}")
        trunks.append(trunk)
    return stacks


def parent_ids(ranges: Ranges, nested: Nesting) -> NDArray[Any]:
    """Row id of each range's parent, None at the top."""
    return np.array([ranges.rowid[p] if p >= 0 else None for p in nested.parent], object)


@report("NVTX Push/Pop Range Trace", replace(PUSH_POPS, notes=nothing), old="nvtxpptrace")
def nvtx_pushpop_trace(query: Query) -> Columns:
    """Every push/pop range by its start, with its place in the nesting of its thread."""
    every = query.report.ranges
    rows = query.events(every, np.isin(every.style, PUSH_POP))
    if not row_count(every, rows):
        raise NoDataError("no push/pop ranges")
    ranges = closed_ranges(query.report, rows)
    nested = nesting(ranges)
    inner = np.flatnonzero(nested.parent >= 0)
    duration = ranges.end - ranges.start
    in_children = sums(nested.parent[inner], duration[inner], len(ranges))
    label, texts = label_codes(ranges)
    names = np.array(texts, object)[label]
    threads = ranges.threads[ranges.thread]
    return [
        (Column("Start", Unit.NS), ranges.start),
        (Column("End", Unit.NS), ranges.end),
        (Column("Duration", Unit.NS), duration),
        (Column("DurChild", Unit.NS), in_children),
        (Column("DurNonChild", Unit.NS), duration - in_children),
        (Column("Name"), names),
        (Column("PID", Unit.NONE), pids(threads)),
        (Column("TID", Unit.NONE), tids(threads)),
        (Column("Lvl", Unit.NONE), nested.level),
        (Column("NumChild", Unit.NONE), nested.children),
        (Column("RangeId", Unit.NONE), ranges.rowid),
        (Column("ParentId", Unit.NONE), parent_ids(ranges, nested)),
        (Column("RangeStack"), nested.stack),
        (
            Column("NameTree"),
            [
                "--" * min(int(depth), MOST_FRAMES) + name
                for depth, name in zip(nested.level, names, strict=True)
            ],
        ),
    ]
