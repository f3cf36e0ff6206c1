"""All events of a window as one list in time order: GPU work, calls, ranges, waits, marks.

Nothing is copied per event but its place in the order; kinds, names and places are looked up in the
event sets when a row is seen, and built as whole columns only to sort, search or count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nsys_tui.analysis.kernel_table import stream_labels
from nsys_tui.analysis.timeline.events import codes_of, texts_of
from nsys_tui.analysis.timeline.host import sync_threads, thread_key
from nsys_tui.analysis.timeline.tracks import gpu_key
from nsys_tui.analysis.window import Scope, row_numbers, touching
from nsys_tui.model.arrays import Bool, Int32, Int64, Integers
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.events import (
    ApiCalls,
    EventSet,
    HostEvents,
    Marks,
    Operations,
    OsrtCalls,
    Ranges,
    Syncs,
    ThreadEvents,
)
from nsys_tui.model.groups import factorise
from nsys_tui.model.progress import Progress, silent
from nsys_tui.model.report import Report
from nsys_tui.model.target import pid_of
from nsys_tui.names import NameStyle

PARTS: Final = ("operations", "api", "ranges", "marks", "osrt", "host_events", "syncs")
"""Parts of the report that are listed."""
OPERATION_KINDS: Final = {
    OpKind.KERNEL: "kernel",
    OpKind.MEMCPY: "memcpy",
    OpKind.MEMSET: "memset",
    OpKind.GRAPH: "graph",
    OpKind.OPENGL: "OpenGL",
    OpKind.VULKAN: "Vulkan",
    OpKind.DX12: "Direct3D 12",
}
THREAD_KINDS: Final[dict[type, tuple[str, Category]]] = {
    ApiCalls: ("API", Category.API),
    Ranges: ("NVTX", Category.NVTX),
    Marks: ("mark", Category.NVTX),
    OsrtCalls: ("OSRT", Category.OSRT),
    Syncs: ("sync", Category.SYNC),
}
OSRT_CALL: Final = 27
"""Event class of calls; the others mark where their tracing began and ended."""
NO_CORRELATION: Final = -1


@dataclass(frozen=True, eq=False)
class Member:
    """One event set in the list."""

    part: str
    events: EventSet
    rows: Int32
    """Rows of the set that are listed, ascending."""


@dataclass(frozen=True, eq=False)
class EventsTable:
    """A list of events: rows are numbered set by set, so that whole columns need no gathering."""

    report: Report
    members: tuple[Member, ...]
    offsets: Int64
    """First row of each member; one more entry."""
    order: Int32
    """Rows in time order."""
    hidden: int
    """Events that are left out because they are too short."""
    style: NameStyle

    def __len__(self) -> int:
        return len(self.order)

    def locate(self, row: int) -> tuple[Member, int]:
        """The member of a row, and the row in its event set."""
        number = int(np.searchsorted(self.offsets, row, side="right")) - 1
        member = self.members[number]
        return member, int(member.rows[row - int(self.offsets[number])])

    def row_of(self, events: EventSet, row: int) -> int | None:
        """The row of the list that shows an event; None where it is not listed."""
        for number, member in enumerate(self.members):
            if member.events is events:
                place = int(np.searchsorted(member.rows, row))
                if place < len(member.rows) and member.rows[place] == row:
                    return int(self.offsets[number]) + place
        return None

    def column(self, values: Callable[[Member], NDArray[np.generic]]) -> NDArray[np.generic]:
        """One value a row, from a function that gives those of a member."""
        if not self.members:
            return np.empty(0, np.int64)
        return np.concatenate([values(member) for member in self.members])

    @cached_property
    def kinds(self) -> Dictionary:
        """What each event is, such as ``kernel``, ``API``, ``NVTX``."""
        return Dictionary(self, _kinds)

    @cached_property
    def names(self) -> Dictionary:
        """What each event is called."""
        style = self.style

        def named(member: Member) -> tuple[Integers, list[str]]:
            codes = codes_of(member.events)
            texts = [forms[0] for forms in texts_of(member.events, style)]
            return (
                (np.zeros(len(member.events), np.int32), [""]) if codes is None else (codes, texts)
            )

        return Dictionary(self, named)

    @cached_property
    def places(self) -> Dictionary:
        """Where each event ran: GPU and stream, or thread."""
        report = self.report
        streams = stream_labels(report)
        several = len(_processes(self.members)) > 1

        def placed(member: Member) -> tuple[Integers, list[str]]:
            events = member.events
            if isinstance(events, Operations):
                return events.stream, streams
            if isinstance(events, ThreadEvents):
                return events.thread, [
                    thread_label(report, int(t), several) for t in events.threads
                ]
            codes, threads = factorise(sync_threads(report))
            return codes, [thread_label(report, int(tid), several) for tid in threads]

        return Dictionary(self, placed)

    def correlation(self, row: int) -> int:
        """Correlation id of an event, ``NO_CORRELATION`` for those without one."""
        member, place = self.locate(row)
        return int(_correlations(member.events, np.array([place]))[0])

    def correlations(self) -> NDArray[np.generic]:
        """The same for all rows."""
        return self.column(lambda member: _correlations(member.events, member.rows))

    def category(self, row: int) -> int:
        """``Category`` of an event, for its colour."""
        member, place = self.locate(row)
        if isinstance(member.events, Operations):
            return int(member.events.category[place])
        return int(THREAD_KINDS.get(type(member.events), ("", Category.OSRT))[1])


class Dictionary:
    """A text per event that repeats: codes by member, joined into one list of labels.

    Args:
        table: whose events.
        given: codes of all rows of a member's event set, and their texts.
    """

    def __init__(
        self, table: EventsTable, given: Callable[[Member], tuple[Integers, Sequence[str]]]
    ) -> None:
        self._table = table
        joined: dict[str, int] = {}
        self._codes: dict[str, tuple[Integers, Int32]] = {}
        for member in table.members:
            codes, texts = given(member)
            joint = [joined.setdefault(text, len(joined)) for text in texts]
            self._codes[member.part] = (codes, np.array(joint or [0], np.int32))
        self.labels = tuple(joined)

    def at(self, row: int) -> int:
        """Code of one row."""
        member, place = self._table.locate(row)
        codes, joint = self._codes[member.part]
        return int(joint[codes[place]])

    def codes(self) -> Integers:
        """Codes of all rows."""

        def of(member: Member) -> Integers:
            codes, joint = self._codes[member.part]
            return joint[codes[member.rows]]

        return self._table.column(of).astype(np.int32)


def _correlations(events: EventSet, rows: Integers) -> Integers:
    if isinstance(events, (Operations, ApiCalls, Syncs)):
        return np.asarray(events.correlation[rows])
    return np.full(len(rows), NO_CORRELATION, np.int64)


def _kinds(member: Member) -> tuple[Integers, list[str]]:
    events = member.events
    if isinstance(events, Operations):
        return events.kind, [OPERATION_KINDS[kind] for kind in OpKind]
    if isinstance(events, HostEvents):
        return events.kind, [host_kind(kind) for kind in events.kinds]
    return np.zeros(len(events), np.uint8), [THREAD_KINDS[type(events)][0]]


def host_kind(kind: str) -> str:
    """What the host events of a kind are called: ``MPI``, ``overhead``, ``syscall``."""
    known = {"MPI": "MPI", "OVERHEAD": "overhead", "SYSCALL": "syscall"}
    return next(
        (text for word, text in known.items() if word in kind.upper()), kind.replace("_", " ")
    )


def thread_label(report: Report, tid: int, with_process: bool) -> str:
    """Name of a thread; where several processes are listed with the number of its own."""
    if tid == -1:
        return "-"
    name = report.thread_name(tid)
    return f"{name}, pid {pid_of(tid)}" if with_process else name


def _processes(members: Sequence[Member]) -> set[int]:
    sets = (member.events for member in members if isinstance(member.events, ThreadEvents))
    return {int(pid) for events in sets for pid in events.thread_process if pid != -1}


def events_table(
    report: Report,
    scope: Scope,
    style: NameStyle,
    *,
    lanes: Sequence[str] = (),
    min_duration: int = 0,
    progress: Progress = silent,
) -> EventsTable:
    """Lists the events of a window in time order.

    Args:
        report: the report; all ``PARTS`` are loaded.
        scope: window, devices, processes, streams.
        style: how kernels are named.
        lanes: keys of timeline lanes; only their events are listed. Empty for all.
        min_duration: shorter events are left out and counted, ns; points in time stay.
        progress: told how many events were looked at.
    """
    members, hidden, looked = [], 0, 0
    total = sum(len(getattr(report, part)) for part in PARTS)
    for part in PARTS:
        events: EventSet = getattr(report, part)
        progress("listing events", looked, total)
        looked += len(events)
        rows = _in_scope(events, scope)
        rows = rows[_proper(events, rows)]
        if lanes:
            rows = rows[_on_lanes(report, part, events, rows, lanes)]
        if min_duration and not isinstance(events, Marks):
            long_enough = events.end[rows] - events.start[rows] >= min_duration
            hidden += int((~long_enough).sum())
            rows = rows[long_enough]
        if len(rows):
            members.append(Member(part, events, rows.astype(np.int32)))
    sizes = [0, *(len(member.rows) for member in members)]
    offsets = np.cumsum(sizes).astype(np.int64)
    progress("putting events in order", 0, sum(sizes))
    return EventsTable(report, tuple(members), offsets, _by_start(members), hidden, style)


def _in_scope(events: EventSet, scope: Scope) -> Int64:
    """Rows of a set that the scope lets through, ascending."""
    if isinstance(events, Operations):
        return row_numbers(events, scope.operations(events))
    if isinstance(events, ThreadEvents):
        return row_numbers(events, scope.threads(events))
    kept = row_numbers(events, touching(events, scope.window))
    if scope.processes is None or not isinstance(events, Syncs):
        return kept
    return kept[scope.has_process(events.processes)[events.process[kept]]]


def _proper(events: EventSet, rows: Int64) -> Bool | slice:
    """Leaves out duplicates of calls that carry backtraces, and markers of tracing."""
    if isinstance(events, ApiCalls):
        return np.asarray(events.event_class[rows] != 67)
    if isinstance(events, OsrtCalls):
        return np.asarray(events.event_class[rows] == OSRT_CALL)
    return slice(None)


def _on_lanes(
    report: Report, part: str, events: EventSet, rows: Int64, lanes: Sequence[str]
) -> Bool:
    """Which events lie on lanes of the timeline, given by their keys."""
    if isinstance(events, Operations):
        keys = [
            f"{gpu_key(s.device)}/{pid_of(s.globalPid)}:{s.context}:{s.id}" for s in events.streams
        ]
        codes: Integers = events.stream[rows]
    elif isinstance(events, ThreadEvents):
        keys = [f"{thread_key(int(tid))}/{part}" for tid in events.threads]
        codes = events.thread[rows]
    else:
        places, threads = factorise(sync_threads(report))
        keys = [f"{thread_key(int(tid))}/{part}" for tid in threads]
        codes = places[rows]
    chosen = np.array([any(_same_lane(key, lane) for lane in lanes) for key in keys], bool)
    return chosen[codes] if len(chosen) else np.zeros(len(rows), bool)


def _same_lane(key: str, lane: str) -> bool:
    """Whether events of ``key`` are drawn in a lane: in it, a part of it, or a group around it."""
    if key == lane or key.startswith(f"{lane}/"):
        return True
    return lane.startswith(key) and lane[len(key)] in ":~"


def _by_start(members: Sequence[Member]) -> Int32:
    """The order of all events by start; at equal starts that of ``PARTS``, then of the rows."""
    total = sum(len(member.rows) for member in members)
    if not total:
        return np.empty(0, np.int32)
    low = min(int(member.events.start[member.rows[0]]) for member in members)
    high = max(int(member.events.start[member.rows[-1]]) for member in members)
    bits = (total - 1).bit_length()
    if (high - low).bit_length() + bits > 63:
        starts = np.concatenate([member.events.start[member.rows] for member in members])
        return np.argsort(starts, kind="stable").astype(np.int32)
    packed = np.empty(total, np.int64)
    begin = 0
    for member in members:
        part = packed[begin : begin + len(member.rows)]
        np.subtract(member.events.start[member.rows], low, out=part)
        part <<= bits
        part |= np.arange(begin, begin + len(part))
        begin += len(part)
    packed.sort()
    packed &= (1 << bits) - 1
    return packed.astype(np.int32)
