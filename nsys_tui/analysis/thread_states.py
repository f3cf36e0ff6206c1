"""Rows of one thread, when it was on a CPU by switches or samples, and what these say it did."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Int32, Int64
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.events import FARTHEST, CallChains, Samples, ThreadEvents
from nsys_tui.model.groups import by_code, factorise, rows_of_codes
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.kinds import Kind
from nsys_tui.model.report import Report
from nsys_tui.model.target import PROCESS_MASK


class ByThread:
    """Rows of an event set by thread, 4 bytes an event.

    Args:
        events: the event set.
    """

    def __init__(self, events: ThreadEvents | Samples) -> None:
        order, edges = by_code(events.thread, len(events.threads))
        parts = np.split(order.astype(np.int32), edges[1:-1])
        self._rows: dict[int, Int32] = dict(zip(events.threads.tolist(), parts, strict=False))

    def rows(self, global_tid: int) -> Int32:
        """Row numbers of one thread in start order; none for a thread without events."""
        return self._rows.get(global_tid, np.empty(0, np.int32))


def of_thread(events: ThreadEvents, rows: slice | Indices, global_tid: int) -> Indices:
    """Those of some rows that belong to one thread."""
    codes = np.flatnonzero(events.threads == global_tid)
    chosen = np.arange(len(events))[rows]
    return chosen[np.isin(events.thread[chosen], codes)]


def beside(thread: int, threads: Int64) -> Bool:
    """Which of some threads are others of the process that one is of."""
    return np.asarray(((threads ^ thread) & PROCESS_MASK == 0) & (threads != thread), np.bool_)


class Witness(StrEnum):
    """How something is known; nothing is stated more firmly than that."""

    MEASURED = "measured"
    """An event says so."""
    SAMPLED = "sampled"
    """Samples hit it, so its length is an estimate."""
    INFERRED = "inferred"
    """A rule over other events."""
    NONE = ""


class Off(StrEnum):
    """Why a thread was off the CPU, as far as events say so."""

    BLOCKED = "blocked"
    """The scheduler says so, or it was in a call of the OS runtime when it was taken off."""
    RUNNABLE = "runnable"
    """The scheduler says that it was taken off while it could go on."""
    UNKNOWN = "off the CPU"
    """Blocked in a call that was not traced, or waiting for a CPU."""


@dataclass(frozen=True, eq=False)
class ThreadStates:
    """Where one thread was; of the time that neither covers nothing is known."""

    running: Intervals
    """Disjoint times on a CPU."""
    off: Intervals
    """Disjoint times asleep or waiting for a CPU."""
    witness: Witness


_PREEMPTED: Final = 1
"""State of a thread that was running when it was taken off."""
_BLOCKED: Final = (2, 3, 4, 7, 8)
"""States: interruptible, uninterruptible, stopped, waiting, in the OS runtime."""
_UNKNOWN: Final = ThreadStates(intervals.empty(), intervals.empty(), Witness.NONE)


class Scheduling:
    """Answers where the threads of one report were; reads only what is asked for.

    Args:
        report: the report.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._off: dict[int, dict[Off, Intervals]] = {}

    @property
    def threads(self) -> Int64:
        """The globalTid of each thread with switches."""
        return np.array([*self._switches], np.int64)

    def thread(self, global_tid: int) -> ThreadStates:
        """The states of one thread: switches where it has any, else samples.

        A thread that is taken off a CPU first was on it ever since switches are traced.
        """
        switches = self._switches.get(global_tid)
        if switches is None:
            return self._sampled(global_tid)
        times, switched_in, _ = switches
        if not switched_in[0] and (since := self._traced_since(global_tid)) < times[0]:
            times, switched_in = np.append(since, times), np.append(True, switched_in)
        return _paired(times, switched_in, self._report.extent[1])

    def _traced_since(self, global_tid: int) -> int:
        """Since when a switch of a thread would have been seen: the first of all, or its sample."""
        sampled = self._report.samples.start[self._samples.rows(global_tid)[:1]]
        return int(min((self._first_switch, *sampled)))

    def off_by_why(self, global_tid: int) -> dict[Off, Intervals]:
        """The times off a CPU of a thread with switches, by what they were; empty ones left out."""
        if global_tid not in self._off:
            self._off[global_tid] = self._off_by_why(global_tid)
        return self._off[global_tid]

    def _off_by_why(self, global_tid: int) -> dict[Off, Intervals]:
        switches = self._switches.get(global_tid)
        if switches is None:
            return {}
        starts, ends = self.thread(global_tid).off
        times, switched_in, states = switches
        left = np.flatnonzero(~switched_in)
        states = states[left[np.searchsorted(times[left], starts)]]
        calls = self._report.osrt.runs(self._calls.rows(global_tid))
        inside = intervals.covered(calls, starts, starts + 1) > 0
        blocked = np.isin(states, _BLOCKED) | ((states <= 0) & inside)
        masks = {Off.BLOCKED: blocked, Off.RUNNABLE: (states == _PREEMPTED) & ~blocked}
        masks[Off.UNKNOWN] = ~(blocked | masks[Off.RUNNABLE])
        return {why: (starts[mask], ends[mask]) for why, mask in masks.items() if mask.any()}

    def ready(self, global_tid: int) -> Intervals:
        """When a thread could go on, had it a CPU.

        The scheduler says so, or no call of the OS runtime holds it while others have all CPUs.
        """
        off = self.off_by_why(global_tid)
        told = off.get(Off.RUNNABLE, intervals.empty())
        if Off.UNKNOWN not in off or not len(self._report.osrt):
            return told
        return intervals.joined(told, intervals.meet(off[Off.UNKNOWN], self._crowded))

    def away(self, global_tid: int) -> Intervals:
        """When a thread was off its CPU in no call that is known to block."""
        off = self.off_by_why(global_tid)
        return intervals.joined(*(when for why, when in off.items() if why is not Off.BLOCKED))

    @cached_property
    def _crowded(self) -> Intervals:
        """When threads run on every CPU that any was seen on."""
        _, cpu = self._report.numbers(Kind.SCHEDULING, "cpu")
        running = [self.thread(tid).running for tid in self._switches]
        starts, ends = map(np.concatenate, zip(*running, strict=True))
        times = np.concatenate((starts, ends))
        order = np.argsort(times, kind="stable")
        level = np.cumsum(np.repeat((1, -1), len(starts))[order])
        full = np.flatnonzero(level[:-1] >= len(np.unique(cpu)))
        return intervals.union(times[order[full]], times[order[full + 1]])

    @cached_property
    def _calls(self) -> ByThread:
        return ByThread(self._report.osrt)

    @cached_property
    def _switches(self) -> dict[int, tuple[Int64, Bool, Int64]]:
        """Times in order, whether each puts the thread on a CPU, and its state, by thread."""
        if not self._report.can(Capability.SCHED):
            return {}
        _, start, switched_in, thread, state = self._report.numbers(
            Kind.SCHEDULING, "start", "is_sched_in", "global_tid", "thread_state"
        )
        codes, threads = factorise(thread)
        # Rows are not in the order of their times in one of six real reports.
        order = np.argsort(start, kind="stable")
        rows = [order[mine] for mine in rows_of_codes(codes[order], len(threads))]
        return {
            int(tid): (start[mine], switched_in[mine] != 0, state[mine])
            for tid, mine in zip(threads, rows, strict=True)
        }

    @cached_property
    def _first_switch(self) -> int:
        return min(int(times[0]) for times, *_ in self._switches.values())

    @cached_property
    def _samples(self) -> ByThread:
        return ByThread(self._report.samples)

    @cached_property
    def _period(self) -> int:
        """CPU time between two samples of a thread: the usual distance of neighbours."""
        start = self._report.samples.start
        rows = (self._samples.rows(tid) for tid in self._report.samples.threads.tolist())
        apart = [np.diff(start[mine]) for mine in rows]
        distances = np.concatenate([np.empty(0, np.int64), *apart])
        return int(np.median(distances)) if len(distances) else 0

    def _sampled(self, global_tid: int) -> ThreadStates:
        if not self._report.can(Capability.SAMPLES):
            return _UNKNOWN
        times = self._report.samples.start[self._samples.rows(global_tid)]
        if not len(times):
            return _UNKNOWN
        # A sample is taken after a period of CPU time of the thread, so it ran before, not after.
        before = intervals.union(times - self._period, times)
        calls = self._api_calls(global_tid)
        edges = np.append(-FARTHEST, np.stack(calls, axis=1).ravel())
        at = np.searchsorted(edges, times, side="right") - 1
        between = intervals.total(*intervals.subtract(before, calls))
        if 2 * self._period * np.count_nonzero(at % 2 == 0) < between:
            # Samples in calls reach into the time between these, which hardly any hits.
            before = intervals.union(np.maximum(times - self._period, edges[at]), times)
        outside = times[at % 2 == 0]
        alone = intervals.union(self._since(outside, calls), outside)
        before = intervals.joined(before, intervals.subtract(alone, calls))
        return ThreadStates(before, intervals.empty(), Witness.SAMPLED)

    def _since(self, times: Int64, calls: Intervals) -> Int64:
        """Since when a thread has been between calls for a period: in those it may have slept."""
        starts, ends = calls
        done: Int64 = np.append(0, np.cumsum(ends - starts))
        since: Int64 = times - done[np.searchsorted(ends, times, "right")] - self._period
        since += done[np.searchsorted(starts - done[:-1], since, "right")]
        return since

    def _api_calls(self, global_tid: int) -> Intervals:
        """When a thread is in CUDA calls."""
        api = self._report.api
        return api.runs(api.threads[api.thread] == global_tid)


