"""Actions of the key table that every screen with a table or a tree offers."""

from __future__ import annotations

from typing import Final

from nsys_tui.ui.keymap import Action

SORT: Final = Action("table.sort", ("s",), "sort", "sort by this column; again reverses", 1)
FREQUENCY: Final = Action(
    "table.frequency",
    ("F",),
    "freq",
    "how often each value of this column occurs; Enter filters",
    2,
)
COLUMNS: Final = (
    Action("table.column_previous", ("<", "left"), "column", "previous column"),
    Action("table.column_next", (">", "right"), "column", "next column"),
)
GROUP: Final = Action("table.group", ("g",), "group", "group by something else", 3)
INSTANCES: Final = Action("table.instances", ("space",), "instances", "the instances of a row", 4)
WHOLE: Final = Action("timeline.whole", ("0",), "whole", "the whole trace instead of the window")
TABLE: Final[tuple[Action, ...]] = (SORT, FREQUENCY, *COLUMNS)
"""What a table alone can do."""
TREE: Final[tuple[Action, ...]] = (
    Action("tree.toggle", ("space",), "fold", "open or close a line", 1),
    Action("tree.expand_subtree", ("E",), "all", "open everything below a line, or close it", 2),
    Action("tree.in", ("l",), "in", "open a line, then go to its first child"),
    Action("tree.out", ("h",), "out", "close a line, then go to its parent"),
    Action(
        "tree.uninteresting",
        ("u",),
        "hide small",
        "hide small lines behind one counted line; again shows them",
        5,
    ),
)
"""What a tree adds to a table."""
