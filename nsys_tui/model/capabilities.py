"""What a report can answer, and which option of ``nsys profile`` would have recorded the rest."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Capability(StrEnum):
    """A kind of data that a screen or a command needs."""

    KERNELS = "kernels"
    COPIES = "memory copies"
    MEMSETS = "memory sets"
    GRAPHS = "CUDA graph launches"
    API = "CUDA API calls"
    SYNC = "CUDA synchronisation"
    NVTX = "NVTX ranges"
    OSRT = "OS runtime calls"
    SAMPLES = "CPU samples"
    CUDA_BACKTRACES = "CUDA API backtraces"
    OSRT_BACKTRACES = "OS runtime backtraces"
    GPU_METRICS = "GPU metrics"
    GPU_MEMORY = "GPU memory usage"
    MPI = "MPI calls"
    SCHED = "thread scheduling"
    GPU_PROPERTIES = "GPU properties"
    LAUNCH_SHAPES = "grids, blocks, registers and shared memory of kernels"
    LAUNCH_CALLS = "links from calls to GPU work (causes of idle time, launches, ranges)"
    DURATION = "session duration"


OPTIONS: Final[dict[Capability, str]] = {
    Capability.KERNELS: "--trace=cuda",
    Capability.COPIES: "--trace=cuda",
    Capability.MEMSETS: "--trace=cuda",
    Capability.GRAPHS: "--trace=cuda --cuda-graph-trace=graph",
    Capability.API: "--trace=cuda",
    Capability.SYNC: "--trace=cuda",
    Capability.NVTX: "--trace=nvtx",
    Capability.OSRT: "--trace=osrt",
    Capability.SAMPLES: "--sample=process-tree",
    Capability.CUDA_BACKTRACES: "--cudabacktrace=all",
    Capability.OSRT_BACKTRACES: "--trace=osrt --backtrace=fp",
    Capability.GPU_METRICS: "--gpu-metrics-devices=all",
    Capability.GPU_MEMORY: "--cuda-memory-usage=true",
    Capability.MPI: "--trace=mpi",
    Capability.SCHED: "--cpuctxsw=process-tree",
    Capability.GPU_PROPERTIES: "--trace=cuda",
    Capability.LAUNCH_SHAPES: "--trace=cuda",
    Capability.LAUNCH_CALLS: "--trace=cuda",
    Capability.DURATION: "an nsys of 2022 or later for the export",
}
"""What to add to ``nsys profile`` to record each kind of data."""


def explain(capability: Capability) -> str:
    """One sentence for a screen or an error: what is missing and what would record it."""
    option = OPTIONS[capability]
    if option.startswith("--"):
        return f"no {capability} in this report: record with nsys profile {option}"
    return f"no {capability} in this report: needs {option}"
