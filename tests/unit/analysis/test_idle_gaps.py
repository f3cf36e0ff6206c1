"""Idle gaps told by the calls around them, by pages and files, and those that are of copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import Machine
from planted import MS, US

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding

LARGE = 8_000_000


def found(run: Machine) -> list[Finding]:
    return find_in(Case(open_report(run.report.write(), use_cache=False)))


def waits(run: Machine) -> None:
    run.wait()


def reads(run: Machine) -> None:
    run.copy(LARGE, 12, "DtoH")


def reads_and_frees(run: Machine) -> None:
    reads(run)
    run.call("cudaFree_v3020", 20 * US)


def reads_a_little(run: Machine) -> None:
    run.wait()
    run.copy(8, 1, "DtoH")


def uploads(run: Machine) -> None:
    run.copy(LARGE, 12, "HtoD")


@pytest.mark.parametrize(
    ("ends", "where", "advice"),
    [
        (waits, " after cudaDeviceSynchronize", "wait later"),
        (reads, " after cudaMemcpy", "launch the next batch before working on these results"),
        (reads_and_frees, " between cudaFree and cudaMalloc", "record what it does"),
        (reads_a_little, " after cudaMemcpy", "wait later"),
        (uploads, " between cudaMemcpy and cudaMalloc", "record what it does"),
    ],
)
def test_an_unseen_host_is_told_by_the_calls_around_its_time(
    ends: Callable[[Machine], None], where: str, advice: str, tmp_path: Path
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(20):
        run.call("cudaMalloc_v3020", 20 * US)
        run.launch("sweep", 2 * MS)
        ends(run)
        run.now += 4 * MS
    first = found(run)[0]
    assert first.title.endswith(f"gaps{where}, nothing recorded")
    assert first.advice.startswith(advice)


@pytest.mark.parametrize("sets_up", [0, 60 * MS])
def test_a_call_that_sets_cuda_up_is_no_wait_for_the_gpu(sets_up: int, tmp_path: Path) -> None:
    run = Machine(tmp_path / "r.sqlite")
    run.call("cudaMemcpyToSymbol_v3020", sets_up)
    for _ in range(100):
        run.launch("sweep", 20 * US)
        run.copy(2_500, 1, "DtoH")
        run.now += 300 * US
    assert not any("wait later" in one.advice for one in found(run))
