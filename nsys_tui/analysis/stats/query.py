"""What statistical reports are asked for, and their register.

The filter rules are NVIDIA's: a row that touches the window counts whole. ``clip`` gives ours: time
is cut to the window and events count where they start (definitions: "Totals"). A report is a small
function in a family file, registered by the decorator; ``--help-reports`` and the default list read
the register. ``range[@domain][/index]`` names the time window and thread of one NVTX range.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from nsys_tui.analysis.window import EVERYTHING, Rows, Scope, masked, row_numbers, starting
from nsys_tui.errors import NoDataError, UsageError
from nsys_tui.model.arrays import Bool
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import EventSet, ThreadEvents
from nsys_tui.model.kinds import Kind
from nsys_tui.model.report import Report
from nsys_tui.model.table import Column, Values
from nsys_tui.model.target import PROCESS_MASK, pid_of


@dataclass(frozen=True)
class Query:
    """What a statistical report is computed over."""

    report: Report
    scope: Scope = field(default_factory=Scope)
    thread: int | None = None
    """globalTid that an NVTX filter on a push/pop range keeps; its process for GPU operations."""
    clip: bool = False
    """Cut durations to the window and count events where they start."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Arguments of the report: ``{"base": ""}``, ``{"rows": "10"}``."""

    def has(self, argument: str) -> bool:
        """Whether a flag such as ``base`` was given."""
        return argument in self.arguments

    @property
    def restricted(self) -> bool:
        """Whether anything is left out on purpose: then an empty result does not mean no data."""
        return self.scope != Scope() or self.thread is not None

    def operations(self, *kinds: int) -> Rows:
        """Rows of ``report.operations`` of the given ``OpKind`` (default: all)."""
        ops = self.report.operations
        rows = self.scope.operations(ops)
        if rows is EVERYTHING and kinds and OpKind.KERNEL not in kinds:
            rows = ops.others
        if self.thread is not None:
            of_process = ops.processes == (self.thread & PROCESS_MASK)
            rows = masked(
                rows, of_process[ops.process[rows]] if len(of_process) else np.zeros(0, bool)
            )
        if kinds:
            wanted = np.isin(np.arange(256), kinds)
            rows = masked(rows, wanted[ops.kind[rows]])
        return rows

    def events(self, events: ThreadEvents, mask: Bool | None = None) -> Rows:
        """Rows of a host event set; ``mask`` says which of all its events may count."""
        rows = self.scope.threads(events)
        if self.thread is not None:
            of_thread = events.threads == self.thread
            rows = masked(
                rows, of_thread[events.thread[rows]] if len(of_thread) else np.zeros(0, bool)
            )
        return rows if mask is None else masked(rows, mask[rows])

    def counted(self, events: EventSet, rows: Rows) -> Rows:
        """Those of some rows that count as whole: with ``clip`` the ones that start in the window.

        For reports whose figures cannot be cut at an edge: bytes, launches, projections.
        """
        if not self.clip or self.scope.window is None:
            return rows
        return row_numbers(events, rows)[starting(events, rows, self.scope.window)]

    def raw_counted(self, kind: Kind, *fields: str) -> list[dict[str, Any]]:
        """``raw`` rows that count as whole (see ``counted``)."""
        rows = self.raw(kind, *fields)
        if not self.clip or self.scope.window is None:
            return rows
        lo, hi = self.scope.window
        return [row for row in rows if row["start"] is None or lo <= row["start"] < hi]

    def raw(self, kind: Kind, *fields: str) -> list[dict[str, Any]]:
        """Rows of a rarely used kind inside the scope, as dictionaries.

        Rows are restricted by whatever they hold of ``start``, ``end``, ``global_tid`` and
        ``global_pid``; a row without an end is a point, and one without a start is damaged.
        """
        timed = self.report.has(kind, "start")
        read = ("start", "end", "global_tid", "global_pid")
        columns = self.report.rows(kind, *dict.fromkeys((*read, *fields)))
        rows = (row for row in columns.dictionaries() if not timed or row["start"] is not None)
        return [row for row in rows if self.keeps(row)]

    def keeps(self, row: Mapping[str, Any]) -> bool:
        """Whether a row with ``start``, ``end``, ``global_tid`` and ``global_pid`` is in scope."""
        owner = row["global_tid"] if row["global_tid"] is not None else row["global_pid"]
        if self.thread is not None and owner is not None:
            kept = self.thread if row["global_tid"] is not None else self.thread & PROCESS_MASK
            if owner != kept:
                return False
        if self.scope.processes is not None and (
            owner is None or pid_of(owner) not in self.scope.processes
        ):
            return False
        start, end = row["start"], row["end"]
        if self.scope.window is None or start is None:
            return True
        lo, hi = self.scope.window
        return bool(start < hi and (start >= lo or (end is not None and end > lo)))


