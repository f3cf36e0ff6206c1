"""Queries asked before, newest first, in the user's state folder."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from nsys_tui.ui.clipboard import state_folder

if TYPE_CHECKING:
    from pathlib import Path

KEPT: Final = 100


def asked_before(folder: Path | None = None) -> list[str]:
    """Queries, newest first; none where the file cannot be read."""
    with suppress(OSError, ValueError):
        found = json.loads(_file(folder).read_text(encoding="utf-8"))
        return [query for query in found if isinstance(query, str)]
    return []


def remember(query: str, folder: Path | None = None) -> None:
    """Puts a query first; does nothing where the state folder cannot be written."""
    kept = [query, *(other for other in asked_before(folder) if other != query)][:KEPT]
    target = _file(folder)
    with suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.write_text(json.dumps(kept), encoding="utf-8")


def _file(folder: Path | None) -> Path:
    return (folder or state_folder()) / "queries.json"
