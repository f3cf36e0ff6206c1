"""Writes small training runs whose times are known, to compare them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from synth import Synth

if TYPE_CHECKING:
    from pathlib import Path

US = 1_000
KERNELS = (("gemm_kernel(float*)", 300), ("softmax_kernel(float*)", 120), ("adamw(float*)", 80))
"""Names and microseconds; each runs ``REPEATS`` times a step, back to back."""
REPEATS = 4
GAP = 25 * US
"""Idle time after each round of kernels."""


@dataclass(frozen=True)
class Run:
    """A training run: every step is the same but for jitter."""

    steps: int = 12
    scale: float = 1.0
    """Factor on the time of every kernel."""
    jitter: float = 0.0
    """Standard deviation of each duration, relative."""
    seed: int = 0
    names: tuple[tuple[str, float], ...] = KERNELS
    step_name: str = "step"
    gpu: str = "Test GPU"
    copies: int = 1
    """Copies of 1 MB from the device per step."""
    waits: bool = False
    """Whether the host waits after each turn of the kernels."""
    grids: tuple[int, ...] = (100, 100, 100, 100)
    """Blocks of each kernel."""

    def write(self, path: Path) -> Path:
        random = np.random.default_rng(self.seed)
        report = Synth(path).gpu(0, self.gpu).process(100, "train").cuda_device(100, 0, 0)
        time = 10 * US
        for step in range(self.steps):
            begin = time
            for _ in range(REPEATS):
                for (name, length), blocks in zip(self.names, self.grids, strict=False):
                    factor = self.scale * (1 + self.jitter * random.standard_normal())
                    end = time + round(length * US * factor)
                    report.launch(
                        name, (time - 5 * US, time - 4 * US), (time, end), grid=(blocks, 1, 1)
                    )
                    time = end
                if self.waits:
                    report.api("cudaStreamSynchronize_v3020", time - 3 * US, time)
                time += GAP
            for _ in range(self.copies):
                report.api("cudaMemcpy", time - 2 * US, time - US, corr=step + 1)
                report.memcpy(time, time + 10 * US, bytes=10**6, kind="DtoH", corr=step + 1)
                time += 20 * US
            if self.step_name:
                report.nvtx(f"{self.step_name} {step}", begin - 6 * US, time - 7 * US)
        return report.session(time).write()
