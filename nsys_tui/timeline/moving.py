"""Moving about: zoom, pan, cursor, lanes, fit, go to a time, iterations."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from nsys_tui.analysis.iterations.steps import Iterations
from nsys_tui.analysis.timeline.facts import ranges_around
from nsys_tui.errors import UsageError
from nsys_tui.state import Cursor, Window, bounded, panned, zoomed
from nsys_tui.timeline.model import TimelineModel
from nsys_tui.units import parse_duration

MARGIN: Final = 20
"""A fitted span leaves a part this small of itself free at either side."""
NO_STEPS: Final = "no iterations found: neither range names nor kernels repeat"
EDGE_STEP: Final = 8
"""At the edge the window moves by this part of its columns."""
_PERCENT: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*\Z")


def zoom(model: TimelineModel, factor: float, about: int | None = None) -> TimelineModel:
    """Zooms about a moment, the cursor's by default; a factor below 1 zooms in.

    A window stays near the trace: a cursor that was beside the trace comes to the window's edge.
    """
    window, time = model.window, model.cursor_time
    centre = time if about is None else about
    if not window.start <= centre < window.end:
        centre = window.start + window.width // 2
    target = zoomed(window, model.extent, factor, centre, model.size.columns)
    if target is None:
        target, model = model.everything, model.asked_for_all()
    if target == model.view.window:
        return model
    kept = time if window.start <= time < window.end else centre
    closer = model.moved(target, kept)
    return closer.pointed(min(max(kept, closer.window.start), closer.window.end - 1))


def pan(model: TimelineModel, part: float) -> TimelineModel:
    """Moves the window by a part of its width; the cursor keeps its column."""
    if model.view.window == model.everything:
        return model
    window = model.window
    target = panned(window, model.extent, int(window.width * part))
    return model.moved(target, model.cursor_time + target.start - window.start)


def centre_window(model: TimelineModel, time: int) -> TimelineModel:
    """Puts a moment into the middle of the window; where all is shown, the cursor there."""
    if model.view.window == model.everything:
        return model.pointed(time)
    window = model.window
    start = time - window.width // 2
    return model.moved(Window(start, start + window.width), time)


def step_column(model: TimelineModel, step: int) -> TimelineModel:
    """Moves the cursor by columns and pans at the edges."""
    view = model.viewport
    column = view.cell(model.cursor_time)
    if column is None:
        column = 0 if model.cursor_time < view.lo else view.width - 1
    time = view.time(column + step)
    if 0 <= column + step < view.width:
        return model.pointed(time)
    if model.view.window == model.everything:
        return model
    shift = max(view.step, 1) * (1 if step > 0 else -1) * max(1, view.width // EDGE_STEP)
    window = bounded(Window(view.lo + shift, view.hi + shift), model.extent)
    return model.moved(window, min(max(time, window.start), window.end - 1))


def step_lane(model: TimelineModel, step: int) -> TimelineModel:
    """Moves the cursor by rows, to the first or last one at most."""
    if not model.rows:
        return model
    number = min(max(model.row_number + step, 0), len(model.rows) - 1)
    return model.pointed(lane=model.rows[number].key)


def step_screen(model: TimelineModel, direction: int) -> TimelineModel:
    """Moves the cursor by a screen of rows, of which one stays in view."""
    return step_lane(model, direction * (model.size.rows - 1))


def step_half_screen(model: TimelineModel, direction: int) -> TimelineModel:
    """Moves the cursor by half a screen of rows."""
    return step_lane(model, direction * (model.size.rows // 2))


def to_last_lane(model: TimelineModel, direction: int) -> TimelineModel:
    """Moves the cursor to the first (-1) or the last (1) row."""
    return step_lane(model, direction * len(model.rows))


def scroll_lanes(model: TimelineModel, rows: int) -> TimelineModel:
    """Scrolls the rows; the cursor stays on its own as long as that is in view."""
    height = model.size.rows
    top = min(max(model.top + rows, 0), max(0, len(model.rows) - height))
    if not model.rows or top == model.top:
        return model
    number = min(max(model.row_number, top), min(top + height, len(model.rows)) - 1)
    scrolled = model.at_row(top)
    return scrolled if number == model.row_number else scrolled.pointed(lane=model.rows[number].key)


def whole(model: TimelineModel) -> TimelineModel:
    """Shows the whole trace."""
    model, shown = model.asked_for_all(), model.everything
    return model if model.view.window == shown else model.jumped(window=shown)


def fit(model: TimelineModel, steps: Iterations | None = None) -> TimelineModel:
    """Shows the selection, then the range around it, the step, the GPU work, all; then again."""
    stages = _stages(model, steps)
    now = [number for number, (_, window) in enumerate(stages) if window == model.view.window]
    said, window = stages[(now[-1] + 1) % len(stages) if now else 0]
    model = model.asked_for_all() if window is None else model
    return model.telling(f"shown: {said} (f: wider)").jumped(window=window)


def _stages(model: TimelineModel, steps: Iterations | None) -> list[tuple[str, Window | None]]:
    """What ``fit`` shows one after the other, from near to far."""
    selection, columns = model.view.selection, model.size.columns
    spans: list[tuple[str, tuple[int, int] | None]] = []
    if selection is not None and selection.span is not None:
        lo, hi = selection.span
        around = [("the range around it", range_around(model)), ("the step", step_at(model, steps))]
        # A range and its step are of the host, and GPU work may come later.
        spans = [("the selection", (lo, hi))]
        spans += [(said, (min(lo, at[0]), max(hi, at[1]))) for said, at in around if at is not None]
    spans.append(("the GPU work", model.trace.span))
    stages: list[tuple[str, Window | None]] = []
    for said, span in spans:
        window = None if span is None else with_margin(*span, columns)
        if window is not None and all(window != other for _, other in stages):
            stages.append((said, window))
    return [*stages, ("the whole trace", model.everything)]


def step_at(model: TimelineModel, steps: Iterations | None) -> tuple[int, int] | None:
    """Begin and end of the step that the cursor is in."""
    if steps is None or not len(steps):
        return None
    number = int(np.searchsorted(steps.start, model.cursor_time, side="right")) - 1
    if number < 0 or model.cursor_time >= int(steps.end[number]):
        return None
    return int(steps.start[number]), int(steps.end[number])


_STEPS: Final = re.compile(r"\s*(\d+)\s*(?:steps?|iterations?)\s*\Z")


def width_of(text: str) -> int | None:
    """The width in ns that a text means: ``50us``; None for anything else, such as a name."""
    try:
        value = parse_duration(text.strip())
    except UsageError:
        return None
    return value if value > 0 and text.strip()[-1:].isalpha() else None


def wanted_steps(text: str) -> int:
    """How many steps a text asks for (``3 steps``); 0 for anything else."""
    match = _STEPS.match(text)
    return int(match[1]) if match else 0


def zoom_to_width(model: TimelineModel, width: int) -> TimelineModel:
    """Shows a span of time about the cursor."""
    lo, hi = model.extent
    if width >= hi - lo:
        return whole(model)
    start = model.cursor_time - width // 2
    window = bounded(Window(start, start + max(width, model.size.columns)), model.extent)
    return model.jumped(window=window)


def zoom_to_steps(model: TimelineModel, steps: Iterations, count: int) -> TimelineModel:
    """Shows some steps from the cursor's on."""
    if not len(steps):
        return model.telling(NO_STEPS)
    first = int(np.searchsorted(steps.start, model.cursor_time, side="right")) - 1
    first = max(min(first, len(steps) - count), 0)
    last = min(first + max(count, 1), len(steps)) - 1
    window = with_margin(int(steps.start[first]), int(steps.end[last]), model.size.columns)
    said = f"steps {first + 1} to {last + 1} of {len(steps)}"
    time = min(max(model.cursor_time, int(steps.start[first])), int(steps.end[last]) - 1)
    cursor = Cursor(time, model.lane_key)
    return model.telling(said).jumped(window=window, cursor=cursor)


