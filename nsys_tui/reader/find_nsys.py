"""Finds NVIDIA's nsys on this machine; light, since a capture's start waits for it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

INSTALL_FOLDERS: Final = (
    "/opt/nvidia/nsight-systems*/*/bin/nsys",
    "/opt/nvidia/nsight-systems*/*/target-linux-*/nsys",
    "/usr/local/cuda*/bin/nsys",
    "/opt/nvidia/hpc_sdk/Linux_*/*/profilers/Nsight_Systems/bin/nsys",
    "/usr/lib/nsight-systems/bin/nsys",
    "/usr/lib/nsight-systems/target-linux-*/nsys",
    "C:/Program Files/NVIDIA Corporation/Nsight Systems */target-windows-x64/nsys.exe",
    "C:/Program Files/NVIDIA Corporation/Nsight Systems */bin/nsys.exe",
)
"""Where NVIDIA's installers put nsys, as patterns."""

_VERSION: Final = re.compile(r"\d{4}\.\d+(?:\.\d+)*")
_VERSION_SECONDS: Final = 10


def find_nsys(explicit: str | None = None) -> Path | None:
    """The nsys that is tried first, or None; see :func:`all_nsys`."""
    return next(iter(all_nsys(explicit)), None)


def all_nsys(explicit: str | None = None) -> list[Path]:
    """Finds nsys on this machine, the newest first: a newer one reads all that an older one does.

    Args:
        explicit: a path, an install folder or a command name from the user (``--nsys``,
            ``NSYS_TUI_NSYS``, ``nsys.path``); nothing else is then looked at. ``auto`` or nothing:
            PATH and the install folders.

    Returns:
        Absolute paths of executables, each once.
    """
    if explicit and explicit != "auto":
        given = Path(explicit).expanduser()
        inside = ("", "nsys", "bin/nsys", "target-linux-x64/nsys", "nsys.exe")
        candidates = [given / place for place in inside]
        paths = [path.absolute() for path in candidates if _is_executable(path)][:1]
        return paths or _on_path(explicit)[:1]
    there: dict[Path, Path] = {}
    for path in (*_on_path("nsys"), *_installed()):
        there.setdefault(path.resolve(), path)
    paths = list(there.values())
    return paths if len(paths) < 2 else sorted(paths, key=nsys_version, reverse=True)


@cache
def nsys_version(nsys: Path) -> tuple[int, ...]:
    """The version that an nsys tells, else that of its folder's name; empty = neither."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        said = subprocess.run(
            [nsys, "--version"], capture_output=True, text=True, errors="replace",
            stdin=subprocess.DEVNULL, timeout=_VERSION_SECONDS, check=False,
        ).stdout  # fmt: skip
        if match := _VERSION.search(said):
            return tuple(map(int, match[0].split(".")))
    named = _VERSION.findall(str(nsys))
    return tuple(map(int, named[-1].split("."))) if named else ()


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _on_path(name: str) -> list[Path]:
    """Every executable of that name in the folders of PATH, in their order."""
    if os.path.dirname(name):
        paths = [shutil.which(name)]
    else:
        folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
        paths = [shutil.which(name, path=folder) for folder in folders if folder]
    return [Path(path).absolute() for path in paths if path]


def _installed() -> list[Path]:
    """Lists what matches ``INSTALL_FOLDERS``."""
    paths: list[Path] = []
    for pattern in INSTALL_FOLDERS:
        anchor = Path(pattern).anchor
        if anchor:
            matches = Path(anchor).glob(str(Path(pattern).relative_to(anchor)))
            paths += filter(_is_executable, sorted(matches))
    return paths
