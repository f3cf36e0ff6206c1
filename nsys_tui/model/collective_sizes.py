"""Bytes that a collective moves: its buffer (algorithm bandwidth) and its wire (bus bandwidth).

The factors are those of a ring, as NVIDIA's nccl-tests define bus bandwidth (its document
PERFORMANCE.md): a figure that can be held against the speed of a link whatever the number of ranks.

Ranges of NVTX tell sizes in the payload of stock NCCL and in the text of a patched one, which
writes ``ncclAllReduce(): commHash 0x…, stream …, data_size N, type_size M, pid P``. ``data_size``
is already bytes: multiplying it by ``type_size``, as an old script does, is wrong.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any, Final

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


_PATCHED: Final = re.compile(
    r"nccl\w+\(\): commHash (0x[0-9a-f]+|\d+), stream [^,]+, data_size (\d+), "
    r"type_size \d+, pid \d+"
)
_NAME: Final = re.compile(r"(?:nccl)?[A-Z]")
_SIZE_KEYS: Final = ("Message size [bytes]", "Bytes")


def parse_patched_text(text: str) -> tuple[int, str] | None:
    """Bytes and communicator by the text of a range of a patched NCCL; None for any other text."""
    match = _PATCHED.search(text)
    return (int(match[2]), match[1]) if match else None


def parse_payload(name: str, payload: str) -> tuple[int, str] | None:
    """Reads the JSON payload (``jsonText``) of a range of stock NCCL, 2.18 or newer.

    Args:
        name: text of the range: ``ncclAllReduce``, or ``AllReduce`` in NCCL's domain from 2.28 on.
        payload: the export's ``jsonText``.

    Returns:
        Bytes and communicator, or None if the range is no collective or its payload names no size.
    """
    if not _NAME.match(name):
        return None
    values = payload_fields(payload)
    size = next((values[key] for key in _SIZE_KEYS if key in values), None)
    if not isinstance(size, int):
        return None
    return size, str(values.get("NCCL communicator ID") or "")


def payload_fields(payload: str) -> dict[str, Any]:
    """All named values of a JSON payload, nested ones too; none for text that is no JSON."""
    try:
        return _flatten(json.loads(payload))
    except (ValueError, RecursionError):
        return {}


def _flatten(value: Any) -> dict[str, Any]:
    """All pairs of nested objects and lists in one dictionary; whole numbers in text become int."""
    if isinstance(value, list):
        items = [pair for one in value for pair in _flatten(one).items()]
        return dict(items)
    if not isinstance(value, dict):
        return {}
    flat: dict[str, Any] = {}
    for key, one in value.items():
        if isinstance(one, dict | list):
            flat |= _flatten(one)
        elif isinstance(one, str) and one.lstrip("-").isdecimal():
            flat[key] = int(one)
        else:
            flat[key] = one
    return flat
