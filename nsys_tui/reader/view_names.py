"""What the views' small temporary tables hold: names by number, of strings, threads and domains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsys_tui.model.categories import is_communication
from nsys_tui.model.target import PROCESS_MASK
from nsys_tui.names import api_name
from nsys_tui.reader.schema import STRINGS
from nsys_tui.reader.sqlite import quoted
from nsys_tui.reader.strings import Strings
from nsys_tui.reader.target import (
    Devices,
    read_process_names,
    read_ranks,
    read_thread_names,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsys_tui.reader.sqlite import Database

_DOMAIN_CREATED: Final = 75
"""eventType of NVTX rows that make a domain."""


def name_rows(table: str, db: Database, patterns: tuple[str, ...] = ()) -> Iterable[Sequence[Any]]:
    """Rows of one of ``views.TEMPORARY``.

    Args:
        table: which.
        db: the file.
        patterns: the user's own regular expressions for communication kernels.
    """
    if table in ("_strings", "_communication", "_calls"):
        strings = [row for row in db.select(STRINGS, ("id", "value")) if None not in row]
        if table == "_strings":
            return strings
        if table == "_calls":
            calls = ((number, text, api_name(text)) for number, text in strings)
            return [(number, name) for number, text, name in calls if name != text]
        return [(number,) for number, text in strings if is_communication((text,), patterns)]
    if table == "_threads":
        return read_thread_names(db, Strings(db)).items()
    if table == "_processes":
        names, ranks = read_process_names(db), read_ranks(db)
        return [(key, names.get(key), ranks.get(key)) for key in {*names, *ranks}]
    if table == "_devices":
        return Devices(db).numbers()
    return _domains(db)


def _domains(db: Database) -> Iterable[Sequence[Any]]:
    """(globalPid, number, name) of NVTX domains, from the rows that made them; the last counts."""
    names = db.schema.names("NVTX_EVENTS", ("eventType", "globalTid", "domainId", "text", "textId"))
    if not {"eventType", "globalTid", "domainId"} <= names.keys():
        return []
    terms = ", ".join(
        quoted(names[name]) if name in names else "NULL"
        for name in ("globalTid", "domainId", "text", "textId")
    )
    made = db.query(
        f"SELECT {terms} FROM NVTX_EVENTS WHERE {quoted(names['eventType'])} = ?",
        (_DOMAIN_CREATED,),
    )
    strings = Strings(db)
    return {
        (thread & PROCESS_MASK, number): (
            thread & PROCESS_MASK, number, strings.get(key) if text is None else text,
        )
        for thread, number, text, key in made
        if isinstance(thread, int) and isinstance(number, int)
    }.values()  # fmt: skip
