"""NVIDIA's own nsys, laid out once in the user's cache for all tests that run it.

``NSYS_TUI_REAL_NSYS`` names a program that lays a release out and prints its path;
``../shared/tools/real-nsys`` beside the checkout is asked otherwise.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from paths import SHARED

_FOLDER: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "real-nsys"
_LIMIT: Final = 100
_TRIES: Final = 2


def laid_out(release: str) -> Path:
    """The executable of a release; what needs it skips and says why where there is none."""
    path, why = _answer(release)
    if path is None:
        pytest.skip(f"NOT TRIED with NVIDIA's nsys {release}: {why}")
    return path


@cache
def _answer(release: str) -> tuple[Path | None, str]:
    tool = Path(os.environ.get("NSYS_TUI_REAL_NSYS", SHARED / "tools" / "real-nsys"))
    if not tool.is_file():
        return None, f"{tool} is absent; NSYS_TUI_REAL_NSYS names what lays it out"
    _FOLDER.mkdir(parents=True, exist_ok=True)
    # Two test processes would write one executable while the other runs it.
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _lay_out(tool, release)


def _lay_out(tool: Path, release: str) -> tuple[Path | None, str]:
    """It hangs at its start now and then, so it is asked twice."""
    why = ""
    for _ in range(_TRIES):
        try:
            command = [str(tool), str(_FOLDER), release]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_LIMIT, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            why = str(error)
            continue
        if done.returncode == 0:
            return Path(done.stdout.strip().splitlines()[-1]), ""
        return None, done.stderr.strip()[-300:]
    return None, why
