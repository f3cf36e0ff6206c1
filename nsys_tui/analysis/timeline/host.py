"""Tracks of the host: NVTX, API calls, waits, OS runtime calls and samples, thread by thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from nsys_tui.analysis.aggregate import grouped_union
from nsys_tui.analysis.launches import calls_of_waits
from nsys_tui.analysis.thread_states import Scheduling
from nsys_tui.analysis.timeline.gpu import nested_tracks, sub_tracks
from nsys_tui.analysis.timeline.grouped_events import InGroups, in_groups, kept_groups
from nsys_tui.analysis.timeline.tracks import Counter, Section, Shape, Track
from nsys_tui.model.arrays import Indices, Int32, Int64, Integers, UInt8
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category
from nsys_tui.model.events import ApiCalls, Ranges, Samples, ThreadEvents
from nsys_tui.model.groups import rows_of_codes
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.kinds import Kind
from nsys_tui.model.lanes import Lane, split, split_groups
from nsys_tui.model.report import Report
from nsys_tui.model.target import PROCESS_MASK, pid_of, tid_of

OPENED: Final = 3
"""Levels of the leading thread's ranges that are shown at first."""
TOGETHER: Final = 200_000
"""Rows of threads that are made into lanes together; more at once would only take more memory."""
SYNC_WORDS: Final = ("synchronize", "waitevent")
"""What the names of API calls that wait for the device hold, in lower case."""
HOST_KINDS: Final = {"MPI": "MPI", "OVERHEAD": "nsys", "SYSCALL": "syscalls"}
"""Words in the names of kinds, and the label of their rows."""
KIND_TITLES: Final = {"MPI": "MPI calls", "nsys": "profiler overhead"}


@dataclass(frozen=True)
class _Kind:
    """What the rows of one kind of host event have in common."""

    part: str
    label: str
    words: str
    """The label where there is room."""
    title: str
    rank: int
    """Place among the rows of a thread."""


STATES = _Kind(
    "states",
    "on cpu",
    "on a CPU",
    "share of the time on a CPU; b: blocked, r: runnable, o: off it",
    0,
)
API = _Kind("api", "api", "CUDA API", "CUDA API", 1)
SYNC = _Kind("syncs", "sync", "GPU waits", "waits for the GPU", 2)
HOST = _Kind("host_events", "", "", "", 3)
OSRT = _Kind("osrt", "osrt", "OS calls", "OS runtime", 4)
NVTX = _Kind("ranges", "nvtx", "NVTX", "NVTX", 5)
MARKS = _Kind("marks", "marks", "NVTX marks", "NVTX marks", 6)
SAMPLES = _Kind("samples", "sample", "CPU samples", "CPU samples", 7)

_HEADINGS: WeakKeyDictionary[Report, dict[int | str, Track]] = WeakKeyDictionary()
"""Rows of processes (by globalPid) and threads (by key) that were made."""


def thread_key(tid: int) -> str:
    """Key of a thread's row."""
    return f"thread:{tid}"


def headings(report: Report, tid: int) -> tuple[Track, Track]:
    """The rows of a process and of a thread, below which the thread's own rows stand.

    All parts of a report share them: ten thousand threads have each a row in several parts.
    """
    known = _HEADINGS.setdefault(report, {})
    process = process_of(tid)
    if process not in known:
        known[process] = _process_heading(report, process)
    key = thread_key(tid)
    if key not in known:
        known[key] = _thread_heading(report, tid)
    return known[process], known[key]


def process_of(tid: int) -> int:
    """globalPid of a thread; -1 where there is none."""
    return tid & PROCESS_MASK if tid >= 0 else -1


def _process_heading(report: Report, process: int) -> Track:
    name = report.process_name(process) if process >= 0 else "unknown process"
    pid = f"pid {pid_of(process)}" if process >= 0 else "host"
    named = name not in (pid, "unknown process")
    note = f"{pid} {name}" if named else "its name was not recorded"
    return Track(
        key=f"process:{process}",
        label=f"CPU {pid_of(process)}" if process >= 0 else "CPU",
        words=f"{program(name) if named else 'process'} {pid_of(process)}" if process >= 0 else "",
        title=note if named else pid,
        part="",
        order=(Section.HOST, process),
        shape=Shape.HEADING,
        note=note,
        process=process,
    )


