"""Planted runs of HPC programs: ranks with a GPU each, copies, set-up and output of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from machine import FULL, MS, US, Machine
from synth import Synth

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STEPS = 20


def ranks(path: Path, works: Sequence[Sequence[int]], call: str = "") -> Synth:
    """Ranks that meet at a barrier after each step, a GPU for each.

    Args:
        path: of the report.
        works: how long each rank's kernel takes, in ms, in one step after another, again and again.
        call: of the operating system in which the first rank then spends 6 ms of each fourth step.
    """
    synth, now = Synth(path), 0
    for rank in range(len(works[0])):
        synth.gpu(rank)
    for step in range(STEPS):
        work = works[step % len(works)]
        writes = [6 * MS if call and not rank and step % 4 == 3 else 0 for rank in range(len(work))]
        last = now + max(ms * MS + extra for ms, extra in zip(work, writes, strict=True)) + 50 * US
        for rank, (ms, extra) in enumerate(zip(work, writes, strict=True)):
            synth.process(10 + rank, "solver" if not step else None)
            done = now + 10 * US + ms * MS
            gpu = (now + 10 * US, done)
            synth.launch("sweep", (now, now + 5 * US), gpu, device=rank, grid=FULL)
            synth.api("cudaDeviceSynchronize_v3020", now + 6 * US, done + 4 * US)
            if extra:
                synth.osrt(call, done + 5 * US, done + extra)
            synth.mpi("MPI_Barrier", done + extra + 6 * US, last)
        now = last + 5 * US
    return synth


def imbalanced(path: Path) -> Synth:
    return ranks(path, [(3, 3, 5)])


def late_by_turns(path: Path) -> Synth:
    """Each rank is the late one in every third step."""
    return ranks(path, [(5, 3, 3), (3, 5, 3), (3, 3, 5)])


def checkpointing(path: Path) -> Synth:
    """The others wait while the first rank writes."""
    return ranks(path, [(3, 3, 3)], call="pwrite64")


def both_ways(path: Path, rate: int = 20) -> Synth:
    """Pinned copies up and down and a kernel on one stream: three could run at a time."""
    run = Machine(path)
    for _ in range(STEPS):
        run.copy(60_000_000, rate, "HtoD")
        run.launch("sobel", 2 * MS)
        run.copy(60_000_000, rate, "DtoH")
    return run.report


def narrow(path: Path, threads: int = 16) -> Synth:
    """Very many blocks of half a warp."""
    synth = Synth(path).process(10, "knn").gpu(0)
    grid, block = (60_000, 1, 1), (threads, 1, 1)
    for number in range(STEPS):
        call, begun = number * 10 * US, number * 10 * MS + MS
        gpu = (begun, begun + 10 * MS - 2 * US)
        synth.launch("distance", (call, call + 5 * US), gpu, grid=grid, block=block)
    return synth


def whole_warps(path: Path) -> Synth:
    return narrow(path, 32)
