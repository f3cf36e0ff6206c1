"""A side as plain data and back, so that a baseline can be compared when its report is gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from nsys_tui.analysis.compare.origin import NOWHERE, Origin
from nsys_tui.analysis.compare.side import GROUPS, Found, Named, Side, Steps
from nsys_tui.analysis.compare.stats import Estimate, Sample
from nsys_tui.analysis.iterations.detection import Rule
from nsys_tui.model.arrays import Int64

VERSION: Final = 6
"""Counted up when a side holds something else, or the same is measured otherwise."""
_READ: Final = (2, 3, 4, 5, VERSION)
"""Versions that are read; of groups that one did not have nothing is known."""

_MOST_STEPS: Final = 1 << 27


def _span(values: Sequence[Any]) -> tuple[int, int]:
    start, end = values
    return int(start), int(end)


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(text) for name, text in dict(values).items()}


_PLAIN: Final[dict[str, Callable[[Any], Any]]] = {
    "label": str,
    "identity": str,
    "facts": _texts,
    "options": _texts,
    "device_count": int,
    "base_ns": int,
    "steps_found": int,
    "lacks": _texts,
    "style": str,
    "run": str,
    "run_count": int,
    "recorded": _span,
}
"""What is written as it is."""


def to_data(side: Side, *, whole: bool = True) -> dict[str, Any]:
    """The side as values that JSON knows.

    Args:
        side: what was measured.
        whole: with the times of all steps; else with their number alone.
    """
    steps = side.steps
    times = {"start": steps.start.tolist(), "end": steps.end.tolist()}
    return {
        "version": VERSION,
        **{key: kind(getattr(side, key)) for key, kind in _PLAIN.items()},
        "origin": asdict(side.origin),
        "kinds": list(side.kinds),
        "steps": {
            "rule": str(steps.rule),
            "name": steps.name,
            **(times if whole else {"count": len(steps)}),
        },
        "metrics": {key: _sample_data(sample) for key, sample in side.metrics.items()},
        "groups": {
            key: {name: _named_data(named) for name, named in names.items()}
            for key, names in side.groups.items()
        },
        "findings": None
        if side.findings is None
        else [[f.rule, f.severity, f.title, f.saved_ns, f.window] for f in side.findings],
        "notes": list(side.notes),
        "unknown": sorted(side.unknown),
    }


def from_data(data: Mapping[str, Any]) -> Side:
    """Reads what ``to_data`` wrote.

    Raises:
        KeyError, TypeError, ValueError: it is something else, or of another version.
    """
    if data["version"] not in _READ:
        raise ValueError(f"written in version {data['version']}, this reads {VERSION}")
    steps, findings = data["steps"], data["findings"]
    if "wall" not in data["metrics"]:
        raise ValueError("it holds no time")
    return Side(
        **{key: kind(data[key]) for key, kind in _PLAIN.items() if key in data},
        origin=Origin.read(data["origin"]) if "origin" in data else NOWHERE,
        kinds=tuple(map(str, data["kinds"])),
        steps=_steps(steps),
        metrics={key: _sample(values) for key, values in data["metrics"].items()},
        groups={
            key: {name: _named(values) for name, values in names.items()}
            for key, names in data["groups"].items()
        },
        findings=None if findings is None else tuple(_found(*values) for values in findings),
        notes=tuple(map(str, data["notes"])),
        unknown=frozenset(data.get("unknown", ())).union(GROUPS.keys() - data["groups"].keys()),
    )


def _steps(data: Mapping[str, Any]) -> Steps:
    """Steps; of those that were not kept the times are 0, which nothing asks for."""
    if (count := int(data.get("count", 0))) > _MOST_STEPS:
        raise ValueError(f"it holds {count:.3g} steps")
    start = data.get("start", [0] * count)
    end = data.get("end", start)
    return Steps(Rule(data["rule"]), str(data["name"]), _array(start), _array(end))


def _sample_data(sample: Sample) -> list[Any]:
    figures = [sample.count, sample.total, sample.least, sample.most, sample.median]
    return [*figures, [[run.value, run.error, run.freedom] for run in sample.runs]]


def _sample(values: list[Any]) -> Sample:
    count, total, least, most, median, runs = values
    estimates = tuple(_estimate(*run) for run in runs)
    return Sample(int(count), int(total), int(least), int(most), float(median), estimates)


def _estimate(value: float, error: float | None, freedom: float) -> Estimate:
    return Estimate(float(value), None if error is None else float(error), float(freedom))


def _named_data(named: Named) -> list[Any]:
    per_step = None if named.per_step is None else _sample_data(named.per_step)
    return [_sample_data(named.instances), named.total, per_step, named.calls, named.bytes]


def _named(values: list[Any]) -> Named:
    instances, total, per_step, calls, size = values
    steps = None if per_step is None else _sample(per_step)
    often = None if calls is None else float(calls)
    return Named(_sample(instances), int(total), steps, often, int(size))


def _found(
    rule: str, severity: str, title: str, saved: int, window: list[int] | None = None
) -> Found:
    return Found(rule, severity, title, int(saved), None if window is None else _span(window))


def _array(values: list[int]) -> Int64:
    return np.array(values, np.int64)
