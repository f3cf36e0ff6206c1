"""A small run of several ranks, one report each, whose every figure is known beforehand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from synth import Synth

if TYPE_CHECKING:
    from pathlib import Path

US = 1_000
UTC = 1_780_000_000_000_000_000
STEP = 1_000 * US
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage)"
REDUCED = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


@dataclass
class Run:
    """What happens, in fleet time: times of every kernel by rank."""

    ranks: int = 4
    steps: int = 5
    slow: dict[tuple[int, int], int] = field(default_factory=dict)
    """(rank, step) -> ns of extra compute."""
    begun: dict[int, int] = field(default_factory=dict)
    """rank -> ns after the first session's start at which its session starts."""

    def compute(self, rank: int, step: int) -> tuple[int, int]:
        """The big kernel of a step."""
        start = step * STEP + 5 * US
        return start, start + 300 * US + 10 * US * rank + self.slow.get((rank, step), 0)

    def arrivals(self, step: int) -> list[int]:
        """When each rank comes to the collective."""
        return [self.compute(rank, step)[1] + 2 * US for rank in range(self.ranks)]

    def collective(self, rank: int, step: int) -> tuple[int, int]:
        """All ranks leave together, 50 us after the last one came."""
        arrived = self.arrivals(step)
        return arrived[rank], max(arrived) + 50 * US

    def hidden(self, rank: int, step: int) -> tuple[int, int]:
        """A kernel that overlaps the first 20 us of the collective."""
        start, _ = self.collective(rank, step)
        return start, start + 20 * US

    def offset(self, rank: int) -> int:
        return self.begun.get(rank, 0)

    def write(
        self, folder: Path, name: str = "report_{rank}.sqlite", utc: bool = True
    ) -> list[Path]:
        folder.mkdir(parents=True, exist_ok=True)
        return [
            self.write_rank(folder / name.format(rank=rank), rank, utc=utc)
            for rank in range(self.ranks)
        ]

    def write_rank(
        self, path: Path, rank: int, *, utc: bool = True, variable: str = "SLURM_PROCID"
    ) -> Path:
        synth = Synth(path).gpu(0, "Test GPU")
        if utc:
            synth.session(self.steps * STEP, utc=UTC + self.offset(rank))
        synth.environment("Hostname", f"node{rank // 2}")
        if variable:
            for text in (f"{variable}={rank}", f"SLURM_NTASKS={self.ranks}", "API_TOKEN=12345"):
                synth.meta("PROCESS_0:ENVIRONMENT_VARIABLE", text, capture=True)
        synth.process(1000 + rank, "python3")
        self.events(synth, rank, self.offset(rank))
        return synth.write()

    def events(self, synth: Synth, rank: int, begun: int = 0, device: int = 0) -> None:
        """The events of a rank in the session that starts at ``begun``."""
        for step in range(self.steps):
            at = step * STEP - begun
            synth.nvtx(f"train step {step}", at, at + STEP - 10 * US)
            for place, (kernel, stream, (start, end)) in enumerate(
                (
                    ("gemm(float*)", 7, self.compute(rank, step)),
                    (ALL_REDUCE, 13, self.collective(rank, step)),
                    ("relu(float*)", 7, self.hidden(rank, step)),
                )
            ):
                call = at + (place + 1) * US
                synth.launch(
                    kernel, (call, call + 500), (start - begun, end - begun),
                    stream=stream, device=device,
                )  # fmt: skip


def both_in_one(path: Path, run: Run) -> Path:
    """One report of a node with a process and a GPU for every rank."""
    synth = Synth(path).session(run.steps * STEP, utc=UTC)
    for rank in range(run.ranks):
        synth.gpu(rank, "Test GPU", cu_device=rank)
        synth.process(2000 + rank, "python3").cuda_device(2000 + rank, rank, rank)
        run.events(synth, rank, device=rank)
    return synth.write()
