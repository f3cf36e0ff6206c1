"""Event sets as flat arrays plus JSON, the form in which the sidecar keeps them, and back."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from nsys_tui.model.events import Domain, OpName
from nsys_tui.model.target import Device, Member, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsys_tui.model.arrays import Array
    from nsys_tui.reader.target import Devices

Part = TypeVar("Part")

_PLAIN: Final = frozenset({"kinds", "metrics", "symbols", "modules", "texts"})


def dump(part: Any) -> tuple[dict[str, Array], dict[str, Any]]:
    """Splits an event set into its arrays and the JSON-able rest."""
    values = {f.name: getattr(part, f.name) for f in fields(part)}
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    rest = {
        name: [_plain(item) for item in value]
        for name, value in values.items()
        if name not in arrays
    }
    return arrays, rest


def _plain(item: Any) -> Any:
    if isinstance(item, Device):
        return [item.gpu_id, [list(member) for member in item.members]]
    if isinstance(item, Stream):
        return list(vars(item).values())
    return list(item) if isinstance(item, tuple) else item


def restore(
    cls: type[Part],
    arrays: Mapping[str, Array],
    meta: Mapping[str, Any],
    devices: Devices,
) -> Part:
    """Builds an event set again from what ``dump`` gave.

    Properties of the GPUs are not stored again: they come from the file's ``devices``.
    """
    makers: dict[str, Callable[[Any], Any]] = {
        "devices": lambda item: devices.restore(item[0], tuple(Member(*m) for m in item[1])),
        "streams": lambda item: Stream(*item),
        "domains": lambda item: Domain(*item),
        "names": lambda item: item if isinstance(item, str) else OpName(*item),
    }
    rest = {
        name: tuple(items) if name in _PLAIN else tuple(makers[name](item) for item in items)
        for name, items in meta.items()
    }
    return cls(**arrays, **rest)
