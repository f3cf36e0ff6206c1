"""Text of a report as text of a page: visible, without secrets, cut to a length, escaped."""

from __future__ import annotations

from html import escape

from nsys_tui.names import visible
from nsys_tui.redaction import redacted


def plain_text(text: str, most: int = 300) -> str:
    """The same before it is escaped.

    Args:
        text: anything that stands in a report.
        most: characters at most.
    """
    # A secret is looked for in what is kept and a little more: names may be megabytes long.
    shown = redacted(visible(text[: most + 1000]))
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def text_of(text: str, most: int = 300) -> str:
    """Text for a page; see ``plain_text``."""
    return escape(plain_text(text, most), quote=True)
