"""Lines of the LD_PRELOAD MPI logger: ``[seconds] MPI_X: key=value …``, summed per call."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

_LINE: Final = re.compile(rb"\[(\d+\.\d+)\] MPI_(\w+): ?([^\[\n]*)")
_ANY: Final = re.compile(rb"\bMPI_[A-Z][a-z_]+:")
_VALUE: Final = re.compile(rb"(\w+)=(0x[0-9a-f]+|-?\d+)")


@dataclass(frozen=True)
class MpiCall:
    """One call of the logger's file."""

    file: int
    line: int
    time_ns: int
    """MPI_Wtime in nanoseconds; its zero point is the system's."""
    name: str
    """With the prefix ``MPI_``."""
    bytes: int
    """All bytes the line names (sent and received); 0 where it names none."""
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class MpiRow:
    """Calls of one name."""

    name: str
    calls: int
    min_bytes: int
    max_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class MpiLog:
    """What the MPI logger's lines say."""

    calls: tuple[MpiCall, ...]
    torn_lines: int
    """Lines with an MPI call that could not be read whole: ranks that share a file overwrite it."""
    world_ranks: tuple[int, ...]

    def per_call(self) -> tuple[MpiRow, ...]:
        """Calls and bytes per name, largest total first."""
        sizes: dict[str, list[int]] = {}
        for call in self.calls:
            sizes.setdefault(call.name, []).append(call.bytes)
        rows = [MpiRow(n, len(b), min(b), max(b), sum(b)) for n, b in sizes.items()]
        return tuple(sorted(rows, key=lambda row: (-row.total_bytes, row.name)))


def parse_mpi(text: bytes, file: int, line: int) -> tuple[list[MpiCall], bool]:
    """Reads the calls of one line, and says whether the line is torn.

    A whole logger line has one call at its start; anything else was overwritten by another rank.
    """
    found = [
        MpiCall(
            file,
            line,
            int(Decimal(match[1].decode()) * 1_000_000_000),
            f"MPI_{match[2].decode()}",
            sum(int(v) for k, v in pairs if k.endswith(b"bytes")),
            tuple((k.decode(), v.decode()) for k, v in pairs),
        )
        for match in _LINE.finditer(text)
        if (pairs := _VALUE.findall(match[3])) or not match[3].strip()
    ]
    names = len(_ANY.findall(text))
    return found, names > 0 and (len(found) != 1 or names != 1)
