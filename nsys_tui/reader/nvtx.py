"""NVTX: ranges and marks with their names, domains, threads and payloads.

A binary payload (``nsys export --include-blobs``) becomes what a JSON export would hold. It is
taken for the plain struct that the report's own payload schemas describe. No row says which schema
is its own, so only blobs are read whose length is that of schemas with the fields sought, and of
those fields only what all such schemas put in the same place.
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from nsys_tui.model.arrays import Array, Indices, Int32, Int64
from nsys_tui.model.events import Domain, Marks, Payloads, Ranges
from nsys_tui.model.progress import Progress
from nsys_tui.model.target import PROCESS_MASK
from nsys_tui.reader.encode import (
    Strings,
    codes,
    column,
    combine,
    ends,
    in_start_order,
    instants,
    is_null,
    note_unknown,
    read_columns,
    read_text_column,
)
from nsys_tui.reader.sqlite import Database, quoted

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
        name = f"coalesce(({registered}), {name})"
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
    layouts: Layouts = defaultdict(lambda: defaultdict(list))
    for domain, schema, size in db.select(_SCHEMAS, ("domainId", "schemaId", "payloadSize")):
        mine = frozenset(fields[domain, schema])
        for name in {one.name for one in mine} & set(_SOUGHT):
            layouts[domain, size][name].append(mine)
    return layouts


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


_RANGES: Final = (59, 60, 70, 71)
_MARKS: Final = (34, 65)
_DOMAIN_CREATED: Final = 75
_KNOWN_TYPES: Final = (*range(33, 40), *range(59, 77), 97, 98, 99)
"""Ranges, marks, and what names threads, domains, categories and CUDA objects."""
_COLUMNS: Final = (
    "start",
    "end",
    "eventType",
    "category",
    "color",
    "globalTid",
    "endGlobalTid",
    "textId",
    "domainId",
)
_OPAQUE: Final = 0xFF000000


class NvtxTable:
    """NVTX_EVENTS decoded once for ranges and marks."""

    def __init__(self, db: Database, strings: Strings, progress: Progress | None) -> None:
        raw = read_columns(db, _TABLE, _COLUMNS, progress)
        text_codes, texts = read_text_column(db, _TABLE, "text")
        text_codes = np.delete(text_codes, raw.left_out)
        self._raw = raw
        self._types = column(raw, "eventType", 0)
        # As nsys has it: a range is called by its registered string, a domain by its text.
        called_by_text = (self._types == _DOMAIN_CREATED) & (text_codes >= 0)
        ids = np.where(called_by_text, -1, column(raw, "textId"))
        self._names, self._name = strings.merge(ids, texts, text_codes)
        note_unknown(db, _TABLE, "eventType", self._types, _KNOWN_TYPES, " left out")
        self._threads, self._thread = codes(column(raw, "globalTid"))
        self._domains, self._domain = self._read_domains()

    def _read_domains(self) -> tuple[tuple[Domain, ...], Int32]:
        """One domain per (process, number); its name is the creation row of the same process."""
        process = np.where(self._threads == -1, -1, self._threads & PROCESS_MASK)
        number = np.maximum(column(self._raw, "domainId", 0), 0)
        (owners, numbers), code = combine([process[self._thread], number])
        created = np.flatnonzero(self._types == _DOMAIN_CREATED)
        names = {
            (int(process[self._thread[row]]), int(number[row])): self._names[self._name[row]]
            for row in created
        }
        domains = tuple(
            Domain(p, n, names.get((p, n), f"domain {n}") if n else "")
            for p, n in zip(owners.tolist(), numbers.tolist(), strict=True)
        )
        return domains, code

    def _shared(self, rows: Indices, end: Int64) -> dict[str, Array]:
        color = column(self._raw, "color", 0)[rows]
        return {
            "start": instants(self._raw, "start")[rows],
            "end": end,
            "rowid": self._raw.rowid[rows],
            "thread": self._thread[rows],
            "name": self._name[rows],
            "domain": self._domain[rows],
            "color": np.where(color & _OPAQUE == 0, -1, color & 0xFFFFFFFF),
        }

    def ranges(self) -> Ranges:
        """Push/pop and start/end ranges; an open one ends at its start: Report knows the extent."""
        raw = self._raw
        rows = np.flatnonzero(np.isin(self._types, _RANGES))
        is_open = is_null(raw, "end")[rows]
        other = column(raw, "endGlobalTid")[rows]
        arrays = in_start_order(
            self._shared(rows, ends(raw)[rows])
            | {
                "style": self._types[rows].astype(np.uint8),
                "end_thread": np.where(other == self._threads[self._thread[rows]], -1, other),
                "open": is_open,
                "nvtx_category": column(raw, "category", 0)[rows],
            }
        )
        return Ranges(**arrays, names=self._names, threads=self._threads, domains=self._domains)

    def marks(self) -> Marks:
        """Points with a text."""
        rows = np.flatnonzero(np.isin(self._types, _MARKS))
        arrays = in_start_order(self._shared(rows, instants(self._raw, "start")[rows]))
        return Marks(**arrays, names=self._names, threads=self._threads, domains=self._domains)


def read_payloads(db: Database, strings: Strings) -> Payloads:
    """JSON payloads, inline (``jsonText``), as string ids (``jsonTextId``) or from blobs."""
    blobs = dict(read_blobs(db))
    if not blobs and not db.schema.names(_TABLE, ("jsonText", "jsonTextId")):
        return Payloads(np.empty(0, np.int64), np.empty(0, np.int32), ())
    raw = read_columns(db, _TABLE, ("jsonTextId",), None)
    ids = column(raw, "jsonTextId")
    text, texts = read_text_column(db, _TABLE, "jsonText")
    if not len(text):
        text = np.full(len(raw.rowid), -1, np.int32)
    if blobs:
        place = np.flatnonzero(np.isin(raw.rowid, list(blobs)) & (text < 0) & (ids == -1))
        decoded = dict.fromkeys(blobs[row] for row in raw.rowid[place].tolist())
        code_of = {value: code for code, value in enumerate(decoded, start=len(texts))}
        text = text.copy()
        text[place] = [code_of[blobs[row]] for row in raw.rowid[place].tolist()]
        texts = [*texts, *decoded]
    rows = np.flatnonzero((text >= 0) | (ids != -1))
    names, code = strings.merge(ids[rows], texts, text[rows])
    order = np.argsort(raw.rowid[rows], kind="stable")
    return Payloads(raw.rowid[rows][order], code[order], names)
