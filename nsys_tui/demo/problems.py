"""The problems planted in the run: which step has which, and what each one is.

| step | problem | what happens |
|------|---------|--------------|
| 4 | sync stall | the host waits for the stream after every layer forward, and wakes late |
| 5 | pageable copy | rank 0 copies a checkpoint to unpinned memory; staging outlasts the transfer |
| 6 | launch-bound phase | an evaluation of tiny kernels, each shorter than its launch |
| 7 | exposed communication | one all-reduce after the backward pass instead of one per layer |
| 8 | slow step | the data loader's file system hangs, so every rank waits for its batch |
| all | straggling GPU | the last rank's kernels take 12 % longer at a lower clock |

Steps 0 (loading of modules) and 2 (an allocation in mid-step) have smaller gaps of other causes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DEFAULT_STEPS: Final = 10

MODULE_LOAD_STEP: Final = 0
ALLOCATION_STEP: Final = 2
SYNC_STALL_STEP: Final = 4
PAGEABLE_STEP: Final = 5
LAUNCH_BOUND_STEP: Final = 6
EXPOSED_STEP: Final = 7
SLOW_STEP: Final = 8

SYNC_WAKE_NS: Final = 210_000
"""How late the host wakes from each of the twelve waits."""

CHECKPOINT_BYTES: Final = 96_000_000
UNSTAGE_NS: Final = 2_400_000
"""Host copy out of the staging buffer, after the last byte left the GPU."""

SMALL_KERNELS: Final = 480
SMALL_LAUNCH_NS: Final = 9_500

LOADER_HANG_NS: Final = 100_000_000
"""Longer than a step, of which the loader is one ahead, so about 55 ms are felt."""

STRAGGLER_PERMILLE: Final = 120


@dataclass(frozen=True, slots=True)
class Planted:
    """One problem as the truth states it."""

    kind: str
    step: int | None
    """The step that holds it, or None for the whole run."""
    ranks: str
    """``all``, ``first`` or ``last``."""
    cause: str
    """The cause a gap is given, or what else the analysis should find."""
    text: str
    permille: int = 0


PLANTED: Final = (
    Planted(
        "sync_stall",
        SYNC_STALL_STEP,
        "all",
        "sync call",
        "cudaStreamSynchronize after every layer of the forward pass leaves the GPU idle",
    ),
    Planted(
        "pageable_copy",
        PAGEABLE_STEP,
        "first",
        "blocking or pageable copy",
        "a checkpoint goes to pageable host memory; the call returns long after the transfer",
    ),
    Planted(
        "launch_bound",
        LAUNCH_BOUND_STEP,
        "all",
        "launch-bound run",
        "the evaluation launches kernels that are shorter than their launches",
    ),
    Planted(
        "exposed_communication",
        EXPOSED_STEP,
        "all",
        "exposed communication",
        "the gradients are reduced in one call after the backward pass, hidden by nothing",
    ),
    Planted(
        "slow_step",
        SLOW_STEP,
        "all",
        "I/O",
        "the data loader's pread64 hangs, and every rank waits for its batch",
    ),
    Planted(
        "straggler",
        None,
        "last",
        "slow GPU",
        "every compute kernel of the last rank takes 12 % longer; the others wait in collectives",
        STRAGGLER_PERMILLE,
    ),
)
