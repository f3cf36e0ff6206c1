"""Calls of collectives as columns, and the launches they make; the same from NVTX and from a log.

Whoever reads a log fills ``Calls`` itself: analyses know no log format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nsys_tui.model.arrays import Bool, Float64, Int32, Int64
from nsys_tui.model.collective_sizes import buffer_bytes, wire_bytes
from nsys_tui.model.groups import Key, factorise_rows

UNKNOWN: Final = -1
ANY_KIND: Final = ""
"""Kind of a launch that several operations share, or of a kernel whose name does not say."""
_PEER_TO_PEER: Final = frozenset({"Send", "Recv", "AlltoAll", "Gather", "Scatter"})
"""What NCCL builds of sends and receives; all of it runs in the kernel SendRecv."""


class CallProcess(NamedTuple):
    """A process that made calls."""

    host: str
    pid: int
    rank: int
    """Rank in the job, -1 for not known."""
    gpu_ranks: tuple[tuple[int, int], ...] = ()
    """(CUDA ordinal, rank in the job) where the process drives several GPUs."""


@dataclass(frozen=True, eq=False)
class Calls:
    """Calls of collectives in the order in which each process made them; -1 means not known."""

    process: Int32
    """Index into ``processes``."""
    thread: Int64
    """Thread id as the operating system gave it."""
    op: Int32
    """Index into ``ops``."""
    bytes: Int64
    """count x element size of one call, as NCCL counts it."""
    ranks: Int32
    """Size of the communicator."""
    rank: Int32
    """Rank in the communicator."""
    communicator: Int32
    """Index into ``communicators``; all ranks of a communicator have the same one."""
    slot: Int32
    """Which of the GPUs that its process drives in the communicator; 0 where it drives one."""
    launch: Int64
    """Calls with the same number were launched together."""
    number: Int64
    """NCCL's own number of the launch (opCount), the same on all ranks; -1 where not known."""
    start: Int64
    """When the launch began on the host, ns; 0 in a log."""
    end: Int64
    """When the launch ended on the host, ns; 0 in a log."""
    chosen: Bool
    """Calls that were asked for, such as those of a window of steps; the others help to join."""
    ops: tuple[str, ...]
    communicators: tuple[str, ...]
    """Empty text where the communicator is not known."""
    processes: tuple[CallProcess, ...]

    def __len__(self) -> int:
        return len(self.op)

    def rank_of(self, pid: int, ordinal: int | None) -> int:
        """Rank in the job of a GPU of a process that drives several, -1 for not known."""
        told = (dict(process.gpu_ranks) for process in self.processes if process.pid == pid)
        return next((ranks[ordinal] for ranks in told if ordinal in ranks), UNKNOWN)


@dataclass(frozen=True, eq=False)
class Launches:
    """One row per launch: the calls of a group in one communicator on one GPU, bytes summed."""

    process: Int32
    thread: Int64
    communicator: Int32
    label: Int32
    """Index into ``labels``: ``AllReduce``, ``2 Send + 2 Recv``."""
    kind: Int32
    """Index into ``kinds``: the operation as kernel names have it."""
    calls: Int32
    bytes: Int64
    """Whole buffers S, summed; -1 where the size or the number of ranks is not known."""
    wire: Float64
    """Bytes per rank on the wire, summed; NaN where not known."""
    ranks: Int32
    rank: Int32
    slot: Int32
    """As in ``Calls``."""
    group: Int64
    """Launches with the same number were issued together, by one group call."""
    number: Int64
    """As in ``Calls``."""
    start: Int64
    end: Int64
    chosen: Bool
    """Launches with a call that was asked for."""
    labels: tuple[str, ...]
    kinds: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.label)


def kind_of(op: str) -> str:
    """The operation as NCCL's kernel names have it; empty for one that says nothing."""
    if op in _PEER_TO_PEER:
        return "SendRecv"
    return op if op in ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce") else ""


def launches_of(calls: Calls) -> Launches:
    """Sums the calls of each launch; launches keep the order of their first calls."""
    group = _numbered(calls.launch)
    key = group * max(len(calls.communicators), 1) + calls.communicator
    code = _numbered(key * (int(calls.slot.max(initial=0)) + 1) + calls.slot)
    first = np.unique(code, return_index=True)[1]
    count = len(first)
    size, wire = _sizes(calls)
    labels: dict[str, int] = {}
    kinds: dict[str, int] = {}
    members = np.bincount(code, minlength=count)
    label = coded(calls.ops, labels).astype(np.int32)[calls.op[first]]
    kind = coded(map(kind_of, calls.ops), kinds).astype(np.int32)[calls.op[first]]
    order = np.argsort(code, kind="stable")
    ends = np.cumsum(members)
    for place in np.flatnonzero(members > 1):
        ops = Counter(
            calls.ops[o] for o in calls.op[order[ends[place] - members[place] : ends[place]]]
        )
        label[place] = coded([_group_label(ops)], labels)[0]
        shared = {kind_of(op) for op in ops}
        kind[place] = coded([shared.pop() if len(shared) == 1 else ANY_KIND], kinds)[0]
    return Launches(
        calls.process[first],
        calls.thread[first],
        calls.communicator[first],
        label,
        kind,
        members.astype(np.int32),
        _summed(code, size, size < 0, count, UNKNOWN).astype(np.int64),
        _summed(code, wire, np.isnan(wire), count, np.nan).astype(np.float64),
        calls.ranks[first],
        calls.rank[first],
        calls.slot[first],
        group[first],
        calls.number[first],
        calls.start[first],
        calls.end[first],
        np.bincount(code, calls.chosen, count) > 0,
        tuple(labels),
        tuple(kinds),
    )


def _group_label(ops: Counter[str]) -> str:
    """``8 AllReduce``, or ``2 Send + 2 Recv``."""
    return " + ".join(f"{count} {op}" if count > 1 else op for op, count in ops.items())


def _numbered(keys: Int64) -> Int64:
    """Numbers distinct keys from 0 in the order in which they first appear."""
    _, first, code = np.unique(keys, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[code]


def _sizes(calls: Calls) -> tuple[Int64, Float64]:
    """Buffer and wire bytes of each call, worked out once per distinct (op, bytes, ranks)."""
    code, distinct = factorise_rows((calls.op, calls.bytes, calls.ranks))
    sizes = [_size(calls.ops[op], logged, ranks) for op, logged, ranks in distinct.tolist()]
    size = np.array([whole for whole, _ in sizes], np.int64)
    wire = np.array([sent for _, sent in sizes], np.float64)
    return size[code], wire[code]


def _size(op: str, logged: int, ranks: int) -> tuple[int, float]:
    """Buffer and wire bytes of one call; -1 and NaN for what does not follow from its columns."""
    if logged < 0:
        return UNKNOWN, np.nan
    if ranks < 1:
        # Operations whose count is that of the whole buffer need no number of ranks for it.
        return (logged if buffer_bytes(op, 1, 2) == 1 else UNKNOWN), np.nan
    wire = wire_bytes(op, logged, ranks)
    return buffer_bytes(op, logged, ranks), np.nan if wire is None else float(wire)


def _summed(
    code: Int64, values: NDArray[np.number], missing: Bool, count: int, nothing: float
) -> NDArray[np.number]:
    total = np.zeros(count, values.dtype)
    np.add.at(total, code, np.where(missing, 0, values))
    total[code[missing]] = nothing
    return total


def coded(keys: Iterable[Key], codes: dict[Key, int]) -> Int64:
    """The code of each key; a new one gets the next."""
    return np.array([codes.setdefault(key, len(codes)) for key in keys], np.int64)
