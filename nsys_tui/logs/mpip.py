"""Reports of mpiP: MPI time of each task, and the call sites that take most of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from nsys_tui.logs.trainers import number

if TYPE_CHECKING:
    from fractions import Fraction

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
