"""A side as plain data and back, so that a baseline can be compared when its report is gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final, get_type_hints

import numpy as np

from nsys_tui.analysis.compare.side import Side, Steps, Variant
from nsys_tui.analysis.iterations.steps import Rule
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.model.arrays import Int64
from nsys_tui.plain_data import plain, restored

VERSION: Final = 7
"""Counted up when a side holds something else, or the same is measured otherwise."""

_MOST_STEPS: Final = 1 << 27
_KEPT: Final = tuple(item.name for item in fields(Side) if item.name != "steps")
"""What is written as it is, with what it is made of as lists: a side has thousands of samples."""


def to_data(side: Side, *, whole: bool = True) -> dict[str, Any]:
    """The side as values that JSON knows.

    Args:
        side: what was measured.
        whole: with the times of all steps, else with their number alone; and with full names.
    """
    steps, kept = side.steps, side if whole else replace(side, variants=_without_full(side))
    times = {"start": steps.start.tolist(), "end": steps.end.tolist()}
    return {
        "version": VERSION,
        **{name: plain(getattr(kept, name), rows=True) for name in _KEPT},
        "steps": {
            "rule": str(steps.rule),
            "name": steps.name,
            **(times if whole else {"count": len(steps)}),
        },
    }


def from_data(data: Mapping[str, Any]) -> Side:
    """Reads what ``to_data`` wrote.

    Raises:
        KeyError, TypeError, ValueError: it is something else, or of another version.
    """
    if data["version"] != VERSION:
        raise ValueError(f"written in version {data['version']}, this reads {VERSION}")
    if "wall" not in data["metrics"]:
        raise ValueError("it holds no time")
    causes = data["groups"].get("stalls", {})
    if "nothing" in causes:  # as this cause was called before
        causes[Cause.NOTHING.key] = causes.pop("nothing")
    hints = get_type_hints(Side)
    kept = {name: restored(hints[name], data[name]) for name in _KEPT if name in data}
    return Side(steps=_steps(data["steps"]), **kept)


def _without_full(side: Side) -> dict[str, dict[str, Variant]]:
    return {
        name: {key: replace(each, full=()) for key, each in variants.items()}
        for name, variants in side.variants.items()
    }


def _steps(data: Mapping[str, Any]) -> Steps:
    """Steps; of those that were not kept the times are 0, which nothing asks for."""
    if (count := int(data.get("count", 0))) > _MOST_STEPS:
        raise ValueError(f"it holds {count:.3g} steps")
    start = data.get("start", [0] * count)
    end = data.get("end", start)
    return Steps(Rule(data["rule"]), str(data["name"]), _array(start), _array(end))


def _array(values: list[int]) -> Int64:
    return np.array(values, np.int64)
