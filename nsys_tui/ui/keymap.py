"""The one table of actions: bindings, footer, help, palette and docs/keys.md come from it.

A screen adds its own keys by exporting ``ACTIONS``. Which method runs is decided by the app: action
``timeline.zoom_in`` calls ``action_timeline_zoom_in`` of the focused widget, of an ancestor, of the
screen or of the app, whichever has it first, else the function of that id in ``commands``. What
nobody implements does not work there, and neither footer nor help shows it.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from textual.binding import Binding
from textual.keys import _character_to_key as character_to_key
from textual.keys import format_key


@dataclass(frozen=True)
class Action:
    """One thing a user can do by a key."""

    id: str
    keys: tuple[str, ...]
    """Characters (``?``) or Textual key names (``ctrl+p``)."""
    label: str
    """One or two words for the footer."""
    help: str
    """One line for help, palette and docs/keys.md."""
    rank: int = 0
    """Place in the footer, lower first; 0 keeps it out of the footer."""

    @property
    def method(self) -> str:
        """Name of the handler."""
        return "action_" + self.id.replace(".", "_")


@dataclass(frozen=True)
class ScreenSpec:
    """A screen behind a number key."""

    number: int
    """The digit; 0 for a screen that has none and is reached from others."""
    name: str
    long: str
    short: str
    target: str
    """``module:class`` below ``nsys_tui.ui.screens``."""

    @property
    def module(self) -> str:
        """Full module path."""
        return f"nsys_tui.ui.screens.{self.target.partition(':')[0]}"

    @property
    def loaded(self) -> bool:
        """Whether its module is imported to the end, so that it comes at once."""
        return hasattr(sys.modules.get(self.module), self.target.partition(":")[2])

    def load(self) -> type:
        """Imports the screen class."""
        target: type = getattr(importlib.import_module(self.module), self.target.partition(":")[2])
        return target

    def create(self) -> Any:
        """A new screen of this kind."""
        return self.load()()

    def actions(self) -> tuple[Action, ...]:
        """The screen's own actions; imports its module."""
        return getattr(importlib.import_module(self.module), "ACTIONS", ())


SCREENS: Final[tuple[ScreenSpec, ...]] = (
    ScreenSpec(1, "overview", "Overview", "Over", "overview.screen:OverviewScreen"),
    ScreenSpec(2, "timeline", "Timeline", "Time", "timeline:TimelineScreen"),
    ScreenSpec(3, "kernels", "Kernels", "Kern", "kernels.screen:KernelsScreen"),
    ScreenSpec(4, "nvtx", "NVTX", "NVTX", "nvtx.screen:NvtxScreen"),
    ScreenSpec(5, "stalls", "Stalls", "Stall", "stalls.screen:StallsScreen"),
    ScreenSpec(6, "stacks", "Stacks", "Stack", "stacks.screen:StacksScreen"),
    ScreenSpec(7, "compare", "Compare", "Cmp", "compare.screen:CompareScreen"),
    ScreenSpec(8, "sql", "SQL", "SQL", "sql.screen:SqlScreen"),
    ScreenSpec(9, "capture", "Capture", "Cap", "capture.screen:CaptureScreen"),
    ScreenSpec(0, "events", "Events", "Events", "events.screen:EventsScreen"),
    ScreenSpec(0, "steps", "Steps", "Steps", "steps.screen:StepsScreen"),
    ScreenSpec(0, "fleet", "Fleet", "Fleet", "fleet.screen:FleetScreen"),
    ScreenSpec(0, "logs", "Logs", "Logs", "logs.screen:LogsScreen"),
)
"""All screens that the number keys and jumps may mean, in the order of the tabs."""


FUNCTION_KEYS: Final = {"fleet": "f7", "logs": "f8"}
"""Keys of screens that have a tab but no digit."""


def tab_key(spec: ScreenSpec) -> str:
    """The key of a screen's tab: a digit, a function key, or nothing."""
    return str(spec.number) if spec.number else FUNCTION_KEYS.get(spec.name, "")


def _view(spec: ScreenSpec) -> Action:
    return Action(f"view.{spec.name}", (tab_key(spec),), spec.long, f"go to {spec.long}")


