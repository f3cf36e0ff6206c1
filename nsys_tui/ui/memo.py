"""Memo: results that screens share, the least recently used given up when they take much memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeVar

import numpy as np

from nsys_tui.model.events import EventSet
from nsys_tui.model.report import Report

T = TypeVar("T")

NEAR: Final = 0.5
"""Part of the limit up to which values are not counted anew."""
LIMIT: Final = 120_000_000
"""Bytes of arrays that are kept: at 5 M kernels one result takes 20 to 75 MB."""


class Memo:
    """Values computed once, each by the first thread that asks; the others wait for it.

    Args:
        limit: bytes of arrays that values other than lasting ones may hold together; the latest
            that has any stays in any case.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._values: dict[Hashable, Any] = {}
        self._lasting: dict[Hashable, Any] = {}
        self._bytes: dict[Hashable, int] = {}
        """Of each value alone, when it was made."""
        self._locks: dict[Hashable, threading.RLock] = {}
        self._guard = threading.Lock()
        self._counting = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T], *, lasting: bool = False) -> T:
        """The value of a key, made if it is not there any more or never was.

        Args:
            key: what the value is of.
            make: makes it; may ask for other keys.
            lasting: never given up, for what a screen holds as long as the report is open.
        """
        value: T
        with self._guard:
            lock = self._locks.setdefault(key, threading.RLock())
        with lock:
            with self._guard:
                if key in self._lasting:
                    value = self._lasting[key]
                    return value
                if key in self._values:
                    value = self._values[key] = self._values.pop(key)
                    return value
            value = make()
            with self._guard:
                (self._lasting if lasting else self._values)[key] = value
            if not lasting:
                self._bytes[key] = array_bytes(value, set())
                self._give_up()
            return value

    def known(self, key: Hashable) -> Any:
        """The value of a key where it is there, without waiting; else None."""
        with self._guard:
            return self._lasting.get(key, self._values.get(key))

    def _give_up(self) -> None:
        """Gives up what was used least recently, once all values together may be too much.

        Values share arrays and grow as they are used. Telling how much takes a look at every
        object of every value, so that is left until the bytes of each alone come near the limit.
        """
        with self._counting:
            with self._guard:
                kept, lasting = [*self._values.items()], [*self._lasting.values()]
            if sum(self._bytes.get(key, 0) for key, _ in kept) <= self._limit * NEAR:
                return
            counted: set[int] = set()
            array_bytes(lasting, counted)
            total = 0
            for key, value in reversed(kept):
                more = array_bytes(value, counted)
                total += more
                if more and total > max(more, self._limit):
                    with self._guard:
                        self._values.pop(key, None)


def array_bytes(value: object, counted: set[int]) -> int:
    """Bytes of the arrays within a value; reports, their events and mapped files cost nothing.

    Args:
        value: anything made of dataclasses, other objects, containers and arrays.
        counted: ids of objects that were counted before; grows.
    """
    total, left = 0, [value]
    while left:
        item = left.pop()
        if id(item) in counted:
            continue
        counted.add(id(item))
        if isinstance(item, np.ndarray):
            total += item.nbytes if item.flags.owndata else 0
        left += _within(item)
    return total


def _within(value: Any) -> Iterable[Any]:
    """What a value is made of."""
    if isinstance(value, np.ndarray):
        return () if value.base is None else (value.base,)
    if isinstance(value, str | bytes | int | float | type | Report | EventSet):
        return ()
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset):
        return value
    values = vars(value).values() if hasattr(value, "__dict__") else ()
    if is_dataclass(value) and not values:
        return [getattr(value, field.name) for field in fields(value)]
    return values
