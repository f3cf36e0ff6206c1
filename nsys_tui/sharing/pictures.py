"""Pictures as plain SVG: a window of the timeline as evidence, and the time of each step.

Colours are classes, which the page's style sheet fills in for light and dark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from nsys_tui.analysis.iterations.answer import IterationAnswer
from nsys_tui.analysis.rules.finding import Finding
from nsys_tui.analysis.timeline.events import naming
from nsys_tui.analysis.window import Scope, row_numbers
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Indices, Int64, Integers
from nsys_tui.model.categories import Category
from nsys_tui.model.events import EventSet, ThreadEvents
from nsys_tui.model.lanes import Lane, cell_edges, split
from nsys_tui.model.report import Report
from nsys_tui.model.target import tid_of
from nsys_tui.names import NameStyle, both_ends, fit
from nsys_tui.sharing.words import plain_text, text_of
from nsys_tui.state import TimeFormat
from nsys_tui.times import moment_text
from nsys_tui.units import format_duration, format_moment

WIDTH: Final = 960
MARGIN: Final = 130
"""Room for the names of lanes, left."""
ROW: Final = 18
_TOP: Final = 22
_CHAR: Final = 6.7
_LABEL: Final = 18
"""Letters of a lane's name."""
_GPUS: Final = 2
_STREAMS: Final = 3
_THREADS: Final = 2
_LEVELS: Final = 2
_EVENTS: Final = 120
"""Events of a lane that are drawn one by one; the rest is shading."""
AROUND: Final = 1.6
"""The picture is so many times as long as what it shows."""
SHORTEST: Final = 20_000
"""Shortest picture, ns."""
_OPERATIONS: Final = 20_000
"""Operations of a picture, from the start of what it shows."""
BARS: Final = 240
"""Bars of the step chart; more steps share one, which then shows the longest."""


class _Row(NamedTuple):
    label: str
    lane: Lane
    name: Callable[[int], str]
    kind: str
    """Category that has most time, by which what is too short to be told apart is coloured."""


def evidence(report: Report, finding: Finding) -> str:
    """The timeline around what a finding says; empty for one about the report itself."""
    if finding.window is None or finding.window[1] <= finding.window[0]:
        return ""
    span = _around(_beginning(report, finding.window), report.extent)
    rows = list(_rows(report, span, finding.device))
    if not rows:
        return ""
    lost = None if finding.lost is None else intervals.clip(*finding.lost, *span)
    said = f"Timeline from {format_moment(span[0])} to {format_moment(span[1])}"
    return _timeline(rows, span, finding.window, lost, f"{said}: {finding.title}")


def _beginning(report: Report, window: tuple[int, int]) -> tuple[int, int]:
    """As much of a window as can be told apart: a run of minutes would be one shade."""
    starts = report.operations.start
    last = int(np.searchsorted(starts, window[0])) + _OPERATIONS
    return (window[0], min(window[1], int(starts[last]))) if last < len(starts) else window


def _around(window: tuple[int, int], extent: tuple[int, int]) -> tuple[int, int]:
    length = window[1] - window[0]
    more = max(round(length * AROUND), SHORTEST) - length
    start, end = window[0] - more // 2, window[1] + more - more // 2
    return max(start, extent[0]), min(end, max(extent[1], window[1]))


def _rows(report: Report, span: tuple[int, int], device: int | None) -> Iterator[_Row]:
    """NVTX of the busiest threads, the streams of the GPU, and the API calls of those threads."""
    ops = report.operations
    places = [device] if device is not None else list(range(len(report.devices)))[:_GPUS]
    rows = row_numbers(ops, Scope(span, frozenset(places)).operations(ops))
    threads = _busiest(report.api, span) or _busiest(report.ranges, span)
    names = {tid: report.thread_name(tid) for tid in threads}
    if len({*names.values()}) < len(names):
        names = {tid: f"{name} {tid_of(tid)}" for tid, name in names.items()}
    for events, label, levels in ((report.ranges, "NVTX", _LEVELS), (report.api, "API", 1)):
        if label == "API":
            for stream in _most(ops.stream[rows], ops.end[rows] - ops.start[rows], _STREAMS):
                known = ops.streams[stream]
                who = fit(f"{ops.devices[known.device].label} {known.label}", _LABEL)
                yield from _lanes(ops, rows[ops.stream[rows] == stream], who, 1, ops.category)
        seen = row_numbers(events, Scope(span).threads(events))
        for tid, name in names.items():
            of_thread = seen[events.threads[events.thread[seen]] == tid] if len(seen) else seen
            category = Category.NVTX if label == "NVTX" else Category.API
            who = both_ends(f"{label} {name}", _LABEL)
            yield from _lanes(events, of_thread, who, levels, int(category))


