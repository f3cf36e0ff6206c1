"""The track of the steps, where the ranges of the leading thread do not show them already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.iterations.detection import Rule, find_iterations
from nsys_tui.analysis.timeline.facts import path_ranges
from nsys_tui.analysis.timeline.host import leading_thread
from nsys_tui.analysis.timeline.tracks import Section, Track
from nsys_tui.model.categories import Category
from nsys_tui.model.lanes import Lane
from nsys_tui.names import normalise_nvtx

if TYPE_CHECKING:
    from nsys_tui.analysis.iterations.detection import Iterations
    from nsys_tui.model.report import Report


def step_tracks(report: Report) -> list[Track]:
    """Steps that are named, or told by a pattern of kernels, above all other lanes."""
    steps = find_iterations(report)
    if steps.rule not in (Rule.NAME, Rule.PATTERN) or _is_outermost(report, steps):
        return []
    rows = np.arange(len(steps), dtype=np.int32)
    guessed = "≈ " if steps.rule is Rule.PATTERN else ""
    return [
        Track(
            key="steps",
            label=f"{guessed}steps",
            title=f"steps {steps.rule}: {steps.name}",
            part="steps",
            order=(Section.NVTX, -1, 0),
            words=f"{guessed}steps {steps.rule}",
            lane=Lane.build(steps.start, steps.own_end, rows, Category.NVTX),
            texts=tuple(f"step {label}" if label.isdecimal() else label for label in steps.labels),
        )
    ]


def _is_outermost(report: Report, steps: Iterations) -> bool:
    """Whether the first row of the leading thread's ranges shows the steps, or a rank's own."""
    if not len(steps.rows):
        return False
    ranges, row = report.ranges, int(steps.rows[0])
    thread = int(ranges.threads[ranges.thread[row]])
    if any(one != row for one in path_ranges(report, thread, int(ranges.start[row]))):
        return False
    leader = np.flatnonzero(ranges.threads == leading_thread(ranges))
    named = np.unique(ranges.name[np.isin(ranges.thread, leader)]).tolist()
    # Of several ranks each has its own; the leader's stand for all.
    return any(normalise_nvtx(ranges.names[code]) == steps.name for code in named)
