"""The one door: runs the ranks side by side, and writes report, truth and NCCL log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nsys_tui.demo import background, nccl_log, problems, schema
from nsys_tui.demo.events import Collective, Operation, Trace
from nsys_tui.demo.machine import Rank
from nsys_tui.demo.rows import Rows
from nsys_tui.demo.tiling import tiling_for
from nsys_tui.demo.training import program
from nsys_tui.demo.truth import truth
from nsys_tui.demo.write import write

WIRE_BYTES_PER_US: Final = 21_000
COLLECTIVE_LATENCY: Final = 17_000
MAX_GPUS: Final = 8
MAX_STEPS: Final = 500
"""Each simulated step takes 70 ms and 3.4 MB of memory; ``kernels`` makes longer runs of few."""
MAX_KERNELS: Final = 100_000_000
"""A file of 17 GB."""
SCALED_FROM: Final = 200_000
"""From this many kernels on, ranges inside layers are left out, as in a sparsely annotated run."""


@dataclass(frozen=True, slots=True)
class Made:
    """What was written."""

    report: Path
    truth: Path | None
    logs: list[Path]


def make_report(
    output: Path,
    *,
    truth_path: Path | None = None,
    log_path: Path | None = None,
    generation: str = schema.CURRENT,
    steps: int = problems.DEFAULT_STEPS,
    kernels: int | None = None,
    gpus: int = 2,
) -> Made:
    """Simulates the run and writes it; the same arguments give the same figures everywhere.

    Args:
        output: the SQLite file, replaced if it exists.
        truth_path: where the true figures go as JSON.
        log_path: a file, or a directory for one NCCL log per rank.
        generation: a key of ``schema.GENERATIONS``.
        steps: training steps; problems planted beyond the last one are left out.
        kernels: repeats the training loop until there are about that many.
        gpus: ranks, one GPU each.

    Raises:
        OSError: a file cannot be written.
    """
    trace = simulate(steps, gpus, functions=(kernels or 0) < SCALED_FROM)
    tiling = tiling_for(trace, kernels)
    trace.duration += tiling.shift(tiling.copies - 1)["time"]
    own_devices = "TARGET_INFO_CUDA_DEVICE" in schema.tables(generation)
    output.parent.mkdir(parents=True, exist_ok=True)
    write(output, Rows(trace, generation, own_devices), tiling)
    if truth_path is not None:
        figures = truth(trace, tiling) | {"schema": generation, "own_devices": own_devices}
        truth_path.parent.mkdir(parents=True, exist_ok=True)
        truth_path.write_text(json.dumps(figures, indent=1) + "\n")
    logs = [] if log_path is None else nccl_log.write_logs(log_path, trace)
    return Made(output, truth_path, logs)


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