GLOBAL: Final[tuple[Action, ...]] = (
    *(_view(spec) for spec in SCREENS if tab_key(spec)),
    Action(
        "app.palette",
        ("ctrl+p",),
        "palette",
        "actions of all screens, kernels, ranges, reports, marks, themes",
        20,
    ),
    Action(
        "find.open", ("/",), "search", "regex or words; Ctrl+F in the box makes it a filter", 10
    ),
    Action("nav.open", ("enter",), "open", "go deeper, or to the evidence", 30),
    Action("pane.next", ("tab", "f6"), "pane", "next pane", 40),
    Action("pane.previous", ("shift+tab", "shift+f6"), "pane", "previous pane"),
    Action("pane.maximise", ("f10",), "maximise", "one pane fills the screen; again restores"),
    Action("app.jump", ("ctrl+o",), "jump", "letters over panes and tabs", 45),
    Action("copy.cell", ("y",), "copy", "copy the cell or value under the cursor", 50),
    Action("copy.row", ("Y",), "copy row", "copy the row as tab-separated text"),
    Action(
        "copy.link",
        ("ctrl+y",),
        "copy link",
        "copy a link to the row or the window, to open it there",
    ),
    Action("report.page", ("ctrl+r",), "page", "write an HTML page about the window, to be sent"),
    Action("export.view", ("e",), "export", "write what is shown to a file", 55),
    Action(
        "find.next", ("n",), "next", "next match; on the timeline also the next event of this name"
    ),
    Action("find.previous", ("N",), "previous", "previous match"),
    Action(
        "nav.escape", ("escape",), "back", "clear the filter, then leave the mode, then go back"
    ),
    Action("nav.back", ("backspace",), "back", "back through the jumps"),
    Action("nav.forward", ("alt+right",), "forward", "forward again after going back"),
    Action("display.names", ("D",), "names", "name style: short, normalised, full"),
    Action("display.time", ("T",), "time", "time format: auto, ns, absolute, relative"),
    Action("display.panel", ("C",), "display", "live panel of everything about the display"),
    Action("mark.list", ("'",), "marks", "list of marks; a letter goes there"),
    Action("capture.again", ("p",), "profile", "profile the same program again"),
    Action("report.open", ("o",), "open report", "open another report"),
    Action("report.close", ("ctrl+w",), "close report", "close this report and free its memory"),
    Action("report.reload", ("R",), "reload", "read the report again; window and marks stay"),
    Action("report.next", ("}",), "next report", "next of the open reports"),
    Action("report.previous", ("{",), "previous report", "the open report before"),
    Action("app.command", (":",), "command", "run an action by its name, with an argument"),
    Action("app.redraw", ("ctrl+l",), "redraw", "send the whole screen again"),
    Action("app.help", ("?", "f1"), "help", "the keys that work here, searchable; Enter runs", 90),
    Action("app.quit", ("q", "ctrl+q"), "quit", "leave nsys-tui", 80),
)
"""Actions of every screen, as far as something there implements them."""


def screen_actions() -> dict[str, tuple[Action, ...]]:
    """Every screen's own actions by screen name; imports all screens, so not for start-up."""
    return {spec.name: spec.actions() for spec in SCREENS}


def bindings(actions: Iterable[Action]) -> list[Binding]:
    """Textual bindings for a table of actions, remappable by id."""
    return [
        Binding(
            ",".join(normal_key(key) for key in action.keys),
            f"app.do('{action.id}')",
            action.label,
            show=False,
            id=action.id,
        )
        for action in actions
        if action.keys
    ]


def normal_key(key: str) -> str:
    """Textual's name of a key: ``?`` becomes ``question_mark``, ``ctrl+p`` stays."""
    return character_to_key(key) if len(key) == 1 else key


_SHOWN: Final = {
    "left": "<-",
    "right": "->",
    "up": "up",
    "down": "down",
    "escape": "esc",
    "enter": "enter",
    "space": "space",
    "tab": "tab",
    "backspace": "backspace",
    "home": "home",
    "end": "end",
    "pageup": "pgup",
    "pagedown": "pgdn",
}


def shown_key(key: str) -> str:
    """How help and footer write a key: ``^P``, ``shift+tab``, ``?``; a chord as ``gg``."""
    if " " in key:
        return "".join(shown_key(part) for part in key.split())
    *modifiers, name = [key] if key in ("+", "plus") else key.split("+")
    text = name if len(name) == 1 else _SHOWN.get(name) or format_key(name)
    if len(text) > 1:
        text = text.upper() if re.fullmatch(r"f\d+", name) else text.lower()
    if modifiers == ["ctrl"]:
        return f"^{text.upper() if len(text) == 1 else text}"
    return "+".join([*modifiers, text])


def effective_keys(action: Action, keymap: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Keys of an action after a keymap was laid over it; a chord is two keys and a blank."""
    return keymap.get(action.id) or action.keys


def clashes(
    screens: Mapping[str, Iterable[Action]], keymap: Mapping[str, tuple[str, ...]]
) -> list[str]:
    """Keys with two meanings in one place, one sentence each.

    A screen may give a global key a meaning of its own only when it says so by defining the same
    action id; everything else is a clash.
    """
    conflicts = [*_clashes("everywhere", GLOBAL, keymap)]
    for name, actions in screens.items():
        of_screen = tuple(actions)
        ids = {action.id for action in of_screen}
        together = (*of_screen, *(action for action in GLOBAL if action.id not in ids))
        conflicts += _clashes(name, together, keymap)
    return sorted(set(conflicts))


def _clashes(
    place: str, actions: Iterable[Action], keymap: Mapping[str, tuple[str, ...]]
) -> Iterator[str]:
    owners: dict[str, str] = {}
    for action in actions:
        for key in effective_keys(action, keymap):
            name = " ".join(normal_key(part) for part in key.split(" "))
            owner = owners.setdefault(name, action.id)
            if owner != action.id and (owner, action.id) not in SHADOWED:
                yield f"{place}: {shown_key(key)} means both {owner} and {action.id}"
    for chord, action_id in owners.items():
        first, blank, _ = chord.partition(" ")
        if blank and first in owners:
            yield f"{place}: {shown_key(first)} means {owners[first]} and begins {action_id}"


SHADOWED: Final[frozenset[tuple[str, str]]] = frozenset(
    {
        ("timeline.snap_next", "pane.next"),
        ("timeline.snap_previous", "pane.previous"),
        ("compare.next_change", "find.next"),
        ("compare.previous_change", "find.previous"),
        ("capture.run", "nav.open"),
    }
)
"""Screen actions that take a global key on purpose: (screen's, global) pairs of the design."""
