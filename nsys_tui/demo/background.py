"""What the profiler records beside the program: CPU samples, thread switches, GPU metrics."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from nsys_tui.demo.events import Metric, Operation, Range, RankInfo, Sample, Switch, Trace
from nsys_tui.demo.machine import Noise

SAMPLE_NS: Final = 1_000_000
METRIC_NS: Final = 500_000


def add(trace: Trace) -> None:
    """Adds samples, switches and metrics that fit the events so far."""
    for info in trace.ranks:
        for tid in info.threads.values():
            _sample_thread(trace, info, tid)
            _switch_thread(trace, info, tid)
    for info in trace.ranks:
        _measure_gpu(trace, info)


def _sample_thread(trace: Trace, info: RankInfo, tid: int) -> None:
    """One sample a millisecond while the thread is on a CPU; frames say what it was doing."""
    calls = sorted((c for c in trace.calls if c.tid == tid), key=lambda c: c.start)
    waits = sorted((c for c in trace.os_calls if c.tid == tid), key=lambda c: c.start)
    if not calls:
        return
    coming = sorted(
        (r for r in trace.ranges if r.tid == tid and r.event_type == 59),
        key=lambda r: r.start,
        reverse=True,
    )
    open_ranges: list[Range] = []
    call_starts = [c.start for c in calls]
    wait_starts = [c.start for c in waits]
    noise = Noise(tid)
    time = calls[0].start + noise.below(SAMPLE_NS)
    while time < calls[-1].end:
        while coming and coming[-1].start <= time:
            open_ranges.append(coming.pop())
        open_ranges = [r for r in open_ranges if r.end is None or time < r.end]
        wait = waits[bisect_right(wait_starts, time) - 1] if waits else None
        if not (wait and wait.start <= time < wait.end):
            call = calls[bisect_right(call_starts, time) - 1]
            frames = _frames(open_ranges)
            if call.start <= time < call.end:
                frames = ("ioctl", "libcuda_submit", call.name.partition("_v")[0], *frames)
            trace.samples.append(Sample(info.rank, tid, time, tid % 16, frames))
        time += SAMPLE_NS - 40_000 + noise.below(80_000)


def _frames(open_ranges: Iterable[Range]) -> tuple[str, ...]:
    """The call stack of a thread, leaf first: one function per range that it is in."""
    inner_first = sorted(open_ranges, key=lambda r: -r.depth)
    return (*(r.name.partition(" ")[0] for r in inner_first), "run_training", "main")


def _switch_thread(trace: Trace, info: RankInfo, tid: int) -> None:
    """A thread leaves its CPU in every wait of more than 10 us."""
    for wait in trace.os_calls:
        if wait.tid == tid and wait.end - wait.start > 10_000:
            trace.switches.append(Switch(info.rank, tid, wait.start + 1_500, tid % 16, False))
            trace.switches.append(Switch(info.rank, tid, wait.end - 2_000, tid % 16, True))


def _measure_gpu(trace: Trace, info: RankInfo) -> None:
    """Clock, activity and copy traffic of one GPU twice a millisecond."""
    operations = [o for o in trace.operations if o.rank == info.rank]
    count = trace.duration // METRIC_NS
    active = _coverage((o for o in operations if o.kind in ("kernel", "graph")), count)
    copies = _coverage((o for o in operations if o.kind == "memcpy"), count)
    tensor = _coverage((o for o in operations if o.kernel and "gemm" in o.kernel.short), count)
    straggler = info.rank == len(trace.ranks) - 1
    noise = Noise(900 + info.rank)
    for i in range(count):
        time = i * METRIC_NS
        clock = (1_245 if straggler else 1_410) - noise.below(8) if active[i] else 210
        values = {
            "GPC Clock Frequency [MHz]": clock,
            "SM Active [Throughput %]": active[i],
            "Tensor Active [Throughput %]": tensor[i] * 62 // 100,
            "PCIe RX Throughput [Throughput %]": copies[i] * 88 // 100,
        }
        trace.metrics.extend(Metric(info.gpu, time, name, v) for name, v in values.items())


def _coverage(operations: Iterable[Operation], count: int) -> list[int]:
    """Percent of each metric interval that operations cover (at most 100)."""
    covered = [0] * (count + 1)
    for operation in operations:
        time = operation.start
        while time < operation.end:
            index = min(time // METRIC_NS, count)
            edge = min(operation.end, (index + 1) * METRIC_NS) if index < count else operation.end
            covered[index] += edge - time
            time = edge
    return [min(100, ns * 100 // METRIC_NS) for ns in covered[:count]]
