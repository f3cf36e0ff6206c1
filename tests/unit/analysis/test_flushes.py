"""Benchmarks that empty the L2 cache before each launch that they measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import FULL, MS, US, Machine
from planted import bare

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.rules.verdict import verdict
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from synth import Synth


@pytest.fixture
def run(tmp_path: Path) -> Synth:
    return bare(tmp_path / "r.sqlite")


@pytest.mark.parametrize(
    ("call", "size", "asks"),
    [
        ("EventRecord", 10**9, 0),
        ("EventRecord", 10**9, 1),
        ("EventRecord", 10**6, 0),
        ("", 10**9, 0),
    ],
)
def test_a_cache_emptied_before_what_is_timed_is_no_waste(
    run: Synth, call: str, size: int, asks: int
) -> None:
    """Small memsets empty no cache, others come before work that no event times.

    Calls of other threads do not come between.
    """
    for number in range(40):
        start, corr = number * MS, run.next_correlation()
        run.api("cudaMemsetAsync_v3020", start, start + 5 * US, corr=corr)
        run.api(f"cuda{call or 'GetLastError'}_v3020", start + 6 * US, start + 8 * US)
        if asks:
            run.api("cudaGetDevice_v3020", start + 5 * US, start + 7 * US, tid=99)
        run.memset(start + 10 * US, start + 600 * US, bytes=size, corr=corr)
        after = (start + 10 * US, start + 15 * US), (start + 601 * US, start + 990 * US)
        run.launch("gemm", *after, grid=FULL)
    case = Case(open_report(run.write()))
    told = [one.severity for one in find_in(case) if "memsets" in one.subject]
    waste = not call or size < 10**9
    assert (told != [Severity.LOW]) is waste
    assert ("memsets" in verdict(case, find_in(case))) is waste


def measured(path: Path, lone: int, cleared: int, cache: int | None) -> list[Severity]:
    """How grave findings are where the host waits, then holds the stream up, then measures."""
    m = Machine(path, gpus=0)
    m.report.gpu(0, l2CacheSize=cache)
    for _ in range(200):
        corr = m.report.next_correlation()
        m.call("cudaMemsetAsync_v3020", 5 * US, corr)
        m.report.memset(m.now, m.now + 40 * US, bytes=cleared, corr=corr)
        m.free[0, 7] = m.now + 40 * US
        m.wait()
        call = m.report.next_correlation()
        m.call("cudaLaunchKernel_v7000", 5 * US, call)
        shape = (lone, 1, 1)
        m.report.kernel("hold", m.now, m.now + 10 * US, corr=call, grid=shape, block=shape)
        m.free[0, 7] = m.now + 10 * US
        m.call("cudaEventRecord_v3020", 2 * US)
        m.launch("measured", 30 * US)
        m.call("cudaEventRecord_v3020", 2 * US)
        m.wait()
    case = Case(open_report(m.report.write()))
    return [one.severity for one in find_in(case)]


@pytest.mark.parametrize(("cleared", "cache"), [(36_000_000, None), (6_000_000, 6_000_000)])
def test_what_a_benchmark_waits_for_is_no_waste(
    tmp_path: Path, cleared: int, cache: int | None
) -> None:
    """It clears the whole cache, waits, and holds up the stream by a kernel of one thread."""
    assert {*measured(tmp_path / "r.sqlite", 1, cleared, cache)} == {Severity.LOW}


@pytest.mark.parametrize(
    ("lone", "cleared", "cache"),
    [(108, 36_000_000, None), (1, 6_000_000, None), (1, 6_000_000, 10_000_000)],
)
def test_memsets_before_work_are_no_benchmark(
    tmp_path: Path, lone: int, cleared: int, cache: int | None
) -> None:
    """What uses the whole GPU is work of the program; less than a cache is emptied otherwise."""
    assert Severity.HIGH in measured(tmp_path / "r.sqlite", lone, cleared, cache)


@pytest.mark.parametrize("share", [0, 60])
def test_memsets_are_no_part_of_copies(run: Synth, share: int) -> None:
    """A tenth of the time: to clear less may be no choice, and what is copied has its own price."""
    for start in range(0, 100 * MS, MS):
        run.memset(start, start + 100 * US, bytes=50_000_000)
        begun = start + 110 * US
        if share:
            run.memcpy(begun, begun + share * US, bytes=600_000, src="pinned")
        at = start + 200 * US
        run.launch("gemm", (at - 50 * US, at - 45 * US), (at, start + 990 * US), grid=FULL)
        run.api("cudaStreamSynchronize_v3020", at - 40 * US, start + 995 * US)
    case = Case(open_report(run.write()))
    told = [one.saved_ns for one in find_in(case) if one.rule == "exposed_copies"]
    assert told == [100 * share * US] * bool(share)
