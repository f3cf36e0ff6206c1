"""Who waits for whom: clocks, people, other ranks and threads, and runs that nearly do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import FULL, US, Machine
from planted import bare
from synth import Synth

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding


def found(synth: Synth, rule: str) -> list[Finding]:
    case = Case(open_report(synth.write(), use_cache=False))
    return [one for one in find_in(case) if one.rule == rule]


@pytest.mark.parametrize(
    ("call", "lasts", "bound"),
    [
        ("MPI_Sendrecv", 25 * US, False),
        ("MPI_Iprobe", 2 * US, True),
        ("sched_yield", 25 * US, False),
    ],
)
def test_gaps_in_calls_that_launch_nothing_are_not_bound_by_launches(
    tmp_path: Path, call: str, lasts: int, bound: bool
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(400):
        run.launch("stencil", 4 * US)
        run.now += 3 * US
        if call.startswith("MPI"):
            run.report.mpi(call, run.now, run.now + lasts, "p2p", size=64)
            run.now += lasts
        else:
            run.off(call, lasts)
    synth = run.report
    assert bool(found(synth, "launch_bound")) is bound
    assert any(call in one.title for one in found(synth, "gpu_idle")) is not bound


@pytest.mark.parametrize(("launches", "graph"), [(2, False), (40, True)])
def test_no_graph_holds_what_the_host_decides_by_each_result(
    tmp_path: Path, launches: int, graph: bool
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(800 // launches):
        for _ in range(launches):
            run.launch("sweep", 4 * US)
            run.now += 8 * US
        run.copy(4, 10, "DtoH", "pageable")
    (one,) = found(run.report, "launch_bound")
    assert ("CUDA graph" in one.advice) is graph


@pytest.mark.parametrize(("stagger", "stages"), [(US, False), (40 * US, True)])
def test_gpus_that_exchange_at_one_time_are_no_stages(
    tmp_path: Path, stagger: int, stages: bool
) -> None:
    synth = bare(tmp_path / "r.sqlite").gpu(1).gpu(2)
    for step in range(200):
        for gpu in range(3):
            at = step * 200 * US + gpu * stagger
            parts = (("stencil", 10, 20), ("ncclDevKernel_SendRecv", 20, 34 + gpu))
            for name, begun, ended in parts:
                work = (at + begun * US, at + ended * US)
                synth.launch(name, (at, at + 4 * US), work, device=gpu, grid=FULL)
    (one,) = found(synth, "exposed_communication")[:1]
    assert ("stages wait" in one.advice) is stages
    assert ("exchange more at once" in one.advice) is not stages
