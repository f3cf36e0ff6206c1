"""The panes of the steps screen as lines: time of every step, and what made one of them long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.iterations.critical_path import Edge
from nsys_tui.names import cut, visible
from nsys_tui.render.cells import MUTED, Ink, style
from nsys_tui.render.spark import MARGIN, draw_bars
from nsys_tui.ui.pane_text import labelled, wrapped
from nsys_tui.units import format_difference, format_duration, format_share

if TYPE_CHECKING:
    from nsys_tui.analysis.iterations.answer import IterationAnswer
    from nsys_tui.analysis.iterations.path_answer import StepPath
    from nsys_tui.render.cells import Line
    from nsys_tui.render.glyphs import Glyphs

LATE: Final = style(Ink.STALL)
NOTABLE: Final = 0.1
"""Part of a phase by which it is longer than its median to be marked."""
ON_PATH: Final = 8
"""Kinds of work of a critical path that are listed."""
ASSUMED: Final = "≈ "
APART: Final = "w"
"""Mark of a step that is in no statistics."""
FIGURES: Final = 24
"""Cells for a time and its difference from the median."""


def chart_lines(
    answer: IterationAnswer, chosen: int, width: int, height: int, glyphs: Glyphs
) -> list[Line]:
    """A bar a step, outliers marked, the chosen one in another colour.

    The scale is that of the steady part: what is in no statistics is cut there and marked.
    """
    found, tall = answer.table.found, max(1, height - 1)
    apart = np.flatnonzero(~found.counted)
    times = np.minimum(found.duration, int(found.steady.max()))
    rows, merged = draw_bars(times, width, tall, glyphs, format_duration, found.outliers, chosen)
    for place in apart.tolist():
        rows[0].put(MARGIN + place // merged, APART, MUTED)
    return [row.runs() for row in rows]


def chart_remark(answer: IterationAnswer, room: int) -> str:
    """What a bar stands for, and the median that steps are held against."""
    merged = max(1, -(-len(answer.table) // max(1, room - MARGIN)))
    bars = f"bar: {merged} steps, the slowest  " if merged > 1 else ""
    return f"{bars}{APART}: warm-up, median {format_duration(round(answer.whole.median))}"


def step_lines(answer: IterationAnswer, step: int, width: int) -> list[Line]:
    """How long a step took, and which of its phases differ most from their medians."""
    found = answer.table.found
    time, median = int(found.duration[step]), answer.whole.median
    lines = [
        *labelled("time", f"{format_duration(time)}, {_against(time, median)}", width),
        *labelled("", _standing(answer, step), width),
    ]
    busy = answer.shares[~np.isnan(answer.shares) & found.counted]
    if len(busy) and not answer.gpu_doubt and not np.isnan(answer.shares[step]):
        text = f"{100 * answer.shares[step]:.1f}%, median {100 * float(np.median(busy)):.1f}%"
        lines += labelled("GPU busy", text, width)
    table = answer.table
    if why := table.why(step):
        lines += labelled("longer", why, width)
    parts = table.parts.differences(step, table.usual) if table.gpus else []
    phases = differences(answer, step) if len(answer.by_phase) > 1 else []
    for what, rows in (("part", parts), ("phase", phases)):
        if rows:
            lines.append([(f"{'this step':>10} {'to median':>11}  {what}", MUTED)])
            lines += [_phase_line(*row, width) for row in rows]
    return lines


def path_lines(path: StepPath, width: int) -> list[Line]:
    """The critical path of a step: where its time lies, then one stretch after the other."""
    lines: list[Line] = [[(f"{'time':>10} {'share':>6}  on the path", MUTED)]]
    for work in path.work[:ON_PATH]:
        text = f"{work.name or work.what} ({work.where})"
        lines.append(_path_line(work.time_ns, path, text, width))
    lines.append([(f"{'time':>10} {'share':>6}  from start to end", MUTED)])
    for one in path.stretches:
        mark = ASSUMED if one.edge == Edge.ASSUMED else ""
        text = f"{mark}{one.name or one.what} ({one.where})"
        lines.append(_path_line(one.time_ns, path, text, width))
    notes = (*path.notes, f"{ASSUMED.strip()}: assumed to have waited for the line above")
    return lines + [[(part, MUTED)] for note in notes for part in wrapped(note, width)]


def _path_line(ns: int, path: StepPath, text: str, width: int) -> Line:
    figures = f"{format_duration(ns):>10} {format_share(ns, path.time_ns):>6}  "
    return [(figures, 0), (cut(visible(text), width - len(figures)), 0)]


def differences(answer: IterationAnswer, step: int) -> list[tuple[str, int, int]]:
    """Phase, its time in a step, and how far that is from its median; the farthest first."""
    phases = [
        (name, int(answer.times[name][step]), round(int(answer.times[name][step]) - own.median))
        for name, own in answer.by_phase
    ]
    return sorted(phases, key=lambda phase: -abs(phase[2]))


def _standing(answer: IterationAnswer, step: int) -> str:
    found = answer.table.found
    if found.never_closed[step]:
        return "never closed: counted to the end of the capture, in no statistics"
    if not found.counted[step]:
        return "warm-up: in no statistics"
    if step in answer.outliers:
        return f"outlier, z = {found.z[step]:.1f}"
    return "typical" if step == answer.typical else "within the usual scatter"


def _against(time: int, median: float) -> str:
    away = round(time - median)
    if not away or not median:
        return "the median"
    side = "above" if away > 0 else "below"
    return f"{format_duration(abs(away))} ({100 * abs(away) / median:.1f}%) {side} the median"


def _phase_line(name: str, time: int, away: int, width: int) -> Line:
    text = f"{format_duration(time):>10} {format_difference(away):>11}  "
    ink = LATE if away > NOTABLE * time else 0
    return [(text, ink), (cut(visible(name), width - FIGURES), 0)]
