"""Recently opened reports, newest first, in the user's state folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nsys_tui.paths import state_folder
from nsys_tui.writing import write_whole

KEPT: Final = 30
SUFFIXES: Final = (".sqlite", ".nsys-rep", ".qdrep")
LOGS: Final = (".log", ".out", ".err")
PACKED: Final = (".gz", ".xz", ".zst")
MOST_LOGS: Final = 2_000
"""Files of a folder that are offered."""


@dataclass(frozen=True)
class Opened:
    """A report that was opened before."""

    path: Path
    verdict: str = ""
    """What was concluded of it; empty where nobody waited for that."""
    modified_ns: int = 0
    """When the file was last written as the verdict was found."""

    @property
    def present_verdict(self) -> str:
        """The verdict, if the file is still the one that it was found in."""
        try:
            return self.verdict if self.path.stat().st_mtime_ns == self.modified_ns else ""
        except OSError:
            return ""


def opened_before() -> list[Opened]:
    """Reports opened before that are still there."""
    try:
        lines = _file().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    return [entry for line in lines if (entry := _parsed(line)) and entry.path.is_file()]


def recent() -> list[Path]:
    """Paths of reports opened before that are still there."""
    return [entry.path for entry in opened_before()]


def distinct(paths: Iterable[Path]) -> list[Path]:
    """Each file once, by the first of its paths: links lead to one file from several places."""
    first: dict[Path, Path] = {}
    for path in paths:
        first.setdefault(path.resolve(), path)
    return list(first.values())


def is_first() -> bool:
    """Whether no report was ever opened by this user."""
    return not _file().exists()


def remember(path: Path, verdict: str = "") -> None:
    """Puts a report first; does nothing where the state folder cannot be written."""
    known = {entry.path: entry for entry in opened_before()}
    path = path.absolute()
    entry = _judged(path, verdict) if verdict else known.get(path, Opened(path))
    kept = [entry, *(other for other in known.values() if other.path != path)][:KEPT]
    text = "".join(json.dumps([str(e.path), e.verdict, e.modified_ns]) + "\n" for e in kept)
    with suppress(OSError):
        write_whole(_file(), text)


def nearby(folder: Path) -> list[Path]:
    """Reports in a folder, newest first; those of one moment by their names."""
    try:
        files = folder.absolute().iterdir()
        reports = [path for path in files if path.suffix in SUFFIXES and path.is_file()]
        return sorted(reports, key=lambda path: (-path.stat().st_mtime, path))
    except OSError:
        return []


def logs_in(folder: Path, suffixes: tuple[str, ...] = (*LOGS, ".txt")) -> list[Path]:
    """Files of a folder that are named like logs, newest first."""

    def plain(path: Path) -> str:
        return Path(path.stem if path.suffix in PACKED else path.name).suffix

    try:
        logs = [p for p in folder.iterdir() if plain(p) in suffixes and p.is_file()]
        return sorted(logs, key=lambda p: -p.stat().st_mtime)[:MOST_LOGS]
    except OSError:
        return []


def _judged(path: Path, verdict: str) -> Opened:
    try:
        return Opened(path, verdict, path.stat().st_mtime_ns)
    except OSError:
        return Opened(path)


def _parsed(line: str) -> Opened | None:
    """A line of the file."""
    try:
        path, verdict, modified = json.loads(line)
        return Opened(Path(path), str(verdict), int(modified))
    except (ValueError, TypeError):
        return None


def _file() -> Path:
    return state_folder() / "recent.txt"
