"""Stalls against a loop over every nanosecond of small random reports."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from synth import Synth

from nsys_tui.analysis.nvtx.paths import nvtx_paths
from nsys_tui.analysis.stalls.causes import SHARES, Cause, Edge
from nsys_tui.analysis.stalls.gaps import Stalls, stalls
from nsys_tui.analysis.window import Scope
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from nsys_tui.model.report import Report

END = 120
LONG = 6
"""A launch call from this length on is looked into."""
CALLS = {
    "cuModuleLoadData": Cause.MODULE,
    "cudaMalloc_v3020": Cause.ALLOCATION,
    "cudaStreamSynchronize_v3020": Cause.SYNC,
    "cudaMemcpy_v3020": Cause.COPY,
    "cudaLaunchKernel_v7000": Cause.API,
}


RANGE = Cause.NOTHING
"""An NVTX range names what the host did, and is no witness of it."""


class Host(NamedTuple):
    kind: Cause
    name: str
    start: int
    end: int
    pid: int
    tid: int


class Switch(NamedTuple):
    """A thread comes onto a CPU, or leaves it."""

    t: int
    switched_in: bool
    pid: int
    tid: int


class Kernel(NamedTuple):
    name: str
    start: int
    end: int
    pid: int
    stream: int
    call: tuple[int, int, int] | None
    """start, end, tid"""


def times(longest: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(0, END - 1), st.integers(0, longest)).map(
        lambda pair: (pair[0], min(END, sum(pair)))
    )


OS_CALLS = {
    "read": Cause.IO,
    "pthread_cond_wait": Cause.WAIT,
    "clock_nanosleep": Cause.SLEEP,
    "pthread_mutex_unlock": Cause.OSRT,
}
pids = st.sampled_from((10, 20))
tids = st.sampled_from((1, 2))
host_events = st.one_of(
    st.builds(
        lambda name, t, pid, tid: Host(CALLS[name], name, t[0], t[1], pid, tid),
        st.sampled_from(list(CALLS)),
        times(30),
        pids,
        tids,
    ),
    st.builds(
        lambda name, t, pid, tid: Host(OS_CALLS[name], name, t[0], t[1], pid, tid),
        st.sampled_from([*OS_CALLS]),
        times(30),
        pids,
        tids,
    ),
    st.builds(
        lambda name, t, pid, tid: Host(RANGE, name, t[0], t[1], pid, tid),
        st.sampled_from(("fwd", "bwd", "data")),
        times(60),
        pids,
        tids,
    ),
    st.builds(
        lambda t, pid, tid: Host(Cause.PROFILER, "CUDA profiling data flush", t[0], t[1], pid, tid),
        times(10),
        pids,
        tids,
    ),
)
switches = st.builds(Switch, st.integers(0, END - 1), st.booleans(), pids, tids)
kernels = st.builds(
    lambda name, t, pid, stream, call, tid: Kernel(
        name, t[0], t[1], pid, stream, (call[0], call[1], tid) if call else None
    ),
    st.sampled_from(("gemm", "ncclKernel", "add")),
    times(25),
    pids,
    st.sampled_from((7, 8)),
    st.none() | times(15),
    tids,
)


def write(path: Path, hosts: list[Host], switched: list[Switch], gpu: list[Kernel]) -> None:
    """One GPU for both processes; correlation ids repeat in each of them."""
    synth = Synth(path).gpu(0).session(END)
    numbers: Counter[int] = Counter()
    for pid in (10, 20):
        synth.cuda_device(pid, 0, 0)
    for event in hosts:
        synth.process(event.pid)
        if event.kind is RANGE:
            synth.nvtx(event.name, event.start, event.end, tid=event.tid)
        elif event.name in OS_CALLS:
            synth.osrt(event.name, event.start, event.end, tid=event.tid)
        elif event.kind is Cause.PROFILER:
            synth.overhead(event.name, event.start, event.end, tid=event.tid)
        else:
            synth.api(event.name, event.start, event.end, tid=event.tid)
    for switch in switched:
        cpu = switch.pid + switch.tid  # its own: no thread keeps another one from a CPU
        synth.process(switch.pid).sched(switch.t, switch.switched_in, tid=switch.tid, cpu=cpu)
    for kernel in gpu:
        synth.process(kernel.pid)
        numbers[kernel.pid] += 1
        corr = numbers[kernel.pid]
        if kernel.call:
            start, end, tid = kernel.call
            synth.api("cudaLaunchKernel_v7000", start, end, tid=tid, corr=corr)
        synth.kernel(kernel.name, kernel.start, kernel.end, stream=kernel.stream, corr=corr)
    synth.write()


def expected(
    hosts: list[Host], switched: list[Switch], gpu: list[Kernel]
) -> dict[tuple[int, int], tuple[int, list[int]]]:
    """Cause and shares of each gap, nanosecond by nanosecond."""
    launches = [
        Host(Cause.API, "cudaLaunchKernel_v7000", k.call[0], k.call[1], k.pid, k.call[2])
        for k in gpu
        if k.call
    ]
    busy = {t for kernel in gpu for t in range(kernel.start, kernel.end)}
    gaps, start = [], None
    for t in range(END + 1):
        idle = t < END and t not in busy
        if idle and start is None:
            start = t
        if not idle and start is not None:
            gaps.append((start, t))
            start = None
    return {gap: explain(*gap, [*hosts, *launches], switched, gpu) for gap in gaps}


def state(t: int, switched: list[Switch]) -> list[Cause]:
    """Where a thread was by its switches, which are in order of time."""
    earlier = [switch for switch in switched if switch.t <= t]
    if not earlier:
        return []
    coming = switched[len(earlier) :]
    lost = coming[0].switched_in == earlier[-1].switched_in if coming else False
    if lost or not (coming or earlier[-1].switched_in):
        return []
    return [Cause.HOST if earlier[-1].switched_in else Cause.OFF_CPU]


def explain(
    g0: int, g1: int, hosts: list[Host], switched: list[Switch], gpu: list[Kernel]
) -> tuple[int, list[int]]:
    nothing = [0] * len(SHARES)
    ending = [kernel for kernel in gpu if kernel.start == g1 and kernel.end > kernel.start]
    if not ending:
        return Cause.UNKNOWN, nothing
    last = max(ending, key=lambda kernel: kernel.end)
    if last.call is None:
        return Cause.UNKNOWN, nothing
    call, done, tid = last.call
    if call < g0 and 2 * (min(done, g1) - g0) < g1 - g0:
        return (Cause.PEER if last.name == "ncclKernel" else Cause.STREAM), nothing
    until = min(max(g0, call if done - call < LONG else done), g1)
    shares = list(nothing)
    shares[Cause.LAUNCH_LATENCY] = g1 - until
    mine = [host for host in hosts if (host.pid, host.tid) == (last.pid, tid)]
    own = [switch for switch in switched if (switch.pid, switch.tid) == (last.pid, tid)]
    own.sort(key=lambda switch: switch.t)
    # Who is taken off a CPU first was on it ever since switches are seen.
    since = min((switch.t for switch in switched), default=0)
    if own and not own[0].switched_in and since < own[0].t:
        own.insert(0, own[0]._replace(t=since, switched_in=True))
    for t in range(g0, until):
        covering = [host.kind for host in mine if host.start <= t < host.end] + state(t, own)
        shares[min(covering, default=Cause.NOTHING)] += 1
    return shares.index(max(shares)), shares


@settings(max_examples=60, deadline=None)
@given(
    st.lists(host_events, max_size=14),
    st.lists(switches, max_size=8),
    st.lists(kernels, min_size=1, max_size=10),
)
def test_gaps_causes_and_shares_agree_with_a_loop_over_nanoseconds(
    hosts: list[Host], switched: list[Switch], gpu: list[Kernel]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.sqlite"
        write(path, hosts, switched, gpu)
        report = open_report(path, use_cache=False)
        with patch("nsys_tui.analysis.stalls.explained.LONG_CALL_NS", LONG):
            result = stalls(report, threshold_ns=1)
        gaps = result.gaps
        time = np.stack([gaps.time(cause) for cause in SHARES], axis=1)
        found = {
            (int(gaps.start[i]), int(gaps.end[i])): (int(gaps.cause[i]), time[i].tolist())
            for i in range(len(gaps))
        }
        assert found == expected(hosts, switched, gpu)
        assert result.whole.idle_ns == sum(end - start for start, end in found)
        (total,) = result.totals
        assert total.listed_count == len(found) == total.gap_count
        check_ranges(hosts, gpu, result)
        check_windows(report, result)
        check_innermost(report, result)
        report.close()


def check_ranges(hosts: list[Host], gpu: list[Kernel], result: Stalls) -> None:
    """The named range was innermost for more than half of the gap; none is named where none was."""
    gaps = result.gaps
    for i in range(len(gaps)):
        if gaps.call[i] < 0:
            assert gaps.range[i] == -1
            continue
        ending = [k for k in gpu if k.start == gaps.end[i] and k.end > k.start]
        last = max(ending, key=lambda kernel: kernel.end)
        assert last.call is not None
        call, _, tid = last.call
        lo, hi = (int(gaps.start[i]), call) if call > gaps.start[i] else (call, call + 1)
        ranges = [h for h in hosts if (h.kind, h.pid, h.tid) == (RANGE, last.pid, tid)]
        counts: Counter[str] = Counter()
        for t in range(lo, hi):
            opened = [r for r in ranges if r.start <= t < r.end]
            if opened:
                inner = max(
                    enumerate(opened), key=lambda pair: (pair[1].start, -pair[1].end, pair[0])
                )
                counts[inner[1].name] += 1
        mostly = [name for name, time in counts.items() if 2 * time > hi - lo]
        assert result.work.name(int(gaps.range[i])) == "".join(mostly)


def check_windows(report: Report, result: Stalls) -> None:
    """Idle time adds up over adjacent windows and threshold does not change it."""
    middle = END // 2
    parts = [
        stalls(report, Scope(window=window), threshold_ns=20, work=result.work)
        for window in ((0, middle), (middle, END))
    ]
    assert sum(part.whole.idle_ns for part in parts) == result.whole.idle_ns
    for part in parts:
        for total in part.totals:
            assert total.idle_ns == total.listed_ns + total.below_ns + total.in_runs_ns
    edges = Counter(result.gaps.edge.tolist())
    assert edges[Edge.HEAD] <= 1
    assert edges[Edge.TAIL] <= 1


def check_innermost(report: Report, result: Stalls) -> None:
    """The cheap segments name the same range as whole NVTX paths do."""
    times = np.arange(-1, END + 1)
    for thread, path in nvtx_paths(report).threads.items():
        rows = path.innermost_at(times)
        expected = [
            report.ranges.names[report.ranges.name[row]] if row >= 0 else "" for row in rows
        ]
        found = result.work.thread(thread).innermost.longest(times, times + 1)
        assert [result.work.name(code) for code in found.tolist()] == expected
