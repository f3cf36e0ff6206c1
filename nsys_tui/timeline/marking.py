"""Bookmarks: where they are set, and what they say."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nsys_tui.analysis.timeline.facts import ranges_around
from nsys_tui.names import fit
from nsys_tui.render.cells import KEY, MUTED, Line
from nsys_tui.state import Mark, marked
from nsys_tui.timeline.model import SCREEN, TimelineModel
from nsys_tui.units import format_duration

NAME: Final = 32
"""Cells of an event's name that leave room for the range around it."""


def set_mark(model: TimelineModel, letter: str, note: str = "") -> TimelineModel:
    """Sets a mark at the cursor, with the context that going to it restores."""
    view = model.view
    mark = Mark(
        letter,
        model.cursor_time,
        SCREEN,
        model.lane_key,
        view.selection,
        view.window,
        view.filter,
        view.display.colour_by,
        _under_cursor(model),
        note,
    )
    return replace(model, view=marked(view, mark))


def _under_cursor(model: TimelineModel) -> str:
    """What is under the cursor: the event's name, and the innermost range around it."""
    picked = model.under_cursor
    owner = None if picked is None else model.owner(picked.events)
    if picked is None or owner is None:
        return ""
    name = model.name_of(picked)
    rows = ranges_around(owner.report, owner.events, picked.row)
    ranges = owner.report.ranges
    return f"{fit(name, NAME)} in {ranges.names[ranges.name[rows[-1]]]}" if rows else name


def marks_in_order(model: TimelineModel) -> list[Mark]:
    """All marks by time."""
    return sorted(model.view.marks.values(), key=lambda mark: (mark.time, mark.letter))


def mark_lines(model: TimelineModel) -> list[Line]:
    """One line a mark: letter, time, distance to the one before, what was there, note."""
    lines: list[Line] = []
    before: int | None = None
    for mark in marks_in_order(model):
        apart = "" if before is None else f"+{format_duration(mark.time - before)}"
        before = mark.time
        text = f"{model.exactly(mark.time):<11} {apart:<8} {mark.label}"
        lines.append([(f" {mark.letter} ", KEY), (text, 0), (f"  {mark.note}", MUTED)])
    return lines or [[(" m and a letter sets a mark", MUTED)]]
