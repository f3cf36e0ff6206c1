"""Which log files there are to open, and what a typed name stands for."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Final

from nsys_tui.errors import UsageError
from nsys_tui.ui.matching import Entry

SUFFIXES: Final = (".log", ".out", ".err", ".txt")
PACKED: Final = (".gz", ".xz", ".zst")
_MOST: Final = 2_000
"""Files of a folder that are offered."""


def entries(folders: list[Path]) -> list[Entry]:
    """What the picker offers: each folder that holds several logs, then the logs themselves."""
    found: list[Entry] = []
    for folder in dict.fromkeys(folder.absolute() for folder in folders):
        logs = logs_in(folder)
        if len(logs) > 1:
            found.append(Entry(f"{folder}/  ({len(logs)} logs)", "all", str(folder)))
        found += [Entry(str(path), "here", str(path)) for path in logs]
    return found


def logs_in(folder: Path) -> list[Path]:
    """Files of a folder that look like logs, newest first."""
    try:
        found = [p for p in folder.iterdir() if _is_named_so(p) and p.is_file()]
        return sorted(found, key=lambda p: -p.stat().st_mtime)[:_MOST]
    except OSError:
        return []


def _is_named_so(path: Path) -> bool:
    plain = path.stem if path.suffix in PACKED else path.name
    return Path(plain).suffix in SUFFIXES


def expand(text: str) -> list[Path]:
    """Files that a typed text names: a file, a folder of logs, or a pattern such as ``r*.log``.

    Raises:
        UsageError: it names none.
    """
    path = Path(text.strip()).expanduser()
    if path.is_dir():
        found = sorted(logs_in(path))
    elif path.is_file():
        found = [path]
    else:
        found = sorted(p for name in glob.glob(str(path)) if (p := Path(name)).is_file())
    if not found:
        raise UsageError(f"no log there: {text}", hint="a file, a folder, or a pattern: rank*.log")
    return found
