"""What a timeline frame costs: run as a script, prints a table, asserts nothing.

    python tests/benchmarks/bench_render.py [events] [lanes] [columns]

Events are spread over lanes in three categories, back to back with small gaps. A floor stands
beside the figures: one binary search of the same edges in every lane.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.model.lanes import Lane, cell_edges
from nsys_tui.render.dominant import Layers
from nsys_tui.render.glyphs import ASCII, UNICODE
from nsys_tui.render.heatmap import heat
from nsys_tui.render.raster import LaneView, draw_lane
from nsys_tui.render.viewport import Viewport

if TYPE_CHECKING:
    from collections.abc import Callable

REPEATS = 5
NAMES = tuple(f"ns::kernel_{number}<float, {number}>(int)" for number in range(300))


def make_lane(seed: int, count: int) -> Lane:
    """Kernels of 0.5–8 us with gaps up to 4 us."""
    random = np.random.default_rng(seed)
    durations = random.integers(500, 8000, count)
    starts = np.cumsum(durations + random.integers(0, 4000, count)) - durations
    category = random.choice(3, count, p=(0.8, 0.1, 0.1)).astype(np.uint8)
    names = random.integers(0, len(NAMES), count).astype(np.int32)
    return Lane.build(starts, starts + durations, None, category, names)


def milliseconds(work: Callable[[], object]) -> float:
    """Median of some runs."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def frame_costs(
    lanes: list[Lane], views: list[LaneView], window: Viewport
) -> tuple[float, float, float, float]:
    """Milliseconds of: the floor, busy time, a frame in Unicode, a frame in ASCII."""
    edges = cell_edges(window.lo, window.hi, window.width)
    return (
        milliseconds(lambda: [np.searchsorted(lane.starts, edges) for lane in lanes]),
        milliseconds(lambda: [lane.busy(edges) for lane in lanes]),
        milliseconds(lambda: [draw_lane(view, window, UNICODE).runs() for view in views]),
        milliseconds(lambda: [draw_lane(view, window, ASCII).runs() for view in views]),
    )


def main(events: int = 5_000_000, lanes: int = 48, width: int = 200) -> None:
    """Prints the table."""
    start = time.perf_counter()
    made = [make_lane(seed, events // lanes) for seed in range(lanes)]
    built = time.perf_counter()
    layers = [Layers.build(lane) for lane in made]
    layered = time.perf_counter()
    sizes = [sum(s[0][0].nbytes * 3 for s in layer.sets if s) for layer in layers]
    print(f"{events:,} events, {lanes} lanes x {width} columns")
    print(f"generate and build lanes {built - start:.2f} s")
    print(f"layers {layered - built:.2f} s, {sum(sizes) / 1e6:.0f} MB")
    views = [
        LaneView(lane, lambda row: NAMES[row % len(NAMES)], layer, idle=100_000)
        for lane, layer in zip(made, layers, strict=True)
    ]
    whole = max(int(lane.ends[-1]) for lane in made)
    print(f"{'window':>12} {'floor':>7} {'busy':>7} {'unicode':>8} {'ascii':>7}  ms a frame")
    for zoom in (1, 8, 64, 512, 4096, 32768, 262144):
        span = whole // zoom
        window = Viewport(whole // 3, whole // 3 + span, width)
        floor, busy, blocks, plain = frame_costs(made, views, window)
        print(f"{span / 1e6:9.3f} ms {floor:7.2f} {busy:7.2f} {blocks:8.1f} {plain:7.1f}")
    ranks = np.random.default_rng(0).random((1024, 500))
    cost = milliseconds(lambda: heat(ranks, 1024 // 16, width, UNICODE))
    print(f"heat map of 1,024 ranks x 500 bins: {cost:.1f} ms")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
