"""How a value written in TOML, the environment or a flag becomes a setting.

Each parser takes what the file or the user gave and returns the setting, or raises ``ValueError``
with what was expected; :mod:`nsys_tui.config` adds the file and the key. No setting is named here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from nsys_tui.errors import UsageError
from nsys_tui.units import parse_duration, parse_percent

OptionValue = str | tuple[str, ...]
"""Value of an nsys option: one word, or a list that nsys wants joined by commas."""


def option_text(value: OptionValue) -> str:
    """The value of an nsys option as one word."""
    return value if isinstance(value, str) else ",".join(value)


_SIZE_UNITS: Final = {
    "": 1,
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
_YES: Final = ("1", "true", "yes")
_NO: Final = ("0", "false", "no")


def text(value: object) -> str:
    """A text; NUL is refused because it cannot be passed to any program."""
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("a text in quotes")
    return value


def flag(value: object) -> bool:
    """A boolean, also as the words that an environment variable can hold."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _YES + _NO:
        return value.lower() in _YES
    raise ValueError("true or false")


def auto_flag(value: object) -> bool | None:
    """A boolean, or ``"auto"`` as ``None``."""
    return None if value == "auto" else flag(value)


def words(value: object) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list | tuple):
        raise ValueError('a list of texts, such as ["python", "train.py"]')
    return tuple(text(word) for word in value)


def table(item: Callable[[object], Any]) -> Callable[[object], Mapping[str, Any]]:
    """A table whose values are parsed by ``item``."""

    def parse(value: object) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise ValueError('a table, such as { NAME = "value" }')
        return MappingProxyType({str(key): item(entry) for key, entry in value.items()})

    return parse


def key_list(value: object) -> tuple[str, ...]:
    """One key or a list of keys."""
    return (text(value),) if isinstance(value, str) else words(value)


def option(value: object) -> OptionValue:
    """The value of an nsys option, whatever TOML type it was written in."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    return words(value) if isinstance(value, list | tuple) else text(value)


def duration(value: object) -> int:
    """A time in nanoseconds; a bare number is seconds."""
    try:
        return parse_duration(str(value), "s")
    except UsageError as error:
        raise ValueError("a time, such as 120s or 2min") from error


def count(value: object) -> int:
    """A whole number from 1 on."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise ValueError("a whole number from 1 on")


def share(value: object) -> float:
    """A part of a whole, 0 to 1: a number in that range, or a percentage as text."""
    try:
        part = parse_percent(value) if isinstance(value, str) else float(str(value))
    except (UsageError, ValueError):
        part = -1.0
    if isinstance(value, bool) or not 0 <= part <= 1:
        raise ValueError('a percentage, such as "25%"')
    return part


def size(value: object) -> int:
    """A size in bytes, with decimal prefixes."""
    written = str(value).strip()
    digits = written.rstrip("kKMGTB ")
    try:
        return int(float(digits) * _SIZE_UNITS[written[len(digits) :].strip()])
    except (ValueError, KeyError, OverflowError) as error:
        raise ValueError("a size, such as 500MB or 10GB") from error


def one_of(*choices: str) -> Callable[[object], str]:
    """One of the words given."""

    def parse(value: object) -> str:
        if value not in choices:
            raise ValueError("one of " + ", ".join(choices))
        return str(value)

    return parse
