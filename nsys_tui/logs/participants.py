"""Who took part: processes, their communicators, the groups that these form, and the GPUs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LogProcess:
    """A process that wrote NCCL lines."""

    host: str
    pid: int
    rank: int
    """Rank in the job: the launcher's label before its lines, else RCCL's own, else its rank in its
    largest communicator; -1 if no line tells."""


@dataclass(frozen=True)
class Communicator:
    """One communicator as one rank sees it: a pointer in a process, from its init to its end."""

    process: int
    """Index into ``LogResult.processes``; -1 where only torn lines name it."""
    pointer: str
    rank: int
    nranks: int
    cuda_device: int
    bus_id: str
    comm_id: str
    """Id that all ranks of it share; empty before 2.16 and without Init lines."""
    nodes: int
    local_ranks: int
    local_rank: int
    parent: str
    """Pointer of the communicator that it was split from."""
    ended: str
    """``destroy``, ``abort`` or empty."""
    group: int
    """Index into ``LogResult.groups``."""
    gpu: int
    """Index into ``LogResult.gpus``; -1 if unknown."""
    calls: int
    first: tuple[int, int]
    """(file, line) where it is first seen."""


@dataclass(frozen=True)
class Group:
    """The communicators of all ranks that belong together."""

    nranks: int
    members: tuple[int, ...]
    """Indices into ``LogResult.communicators``, by rank where known."""
    comm_id: str
    certain: bool
    """Joined by the shared id; otherwise by size and order of appearance, which is a guess."""


@dataclass(frozen=True)
class Gpu:
    """A GPU of a host, as the Init lines or else the headers name it."""

    host: str
    device: int
    bus_id: str
    process: int
    certain: bool
    """From an Init line; otherwise it is the calling thread's device, which may be another."""

    @property
    def label(self) -> str:
        """Short text, such as ``node01 GPU 0 (17000)``; ``≈`` marks a guess."""
        bus = f" ({self.bus_id})" if self.bus_id else ""
        return f"{'' if self.certain else '≈ '}{self.host} GPU {self.device}{bus}"