def _thread_heading(report: Report, tid: int) -> Track:
    process = process_of(tid)
    thread = report.thread_name(tid) if tid >= 0 else "no thread"
    pid = f"pid {pid_of(process)}" if process >= 0 else "host"
    return Track(
        key=thread_key(tid),
        label=thread,
        words=thread_words(report, tid),
        title=f"{thread} of {pid}",
        part="",
        order=(Section.HOST, process, tid + 1, 0),
        shape=Shape.HEADING,
        depth=1,
        parents=(f"process:{process}",),
        hoists=True,
        process=process,
        thread=tid,
    )


def thread_words(report: Report, tid: int) -> str:
    """``python3 main 4411``: its role or name, and its number, which tells it from its like."""
    if tid < 0:
        return "no thread"
    name, number, process = report.thread_name(tid), tid_of(tid), process_of(tid)
    if number == pid_of(process):
        process_words = program(report.process_name(process))
        return (
            f"{process_words} main"
            if process_words.endswith(f" {number}")
            else f"{process_words} main {number}"
        )
    return name if name.endswith(str(number)) else f"{name} {number}"


def caller_words(report: Report, tid: int, callers: Iterable[int]) -> str:
    """A thread's name alone, where it has one that no other of the callers has."""
    name = report.thread_name(tid)
    alike = sum(report.thread_name(other) == name for other in callers)
    nameless = name.endswith(str(tid_of(tid)))
    return thread_words(report, tid) if alike > 1 or nameless else name


def program(command: str) -> str:
    """The program of a process without the folder that it lies in."""
    return command.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _track(report: Report, tid: int, kind: _Kind, events: ThreadEvents | None) -> Track:
    process = process_of(tid)
    who = report.thread_name(tid) if tid >= 0 else "no thread"
    return Track(
        key=f"{thread_key(tid)}/{kind.part}",
        label=kind.label,
        words=kind.words,
        title=f"{who}: {kind.title}",
        part=kind.part,
        order=(Section.HOST, process, tid + 1, kind.rank),
        depth=2,
        parents=(f"process:{process}", thread_key(tid)),
        events=events,
        process=process,
        thread=tid,
    )


def _by_thread(events: ThreadEvents | Samples) -> Iterator[tuple[int, Int32]]:
    """(globalTid, rows) of each thread that has any, rows ascending."""
    for code, rows in enumerate(rows_of_codes(events.thread, len(events.threads))):
        if len(rows):
            yield int(events.threads[code]), rows.astype(np.int32)


def _kind_tracks(
    report: Report, kind: _Kind, events: ThreadEvents, by_thread: InGroups, category: Integers | int
) -> list[Track]:
    """Rows of one kind of event of each thread, with the rows that they stand below."""
    tracks: list[Track] = []
    for tid, lanes in _thread_lanes(events, by_thread, category):
        tracks += headings(report, tid)
        tracks += sub_tracks(_track(report, tid, kind, events), lanes)
    return tracks


def _thread_lanes(
    events: ThreadEvents, groups: InGroups, category: Integers | int
) -> Iterator[tuple[int, tuple[Lane, ...]]]:
    """(globalTid, lanes without overlaps) of each thread of events that are in their order."""
    for code, lanes in _lanes(events, groups, category):
        yield int(events.threads[code]), lanes


def _lanes(
    events: ThreadEvents, groups: InGroups, category: Integers | int
) -> Iterator[tuple[int, tuple[Lane, ...]]]:
    """(code, lanes without overlaps) of each group: many together, large ones alone."""
    edges = groups.edges.tolist()
    for first, last in _batches(edges):
        part = slice(edges[first], edges[last])
        rows, start, end = groups.rows[part], groups.start[part], groups.end[part]
        if last == first + 1:
            whole = Lane.build(start, end, rows, category, events.name)
            yield int(groups.codes[first]), split(whole)
        else:
            codes = np.repeat(groups.codes[first:last], np.diff(groups.edges[first : last + 1]))
            yield from split_groups(codes, start, end, rows, category, events.name)


