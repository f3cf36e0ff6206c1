"""Bookmarks on disk: one file per report, by its content, in the user's state folder."""

from __future__ import annotations

import json
from pathlib import Path

from nsys_tui.paths import state_folder
from nsys_tui.plain_data import plain, restored
from nsys_tui.state import Mark
from nsys_tui.writing import write_whole

Marks = dict[str, Mark]


def load_marks(report_id: str) -> Marks:
    """Bookmarks saved for a report; a file that cannot be understood counts as none."""
    try:
        entries = json.loads(_file(report_id).read_text(encoding="utf-8"))
        marks = [restored(Mark, entry) for entry in entries]
    except (OSError, ValueError, TypeError):
        return {}
    return {mark.letter: mark for mark in marks}


def save_marks(report_id: str, marks: Marks) -> str:
    """Saves the bookmarks of a report; returns why that was not possible, empty when it was."""
    target = _file(report_id)
    text = json.dumps([plain(mark) for mark in marks.values()], indent=1)
    try:
        write_whole(target, text)
    except OSError as error:
        return f"{target.parent}: {error.strerror or error}"
    return ""


def _file(report_id: str) -> Path:
    return state_folder() / "marks" / f"{report_id}.json"
