"""Idle gaps told by the calls around them, by pages and files, and those that are of copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import Machine
from planted import MS, US

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding

LARGE = 8_000_000
PIECE = 16 << 20


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


def trains(path: Path, size: Callable[[int], int], host: int, *, rounds: int) -> Machine:
    """Kernels on arrays that come in pieces, each after the host had some time for it."""
    run = Machine(path)
    for _ in range(rounds):
        for number in range(8):
            run.now += host
            run.copy(size(number), 24, "HtoD")
        run.launch("sweep", MS)
        run.wait()
    return run


def staged(findings: list[Finding]) -> list[Finding]:
    return [one for one in findings if one.subject == "staging pieces of copies"]


@pytest.mark.parametrize(
    ("size", "host"),
    [
        (lambda _: PIECE, 8 * MS),
        (lambda number: PIECE + number, 1_600 * US),
        (lambda _: 64 << 10, 6 * US),
    ],
)
def test_copies_that_differ_or_come_late_are_no_pieces(
    size: Callable[[int], int], host: int, tmp_path: Path
) -> None:
    assert not staged(found(trains(tmp_path / "r.sqlite", size, host, rounds=6)))


def test_gaps_within_trains_of_equal_copies_belong_to_these(tmp_path: Path) -> None:
    findings = found(trains(tmp_path / "r.sqlite", lambda _: PIECE, 1_600 * US, rounds=6))
    assert staged(findings) == findings[:1]
    assert findings[0].saved_ns == pytest.approx(5 * 7 * 1_600 * US, rel=0.01)
    assert findings[0].stake_ns == pytest.approx(6 * 7 * 1_600 * US, rel=0.01)
    (copies,) = [one for one in findings if one.rule == "exposed_copies"]
    assert copies.advice == findings[0].advice
    assert "keep the data on the GPU" in copies.advice


def test_what_is_staged_once_has_no_price(tmp_path: Path) -> None:
    findings = found(trains(tmp_path / "r.sqlite", lambda _: PIECE, 1_600 * US, rounds=1))
    assert [(one.saved_ns, one.severity <= Severity.MEDIUM) for one in staged(findings)] == [
        (0, True)
    ]
