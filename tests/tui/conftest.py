"""A small report with two GPUs, communication, ranges and hostile names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from synth import Synth

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "[bold_red]evil[/]\x1b[31mred\x07kernel"
"""A kernel name that must reach the screen as text and the terminal never."""


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1 ms on each of two GPUs: GPU 0 computes 600 us, communicates 200 us, idles 200 us."""
    path = tmp_path_factory.mktemp("reports") / "small.sqlite"
    us = 1_000
    synth = Synth(path).gpu(0, "Test GPU").gpu(1, "Test GPU").process(100, "train")
    synth.cuda_device(100, 0, 0).cuda_device(100, 1, 1)
    for step in range(2):
        at = step * 500 * us
        synth.nvtx(f"step {step}", at, at + 490 * us)
        synth.launch("gemm_kernel(float*)", (at, at + us), (at, at + 300 * us), device=0)
        synth.launch(
            "ncclDevKernel_AllReduce(int)",
            (at + 2 * us, at + 3 * us),
            (at + 300 * us, at + 400 * us),
            device=0,
            stream=13,
        )
        synth.launch(HOSTILE, (at, at + us), (at, at + 500 * us), device=1, tid=101)
    return synth.write()
