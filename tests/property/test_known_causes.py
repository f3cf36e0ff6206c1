"""Idle gaps with planted causes, in random order: each is told, with its time, and nothing more."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from synth import Synth

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.idle import idle_findings
from nsys_tui.analysis.stalls.causes import SHARES, Cause, Edge
from nsys_tui.analysis.stalls.gaps import stalls
from nsys_tui.analysis.window import Scope
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

US = 1_000
MAIN, QUIET, OTHER = 10, 11, 12
"""The thread whose switches are recorded, one without any, and one that launches nothing."""
CALLS = {
    "module": ("cuModuleLoadData", Cause.MODULE),
    "allocation": ("cudaMalloc_v3020", Cause.ALLOCATION),
    "free": ("cudaFree_v3020", Cause.ALLOCATION),
    "sync": ("cudaStreamSynchronize_v3020", Cause.SYNC),
    "copy": ("cudaMemcpy_v3020", Cause.COPY),
    "other call": ("cudaGraphInstantiate_v12000", Cause.API),
}
OS_CALLS = {
    "lock": ("pthread_mutex_lock", Cause.LOCK),
    "join": ("pthread_timedjoin_np", Cause.WAIT),
    "I/O": ("pread64", Cause.IO),
    "socket": ("epoll_wait", Cause.WAIT),
    "signal": ("pthread_cond_timedwait", Cause.WAIT),
    "semaphore": ("sem_wait", Cause.WAIT),
    "child": ("waitpid", Cause.WAIT),
    "file lock": ("flock", Cause.LOCK),
    "yield": ("sched_yield", Cause.OSRT),
    "sleep": ("nanosleep", Cause.SLEEP),
    "unlock": ("pthread_mutex_unlock", Cause.OSRT),
}
QUEUED = {
    "peer": ("ncclDevKernel_AllReduce(int)", Cause.PEER),
    "event": ("gemm(int)", Cause.EVENT),
    "order": ("gemm(int)", Cause.STREAM),
    "greedy": ("gemm(int)", Cause.PROCESS),
    "polite": ("gemm(int)", Cause.STREAM),
    "event elsewhere": ("gemm(int)", Cause.STREAM),
}
COPIES = {
    "pageable": ("cudaMemcpyAsync_v3020", Cause.COPY),
    "pinned": ("cudaMemcpyAsync_v3020", Cause.API),
}
"""Copies of the other GPU's by the memory that they read."""
HELD_UP = ("queue", "MPI", "sync in MPI")
NEARLY = ("elsewhere", "before", "range", "nested")
"""What looks like a cause and is none: a call of another thread, one before the gap, a range, an OS
call inside of one that ended."""
KINDS = (
    *CALLS, *OS_CALLS, *QUEUED, *COPIES, *HELD_UP, *NEARLY,
    "late", "long", "profiler", "on the CPU", "off the CPU", "other process", "no call",
)  # fmt: skip


class Planted(NamedTuple):
    cause: Cause
    ns: int
    """Time that the cause has of the gap; all of it for causes on the device."""
    what: str = ""


