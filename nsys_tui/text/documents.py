r"""Results as JSON, and the schema of that JSON, both made from the declared columns.

Every document carries ``schema`` (name and version) and ``notes``. Times are whole ns, shares lie
between 0 and 1 unless they are changes, what is not known is null. Names are escaped as ``\u``.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import numpy as np

from nsys_tui.config_values import OptionValue
from nsys_tui.model.table import OPEN, UNNAMED, Column, Document, Form, Table, Unit, plain

_ANY: Final = {"type": ["string", "number", "boolean", "object", "array", "null"]}
_BY_ENDING: Final = {
    "patternProperties": {"_(ns|bytes|share|bytes_per_s)$": {"type": ["number", "null"]}},
    "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
}
"""Columns that only a result knows: their keys tell the unit."""
_TYPES: Final = {Unit.TEXT: "string", Unit.FLAG: "boolean"}


def document_text(
    document: Document,
    answer: Any,
    shared: Any = None,
    notes: Iterable[object] = (),
    only: Sequence[str] | None = None,
) -> Iterator[str]:
    """The JSON text of a result piece by piece: one row of a table a line.

    Args:
        document: what the verb gives.
        answer: what its columns read.
        shared: what they all may need, such as the report.
        notes: what cannot be believed, is left out or is an estimate; asked for last, since notes
            of a report grow while it is read.
        only: keys to write; None for all.
    """
    yield "{\n" + f'"schema": {json.dumps(_identity(document))}'
    for column in document.columns:
        if column.name and (only is None or column.name in only):
            value = column.of(answer, shared)
            if value is not None or not column.optional:
                yield f",\n{json.dumps(column.name)}: "
                yield from _pieces(column, value, shared)
    yield f',\n"notes": {json.dumps(list(dict.fromkeys(map(str, notes))))}\n' + "}\n"


def _pieces(column: Column, value: Any, shared: Any) -> Iterator[str]:
    if column.form is not Form.LIST or not column.inner or value is None:
        yield json.dumps(encoded(column, value, shared), allow_nan=False)
        return
    opening = "[\n"
    for row in _rows(column, value, shared):
        yield opening + "  " + json.dumps(row, allow_nan=False)
        opening = ",\n"
    yield "[]" if opening == "[\n" else "\n]"


def encoded(column: Column, value: Any, shared: Any = None) -> Any:
    """The value of one cell as JSON values."""
    if value is None:
        return None
    if column.form is Form.MAP:
        return {str(name): _one(column, each, shared) for name, each in value.items()}
    if column.form is Form.LIST:
        return list(_rows(column, value, shared))
    return _one(column, value, shared)


def _rows(column: Column, values: Any, shared: Any) -> Iterator[Any]:
    if isinstance(values, Table):
        return table_rows(values)
    if column.unit is Unit.TEXT and not column.inner:
        # Millions of frames in stacks: a call for each takes most of the time.
        return (value if type(value) is str else scalar(column, value) for value in values)
    return (_one(column, value, shared) for value in values)


def _one(column: Column, value: Any, shared: Any) -> Any:
    return record_of(column.inner, value, shared) if column.inner else scalar(column, value)


def record_of(columns: Iterable[Column], row: Any, shared: Any = None) -> dict[str, Any] | None:
    """One row as a JSON object; a mapping is read by key."""
    if row is None:
        return None
    record = {}
    for column in columns:
        if not column.key:
            continue
        known = column.read is None and isinstance(row, Mapping)
        value = row.get(column.key) if known else column.of(row, shared)
        if value is not None or not column.optional:
            record[column.key] = encoded(column, value, shared)
    return record


def table_rows(table: Table) -> Iterator[dict[str, Any]]:
    """The rows of a table as JSON objects by the keys of its columns."""
    pairs = table.keyed()
    keys = [column.name for column, _ in pairs]
    cells = ([encoded(column, value) for value in plain(values)] for column, values in pairs)
    return (dict(zip(keys, row, strict=True)) for row in zip(*cells, strict=True))


def scalar(column: Column, value: Any) -> Any:
    """One plain value: text, a whole number, a real one, or None where there is none."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if column.unit is Unit.TEXT:
        return str(value)
    if column.is_whole:
        return round(value)
    if isinstance(value, float | Fraction) and value == int(value):
        value = int(value)
    if isinstance(value, Fraction):
        value = float(value)
    return value / 100 if column.unit is Unit.PERCENT else value


