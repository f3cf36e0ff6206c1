"""Ranks that the user tells: one line a report, its name and the ranks of its GPUs in order."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsys_tui.errors import UsageError
from nsys_tui.units import ranks_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LINE: Final = re.compile(
    r"(?P<name>.*\S)\s+(?P<ranks>\d{1,7}(?:-\d{1,7})?(?:,\d{1,7}(?:-\d{1,7})?)*)"
)
MOST: Final = 1 << 20
"""Ranks of a file at most."""


def read_ranks(path: str, reports: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Ranks by path of the report.

    Lines are ``REPORT RANKS``: a path or file name, and ranks such as ``3``, ``0-7`` or ``0,2,4``;
    empty lines and those with # count for nothing.

    Args:
        path: the file.
        reports: paths of the reports of the fleet.

    Raises:
        UsageError: it cannot be read, names a report that is not there or several with that name,
            or has a rank twice.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    found: dict[str, tuple[int, ...]] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise UsageError(
                f"{path}, line {number}: not a report and its ranks: {text!r}",
                hint="write lines such as: rank_0.nsys-rep 0, or: node1.nsys-rep 8-15",
            )
        found[_report(match["name"], reports, f"{path}, line {number}")] = _numbers(match["ranks"])
    twice = [rank for rank, n in Counter(r for own in found.values() for r in own).items() if n > 1]
    if twice:
        raise UsageError(f"{path} gives rank {ranks_text(twice)} to more than one")
    return found


def _report(name: str, reports: Sequence[str], where: str) -> str:
    """The report that a name means: its path, the end of it, or the file's name."""
    ends = [one for one in reports if one == name or one.endswith("/" + name.removeprefix("./"))]
    if len(ends) != 1:
        what = "several reports have" if ends else "no report of the fleet has"
        raise UsageError(f"{where}: {what} the name {name!r}")
    return ends[0]


def _numbers(text: str) -> tuple[int, ...]:
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), min(int(last or first), int(first) + MOST) + 1)
    return tuple(found)


def check_counts(given: Mapping[str, tuple[int, ...]], there: Mapping[str, int]) -> None:
    """Sees that every report has as many ranks as were given.

    Args:
        given: ranks by path.
        there: number of ranks that each report holds.

    Raises:
        UsageError: one has more or fewer.
    """
    for path, ranks in given.items():
        count = there.get(path, len(ranks))
        if count != len(ranks):
            raise UsageError(f"{path} holds {count} ranks, {len(ranks)} are given")