def _paired(times: Int64, switched_in: Bool, end: int) -> ThreadStates:
    """States between switches; where two of a kind follow each other one was lost.

    A thread put on a CPU last runs on to the end of the trace; one taken off may have ended.
    """
    nexts = np.append(times[1:], max(end, int(times[-1])))
    differ = np.append(switched_in[1:] != switched_in[:-1], switched_in[-1])
    running, off = switched_in & differ, ~switched_in & differ
    return ThreadStates(
        (times[running], nexts[running]), (times[off], nexts[off]), Witness.MEASURED
    )


FEWEST: Final = 10
"""Samples below which nothing is said of them."""
_FRAMES: Final = 24
"""Frames looked at from the leaf on."""


class Doing(StrEnum):
    """What kind of code samples hit."""

    WORKS = "computes"
    POLLS = "waits for another rank"
    SETS_UP = "sets a library up"
    TEAM = "waits for its threads"
    COMPILES = "compiles code"
    COPIES = "copies memory"
    DRIVER = "in the CUDA driver"


@dataclass(frozen=True)
class Sampled:
    """What most samples of some time hit."""

    doing: Doing
    name: str
    """The function, or its library where the function has no name; empty where they differ."""
    share: float
    """Of the samples, 0 to 1, that do this; where a function is named, that hit it."""


