"""A side as plain data and back, so that a baseline can be compared when its report is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.analysis.compare.side import Found, Named, Side, Steps
from nsys_tui.analysis.compare.stats import Spread
from nsys_tui.analysis.iterations.detection import Rule
from nsys_tui.names import NameStyle

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION: Final = 1


def to_data(side: Side) -> dict[str, Any]:
    """The side as values that JSON knows."""
    steps = side.steps
    return {
        "version": VERSION,
        "label": side.label,
        "identity": side.identity,
        "facts": dict(side.facts),
        "options": dict(side.options),
        "kinds": list(side.kinds),
        "device_count": side.device_count,
        "base_ns": side.base_ns,
        "steps": {
            "rule": str(steps.rule),
            "name": steps.name,
            "start": steps.start.tolist(),
            "end": steps.end.tolist(),
        },
        "steps_found": side.steps_found,
        "metrics": {key: _spread_data(spread) for key, spread in side.metrics.items()},
        "groups": {
            key: {name: _named_data(named) for name, named in names.items()}
            for key, names in side.groups.items()
        },
        "lacks": dict(side.lacks),
        "findings": None
        if side.findings is None
        else [[f.rule, f.severity, f.title, f.saved_ns, f.window] for f in side.findings],
        "notes": list(side.notes),
        "unknown": sorted(side.unknown),
        "style": str(side.style),
    }


def from_data(data: Mapping[str, Any]) -> Side:
    """Reads what ``to_data`` wrote.

    Raises:
        KeyError, TypeError, ValueError: it is something else, or of another version.
    """
    if data["version"] != VERSION:
        raise ValueError(f"written in version {data['version']}, this reads {VERSION}")
    steps, findings = data["steps"], data["findings"]
    return Side(
        label=str(data["label"]),
        identity=str(data["identity"]),
        facts=dict(data["facts"]),
        options=dict(data["options"]),
        kinds=tuple(data["kinds"]),
        device_count=int(data["device_count"]),
        base_ns=int(data["base_ns"]),
        steps=Steps(
            Rule(steps["rule"]), str(steps["name"]), _array(steps["start"]), _array(steps["end"])
        ),
        steps_found=int(data["steps_found"]),
        metrics={key: _spread(values) for key, values in data["metrics"].items()},
        groups={
            key: {name: _named(values) for name, values in names.items()}
            for key, names in data["groups"].items()
        },
        lacks=dict(data["lacks"]),
        findings=None if findings is None else tuple(_found(*values) for values in findings),
        notes=tuple(data["notes"]),
        unknown=frozenset(data.get("unknown", ())),
        style=str(data.get("style", NameStyle.NORMALISED)),
    )


def _spread_data(spread: Spread) -> list[Any]:
    figures = [spread.count, spread.total, spread.least, spread.most, spread.first]
    return [*figures, spread.middle.tolist()]


def _spread(values: list[Any]) -> Spread:
    *figures, middle = values
    count, total, least, most, first = map(int, figures)
    return Spread(count, total, least, most, first, _array(middle))


def _named_data(named: Named) -> list[Any]:
    per_step = None if named.per_step is None else _spread_data(named.per_step)
    return [_spread_data(named.instances), named.total, per_step, named.calls, named.bytes]


def _named(values: list[Any]) -> Named:
    instances, total, per_step, calls, size = values
    steps = None if per_step is None else _spread(per_step)
    often = None if calls is None else float(calls)
    return Named(_spread(instances), int(total), steps, often, int(size))


def _found(
    rule: str, severity: str, title: str, saved: int, window: list[int] | None = None
) -> Found:
    span = None if window is None else (int(window[0]), int(window[1]))
    return Found(rule, severity, title, int(saved), span)


def _array(values: list[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, np.int64)