def _batches(edges: list[int]) -> Iterator[tuple[int, int]]:
    """Runs of neighbouring groups of up to ``TOGETHER`` rows, or a group alone."""
    first = 0
    for group in range(1, len(edges)):
        if edges[group] - edges[first] > TOGETHER and group - 1 > first:
            yield first, group - 1
            first = group - 1
    if len(edges) - 1 > first:
        yield first, len(edges) - 1


def api_tracks(report: Report) -> list[Track]:
    """CUDA API calls of each thread, with those that wait for the device told apart."""
    api = report.api

    def real() -> tuple[Indices, Integers]:
        rows = np.flatnonzero(api.real)
        return rows, api.thread[rows]

    by_thread = kept_groups(report, "api-by-thread", api, real)
    return _kind_tracks(report, API, api, by_thread, api_categories(api))


def api_categories(api: ApiCalls) -> UInt8:
    """SYNC for calls that wait for the device, by name, else API: uint8 [n]."""
    waits = [any(word in name.lower() for word in SYNC_WORDS) for name in api.names]
    by_name = np.where(np.array(waits, bool), Category.SYNC, Category.API).astype(np.uint8)
    return by_name[api.name] if len(api.names) else np.empty(0, np.uint8)


def osrt_tracks(report: Report) -> list[Track]:
    """OS runtime calls of each thread."""
    osrt = report.osrt
    calls = np.flatnonzero((osrt.event_class != 31) & (osrt.event_class != 32))
    by_thread = in_groups(osrt, calls, osrt.thread[calls])
    return _kind_tracks(report, OSRT, osrt, by_thread, Category.OSRT)


def host_tracks(report: Report) -> list[Track]:
    """MPI calls, profiler overhead and system calls of each thread, by kind."""
    events = report.host_events
    labels = [_kind_label(kind) for kind in events.kinds]
    tracks: list[Track] = []
    for number, label in enumerate(sorted(set(labels))):
        codes = [code for code, text in enumerate(labels) if text == label]
        category = Category.API if label == "MPI" else Category.OSRT
        rows = np.flatnonzero(np.isin(events.kind, codes))
        by_thread = in_groups(events, rows, events.thread[rows])
        for tid, lanes in _thread_lanes(events, by_thread, category):
            tracks += headings(report, tid)
            track = _track(report, tid, HOST, events)
            track = replace(
                track,
                key=f"{track.key}:{label}",
                label=label,
                words=KIND_TITLES.get(label, ""),
                title=f"{track.title}{KIND_TITLES.get(label, label)}",
                order=(*track.order, number),
            )
            tracks += sub_tracks(track, lanes)
    return tracks


def _kind_label(kind: str) -> str:
    labels = (label for word, label in HOST_KINDS.items() if word in kind.upper())
    return next(labels, kind.replace("_", " "))


def range_tracks(report: Report, moved: Ranges | None = None) -> list[Track]:
    """NVTX ranges by thread, domain and nesting level; the leading thread's stand at the top.

    Args:
        report: their report.
        moved: the same ranges at other times.
    """
    ranges = report.ranges if moved is None else moved
    leader = leading_thread(ranges)
    tracks: list[Track] = []
    number, before = 0, -1
    names = sorted({domain.name for domain in ranges.domains})
    rank = np.array([names.index(domain.name) for domain in ranges.domains], np.int32)
    codes = ranges.thread.astype(np.int64) * max(1, len(names)) + rank[ranges.domain]
    by_level = in_groups(ranges, np.arange(len(ranges)), codes)
    for code, lanes in _lanes(ranges, by_level, Category.NVTX):
        thread, place = divmod(code, len(names))
        tid, domain = int(ranges.threads[thread]), names[place]
        number, before = (number + 1 if thread == before else 0), thread
        if tid != leader and not number:
            tracks += headings(report, tid)
        track = _track(report, tid, NVTX, ranges)
        label = domain or "NVTX"
        track = replace(
            track,
            key=f"{track.key}:{domain}",
            label=label if tid == leader or domain else "nvtx",
            words=label if domain or tid != leader else f"{thread_words(report, tid)} NVTX",
            title=f"{track.title}{f' domain {domain}' if domain else ''}",
            order=(*track.order, number),
        )
        if tid == leader:
            track = replace(track, order=(Section.NVTX, number), depth=0, parents=())
        opened = OPENED if tid == leader and not number else 1
        tracks += nested_tracks(track, lanes, opened)
    return tracks


