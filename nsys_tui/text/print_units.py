"""The units that text shows figures in, as nsys's ``--timeunit`` and ``--format csv:mem=KiB`` say.

Categories, units, decimals and headers are those that nsys 2023.4 prints.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from nsys_tui.errors import UsageError
from nsys_tui.model.table import UNNAMED, Unit

if TYPE_CHECKING:
    from nsys_tui.model.table import Column


class Scale(NamedTuple):
    """One unit: how much of the stored one it is, and how many decimals it is shown with."""

    per: int
    decimals: int


_TIMES: Final = {
    "ns": Scale(1, 0),
    "us": Scale(1_000, 3),
    "ms": Scale(1_000_000, 4),
    "sec": Scale(1_000_000_000, 4),
}
_SIZES: Final = {
    "B": Scale(1, 0),
    "KB": Scale(1_000, 2),
    "KiB": Scale(1 << 10, 2),
    "MB": Scale(1_000_000, 3),
    "MiB": Scale(1 << 20, 3),
    "GB": Scale(1_000_000_000, 3),
    "GiB": Scale(1 << 30, 3),
}
_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "ts": tuple(_TIMES),
    "dur": tuple(_TIMES),
    "mem": tuple(_SIZES),
    "thru": tuple(_SIZES),
    "addr": ("hex", "uint"),
    "gid": ("gidint", "gidhex", "gidsubint", "gidsubhex"),  # stands in no table of ours
    "ratio": ("%",),
}
"""Units by category; their names as nsys has them."""
_TOGETHER: Final = {"time": ("ts", "dur"), "bytes": ("mem", "thru")}
CATEGORIES: Final = (*_NAMES, *_TOGETHER)
_TIME_WORDS: Final = {
    "nsec": "ns",
    "nanoseconds": "ns",
    "usec": "us",
    "microseconds": "us",
    "msec": "ms",
    "milliseconds": "ms",
    "seconds": "sec",
}


@dataclass(frozen=True)
class Units:
    """The unit of each category, and whether headers tell it."""

    ts: str = "ns"
    """Points in time."""
    dur: str = "ns"
    mem: str = "MB"
    thru: str = "MB"
    addr: str = "hex"
    told: bool = True

    def with_unit(self, category: str, unit: str) -> Units:
        """The same with another unit for a category, or for two as ``time`` and ``bytes`` are.

        Raises:
            UsageError: there is no such category, or it has no such unit.
        """
        names = _TOGETHER.get(category, (category,))
        legal = _NAMES.get(names[0])
        if legal is None:
            hint = f"one of {', '.join(CATEGORIES)}"
            raise UsageError(f"unknown kind of figure: {category!r}", hint=hint)
        if unit not in legal:
            hint = f"one of {', '.join(legal)}"
            raise UsageError(f"unknown unit of {category}: {unit!r}", hint=hint)
        changes: dict[str, Any] = {name: unit for name in names if hasattr(self, name)}
        return replace(self, **changes)

    def native(self) -> Units:
        """The units in which nsys stores figures."""
        return replace(self, ts="ns", dur="ns", mem="B", thru="B", addr="uint")

    def scale(self, column: Column) -> Scale:
        """How a column of numbers is divided and rounded."""
        if column.unit is Unit.NS:
            chosen = _TIMES[self._time(column)]
        elif column.unit in (Unit.MB, Unit.MB_PER_S):
            chosen = _SIZES[self.mem if column.unit is Unit.MB else self.thru]
        else:
            return Scale(1, column.decimals)
        if chosen.per > 1:
            return chosen
        parts = column.unit is Unit.MB and not column.is_whole
        return Scale(1, 1 if parts else column.decimals)

    def header(self, column: Column) -> str:
        """A column's header with its unit in parentheses; counts and text have none."""
        if column.unit in UNNAMED or not self.told:
            return column.header
        return f"{column.header} ({self._suffix(column)})"

    def _suffix(self, column: Column) -> str:
        if column.unit is Unit.NS:
            return self._time(column)
        if column.unit is Unit.MB:
            return self.mem
        return f"{self.thru}/s" if column.unit is Unit.MB_PER_S else column.unit.value

    def _time(self, column: Column) -> str:
        # Points in time are headed so in every report of nsys's.
        return self.ts if column.header.endswith(("Start", "End")) else self.dur


def units_help() -> list[str]:
    """Each category with its units."""
    alone = [f"{name:10}{' '.join(units)}" for name, units in _NAMES.items()]
    return alone + [f"{name:10}{' and '.join(parts)}" for name, parts in _TOGETHER.items()]


def time_unit(name: str) -> str:
    """The unit that nsys's ``--timeunit`` means by a word, or by what words begin with.

    Raises:
        UsageError: no word begins so, or words of several units do.
    """
    if name in _TIMES or name == "s":
        return "sec" if name == "s" else name
    found = {unit for word, unit in _TIME_WORDS.items() if name and word.startswith(name)}
    if len(found) == 1:
        return found.pop()
    said = "may be several time units" if found else "unknown time unit"
    raise UsageError(f"{said}: {name!r}", hint=f"one of {', '.join(_TIME_WORDS)}")