_POLLING: Final = re.compile(r"^P?MPI_|^(MPID|MPIR|MPIDI|ompi_|opal_|ucp_|uct_|cxip_|psm2_|fi_cq)")
_SETTING_UP: Final = re.compile(
    r"^(cu(blas|dnn|dss|fft|rand|solver|sparse|statevec|tensor)[a-z]*([LX]t|Dn|Sp|Rf|M[gp])?"
    r"(Create|Destroy|(Make)?Plan)|ncclComm(Init|Destroy))"
)
"""Calls that set a library up, or end its use, whatever they do meanwhile."""
_TEAM: Final = re.compile(r"lib(g|i)?omp\d?\.")
"""OpenMP's runtime, in which a thread waits for the others of its team."""
_COMPILING: Final = re.compile(r"ptxjitcompiler|nvrtc|nvJitLink|nvvm|lib(llvmlite|LLVM|triton)\b")
_COPYING: Final = re.compile(r"^_*(wordcopy|mem(p?cpy|move))")
_DRIVER: Final = re.compile(r"libcuda(rt)?\.so|libcudart|nvcuda\.dll|ToolsInjection|cupti")
_SYSTEM: Final = re.compile(r"\[vdso\]|\[kernel|libc[.-]|ld-|libpthread|libm[.-]|libstdc\+\+")


