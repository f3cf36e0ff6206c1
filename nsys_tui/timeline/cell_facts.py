"""What the cell under the cursor holds: told while no event is selected."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nsys_tui.analysis.timeline.area import Area, area
from nsys_tui.analysis.timeline.tracks import Track
from nsys_tui.timeline.model import TimelineModel
from nsys_tui.timeline.painter import counted
from nsys_tui.timeline.stepping import gap_here
from nsys_tui.timeline.summary_view import NOTHING
from nsys_tui.units import format_duration, format_share


def cell_title(model: TimelineModel) -> str:
    """The row and the time of the cell; empty where there is no row."""
    row, (lo, hi) = model.row, model.cell_of(model.cursor_time)
    if row is None:
        return ""
    return f"{row.words or row.label}: {format_duration(hi - lo)} at {model.moment(lo)}"


def cell_facts(model: TimelineModel) -> tuple[list[str], Area | None]:
    """What a row without events says of the cell, and the sums of its events; for a worker."""
    row, span = model.row, model.cell_of(model.cursor_time)
    if row is None:
        return [], None
    said = [*_gap(model), *_states(row, span), *_value(row, span)]
    tracks = _of_thread(model, row) if row.covered is not None else (row,)
    sums = area(tracks, span, model.view.display.names)
    return said, sums if sums.categories else None


def gap_cause(model: TimelineModel) -> str:
    """The cause of the gap around the cursor; empty where there is none, or none is known."""
    gap, row = gap_here(model), model.row
    if gap is None or gap.span is None or row is None or row.device is None:
        return ""
    explained = model.lanes.explained.get(row.device, NOTHING)
    number = int(np.searchsorted(explained.ends, gap.span.end))
    known = number < len(explained.ends) and int(explained.ends[number]) == gap.span.end
    return explained.reason(number) if known else ""


def _gap(model: TimelineModel) -> Iterator[str]:
    if (gap := gap_here(model)) is not None and gap.span is not None:
        cause = f", {cause}" if (cause := gap_cause(model)) else ""
        yield f"in a gap of {format_duration(gap.span.width)}{cause} (enter: why)"


def _states(row: Track, span: tuple[int, int]) -> Iterator[str]:
    if row.covered is None:
        return
    edges = np.array(span, np.int64)
    for name, lane in (("on a CPU", row.covered), *row.off):
        if busy := int(lane.busy(edges)[0]):
            yield f"{name} {format_duration(busy)} {format_share(busy, span[1] - span[0])}"


def _value(row: Track, span: tuple[int, int]) -> Iterator[str]:
    if (counter := row.counter) is None:
        return
    values = counter.values[counter.within(*span)]
    if not len(values):
        return
    if counter.unit == "samples":
        yield f"{len(values):,} samples"
    else:
        peak, mean = (counted(float(each), counter.unit) for each in (values.max(), values.mean()))
        yield f"{row.words or row.label} {peak}" if peak == mean else f"mean {mean}, peak {peak}"


def _of_thread(model: TimelineModel, row: Track) -> list[Track]:
    """The calls of the thread whose states a row shows."""
    tracks = model.lanes.shown.lineup.tracks
    return [t for t in tracks if t.thread == row.thread and t.part in ("api", "osrt")]
