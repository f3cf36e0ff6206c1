"""Idle gaps that come once, at a rate, or far more rarely than the waits before them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from machine import FULL, Machine
from planted import MS, US
from synth import Synth

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.rules.verdict import verdict
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding

FRAME = 33_333_333


def told(synth: Synth) -> tuple[list[Finding], str]:
    findings = find_in(case := Case(open_report(synth.write(), use_cache=False)))
    return findings, verdict(case, findings)


@pytest.mark.parametrize(("every", "blamed"), [(1, True), (40, False)])
def test_a_wait_is_to_blame_for_no_pause_far_longer_than_it(
    tmp_path: Path, every: int, blamed: bool
) -> None:
    """A result is read in each step; the host works for 4 ms then, or for 160 after each 40th."""
    run = Machine(tmp_path / "r.sqlite")
    for step in range(200):
        run.launch("train", 5 * MS)
        run.copy(8, 1, "DtoH")
        run.now += (step % every == every - 1) * every * 4 * MS
    (one,) = [one for one in told(run.report)[0] if "nothing recorded" in one.title]
    assert " after cudaMemcpy" in one.title
    assert one.advice.startswith("read results later") is blamed


@pytest.mark.parametrize(("spread", "paced"), [(0.2 * MS, True), (3 * MS, False)])
def test_a_wait_is_for_a_tick_where_the_work_after_it_begins_by_a_clock(
    tmp_path: Path, spread: float, paced: bool
) -> None:
    """A camera is awaited for half of each period: the host prepares and draws in the other."""
    run, chance = Machine(tmp_path / "r.sqlite"), np.random.default_rng(7)
    for tick in (np.arange(1, 121) * FRAME + np.cumsum(chance.normal(0, 1, 120))).tolist():
        run.off("poll", max(int(tick + chance.normal(0, spread)) - run.now, US))
        run.now += int(chance.normal(6 * MS, MS / 4))
        run.launch("detect", 6 * MS)
        run.wait()
        run.now += 4 * MS
    (one,) = [one for one in told(run.report)[0] if ": poll" in one.title]
    assert ("waits for the next tick" in one.title) is paced


@pytest.mark.parametrize("steps", [1, 4])
def test_a_wait_for_another_rank_that_comes_once_has_no_price(tmp_path: Path, steps: int) -> None:
    """One rank enters the barrier 60 ms before the other: in some of 40 rounds of 4 ms."""
    synth, now = Synth(tmp_path / "r.sqlite"), 0
    for gpu in (0, 1):
        synth.process(10 + gpu, "rank").gpu(gpu)
    for step in range(40):
        late = 60 * MS if 5 <= step < 5 + steps else 0
        for gpu in (0, 1):
            synth.process(10 + gpu)
            synth.mpi("MPI_Barrier", now, now + late + 20 * US)
            call, work = (now + late + 30 * US, now + late + 35 * US), now + late + 40 * US
            span = (work, work + 4 * MS)
            synth.launch("k", call, span, device=gpu, context=gpu + 1, grid=FULL)
        now += late + 4 * MS + 50 * US
    findings, line = told(synth)
    most = max((one for one in findings if "MPI" in one.title), key=lambda one: one.stake_ns)
    assert (most.saved_ns > 0) is (steps > 1)
    assert "MPI" in line
    assert "not recorded" not in line


@pytest.mark.parametrize("paced", [True, False])
def test_rendering_that_may_be_paced_is_no_grave_fault(tmp_path: Path, paced: bool) -> None:
    """Frames of 1 ms, 16.2 ms apart: no call tells whether that is meant."""
    synth, chance = Synth(tmp_path / "r.sqlite").process(100), np.random.default_rng(7)
    for at in np.cumsum(chance.normal(16.2 * MS, 60 * US, 200)).astype(int).tolist():
        synth.render("VULKAN", at, at + MS, call="vkQueueSubmit")
        if not paced:
            synth.launch("k", (at + 2 * MS, at + 2 * MS + 5 * US), (at + 3 * MS, at + 4 * MS))
    first, *_ = told(synth)[0]
    assert (first.severity is Severity.HIGH) is not paced
