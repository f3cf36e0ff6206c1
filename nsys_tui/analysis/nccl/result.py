"""What was found about collectives: one row per collective, and one per rank's part in it.

time = last end - last start over the ranks; of a rank that is alone its kernel's duration, which
includes waiting for the others. algorithm bandwidth = S / time, bus bandwidth = wire bytes / time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nsys_tui.model.arrays import Bool, Float64, Indices, Int32, Int64
from nsys_tui.model.groups import rows_of_codes


@dataclass(frozen=True)
class Member:
    """A process that took part."""

    report: int
    """Index of its report."""
    pid: int
    rank: int
    """Rank in the job, -1 for not known."""
    gpu: str

    @property
    def label(self) -> str:
        """``rank 3``, or ``pid 4217`` where the rank is not known."""
        return f"rank {self.rank}" if self.rank >= 0 else f"pid {self.pid}"


@dataclass(frozen=True, eq=False)
class Parts:
    """What one process did in one collective; one row per launch that was joined with a kernel."""

    collective: Int64
    """Row in ``Collectives``."""
    member: Int32
    """Index into ``Collectives.members``."""
    row: Int64
    """First kernel, row in ``Report.operations`` of the member's report."""
    start: Int64
    """ns since the session start of the first report."""
    end: Int64
    how: Int32
    """``How`` it was joined."""
    chosen: Bool
    """Whether its call was asked for."""


@dataclass(frozen=True, eq=False)
class Collectives:
    """One row per collective, ascending by start; see ``Parts`` for who did what in it."""

    label: tuple[str, ...]
    """What was called, such as ``AllReduce`` or ``2 Send + 2 Recv``."""
    communicator: tuple[str, ...]
    calls: Int32
    bytes: Int64
    """Whole buffer S, -1 where not known."""
    wire: Float64
    """Bytes per rank on the wire, NaN where not known."""
    ranks: Int32
    """Size of the communicator, -1 where not known."""
    seen: Int32
    """Ranks whose kernel is in the reports."""
    start: Int64
    """First start, ns."""
    last_start: Int64
    end: Int64
    """Last end, ns."""
    last: Int32
    """Member that started last."""
    how: Int32
    """``How``: the weaker one where ranks differ."""
    kernel: tuple[str, ...]
    parts: Parts
    members: tuple[Member, ...]
    sized_by: str
    """Where the sizes come from: ``NVTX payloads``, ``NCCL log`` or empty."""
    notes: tuple[str, ...]
    """What is missing, guessed or odd, one sentence each."""

    def __len__(self) -> int:
        return len(self.label)

    def kernel_row(self, call: int) -> int:
        """Kernel of the rank that came last in a collective, row of its report's operations."""
        mine = (self.parts.collective == call) & (self.parts.member == self.last[call])
        return int(self.parts.row[np.argmax(mine)])

    @cached_property
    def parts_of(self) -> list[Indices]:
        """Rows of ``parts`` of each collective."""
        return rows_of_codes(self.parts.collective, len(self))

    @cached_property
    def waited(self) -> Int64:
        """Of each of ``parts``: from its start to the last rank's, at most to its own end; ns.

        It is 0 where no other rank is seen.
        """
        begin, end = self.parts.start, self.parts.end
        return np.maximum(np.minimum(self.last_start[self.parts.collective], end) - begin, 0)

    @cached_property
    def time(self) -> Int64:
        """Last end - last start, ns."""
        spent: Int64 = np.maximum(self.end - self.last_start, 0)
        return spent

    @cached_property
    def skew(self) -> Int64:
        """Last start - first start, ns: how long the first rank waited for the last one."""
        return self.last_start - self.start

    @cached_property
    def estimated(self) -> Bool:
        """Where the time includes waiting for ranks that are not in the reports."""
        return (self.seen < 2) | (self.seen < self.ranks)

    @cached_property
    def algorithm_bandwidth(self) -> Float64:
        """S / time in bytes per second, NaN where not known."""
        return _rate(np.where(self.bytes < 0, np.nan, self.bytes), self.time)

    @cached_property
    def bus_bandwidth(self) -> Float64:
        """Wire bytes / time in bytes per second, NaN where not known."""
        return _rate(self.wire, self.time)


def _rate(amount: Float64, ns: Int64) -> Float64:
    return np.where(ns > 0, amount * 1e9 / np.maximum(ns, 1), np.nan)
