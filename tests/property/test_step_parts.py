"""Parts of steps against a loop over every moment, and planted reasons for a long step."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from synth import Synth

from nsys_tui.analysis.iterations.parts import BUSY_PARTS, IDLE_PARTS
from nsys_tui.analysis.iterations.table import iteration_table, longer_because
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.analysis.stalls.explained import LONG_CALL_NS
from nsys_tui.analysis.window import Scope
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.analysis.iterations.table import IterationTable

TICK = 20_000
"""Nanoseconds of a moment: more than the threshold, so that no gap is a short one."""
CALLS = {
    "cuModuleLoadData": Cause.MODULE,
    "cudaMalloc_v3020": Cause.ALLOCATION,
    "cudaStreamSynchronize_v3020": Cause.SYNC,
    "cudaMemcpy_v3020": Cause.COPY,
    "read": Cause.IO,
}
KINDS = ("gemm(int)", "ncclKernel_AllReduce(int)", "memcpy", "graph")


class Work(NamedTuple):
    kind: str
    start: int
    end: int
    call: int | None
    """When its call began."""
    took: int
    """Moments that its call took."""


class Event(NamedTuple):
    cause: Cause
    start: int
    end: int


def schedule(rng: random.Random) -> tuple[list[int], list[Work], list[tuple[str, int, int]]]:
    """Edges of steps, GPU work and host events of the launching thread, in moments."""
    edges = sorted(rng.sample(range(10, 110), 5))
    starts = rng.sample(range(5, 118), rng.randrange(3, 14))
    work = [
        Work(
            rng.choice(KINDS),
            start,
            start + rng.randrange(1, 9),
            rng.choice((None, max(0, start - rng.randrange(1, 25)))),
            rng.choice((1, 1, 2, 3, 6)),
        )
        for start in starts
    ]
    host = []
    for _ in range(rng.randrange(8)):
        start = rng.randrange(115)
        host.append((rng.choice([*CALLS]), start, start + rng.randrange(1, 12)))
    return edges, work, host


def write(path: Path, edges: list[int], work: list[Work], host: list[tuple[str, int, int]]) -> Path:
    synth = Synth(path).gpu(0).process(10).session(140 * TICK)
    for number, (start, end) in enumerate(itertools.pairwise(edges)):
        synth.nvtx(f"step {number}", start * TICK, end * TICK)
    for number, one in enumerate(work, 1):
        if one.call is not None:
            synth.api("cudaLaunchKernel_v7000", *ns(one.call, one.call + one.took), corr=number)
        start, end = ns(one.start, one.end)
        if one.kind == "memcpy":
            synth.memcpy(start, end, corr=number)
        elif one.kind == "graph":
            synth.graph(start, end, corr=number)
        else:
            synth.kernel(one.kind, start, end, corr=number)
    for name, begin, until in host:
        if name == "read":
            synth.osrt(name, *ns(begin, until))
        else:
            synth.api(name, *ns(begin, until))
    return synth.write()


def ns(start: int, end: int) -> tuple[int, int]:
    return start * TICK, end * TICK


def part_at(t: int, work: list[Work], events: list[Event]) -> str:
    """What a GPU did in one moment, by the definitions."""
    running = {one.kind for one in work if one.start <= t < one.end}
    for kind, part in zip(KINDS, ("compute", "transfer", "copies", "graph"), strict=True):
        if kind in running:
            return part
    begin = max((one.end for one in work if one.end <= t), default=-1)
    later = [one for one in work if one.start > t]
    if not later:
        return Cause.UNKNOWN.key
    finish = min(one.start for one in later)
    ending = next(one for one in later if one.start == finish)
    if ending.call is None:
        return Cause.UNKNOWN.key
    returned = min(ending.call + ending.took, finish)
    if ending.call < begin and 2 * (returned - begin) < finish - begin:
        return (Cause.PEER if "nccl" in ending.kind else Cause.STREAM).key
    if t >= (returned if ending.took * TICK >= LONG_CALL_NS else ending.call):
        return Cause.LAUNCH_LATENCY.key
    here = [event.cause for event in events if event.start <= t < event.end]
    return min(here, default=Cause.NOTHING).key


@pytest.mark.parametrize("seed", range(60))
def test_each_moment_of_a_step_is_in_the_part_that_the_definitions_say(
    tmp_path: Path, seed: int
) -> None:
    edges, work, host = schedule(random.Random(seed))
    found = table(write(tmp_path / "r.sqlite", edges, work, host))
    calls = [
        Event(Cause.API, one.call, one.call + one.took) for one in work if one.call is not None
    ]
    events = [*calls, *(Event(CALLS[name], start, end) for name, start, end in host)]
    for step, (start, end) in enumerate(itertools.pairwise(edges)):
        expected: dict[str, int] = {}
        for t in range(start, end):
            part = part_at(t, work, events)
            expected[part] = expected.get(part, 0) + TICK
        assert parts_of(found, step) == expected
        assert sum(expected.values()) == found.iterations.duration[step]


def table(path: Path) -> IterationTable:
    return iteration_table(open_report(path, use_cache=False))


def parts_of(found: IterationTable, step: int) -> dict[str, int]:
    busy = {name: int(found.parts.busy[name][step]) for name in BUSY_PARTS}
    idle = dict(zip(IDLE_PARTS, found.parts.idle[step].tolist(), strict=True))
    return {name: total for name, total in (busy | idle).items() if total}


MS = 1_000_000


def training(path: Path, odd: dict[str, Any]) -> Path:
    """Nine steps of two ranks: a kernel of 4 ms, a copy and an all-reduce of 1 ms, 0.5 ms idle.

    ``odd`` says what is longer in step 5: ``compute``, ``comm``, ``copy``, ``late`` (the other
    rank), or the name of a host call; by how many ms.
    """
    synth = Synth(path)
    for rank in (0, 1):
        synth.process(10 + rank).gpu(rank).cuda_device(10 + rank, 0, rank)
        now = 0
        for step in range(9):
            more = {what: ns * MS for what, ns in odd.items() if step == 5}
            late = more.pop("late", 0)
            begin = now
            for what in more:
                if what == "read":
                    synth.osrt(what, now + 10_000, now + more[what])
                elif what.startswith("cuda"):
                    synth.api(what, now + 10_000, now + more[what])
            now += sum(more[what] for what in more if what not in ("compute", "comm", "copy"))
            lengths = (4 * MS + more.get("compute", 0), MS + more.get("copy", 0), MS)
            names = ("gemm(int)", "", "ncclKernel_AllReduce(int)")
            wait = late if rank == 0 else 0
            extra = more.get("comm", 0)
            for name, length in zip(names, lengths, strict=True):
                if rank == 1 and name.startswith("nccl"):
                    now += late
                total = length + (wait + extra) * name.startswith("nccl")
                call = (begin + 1_000, begin + 3_000) if now == begin else (now - 20, now - 10)
                corr = synth.next_correlation()
                synth.api("cudaLaunchKernel_v7000", *call, corr=corr)
                if name:
                    synth.kernel(name, now + 5_000, now + total, corr=corr)
                else:
                    synth.memcpy(now + 5_000, now + total, corr=corr)
                now += total
            now += MS // 2
            if rank == 0:
                synth.nvtx(f"train step {step}", begin, now)
    return synth.write()


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        ({"compute": 3}, "+3.000 ms compute"),
        ({"copy": 3}, "+3.000 ms exposed copies"),
        ({"comm": 3}, "+3.000 ms exposed communication"),
        ({"late": 3}, "+3.000 ms waiting for ranks"),
        ({"read": 3}, "+2.990 ms idle: I/O read"),
        ({"cudaStreamSynchronize_v3020": 3}, "+2.990 ms idle: sync call cudaStreamSynchronize"),
        ({"cudaMalloc_v3020": 3}, "+2.990 ms idle: allocation or free cudaMalloc"),
        ({"compute": 3, "late": 2}, "+3.000 ms compute, +2.000 ms waiting for ranks"),
        # Longer by less than 1 %: nothing is said.
        ({"compute": 0.05}, ""),
    ],
)
def test_a_long_step_says_which_part_makes_it_long(
    tmp_path: Path, odd: dict[str, Any], why: str
) -> None:
    found = table(training(tmp_path / "r.sqlite", odd))
    assert found.parts.waits_known
    assert [found.why(step) for step in range(1, 9)] == [""] * 4 + [why] + [""] * 3
    report = open_report(tmp_path / "r.sqlite", use_cache=False)
    assert longer_because(report, found.iterations, 5, Scope()) == (why or "+50.00 us compute")
