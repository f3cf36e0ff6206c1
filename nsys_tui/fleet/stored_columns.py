"""Stored: dataclasses of arrays, texts and numbers that go into a flat column file and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from nsys_tui.model.arrays import Array

Arrays: TypeAlias = dict[str, Array]


@dataclass(frozen=True, eq=False)
class Stored:
    """Base of what is kept of a report.

    Fields are arrays, what JSON can hold (tuples for lists), or one of ``PARTS``: another
    ``Stored``, or a tuple of them.
    """

    PARTS: ClassVar[Mapping[str, type[Stored]]] = {}

    def pack(self, prefix: str = "") -> tuple[Arrays, dict[str, Any]]:
        """Arrays by name, and the rest as JSON values."""
        arrays: Arrays = {}
        meta: dict[str, Any] = {}
        for item in fields(self):
            value, name = getattr(self, item.name), prefix + item.name
            if isinstance(value, np.ndarray):
                arrays[name] = value
            elif item.name in self.PARTS:
                several = value if isinstance(value, tuple) else (value,)
                packed = [part.pack(f"{name}.{n}.") for n, part in enumerate(several)]
                meta[item.name] = [own for _, own in packed]
                for own, _ in packed:
                    arrays |= own
            else:
                meta[item.name] = value
        return arrays, meta

    @classmethod
    def unpack(cls, arrays: Mapping[str, Any], meta: Mapping[str, Any], prefix: str = "") -> Self:
        """What ``pack`` took apart.

        Raises:
            KeyError, TypeError, ValueError: it was not packed by this version.
        """
        values: dict[str, Any] = {}
        for item in fields(cls):
            name = prefix + item.name
            if name in arrays:
                values[item.name] = arrays[name]
            elif item.name in cls.PARTS:
                kind = cls.PARTS[item.name]
                parts = tuple(
                    kind.unpack(arrays, part, f"{name}.{n}.")
                    for n, part in enumerate(meta[item.name])
                )
                one = item.metadata.get("one", False)
                values[item.name] = parts[0] if one else parts
            else:
                values[item.name] = _tuples(meta[item.name])
        return cls(**values)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
