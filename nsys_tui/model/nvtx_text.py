"""Sizes of collectives in NVTX: the payload of stock NCCL and the text of a patched one.

A patched NCCL writes ``ncclAllReduce(): commHash 0x…, stream …, data_size N, type_size M, pid P``.
``data_size`` is already bytes: multiplying it by ``type_size``, as an old script does, is wrong.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

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
