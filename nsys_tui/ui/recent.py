"""Recently opened reports, newest first, in the user's state folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nsys_tui.ui.clipboard import state_folder

KEPT: Final = 30


def recent(folder: Path | None = None) -> list[Path]:
    """Reports opened before that are still there."""
    try:
        lines = _file(folder).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
    return [path for line in lines if line and (path := Path(line)).is_file()]


def remember(path: Path, folder: Path | None = None) -> None:
    """Puts a report first; does nothing where the state folder cannot be written."""
    paths = list(dict.fromkeys([path.absolute(), *recent(folder)]))[:KEPT]
    text = "".join(f"{entry}\n" for entry in paths if "\n" not in str(entry))
    target = _file(folder)
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.write_text(text, encoding="utf-8", errors="surrogateescape")
    except OSError:
        return


def nearby(folder: Path) -> list[Path]:
    """Reports in a folder, newest first."""
    suffixes = (".sqlite", ".nsys-rep", ".qdrep")
    try:
        found = [path for path in folder.iterdir() if path.suffix in suffixes and path.is_file()]
        return sorted(found, key=lambda path: -path.stat().st_mtime)
    except OSError:
        return []


def _file(folder: Path | None) -> Path:
    return (folder or state_folder()) / "recent.txt"