def with_margin(start: int, end: int, columns: int) -> Window:
    """A window that shows a span with a little room at either side, 1 ns a column at least."""
    free = max((end - start) // MARGIN, 1)
    width = max(end - start + 2 * free, columns)
    middle = (start + end) // 2
    return Window(middle - width // 2, middle - width // 2 + width)


def range_around(model: TimelineModel) -> tuple[int, int] | None:
    """Begin and end of the innermost NVTX range around the selected event; None without one."""
    picked = model.picked
    owner = None if picked is None else model.owner(picked.events)
    if picked is None or owner is None:
        return None
    ranges = owner.report.ranges
    rows = ranges_around(owner.report, owner.events, picked.row)
    if not rows:
        return None
    start, end = int(ranges.start[rows[-1]]), int(ranges.end[rows[-1]])
    return start + owner.offset, end + owner.offset


def time_of(model: TimelineModel, text: str) -> int:
    """The moment that a text means: ``2.1s``, ``+3ms`` from the cursor, ``50%`` of the trace.

    Raises:
        UsageError: it is no time.
    """
    text = text.strip()
    if match := _PERCENT.match(text):
        lo, hi = model.extent
        # Thousandths keep the arithmetic on integers.
        return lo + (hi - lo) * round(float(match.group(1)) * 1000) // 100_000
    if not text:
        raise UsageError("no time given", hint="write it as 2.1s, +3ms or 50%")
    value = parse_duration(text, "s")
    return model.cursor_time + value if text[0] in "+-" else value


def go_to(model: TimelineModel, text: str) -> TimelineModel:
    """Goes to the moment that a text means, or to the end of the trace that is nearest to it."""
    time = time_of(model, text)
    lo, hi = model.extent
    if not lo <= time <= hi:
        model = model.telling(f"{model.moment(time)} lies outside the trace")
        time = min(max(time, lo), hi)
    return model.jumped(window=model.shifted(time), cursor=Cursor(time, model.lane_key))


def step_iteration(model: TimelineModel, iterations: Iterations, step: int) -> TimelineModel:
    """Goes to the next (1) or previous (-1) iteration; the window keeps its width."""
    if not len(iterations):
        return model.telling(NO_STEPS)
    # Behind the cursor counts what begins before it, ahead of it what begins after it.
    after = model.cursor_time + (step > 0)
    number = int(np.searchsorted(iterations.start, after)) - (step < 0)
    if not 0 <= number < len(iterations):
        return model.telling("that was the last iteration" if step > 0 else "that was the first")
    start, window = int(iterations.start[number]), model.window
    target = None
    if model.view.window != model.everything:
        lead = window.width // MARGIN
        target = Window(start - lead, start - lead + window.width)
    said = f"iteration {number}: {iterations.labels[number]} ({iterations.rule})"
    return model.telling(said).jumped(window=target, cursor=Cursor(start, model.lane_key))
