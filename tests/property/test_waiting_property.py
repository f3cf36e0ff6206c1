"""Waiting in collectives against a loop over every nanosecond of small planted schedules."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make
from synth import Synth

from nsys_tui.analysis.breakdown import coverages
from nsys_tui.analysis.nccl.waiting import Waits, collective_waits, waiting_of
from nsys_tui.analysis.overview import overview
from nsys_tui.analysis.window import Scope
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.model.report import Report

Kernel = tuple[str, int, int, int]
"""Name, start, end and stream."""
OPERATIONS = ("AllReduce", "AllGather", "ReduceScatter")


def schedule(rng: random.Random, ranks: int) -> tuple[list[list[Kernel]], list[set[int]]]:
    """Kernels of each rank, and when each waits: nanosecond + 10,000 x stream."""
    kernels: list[list[Kernel]] = [[] for _ in range(ranks)]
    waiting: list[set[int]] = [set() for _ in range(ranks)]
    for stream in range(rng.choice((1, 2))):
        now = [rng.randrange(40) for _ in range(ranks)]
        for _ in range(rng.randrange(3, 7)):
            name = rng.choice(OPERATIONS) + ("_a" if stream else "")
            starts = [t + rng.randrange(1, 30) for t in now]
            done = max(starts) + rng.randrange(1, 20)
            for rank, start in enumerate(starts):
                kernels[rank].append((f"ncclDevKernel_{name}_RING(int)", start, done, 20 + stream))
                waiting[rank] |= {(20 + stream) * 10_000 + t for t in range(start, max(starts))}
            now = [done + rng.randrange(20) for _ in range(ranks)]
    for rank in range(ranks):
        for _ in range(rng.randrange(4)):
            start = rng.randrange(200)
            kernels[rank].append(("gemm(int)", start, start + rng.randrange(1, 50), 7))
    return kernels, waiting


def write(path: Path, kernels: list[list[Kernel]], *, named: bool) -> Report:
    """One process a rank; ``named`` ones have the ranges that NCCL writes."""
    synth = Synth(path)
    for rank, mine in enumerate(kernels):
        synth.process(10 + rank).gpu(rank).cuda_device(10 + rank, 0, rank)
        if named:
            for comm in (20, 21):
                fields = {"NCCL communicator ID": comm, "No. of ranks": len(kernels), "Rank": rank}
                synth.nvtx("ncclCommInitRank", -9_000, -8_990, json=json.dumps(fields))
        for place, (name, start, end, stream) in enumerate(sorted(mine, key=lambda k: k[1])):
            at = -5_000 + 20 * place
            operation = name.removeprefix("ncclDevKernel_").split("_")[0]
            if named and operation in OPERATIONS:
                fields = {"NCCL communicator ID": stream, "Message size [bytes]": 4096}
                synth.nvtx(f"nccl{operation}", at, at + 10, json=json.dumps(fields))
            synth.launch(name, (at + 2, at + 4), (start, end), stream=stream)
    return open_report(synth.write(), use_cache=False)


def by_hand(mine: list[Kernel], waiting: set[int], window: tuple[int, int]) -> tuple[int, int]:
    """Nanoseconds in which all communication waits, and those of them without compute."""
    whole = bare = 0
    for t in range(*window):
        running = [kernel for kernel in mine if kernel[1] <= t < kernel[2]]
        comm = [kernel for kernel in running if kernel[0].startswith("nccl")]
        if not comm or any(not _waits(kernel, t, waiting) for kernel in comm):
            continue
        whole += 1
        bare += len(comm) == len(running)
    return whole, bare


def _waits(kernel: Kernel, t: int, waiting: set[int]) -> bool:
    return (kernel[3] * 10_000 + t) in waiting


def measured(report: Report, waits: Waits, scope: Scope) -> list[tuple[int, int] | None]:
    found = [waiting_of(report, coverage, waits) for coverage in coverages(report, scope)]
    return [None if one is None else (one.all.total(), one.exposed.total()) for one in found]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_waiting_is_that_of_the_plan(tmp_path: Path, seed: int, named: bool) -> None:
    rng = random.Random(seed)
    ranks = rng.choice((2, 3))
    kernels, planned = schedule(rng, ranks)
    if not named and _same_names(kernels):
        return
    report = write(tmp_path / "r.sqlite", kernels, named=named)
    waits = collective_waits(report)
    assert (waits.unmatched, waits.partial) == (0, not named)
    edges = sorted(rng.sample(range(250), 2))
    for window in ((0, 2_000), (edges[0], edges[1])):
        expected = [
            by_hand(mine, wait, window) for mine, wait in zip(kernels, planned, strict=True)
        ]
        found = measured(report, waits, Scope(window))
        assert [one or (0, 0) for one in found] == expected


def _same_names(kernels: list[list[Kernel]]) -> bool:
    """Whether two streams of a rank ran the same sequence: order cannot tell them apart."""
    names = [[k[0] for k in kernels[0] if k[3] == stream] for stream in (20, 21)]
    return names[0] == names[1]


def _pair(synth: Synth, kernels: list[tuple[int, int, int]]) -> Report:
    """Nameless all-reduces: (rank, start, end)."""
    for rank in (0, 1):
        synth.process(10 + rank).gpu(rank).cuda_device(10 + rank, 0, rank)
        for mine, start, end in kernels:
            if mine == rank:
                synth.launch("ncclKernel_AllReduce(int)", (0, 1), (start, end))
    return open_report(synth.write(), use_cache=False)


@pytest.mark.parametrize(
    ("kernels", "unmatched"),
    [
        ([(0, 10, 50), (1, 30, 50)], 0),
        # One rank has a collective more: nothing tells which of them is missing.
        ([(0, 10, 50), (1, 30, 50), (0, 60, 70)], 3),
        # They did not run at the same time, so they are not one collective.
        ([(0, 10, 50), (1, 50, 90)], 2),
        # A rank alone.
        ([(0, 10, 50)], 1),
    ],
)
def test_what_does_not_match_is_said_and_is_no_waiting(
    tmp_path: Path, kernels: list[tuple[int, int, int]], unmatched: int
) -> None:
    report = _pair(Synth(tmp_path / "r.sqlite"), kernels)
    waits = collective_waits(report)
    assert waits.unmatched == unmatched
    assert bool(unmatched) == ("not known" in waits.note)
    split = overview(report).devices[0]
    assert (split.comm_waiting_ns, split.exposed_waiting_ns) == (
        (None, None) if unmatched else (20, 20)
    )
    assert split.comm_transfer_ns == (None if unmatched else 20)


@pytest.mark.parametrize("begin", [10, -1000], ids=["after", "before the session began"])
@pytest.mark.parametrize(("apart", "unmatched"), [(10, 3), (0, 0)])
def test_sends_of_three_gpus_are_to_all_where_they_end_as_one(
    tmp_path: Path, apart: int, unmatched: int, begin: int
) -> None:
    synth = Synth(tmp_path / "r.sqlite")
    for rank in range(3):
        synth.process(10 + rank).gpu(rank).cuda_device(10 + rank, 0, rank)
        gpu = (begin + 10 * rank, begin + 50 + apart * rank)
        synth.launch("ncclKernel_SendRecv(int)", (0, 1), gpu)
    waits = collective_waits(open_report(synth.write(), use_cache=False))
    assert waits.unmatched == unmatched


def test_partners_of_the_slow_gpu_wait_as_planted(tmp_path: Path) -> None:
    demo = make(tmp_path, steps=4)
    split = overview(open_report(demo.path, use_cache=False))
    rows: Any = demo.rows(
        """SELECT k.deviceId + k.globalPid, k.start, k."end" FROM CUPTI_ACTIVITY_KIND_KERNEL k
        JOIN StringIds s ON s.id = k.shortName WHERE s.value LIKE 'nccl%' ORDER BY 1, 2"""
    )
    by_rank: dict[int, list[tuple[int, int]]] = {}
    for rank, start, end in rows:
        by_rank.setdefault(rank, []).append((start, end))
    pairs = list(zip(*by_rank.values(), strict=True))
    waited = [sum(max(a[0], b[0]) - (a, b)[rank][0] for a, b in pairs) for rank in (0, 1)]
    assert [device.comm_waiting_ns for device in split.devices] == waited
    assert sum(waited) == demo.truth["collectives"]["skew_ns"]
    assert waited[0] > 3 * waited[1], "the last rank is the slow one"
    demo.connection.close()
