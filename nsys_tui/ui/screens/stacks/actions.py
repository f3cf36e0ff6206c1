"""What the keys of the stacks do."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nsys_tui.ui.keymap import Action
from nsys_tui.ui.widgets.table.actions import WHOLE

ACTIONS: Final[tuple[Action, ...]] = (
    Action("stacks.move_left", ("h", "left"), "left", "frame at the left on the same level"),
    Action("stacks.move_down", ("j", "down"), "move", "heaviest frame below", 11),
    Action("stacks.move_up", ("k", "up"), "up", "frame above"),
    Action("stacks.move_right", ("l", "right"), "right", "frame at the right on the same level"),
    Action(
        "stacks.order",
        ("v",),
        "view",
        "left-heavy, time order, functions with callers and callees",
        12,
    ),
    Action("stacks.source", ("s",), "source", "GPU time, on or off the CPU, API, OS calls", 13),
    Action("stacks.thread", ("t",), "thread", "next thread, on or off the CPU, or all"),
    Action("stacks.across", ("a",), "across", "credit backward work across threads, marked ~"),
    Action("stacks.same", ("#",), "same", "next place of the same frame", 46),
    Action(
        "stacks.similar",
        ("m",),
        "merge",
        "one frame for names that differ in numbers, or addresses",
    ),
    Action("stacks.recursion", ("r",), "recursion", "collapse a frame that calls itself"),
    Action("stacks.hide_small", ("u",), "small", "hide small frames behind a counted one"),
    Action("stacks.tree", ("i",), "tree", "icicle, or the same stacks as a tree", 14),
    Action("tree.toggle", ("space",), "fold", "fold or unfold in the tree"),
    Action("tree.expand_subtree", ("E",), "subtree", "unfold the whole subtree"),
    Action("table.sort", ("S",), "sort", "sort the tree by this column; again reverses"),
    Action("table.column_previous", ("<",), "column", "column to the left"),
    Action("table.column_next", (">",), "column", "column to the right"),
    replace(WHOLE, help="out of all zooms, then the whole trace instead of the window"),
    Action("stacks.timeline", ("g",), "timeline", "longest instance on the timeline", 47),
)
