"""Which files a command line means: reports by name, and all reports below a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from nsys_tui.errors import UsageError

_SUFFIXES: Final = (".nsys-rep", ".qdrep", ".sqlite")
"""What is a report, the original before its export: which of both is read is the reader's choice
(see there for when an export is trusted)."""
_UNFINISHED: Final = ".qdstrm"
_DIGITS: Final = re.compile(r"(\d+)")


def find_reports(names: Iterable[str]) -> list[Path]:
    """The reports that files and folders on a command line stand for, in the order of people.

    Of a report and its export beside it only one is taken. A capture that was never finished
    (``.qdstrm``) stands in the list where its report would: it is named as broken then.

    Args:
        names: files are taken as they are; folders are searched with all below them.

    Raises:
        UsageError: a folder holds no report or cannot be read.
    """
    paths: dict[Path, None] = {}
    for name in names:
        path = Path(name)
        below = _in_folder(path) if os.path.isdir(path) else [path]
        if not below and not os.access(path, os.R_OK | os.X_OK):
            raise UsageError(f"cannot read the folder {path}: permission denied")
        if not below:
            kinds = ", ".join(_SUFFIXES)
            raise UsageError(f"no reports in {path}", hint=f"looked for {kinds} in it and below")
        paths |= dict.fromkeys(below)
    return list(paths)


def _in_folder(folder: Path) -> list[Path]:
    best: dict[Path, Path] = {}
    suffixes = (*_SUFFIXES, _UNFINISHED)
    for path in folder.rglob("*"):
        if path.suffix not in suffixes or not path.is_file():
            continue
        stem = path.with_suffix("")
        other = best.get(stem)
        if other is None or suffixes.index(path.suffix) < suffixes.index(other.suffix):
            best[stem] = path
    return sorted(best.values(), key=in_order)


def in_order(path: Path) -> list[tuple[int, int, str]]:
    """Sort key by which ``rank_9`` comes before ``rank_10``."""
    parts = _DIGITS.split(str(path))
    return [(place % 2, int(t) if place % 2 else 0, t) for place, t in enumerate(parts)]
