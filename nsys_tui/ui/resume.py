"""What was looked at last: which reports, and of each the window, filter, pins and screen.

How a report was looked at stands in a file per report, by content.

Bookmarks have files of their own (``marks``). What a file says is checked before it is believed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from nsys_tui.paths import state_folder
from nsys_tui.plain_data import plain, restored
from nsys_tui.state import ColourBy, Cursor, Filter, ViewState, Window
from nsys_tui.ui.keymap import SCREENS
from nsys_tui.writing import write_whole

KEPT: Final = 200
"""Reports whose files are kept, the latest ones."""


@dataclass(frozen=True)
class Seen:
    """What is taken up again."""

    screen: str
    window: Window | None
    cursor: Cursor
    filter: Filter
    colour_by: ColourBy
    pinned: tuple[str, ...]
    hidden: frozenset[str]
    folded: frozenset[str]
    opened: frozenset[str] = frozenset()
    beside: tuple[str, ...] = ()
    """Files of the reports in its timeline."""

    def on(self, state: ViewState) -> ViewState:
        """A view state with all this in it."""
        display = replace(
            state.display,
            colour_by=self.colour_by,
            pinned=self.pinned,
            hidden=self.hidden,
            folded=self.folded,
            opened=self.opened,
        )
        return replace(
            state, window=self.window, cursor=self.cursor, filter=self.filter, display=display
        )


def keep(report_id: str, screen: str, state: ViewState, beside: Iterable[Path] = ()) -> None:
    """Writes down how a report is looked at; does nothing where that cannot be written."""
    look = state.display
    lanes = look.pinned, look.hidden, look.folded, look.opened
    files = tuple(str(path.absolute()) for path in beside)
    told = Seen(screen, state.window, state.cursor, state.filter, look.colour_by, *lanes, files)
    target = _file(report_id)
    with contextlib.suppress(OSError):
        write_whole(target, json.dumps(plain(told)))
        latest = sorted(target.parent.glob("*.json"), key=lambda file: -file.stat().st_mtime)
        for file in latest[KEPT:]:
            file.unlink()


def seen(report_id: str) -> Seen | None:
    """How a report was looked at; None where that is not known, or the file makes no sense."""
    try:
        last = restored(Seen, json.loads(_file(report_id).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    known = last.screen in {spec.name for spec in SCREENS}
    return last if known and (last.window is None or last.window.width > 0) else None


def keep_session(paths: Sequence[Path]) -> None:
    """Writes down which reports are open, the one in front first."""
    with contextlib.suppress(OSError):
        write_whole(_session_file(), json.dumps([str(path.absolute()) for path in paths]))


def last_session() -> list[Path]:
    """The reports that were open when the app was left last; some may be gone."""
    try:
        return list(map(Path, json.loads(_session_file().read_text(encoding="utf-8"))))
    except (OSError, ValueError, TypeError):
        return []


def _session_file() -> Path:
    return state_folder() / "session.json"


def _file(report_id: str) -> Path:
    return state_folder() / "seen" / f"{report_id}.json"
