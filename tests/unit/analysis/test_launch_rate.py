"""What a GPU idles because the next launch has not come yet, told as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from planted import US
from synth import Synth

from nsys_tui.analysis.stalls.causes import Cause, Edge
from nsys_tui.analysis.stalls.gaps import stalls
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path) -> Synth:
    return Synth(tmp_path / "r.sqlite").process(10, "train")


@pytest.mark.parametrize(("late", "cause"), [(25, Cause.LAUNCH_LATENCY), (45, Cause.STREAM)])
def test_work_on_its_way_as_long_as_that_of_idle_gpus_waits_for_nothing(
    run: Synth, late: int, cause: Cause
) -> None:
    """Each second kernel comes 15 us after its call to an idle GPU; the others' calls are over."""
    for number in range(30):
        at = 200 * US * number
        run.launch("k", (at, at + 5 * US), (at + 20 * US, at + 40 * US))
        run.launch("k", (at + 30 * US, at + 35 * US), (at + (35 + late) * US, at + 90 * US))
    gaps = stalls(open_report(run.write())).gaps
    inner = gaps.take(gaps.edge == Edge.INNER)
    assert np.unique(inner.cause[::2]).tolist() == [cause]
