"""Our rule for reports without GPU work: where the time of the main threads goes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.host_time import host_time, mpi_calls, osrt_calls
from nsys_tui.analysis.iterations.warm_up import does_more
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import TITLE_CELLS, Finding, Severity
from nsys_tui.analysis.rules.idle_causes import (
    MAY_BE_PIPE,
    NO_CALL,
    NO_CPU,
    PIPE_OR_FILE,
    WAITS,
    unseen,
)
from nsys_tui.analysis.rules.register import Arguments, Result, cut, most_of, rule
from nsys_tui.analysis.stalls.causes import SHARES, Cause, osrt_name_class
from nsys_tui.analysis.thread_states import sampled
from nsys_tui.analysis.window import row_numbers
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Indices, Int64
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.events import ThreadEvents
from nsys_tui.model.groups import rows_of_codes, sums
from nsys_tui.model.table import Column, Unit
from nsys_tui.model.target import PROCESS_MASK
from nsys_tui.names import brief, numbered_alike

_ADVICE: Final = {
    Cause.MPI: "see which rank comes late to it, or work on meanwhile by non-blocking calls",
    Cause.LOCK: "see which thread holds it meanwhile",
    Cause.WAIT: "see which thread or process it waits for meanwhile",
    Cause.IO: "read or write ahead, in larger pieces, or on another thread",
    Cause.SLEEP: "no fault where it keeps a rate: else wait for the event itself",
    Cause.OSRT: "make the call less often, or on another thread",
    Cause.API: "see what the call waits for",
    Cause.ALLOCATION: "allocate less, or once for many runs",
    Cause.MODULE: "ship code for this GPU, and load it when it is used (CUDA_MODULE_LOADING=LAZY)",
    Cause.HOST: "make this code faster",
    Cause.OFF_CPU: "see in which call it waits, if in any: record with --trace=osrt",
}
_PINS: Final = re.compile(r"cu(da)?(Mem)?(MallocHost|HostAlloc|HostRegister|AllocHost)")
_PINNED: Final = ": pinned memory takes long to make"
_FIRST: Final = "leave it out of what you measure: a process's first CUDA call sets CUDA up, once"
_AWAITED: Final = "no fault where nothing was due: else see who is to send what it waits for"
_FOREIGN: Final = ("[NSys", "*2CommsProcesso", "cuda-EvtHandlr")
"""How the threads are called that nsys and CUDA's driver put into each process."""
_SHOW_WORK: Final = [Capability[kind] for kind in ("API", "MPI", "NVTX", "SAMPLES", "SCHED")]
"""Without one of these only waits are known, and of the profiled work nothing."""
_STATES: Final = {Cause.HOST: "on a CPU", Cause.MPI: "in a call", Cause.API: "in a call"}
_TID: Final = ~PROCESS_MASK
"""Bits of a thread's number; the main one has that of its process."""
_MAIN: Final = 0.5
"""Part of the longest time in ranges of a process's threads from which a thread is a main one."""
_WORTH: Final = 0.1
"""Part of the time from which a range is a finding."""
_MOST: Final = 3
_AT_ONCE: Final = 100_000
"""Pieces of time whose classes are told in one go, 120 bytes each."""
_LABEL_CELLS: Final = 28
_NAME_CELLS: Final = 15
_ALL: Final = 0.95
"""Part of the time from which a call or function has all of it."""
_MUCH: Final = 0.25
"""Part of a range's time from which a state is told beside the one with most."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Disjoint pieces of a thread's time, ascending."""

    thread: int
    starts: Int64
    ends: Int64


@dataclass(frozen=True, eq=False)
class Part:
    """The own time of the NVTX ranges of one name on main threads, or all of a thread without."""

    where: str
    """The ranges, numbers that tell them apart as ``#``; for a thread without ranges the thread."""
    stretches: tuple[Stretch, ...]

    @cached_property
    def ns(self) -> int:
        """Its time, without that of ranges inside of it."""
        return _total(self.stretches)

    @property
    def longest(self) -> tuple[int, int]:
        """The piece of it that lasts longest."""
        best = [(one, int(np.argmax(one.ends - one.starts))) for one in self.stretches]
        windows = [(int(one.starts[place]), int(one.ends[place])) for one, place in best]
        return max(windows, key=lambda window: window[1] - window[0])


