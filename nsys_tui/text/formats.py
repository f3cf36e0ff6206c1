"""Formats of a printed table and their options, as ``--format column:nohdr:nolimit`` names them.

So with the units of figures (``--timeunit``, ``--format csv:mem=KiB``), whose categories, names,
decimals and headers are those that nsys 2023.4 prints.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from nsys_tui.errors import UsageError
from nsys_tui.model.table import UNNAMED, Column, Unit


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
    units = {unit for word, unit in _TIME_WORDS.items() if name and word.startswith(name)}
    if len(units) == 1:
        return units.pop()
    said = "may be several time units" if units else "unknown time unit"
    raise UsageError(f"{said}: {name!r}", hint=f"one of {', '.join(_TIME_WORDS)}")


class Kind(NamedTuple):
    """One format: what it is, how files of it end, and its options."""

    text: str
    extension: str
    options: tuple[str, ...] = ()


_UNITS: Final = ("<kind>=<unit>", "noconv", "nohdrunit")
_PADDED: Final = 500
_HUMAN: Final = ("nohdr", "nolimit", "nofmt", "autolines=<lines>", "colmax=<cells>", "<width>...")
KINDS: Final = {
    "column": Kind("aligned columns under a ruled header", "txt", _HUMAN),
    "table": Kind("the same in a box", "txt", _HUMAN),
    "csv": Kind("comma-separated values", "csv", ("nohdr",)),
    "tsv": Kind("tab-separated values", "tsv", ("nohdr", "esc")),
    "json": Kind("an array of row objects", "json"),
    "markdown": Kind("a GitHub-flavoured Markdown table", "md"),
    "html": Kind("a whole HTML page", "html", ("title=<text>", "css=<URL>")),
    "hdoc": Kind("a whole HTML page as nsys lays it out", "html", ("title=<text>", "css=<URL>")),
    "htable": Kind("its table alone", "html"),
}


@dataclass(frozen=True)
class Format:
    """A format with its options."""

    kind: str
    """Key of ``KINDS``."""
    show_header: bool = True
    limit: int | None = 100
    """Cells after which text of human formats is cut; None for never."""
    padded: int | None = None
    """Cells after which text is not padded, where lines may be of any length; None for all."""
    measured: int | None = None
    """Rows whose text decides how wide a column is; None for as many as are measured quickly."""
    units: Units = field(default_factory=Units)
    separators: bool = True
    """Thousands separators in human formats."""
    widths: tuple[int | None, ...] = ()
    """Cells of each column; None decides by content, 0 hides the column."""
    room: int | None = None
    """Cells of a line in human formats; wider rows are narrowed or go on below. None for any."""
    escape_tabs: bool = False
    """In tsv, a tab in a name becomes ``\\t`` instead of a space."""
    title: str = ""
    css: str = ""

    @property
    def extension(self) -> str:
        """File name extension without the dot."""
        return KINDS[self.kind].extension

    @property
    def is_human(self) -> bool:
        """Whether the format is for reading rather than for another program."""
        return self.kind in ("column", "table")


def whole(kind: str, room: int | None) -> Format:
    """A format of our own verbs: a line of any length holds the whole of a long name, once."""
    return Format(kind, limit=None, padded=_PADDED, room=room)


def parse_format(text: str) -> Format:
    """Parses ``kind[:option]…``.

    Raises:
        UsageError: unknown format or option.
    """
    kind, *options = text.split(":")
    if kind not in KINDS:
        raise UsageError(f"unknown format: {kind!r}", hint=f"one of {', '.join(KINDS)}")
    chosen = Format(kind)
    for option in options:
        chosen = _with_option(chosen, option, text)
    return replace(chosen, units=chosen.units.native()) if "noconv" in options else chosen


def _with_option(chosen: Format, option: str, text: str) -> Format:
    name, equals, value = option.partition("=")
    if chosen.is_human and (option == "." or option.isdigit()):
        width = None if option == "." else int(option)
        return replace(chosen, widths=(*chosen.widths, width))
    if equals and name in CATEGORIES:
        return replace(chosen, units=chosen.units.with_unit(name, value))
    if name not in {known.partition("=")[0] for known in options_of(chosen.kind)}:
        listed = ", ".join(options_of(chosen.kind))
        raise UsageError(
            f"unknown option {option!r} in format {text!r}", hint=f"{chosen.kind}: {listed}"
        )
    if name == "autolines":
        return replace(chosen, measured=_number(option, value))
    if name == "colmax":
        return replace(chosen, limit=_number(option, value))
    changes: dict[str, dict[str, Any]] = {
        "title": {"title": value},
        "css": {"css": value},
        "nohdr": {"show_header": False},
        "nolimit": {"limit": None},
        "nofmt": {"separators": False},
        "esc": {"escape_tabs": True},
        "noconv": {},  # whatever units are named beside it
        "nohdrunit": {"units": replace(chosen.units, told=False)},
    }
    return replace(chosen, **changes[name])


def _number(option: str, value: str) -> int | None:
    """A number of which 0 stands for any."""
    if not value.isdecimal():
        raise UsageError(f"not a whole number: {option!r}", hint="write it as colmax=40; 0 for any")
    return int(value) or None


def options_of(kind: str) -> tuple[str, ...]:
    """A format's options, for help."""
    return (*KINDS[kind].options, *_UNITS)
