"""What a frame of the timeline shows: its lanes, the heading above and the line of facts below."""

from __future__ import annotations

from collections import Counter

import numpy as np

from nsys_tui.analysis.timeline.events import NEEDED
from nsys_tui.analysis.timeline.launch_links import related
from nsys_tui.analysis.timeline.search import column, lanes_of
from nsys_tui.model.capabilities import Capability
from nsys_tui.state import ColourBy
from nsys_tui.timeline.areas import shown_span
from nsys_tui.timeline.model import WHOLE, TimelineModel
from nsys_tui.timeline.painter import Picked, Scene
from nsys_tui.times import window_text
from nsys_tui.units import format_count, format_duration, out_of, plural


def scene_of(model: TimelineModel) -> Scene:
    """Everything that the painter draws."""
    view, lanes, found = model.view, model.lanes, model.found
    display = view.display
    return Scene(
        rows=model.rows,
        top=model.top,
        window=model.window,
        extent=model.extent,
        cursor=model.cursor_time,
        lane=model.lane_key,
        labels=model.all_rows.label_cells,
        sizes=model.report is not None and model.report.can(Capability.GPU_MEMORY),
        groups=lanes.shown.lineup.groups,
        folded=model.rows.folded,
        pinned=display.pinned,
        picked=model.picked,
        related=lambda: _related(model),
        matches=found.matches if found is not None else model.path,
        searching=found is not None,
        marks={letter: mark.time for letter, mark in view.marks.items()},
        area=shown_span(model),
        view=lambda track: lanes.view(track, display),
        own=lanes.colours.own,
        explained=lanes.explained,
        below=lambda: _folded(model),
        message=_message(model),
        counters=display.counters,
        time=model.moment,
        serial=(lanes, found, model.path, *_look(model)),
    )


def _look(model: TimelineModel) -> tuple[object, ...]:
    """Settings that change how lanes are drawn."""
    display = model.view.display
    return display.names, display.labels, display.time, bool(model.rows.pairs)


def _related(model: TimelineModel) -> list[Picked]:
    """What belongs to the selected event in the window; of the report in front only."""
    picked, report, window = model.picked, model.report, model.window
    if picked is None or report is None or model.beside_of(picked.events) is not None:
        return []
    return [Picked(*linked) for linked in related(report, *picked, (window.start, window.end))]


def _folded(model: TimelineModel) -> str:
    """The rows without an event in the window, counted by the group that they stand in."""
    every, rows = model.all_rows, model.rows
    if len(every) == len(rows):
        return ""
    gone = [every[n] for n in np.flatnonzero(~np.isin(every.places, rows.places)).tolist()]
    tops = [every.lineup.track(row.parents[0]) if row.parents else row for row in gone]
    counts = Counter((top.words or top.label) for top in tops if top is not None)
    told = ", ".join(f"{format_count(count)} of {name}" for name, count in counts.items())
    return f"+ {plural(len(gone), 'row')} without events here (L shows them): {told}"


def _message(model: TimelineModel) -> tuple[str, ...]:
    """What is said where there are no lanes at all."""
    report = model.report
    if report is None or model.lanes.whole.lineup or not model.trace.finished:
        return ()
    why = [report.lacks(need) for need in NEEDED]
    if not all(why):
        read = all(map(report.loaded, WHOLE))
        return ("the lanes are being drawn ..." if read else "the report is not read whole",)
    return ("There is nothing to show over time in this report.", "", *dict.fromkeys(why))


def heading(model: TimelineModel, room: int) -> tuple[str, str]:
    """Title and remark; the window, which the screen's first line shows too, gives way to them.

    Args:
        model: the timeline.
        room: cells for both.
    """
    if _message(model):
        return "Timeline", ""
    window, display = model.window, model.view.display
    column = format_duration(max(1, window.width // model.size.columns))
    name = "Timeline ≈ from a sample" if model.rows.estimated else "Timeline"
    rest = f"1 col = {column}  cursor {model.moment(model.cursor_time)}"
    by = display.colour_by
    remark = [] if by is ColourBy.CATEGORY else [f"colour: {by}"]
    if model.rows:
        remark.append(f"lane {out_of(model.row_number + 1, len(model.rows))}")
    right = "  ".join(remark)
    full = f"{name} {window_text(window, display.time, model.report)}  {rest}"
    return (full if len(full) <= room - len(right) else f"{name}  {rest}"), right


def info_line(model: TimelineModel) -> tuple[str, str]:
    """At the left what is searched and filtered, at the right how many lanes are hidden."""
    said = [*_measured(model), *_searched(model), *_filtered(model)] or [_short_work(model)]
    hidden, pinned = len(model.view.display.hidden), len(model.view.display.pinned)
    counts = [_in_cell(model)]
    empty = len(model.all_rows) - len(model.rows)
    is_below = len(model.rows) >= model.size.rows
    counts += [f"+{empty} without events here: L"] if empty and is_below else []
    counts += [f"hidden lanes {hidden}"] if hidden else []
    counts += [f"pinned {pinned}"] if pinned else []
    return "   ".join(said), "  ".join(filter(None, counts))


def _in_cell(model: TimelineModel) -> str:
    """How many events the cell under the cursor merges."""
    row = model.row
    lanes = () if row is None else lanes_of(row)
    held = column(lanes, *model.cell_of(model.cursor_time)) if lanes else None
    return f"cell: {format_count(held.events)} events" if held and held.events > 1 else ""


def _measured(model: TimelineModel) -> list[str]:
    """How far the cursor is from where an area was begun."""
    if model.area_start is None:
        return []
    begun, _ = model.area_start
    return [
        f"{format_duration(abs(model.cursor_time - begun))} from {model.exactly(begun)}: v ends"
    ]


def _searched(model: TimelineModel) -> list[str]:
    if (found := model.found) is None:
        return []
    current = model.view.search.current
    of = f"match {format_count(current)} of " if current > 0 else ""
    return [f"find: /{found.pattern}/  {of}{format_count(found.total)}  n/N"]


def _filtered(model: TimelineModel) -> list[str]:
    wanted = model.view.filter
    if not wanted:
        return []
    terms = [f"/{wanted.pattern}/"] if wanted.pattern else []
    if wanted.min_duration:
        terms.append(f"dur >= {format_duration(wanted.min_duration)}")
    shown = model.lanes.shown
    if not terms:
        return [f"filter: hides {plural(shown.gone, 'lane')}"]
    return [f"filter: {' '.join(terms)} (hides {format_count(shown.hidden)} events)"]


def _short_work(model: TimelineModel) -> str:
    """Which part of the trace is shown where GPU work takes a small part of it only."""
    span, (lo, hi) = model.trace.span, model.extent
    if span is None or model.home is None:
        return ""
    if (few := model.trace.few) is not None and model.view.window is None:
        return f"shown: {few}; 0: all, ) ( steps on and back"
    work, whole = format_duration(span[1] - span[0]), format_duration(hi - lo)
    if model.view.window is None:
        return f"shown: GPU work, {work} of {whole}; 0: all"
    if model.view.window == model.everything:
        return f"GPU work takes {work} of {whole}: f fits it"
    return ""
