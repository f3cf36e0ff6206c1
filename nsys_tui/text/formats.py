"""Formats of a printed table and their options, as ``--format column:nohdr:nolimit`` names them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from nsys_tui.errors import UsageError

FORMATS: Final = {
    "column": "aligned columns under a ruled header",
    "table": "the same in a box",
    "csv": "comma-separated values",
    "tsv": "tab-separated values",
    "json": "an array of row objects",
    "markdown": "a GitHub-flavoured Markdown table",
    "html": "a whole HTML page",
    "hdoc": "the same as html",
    "htable": "an HTML table alone",
}
EXTENSIONS: Final = {
    "column": "txt",
    "table": "txt",
    "csv": "csv",
    "tsv": "tsv",
    "json": "json",
    "markdown": "md",
    "html": "html",
    "hdoc": "html",
    "htable": "html",
}
_OPTIONS: Final = {
    "column": ("nohdr", "nolimit", "nofmt"),
    "table": ("nohdr", "nolimit", "nofmt"),
    "csv": ("nohdr",),
    "tsv": ("nohdr", "esc"),
    "html": ("title", "css"),
    "hdoc": ("title", "css"),
}


@dataclass(frozen=True)
class Format:
    """A format with its options."""

    kind: str
    """Key of ``FORMATS``."""
    show_header: bool = True
    limit: int | None = 100
    """Cells after which text of human formats is cut; None for never."""
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
        return EXTENSIONS[self.kind]

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
    if kind not in FORMATS:
        raise UsageError(f"unknown format: {kind!r}", hint=f"one of {', '.join(FORMATS)}")
    chosen = Format(kind)
    for option in options:
        chosen = _with_option(chosen, option, text)
    return chosen


def _with_option(chosen: Format, option: str, text: str) -> Format:
    name, _, value = option.partition("=")
    known = _OPTIONS.get(chosen.kind, ())
    if chosen.is_human and (option == "." or option.isdigit()):
        width = None if option == "." else int(option)
        return replace(chosen, widths=(*chosen.widths, width))
    if name not in known:
        listed = ", ".join(known) or "none"
        raise UsageError(
            f"unknown option {option!r} in format {text!r}", hint=f"{chosen.kind}: {listed}"
        )
    if name in ("title", "css"):
        return replace(chosen, title=value) if name == "title" else replace(chosen, css=value)
    if name == "nohdr":
        return replace(chosen, show_header=False)
    if name == "nolimit":
        return replace(chosen, limit=None)
    return (
        replace(chosen, separators=False) if name == "nofmt" else replace(chosen, escape_tabs=True)
    )


def options_of(kind: str) -> tuple[str, ...]:
    """Names of a format's options, for help."""
    widths = ("<width>...",) if kind in ("column", "table") else ()
    return _OPTIONS.get(kind, ()) + widths
