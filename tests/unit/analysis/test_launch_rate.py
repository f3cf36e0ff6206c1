"""What a GPU idles because the next launch has not come yet, told as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from machine import Machine
from planted import FULL, US, bare
from synth import Synth

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.stalls.causes import Cause, Edge
from nsys_tui.analysis.stalls.gaps import stalls
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding


def told(run: Synth) -> list[Finding]:
    """Findings with a price of their own."""
    return [one for one in find_in(Case(open_report(run.write()))) if not one.same_as]


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


@pytest.mark.parametrize(
    ("apart", "took", "one_story"), [(60, 4, True), (40, 24, True), (400, 4, False)]
)
def test_gaps_as_long_as_launches_are_apart_are_one_story(
    tmp_path: Path, apart: int, took: int, one_story: bool
) -> None:
    """A kernel each 60 us; or of 24 us, but shorter than launches; or the host does more."""
    run = bare(tmp_path / "r.sqlite")
    for number in range(1000):
        at = number * apart * US
        run.launch("k", (at, at + 5 * US), (at + 6 * US, at + (6 + took) * US), grid=FULL)
    tiny = [one for one in told(run) if one.rule == "tiny_kernels"]
    idle = [one for one in told(run) if one.rule == "gpu_idle"]
    assert (len(tiny), bool(idle)) == (one_story, not one_story)
    if one_story:
        assert tiny[0].saved_ns == pytest.approx(999 * (apart - took - 1) * US, rel=0.01)


@pytest.mark.parametrize("long", [100 * US, 3 * US])
def test_launches_that_would_queue_without_the_waits_are_not_to_blame(
    tmp_path: Path, long: int
) -> None:
    """Launches 25 us apart, five of 3 us and ten of 100 us, then a wait: these alone empty it."""
    machine = Machine(tmp_path / "r.sqlite")
    for _ in range(200):
        for took in [3 * US] * 5 + [long] * 10:
            machine.launch("k", took)
            machine.now += 20 * US
        machine.wait()
    (tiny,) = [one for one in told(machine.report) if one.rule == "tiny_kernels"]
    assert tiny.advice.startswith("wait for the GPU less often") is (long > 25 * US)
    assert "CUDA graph" in tiny.advice


@pytest.mark.parametrize(("each", "waits"), [(1, True), (3, False)])
def test_short_kernels_that_the_host_waits_for_one_by_one_need_no_graph_first(
    tmp_path: Path, each: int, waits: bool
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for number in range(120):
        run.launch(("sweep", "edge")[number % 2], 14 * US)
        if number % each == 0:
            run.wait()
        run.now += 4 * US if each == 1 else 24 * US
    (one,) = [
        one for one in find_in(Case(open_report(run.report.write()))) if one.rule == "launch_bound"
    ]
    assert ("wait once for many of them, then" in one.advice) is waits
