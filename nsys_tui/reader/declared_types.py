"""Values of a column as the schema declares them: SQLite holds any type in any column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def as_declared(kind: str, values: Sequence[Any]) -> Sequence[Any]:
    """The values as their column's type (``schema.Column.type``); None for those of another."""
    convert = _CONVERTERS[kind]
    if convert is None or set(map(type, values)) <= _PLAIN[kind]:
        return values
    return [convert(value) for value in values]


def decoded(text: bytes) -> str:
    """Decodes text of any quality: real reports hold Latin-1 user names, for instance."""
    return text.decode("utf-8", "replace")


def _whole(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    return value if isinstance(value, int) else None


def _number(value: object) -> int | float | None:
    return value if isinstance(value, (int, float)) else None


def _text(value: object) -> str | None:
    if isinstance(value, bytes):
        return decoded(value)
    return None if value is None else str(value)


_EXACT: Final = 2.0**53
_CONVERTERS: Final[Mapping[str, Callable[[object], Any] | None]] = {
    "i": _whole, "s": _whole, "p": _whole, "r": _number, "t": _text, "b": None,
}  # fmt: skip
_NOTHING: Final = frozenset({type(None)})
_PLAIN: Final[Mapping[str, frozenset[type]]] = {
    "i": _NOTHING | {int}, "s": _NOTHING | {int}, "p": _NOTHING | {int},
    "r": _NOTHING | {int, float}, "t": _NOTHING | {str},
}  # fmt: skip
"""Types of values that need no conversion, by type of the schema."""
