"""The line that a fleet begins with: a slow rank is named, ordinary differences are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from synth import Synth

from nsys_tui.fleet.loading import run_fleet
from nsys_tui.fleet.verdict import verdict

if TYPE_CHECKING:
    from pathlib import Path

US = 1_000


def report(path: Path, rank: int, step: int, steps: int = 6) -> Path:
    """Steps of ``step`` ns each, without collectives; none for 0."""
    synth = Synth(path).gpu(0, "Test GPU").session(10**8).process(1000 + rank, "python3")
    synth.meta("PROCESS_0:ENVIRONMENT_VARIABLE", f"RANK={rank}", capture=True)
    for number in range(steps if step else 1):
        at = number * step
        if step:
            synth.nvtx(f"train step {number}", at, at + step - US)
        synth.launch("gemm(float*)", (at, at + US), (at + 2 * US, at + (400 + rank) * US))
    return synth.write()


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (
            (1_000, 1_001, 1_000),
            "no rank is slower than the others: medians of steps 1.000 ms",
        ),
        ((1_000, 1_300, 1_000), "rank 1 is slowest in 5 of 5 steps, its median 300.0 us above"),
        ((0, 0, 0), "GPUs are busy "),
    ],
)
def test_only_a_rank_that_stands_out_is_named(
    tmp_path: Path, steps: tuple[int, ...], said: str
) -> None:
    paths = [report(tmp_path / f"{n}.sqlite", n, us * US) for n, us in enumerate(steps)]
    assert verdict(run_fleet(paths)).startswith(said)