class Plan:
    """Writes one gap after the other, with a kernel before and after each."""

    def __init__(self, path: Path) -> None:
        self.synth = Synth(path).gpu(0).gpu(1).process(MAIN)
        for device in (0, 1):
            self.synth.cuda_device(MAIN, device, device)
        self.synth.cuda_device(99, 0, 0)
        self.synth.kernel("first(int)", 0, 10 * US)
        self.now = 10 * US
        self.synth.sched(0, True)
        self.planted: dict[int, Planted] = {}

    def gap(self, kind: str, length: int, lasts: int) -> None:
        """A gap of some length; its cause lasts so long from its second microsecond on."""
        begin, end = self.now, self.now + length
        self.planted[begin] = self._fill(kind, begin, end, lasts)
        self.now = end + 10 * US

    def _ending(self, end: int, call: int | None, tid: int, name: str = "gemm(int)") -> None:
        """The kernel that ends a gap."""
        if call is None:
            self.synth.kernel(name, end, end + 10 * US)
        else:
            self.synth.launch(name, (call, call + 2 * US), (end, end + 10 * US), tid=tid)

    def _fill(self, kind: str, begin: int, end: int, lasts: int) -> Planted:
        call, span = end - 5 * US, (begin + US, begin + US + lasts)
        if kind in QUEUED:
            return self._queued(kind, begin, end)
        if kind == "no call":
            self._ending(end, None, MAIN)
            return Planted(Cause.UNKNOWN, end - begin)
        if kind == "late":
            self._ending(end, begin, QUIET)
            return Planted(Cause.LAUNCH_LATENCY, end - begin, "cudaLaunchKernel")
        if kind == "long":
            self.synth.launch("gemm(int)", (span[0], end - 3 * US), (end, end + 10 * US), tid=QUIET)
            if end - 3 * US - span[0] < 50 * US:
                return Planted(Cause.LAUNCH_LATENCY, end - span[0], "cudaLaunchKernel")
            return Planted(Cause.API, end - 3 * US - span[0], "cudaLaunchKernel")
        thread = MAIN if kind in ("on the CPU", "off the CPU", "other process") else QUIET
        self._ending(end, call, thread)
        return self._host(kind, begin, call, span)

    def _host(self, kind: str, begin: int, call: int, span: tuple[int, int]) -> Planted:
        synth, lasts = self.synth, span[1] - span[0]
        if kind in CALLS:
            name, cause = CALLS[kind]
            synth.api(name, *span, tid=QUIET)
            return Planted(cause, lasts, name.rpartition("_v")[0] or name)
        if kind in OS_CALLS:
            name, cause = OS_CALLS[kind]
            synth.osrt(name, *span, tid=QUIET)
            return Planted(cause, lasts, name)
        if kind == "profiler":
            synth.overhead("CUDA profiling data flush", *span, tid=QUIET)
            return Planted(Cause.PROFILER, lasts, "CUDA profiling data flush")
        if kind in COPIES:
            name, cause = COPIES[kind]
            corr = synth.next_correlation()
            synth.api(name, *span, tid=QUIET, corr=corr)
            synth.memcpy(*span, src=kind, device=1, stream=9, corr=corr)
            return Planted(cause, lasts, "cudaMemcpyAsync")
        if kind in HELD_UP:
            return self._held_up(kind, span)
        if kind in NEARLY:
            return self._nearly(kind, begin, call, span)
        if kind == "on the CPU":
            return Planted(Cause.HOST, call - begin)
        synth.sched(span[0], False).sched(span[1], True)
        if kind == "other process":
            # Another program has the CPU and allocates: that is not what this thread does.
            synth.process(99).sched(span[0], True).api("cudaMalloc_v3020", *span)
            synth.sched(span[1], False).process(MAIN)
        return Planted(Cause.OFF_CPU, lasts)

    def _held_up(self, kind: str, span: tuple[int, int]) -> Planted:
        """A full queue; MPI, whose own calls of the system are part of it, those of CUDA not."""
        synth, (start, end) = self.synth, span
        if kind == "queue":
            synth.cuda_overhead("Command Buffer Full", start, end, 8, tid=QUIET)
            return Planted(Cause.QUEUE, end - start, "Command Buffer Full")
        synth.mpi("MPI_Wait", start, end, tid=QUIET).osrt("poll", start + 1, end - 1, tid=QUIET)
        if kind == "MPI":
            return Planted(Cause.MPI, end - start, "MPI_Wait")
        synth.api("cudaEventSynchronize_v3020", start + US, end, tid=QUIET)
        return Planted(Cause.SYNC, end - start - US, "cudaEventSynchronize")

    def _queued(self, kind: str, begin: int, end: int) -> Planted:
        """The host was ahead: what the GPU waited for is on the device, or on another one."""
        name, cause = QUEUED[kind]
        early = begin - 8 * US
        if kind.startswith("event"):
            self.synth.launch("gemm(int)", (early, early + 10), (begin, end), device=1, stream=9)
            corr, stream = self.synth.next_correlation(), 7 if kind == "event" else 8
            self.synth.api("cudaStreamWaitEvent_v3020", early + 20, early + 30, corr=corr)
            self.synth.sync(early + 20, early + 30, "stream wait", corr=corr, stream=stream)
        if kind in ("greedy", "polite"):
            # A process that is not looked at has the GPU for most of the gap, or for a part of it.
            until = begin + (end - begin) * (8 if kind == "greedy" else 4) // 10
            self.synth.process(99).kernel("theirs(int)", begin + US, until).process(MAIN)
        self.synth.launch(name, (early + 40, early + 50), (end, end + 10 * US), tid=MAIN)
        return Planted(cause, end - begin)

    def _nearly(self, kind: str, begin: int, call: int, span: tuple[int, int]) -> Planted:
        if kind == "elsewhere":
            self.synth.api("cudaMalloc_v3020", *span, tid=OTHER).osrt("read", *span, tid=OTHER)
            self.synth.overhead("CUDA profiling data flush", *span, tid=OTHER)
            self.synth.osrt("pthread_mutex_lock", *span, tid=OTHER).mpi(
                "MPI_Wait", *span, tid=OTHER
            )
        elif kind == "before":
            self.synth.api("cudaMalloc_v3020", begin - 6 * US, begin, tid=QUIET)
        elif kind == "range":
            self.synth.nvtx("load data", *span, tid=QUIET)
        else:
            self.synth.osrt("read", *span, tid=QUIET, nesting=1)
        return Planted(Cause.NOTHING, call - begin)


