"""Dataclasses of arrays as flat arrays plus what JSON can hold, the form of column files; and back.

Fields are arrays, other such dataclasses, tuples of those, or what ``plain_data`` knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np

from nsys_tui.model.arrays import Array
from nsys_tui.plain_data import plain, restored

T = TypeVar("T")


def pack(value: Any, prefix: str = "") -> tuple[dict[str, Array], dict[str, Any]]:
    """Arrays by name, and the rest as JSON values."""
    arrays: dict[str, Array] = {}
    rest: dict[str, Any] = {}
    for name, (_, inner) in _hints(cast("Any", type(value))).items():
        part = getattr(value, name)
        if isinstance(part, np.ndarray):
            arrays[prefix + name] = part
        elif inner is None:
            rest[name] = plain(part, rows=True)
        else:
            parts = part if isinstance(part, tuple) else (part,)
            packed = [pack(each, f"{prefix}{name}.{n}.") for n, each in enumerate(parts)]
            rest[name] = [own for _, own in packed]
            for own, _ in packed:
                arrays |= own
    return arrays, rest


def unpack(
    kind: type[T], arrays: Mapping[str, Any], rest: Mapping[str, Any], prefix: str = ""
) -> T:
    """What ``pack`` took apart.

    Raises:
        KeyError, TypeError, ValueError: it was something else.
    """
    values: dict[str, Any] = {}
    for name, (hint, inner) in _hints(cast("Any", kind)).items():
        if prefix + name in arrays:
            values[name] = arrays[prefix + name]
        elif inner is None:
            values[name] = restored(hint, rest[name])
        else:
            parts = tuple(
                unpack(inner, arrays, part, f"{prefix}{name}.{n}.")
                for n, part in enumerate(rest[name])
            )
            values[name] = parts if get_origin(hint) is tuple else parts[0]
    return kind(**values)


@cache
def _hints(kind: Any) -> dict[str, tuple[Any, Any]]:
    """Of each field its type, and the dataclass of arrays that it holds; None for none."""
    hints = get_type_hints(kind)
    return {item.name: (hints[item.name], _packed(hints[item.name])) for item in fields(kind)}


def _packed(hint: Any) -> Any:
    inner = get_args(hint)[0] if get_origin(hint) is tuple else hint
    if not is_dataclass(inner):
        return None
    arrays = (get_origin(each) is np.ndarray for each in get_type_hints(inner).values())
    return inner if any(arrays) else None
