"""What the made-up run consists of: plain records, in nanoseconds since the session's start.

``truth`` counts over these lists and ``rows`` turns them into nsys's tables; neither knows how they
came about.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final


class Phase(IntEnum):
    """Which part of the run a record belongs to; only the loop is repeated in scaled reports."""

    SETUP = 0
    LOOP = 1
    EPILOGUE = 2


KERNEL: Final = "kernel"
MEMCPY: Final = "memcpy"
MEMSET: Final = "memset"
GRAPH: Final = "graph"


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel's identity and launch shape, with its duration on a healthy GPU."""

    full: str
    short: str
    ns: int
    grid: tuple[int, int, int] = (108, 1, 1)
    block: tuple[int, int, int] = (256, 1, 1)
    registers: int = 40
    static_shared: int = 0
    dynamic_shared: int = 0


@dataclass(slots=True)
class Operation:
    """Something a GPU did: a kernel, copy, memset or the launch of a whole graph."""

    kind: str
    rank: int
    stream: int
    start: int
    end: int
    correlation: int
    phase: Phase
    kernel: Kernel | None = None
    bytes: int = 0
    copy_kind: int = 0
    source: int = 0
    target: int = 0
    """Memory kinds of a copy: 0 pageable, 1 pinned, 2 device."""

    @property
    def ns(self) -> int:
        """Its duration."""
        return self.end - self.start


@dataclass(slots=True)
class OnThread:
    """What a host thread did for some time."""

    name: str
    rank: int
    tid: int
    start: int
    end: int


@dataclass(slots=True)
class Call(OnThread):
    """A CUDA API call on a host thread."""

    correlation: int
    phase: Phase
    driver: bool = False
    frames: tuple[str, ...] = ()
    """Its backtrace, leaf first, where one was sampled."""


@dataclass(slots=True)
class Range:
    """An NVTX range, mark, domain or category; ``end`` None where it never ended."""

    name: str
    rank: int
    tid: int
    start: int
    end: int | None
    phase: Phase
    event_type: int = 59
    domain: int = 0
    registered: bool = False
    end_tid: int | None = None
    payload: str | None = None
    category: int | None = None
    depth: int = 0


@dataclass(slots=True)
class OsCall(OnThread):
    """A call into the operating system's runtime libraries."""

    phase: Phase
    frames: tuple[str, ...] = ()


@dataclass(slots=True)
class Sync:
    """A host-side wait, or a stream told to wait for an event (kind 2)."""

    kind: int
    rank: int
    stream: int
    start: int
    end: int
    correlation: int
    phase: Phase
    event: int = 2**32 - 1


@dataclass(slots=True)
class EventRecord:
    """A CUDA event recorded on a stream, with the time it completed on the device."""

    rank: int
    stream: int
    timestamp: int
    correlation: int
    event: int
    phase: Phase


@dataclass(slots=True)
class Overhead(OnThread):
    """A cost beside the program; kind as in CUPTI: 3 flush, 6 module loading, 7 lazy loading."""

    kind: int


@dataclass(slots=True)
class MemoryUse:
    """An allocation or release of device memory."""

    rank: int
    start: int
    bytes: int
    freed: bool
    address: int
    correlation: int


@dataclass(slots=True)
class Collective:
    """One rank's part in a collective."""

    op: str
    rank: int
    tid: int
    count: int
    datatype: int
    reduction: int
    op_count: int
    call_start: int
    start: int = 0
    end: int = 0

    @property
    def bytes(self) -> int:
        """Bytes of the rank's buffer: NCCL's types 9 (bfloat16) and 7 (float)."""
        return self.count * {9: 2, 7: 4}[self.datatype]


@dataclass(slots=True)
class Sample:
    """One CPU sample with its call chain, leaf first."""

    rank: int
    tid: int
    start: int
    cpu: int
    frames: tuple[str, ...]


@dataclass(slots=True)
class Switch:
    """A thread was put on a CPU or taken off."""

    rank: int
    tid: int
    start: int
    cpu: int
    switched_in: bool


@dataclass(slots=True)
class Metric:
    """One sample of a GPU metric."""

    gpu: int
    start: int
    name: str
    value: int


@dataclass(frozen=True, slots=True)
class RankInfo:
    """One process: rank, pid, the physical GPU behind its CUDA device 0, and its threads."""

    rank: int
    pid: int
    gpu: int
    threads: dict[str, int]
    streams: dict[str, int]


@dataclass(slots=True)
class Trace:
    """The whole run."""

    ranks: list[RankInfo] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    ranges: list[Range] = field(default_factory=list)
    os_calls: list[OsCall] = field(default_factory=list)
    syncs: list[Sync] = field(default_factory=list)
    event_records: list[EventRecord] = field(default_factory=list)
    overheads: list[Overhead] = field(default_factory=list)
    memory: list[MemoryUse] = field(default_factory=list)
    collectives: list[Collective] = field(default_factory=list)
    graph_nodes: list[tuple[int, int, int, int | None]] = field(default_factory=list)
    """Graph events as (rank, start, event class, graph or executable id)."""
    samples: list[Sample] = field(default_factory=list)
    switches: list[Switch] = field(default_factory=list)
    metrics: list[Metric] = field(default_factory=list)
    steps: int = 0
    duration: int = 0
    """Length of the session."""
