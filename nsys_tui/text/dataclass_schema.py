"""The JSON Schema of dataclasses that are printed as they are, from the types of their fields."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from nsys_tui.config_values import OptionValue

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
    own = {item.name: _schema(hints[item.name]) for item in dataclasses.fields(kind)}
    properties = {key: schema for key, schema in {**own, **given}.items() if schema is not None}
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