def _lanes(
    events: EventSet, rows: Indices, label: str, levels: int, category: object
) -> Iterator[_Row]:
    if not len(rows):
        return
    lane = Lane.build(events.start[rows], events.end[rows], rows, category)  # type: ignore[arg-type]
    deep = split(lane) if len(rows) <= 200_000 else (lane,)
    for number, one in enumerate(deep[:levels]):
        length = one.ends - one.starts
        kind = Category(int(np.bincount(one.categories(slice(None)), length).argmax()))
        yield _Row("" if number else label, one, naming(events, NameStyle.SHORT), kind.name.lower())


def _busiest(events: ThreadEvents, span: tuple[int, int]) -> list[int]:
    """globalTid of the threads with most time in events."""
    rows = row_numbers(events, Scope(span).threads(events))
    codes = _most(events.thread[rows], events.end[rows] - events.start[rows], _THREADS)
    return [int(events.threads[code]) for code in codes]


def _most(codes: Integers, weight: Int64, count: int) -> list[int]:
    if not len(codes):
        return []
    sums = np.bincount(codes, weight)
    order = np.argsort(-sums, kind="stable")[:count].tolist()
    return sorted(code for code in order if sums[code] > 0)


def _timeline(
    rows: list[_Row],
    span: tuple[int, int],
    window: tuple[int, int],
    lost: intervals.Intervals | None,
    said: str,
) -> str:
    height = _TOP + ROW * len(rows) + 6
    wide, (lo, hi) = WIDTH - MARGIN, span
    scale = wide / (hi - lo)

    def x_of(time: float) -> float:
        return MARGIN + (min(max(time, lo), hi) - lo) * scale

    parts = [
        f'<svg class="timeline" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{text_of(said, 300)}">'
    ]
    parts += _axis(span, x_of, height)
    left, right = x_of(window[0]), x_of(window[1])
    tall = ROW * len(rows) + 6
    parts.append(_rect("span", left, _TOP - 4, right - left, tall))
    for start, end in _wide(lost, 0.5 / scale):
        parts.append(_rect("lost", x_of(start), _TOP - 4, (end - start) * scale, tall))
    for number, row in enumerate(rows):
        y = _TOP + ROW * number
        parts.append(f'<text class="lane" x="0" y="{y + 12}">{text_of(row.label)}</text>')
        parts += _shading(row, span, y)
        parts += _events(row, span, y, x_of)
    return "".join([*parts, "</svg>"])


def _wide(lost: intervals.Intervals | None, least: float) -> list[tuple[int, int]]:
    """Intervals that can be seen, at most a few hundred: the longest."""
    if lost is None:
        return []
    starts, ends = lost
    length = ends - starts
    kept = np.argsort(-length, kind="stable")[:_EVENTS]
    kept = kept[length[kept] >= least]
    return list(zip(starts[kept].tolist(), ends[kept].tolist(), strict=True))


def _axis(span: tuple[int, int], x_of: Callable[[float], float], height: int) -> Iterator[str]:
    lo, hi = span
    for number in range(5):
        time = lo + (hi - lo) * number // 4
        x, anchor = x_of(time), ("start", *["middle"] * 3, "end")[number]
        yield f'<path class="tick" d="M{x:.1f} {_TOP - 6}V{height}"/>'
        yield (
            f'<text class="axis" x="{x:.1f}" y="11" text-anchor="{anchor}">'
            f"{moment_text(time, (hi - lo) // 40, TimeFormat.AUTO)}</text>"
        )


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.0f}" '
        f'width="{max(width, 0.8):.1f}" height="{height:.0f}"/>'
    )