@dataclass(frozen=True)
class State:
    """Where a thread was for most of some time."""

    cause: Cause
    ns: int
    names: tuple[str, ...]
    """The calls, or the function that samples hit; the one with most time first."""
    also: tuple[tuple[Cause, int], ...] = ()
    """Other causes that have much of it, and their time."""
    part: float = 1.0
    """Part of the named time that the first of the names has."""

    @property
    def name(self) -> str:
        """The first of the names, empty where none is known."""
        return self.names[0] if self.names else ""

    def text(self, whole_ns: int) -> str:
        """``99% sleep: clock_nanosleep``; empty where nothing was recorded."""
        if self.cause is Cause.NOTHING:
            return ""
        most = f", {most_of(self.part, 1, 'most in')}" if self.part < _ALL else ":"
        cells = _NAME_CELLS if self.also else _LABEL_CELLS
        named = f"{most} {brief(self.name, cells)}" if self.name else ""
        return ", ".join(
            f"{units.format_share(ns, whole_ns)} {_STATES.get(cause, cause.key)}"
            + named * (cause is _named(self.cause))
            for cause, ns in ((self.cause, self.ns), *self.also)
        )


def _named(cause: Cause) -> Cause:
    """What names are of: off the CPU, where there is none, what the thread computes on one."""
    return Cause.HOST if cause is Cause.OFF_CPU else cause


def _of_ranges(case: Case) -> list[Part]:
    """The time of each process's main threads by innermost NVTX range, longest first.

    Main threads are the one with most time in ranges, and those with half as much or more.
    """
    by_process: dict[int, list[dict[str, Stretch]]] = defaultdict(list)
    names = numbered_alike(case.report.ranges.names)
    for tid in sorted(case.report.ranges.threads.tolist()):
        process = tid & PROCESS_MASK
        if case.scope.has_process(np.array([process]))[0]:
            by_process[process].append(_by_range(case, tid, names))
    by_name: dict[str, list[Stretch]] = defaultdict(list)
    for threads in by_process.values():
        times = [_total(by_range.values()) for by_range in threads]
        for by_range, time in zip(threads, times, strict=True):
            for where, stretch in by_range.items() if time >= max(times) * _MAIN else ():
                by_name[where].append(stretch)
    parts = [Part(where, tuple(stretches)) for where, stretches in by_name.items()]
    return sorted(parts, key=lambda part: (-part.ns, part.where))


def _of_threads(case: Case) -> list[Part]:
    """Threads with MPI calls, by program, from first to last call; else those that ran most."""
    report, events = case.report, case.report.host_events
    rows, by_program = mpi_calls(report, case.scope), defaultdict(list)
    lo, hi = case.scope.bounds(report)
    for code, mine in enumerate(rows_of_codes(events.thread[rows], len(events.threads))):
        if len(mine):
            tid, calls = int(events.threads[code]), rows[mine]
            seen = max(lo, int(events.start[calls].min())), min(hi, int(events.end[calls].max()))
            by_program[report.process_name(tid & PROCESS_MASK)].append(stretch_of(tid, *seen))
    if not by_program:
        for name, stretch in _busiest(case):
            by_program[name].append(stretch)
    parts = [
        Part(f"{len(every)} threads of {where}" if len(every) > 1 else where, tuple(every))
        for where, every in by_program.items()
    ]
    return sorted((part for part in parts if part.ns), key=lambda part: (-part.ns, part.where))


def _busiest(case: Case) -> Iterable[tuple[str, Stretch]]:
    """Threads that ran most, each at least half as long as the one before, or that locks held.

    Where it is not known which ran, it is the one with most time in CUDA calls, else a main thread
    that calls the OS runtime: others may only wait. It has all the time of its process's calls.
    """
    report, osrt = case.report, case.report.osrt
    ran = [one for one in host_time(report, case.scope).threads if _is_own(one.name)]
    own = np.array([_is_own(report.thread_name(tid)) for tid in osrt.threads.tolist()], np.bool_)
    calls = osrt_calls(report, case.scope)
    calls = calls[own[osrt.thread[calls]]]
    made = row_numbers(report.api, case.scope.threads(report.api))
    events, rows = (report.api, made) if len(made) else (osrt, calls)
    main = rows[(events.threads & _TID == events.threads >> 24 & _TID)[events.thread[rows]]]
    if not ran and len(rows):
        of = main if len(main) and not len(made) else rows
        tid = int(events.threads[_longest(events, of)[0]])
        rows = rows[events.thread_process[events.thread[rows]] == tid & PROCESS_MASK]
        seen = np.clip((events.start[rows[0]], events.end[rows].max()), *case.scope.bounds(report))
        yield report.thread_name(tid), stretch_of(tid, *seen.tolist())
    locks = np.array([osrt_name_class(name) is Cause.LOCK for name in osrt.names], bool)
    held, held_ns = _longest(osrt, calls[locks[osrt.name[calls]]])
    much = True
    for before, one in zip(ran[:1] + ran, ran, strict=False):
        waits = held_ns > (one.seen[1] - one.seen[0]) / 2 and one.global_tid == osrt.threads[held]
        much &= one.cpu_ns >= _MAIN * before.cpu_ns
        if waits or much:
            yield one.name, stretch_of(one.global_tid, *one.seen)


