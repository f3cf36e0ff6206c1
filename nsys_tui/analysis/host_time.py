"""What a report holds of the host alone: threads by CPU time, OS runtime calls, samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.analysis.thread_states import Scheduling, Witness
from nsys_tui.analysis.window import Scope, row_numbers
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Indices
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.events import FARTHEST
from nsys_tui.model.kinds import Kind
from nsys_tui.model.report import Report
from nsys_tui.model.target import PROCESS_MASK

PYTHON: Final = "Python Backtrace"
"""Domain of the marks that stand for samples of Python."""
_MARKERS: Final = (31, 32)
"""Classes of OS runtime events that are no calls."""


@dataclass(frozen=True)
class ThreadTime:
    """Time of one thread on a CPU."""

    name: str
    process: str
    cpu_ns: int
    share: float
    """Of the window, else of the session, 0 to 1."""
    witness: Witness
    """How it is known: by switches, or estimated by samples."""
    global_tid: int
    seen: tuple[int, int]
    """From when to when it is known where the thread was."""


@dataclass(frozen=True)
class HostTime:
    """The host's side of a report."""

    threads: tuple[ThreadTime, ...]
    """Those that ran, longest first."""
    recorded: tuple[str, ...]
    """What there is of each kind: ``264 CPU samples``."""


def host_time(report: Report, scope: Scope, top: int | None = None) -> HostTime:
    """Where the threads of a report were, and what else it holds of the host.

    Args:
        report: the report.
        scope: window and processes.
        top: how many threads are listed; None for all.
    """
    counts = {
        "NVTX ranges": len(report.ranges),
        "MPI calls": len(mpi_calls(report, scope)),
        "OS runtime calls": len(osrt_calls(report, scope)),
        "CPU samples": len(report.samples),
        "Python samples": len(python_samples(report)),
    }
    recorded = tuple(f"{count:,} {what}" for what, count in counts.items() if count)
    return HostTime(tuple(_threads(report, scope)[:top]), recorded)


def osrt_calls(report: Report, scope: Scope) -> Indices:
    """OS runtime calls in scope, of nested ones the outermost."""
    osrt = report.osrt
    rows = row_numbers(osrt, scope.threads(osrt))
    is_call = ~np.isin(osrt.event_class[rows], _MARKERS)
    outermost: Indices = rows[is_call & (osrt.nesting[rows] == 0)]
    return outermost


def mpi_calls(report: Report, scope: Scope) -> Indices:
    """MPI calls in scope."""
    rows = row_numbers(report.host_events, scope.threads(report.host_events))
    return rows[report.host_events.of_mpi[rows]]


def python_samples(report: Report) -> Indices:
    """Marks that stand for samples of Python; nsys exports their moments, not their frames."""
    marks = report.marks
    codes = [code for code, domain in enumerate(marks.domains) if domain.name == PYTHON]
    return np.flatnonzero(np.isin(marks.domain, codes))


def _threads(report: Report, scope: Scope) -> list[ThreadTime]:
    lo, hi = scope.window or (-FARTHEST, FARTHEST)
    extent = report.extent[1] - report.extent[0]
    whole = hi - lo if scope.window else report.metadata.session_duration_ns or extent
    states = Scheduling(report)
    threads = []
    for tid in _known_threads(report):
        if not scope.has_process(np.array([tid & PROCESS_MASK]))[0]:
            continue
        state = states.thread(tid)
        running = intervals.clip(*state.running, lo, hi)
        if ran := intervals.total(*running):
            starts, ends = (
                np.concatenate(both)
                for both in zip(running, intervals.clip(*state.off, lo, hi), strict=True)
            )
            seen = int(starts.min()), int(ends.max())
            process = report.process_name(tid & PROCESS_MASK)
            name, share = report.thread_name(tid), ran / max(whole, ran)
            threads.append(ThreadTime(name, process, ran, share, state.witness, tid, seen))
    return sorted(threads, key=lambda thread: (-thread.cpu_ns, thread.name))


def _known_threads(report: Report) -> list[int]:
    """Threads that were switched or sampled."""
    known = {int(tid) for tid in report.samples.threads}
    if report.can(Capability.SCHED):
        _, thread = report.numbers(Kind.SCHEDULING, "global_tid")
        known |= set(np.unique(thread).tolist())
    return sorted(known - {-1})
