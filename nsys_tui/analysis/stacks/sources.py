"""Which kinds of stacks a report has data of, and those of the host, off the CPU included."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui.analysis.host_time import osrt_calls
from nsys_tui.analysis.stacks.folding import (
    Stacks,
    StackSource,
    call_stacks,
    chain_nodes,
    cpu_stacks,
    range_stacks,
)
from nsys_tui.analysis.stacks.frame_rules import DROPPED, NO_RULES, FrameRules
from nsys_tui.analysis.thread_states import Scheduling, of_thread
from nsys_tui.analysis.window import WHOLE_REPORT, Scope, clipped
from nsys_tui.errors import NoDataError
from nsys_tui.model import intervals
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.kinds import Kind
from nsys_tui.model.report import Report
from nsys_tui.model.target import PROCESS_MASK
from nsys_tui.model.tree import ROOT, TrieBuilder, weighted
from nsys_tui.names import api_name

NO_CALL: Final = "[no OS call recorded]"
"""Frame of the time off the CPU that no OS runtime call covers."""
OWN_CODE: Final = "[outside OS calls]"
"""Frame of the time on a CPU that none covers."""


def switch_stacks(
    report: Report,
    scope: Scope = WHOLE_REPORT,
    *,
    on: bool = False,
    rules: FrameRules = NO_RULES,
    thread: int | None = None,
) -> Stacks:
    """Folds the time between a thread's switch off a CPU and its next switch onto one.

    The part that lies in an outermost OS runtime call belongs to its backtrace, the call as leaf;
    the rest to ``[no OS call recorded]``. The thread is the outermost frame, as most threads of a
    process wait most of the time.

    Args:
        report: the report.
        scope: restricts time and processes; calls that straddle the window are clipped.
        on: folds the time on a CPU instead, to the end of the trace if no switch off it follows.
        rules: changes frames of backtraces.
        thread: globalTid of the only thread to fold.

    Raises:
        NoDataError: the report has no context switches.
    """
    if not report.can(Capability.SCHED):
        raise NoDataError(f"{report.name}: {report.lacks(Capability.SCHED)}")
    osrt, states = report.osrt, Scheduling(report)
    _, threads = report.numbers(Kind.SCHEDULING, "global_tid")
    tids = np.unique(threads[scope.has_process(threads & PROCESS_MASK)])
    calls = osrt_calls(report, scope)
    chains = TrieBuilder()
    above = chain_nodes(report.chains(Kind.OSRT_CHAIN), osrt.callchain[calls], chains, rules)
    above[(osrt.callchain[calls] <= 0) & (above != DROPPED)] = ROOT
    paths, builder = chains.trie(), TrieBuilder()
    rows, nodes, weights = [np.empty(0, np.intp)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    rest: list[tuple[int, int]] = []
    for tid in tids.tolist() if thread is None else [thread]:
        both = states.thread(tid)
        times = both.running if on else both.off
        times = intervals.clip(*times, *(scope.window or report.extent))
        if not len(times[0]):
            continue
        top = builder.add((report.thread_name(tid),))
        mine = of_thread(osrt, calls, tid)
        base = above[np.searchsorted(calls, mine)]
        took = intervals.covered(times, *clipped(osrt, mine, scope.window))
        kept = (took > 0) & (base != DROPPED)
        for code in np.unique(osrt.name[mine[kept]]).tolist():
            leaf = builder.label(api_name(osrt.names[code]))
            of_name = kept & (osrt.name[mine] == code)
            below = {n: builder.add(paths.path(n), top) for n in np.unique(base[of_name]).tolist()}
            nodes.append(np.array([builder.child(below[n], leaf) for n in base[of_name].tolist()]))
            rows.append(mine[of_name])
            weights.append(took[of_name])
        if alone := intervals.total(*times) - int(took.sum()):
            rest.append((builder.add((OWN_CODE if on else NO_CALL,), top), alone))
    node = np.concatenate(nodes)
    every = np.append(node, [where for where, _ in rest]).astype(np.int64)
    amounts = np.append(np.concatenate(weights), [alone for _, alone in rest]).astype(np.int64)
    untold = (report.lacks(Capability.OSRT),) if not report.can(Capability.OSRT) else ()
    tree = weighted(builder, every, amounts, "ns")
    return Stacks(tree, np.concatenate(rows), node, (*rules.labels, *untold))


NEEDED: Final = {
    StackSource.CPU: Capability.SAMPLES,
    StackSource.CUDA: Capability.CUDA_BACKTRACES,
    StackSource.OSRT: Capability.OSRT_BACKTRACES,
    StackSource.ON: Capability.SCHED,
    StackSource.OFF: Capability.SCHED,
    StackSource.NVTX: Capability.NVTX,
}
OF_THREADS: Final = (StackSource.CPU, StackSource.ON, StackSource.OFF)
"""Sources that can be folded of one thread."""


def host_stacks(
    report: Report,
    source: StackSource,
    scope: Scope,
    rules: FrameRules = NO_RULES,
    thread: int | None = None,
) -> Stacks:
    """Folds any source but GPU time.

    Args:
        report: its report.
        source: what is folded.
        scope: window and processes.
        rules: what becomes of frames.
        thread: globalTid of the only one that counts, of sources in ``OF_THREADS``.

    Raises:
        NoDataError: the source was not recorded.
    """
    if source is StackSource.NVTX:
        return range_stacks(report, scope, rules=rules)
    if source not in OF_THREADS:
        return call_stacks(report, source, scope, rules=rules)
    if source is StackSource.CPU:
        return cpu_stacks(report, scope, rules=rules, thread=thread)
    return switch_stacks(report, scope, on=source is StackSource.ON, rules=rules, thread=thread)


def first_source(report: Report) -> StackSource:
    """The first source with stacks: GPU time where ranges tell it apart, or nothing else does."""
    if len(report.operations) and (len(report.ranges) or not report.can(Capability.SAMPLES)):
        return StackSource.GPU
    return next((source for source, kind in NEEDED.items() if report.can(kind)), StackSource.GPU)


def sources(report: Report) -> list[StackSource]:
    """The sources that a report has data of."""
    known = [source for source, kind in NEEDED.items() if report.can(kind)]
    gpu = [StackSource.GPU] if len(report.operations) else []
    return [source for source in StackSource if source in (*gpu, *known)]
