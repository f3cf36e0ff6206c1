"""How sure the findings of each rule are, how they could be wrong, and what would settle it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nsys_tui.analysis.rules.finding import Confidence


@dataclass(frozen=True)
class Certainty:
    """What to think of a rule's findings."""

    confidence: Confidence
    doubt: str
    """How the finding could be wrong."""
    settle: str
    """The command or capture that would tell, with ``REPORT`` for the file."""


_MEASURED, _INFERRED, _GUESS = Confidence.MEASURED, Confidence.INFERRED, Confidence.GUESS
_NCU: Final = "ncu --set full --launch-count 5 PROGRAM"
_CLOCKS: Final = "nvidia-smi --query-gpu=clocks.sm,clocks_throttle_reasons.active --format=csv -l 1"
_STALLS: Final = "nsys-tui stalls REPORT"
_SAME_DATA: Final = "compare checksums of what is uploaded, in the program itself"
_TWICE: Final = "profile again with the change, then nsys-tui compare BEFORE AFTER"
_NEEDED: Final = Certainty(
    _MEASURED,
    "the host may need the data before it can go on, so that it waits all the same",
    _TWICE,
)
_SLOWED: Final = Certainty(
    _INFERRED, "the profiler makes each launch slower than it is without", _TWICE
)

CERTAINTY: Final = {
    "cuda_memcpy_async": _NEEDED,
    "cuda_memcpy_sync": _NEEDED,
    "cuda_memset_sync": Certainty(
        _MEASURED, "the host may wait for something else right after", _TWICE
    ),
    "data_loss": Certainty(
        _MEASURED, "what is missing may lie outside of what you look at", "nsys profile --duration"
    ),
    "dominant_kernel": Certainty(_MEASURED, "it may already run as fast as this GPU can", _NCU),
    "exposed_communication": Certainty(
        _INFERRED,
        "ranks may wait for the slowest one: then its delay is the cause, not the transfer",
        "nsys-tui collectives REPORT",
    ),
    "exposed_copies": Certainty(
        _INFERRED, "the next kernel may need the data: then nothing can hide its copy", _TWICE
    ),
    "frequent_allocation": Certainty(
        _MEASURED, "the calls may wait for GPU work that would be waited for anyway", _STALLS
    ),
    "gpu_imbalance": Certainty(_INFERRED, "the GPU may have more work, not be slower", _CLOCKS),
    "memsets": Certainty(
        _MEASURED, "the memory may have to be cleared, and something else wait for it", _TWICE
    ),
    "repeated_uploads": Certainty(
        _GUESS, "they may carry other data each time, such as one batch after the other", _SAME_DATA
    ),
    "serial_streams": Certainty(
        _INFERRED, "registers or shared memory may leave no room for both at a time", _TWICE
    ),
    "slow_copies": Certainty(
        _INFERRED, "another GPU or device may have used the bus meanwhile", _TWICE
    ),
    "tiny_kernels": _SLOWED,
    "host_only": Certainty(
        _MEASURED, "it may be the work itself, which nothing can leave out", _TWICE
    ),
    "launch_bound": _SLOWED,
    "low_occupancy": Certainty(
        _INFERRED, "tensor-core kernels are often built so and lose nothing", _NCU
    ),
    "migrations_in_kernels": Certainty(
        _INFERRED, "the kernel may touch other pages meanwhile, and hide a part of it", _NCU
    ),
    "missing_nvtx": Certainty(
        _MEASURED, "nothing is wrong with the run", "nsys profile --trace=cuda,nvtx"
    ),
    "module_loading": Certainty(
        _MEASURED, "it may happen once for each new shape, not in every step", _STALLS
    ),
    "slow_steps": Certainty(
        _INFERRED, "these steps may have more to do: evaluation, a checkpoint", _STALLS
    ),
    "shared_gpus": Certainty(
        _MEASURED, "the processes may need the GPU at different times anyway", _TWICE
    ),
    "slowing_kernels": Certainty(
        _INFERRED, "their data may grow in the course of the run", _CLOCKS
    ),
    "small_copies": Certainty(
        _INFERRED, "the host may need each value before it can go on", _STALLS
    ),
    "small_grids": Certainty(
        _INFERRED, "theoretical: a kernel limited by memory or latency gains less", _NCU
    ),
    "warm_up": Certainty(
        _INFERRED, "a call made once may be the work itself, such as in a one-shot run", _STALLS
    ),
}
"""By rule; idle time says so by its cause."""
UNSURE: Final = Certainty(_GUESS, "", "")
"""Of a rule that is not listed."""
