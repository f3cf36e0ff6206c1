"""GPU work that a program asked for and of which its report holds nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nsys_tui.model.capabilities import Capability
from nsys_tui.model.notes import Note
from nsys_tui.reader.sqlite import Database, quoted

_CALLS: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
_WORK: Final = {
    Capability.KERNELS: ("CUPTI_ACTIVITY_KIND_KERNEL", "LaunchKernel"),
    Capability.COPIES: ("CUPTI_ACTIVITY_KIND_MEMCPY", "Memcpy"),
    Capability.MEMSETS: ("CUPTI_ACTIVITY_KIND_MEMSET", "Memset"),
    Capability.GRAPHS: ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "GraphLaunch"),
}
"""Where GPU work stands, and how calls that ask for it go on after ``cu`` or ``cuda``."""


def unrecorded_work(db: Database) -> Iterator[Note]:
    """What kinds of GPU work have no row at all, though calls for them returned success."""
    for what, (table, name) in _WORK.items():
        if what in db.schema.doubts or db.has_rows(table):
            continue
        call = _called(db, name)
        if call and what is Capability.GRAPHS:
            call *= not any(_ran_in_graphs(db, each) for each, _ in _WORK.values())
        if call:
            text = f"{table} is missing, though {call} was called: {what} are left out"
            yield Note(text, table)


def _called(db: Database, name: str) -> str:
    """The name of a successful call whose name goes on so, empty for none."""
    calls = db.schema.names(_CALLS, ("nameId", "returnValue"))
    strings = db.schema.names("StringIds", ("id", "value"))
    if len(calls) + len(strings) < 4:
        return ""
    value = f"s.{quoted(strings['value'])}"
    found = db.query(
        f"SELECT {value} FROM StringIds s WHERE ({value} GLOB ? OR {value} GLOB ?) AND EXISTS ("
        f"SELECT 1 FROM {_CALLS} c WHERE c.{quoted(calls['nameId'])} = s.{quoted(strings['id'])}"
        f" AND c.{quoted(calls['returnValue'])} = 0) LIMIT 1",
        (f"cu{name}*", f"cuda{name}*"),
    )
    return str(found[0][0]).partition("_")[0] if found else ""


def _ran_in_graphs(db: Database, table: str) -> bool:
    node = db.schema.names(table, ("graphNodeId",)).get("graphNodeId")
    asked = f"SELECT 1 FROM {table} WHERE {quoted(node or '')} > 0 LIMIT 1"
    return node is not None and bool(db.query(asked))