def _shading(row: _Row, span: tuple[int, int], y: int) -> Iterator[str]:
    """How busy the lane is where events are too short to be drawn one by one."""
    cells = (WIDTH - MARGIN) // 2
    edges = cell_edges(*span, cells)
    length = np.diff(edges)
    level = np.ceil(4 * row.lane.busy(edges) / np.maximum(length, 1)).astype(np.int64)
    starts = np.flatnonzero(np.diff(level, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), cells], strict=True):
        if level[start]:
            x = MARGIN + 2 * start
            yield (
                f'<rect class="busy {row.kind} b{level[start]}" x="{x}" y="{y + 1}" '
                f'width="{2 * (end - start)}" height="{ROW - 4}"/>'
            )


def _events(
    row: _Row, span: tuple[int, int], y: int, x_of: Callable[[float], float]
) -> Iterator[str]:
    """The longest events, each with its name."""
    lane, (lo, hi) = row.lane, span
    spots = lane.at_least(lo, hi, max((hi - lo) // 400, 1))
    if len(spots) > _EVENTS:
        length = lane.ends[spots] - lane.starts[spots]
        spots = np.sort(spots[np.argsort(-length, kind="stable")[:_EVENTS]])
    categories, rows = lane.categories(spots).tolist(), lane.rows(spots).tolist()
    for place, category, event in zip(spots.tolist(), categories, rows, strict=True):
        start, end = int(lane.starts[place]), int(lane.ends[place])
        x, width = x_of(start), x_of(end) - x_of(start)
        name = row.name(event)
        tip = f"{text_of(name, 120)}: {format_duration(end - start)} at {format_moment(start)}"
        kind = Category(category).name.lower()
        label = text_of(fit(plain_text(name), int((width - 4) / _CHAR)))
        yield (
            f'<g class="event {kind}"><title>{tip}</title>'
            f"{_rect('box', x, y + 1, width, ROW - 4)}"
            + (f'<text x="{x + 2:.1f}" y="{y + 12}">{label}</text>' if label else "")
            + "</g>"
        )


def step_chart(steps: IterationAnswer) -> str:
    """A bar for each step, the median as a line, outliers told apart."""
    iterations = steps.table.iterations
    length, count = iterations.duration, len(iterations)
    edges = np.unique(np.linspace(0, count, min(count, BARS) + 1).astype(np.int64))
    tallest = np.maximum.reduceat(length, edges[:-1])
    top, high = max(int(tallest.max()), 1), 180
    wide = (WIDTH - 70) / len(tallest)
    median = steps.whole.median
    said = f"{count} steps, median {format_duration(round(median))}, longest {format_duration(top)}"
    parts = [
        f'<svg class="steps" viewBox="0 0 {WIDTH} {high + 40}" role="img" aria-label="{said}">',
        *_heights(top, high),
    ]
    pairs = zip(edges[:-1].tolist(), edges[1:].tolist(), tallest.tolist(), strict=True)
    for number, (first, last, ns) in enumerate(pairs):
        row = first + int(np.argmax(length[first:last]))
        tall = high * ns / top
        kind = "bar out" if row in steps.outliers else "bar warm" if not row else "bar"
        name = text_of(iterations.labels[row])
        rest = f" (longest of {last - first})" if last - first > 1 else ""
        box = _rect(kind, 70 + number * wide, 10 + high - tall, max(wide - 1, 0.6), tall)
        parts.append(f"<g><title>{name}: {format_duration(ns)}{rest}</title>{box}</g>")
    y = 10 + high - high * median / top
    parts.append(f'<path class="median" d="M70 {y:.1f}H{WIDTH}"/>')
    parts.append(
        f'<text class="axis" x="70" y="{high + 30}">{text_of(iterations.labels[0], 40)}</text>'
        f'<text class="axis" x="{WIDTH}" y="{high + 30}" text-anchor="end">'
        f"{text_of(iterations.labels[count - 1], 40)}</text></svg>"
    )
    return "".join(parts)


def _heights(top: int, high: int) -> Iterator[str]:
    for part in range(5):
        y = 10 + high - high * part / 4
        yield f'<path class="tick" d="M70 {y:.1f}H{WIDTH}"/>'
        text = format_duration(top * part // 4)
        yield f'<text class="axis" x="64" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
