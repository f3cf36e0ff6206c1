"""Means over the step lines of a log's trainers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.logs.steps import LEGACY_AVERAGE
from nsys_tui.logs.trainers import Average, average

if TYPE_CHECKING:
    from nsys_tui.logs.result import LogResult


def average_range(result: LogResult) -> tuple[int | None, int | None]:
    """Steps that averages are taken over: the window, or what the AWK kit took in legacy mode."""
    window = result.window
    if window is None:
        return None, None
    if window.legacy and (window.first, window.last) == (45, 50):
        return LEGACY_AVERAGE
    return window.first, window.last


def average_of(result: LogResult) -> Average | None:
    """Mean step time and TFLOPs of the trainer whose step lines own the window."""
    mine = [step for step in result.step_lines if step.format == result.trainer]
    return average(mine, *average_range(result))


def all_averages(result: LogResult) -> list[Average]:
    """One average for each trainer format found."""
    formats = dict.fromkeys(step.format for step in result.step_lines)
    found = [
        average([s for s in result.step_lines if s.format == name], *average_range(result))
        for name in formats
    ]
    return [one for one in found if one]