def _identity(document: Document) -> dict[str, Any]:
    return {"name": f"nsys-tui/{document.name}", "version": document.version}


def json_schema(document: Document) -> dict[str, Any]:
    """The JSON Schema of a document."""
    identity = {key: {"const": value} for key, value in _identity(document).items()}
    texts = {"type": "array", "items": {"type": "string"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"nsys-tui {document.name}, version {document.version}",
        "type": "object",
        "properties": {
            "schema": {"type": "object", "properties": identity, "required": list(identity)},
            **_properties(document.columns),
            "notes": texts,
            "no_data": {"type": "string", "description": "why there is nothing of all this"},
            "hint": {"type": ["string", "null"]},
        },
        "anyOf": [{"required": ["schema", "notes"]}, {"required": ["no_data"]}],
        "additionalProperties": False,
    }


ROWS: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "rows by their printed headers; an object of them by report where there are several",
    "$defs": {
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
            },
        }
    },
    "anyOf": [
        {"$ref": "#/$defs/rows"},
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/rows"}},
        {"type": "object", "required": ["no_data"]},
    ],
}
"""What ``stats``, ``export`` and ``sql`` print as JSON, whatever the report."""


def list_schema(title: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a list of objects."""
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "title": title, "type": "array", "items": item}


def row_schema(columns: Sequence[Column]) -> dict[str, Any]:
    """The JSON Schema of one row of a table with these columns."""
    known = [c for c in columns if c not in OPEN]
    return {
        "type": "object",
        "properties": _properties(known),
        "required": [c.name for c in known if c.key and not c.optional],
        **({"additionalProperties": False} if len(known) == len(columns) else _BY_ENDING),
    }


def _properties(columns: Iterable[Column]) -> dict[str, Any]:
    return {column.name: _schema_of(column) for column in columns if column.key}


def _schema_of(column: Column) -> dict[str, Any]:
    one: dict[str, Any]
    if column.inner:
        one = row_schema(column.inner) | {"type": ["object", "null"]}
    else:
        kind = "integer" if column.is_whole else _TYPES.get(column.unit, "number")
        one = {"type": [kind, "null"]} if column.unit is not Unit.ANY else dict(_ANY)
        described = column.header or ("" if column.unit in UNNAMED else column.unit.value)
        one |= {"description": described} if described else {}
    if column.form is Form.LIST:
        return {"type": ["array", "null"], "items": one}
    if column.form is Form.MAP:
        return {"type": ["object", "null"], "additionalProperties": one}
    return one


_PLAIN: Final = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}

_NAMES: Final = {"Mapping": Mapping, "OptionValue": OptionValue, "Target": Any}
"""What modules import for their annotations alone."""


def object_schema(kind: type, **given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The schema of a dataclass as ``asdict`` gives it to JSON: all keys, and no others.

    Args:
        kind: the dataclass.
        given: schemas of keys that are not as their field is; None for a field that is left out.
    """
    hints = get_type_hints(kind, localns=_NAMES)
    fields = {item.name: _schema(hints[item.name]) for item in dataclasses.fields(kind)}
    properties = {key: schema for key, schema in {**fields, **given}.items() if schema is not None}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _schema(hint: Any) -> dict[str, Any]:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(each) for each in inner]}
    if origin is tuple:
        return {"type": "array", "items": _schema(inner[0])}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _schema(inner[1])}
    if dataclasses.is_dataclass(hint):
        return object_schema(hint)  # type: ignore[arg-type]
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"enum": [each.value for each in hint]}
    return {"type": _PLAIN[hint]} if hint in _PLAIN else {}
