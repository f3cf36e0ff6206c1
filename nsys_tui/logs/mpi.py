"""Lines of the LD_PRELOAD MPI logger: ``[seconds] MPI_X: key=value …``, summed per call."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_LINE: Final = re.compile(rb"\[\d+\.\d+\] MPI_(\w+): ?([^\[\n]*)")
_ANY: Final = re.compile(rb"\bMPI_[A-Z][a-z_]+:")
_VALUE: Final = re.compile(rb"(\w+)=(0x[0-9a-f]+|-?\d+)")


@dataclass(frozen=True)
class MpiRow:
    """Calls of one name."""

    name: str
    """With the prefix ``MPI_``."""
    calls: int
    min_bytes: int
    max_bytes: int
    total_bytes: int


@dataclass
class MpiLog:
    """What the MPI logger's lines say, as sums."""

    torn_lines: int = 0
    """Lines with an MPI call that could not be read whole: ranks that share a file overwrite it."""
    sizes: dict[str, Counter[int]] = field(default_factory=dict)
    """Calls by name and by all bytes that their line names (sent and received; 0 without any)."""
    ranks: set[int] = field(default_factory=set)

    @property
    def calls(self) -> int:
        """Calls of any name."""
        return sum(sizes.total() for sizes in self.sizes.values())

    @property
    def world_ranks(self) -> list[int]:
        """Ranks that lines tell."""
        return sorted(self.ranks)

    def per_call(self) -> list[MpiRow]:
        """Calls and bytes per name, largest total first."""
        rows = [
            MpiRow(name, own.total(), min(own), max(own), sum(size * n for size, n in own.items()))
            for name, own in self.sizes.items()
        ]
        return sorted(rows, key=lambda row: (-row.total_bytes, row.name))

    def add(self, text: bytes) -> bool:
        """Takes in the calls of one line, and says whether it is torn.

        A whole line has one call at its start; anything else was overwritten by another rank.
        """
        found = 0
        for match in _LINE.finditer(text):
            pairs = _VALUE.findall(match[2])
            if pairs or not match[2].strip():
                found += 1
                size = sum(int(value) for key, value in pairs if key.endswith(b"bytes"))
                self.sizes.setdefault(f"MPI_{match[1].decode()}", Counter())[size] += 1
                self.ranks |= {int(value) for key, value in pairs if key == b"world_rank"}
        names = len(_ANY.findall(text))
        torn = names > 0 and (found != 1 or names != 1)
        self.torn_lines += torn
        return torn


def joined_mpi(parts: Iterable[MpiLog]) -> MpiLog:
    """The lines of all files."""
    whole = MpiLog()
    for part in parts:
        whole.torn_lines += part.torn_lines
        whole.ranks |= part.ranks
        for name, sizes in part.sizes.items():
            whole.sizes.setdefault(name, Counter()).update(sizes)
    return whole
