"""A small discrete simulation of one rank: host threads that call CUDA, streams that work in order.

An operation starts when its call has reached the device and everything before it on its stream is
done, so queues, gaps and waiting arise by themselves. All arithmetic is on whole nanoseconds and
all noise comes from one seeded sequence: the same arguments give the same report everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from nsys_tui.demo.events import (
    GRAPH,
    KERNEL,
    MEMCPY,
    MEMSET,
    Call,
    EventRecord,
    Kernel,
    MemoryUse,
    Operation,
    OsCall,
    Overhead,
    Phase,
    Range,
    RankInfo,
    Sync,
    Trace,
)

LAUNCH_LATENCY: Final = 6_200
BACK_TO_BACK: Final = 900
"""Nanoseconds from a call to its operation on an idle stream, and between two queued ones."""

COPY_BYTES_PER_US: Final = 24_000
PAGEABLE_BYTES_PER_US: Final = 11_000
DEVICE_BYTES_PER_US: Final = 1_300_000

HTOD, DTOH, DTOD = 1, 2, 8
PAGEABLE, PINNED, DEVICE = 0, 1, 2


class Noise:
    """A seeded sequence (SplitMix64), the same on every Python."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, limit: int) -> int:
        """The next number in [0, limit)."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & (2**64 - 1)
        z = self._state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & (2**64 - 1)
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & (2**64 - 1)
        return (z ^ (z >> 31)) % limit

    def around(self, value: int, permille: int = 40) -> int:
        """``value`` shifted by at most ``permille`` thousandths either way."""
        spread = value * permille // 1000
        return value - spread + self.below(2 * spread + 1)


@dataclass(slots=True)
class Thread:
    """A host thread and how far it has come."""

    tid: int
    name: str
    clock: int = 0
    open_ranges: list[Range] = field(default_factory=list)


@dataclass(slots=True)
class Stream:
    """A CUDA stream, when all its work so far is done, and that work."""

    id: int
    name: str
    ready: int = 0
    work: list[tuple[int, Operation]] = field(default_factory=list)
    """Each operation with the time its call began."""

    def done_by(self, time: int) -> int:
        """When all work that was enqueued up to ``time`` is done; other threads may be ahead."""
        return next((o.end for called, o in reversed(self.work) if called <= time), 0)


class Rank:
    """One process with one GPU. Methods act on ``self.thread``, the thread that is running."""

    def __init__(self, trace: Trace, rank: int, world: int, slowdown_permille: int = 0) -> None:
        pid = 4200 + 17 * rank
        self.trace, self.rank, self.world, self.pid = trace, rank, world, pid
        self.main = Thread(pid, "python3")
        self.autograd = Thread(pid + 9, "pt_autograd_0")
        self.loader = Thread(pid + 12, "data loader")
        self.thread = self.main
        self.null = Stream(7, "")
        self.compute = Stream(13, "main stream")
        self.nccl = Stream(16, "nccl stream")
        self.copies = Stream(19, "copy stream")
        self.phase = Phase.SETUP
        self.noise = Noise(1000 + rank)
        self.op_count = 0
        self._slowdown = slowdown_permille
        self._correlation = 1200
        self._event = 40
        self._address = 0x7F30_0000_0000
        trace.ranks.append(
            RankInfo(
                rank,
                pid,
                rank,
                {t.name: t.tid for t in (self.main, self.autograd, self.loader)},
                {s.name: s.id for s in (self.null, self.compute, self.nccl, self.copies)},
            )
        )

    @property
    def streams(self) -> tuple[Stream, ...]:
        """All streams of the process."""
        return (self.null, self.compute, self.nccl, self.copies)

    def think(self, ns: int) -> None:
        """Host work of the running thread between two calls."""
        self.thread.clock += self.noise.around(ns, 200)

    @contextmanager
    def on(self, thread: Thread) -> Iterator[None]:
        """Runs the body on another thread, at that thread's own clock."""
        before, self.thread = self.thread, thread
        try:
            yield
        finally:
            self.thread = before

    @contextmanager
    def range(
        self, name: str, domain: int = 0, registered: bool = False, payload: str | None = None
    ) -> Iterator[None]:
        """A push/pop range of the running thread around the body."""
        self.open_range(name, domain, registered, payload)
        yield
        self.close_range()

    def open_range(
        self, name: str, domain: int = 0, registered: bool = False, payload: str | None = None
    ) -> Range:
        """Pushes a range; without ``close_range`` it never ends."""
        thread = self.thread
        pushed = Range(
            name, self.rank, thread.tid, thread.clock, None, self.phase, domain=domain,
            registered=registered, payload=payload, depth=len(thread.open_ranges),
        )  # fmt: skip
        thread.open_ranges.append(pushed)
        self.trace.ranges.append(pushed)
        thread.clock += 150
        return pushed

    def close_range(self) -> None:
        """Pops the innermost open range of the running thread."""
        self.thread.clock += 150
        self.thread.open_ranges.pop().end = self.thread.clock

    def mark(self, name: str) -> None:
        """A point in time on the running thread."""
        thread = self.thread
        self.trace.ranges.append(
            Range(name, self.rank, thread.tid, thread.clock, None, self.phase, event_type=34)
        )
        thread.clock += 120

    def call(self, name: str, ns: int, driver: bool = False, frames: tuple[str, ...] = ()) -> Call:
        """An API call that takes about ``ns`` on the running thread."""
        start = self.thread.clock
        self._correlation += 1
        made = Call(
            name, self.rank, self.thread.tid, start, start + self.noise.around(ns, 150),
            self._correlation, self.phase, driver, frames,
        )  # fmt: skip
        self.trace.calls.append(made)
        self.thread.clock = made.end
        return made

    def os_call(self, name: str, ns: int, frames: tuple[str, ...] = ()) -> None:
        """A call into the C library that takes exactly ``ns``."""
        start = self.thread.clock
        self.trace.os_calls.append(
            OsCall(name, self.rank, self.thread.tid, start, start + ns, self.phase, frames)
        )
        self.thread.clock += ns

    def launch(self, kernel: Kernel, host_ns: int = 4_000) -> Operation:
        """Launches a kernel; on a slow GPU it takes longer."""
        call = self.call("cudaLaunchKernel_v7000", host_ns)
        ns = kernel.ns * (1000 + self._slowdown) // 1000
        done = self._enqueue(KERNEL, self.compute, call, self.noise.around(ns))
        done.kernel = kernel
        self.think(1_400)
        return done

    def copy(
        self, kind: int, size: int, stream: Stream | None = None, host_kind: int = PINNED
    ) -> Operation:
        """An asynchronous copy (to or from pageable memory the call waits for it)."""
        call = self.call("cudaMemcpyAsync_v3020", 5_200)
        speed = PAGEABLE_BYTES_PER_US if host_kind == PAGEABLE else COPY_BYTES_PER_US
        speed = DEVICE_BYTES_PER_US if kind == DTOD else speed
        ns = self.noise.around(1_300 + size * 1000 // speed)
        done = self._enqueue(MEMCPY, stream or self.compute, call, ns)
        done.bytes, done.copy_kind = size, kind
        done.source = host_kind if kind == HTOD else DEVICE
        done.target = host_kind if kind == DTOH else DEVICE
        if host_kind == PAGEABLE:
            call.end = self.thread.clock = max(call.end, done.end + 3_000)
        return done

    def memset(self, size: int) -> Operation:
        """Clears device memory on the main stream."""
        call = self.call("cudaMemsetAsync_v3020", 3_300)
        ns = self.noise.around(1_100 + size * 1000 // DEVICE_BYTES_PER_US)
        done = self._enqueue(MEMSET, self.compute, call, ns)
        done.bytes = size
        return done

    def launch_graph(self, ns: int) -> Operation:
        """Launches a whole CUDA graph, traced as one operation."""
        call = self.call("cudaGraphLaunch_v10000", 9_000)
        return self._enqueue(GRAPH, self.compute, call, self.noise.around(ns))

    def enqueue_at_least(self, call: Call, stream: Stream, earliest: int) -> Operation:
        """Puts a kernel of unknown length on a stream, not before ``earliest``."""
        stream.ready = max(stream.ready, earliest)
        return self._enqueue(KERNEL, stream, call, 0)

    def synchronize(
        self,
        stream: Stream | None = None,
        wake_ns: int = 3_500,
        frames: tuple[str, ...] = (),
    ) -> Call:
        """Waits for one stream, or for the device; the thread wakes ``wake_ns`` after the end."""
        name = "cudaDeviceSynchronize_v3020" if stream is None else "cudaStreamSynchronize_v3020"
        call = self.call(name, 2_400, frames=frames)
        waited = self.streams if stream is None else (stream,)
        done = max(s.done_by(call.start) for s in waited)
        call.end = self.thread.clock = max(call.end, done + self.noise.around(wake_ns))
        kind, waiting = (4, self.null) if stream is None else (3, stream)
        span = call.start + 400, call.end - 300
        self.trace.syncs.append(
            Sync(kind, self.rank, waiting.id, *span, call.correlation, self.phase)
        )
        return call

    def wait_event(self, waiting: Stream, recorded: Stream) -> None:
        """Lets one stream wait for all that another has been given so far."""
        self._event += 1
        record = self.call("cudaEventRecord_v3020", 1_300)
        done, key = max(recorded.ready, record.end), record.correlation
        self.trace.event_records.append(
            EventRecord(self.rank, recorded.id, done, key, self._event, self.phase)
        )
        wait = self.call("cudaStreamWaitEvent_v3020", 1_200)
        span, key = (wait.start + 200, wait.end - 200), wait.correlation
        self.trace.syncs.append(Sync(2, self.rank, waiting.id, *span, key, self.phase, self._event))
        waiting.ready = max(waiting.ready, recorded.ready)

    def allocate(self, size: int, ns: int = 120_000) -> None:
        """``cudaMalloc`` of device memory."""
        call = self.call("cudaMalloc_v3020", ns)
        self.trace.memory.append(
            MemoryUse(self.rank, call.end - 2_000, size, False, self._address, call.correlation)
        )
        self._address += size + 0x200000 & ~0x1FFFFF

    def free_last(self) -> None:
        """``cudaFree`` of what was allocated last."""
        last = [use for use in self.trace.memory if use.rank == self.rank][-1]
        call = self.call("cudaFree_v3020", 90_000)
        self.trace.memory.append(
            MemoryUse(self.rank, call.end - 2_000, last.bytes, True, last.address, call.correlation)
        )

    def overhead(self, name: str, ns: int, kind: int) -> None:
        """Module loading or profiler work that holds up the running thread."""
        start = self.thread.clock
        self.thread.clock += ns
        self.trace.overheads.append(
            Overhead(name, self.rank, self.thread.tid, start, self.thread.clock, kind)
        )

    def _enqueue(self, kind: str, stream: Stream, call: Call, ns: int) -> Operation:
        start = max(
            call.start + self.noise.around(LAUNCH_LATENCY, 120),
            stream.ready + self.noise.around(BACK_TO_BACK, 120),
        )
        done = Operation(
            kind, self.rank, stream.id, start, start + ns, call.correlation, call.phase
        )
        stream.ready = done.end
        stream.work.append((call.start, done))
        self.trace.operations.append(done)
        return done
