"""Which reports an agent may name: those in the folders, and the files, that the user named."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from nsys_tui.errors import UsageError

SUFFIXES: Final = (".sqlite", ".nsys-rep", ".qdrep")
LISTED: Final = 200
"""Reports listed at most."""
LOOKED_AT: Final = 20_000
"""Files and folders looked at for that: a home folder is not walked to its end."""


class Roots:
    """Files and folders outside of which nothing is read.

    Links are followed before anything is compared, so that none leads out.

    Args:
        given: files and folders that the user named; none stands for the present folder.

    Raises:
        UsageError: one of them is not there.
    """

    def __init__(self, given: Sequence[Path]) -> None:
        self.given = [path.resolve() for path in given or (Path.cwd(),)]
        for path in self.given:
            if not path.exists():
                raise UsageError(f"{path} is not there", hint="name reports, or folders of them")

    def __str__(self) -> str:
        return ", ".join(map(str, self.given))

    def resolve(self, name: str) -> Path:
        """The report that a name stands for: a path, or a file's name where just one has it.

        Raises:
            UsageError: it is no report, or lies outside.
        """
        bases = [Path.cwd(), *(root for root in self.given if root.is_dir())]
        paths = [path for base in bases if (path := _real(base, name))]
        inside = [path for path in dict.fromkeys(paths) if self._holds(path)]
        inside = inside or [path for path in self.reports() if path.name == name]
        if not inside:
            where = f"reports are read from {self} alone"
            raise UsageError(f"no report {name[:200]!r} there", where, "open() lists them")
        if len(inside) > 1:
            raise UsageError(f"{len(inside)} reports are called {name!r}", hint="give the path")
        if inside[0].suffix not in SUFFIXES:
            raise UsageError(f"{name!r} is no report", hint=f"reports end in {', '.join(SUFFIXES)}")
        return inside[0]

    def reports(self) -> list[Path]:
        """All reports inside, newest first."""
        paths = {path for root in self.given for path in _reports(root) if self._holds(path)}
        return sorted(paths, key=_age)[:LISTED]

    def _holds(self, path: Path) -> bool:
        return any(path == root or root in path.parents for root in self.given)


def _real(base: Path, name: str) -> Path | None:
    """The file of that name with all links followed, if it is one."""
    try:
        path = (base / name).resolve()
        return path if path.is_file() else None
    except (OSError, ValueError):
        return None


def _reports(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    looked = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        looked += len(folders) + len(names)
        if looked > LOOKED_AT:
            return
        for name in names:
            if name.endswith(SUFFIXES) and (path := _real(Path(folder), name)):
                yield path


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0
