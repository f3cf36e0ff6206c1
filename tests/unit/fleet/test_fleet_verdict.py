"""The line that a fleet begins with: a slow rank is named, ordinary differences are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from synth import Synth
from unit.fleet.fleet_reports import STEP, US, Run

from nsys_tui.fleet.loading import run_fleet
from nsys_tui.fleet.verdict import verdict

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Late(Run):
    """Each rank comes some ns later to the collective of a step of 1 ms than the one before."""

    by: int = 0

    def compute(self, rank: int, step: int) -> tuple[int, int]:
        start = step * STEP + 5 * US
        return start, start + 300 * US + self.by * rank


@pytest.mark.parametrize(
    ("by", "said"),
    [
        (1 * US, "no rank holds the others up: waiting for one costs "),
        (100 * US, "rank 1 cost the others "),
    ],
)
def test_lateness_is_told_where_it_costs_the_others_time(
    tmp_path: Path, by: int, said: str
) -> None:
    paths = Late(ranks=2, steps=8, by=by).write(tmp_path)
    assert verdict(run_fleet(paths)).startswith(said)


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
            "steps take as long on all ranks: their medians are 1.000 ms",
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
