"""Formats of a printed table and their options, as ``--format column:nohdr:nolimit`` names them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from nsys_tui.errors import UsageError
from nsys_tui.text.print_units import CATEGORIES, Units


class Kind(NamedTuple):
    """One format: what it is, how files of it end, and its options."""

    text: str
    extension: str
    options: tuple[str, ...] = ()


_UNITS: Final = ("<kind>=<unit>", "noconv", "nohdrunit")
_HUMAN: Final = ("nohdr", "nolimit", "nofmt", "autolines=<lines>", "colmax=<cells>", "<width>...")
KINDS: Final = {
    "column": Kind("aligned columns under a ruled header", "txt", _HUMAN),
    "table": Kind("the same in a box", "txt", _HUMAN),
    "csv": Kind("comma-separated values", "csv", ("nohdr",)),
    "tsv": Kind("tab-separated values", "tsv", ("nohdr", "esc")),
    "json": Kind("an array of row objects", "json"),
    "markdown": Kind("a GitHub-flavoured Markdown table", "md"),
    "html": Kind("a whole HTML page", "html", ("title=<text>", "css=<URL>")),
    "hdoc": Kind("the same as html", "html", ("title=<text>", "css=<URL>")),
    "htable": Kind("an HTML table alone", "html"),
}


@dataclass(frozen=True)
class Format:
    """A format with its options."""

    kind: str
    """Key of ``KINDS``."""
    show_header: bool = True
    limit: int | None = 100
    """Cells after which text of human formats is cut; None for never."""
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
