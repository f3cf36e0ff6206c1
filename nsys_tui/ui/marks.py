"""Bookmarks on disk: one file per report, by its content, in the user's state folder."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from nsys_tui.reader.schema import declared
from nsys_tui.state import ColourBy, Filter, Mark, Selection, Window
from nsys_tui.ui.clipboard import state_folder
from nsys_tui.writing import write_whole

_SETS: Final = ("devices", "streams", "processes")

Marks = dict[str, Mark]


def load_marks(report_id: str, folder: Path | None = None) -> Marks:
    """Bookmarks saved for a report; a file that cannot be understood counts as none."""
    try:
        entries = json.loads(_file(report_id, folder).read_text(encoding="utf-8"))
        return {entry["letter"]: _mark(entry) for entry in entries}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def save_marks(report_id: str, marks: Marks, folder: Path | None = None) -> str:
    """Saves the bookmarks of a report; returns why that was not possible, empty when it was."""
    target = _file(report_id, folder)
    text = json.dumps([_plain(mark) for mark in marks.values()], indent=1)
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(target, text)
    except OSError as error:
        return f"{target.parent}: {error.strerror or error}"
    return ""


def _file(report_id: str, folder: Path | None) -> Path:
    return (folder or state_folder()) / "marks" / f"{report_id}.json"


def _plain(mark: Mark) -> dict[str, Any]:
    entry = asdict(mark)
    entry["filter"] |= {name: sorted(entry["filter"][name]) for name in _SETS}
    return entry


def _mark(entry: dict[str, Any]) -> Mark:
    chosen, window = entry.get("selection"), entry.get("window")
    found = dict(entry.get("filter") or {})
    return Mark(
        letter=str(entry["letter"]),
        time=int(entry["time"]),
        screen=str(entry["screen"]),
        lane=str(entry.get("lane", "")),
        selection=None if chosen is None else _selection(chosen),
        window=None if window is None else Window(*map(int, window)),
        filter=Filter(**found | {name: frozenset(found.get(name, ())) for name in _SETS}),
        colour_by=ColourBy(entry.get("colour_by", "category")),
        label=str(entry.get("label", "")),
        note=str(entry.get("note", "")),
    )


def _kind_of_rows(part: Any) -> Any:
    """Part of a key: earlier versions wrote the table of an event, where now its kind stands."""
    table = declared(part) if isinstance(part, str) else None
    return part if table is None or table.kind is None else str(table.kind)


def _selection(entry: dict[str, Any]) -> Selection:
    span = entry.get("span")
    return Selection(
        kind=str(entry["kind"]),
        key=tuple(map(_kind_of_rows, entry.get("key", ()))),
        span=None if span is None else Window(*map(int, span)),
        lanes=tuple(entry.get("lanes", ())),
        label=str(entry.get("label", "")),
    )
