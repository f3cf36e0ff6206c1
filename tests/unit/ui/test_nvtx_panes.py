from __future__ import annotations

import numpy as np
import pytest

from nsys_tui.analysis.iterations.table import StepTimes
from nsys_tui.render.glyphs import ASCII
from nsys_tui.ui.screens.nvtx.detail import step_lines

SLOW = (3, 9, 14)


@pytest.mark.parametrize(("width", "named"), [(78, 1), (160, 3)])
def test_as_many_outliers_are_named_as_fit_and_the_others_counted(width: int, named: int) -> None:
    time = np.full(16, 1_000_000)
    time[list(SLOW)] = 1_100_000
    rows = np.arange(16)
    rows[1] = -1
    steps = StepTimes(tuple("s" * 16), time, rows, outside=45, by_iteration=True)
    *_, last = step_lines(steps, None, width, 6, ASCII)
    text = "".join(part for part, _ in last)
    assert len(text) <= width
    assert text.count("z=") == named
    assert ("2 more" in text) == (named == 1)
    assert text.endswith("in 15 of 16 iterations, 45 outside")


def test_bars_of_several_instances_are_told_beside_the_outliers() -> None:
    time = np.full(100, 1_000_000)
    time[list(SLOW)] = 1_100_000
    steps = StepTimes(tuple("s" * 100), time, np.arange(100), outside=0, by_iteration=False)
    *_, last = step_lines(steps, None, 78, 6, ASCII)
    text = "".join(part for part, _ in last)
    assert len(text) <= 78
    assert text.startswith("outlier: instance 3 ")
    assert text.endswith(", 2 more  bar: 2 instances, the slowest")
    *_, of_chosen, last = step_lines(steps, 50, 78, 6, ASCII)
    assert "".join(part for part, _ in of_chosen).endswith("  bar: 2 instances, the slowest")
    assert "bar: " not in "".join(part for part, _ in last)