def leading_thread(ranges: Ranges) -> int:
    """The thread with most range time at the outermost level; -1 without ranges."""
    if not len(ranges):
        return -1
    busy = grouped_union(ranges.thread, ranges.start, ranges.end, len(ranges.threads))
    there = np.bincount(ranges.thread, minlength=len(ranges.threads)) > 0
    return int(ranges.threads[np.argmax(np.where(there, busy, -1))])


def mark_tracks(report: Report) -> list[Track]:
    """NVTX marks of each thread."""
    marks = report.marks
    tracks: list[Track] = []
    for tid, rows in _by_thread(marks):
        tracks += headings(report, tid)
        lane = Lane.build(marks.start[rows], marks.end[rows], rows, Category.NVTX, marks.name)
        tracks += sub_tracks(_track(report, tid, MARKS, marks), (lane,))
    return tracks


def sync_tracks(report: Report) -> list[Track]:
    """Waits for the device, on the thread whose API call waits; apart where that is unknown."""
    syncs = report.syncs
    threads = sync_threads(report)
    codes = np.full(max(len(syncs.sync_type), 1), Category.SYNC, np.uint8)
    tracks: list[Track] = []
    for tid in np.unique(threads).tolist():
        rows = np.flatnonzero(threads == tid).astype(np.int32)
        tracks += headings(report, tid)
        lane = Lane.build(syncs.start[rows], syncs.end[rows], rows, codes, syncs.sync_type)
        track = replace(_track(report, tid, SYNC, None), events=syncs)
        tracks += sub_tracks(track, split(lane))
    return tracks


def sync_threads(report: Report) -> Int64:
    """globalTid of each wait, by (process, correlation); -1 where no call is known: int64 [n]."""
    calls, api = calls_of_waits(report), report.api
    return np.where(calls >= 0, api.threads[api.thread[calls]], -1) if len(api) else calls


def sample_tracks(report: Report) -> list[Track]:
    """Density of the CPU samples of each thread."""
    samples = report.samples
    tracks: list[Track] = []
    for tid, rows in _by_thread(samples):
        tracks += headings(report, tid)
        track = _track(report, tid, SAMPLES, None)
        ones = np.ones(len(rows), np.uint8)
        counter = Counter(samples.start[rows], ones, "samples", 1.0, reach=0)
        tracks.append(replace(track, shape=Shape.DENSITY, events=samples, counter=counter))
    return tracks


def _spans(times: Intervals) -> Lane:
    return Lane.build(*times, np.arange(len(times[0])))


def state_tracks(report: Report) -> list[Track]:
    """When each thread was on a CPU, by context switches; of threads with other events only."""
    if not report.can(Capability.SCHED):
        return []
    _, threads = report.numbers(Kind.SCHEDULING, "global_tid")
    others = (report.samples, report.api, report.osrt, report.ranges)
    known = np.unique(np.concatenate([events.threads for events in others]))
    states = Scheduling(report)
    tracks: list[Track] = []
    for tid in np.intersect1d(threads, known[known >= 0]).tolist():
        tracks += headings(report, tid)
        lane = _spans(states.thread(tid).running)
        off = tuple((str(why), _spans(spans)) for why, spans in states.off_by_why(tid).items())
        track = _track(report, tid, STATES, None)
        tracks.append(replace(track, shape=Shape.SHARE, covered=lane, off=off))
    return tracks
