"""nsys's serialized ids."""

from __future__ import annotations

from typing import Final

HW_VM: Final = 0x0001
"""Hardware 0, virtual machine 1: what most Linux reports have in the top 16 bits."""


def global_tid(pid: int, tid: int = 0) -> int:
    """HW:8 | VM:8 | PID:24 | TID:24; with thread 0 the key of the process."""
    return HW_VM << 48 | (pid & 0xFFFFFF) << 24 | tid & 0xFFFFFF
