"""Drawn lanes against loops over events: coverage, colours, and that nothing is invisible."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.model.lanes import Lane, split
from nsys_tui.render.blocks import find_blocks
from nsys_tui.render.cells import Ink, parts
from nsys_tui.render.dominant import Layers, dominant
from nsys_tui.render.glyphs import ASCII, UNICODE, UNICODE_ANSI, UNICODE_MONO
from nsys_tui.render.raster import LaneView, draw_lane
from nsys_tui.render.viewport import Viewport

Event: TypeAlias = tuple[int, int, int]

durations = st.sampled_from((0, 0, 1, 2)) | st.integers(0, 30)
scattered = st.lists(
    st.tuples(st.integers(-40, 60), durations, st.integers(0, 3)).map(
        lambda e: (e[0], e[0] + e[1], e[2])
    ),
    max_size=16,
)


def one_by_one(steps: list[Event]) -> list[Event]:
    time, chain = -40, []
    for gap, duration, code in steps:
        chain.append((time + gap, time + gap + duration, code))
        time += gap + duration
    return chain


chained = st.lists(
    st.tuples(st.sampled_from((0, 0, 1, 4)), durations, st.integers(0, 3)), max_size=16
).map(one_by_one)
events = scattered | chained
windows = st.tuples(st.integers(-70, 60), st.integers(1, 90), st.integers(1, 14)).map(
    lambda w: Viewport(w[0], w[0] + w[1], w[2], (-60, 100))
)
glyph_sets = st.sampled_from((ASCII, UNICODE, UNICODE_ANSI, UNICODE_MONO))
few = settings(max_examples=100, deadline=None)


def lane_of(items: list[Event]) -> Lane:
    table = np.array(items, np.int64).reshape(-1, 3)
    return Lane.build(table[:, 0], table[:, 1], None, table[:, 2].astype(np.uint8))


def cells_of(window: Viewport) -> list[range]:
    return [range(a, b) for a, b in zip(window.edges[:-1], window.edges[1:], strict=True)]


def covered(items: list[Event], code: int | None = None) -> set[int]:
    return {ns for s, e, c in items for ns in range(s, e) if code is None or c == code}


@few
@given(events, windows, st.booleans())
def test_dominant_code_of_each_cell(items: list[Event], window: Viewport, prebuilt: bool) -> None:
    for lane in (lane_of(items), *split(lane_of(items))):
        mine = [items[row] for row in lane.index]
        layers = Layers.build(lane) if prebuilt else None
        found = dominant(lane, window.edges, None, layers)
        for cell, code in zip(cells_of(window), found.tolist(), strict=True):
            busy = {c: len(covered(mine, c) & set(cell)) for *_, c in mine}
            starting = [c for s, _, c in mine if s in cell]
            if any(busy.values()):
                assert code == min(c for c in busy if busy[c] == max(busy.values()))
            elif starting:
                assert code in starting


@few
@given(events, windows)
def test_blocks_leave_the_rest_to_density(items: list[Event], window: Viewport) -> None:
    for lane in split(lane_of(items)):
        mine = [items[row] for row in lane.index]
        blocks = find_blocks(lane, window)
        drawn = [mine[spot] for spot in blocks.spots]
        others = [event for place, event in enumerate(mine) if place not in blocks.spots.tolist()]
        assert (blocks.first[1:] >= blocks.last[:-1]).all()
        assert (blocks.last > blocks.first).all()
        for number, cell in enumerate(cells_of(window)):
            assert blocks.busy[number] == len(covered(mine) & set(cell))
            assert blocks.other_busy[number] == len(covered(mine) & set(cell) - covered(drawn))
            assert blocks.other_starts[number] == sum(s in cell for s, *_ in others)
            owner = blocks.owner[number]
            assert owner == next(
                (k for k in range(len(drawn)) if blocks.first[k] <= number < blocks.last[k]), -1
            )
            if owner >= 0 and blocks.other_starts[number]:
                assert blocks.last[owner] - blocks.first[owner] == 1


@few
@given(events, windows, glyph_sets, st.none() | st.integers(0, 9))
def test_no_event_is_invisible(
    items: list[Event], window: Viewport, glyphs: object, idle: int | None
) -> None:
    for lane in split(lane_of(items)):
        row = draw_lane(LaneView(lane, idle=idle), window, glyphs)  # type: ignore[arg-type]
        assert len(row.chars) == len(row.styles) == window.width
        painted = [
            parts(int(code)).ink >= Ink.CATEGORY or parts(int(code)).ground >= Ink.CATEGORY
            for code in row.styles
        ]
        for position in range(len(lane)):
            start, end = int(lane.starts[position]), int(lane.ends[position])
            touched = [
                number
                for number, cell in enumerate(cells_of(window))
                if start in cell or (start < cell.stop and end > cell.start)
            ]
            assert not touched or any(painted[number] for number in touched)


@few
@given(events, windows)
def test_shading_is_coverage_in_eighths(items: list[Event], window: Viewport) -> None:
    row = draw_lane(LaneView(lane_of(items), summary=True), window, UNICODE)
    for char, cell in zip(row.chars, cells_of(window), strict=True):
        busy = len(covered(items) & set(cell))
        steps = -(-busy * 8 // len(cell)) or any(s in cell for s, *_ in items)
        assert char == " ▁▂▃▄▅▆▇█"[steps]


@few
@given(events, windows, st.integers(0, 40))
def test_idle_marks_are_long_gaps_inside_the_capture(
    items: list[Event], window: Viewport, threshold: int
) -> None:
    row = draw_lane(LaneView(lane_of(items), summary=True, idle=threshold), window, ASCII)
    busy = covered(items)
    for char, cell in zip(row.chars, cells_of(window), strict=True):
        left = max([ns + 1 for ns in busy if ns < cell.start], default=-60)
        right = min([ns for ns in busy if ns >= cell.start], default=100)
        used = busy & set(cell) or any(s in cell for s, *_ in items)
        inside = cell.start >= -60 and cell.stop <= 100
        assert (char == ".") == (not used and inside and right - left > threshold)