@pytest.mark.parametrize("seed", range(12))
def test_each_planted_cause_is_told_with_its_time(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    plan = Plan(tmp_path / "r.sqlite")
    kinds = [*KINDS, *rng.choices(KINDS, k=10)]
    rng.shuffle(kinds)
    for kind in kinds:
        length = rng.randrange(40, 900) * US
        plan.gap(kind, length, rng.randrange(length * 6 // 10, length - 8 * US))
    report = open_report(plan.synth.write(), use_cache=False)
    scope = Scope(devices=frozenset((0,)), processes=frozenset((MAIN,)))
    result = stalls(report, scope, merge_runs=False)
    gaps = result.gaps
    found: dict[int, tuple[Any, ...]] = {}
    for row in (gaps.edge == Edge.INNER).nonzero()[0].tolist():
        cause = Cause(gaps.cause[row])
        length = int(gaps.end[row] - gaps.start[row])
        shares = np.array([gaps.time(cause)[row] for cause in SHARES])
        ns = int(shares[cause]) if cause in SHARES else length
        assert cause not in SHARES or shares.sum() == length
        named = cause in SHARES and cause not in (Cause.HOST, Cause.OFF_CPU, Cause.NOTHING)
        what = result.work.name(int(gaps.what[row])) if named else ""
        found[int(gaps.start[row])] = (cause, ns, what)
    assert found == {start: tuple(planted) for start, planted in plan.planted.items()}
    unknown = sum(ns for cause, ns, _ in plan.planted.values() if cause is Cause.NOTHING)
    assert sum(ns for cause, ns, _ in found.values() if cause is Cause.NOTHING) == unknown > 0


@pytest.mark.parametrize("seed", range(12))
def test_the_call_that_is_named_has_most_of_the_time_in_all_gaps(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    synth, now, time = Synth(tmp_path / "r.sqlite").gpu(0).process(MAIN), 0, dict[str, int]()
    names = rng.sample(("MPI_Isend", "MPI_Recv", "MPI_Wait", "MPI_Barrier"), 3)
    longer = (1, 3, 5, 60)[seed % 4]
    for number in range(40):
        synth.launch("gemm(int)", (now, now + 2 * US), (now + 3 * US, now + 100 * US))
        now += 101 * US
        for name in rng.sample(names, 3) if number < 39 else ():
            lasts = rng.randint(20, 100) * US * (longer if name == names[0] else 1)
            synth.mpi(name, now, now + lasts)
            time[name] = time.get(name, 0) + lasts
            now += lasts
    case = Case(open_report(synth.write(), use_cache=False))
    (found,) = idle_findings(case, "gpu_idle", (Cause.MPI,))
    most, whole = max(time, key=lambda name: time[name]), sum(time.values())
    alone = time[most] >= 0.95 * whole
    named = f": {'' if alone else 'most in '}{most}" if 2 * time[most] > whole else ""
    assert found.subject == f"idle, MPI{named}"
    assert found.saved_ns == whole
