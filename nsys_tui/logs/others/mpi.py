"""MPI: lines of the LD_PRELOAD logger, summed per call; mpiP's reports of tasks and call sites."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from nsys_tui.logs.trainers.step_lines import number

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
            MpiRow(
                name,
                sizes.total(),
                min(sizes),
                max(sizes),
                sum(size * n for size, n in sizes.items()),
            )
            for name, sizes in self.sizes.items()
        ]
        return sorted(rows, key=lambda row: (-row.total_bytes, row.name))

    def add(self, text: bytes) -> bool:
        """Takes in the calls of one line, and says whether it is torn.

        A whole line has one call at its start; anything else was overwritten by another rank.
        """
        lines = 0
        for match in _LINE.finditer(text):
            pairs = _VALUE.findall(match[2])
            if pairs or not match[2].strip():
                lines += 1
                size = sum(int(value) for key, value in pairs if key.endswith(b"bytes"))
                self.sizes.setdefault(f"MPI_{match[1].decode()}", Counter())[size] += 1
                self.ranks |= {int(value) for key, value in pairs if key == b"world_rank"}
        names = len(_ANY.findall(text))
        torn = names > 0 and (lines != 1 or names != 1)
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


_HEAD: Final = re.compile(r"^@ (\w[\w ]*?)\s*: (.*?)\s*$")
_SECTION: Final = re.compile(r"^@--- (.+?)\s*-*$")
_TASK: Final = re.compile(r"^\s*(\d+|\*)\s+([\d.e+]+)\s+([\d.e+]+)\s+([\d.e+]+)\s*$")
_SITE: Final = re.compile(
    r"^(\w+)\s+(\d+)\s+([\d.e+-]+)\s+([\d.]+)\s+([\d.]+)(?:\s+(\d+))?(?:\s+([\d.]+))?\s*$"
)
WORDS: Final = (b"@ mpiP",)


@dataclass(frozen=True)
class Task:
    """One task of the run; seconds and percent."""

    task: str
    """Its rank, ``*`` for all together."""
    app_s: Fraction | None
    mpi_s: Fraction | None
    mpi_percent: Fraction | None


@dataclass(frozen=True)
class Site:
    """One call site over all tasks."""

    call: str
    site: int
    time_ms: Fraction | None
    app_percent: Fraction | None
    mpi_percent: Fraction | None
    calls: int | None
    """None before mpiP 3.5, which prints it."""


@dataclass
class MpipReport:
    """What a report says; those of several runs in a file follow one another."""

    file: int
    version: str = ""
    callsites: int | None = None
    tasks: list[Task] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    _section: str = ""


@dataclass
class MpipLines:
    """Gathers the reports of one file."""

    file: int
    reports: list[MpipReport] = field(default_factory=list)

    @property
    def inside(self) -> bool:
        """Whether a report has begun."""
        return bool(self.reports)

    def add(self, text: bytes) -> bool:
        """Takes a line in if it is of a report; returns whether it is."""
        line = text.decode("utf-8", "replace").rstrip()
        if line == "@ mpiP":
            self.reports.append(MpipReport(self.file))
            return True
        if not self.reports:
            return False
        report = self.reports[-1]
        if match := _SECTION.match(line):
            report._section = match[1]
            if match[1].startswith("Callsites: "):
                report.callsites = int(match[1].split()[1])
            return True
        if match := _HEAD.match(line):
            report.version = match[2] if match[1] == "Version" else report.version
            return True
        return _row(report, line)


def _row(report: MpipReport, line: str) -> bool:
    if report._section.startswith("MPI Time") and (match := _TASK.match(line)):
        report.tasks.append(Task(match[1], number(match[2]), number(match[3]), number(match[4])))
        return True
    if report._section.startswith("Aggregate Time") and (match := _SITE.match(line)):
        time, app, mpi = map(number, match.groups()[2:5])
        calls = int(match[6]) if match[6] else None
        report.sites.append(Site(match[1], int(match[2]), time, app, mpi, calls))
        return True
    return False
