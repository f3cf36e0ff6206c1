"""The tables of a report in the making: rows by column name, the strings and ids they point to."""

from __future__ import annotations

from typing import Any, Final

from nsys_tui.demo.events import Phase, Trace

Row = dict[str, Any]
HW_VM: Final = 0x0001
"""Hardware 0, virtual machine 1: what most Linux reports have in the top 16 bits."""


def global_tid(pid: int, tid: int = 0) -> int:
    """HW:8 | VM:8 | PID:24 | TID:24; with thread 0 the key of the process."""
    return HW_VM << 48 | (pid & 0xFFFFFF) << 24 | tid & 0xFFFFFF


class Tables:
    """Collects the rows of every table, each with the phase of the run it belongs to."""

    def __init__(self, trace: Trace, generation: str, own_devices: bool) -> None:
        self.trace, self.generation = trace, generation
        self.own_devices = own_devices
        """Each process sees only its own GPU, as CUDA device 0; else it uses device = rank."""
        self.tables: dict[str, list[tuple[Phase, Row]]] = {}
        self.strings: dict[str, int] = {"": 1}

    def add(self, table: str, phase: Phase = Phase.SETUP, /, **columns: Any) -> None:
        """Adds one row."""
        self.tables.setdefault(table, []).append((phase, columns))

    def string(self, value: str) -> int:
        """The id of a string."""
        return self.strings.setdefault(value, len(self.strings) + 1)

    def pid(self, rank: int) -> int:
        """The process of a rank."""
        return self.trace.ranks[rank].pid

    def device(self, rank: int) -> int:
        """The CUDA ordinal of a rank's GPU inside its process."""
        return 0 if self.own_devices else self.trace.ranks[rank].gpu
