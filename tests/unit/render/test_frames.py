"""The timeline pane of the 80x24 design as one text frame: margin, axis and lanes together."""

from __future__ import annotations

import numpy as np

from nsys_tui.model.categories import Category
from nsys_tui.model.lanes import Lane
from nsys_tui.render.axis import draw_axis
from nsys_tui.render.cells import Row, as_text, join, text_row
from nsys_tui.render.counters import draw_counter
from nsys_tui.render.glyphs import ASCII
from nsys_tui.render.labels import Fold, lane_label
from nsys_tui.render.raster import LaneView, draw_lane
from nsys_tui.render.viewport import Viewport

COLUMN = 700_000
START = 2_100_000_000
WIDTH = 68
WINDOW = Viewport(START, START + WIDTH * COLUMN, WIDTH)
C, N, M = Category.COMPUTE, Category.COMM, Category.MEMORY


def lane(*events: tuple[float, float, str], category: Category = C, **options: object) -> Row:
    """Events by first and last column."""
    starts = np.array([START + round(first * COLUMN) for first, *_ in events], np.int64)
    ends = np.array([START + round(last * COLUMN) for _, last, _ in events], np.int64)
    texts = [text for *_, text in events]
    codes = np.array([texts.index(text) for text in texts], np.int32)
    made = Lane.build(starts, ends, None, category, codes)
    return draw_lane(LaneView(made, lambda row: texts[row], **options), WINDOW, ASCII)  # type: ignore[arg-type]


def tiny(first: float, last: float, count: int, text: str) -> list[tuple[float, float, str]]:
    step = (last - first) / count
    return [(first + k * step, first + (k + 0.9) * step, text) for k in range(count)]


def device() -> Row:
    spans = [(0, 8, C), (8, 9, N), (9, 13, C), (13, 14, M), (14, 35, C), (41, 51, C), (51, 52, N)]
    spans.append((52, 68, C))
    made = Lane.build(
        [START + first * COLUMN for first, *_ in spans],
        [START + last * COLUMN for _, last, _ in spans],
        None,
        np.array([category for *_, category in spans], np.uint8),
    )
    explained = np.array([START + 41 * COLUMN], np.int64)
    view = LaneView(made, summary=True, idle=2 * COLUMN, explained=explained)
    return draw_lane(view, WINDOW, ASCII)


def seconds(ns: int, step: int) -> str:
    return f"{ns / 1e9:.{max(0, 10 - len(str(step)))}f} s"


def wave() -> Row:
    times = START + np.arange(WIDTH, dtype=np.int64) * COLUMN
    values = np.resize(np.array([1, 2, 3, 4, 7, 7, 8, 8, 7, 7]), WIDTH)
    return draw_counter(times, values, WINDOW, ASCII, top=8)


def test_the_timeline_pane() -> None:
    stream = [(0, 13, "gemm_bf16_128x256"), (13, 22, "flash_fwd"), *tiny(22, 26, 38, "add")]
    stream += [(26, 40, "gemm_bf16_128x256"), (46, 59, "gemm_bf16"), (59, 68, "flash_fwd")]
    calls = [*tiny(0, 11, 112, "launch"), *tiny(19, 28, 96, "launch"), *tiny(62, 73, 108, "launch")]
    lanes = [
        (lane_label("time", 10, ASCII), draw_axis(WINDOW, seconds, ASCII)),
        (
            lane_label("NVTX", 10, ASCII, fold=Fold.OPEN),
            lane((0, 45, "step 4"), (45, 90, "step 5"), category=Category.NVTX),
        ),
        (
            lane_label("d1", 10, ASCII, depth=1),
            lane((0, 16, "fwd"), (16, 38, "bwd"), (38, 45, "opt"), category=Category.NVTX),
        ),
        (lane_label("GPU 0", 10, ASCII, fold=Fold.OPEN), device()),
        (lane_label("str 7", 10, ASCII, depth=1, current=True), lane(*stream)),
        (
            lane_label("str 28", 10, ASCII, depth=1),
            lane((12, 28, "AllReduce"), (30, 48, "AllReduce"), (58, 80, "AllReduce"), category=N),
        ),
        (
            lane_label("copy", 10, ASCII, depth=1),
            lane((3, 8, "H2D"), (20, 22, "H2D"), (43, 43.2, "D2H"), category=M),
        ),
        (
            lane_label("tid 1", 10, ASCII, depth=1),
            lane(*calls, category=Category.API),
        ),
        (
            lane_label("sync", 10, ASCII, depth=1),
            lane((35, 62, "cudaStreamSynchronize"), category=Category.SYNC),
        ),
        (lane_label("osrt", 10, ASCII, depth=1), lane((0, 99, "poll"), category=Category.OSRT)),
        (lane_label("GPU util", 10, ASCII), wave()),
    ]
    frame = as_text(join(text_row(label), row) for label, row in lanes)
    assert frame.splitlines() == [
        " time     |2.10         |2.11         |2.12         |2.13          |2.14 s    ",
        " v NVTX   [step 4 ------------------------------------][step 5 ---------------",
        "   d1     [fwd ----------][bwd ----------------][opt -]                       ",
        " v GPU 0  ########=####:#####################!!!!!!##########=################",
        "  >str 7  [gemm_bf16~#][flash~#]####[gemm_bf16_1~]      [gemm_bf16##][flash~#]",
        "   str 28             [AllReduce=====]  [AllReduce=======]          [AllReduce",
        "   copy      [H2D]            [:                     m                        ",
        "   tid 1  +++++++++++        +++++++++                                  ++++++",
        "   sync                                      [cudaStreamSynchronize !!!]      ",
        "   osrt   [poll oooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooo",
        " GPU util .:-=%%##%%.:-=%%##%%.:-=%%##%%.:-=%%##%%.:-=%%##%%.:-=%%##%%.:-=%%##",
    ]
    assert {len(line) for line in frame.splitlines()} == {78}


def test_a_thread_without_name_keeps_its_number_where_room_is_short() -> None:
    assert lane_label("tid 4716", 10, ASCII, depth=2).strip() == "4716"
    assert lane_label("tid 4716", 16, ASCII, depth=2).strip() == "tid 4716"