def _is_own(thread: str) -> bool:
    """Whether a thread is of the program itself, by its name."""
    return not thread.startswith(_FOREIGN)


def _longest(events: ThreadEvents, rows: Indices) -> tuple[int, int]:
    """Code of the thread with most time in some calls, and that time."""
    time = sums(events.thread[rows], events.end[rows] - events.start[rows], len(events.threads) + 1)
    return int(np.argmax(time)), int(time.max())


def stretch_of(tid: int, start: int, end: int) -> Stretch:
    """A thread's time from one moment to another."""
    return Stretch(tid, np.array([start], np.int64), np.array([end], np.int64))


def _total(stretches: Iterable[Stretch]) -> int:
    return sum(int((one.ends - one.starts).sum()) for one in stretches)


def _by_range(case: Case, tid: int, shown: Mapping[str, str]) -> dict[str, Stretch]:
    lo, hi = case.scope.bounds(case.report)
    pieces = case.work.innermost(tid)
    starts, ends = np.clip(pieces.starts, lo, hi), np.clip(pieces.ends, lo, hi)
    kept = np.flatnonzero(ends > starts)
    used, codes = np.unique(pieces.name[kept], return_inverse=True)
    texts = [case.work.name(code) for code in used.tolist()]
    names = [shown.get(text, text) for text in texts]
    known = {name: place for place, name in enumerate(dict.fromkeys(names))}
    places = np.array([known[name] for name in names], np.intp)[codes]
    of_name = zip(known, rows_of_codes(places, len(known)), strict=True)
    return {name: Stretch(tid, starts[kept[mine]], ends[kept[mine]]) for name, mine in of_name}


def state_of(case: Case, part: Part) -> State:
    """What the threads did for most of that time, by their events, states or samples."""
    shares = np.sum([_shares(case, one) for one in part.stretches], axis=0)
    cause = Cause(int(np.argmax(shares)))
    names: Counter[str] = Counter()
    for one in part.stretches:
        names.update(_names(case, one, _named(cause)))
    much = shares[: Cause.NOTHING] >= max(_MUCH * part.ns, 1)
    much[Cause.HOST] |= cause is Cause.OFF_CPU and any(names)
    known = [(name, ns) for name, ns in names.most_common() if name]
    return State(
        cause,
        int(shares[cause]),
        tuple(name for name, _ in known),
        tuple(
            (Cause(one), int(shares[one])) for one in np.flatnonzero(much).tolist() if one != cause
        ),
        known[0][1] / names.total() if known else 1.0,
    )


def _shares(case: Case, stretch: Stretch) -> Int64:
    work, total = case.work.thread(stretch.thread), np.zeros(len(SHARES), np.int64)
    for piece in _cut(stretch):
        for cause, time in work.shares(*piece).items():
            total[cause] += time.sum()
    return total


def _names(case: Case, stretch: Stretch, cause: Cause) -> dict[str, int]:
    """The calls of a cause, or the function that samples hit, with their time."""
    if cause is Cause.HOST:
        seen = sampled(case.report, stretch.thread, stretch.starts, stretch.ends)
        whole = _total([stretch])
        mine = round(whole * seen.share) if seen is not None and seen.name else 0
        return {seen.name: mine, "": whole - mine} if seen is not None else {}
    named = case.work.thread(stretch.thread).named.get(cause)
    return case.work.by_name(named, (stretch.starts, stretch.ends))


def _cut(stretch: Stretch) -> list[tuple[Int64, Int64]]:
    places = range(0, len(stretch.starts), _AT_ONCE)
    return [(stretch.starts[at : at + _AT_ONCE], stretch.ends[at : at + _AT_ONCE]) for at in places]