Columns: TypeAlias = list[tuple[Column, Values]]
"""A table in the making: each column with its values."""
Builder: TypeAlias = Callable[[Query], Columns]

KERNEL_NAMES: Final = {
    "nvtx-name": "put the innermost NVTX range around the launch before kernels' names",
    "base": "the kernel's base name, without types and arguments",
    "mangled": "the kernel's mangled name, where the report has it",
}
"""Arguments of every report that names kernels."""


def nothing(_query: Query) -> tuple[str, ...]:
    """The notes of a report that needs none."""
    return ()


@dataclass(frozen=True)
class Needs:
    """What reports on one kind of data are made of."""

    data: str
    """As in "does not contain ... data"."""
    option: str
    """What to add to ``nsys profile`` to record it."""
    kinds: tuple[Capability, ...] = ()
    """Kinds of data that a file may hold in a form that is not believed."""
    by_device: bool = False
    """Whether rows belong to GPUs, so that ``--by-device`` can tell them apart."""
    notes: Callable[[Query], tuple[str, ...]] = nothing


@dataclass(frozen=True)
class StatReport:
    """One statistical report."""

    name: str
    title: str
    build: Builder
    needs: Needs
    old_names: tuple[str, ...]
    arguments: dict[str, str]
    """Accepted arguments with a line of help; ``name=`` takes a value."""
    help: str
    """What the report tells."""


REPORTS: Final[dict[str, StatReport]] = {}
"""All reports by name."""


def report(
    title: str, needs: Needs, *, old: str = "", arguments: dict[str, str] | None = None
) -> Callable[[Builder], Builder]:
    """Registers a report under its function's name, with its docstring as help.

    Args:
        title: stands above its table.
        needs: what it is made of.
        old: names that older nsys knew it by, apart by blanks.
        arguments: accepted arguments with a line of help.
    """

    def register(build: Builder) -> Builder:
        name, text = build.__name__, (build.__doc__ or "").strip()
        old_names = tuple(old.split())
        REPORTS[name] = StatReport(name, title, build, needs, old_names, arguments or {}, text)
        return build

    return register


_PUSH_POP: Final = (59, 70)
_UNESCAPED_AT: Final = re.compile(r"(?<!\\)@")
_INDEX: Final = re.compile(r"(?<!\\)/(\d+)\Z")


@dataclass(frozen=True)
class RangeInstance:
    """One instance of a range."""

    window: tuple[int, int]
    thread: int
    """globalTid that opened it."""
    push_pop: bool
    """Push/pop ranges restrict to their thread, start/end ranges to their process."""

    @property
    def process(self) -> int:
        """globalPid of the range."""
        return self.thread & PROCESS_MASK


def find_instance(report: Report, text: str) -> RangeInstance:
    """Finds the instance of a range that a filter names.

    The index counts from 0 in the order of the starts. Without a domain the default domain is
    looked at first, then all others. ``@`` and ``/`` inside a name are written with a backslash.

    Raises:
        UsageError: no range is called so, or it has fewer instances.
        NoDataError: the report has no NVTX ranges.
    """
    if not report.can(Capability.NVTX):
        raise NoDataError(report.lacks(Capability.NVTX))
    name, domain, index = _parse(text)
    ranges = report.ranges
    named = np.array([found == name for found in ranges.names], bool)
    rows = np.flatnonzero(named[ranges.name]) if len(named) else np.empty(0, np.intp)
    domains = np.array([found.name for found in ranges.domains], object)
    if domain is not None:
        rows = rows[domains[ranges.domain[rows]] == domain]
    else:
        default = rows[domains[ranges.domain[rows]] == ""]
        rows = default if len(default) else rows
    if not len(rows):
        raise UsageError(
            f"no NVTX range called {text!r}", hint="nvtx_sum lists them as domain:name"
        )
    if index >= len(rows):
        raise UsageError(
            f"{text!r}: there are {len(rows)} instances", hint=f"the last one is /{len(rows) - 1}"
        )
    row = rows[index]
    return RangeInstance(
        (int(ranges.start[row]), int(ranges.end[row])),
        int(ranges.threads[ranges.thread[row]]),
        int(ranges.style[row]) in _PUSH_POP,
    )


def _parse(text: str) -> tuple[str, str | None, int]:
    match = _INDEX.search(text)
    index = int(match.group(1)) if match else 0
    rest = text[: match.start()] if match else text
    parts = _UNESCAPED_AT.split(rest, maxsplit=1)
    name = _plain(parts[0])
    return name, _plain(parts[1]) if len(parts) > 1 else None, index


def _plain(text: str) -> str:
    return text.replace("\\@", "@").replace("\\/", "/")
