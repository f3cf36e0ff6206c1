"""How a report was looked at last: window, filter, pins, screen; a file per report, by content.

Bookmarks have files of their own (``marks``). What a file says is checked before it is believed.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from nsys_tui.state import ColourBy, Cursor, Filter, ViewState, Window
from nsys_tui.ui.clipboard import state_folder
from nsys_tui.ui.keymap import SCREENS
from nsys_tui.writing import write_whole

KEPT: Final = 200
"""Reports whose files are kept, the latest ones."""
_SETS: Final = ("devices", "streams", "processes")
_LANES: Final = ("pinned", "hidden", "folded")
_MOST: Final = 2**62


@dataclass(frozen=True)
class Seen:
    """What is taken up again."""

    screen: str
    window: Window | None
    cursor: Cursor
    filter: Filter
    colour_by: ColourBy
    lanes: dict[str, tuple[str, ...]]
    """Lanes that are pinned, hidden or folded."""

    def on(self, state: ViewState) -> ViewState:
        """A view state with all this in it."""
        display = replace(
            state.display,
            colour_by=self.colour_by,
            pinned=self.lanes["pinned"],
            hidden=frozenset(self.lanes["hidden"]),
            folded=frozenset(self.lanes["folded"]),
        )
        return replace(
            state, window=self.window, cursor=self.cursor, filter=self.filter, display=display
        )


def keep(report_id: str, screen: str, state: ViewState, folder: Path | None = None) -> None:
    """Writes down how a report is looked at; does nothing where that cannot be written."""
    shown = asdict(state.filter)
    told = {
        "screen": screen,
        "window": state.window,
        "cursor": [state.cursor.time, state.cursor.lane],
        "filter": shown | {name: sorted(shown[name]) for name in _SETS},
        "colour_by": state.display.colour_by,
        "lanes": {name: list(getattr(state.display, name)) for name in _LANES},
    }
    target = _file(report_id, folder)
    with contextlib.suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(target, json.dumps(told))
        latest = sorted(target.parent.glob("*.json"), key=lambda file: -file.stat().st_mtime)
        for file in latest[KEPT:]:
            file.unlink()


def seen(report_id: str, folder: Path | None = None) -> Seen | None:
    """How a report was looked at; None where that is not known, or the file makes no sense."""
    try:
        told = json.loads(_file(report_id, folder).read_text(encoding="utf-8"))
        return _checked(told)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _checked(told: dict[str, Any]) -> Seen:
    if told["screen"] not in {spec.name for spec in SCREENS}:
        raise ValueError(told["screen"])
    time, lane = told["cursor"]
    sets = {name: frozenset(map(int, told["filter"][name])) for name in _SETS}
    return Seen(
        screen=told["screen"],
        window=None if told["window"] is None else _window(*told["window"]),
        cursor=Cursor(_time(time), str(lane)),
        filter=Filter(
            str(told["filter"]["pattern"]), _time(told["filter"]["min_duration"]), **sets
        ),
        colour_by=ColourBy(told["colour_by"]),
        lanes={name: tuple(map(str, told["lanes"][name])) for name in _LANES},
    )


def _window(start: int, end: int) -> Window:
    if _time(start) >= _time(end):
        raise ValueError("a window ends after its start")
    return Window(start, end)


def _time(value: Any) -> int:
    if not isinstance(value, int) or abs(value) > _MOST:
        raise ValueError(value)
    return value


def _file(report_id: str, folder: Path | None) -> Path:
    return (folder or state_folder()) / "seen" / f"{report_id}.json"
