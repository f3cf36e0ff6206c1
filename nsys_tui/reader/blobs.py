"""Binary NVTX payloads (``nsys export --include-blobs``) as the JSON that a JSON export would hold.

A blob is taken for the plain struct that the report's own payload schemas describe. No row says
which schema is its own, so only blobs are read whose length is that of schemas with the fields
sought, and of those fields only what all such schemas put in the same place.
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from nsys_tui.reader.sqlite import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_tui.reader.sqlite import Database

_TABLE: Final = "NVTX_EVENTS"
_SCHEMAS: Final = "NVTX_PAYLOAD_SCHEMAS"
_ENTRIES: Final = "NVTX_PAYLOAD_SCHEMA_ENTRIES"
_FORMATS: Final = {5: "<i", 18: "<Q", 22: "<Q"}
"""NVTX basic types seen in NCCL's schemas: int32, uint64, size_t."""
_SOUGHT: Final = ("Message size [bytes]", "Bytes", "No. of ranks")


class _Field(NamedTuple):
    name: str
    offset: int
    format: str


Layouts = dict[tuple[int, int], dict[str, list[frozenset[_Field]]]]
"""(domain, bytes of the struct) -> sought field -> fields of each schema that has it."""


def read_blobs(db: Database) -> Iterator[tuple[int, str]]:
    """(rowid, JSON text) of the rows whose blob the report's schemas explain."""
    columns = db.tables.get(_TABLE, ())
    rowid = db.rowid_name(_TABLE) if "binaryData" in columns else None
    layouts = _layouts(db) if rowid else {}
    if not layouts:
        return
    name = '"text"' if "text" in columns else "NULL"
    if "textId" in columns and "StringIds" in db.tables:
        registered = f'SELECT value FROM StringIds s WHERE s.id = {quoted(_TABLE)}."textId"'
        name = f"coalesce({name}, ({registered}))"
    sql = (
        f'SELECT {rowid}, {name}, "domainId", "binaryData" FROM {quoted(_TABLE)}'
        ' WHERE "binaryData" IS NOT NULL'
    )
    for rows in db.stream(sql):
        for row, text, domain, blob in rows:
            if isinstance(blob, bytes):
                layout = layouts.get((domain, len(blob)), {})
                if values := _values(str(text or ""), layout, blob):
                    yield row, json.dumps(values)


def _layouts(db: Database) -> Layouts:
    fields: dict[tuple[int, int], set[_Field]] = defaultdict(set)
    entries = db.select(_ENTRIES, ("domainId", "schemaId", "name", "type", "offset"))
    for domain, schema, name, kind, offset in entries:
        if kind in _FORMATS and isinstance(name, str):
            fields[domain, schema].add(_Field(name, offset or 0, _FORMATS[kind]))
    found: Layouts = defaultdict(lambda: defaultdict(list))
    for domain, schema, size in db.select(_SCHEMAS, ("domainId", "schemaId", "payloadSize")):
        mine = frozenset(fields[domain, schema])
        for name in {one.name for one in mine} & set(_SOUGHT):
            found[domain, size][name].append(mine)
    return found


def _values(text: str, layout: dict[str, list[frozenset[_Field]]], blob: bytes) -> dict[str, int]:
    wanted = _SOUGHT[2:] if "Comm" in text else _SOUGHT[:2]
    schemas = [fields for name in wanted for fields in layout.get(name, ())]
    if not schemas:
        return {}
    shared = frozenset.intersection(*schemas)
    if not {one.name for one in shared} & set(wanted):
        return {}
    values = {}
    for one in shared:
        if one.offset + struct.calcsize(one.format) <= len(blob):
            values[one.name] = int(struct.unpack_from(one.format, blob, one.offset)[0])
    return values
