"""The pane below the NVTX tree as lines: time per iteration, and what is odd about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.iterations.detection import Rule
from nsys_tui.names import visible
from nsys_tui.render.cells import MUTED, STALL
from nsys_tui.render.spark import draw_bars
from nsys_tui.units import format_difference, format_duration, out_of

if TYPE_CHECKING:
    from nsys_tui.analysis.iterations.detection import Iterations
    from nsys_tui.analysis.nvtx.steps import StepTimes
    from nsys_tui.render.cells import Line
    from nsys_tui.render.glyphs import Glyphs


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
    tall = max(1, height - 2 - (chosen is not None))
    rows, merged = draw_bars(
        steps.time, width, tall, glyphs, format_duration, steps.outliers, chosen
    )
    return [*(row.runs() for row in rows), *_notes(steps, chosen, merged, width)]


def _notes(steps: StepTimes, chosen: int | None, merged: int, width: int) -> list[Line]:
    bars = f"bar: {merged} {_what(steps)}s, the slowest" if merged > 1 else ""
    counts = _counts(steps) + ([bars] if bars and chosen is None else [])
    rest = f"  {', '.join(counts)}" if counts else ""
    if len(steps.outliers):
        last: Line = [(_outliers(steps, width - len(rest)), STALL), (rest, MUTED)]
    else:
        # Where most iterations lack the range, their median is no time of it.
        median = f", median {format_duration(steps.median)}" if steps.median else ""
        last = [(f"no outlier{median}{rest}", MUTED)]
    if chosen is None:
        return [last]
    text = f"{chosen}: {visible(steps.labels[chosen])} {format_duration(steps.time[chosen])}"
    return [[(text, 0), (f"  {_distance(steps, chosen)}  {bars}", MUTED)], last]


def _what(steps: StepTimes) -> str:
    return "step" if steps.by_iteration else "instance"


def _counts(steps: StepTimes) -> list[str]:
    """How many iterations have the range, and how often it is in none."""
    counts = []
    begun = int((steps.rows >= 0).sum())
    if begun < len(steps):
        counts.append(f"in {out_of(begun, len(steps))} iterations")
    if steps.outside:
        counts.append(f"{steps.outside:,} outside{'' if counts else ' of iterations'}")
    return counts


def _outliers(steps: StepTimes, width: int) -> str:
    """As many outliers as fit, at least one; the others are counted."""
    outliers, what, text = steps.outliers.tolist(), _what(steps), ""
    for named in range(min(NAMED, len(outliers)), 0, -1):
        each = [f"{place} {_distance(steps, place)}" for place in outliers[:named]]
        more = f", {len(outliers) - named} more" if len(outliers) > named else ""
        text = f"outlier: {what} {f', {what} '.join(each)}{more}"
        if len(text) <= width:
            break
    return text


def _distance(steps: StepTimes, place: int) -> str:
    away = int(steps.time[place] - steps.median)
    return f"{format_difference(away)} (z={steps.z[place]:.1f})"
