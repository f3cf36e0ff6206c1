"""Who took part: processes, communicators, the groups that these form and what for, and GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.logs.nccl.calls import Calls, rows_by
from nsys_tui.logs.nccl.grammar import ALL_TO_ALL, POINT_TO_POINT, datatype_name
from nsys_tui.model.arrays import Integers
from nsys_tui.model.groups import factorise, factorise_rows


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
    """Joined by the shared id, or one of each rank where none else is of their size; else by size
    and order of appearance, which is a guess."""


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


_FEWEST: Final = 8
"""Calls below which no guess is made."""
_STAGES_BESIDE: Final = 2
"""Stages that a stage of a pipeline talks to at most: the one before and the one behind."""
_LARGE: Final = 1 << 20
_MAX: Final = 2
"""ncclMax."""


def purposes(
    calls: Calls, communicators: Sequence[Communicator], groups: Sequence[Group]
) -> list[str]:
    """A guess for each group, marked ``≈``; empty where the sums of its calls show no pattern.

    Many calls of one size in half precision look like tensor parallelism, large gathers and
    reductions like data parallelism, single values with ``max`` like a check for overflow. Sends
    and receives of each rank with one or two others are those of pipeline stages; with itself or
    with more they are the exchange of experts.
    """
    if not len(calls):
        return [""] * len(groups)
    group = np.array([one.group for one in communicators])[calls.communicator]
    by_group = {number: _purpose(calls, rows, groups[number]) for number, rows in rows_by(group)}
    return [by_group.get(number, "") for number in range(len(groups))]


def _purpose(calls: Calls, rows: Integers, group: Group) -> str:
    number = calls.number[rows].astype(np.int64)
    total = int(number.sum())
    if total < _FEWEST or group.nranks < 2:
        return ""
    numbers = np.bincount(calls.op[rows], number, minlength=len(calls.ops))
    called = {op: int(count) for op, count in zip(calls.ops, numbers, strict=True) if count}
    if sum(called.get(op, 0) for op in POINT_TO_POINT) > total / 2:
        return _exchange(calls, rows)
    if sum(called.get(op, 0) for op in ALL_TO_ALL) > total / 2:
        return "≈ expert parallel"
    if number[(calls.count[rows] == 1) & (calls.reduction[rows] == _MAX)].sum() > total / 2:
        return "≈ overflow check"
    code, sizes = factorise(calls.bytes[rows])
    counts = np.bincount(code, number)
    common = int(np.argmax(counts))
    first = int(rows[np.argmax(code == common)])
    kind, op = datatype_name(int(calls.datatype[first])), calls.ops[int(calls.op[first])]
    if op == "AllReduce" and counts[common] > total / 2 and kind in ("fp16", "bf16"):
        return "≈ tensor parallel"
    if (sizes >= _LARGE).any() and not called.keys().isdisjoint(("AllReduce", "ReduceScatter")):
        return "≈ data parallel"
    return ""


def _exchange(calls: Calls, rows: Integers) -> str:
    """Pipeline or expert parallelism, by how many partners a rank has."""
    places = [code for code, op in enumerate(calls.ops) if op in POINT_TO_POINT]
    rows = rows[np.isin(calls.op[rows], places)]
    peers = calls.root[rows]
    _, pairs = factorise_rows((calls.communicator[rows], peers))
    several = np.bincount(pairs[:, 0]).max() > _STAGES_BESIDE
    if several or (calls.rank[rows] == peers).any():
        return "≈ expert parallel"
    told = (calls.rank[rows] >= 0).all() or (calls.nranks[rows] > 1 + _STAGES_BESIDE).all()
    return "≈ pipeline parallel" if told else "≈ pipeline or expert parallel"
