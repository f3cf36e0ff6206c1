"""Source: what a report asks of the reader behind it, so that it knows no file format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from nsys_tui.model.arrays import Array, Int32, Int64
    from nsys_tui.model.capabilities import Capability
    from nsys_tui.model.events import (
        ApiCalls,
        CallChains,
        LaunchAttributes,
        Operations,
        OpName,
        Payloads,
    )
    from nsys_tui.model.kinds import Kind
    from nsys_tui.model.notes import Notes
    from nsys_tui.model.progress import Progress
    from nsys_tui.model.target import Metadata

    Arrays = dict[str, Array]


@dataclass(frozen=True)
class RawRow:
    """One row, for a detail pane."""

    columns: Mapping[str, Any]
    """Every column as the file calls it."""
    fields: Mapping[str, Any]
    """Those that are known, by the names that ``RawTable`` has."""


@dataclass(frozen=True)
class RawTable:
    """Rows of a rarely used kind by the names of their fields, texts in place of string ids.

    Fields that the file lacks hold None everywhere.
    """

    columns: Mapping[str, list[Any]]
    count: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, column: str) -> list[Any]:
        return self.columns[column]

    def lists(self) -> tuple[list[Any], ...]:
        """The values of each field, in the order in which they were asked for."""
        return tuple(self.columns.values())

    def dictionaries(self) -> list[dict[str, Any]]:
        """The rows, each by column name."""
        names = list(self.columns)
        rows = zip(*self.columns.values(), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]


class Source(Protocol):
    """What the reader offers for one open file."""

    path: Path
    metadata: Metadata
    capabilities: frozenset[Capability]
    notes: Notes
    """What was not believed; grows while parts are read."""
    doubts: Mapping[Capability, str]
    """Why capabilities are off although the file may hold data of their kind."""

    @property
    def thread_names(self) -> Mapping[int, str]:
        """globalTid -> name; may list the whole machine."""

    @property
    def process_names(self) -> Mapping[int, str]:
        """globalPid -> name."""

    def part(self, name: str, progress: Progress | None) -> Any:
        """An event set by its name among ``report.PARTS``; open ranges still end at their start."""

    def sampled_operations(self, rows: int) -> Operations:
        """An evenly spaced sample of the GPU work."""

    def kernel_names(self) -> tuple[OpName, ...]:
        """The names of all kernels, which take a fraction of the time of all operations."""

    def payloads(self) -> Payloads:
        """NVTX payloads as JSON text."""

    @property
    def ranks(self) -> Mapping[int, int]:
        """globalPid -> MPI rank."""

    def chains(self, kind: Kind, progress: Progress | None) -> CallChains:
        """The call chains of a kind."""

    def calls(self, ops: Operations, api: ApiCalls) -> Int32:
        """Row in ``api`` that launched each operation, -1 for none."""

    def derived(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Arrays that follow from the file and nothing else, stored where there is room."""

    def stored(self, name: str) -> Arrays | None:
        """What ``derived`` stored under a name, now or at an earlier opening."""

    def launch_attributes(self, ops: Operations) -> LaunchAttributes:
        """Launch configuration of kernels."""

    def has(self, kind: Kind, fields: tuple[str, ...]) -> bool:
        """Whether the file has a table of a kind with all these fields."""

    def table_of(self, kind: Kind) -> str:
        """What the file calls the table of a kind."""

    def row(self, kind: Kind, rowid: int) -> RawRow:
        """Every column of one row."""

    def rows(self, kind: Kind, fields: tuple[str, ...]) -> RawTable:
        """All rows of a rarely used kind."""

    def numbers(self, kind: Kind, names: tuple[str, ...]) -> tuple[Int64, ...]:
        """Rowids and values of fields of numbers, -1 where a row has none."""

    def close(self) -> None:
        """Closes the file."""