def sampled(report: Report, thread: int, starts: Int64, ends: Int64) -> Sampled | None:
    """What a thread did in some disjoint intervals by its CPU samples.

    Args:
        report: the report.
        thread: its globalTid.
        starts: of the intervals, ascending.
        ends: of the intervals.

    Returns:
        None where there are hardly any samples.
    """
    if not len(report.samples) or not len(starts):
        return None
    samples = report.samples
    rows = ByThread(samples).rows(thread)
    times = samples.start[rows]
    position = np.searchsorted(starts, times, side="right") - 1
    hit = rows[(position >= 0) & (times < ends[np.maximum(position, 0)])]
    ids, count = np.unique(samples.chain[hit], return_counts=True)
    if len(hit) < FEWEST:
        return None
    doing, names = _read(report.chains(Kind.SAMPLE_CHAIN), ids)
    of_kind = {kind: int(count[doing == kind].sum()) for kind in Doing}
    most = max(of_kind, key=lambda kind: of_kind[kind])
    mine = np.flatnonzero(doing == most)
    codes, group = np.unique(names[mine], return_inverse=True)
    by_name = np.bincount(group, count[mine])
    top = int(np.argmax(by_name))
    named = bool(codes[top]) and 4 * by_name[top] >= of_kind[most]
    share = (by_name[top] if named else of_kind[most]) / len(hit)
    return Sampled(most, str(codes[top]) if named else "", float(share))


def _read(chains: CallChains, ids: Int64) -> tuple[NDArray[np.str_], NDArray[np.str_]]:
    """What each chain does, and the innermost function of the program or library that does it."""
    polls, copies, creates = (
        np.array([pattern.search(name) is not None for name in chains.symbols], bool)
        for pattern in (_POLLING, _COPYING, _SETTING_UP)
    )
    modules = (_COMPILING, _DRIVER, _SYSTEM, _TEAM)
    compiles, driver, system, team = (
        np.array([pattern.search(name) is not None for name in chains.modules], bool)
        for pattern in modules
    )
    unnamed = np.array([not s or s.startswith(("0x", "[")) for s in chains.symbols], bool)
    first, last = (np.searchsorted(chains.id, ids, side=side) for side in ("left", "right"))
    doing = np.full(len(ids), Doing.WORKS, "U32")
    symbol = np.full(len(ids), -1, np.int64)
    inner = np.zeros(len(ids), bool)
    leaf = chains.module[first[first < last]]
    doing[np.flatnonzero(first < last)[driver[leaf]]] = Doing.DRIVER
    for level in range(_FRAMES):
        going = np.flatnonzero(first + level < last)
        if not len(going):
            break
        row = first[going] + level
        code, module = chains.symbol[row], chains.module[row]
        doing[going[team[module] & ~inner[going]]] = Doing.TEAM
        doing[going[copies[code] & ~inner[going]]] = Doing.COPIES
        inner[going[~system[module]]] = True
        doing[going[compiles[module]]] = Doing.COMPILES
        polling, creating = polls[code], creates[code]
        doing[going[polling]] = Doing.POLLS
        doing[going[creating]] = Doing.SETS_UP
        named = ~(unnamed[code] | system[module]) & ((symbol[going] < 0) | polling | creating)
        symbol[going[named]] = code[named]
    texts = np.array([*chains.symbols, ""], object)
    return doing, texts[symbol].astype(str)
