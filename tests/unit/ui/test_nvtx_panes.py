from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from synth import Synth

from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.analysis.iterations.table import StepTimes, step_times
from nsys_tui.reader import open_report
from nsys_tui.render.glyphs import ASCII
from nsys_tui.ui.screens.nvtx.detail import step_lines

if TYPE_CHECKING:
    from pathlib import Path

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


def test_bars_of_steps_that_are_in_no_statistics_are_marked_as_on_the_steps_screen(
    tmp_path: Path,
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for step in range(8):
        synth.nvtx(f"step {step}", step * 100, (step + 1) * 100 if step < 7 else None)
        synth.nvtx("forward", step * 100 + 10, step * 100 + 60)
    report = open_report(synth.write())
    iterations = find_iterations(report)
    rows = np.flatnonzero(np.diff(report.ranges.name, prepend=-1) != 0)
    steps = step_times(report, iterations, rows)
    top, *_, last = step_lines(steps, None, 80, 6, ASCII, iterations)
    text = "".join(part for part, _ in top)
    assert text.count("w") == 1
    assert text.count("?") == 1
    assert text.index("w") < text.index("?")
    assert "".join(part for part, _ in last).endswith("  w: warm-up, ?: never closed")
