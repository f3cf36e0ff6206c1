"""The scene under the table of stalls: GPU, launching thread and others around a gap, as lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.analysis.stalls.rows import StallRow
from nsys_tui.analysis.stalls.surroundings import HotFrames, Scene, SceneLane, scene
from nsys_tui.analysis.window import masked, row_numbers, touching
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.lanes import Lane, split
from nsys_tui.model.report import Report
from nsys_tui.names import cell_len, cut, fit, pad, visible
from nsys_tui.render.axis import draw_axis
from nsys_tui.render.cells import MUTED, STALL, Line, Row
from nsys_tui.render.dominant import Layers
from nsys_tui.render.glyphs import Glyphs
from nsys_tui.render.raster import LaneView, draw_lane
from nsys_tui.render.viewport import Viewport
from nsys_tui.state import TimeFormat
from nsys_tui.times import moment_text
from nsys_tui.ui.widgets.trace import TraceRow
from nsys_tui.units import format_count, format_duration

LABEL, WIDE_LABEL = 12, 26
"""Cells for the names of lanes, on a narrow and on a wide screen."""
WIDE: Final = 118
MOST_LEVELS, FEW_LEVELS = 4, 2
"""Nested levels drawn of a lane of the launching thread, and of another one."""
FRAME: Final = 30
"""Cells of a stack frame; C++ names are shortened to them."""
AXIS_FROM: Final = 10
"""Lines of the pane from which one of them is an axis."""
NO_REASON: Final = {
    Cause.UNKNOWN.key: "no API call is known that launched what ends it",
    Cause.STREAM.key: "launched before the GPU fell idle: why it began so late is not recorded",
    Cause.EVENT.key: "launched in time: its stream waited for an event",
    Cause.PEER.key: "launched before the GPU fell idle: it waited for the other ranks",
}
SHORT_KINDS: Final = {"OS runtime": "osrt", "API": "API", "NVTX": "NVTX"}
"""What other threads' lanes begin with; the launching one's bare kind says whose they are."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A scene made ready for drawing at any width."""

    row: StallRow
    window: tuple[int, int]
    gpu: TraceRow
    host: tuple[TraceRow, ...]
    """API and OS runtime of the launching thread."""
    others: tuple[TraceRow, ...]
    """Its NVTX ranges, other threads, streams."""
    why: tuple[tuple[str, str], ...]
    """What is said in words: (label, text)."""
    notes: tuple[str, ...]
    """What could not be shown."""


def look(report: Report, row: StallRow) -> Drawn:
    """Gathers what happened around a stall.

    Args:
        report: the report; all parts are loaded.
        row: the gap or run.
    """
    drawn = scene(report, row.device, (row.start, row.end), row.thread)
    lo, hi = report.extent
    window = max(drawn.window[0], lo), min(drawn.window[1], hi)
    nvtx = [lane for lane in drawn.launching if lane.label.endswith(": NVTX")]
    calls = [lane for lane in drawn.launching if not lane.label.endswith(": NVTX")]
    streams = drawn.gpu if len(drawn.gpu) > 1 else ()
    lacking = () if report.can(Capability.API) else (report.lacks(Capability.API),)
    return Drawn(
        row=row,
        window=window,
        gpu=TraceRow(report.devices[row.device].label, _device_view(report, row, window)),
        host=tuple(_rows(calls, own=True)),
        others=(
            *_rows(nvtx, own=True),
            *_rows(drawn.others, FEW_LEVELS),
            *_rows(streams, FEW_LEVELS),
        ),
        why=tuple(_words(row, drawn)),
        notes=(*lacking, *drawn.notes),
    )


def _device_view(report: Report, row: StallRow, window: tuple[int, int]) -> LaneView:
    """All work of the device in one lane: with names where nothing overlaps, else shaded."""
    ops = report.operations
    near = touching(ops, window)
    mine = masked(near, ops.device[near] == row.device)
    rows = row_numbers(ops, mine)
    lane = Lane.build(ops.start[mine], ops.end[mine], rows, ops.category, ops.name)
    explained = np.array([row.end] if row.cause != "unknown" else [], np.int64)
    if len(split(lane)) > 1:
        layers = Layers.build(lane)
        return LaneView(lane, layers=layers, summary=True, idle=0, explained=explained)

    def label(device: int) -> str:
        name: str = ops.shown[ops.name[device]]
        return name

    return LaneView(lane, label=label, idle=0, explained=explained)


