"""Who did the work: processes, threads, GPUs and streams, and how their serialized ids are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

PROCESS_MASK = ~0xFFFFFF
"""A globalTid with its thread bits cleared is the globalPid of its process."""


def pid_of(global_id: int) -> int:
    """Process id in a globalTid or globalPid (24 bits)."""
    return (global_id >> 24) & 0xFFFFFF


def tid_of(global_tid: int) -> int:
    """Thread id in a globalTid (24 bits)."""
    return global_tid & 0xFFFFFF


def short_gpu(name: str) -> str:
    """``NVIDIA A100-SXM4-40GB`` becomes ``A100-SXM4-40GB``: the maker is no news."""
    return name.removeprefix("NVIDIA ").removeprefix("GeForce ")


class Member(NamedTuple):
    """One process's view of a GPU."""

    pid: int
    ordinal: int
    """CUDA ordinal (deviceId) inside that process."""


@dataclass(frozen=True)
class GpuInfo:
    """Properties of a physical GPU from TARGET_INFO_GPU; None where the export lacks one."""

    id: int
    name: str
    bus: str = ""
    compute_capability: tuple[int, int] | None = None
    max_warps_per_sm: int | None = None
    max_blocks_per_sm: int | None = None
    max_registers_per_sm: int | None = None
    max_shared_per_sm: int | None = None
    """Bytes."""
    threads_per_warp: int | None = None
    sm_count: int | None = None
    clock_hz: int | None = None
    l2_bytes: int | None = None
    discrete: int | None = None
    """0 for a GPU that shares the host's memory."""


@dataclass(frozen=True)
class Device:
    """One physical GPU that ran work, with every process's view of it."""

    gpu_id: int | None
    """TARGET_INFO_GPU.id, or None where the export does not tell."""
    members: tuple[Member, ...]
    name: str
    info: GpuInfo | None = None
    may_be_several: bool = False
    """Processes call it alike, and nothing tells that they mean the same one."""

    @property
    def id(self) -> int | None:
        """The members' CUDA ordinal when they share one, else None."""
        ordinals = {member.ordinal for member in self.members}
        return ordinals.pop() if len(ordinals) == 1 else None

    @property
    def number(self) -> int | None:
        """What the user calls it: the physical GPU's id, else the CUDA ordinal."""
        return self.gpu_id if self.gpu_id is not None else self.id

    @property
    def label(self) -> str:
        """Short name for a lane or a table: ``GPU 1``."""
        return f"GPU {self.number}" if self.number is not None else self.name


@dataclass(frozen=True)
class Stream:
    """A CUDA stream: its number is unique only within a process."""

    globalPid: int
    device: int
    """Index into the devices."""
    context: int
    """contextId; -1 where the file tells none."""
    id: int
    """streamId; that of unified-memory migrations, which belong to no stream, is 0 or -1, that of
    graphics, which has contexts but no streams, the ``OpKind`` negated."""
    name: str = ""
    """Name given by the program through NVTX; empty for none."""
    flag: int = 0
    """How it was created, by CUPTI's number: 2 without waiting for the default stream, 3 as it."""
    priority: int | None = None

    @property
    def default(self) -> bool:
        """Whether it is the default stream, which blocking streams of its context wait for."""
        return self.flag == 3

    @property
    def blocking(self) -> bool:
        """Whether it waits for the default stream, and that one for it."""
        return self.flag == 1

    @property
    def label(self) -> str:
        """Short name for a lane: ``str 7``, or the program's own name."""
        if self.id < -1:
            return self.name
        if self.id < 0 or self.id == self.context == 0:
            return "unified memory"
        number = f"str {self.id}"
        return f"{number} {self.name}" if self.name else number


@dataclass(frozen=True)
class Diagnostic:
    """A message that nsys itself recorded in the report."""

    time: int
    severity: str
    source: str
    text: str
    process: int = -1
    """globalPid, or -1 where there is none."""


@dataclass(frozen=True)
class Metadata:
    """What was captured, where and with what; everything may be missing."""

    product_version: str = ""
    """nsys version that exported the file; empty for exports up to 2021."""
    schema_version: str = ""
    session_start_utc_ns: int | None = None
    session_duration_ns: int | None = None
    """ANALYSIS_DETAILS duration; None where unknown (never 0)."""
    host: str = ""
    os: str = ""
    cpu: str = ""
    driver: str = ""
    command: tuple[str, ...] = ()
    """Program and arguments of the profiled process; empty where not recorded."""
    gpus: tuple[GpuInfo, ...] = ()
    """All GPUs of the host, used or not."""
    contexts: tuple[Member, ...] = ()
    """GPUs that processes have a CUDA context on, by their id where it is known."""
    diagnostics: tuple[Diagnostic, ...] = ()
    capture_settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """META_DATA_CAPTURE as pairs (names repeat), without the environment: it may hold secrets."""
    notes: tuple[str, ...] = ()
    """What is odd about this export and how it was handled, one sentence each."""

    @property
    def machine(self) -> str:
        """Host name, operating system and processor, as far as nsys knew them."""
        known = (part for part in (self.host, self.os, self.cpu) if part not in ("", "unknown"))
        return ", ".join(known)


def counted_names(names: Iterable[str]) -> str:
    """``2x H100, A100``."""
    counted = Counter(names)
    return ", ".join(f"{n}x {name}" if n > 1 else name for name, n in counted.items())
