from __future__ import annotations

import pytest

from nsys_tui.render.glyphs import ASCII, UNICODE
from nsys_tui.render.labels import Fold, lane_label

FRAME = [
    ("NVTX", 0, Fold.OPEN, False, " v NVTX   "),
    ("d1", 1, Fold.LEAF, False, "   d1     "),
    ("str 7", 1, Fold.LEAF, True, "  >str 7  "),
    ("GPU util", 0, Fold.LEAF, False, " GPU util "),
    ("GPU 0", 0, Fold.CLOSED, True, ">> GPU 0  "),
    ("ncclDevKernel_AllReduce", 1, Fold.LEAF, False, "   ncclD~ "),
    ("python3 145", 0, Fold.OPEN, False, " v py~145 "),
    ("lvl 3", 1, Fold.OPEN, False, "   v lvl3 "),
    ("tid 123456", 0, Fold.OPEN, False, " v 123456 "),
]


@pytest.mark.parametrize(("text", "depth", "fold", "current", "expected"), FRAME)
def test_margin_labels(text: str, depth: int, fold: Fold, current: bool, expected: str) -> None:
    assert lane_label(text, 10, ASCII, depth=depth, fold=fold, current=current) == expected


def test_margin_labels_are_safe() -> None:
    assert lane_label("a\x1b[m", 10, UNICODE, fold=Fold.OPEN) == " ▾ a␛[m   "
