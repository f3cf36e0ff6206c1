"""How verbs print what they found: tables for people or files, or one JSON document."""

from __future__ import annotations

import sys
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.commands.destinations import in_colour, room, speaks_unicode, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsys_tui.model.table import Document, Table

DATA_FORMATS: Final = ("json", "csv", "tsv")
"""Formats for programs: nothing is cut off, and csv and tsv hold one table."""

BARRED: Final = 100
"""Cells of a terminal's line from which there is room for bars beside figures."""


def print_tables(tables: Sequence[Table], fmt: str) -> None:
    """Prints tables one below the other to stdout; of csv and tsv only the first."""
    from nsys_tui.text.sections import sections

    cells = room(sys.stdout)
    if fmt != "table" or not in_colour(sys.stdout):
        write(sys.stdout, sections(tables, fmt, cells))
        return
    bars = cells is not None and cells >= BARRED and speaks_unicode(sys.stdout)
    print_painted(sections(tables, fmt, cells, bars=bars))


def print_painted(pieces: Iterable[str]) -> None:
    """Prints tables for people to stdout, in colour where that is a terminal that knows colours."""
    if in_colour(sys.stdout):
        from nsys_tui.text.paint import painted

        pieces = painted(pieces)
    write(sys.stdout, pieces)


def print_document(
    document: Document,
    answer: Any,
    shared: Any = None,
    *notes: Iterable[object],
    only: Sequence[str] | None = None,
) -> None:
    """Prints a result as JSON; see ``documents.document_text``."""
    from nsys_tui.text.documents import document_text

    write(sys.stdout, document_text(document, answer, shared, chain(*notes), only))