@rule(
    "Where the host's time goes, of a report without GPU work",
    advice="Nothing ran on a GPU here. These are the NVTX ranges of the main threads with most time"
    " of their own, and what the thread did in them.",
    nothing="There is GPU work, or nothing tells what the host did.",
)
def host_only(case: Case, arguments: Arguments) -> Result:
    """Where the main threads' time goes by NVTX range, where there is no GPU work to look at.

    Nested ranges count once: the time of each is its own, without that of ranges inside of it.
    """
    doubted = case.works or case.report.gpu_doubt
    in_ranges = [] if doubted else _of_ranges(case)
    parts = in_ranges or ([] if doubted else _of_threads(case))
    whole = sum(part.ns for part in parts)
    of = " of the time in NVTX ranges" if in_ranges else ""
    rows, hidden = cut(np.arange(len(parts)), arguments)
    shown = [parts[row] for row in rows.tolist()]
    told = [(part, state_of(case, part)) for part in shown]
    findings = [
        one
        for part, state in told[:_MOST]
        if part.ns >= _WORTH * whole
        for one in _finding(case, part, state, units.format_share(part.ns, whole), of)
    ]
    columns = (
        (Column("Range"), [part.where for part in shown]),
        (Column("Time", Unit.NS), [part.ns for part in shown]),
        (Column("Share", Unit.PERCENT, 1), [100 * part.ns / whole for part in shown]),
        (Column("Mostly"), [state.text(part.ns) for part, state in told]),
    )
    return Result(columns, findings, hidden=hidden)


def _is_ready(case: Case, part: Part) -> bool:
    """Whether the threads could go on for most of the time off the CPU, had they one."""
    ready = off = 0
    for one in part.stretches:
        waits = case.work.thread(one.thread).when((one.starts, one.ends), (Cause.OFF_CPU,))
        spans = waits.get(Cause.OFF_CPU, intervals.empty())
        ready += intervals.overlap_length(case.work.scheduling.ready(one.thread), spans)
        off += intervals.total(*spans)
    return 2 * ready > off


def _finding(case: Case, part: Part, state: State, share: str, of: str) -> list[Finding]:
    where, did = brief(part.where, _LABEL_CELLS), state.text(part.ns)
    head = f"{where}: {units.format_duration(part.ns)}" + (f", {share}{of}" if of else "")
    shorter = (replace(state, names=names, also=()).text(part.ns) for names in (state.names, ()))
    told = (f"{head}; {text}" if text else head for text in (did, *shorter, ""))
    sets_up = _sets_up(case, part, state)
    subject = where + (f" {share}" if of else "") + (f" ({did})" if did else "")
    shown = any(map(case.report.can, _SHOW_WORK))
    return case.finding(
        "host_only",
        next(title for title in told if len(title) <= TITLE_CELLS),
        _FIRST if sets_up else advice_for(case, part, state),
        subject=f"{where} sets CUDA up" if sets_up else subject,
        saved_ns=0,
        stake_ns=part.ns,
        at_most=Severity.LOW if sets_up else None if shown else Severity.MEDIUM,
        window=part.longest,
        command="nsys-tui analyze REPORT -r host_only",
    )


def _sets_up(case: Case, part: Part, state: State) -> bool:
    """Whether most of what a state has are the first calls of processes."""
    api, first = case.report.api, 0
    for one in part.stretches if state.cause in (Cause.ALLOCATION, Cause.API) else ():
        calls = np.flatnonzero(api.thread_process[api.thread] == one.thread & PROCESS_MASK)
        calls = calls[: int(np.argmax(np.append(does_more(api, calls), True))) + 1]
        calls = calls[api.threads[api.thread[calls]] == one.thread]
        first += int(intervals.covered(api.runs(calls), one.starts, one.ends).sum())
    return 2 * first > state.ns


def advice_for(case: Case, part: Part, state: State) -> str:
    """What to do about a state that has most of some time."""
    if state.cause is Cause.OFF_CPU and len(case.report.osrt):
        return NO_CPU if _is_ready(case, part) else NO_CALL
    if state.cause is Cause.IO and MAY_BE_PIPE.match(state.name):
        return PIPE_OR_FILE
    if state.cause is Cause.WAIT and WAITS.match(state.name):
        return _AWAITED
    if state.cause is Cause.NOTHING:
        return unseen(case.report)
    pinned = _PINNED if _PINS.match(state.name) else ""
    alone = len({one.thread & PROCESS_MASK for one in part.stretches}) == len(part.stretches)
    more = ", or spread it over more threads" * (alone and state.cause is Cause.HOST)
    return _ADVICE.get(state.cause, "see what the call waits for") + pinned + more
