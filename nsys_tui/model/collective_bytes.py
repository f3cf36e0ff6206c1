"""Bytes that a collective moves: its buffer (algorithm bandwidth) and its wire (bus bandwidth).

The factors are those of a ring, as NVIDIA's nccl-tests define bus bandwidth (its document
PERFORMANCE.md): a figure that can be held against the speed of a link whatever the number of ranks.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

_GATHERING: Final = frozenset(
    {"allgather", "reducescatter", "alltoall", "alltoallv", "alltoallpivot", "gather", "scatter"}
)
_ONE_WAY: Final = frozenset({"broadcast", "reduce", "send", "recv", "putsignal"})


def buffer_bytes(op: str, logged: int, ranks: int) -> int:
    """Whole buffer S of a call, from the bytes that its log line shows.

    AllGather, ReduceScatter, AlltoAll, Gather and Scatter log the share of one rank; S is that
    times the number of ranks. All others log S itself.

    Args:
        op: operation as NCCL names it; case does not matter.
        logged: count × element size of one call.
        ranks: size of the communicator.
    """
    return logged * ranks if op.lower() in _GATHERING else logged


def wire_factor(op: str, ranks: int) -> Fraction | None:
    """What S is multiplied with to get the bytes per rank on the wire; 0 with one rank.

    None for an operation whose traffic is not defined.

    AllReduce 2(n−1)/n; AllGather, ReduceScatter, AlltoAll, Gather and Scatter (n−1)/n; Broadcast,
    Reduce, Send and Recv 1: the ring's traffic by which nccl-tests (PERFORMANCE.md, "Bus
    bandwidth") turns algorithm bandwidth S / time into bus bandwidth.
    """
    name = op.lower()
    if ranks <= 1:
        return Fraction(0)
    if name == "allreduce":
        return Fraction(2 * (ranks - 1), ranks)
    if name in _GATHERING:
        return Fraction(ranks - 1, ranks)
    return Fraction(1) if name in _ONE_WAY else None


def wire_bytes(op: str, logged: int, ranks: int) -> Fraction | None:
    """Bytes per rank on the wire for one call: ``wire_factor`` × ``buffer_bytes``, exact.

    bus bandwidth = ``wire_bytes`` / time; algorithm bandwidth = ``buffer_bytes`` / time.
    """
    factor = wire_factor(op, ranks)
    return None if factor is None else factor * buffer_bytes(op, logged, ranks)
