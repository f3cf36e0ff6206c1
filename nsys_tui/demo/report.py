"""The one door: makes the demo report, its truth and its NCCL log."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsys_tui.demo import nccl_log, problems, schema
from nsys_tui.demo.rows import Rows
from nsys_tui.demo.run import simulate
from nsys_tui.demo.tiling import tiling_for
from nsys_tui.demo.truth import truth
from nsys_tui.demo.write import write

if TYPE_CHECKING:
    from pathlib import Path

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
    kernels: int


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
    return Made(output, truth_path, logs, tiling.kernels)
