"""What NVIDIA's own nsys prints, to be compared with what we print.

It is run and its output is read; nothing of it is copied. Now and then it hangs at its start, so
every call has a limit and is tried again.
"""

from __future__ import annotations

import csv
import re
import subprocess
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

import pytest
from real_nsys import laid_out as _laid_out

if TYPE_CHECKING:
    from pathlib import Path

Rows: TypeAlias = list[list[str]]

LIMIT: Final = 60
TRIES: Final = 3


def laid_out(version: str) -> str:
    """The executable of a version."""
    return str(_laid_out(version))


def run(nsys: str, *arguments: str) -> str:
    """What it prints; a file that one left which hung and was ended is written anew."""
    anew = ["--force-overwrite=true"] if "-o" in arguments else []
    for _ in range(TRIES):
        try:
            return subprocess.run(
                [nsys, arguments[0], *anew, *arguments[1:]],
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
                stdin=subprocess.DEVNULL,
            ).stdout
        except subprocess.TimeoutExpired:
            continue
    pytest.skip(f"NOT COMPARED: {nsys} {arguments[0]} hung {TRIES} times")


@cache
def names(nsys: str, verb: str, option: str) -> tuple[str, ...]:
    """The reports or rules that it knows."""
    return tuple(re.findall(r"^ +([a-z][a-z0-9_-]*)(?:\[\S*)? -- ", run(nsys, verb, option), re.M))


def rows(path: Path) -> Rows:
    """A csv file as rows, its header first; empty where there is none."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [row for row in csv.reader(file) if row]
