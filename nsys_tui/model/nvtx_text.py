"""Sizes of collectives in NVTX: the payload of stock NCCL and the text of a patched one.

A patched NCCL writes ``ncclAllReduce(): commHash 0x…, stream …, data_size N, type_size M, pid P``.
``data_size`` is already bytes: multiplying it by ``type_size``, as an old script does, is wrong.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

_PATCHED: Final = re.compile(
    r"nccl(\w+)\(\): commHash (0x[0-9a-f]+|\d+), stream ([^,]+), data_size (\d+), "
    r"type_size (\d+), pid (\d+)"
)
_NAME: Final = re.compile(r"(?:nccl)?([A-Z]\w*)")
_SIZE_KEYS: Final = ("Message size [bytes]", "Bytes")
_COMM_KEYS: Final = ("NCCL communicator ID",)
_PEER_KEYS: Final = ("Root", "Peer", "Peer rank")


@dataclass(frozen=True)
class NvtxCollective:
    """A collective as an NVTX range describes it; -1 or empty where it does not say."""

    op: str
    bytes: int
    communicator: str
    stream: str = ""
    element_bytes: int = -1
    pid: int = -1
    peer: int = -1
    """Root, or for Send and Recv the peer."""
    reduction: str = ""

    @property
    def count(self) -> int:
        """Elements, -1 where the element size is not known."""
        return self.bytes // self.element_bytes if self.element_bytes > 0 else -1


def parse_patched_text(text: str) -> NvtxCollective | None:
    """Reads the text of a range of a patched NCCL; None for any other text."""
    match = _PATCHED.search(text)
    if match is None:
        return None
    op, comm_hash, stream, size, element, pid = match.groups()
    return NvtxCollective(op, int(size), comm_hash, stream.strip(), int(element), int(pid))


def parse_payload(name: str, payload: str) -> NvtxCollective | None:
    """Reads the JSON payload (``jsonText``) of a range of stock NCCL, 2.18 or newer.

    Args:
        name: text of the range: ``ncclAllReduce``, or ``AllReduce`` in NCCL's domain from 2.28 on.
        payload: the export's ``jsonText``.

    Returns:
        The collective, or None if the range is none or its payload names no size.
    """
    named = _NAME.match(name)
    if named is None:
        return None
    values = payload_fields(payload)
    size = _first(values, _SIZE_KEYS)
    if not isinstance(size, int):
        return None
    peer = _first(values, _PEER_KEYS)
    return NvtxCollective(
        named[1],
        size,
        str(_first(values, _COMM_KEYS) or ""),
        peer=peer if isinstance(peer, int) else -1,
        reduction=str(_first(values, ("Reduction operation",)) or ""),
    )


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


def _first(values: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((values[key] for key in keys if key in values), None)
