"""NVIDIA's own nsys, laid out in a folder: what it prints is compared with what we print.

It is run and its output is read; nothing of it is copied. Now and then it hangs at its start, so
every call has a limit and is tried again.
"""

from __future__ import annotations

import csv
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import pytest
from paths import SHARED

Rows: TypeAlias = list[list[str]]

LAYING_OUT: Final = SHARED / "tools" / "real-nsys"
LIMIT: Final = 60
TRIES: Final = 3


@cache
def laid_out(version: str) -> str:
    """The executable of a version; the tests that need it skip and say why where there is none."""
    if not LAYING_OUT.is_file():
        pytest.skip(f"NOT COMPARED with NVIDIA's nsys {version}: {LAYING_OUT} is absent")
    folder = Path.home() / ".cache" / "real-nsys"
    command = [str(LAYING_OUT), str(folder), version]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"NOT COMPARED with NVIDIA's nsys {version}: {error}")
    if done.returncode:
        pytest.skip(f"NOT COMPARED with NVIDIA's nsys {version}: {done.stderr[-300:]}")
    return done.stdout.strip()


def run(nsys: str, *arguments: str) -> str:
    """What it prints."""
    for _ in range(TRIES):
        try:
            return subprocess.run(
                [nsys, *arguments],
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
                stdin=subprocess.DEVNULL,
            ).stdout
        except subprocess.TimeoutExpired:
            continue
    raise TimeoutError(f"{nsys} {arguments[0]} hung {TRIES} times")


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
