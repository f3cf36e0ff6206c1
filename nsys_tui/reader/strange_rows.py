"""Rows that lack a number they must have, and values of another kind: left out, counted and told.

A default in their place would be a fact that nobody recorded: an event at time 0, on GPU -1.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.model.notes import Note

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from nsys_tui.reader.columns import RawColumns
    from nsys_tui.reader.sqlite import Database

KINDS: Final = {str: "text", bytes: "a blob", float: "a fraction", int: "a number"}
"""What stands where something else is expected, for sentences."""
_NOTHING: Final = "NULL"


def whole_rows(piece: RawColumns, required: Collection[str]) -> RawColumns:
    """The rows that have a number in every required column; the others are counted."""
    lacking = {name: null for name, null in piece.nulls.items() if name in required}
    if not lacking:
        return piece
    bad = dict(piece.bad)
    for name, null in lacking.items():
        kinds = bad.get(name, Counter())
        bad[name] = kinds + Counter({_NOTHING: np.count_nonzero(null) - kinds.total()})
    left_out = np.logical_or.reduce(list(lacking.values()))
    kept = ~left_out
    others = piece.nulls.keys() - lacking.keys()
    return replace(
        piece,
        values={name: values[kept] for name, values in piece.values.items()},
        nulls={name: piece.nulls[name][kept] for name in others},
        rowid=piece.rowid[kept],
        bad=bad,
        left_out=np.flatnonzero(left_out),
    )


def note_strange(
    db: Database, table: str, column: str, kinds: Mapping[str, int], then: str
) -> None:
    """Says how many values of a column are of other kinds, and what became of them."""
    for kind, count in kinds.items():
        rows = "row" if count == 1 else "rows"
        text = f"{count:,} {rows} with {kind} in `{column}` of {table}{then}"
        db.notes.add(Note(text, table, column))