def _rows(
    lanes: Iterable[SceneLane], most: int = MOST_LEVELS, *, own: bool = False
) -> Iterator[TraceRow]:
    """Lanes by nested level; the first carries the label, ``own`` ones without the thread."""
    for each in lanes:
        who, _, kind = each.label.rpartition(": ")
        label = f"{SHORT_KINDS[kind]} {who}" if kind in SHORT_KINDS else each.label
        label = kind if own else label
        hidden = f" (+{format_count(each.hidden)})" if each.hidden else ""
        whole = Lane.build(each.starts, each.ends, category=each.categories)
        levels = split(whole)
        deeper = f" (+{len(levels) - most} levels)" if len(levels) > most else ""
        for level, lane in enumerate(levels[:most]):
            text = f"{label}{hidden}{deeper}" if not level else ""
            yield TraceRow(text, LaneView(lane, label=each.names.__getitem__))


def _words(row: StallRow, drawn: Scene) -> Iterator[tuple[str, str]]:
    shares = sorted(row.shares.items(), key=lambda item: -item[1])
    if shares:
        parts = [f"{cause} {format_duration(ns)}" for cause, ns in shares]
        yield "host", ", ".join(parts)
    if row.cause in NO_REASON:
        yield "host", NO_REASON[row.cause]
    if row.kind == "run":
        yield "run", f"{row.what}, {format_count(row.gaps)} gaps, {format_duration(row.idle_ns)}"
    if drawn.stack is not None:
        yield "stack", stack_text(drawn.stack)


def stack_text(stack: HotFrames) -> str:
    """``main -> save -> write  (31 of 40 samples; 6 opens stacks)``."""
    frames = " -> ".join(fit(frame, FRAME) for frame in reversed(stack.frames)) or "unknown"
    return f"{frames}  ({stack.samples} of {stack.of} samples; 6 opens stacks)"


def scene_lines(
    drawn: Drawn, report: Report, time: TimeFormat, glyphs: Glyphs, width: int, height: int
) -> list[Line]:
    """The scene: lanes drawn over one window, then what is said in words.

    Args:
        drawn: what ``look`` gathered.
        report: for moments.
        time: how moments are written.
        glyphs: the characters of this terminal.
        width: cells of a line.
        height: lines that are seen without scrolling.
    """
    room = WIDE_LABEL if width >= WIDE else LABEL
    view = Viewport(*drawn.window, max(1, width - room), report.extent)

    def moment(ns: int, step: int) -> str:
        return moment_text(ns, step, time, report, view.lo)

    def laned(row: TraceRow) -> Line:
        return _labelled(row.label, draw_lane(row.view, view, glyphs).runs(), room, glyphs)

    axis = _labelled("", draw_axis(view, moment, glyphs, origin=view.lo).runs(), room, glyphs)
    gpu = draw_lane(drawn.gpu.view, view, glyphs)
    if drawn.row.kind != "run":
        _write_idle(gpu, drawn.row, view, glyphs)
    words = [
        [(pad(label, room), MUTED), (pad(visible(text), width - room).rstrip(), 0)]
        for label, text in drawn.why
    ]
    return [
        *([axis] if height >= AXIS_FROM else []),
        _labelled(drawn.gpu.label, gpu.runs(), room, glyphs),
        *map(laned, drawn.host),
        *words,
        *map(laned, drawn.others),
        *([(note, MUTED)] for note in drawn.notes),
    ]


def _labelled(label: str, runs: list[tuple[str, int]], room: int, glyphs: Glyphs) -> Line:
    label = visible(label, glyphs.ascii_only)
    label = label if cell_len(label) < room else label.partition(" (")[0]
    return [(pad(cut(label, room - 1), room), 0), *runs]


def _write_idle(row: Row, stall: StallRow, view: Viewport, glyphs: Glyphs) -> None:
    """Writes how long the GPU stood idle over the idle cells, where there is room."""
    first, last = view.nearest_edges_of(stall.start, stall.end)
    text = f"idle {format_duration(stall.end - stall.start)}"
    if cell_len(text) + 2 <= last - first:
        text = f"{glyphs.idle}{text}{glyphs.idle}"
        row.put(first + (last - first - cell_len(text)) // 2, text, STALL)
