"""Formats of a printed table and their options, as ``--format column:nohdr:nolimit`` names them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from nsys_tui.errors import UsageError


class Kind(NamedTuple):
    """One format: what it is, how files of it end, and its options."""

    text: str
    extension: str
    options: tuple[str, ...] = ()


_HUMAN: Final = ("nohdr", "nolimit", "nofmt")
KINDS: Final = {
    "column": Kind("aligned columns under a ruled header", "txt", _HUMAN),
    "table": Kind("the same in a box", "txt", _HUMAN),
    "csv": Kind("comma-separated values", "csv", ("nohdr",)),
    "tsv": Kind("tab-separated values", "tsv", ("nohdr", "esc")),
    "json": Kind("an array of row objects", "json"),
    "markdown": Kind("a GitHub-flavoured Markdown table", "md"),
    "html": Kind("a whole HTML page", "html", ("title", "css")),
    "hdoc": Kind("the same as html", "html", ("title", "css")),
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
    return chosen


def _with_option(chosen: Format, option: str, text: str) -> Format:
    name, _, value = option.partition("=")
    known = KINDS[chosen.kind].options
    if chosen.is_human and (option == "." or option.isdigit()):
        width = None if option == "." else int(option)
        return replace(chosen, widths=(*chosen.widths, width))
    if name not in known:
        listed = ", ".join(known) or "none"
        raise UsageError(
            f"unknown option {option!r} in format {text!r}", hint=f"{chosen.kind}: {listed}"
        )
    changes: dict[str, dict[str, Any]] = {
        "title": {"title": value},
        "css": {"css": value},
        "nohdr": {"show_header": False},
        "nolimit": {"limit": None},
        "nofmt": {"separators": False},
        "esc": {"escape_tabs": True},
    }
    return replace(chosen, **changes[name])


def options_of(kind: str) -> tuple[str, ...]:
    """Names of a format's options, for help."""
    own = KINDS[kind].options
    return (*own, "<width>...") if own == _HUMAN else own
