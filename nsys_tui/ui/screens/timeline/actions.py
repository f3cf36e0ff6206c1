"""The timeline's keys; the README's table, help, palette and footer come from here."""

from __future__ import annotations

from typing import Final

from nsys_tui.ui.keymap import Action

ACTIONS: Final[tuple[Action, ...]] = (
    Action("timeline.zoom_in", ("w", "+"), "in", "zoom in at the cursor", 1),
    Action("timeline.zoom_out", ("s", "-"), "out", "zoom out at the cursor", 2),
    Action("timeline.zoom_in_far", ("W",), "in x8", "zoom in eight-fold", 45),
    Action("timeline.zoom_out_far", ("S",), "out x8", "zoom out eight-fold", 46),
    Action("timeline.zoom_to", ("z",), "zoom to", "zoom to a width (50us, 3 steps) or a name", 44),
    Action("timeline.pan_left", ("a",), "left", "pan left by a quarter", 3),
    Action("timeline.pan_right", ("d",), "right", "pan right by a quarter", 4),
    Action("timeline.page_left", ("shift+left",), "page left", "a whole window left"),
    Action("timeline.page_right", ("shift+right",), "page right", "a whole window right"),
    Action("timeline.cursor_left", ("left",), "column left", "cursor one column left"),
    Action("timeline.cursor_right", ("right",), "column right", "cursor one column right"),
    Action("timeline.lane_up", ("up", "k"), "lane up", "one lane up"),
    Action("timeline.lane_down", ("down", "j"), "lane down", "one lane down"),
    Action("timeline.lanes_up", ("pageup",), "lanes up", "a screen of lanes up"),
    Action("timeline.lanes_down", ("pagedown",), "lanes down", "a screen of lanes down"),
    Action("timeline.half_up", ("ctrl+u",), "half up", "half a screen up"),
    Action("timeline.half_down", ("ctrl+d",), "half down", "half a screen down"),
    Action("timeline.lane_first", ("ctrl+home",), "first lane", "the first lane"),
    Action("timeline.lane_last", ("ctrl+end",), "last lane", "the last lane"),
    Action("timeline.snap_next", ("tab",), "snap", "next event that starts in a later column", 39),
    Action(
        "timeline.snap_previous",
        ("shift+tab",),
        "snap back",
        "event that starts in a column before",
    ),
    Action("timeline.event_next", (".",), "next", "next event of the lane, also in one cell", 5),
    Action("timeline.event_previous", (",",), "previous", "previous event of the lane"),
    Action("timeline.flow_follow", ("]",), "to GPU", "between a call and what it launched", 47),
    Action("timeline.flow_back", ("[",), "to API", "from GPU work to its API call", 48),
    Action("timeline.iteration_next", (")",), "next step", "next iteration, same width"),
    Action("timeline.iteration_previous", ("(",), "step before", "iteration before, same width"),
    Action("timeline.fit", ("f",), "fit", "fit selection; again: range, step, GPU work, all", 6),
    Action("timeline.whole", ("0", "home"), "all", "the whole trace", 7),
    Action("timeline.area", ("v",), "area", "begin or end an area: sums by category and name", 8),
    Action("timeline.events", ("i",), "events", "events of the window or area as a table", 49),
    Action("mark.set", ("m",), "mark", "bookmark under a letter", 9),
    Action("mark.note", ("M",), "note", "bookmark with a note"),
    Action("timeline.goto", ("g",), "go to", "a time: 2.1s, +3ms, 50%", 50),
    Action("timeline.pin", ("P",), "pin", "keep the lane at the top", 51),
    Action("timeline.hide", ("x",), "hide", "hide the lane", 52),
    Action("timeline.show_hidden", ("X",), "hidden", "list hidden lanes and bring them back"),
    Action("timeline.fold", ("space",), "fold", "fold or unfold a group", 53),
    Action("timeline.empty", ("L",), "empty", "show or fold lanes without events here"),
    Action("timeline.colour_by", ("c",), "colour", "by category, stream, name or duration", 54),
    Action("timeline.min_duration", ("t",), "shortest", "hide events shorter than a duration", 55),
    Action("timeline.same_name", ("#",), "same name", "find all events of this name", 56),
    Action("timeline.beside", ("A",), "add report", "lanes of another report join or leave", 58),
    Action("export.view", ("e",), "export", "the window or area as a trace for Perfetto", 57),
)
