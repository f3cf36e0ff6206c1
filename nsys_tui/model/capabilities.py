"""What a report can answer, and which option of ``nsys profile`` would have recorded the rest."""

from __future__ import annotations

from dataclasses import dataclass
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
    DURATION = "session duration"


@dataclass(frozen=True)
class Need:
    """Where a capability comes from and how to record it."""

    tables: tuple[str, ...]
    """Any of these tables with rows gives the capability."""
    option: str
    """What to add to ``nsys profile``."""


NEEDS: Final[dict[Capability, Need]] = {
    Capability.KERNELS: Need(("CUPTI_ACTIVITY_KIND_KERNEL",), "--trace=cuda"),
    Capability.COPIES: Need(("CUPTI_ACTIVITY_KIND_MEMCPY",), "--trace=cuda"),
    Capability.MEMSETS: Need(("CUPTI_ACTIVITY_KIND_MEMSET",), "--trace=cuda"),
    Capability.GRAPHS: Need(
        ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",), "--trace=cuda --cuda-graph-trace=graph"
    ),
    Capability.API: Need(("CUPTI_ACTIVITY_KIND_RUNTIME",), "--trace=cuda"),
    Capability.SYNC: Need(("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",), "--trace=cuda"),
    Capability.NVTX: Need(("NVTX_EVENTS",), "--trace=nvtx"),
    Capability.OSRT: Need(("OSRT_API",), "--trace=osrt"),
    Capability.SAMPLES: Need(("COMPOSITE_EVENTS",), "--sample=process-tree"),
    Capability.CUDA_BACKTRACES: Need(("CUDA_CALLCHAINS",), "--cudabacktrace=all"),
    Capability.OSRT_BACKTRACES: Need(("OSRT_CALLCHAINS",), "--trace=osrt --backtrace=fp"),
    Capability.GPU_METRICS: Need(("GPU_METRICS",), "--gpu-metrics-devices=all"),
    Capability.GPU_MEMORY: Need(("CUDA_GPU_MEMORY_USAGE_EVENTS",), "--cuda-memory-usage=true"),
    Capability.MPI: Need(
        (
            "MPI_P2P_EVENTS",
            "MPI_COLLECTIVES_EVENTS",
            "MPI_START_WAIT_EVENTS",
            "MPI_OTHER_EVENTS",
        ),
        "--trace=mpi",
    ),
    Capability.SCHED: Need(("SCHED_EVENTS",), "--cpuctxsw=process-tree"),
    Capability.GPU_PROPERTIES: Need(("TARGET_INFO_GPU",), "--trace=cuda"),
    Capability.DURATION: Need(("ANALYSIS_DETAILS",), "an nsys of 2022 or later for the export"),
}


def explain(capability: Capability) -> str:
    """One sentence for a screen or an error: what is missing and what would record it."""
    need = NEEDS[capability]
    if need.option.startswith("--"):
        return f"no {capability} in this report: record with nsys profile {need.option}"
    return f"no {capability} in this report: needs {need.option}"
