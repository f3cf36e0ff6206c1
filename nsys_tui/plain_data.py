"""Dataclasses as values that JSON knows, and back, checked by their annotations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
_LARGEST: Final = 1 << 63


def plain(value: Any, *, rows: bool = False) -> Any:
    """A value as dictionaries, lists and what stands in them.

    Args:
        value: of a dataclass, or what such have for fields.
        rows: dataclasses as lists of their fields, where there are thousands.
    """
    if value is None or isinstance(value, (str, int, float)):
        return value
    kind: Any = type(value)
    if names := _field_names(kind):
        told = [plain(getattr(value, name), rows=rows) for name in names]
        return told if rows else dict(zip(names, told, strict=True))
    if isinstance(value, (list, tuple)):
        return [plain(each, rows=rows) for each in value]
    if isinstance(value, frozenset):
        return sorted(value)
    return {key: plain(each, rows=rows) for key, each in value.items()}


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    """Names of the fields of a dataclass, none of other types."""
    return tuple(item.name for item in fields(kind)) if is_dataclass(kind) else ()


def restored(kind: type[T], data: Any) -> T:
    """What ``plain`` took apart; what is missing has its default, what is unknown is passed over.

    Raises:
        TypeError, ValueError: the data are of something else.
    """
    return cast("T", _reader(cast("Any", kind))(data))


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """Reads values of a type, made once for each: some files hold a million."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        known = _reader(next(one for one in inner if one is not NoneType))
        return lambda data: None if data is None else known(data)
    if origin is tuple and Ellipsis not in inner:
        each = [_reader(one) for one in inner]
        return lambda data: tuple(read(one) for read, one in zip(each, data, strict=True))
    if origin in (tuple, frozenset):
        item = _reader(inner[0])
        return lambda data: origin(map(item, _listed(data)))
    if origin in (Mapping, dict):
        name, entry = map(_reader, inner)
        return lambda data: {name(key): entry(one) for key, one in dict(data).items()}
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return _record_reader(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    return _value_reader(kind)


def _record_reader(kind: Any) -> Callable[[Any], Any]:
    readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}

    def read(data: Any) -> Any:
        if isinstance(data, dict):
            known = readers.keys() & data.keys()
            return kind(**{name: readers[name](data[name]) for name in known})
        pairs = zip(readers.values(), _listed(data), strict=True)
        return kind(*[reads(value) for reads, value in pairs])

    return read


def _value_reader(kind: Any) -> Callable[[Any], Any]:
    wanted: Any = {Any: object, float: (int, float)}.get(kind, kind)
    is_number = kind in (int, float)

    def read(data: Any) -> Any:
        if not isinstance(data, wanted) or (is_number and type(data) is bool):
            raise ValueError(f"not of type {kind}: {data!r:.60}")
        if type(data) is int and not -_LARGEST < data < _LARGEST:
            raise ValueError(f"out of range: {data:.3g}")
        return float(data) if kind is float else data

    return read


def _listed(data: Any) -> list[Any] | tuple[Any, ...]:
    if not isinstance(data, list | tuple):
        raise TypeError(f"no list: {data!r:.60}")
    return data
