"""How verbs print what they found: tables for people or files, or one JSON document."""

from __future__ import annotations

import sys
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.commands.destinations import room, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsys_tui.model.table import Document, Table

DATA_FORMATS: Final = ("json", "csv", "tsv")
"""Formats for programs: nothing is cut off, and csv and tsv hold one table."""


def print_tables(tables: Sequence[Table], fmt: str) -> None:
    """Prints tables one below the other to stdout; of csv and tsv only the first."""
    from nsys_tui.text.sections import sections

    write(sys.stdout, sections(tables, fmt, room(sys.stdout)))


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
