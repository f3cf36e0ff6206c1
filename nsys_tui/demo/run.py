"""Runs the ranks side by side, joined at every collective."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.demo import background, problems
from nsys_tui.demo.events import Collective, Operation, Trace
from nsys_tui.demo.machine import Rank
from nsys_tui.demo.training import program

if TYPE_CHECKING:
    from collections.abc import Sequence

WIRE_BYTES_PER_US: Final = 21_000
COLLECTIVE_LATENCY: Final = 17_000


def simulate(steps: int = problems.DEFAULT_STEPS, gpus: int = 2, functions: bool = True) -> Trace:
    """Simulates the run and returns all its events; the same arguments give the same events."""
    trace = Trace(steps=steps)
    slow = problems.STRAGGLER_PERMILLE
    ranks = [Rank(trace, i, gpus, slow if i == gpus - 1 else 0) for i in range(gpus)]
    running = [program(rank, steps, functions) for rank in ranks]
    while parts := [part for part in (next(p, None) for p in running) if part is not None]:
        _join(trace, parts, gpus)
    last = max(rank.main.clock for rank in ranks)
    trace.duration = last + 12_000_000
    background.add(trace)
    return trace


def _join(trace: Trace, parts: Sequence[tuple[Rank, Collective, Operation]], world: int) -> None:
    """Ends a collective on all ranks: after the last one has come, and the bytes have crossed."""
    arrived = max(done.start for _, _, done in parts)
    wire = 2 * (world - 1) * parts[0][1].bytes // world
    ended = arrived + COLLECTIVE_LATENCY + wire * 1000 // WIRE_BYTES_PER_US
    for rank, part, done in parts:
        done.end = ended + rank.noise.below(1_500)
        rank.nccl.ready = done.end
        part.start, part.end = done.start, done.end
        trace.collectives.append(part)
