"""The pane below the NVTX tree as lines: time per iteration, and what is odd about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.iterations.finding import Rule
from nsys_tui.names import visible
from nsys_tui.render.cells import Emphasis, Ink, style
from nsys_tui.render.spark import MARGIN, draw_bars
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from nsys_tui.analysis.iterations.finding import Iterations
    from nsys_tui.analysis.nvtx.steps import StepTimes
    from nsys_tui.render.glyphs import Glyphs

Line = list[tuple[str, int]]

MUTED: Final = style(Ink.MUTED)
STALL: Final = style(Ink.STALL)
NAMED: Final = 3
"""Outliers that are named; the rest is counted."""


def step_heading(steps: StepTimes, found: Iterations) -> tuple[str, str]:
    """What the bars are, and by which rule the iterations were found."""
    if not steps.by_iteration:
        return f"per instance ({len(steps):,})", ""
    rule = str(found.rule) if found.rule is not Rule.PATTERN else "by pattern"
    return f"per iteration ({len(steps):,})", f"iterations {rule}"


def step_lines(
    steps: StepTimes, chosen: int | None, width: int, height: int, glyphs: Glyphs
) -> list[Line]:
    """Bars with their scale, then a line about the chosen iteration and one about outliers."""
    if not len(steps):
        return [[("no closed instance of this range", MUTED)]]
    late = np.zeros(len(steps), bool)
    late[steps.outliers] = True
    notes = _notes(steps, chosen, width)
    rows, merged = draw_bars(
        steps.time, width, max(1, height - 1 - len(notes)), glyphs, _short, late
    )
    if chosen is not None:
        column = MARGIN + chosen // merged
        for row in rows[:-1]:
            row.emphasise(column, column + 1, Emphasis.REVERSE)
    if merged > 1:
        notes[0].append((f"  a bar: {merged} iterations, the slowest", MUTED))
    return [*(row.runs() for row in rows), *notes]


def _notes(steps: StepTimes, chosen: int | None, width: int) -> list[Line]:
    lines: list[Line] = []
    if chosen is not None:
        text = f"{chosen}: {visible(steps.labels[chosen])} {_short(steps.time[chosen])}"
        lines.append([(text, 0), (f"  {_distance(steps, chosen)}", MUTED)])
    counts = []
    begun = int((steps.rows >= 0).sum())
    if begun < len(steps):
        counts.append(f"in {begun:,} of {len(steps):,} iterations")
    if steps.outside:
        counts.append(f"{steps.outside:,} outside{'' if counts else ' of iterations'}")
    rest = f"  {', '.join(counts)}"
    if len(steps.outliers):
        lines.append([(_outliers(steps, width - len(rest)), STALL)])
    else:
        # Where most iterations lack the range, their median is no time of it.
        median = f", median {_short(steps.median)}" if steps.median else ""
        lines.append([(f"no outlier{median}", MUTED)])
    lines[-1].append((rest, MUTED))
    return lines


def _outliers(steps: StepTimes, width: int) -> str:
    """As many outliers as fit, at least one; the others are counted."""
    outliers = steps.outliers.tolist()
    text = ""
    for named in range(min(NAMED, len(outliers)), 0, -1):
        each = [f"{place} {_distance(steps, place)}" for place in outliers[:named]]
        more = f", {len(outliers) - named} more" if len(outliers) > named else ""
        text = f"outlier: step {', step '.join(each)}{more}"
        if len(text) <= width:
            break
    return text


def _distance(steps: StepTimes, place: int) -> str:
    away = int(steps.time[place] - steps.median)
    return f"{'+' if away >= 0 else ''}{_short(away)} (z={steps.z[place]:.1f})"


def _short(ns: float) -> str:
    return format_duration(round(ns), 3).replace(" ", "")
