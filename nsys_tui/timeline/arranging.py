"""Lanes: pin, hide, fold; and what the colours stand for."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nsys_tui.render.cells import SLOTS
from nsys_tui.state import ColourBy, cycled
from nsys_tui.timeline.model import TimelineModel

MEANING: Final = {
    ColourBy.CATEGORY: "compute, communication, memory, …; ranges by their own colour",
    ColourBy.STREAM: "streams; the host by category",
    ColourBy.NAME: f"the {SLOTS - 1} names with most time, one colour for the rest",
    ColourBy.DURATION: "orders of magnitude, from under 10 ns up",
}
"""What is told on a change of colours."""


def pin(model: TimelineModel) -> TimelineModel:
    """Pins the lane at the top, or lets it go."""
    key, pinned = model.lane_key, model.view.display.pinned
    if not key:
        return model
    others = tuple(other for other in pinned if other != key)
    return model.displaying(pinned=others if key in pinned else (*pinned, key))


def hide(model: TimelineModel) -> TimelineModel:
    """Hides the lane with all below it; the cursor goes to the next."""
    row, number, rows = model.row, model.row_number, model.rows
    if row is None:
        return model
    following = (rows[n] for n in range(number + 1, len(rows)))
    above = rows[number - 1] if number else None
    target = next((track for track in following if row.key not in track.parents), above)
    hidden = model.displaying(hidden=model.view.display.hidden | {row.key})
    cursor = replace(model.view.cursor, lane="" if target is None else target.key)
    return hidden.looking(cursor=cursor).telling(f"hidden: {row.title} (X brings lanes back)")


def bring_back(model: TimelineModel, key: str) -> TimelineModel:
    """Shows a hidden lane again; all of them for an empty key."""
    hidden = model.view.display.hidden - {key} if key else frozenset()
    return model.displaying(hidden=hidden).telling("")


def fold(model: TimelineModel) -> TimelineModel:
    """Folds or unfolds the group of the cursor's row; the cursor goes to the group's own row."""
    row = model.row
    if row is None:
        return model
    is_group = row.key in model.lanes.shown.lineup.groups
    key = row.key if is_group else next(reversed(row.parents), "")
    if not key:
        return model
    turned = model.unfolding({key}) if key in model.rows.folded else model.folding({key})
    return turned.looking(cursor=replace(model.view.cursor, lane=key))


def empty_lanes(model: TimelineModel) -> TimelineModel:
    """Shows lanes without an event in the window, or folds them away."""
    shown = not model.view.display.blank
    said = "lanes without events are shown" if shown else "lanes without events are folded away"
    return model.displaying(blank=shown).telling(said)


def next_colours(model: TimelineModel) -> TimelineModel:
    """Changes what colours stand for."""
    by: ColourBy = cycled(model.view.display.colour_by)
    return model.displaying(colour_by=by).telling(f"colour by {by}: {MEANING[by]}")
