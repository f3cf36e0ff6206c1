"""What a report can answer, and which option of ``nsys profile`` would have recorded the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Final, Self


class Capability(StrEnum):
    """A kind of data that a screen or a command needs."""

    option: str
    """What to add to ``nsys profile`` to record it."""

    def __new__(cls, value: str, option: str = "") -> Self:
        """A kind of data and what records it."""
        kind = str.__new__(cls, value)
        kind._value_, kind.option = value, option
        return kind

    KERNELS = "kernels", "--trace=cuda"
    COPIES = "memory copies", "--trace=cuda"
    MEMSETS = "memory sets", "--trace=cuda"
    GRAPHS = "CUDA graph launches", "--trace=cuda --cuda-graph-trace=graph"
    RENDERING = "OpenGL, Vulkan or Direct3D 12 work", "--trace=opengl,vulkan"
    API = "CUDA API calls", "--trace=cuda"
    SYNC = "CUDA synchronisation", "--trace=cuda"
    NVTX = "NVTX ranges", "--trace=nvtx"
    OSRT = "OS runtime calls", "--trace=osrt"
    SAMPLES = "CPU samples", "--sample=process-tree"
    CUDA_BACKTRACES = "CUDA API backtraces", "--cudabacktrace=all"
    OSRT_BACKTRACES = "OS runtime backtraces", "--trace=osrt --osrt-backtrace-threshold=10000"
    GPU_METRICS = (
        "GPU metrics",
        "--gpu-metrics-devices=all (up to 2023.4: --gpu-metrics-device=all)",
    )
    GPU_MEMORY = "GPU memory usage", "--cuda-memory-usage=true"
    MPI = "MPI calls", "--trace=mpi"
    SCHED = "thread scheduling", "--cpuctxsw=process-tree"
    GPU_PROPERTIES = "GPU properties", "--trace=cuda"
    LAUNCH_SHAPES = "grids, blocks, registers and shared memory of kernels", "--trace=cuda"
    LAUNCH_CALLS = (
        "links from calls to GPU work (causes of idle time, launches, ranges)",
        "--trace=cuda",
    )
    DURATION = "session duration", "an nsys of 2022 or later for the export"


LINUX_ONLY: Final = frozenset((Capability.OSRT, Capability.OSRT_BACKTRACES))
"""What nsys records on no other system."""
CUDA: Final = frozenset(kind for kind in Capability if kind.option.startswith("--trace=cuda")) - {
    Capability.GPU_PROPERTIES
}
"""What calls of CUDA bring into a report."""
_GPU_WORK: Final = {
    Capability.KERNELS, Capability.COPIES, Capability.MEMSETS, Capability.GRAPHS
}  # fmt: skip
_OF_GPU_WORK: Final = (Capability.API, Capability.LAUNCH_CALLS, Capability.GPU_PROPERTIES)
"""What there was wherever a GPU worked, whether or not it is in the report."""

_ASKED: Final[dict[Capability, tuple[tuple[str, str], str]]] = {
    **dict.fromkeys(
        CUDA, (("COLLECT_CUDA_TRACE", "true"), "CUDA was asked for; no CUDA call was seen")
    ),
    Capability.GPU_PROPERTIES: (
        ("COLLECT_CUDA_TRACE", "true"),
        "CUDA was asked for; nsys found no GPU",
    ),
    Capability.NVTX: (("COLLECT_NVTX_TRACE", "true"), "NVTX was asked for; no range was seen"),
    Capability.OSRT: (("CAPTURE_EVENT_TYPE", "OSRuntime"), "osrt was asked for; no call was seen"),
    Capability.OSRT_BACKTRACES: (
        ("CAPTURE_EVENT_TYPE", "OSRuntime"),
        "osrt was asked for; no call has one (from --osrt-backtrace-threshold on, or 80000 ns)",
    ),
    Capability.SAMPLES: (
        ("COLLECT_IP_BACKTRACE_SAMPLES", "true"),
        "samples were asked for; none was taken (rights? kernel.perf_event_paranoid)",
    ),
    Capability.SCHED: (
        ("COLLECT_CPU_CTXSW_TRACE", "true"),
        "context switches were asked for; none was seen (rights? kernel.perf_event_paranoid)",
    ),
    Capability.GPU_MEMORY: (
        ("COLLECT_GPU_MEMORY_USAGE", "true"),
        "GPU memory usage was asked for; no allocation was seen",
    ),
}
"""Setting of the capture that asked for a kind of data, and what it means that there is none."""

_BY_EVENTS: Final = {
    ("COLLECT_CUDA_TRACE", "true"): ("CAPTURE_EVENT_TYPE", "Cuda"),
    ("COLLECT_NVTX_TRACE", "true"): ("CAPTURE_EVENT_TYPE", "NvtxEvents"),
}
"""Settings that ask for the same where that of the process says no, as in 2026.2."""


def unmet(
    capability: Capability, settings: Iterable[tuple[str, str]], held: Collection[Capability]
) -> str:
    """Why there is none of a kind of data although it was asked for; empty where it was not.

    Args:
        capability: what is missing.
        settings: of the capture, such as ``PROCESS_0:COLLECT_CUDA_TRACE``.
        held: kinds of data that the report has.
    """
    wanted, why = _ASKED.get(capability, (("", ""), ""))
    asked = {(name.rpartition(":")[2], value) for name, value in settings}
    traced = capability in {*CUDA, Capability.GPU_PROPERTIES} and not CUDA.isdisjoint(held)
    if traced:
        why = "CUDA was traced, and none was recorded"
    if is_lost(capability, held):
        why = "GPU work is there, so nsys lost or left them out"
    traced &= capability.option == Capability.API.option
    if not traced and asked.isdisjoint((wanted, _BY_EVENTS.get(wanted, wanted))):
        return ""
    return f"no {capability} in this report: {why}"


def is_lost(capability: Capability, held: Collection[Capability]) -> bool:
    """Whether there was something of a kind of data that the report does not have."""
    return capability in _OF_GPU_WORK and not _GPU_WORK.isdisjoint(held)


def explain(capability: Capability) -> str:
    """One sentence for a screen or an error: what is missing and what would record it."""
    option = capability.option
    if option.startswith("--"):
        return f"no {capability} in this report: record with nsys profile {option}"
    return f"no {capability} in this report: needs {option}"
