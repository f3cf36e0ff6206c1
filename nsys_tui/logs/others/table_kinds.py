"""Kinds of benchmark tables whose columns are named in one line, as data."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from nsys_tui.logs.trainers.trainer_table import N


class Kind(NamedTuple):
    """A kind of table, as lines of it look."""

    words: tuple[bytes, ...]
    """One stands in each title."""
    title: re.Pattern[str]
    """Begins a table and names the test."""
    columns: re.Pattern[str]
    """Names the columns, two spaces apart."""
    row: re.Pattern[str]
    """A row's ``values``, and its ``size`` where the columns are of different things."""
    of: str = ""
    """What the columns' names leave out."""


_SIZED: Final = re.compile(
    rf"^\s*(?P<size>\d{{1,18}})(?P<values>(?:\s+{N})+(?:\s+[A-Za-z]\w*)?)\s*$"
)
KINDS: Final = {
    "osu": Kind(
        (b"# OSU ",),
        re.compile(r"^#\s*OSU (.+?)\s*$"),
        re.compile(r"^#\s*Size\s+(.+?)\s*$"),
        _SIZED,
    ),
    "imb": Kind(
        (b"# Benchmarking ",),
        re.compile(r"^#\s*Benchmarking (\w+)\s*$"),
        re.compile(r"^\s*#bytes\s+(#repetitions\b.*?)\s*$"),
        _SIZED,
    ),
    "perftest": Kind(
        (b" BW Test", b" Latency Test"),
        re.compile(r"^\s*((?:RDMA_|Send|Atomic)[\w ]* (?:BW|Latency) Test)\s*$"),
        re.compile(r"^\s*#bytes\s+(#iterations\b.*?)\s*$"),
        _SIZED,
    ),
    "ucc": Kind(
        (b"Collective:",),
        re.compile(r"^Collective:\s+(\w+)\s*$"),
        re.compile(r"^\s+(avg\s+min\s+max)\b"),
        re.compile(rf"^\s*\d+\s+(?P<size>\d{{1,18}})(?P<values>(?:\s+{N})+)\s*$"),
        "Time (us), ",
    ),
    "nvbandwidth": Kind(
        (b"_ce.", b"_sm.", b"_copy."),
        re.compile(r"^Running (\w+_(?:ce|sm|copy))\.\s*$"),
        re.compile(r"^[a-zA-Z].*\b(\w+ \([\w/]+\))\s*$"),
        re.compile(r"^\s*\d+(?P<values>(?:\s+(?:\d+\.\d+|N/A))+)\s*$"),
    ),
}
