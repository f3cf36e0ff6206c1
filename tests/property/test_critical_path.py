"""Critical paths against schedules that a small machine ran and of which it knows each cause."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import planted_programs as programs
import pytest
from demo_making import make
from synth import Synth, global_pid, global_tid

from nsys_tui.analysis.iterations.critical_path import Edge, Segment, What, critical_path
from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.analysis.iterations.path_answer import step_path
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

LATENCY = 5_000
PID = 10
COPY = "[CUDA memcpy Host-to-Device]"


@dataclass
class Node:
    """Something that took time, and what it waited for."""

    start: int
    end: int
    what: str
    before: Node | None = None
    """What had to end first; None at the beginning."""
    ready: int = 0
    """When that was so far."""


@dataclass
class Machine:
    """A host thread and two streams of one GPU; writes what happens and keeps why."""

    synth: Synth
    now: int = 1_000
    host: Node | None = None
    streams: dict[int, Node] = field(default_factory=dict)
    waits: dict[int, Node] = field(default_factory=dict)

    def _host(self, ns: int, what: str, before: Node | None = None) -> Node:
        node = Node(self.now, self.now + ns, what, before or self.host, self.now)
        self.now, self.host = node.end, node
        return node

    def think(self, ns: int) -> None:
        self._host(ns, "host")

    def _queued(self, stream: int, ns: int, what: str, call: Node) -> Node:
        ready = [(call.start + LATENCY, call)]
        ready += [
            (node.end, node)
            for node in (self.streams.get(stream), self.waits.pop(stream, None))
            if node
        ]
        start, before = max(ready, key=lambda pair: pair[0])
        return Node(start, start + ns, what, before, start)

    def copy(self, stream: int, ns: int) -> None:
        """A copy to pageable memory: its call returns when it is done."""
        corr, begin = self.synth.next_correlation(), self.now
        call = Node(begin, begin, "call", self.host, begin)
        node = self._queued(stream, ns, COPY, call)
        self.synth.memcpy(node.start, node.end, stream=stream, corr=corr, dst="pageable")
        self._host(node.end + 2_000 - begin, "call", node)
        self.synth.api("cudaMemcpyAsync_v3020", begin, self.now, corr=corr)
        self.streams[stream] = node

    def launch(self, stream: int, ns: int) -> None:
        corr = self.synth.next_correlation()
        call = self._host(3_000, "call")
        self.synth.api("cudaLaunchKernel_v7000", call.start, call.end, corr=corr)
        node = self._queued(stream, ns, f"kernel_{stream}", call)
        start = node.start
        self.synth.kernel(f"kernel_{stream}(int)", start, node.end, stream=stream, corr=corr)
        self.streams[stream] = node

    def wait(self, stream: int, other: int) -> None:
        """``stream`` waits for the work of the other one so far."""
        corr = self.synth.next_correlation()
        call = self._host(2_000, "call")
        self.synth.api("cudaStreamWaitEvent_v3020", call.start, call.end, corr=corr)
        self.synth.sync(call.start, call.end, "stream wait", stream=stream, corr=corr)
        if other in self.streams:
            self.waits[stream] = self.streams[other]

    def synchronise(self, stream: int) -> None:
        corr, last = self.synth.next_correlation(), self.streams.get(stream)
        begin = self.now
        waits = last is not None and last.end > begin
        node = self._host(
            (last.end - begin if last and waits else 0) + 2_000, "call", last if waits else None
        )
        self.synth.api("cudaStreamSynchronize_v3020", begin, node.end, corr=corr)
        self.synth.sync(begin, node.end, "stream", stream=stream, corr=corr)

    def synchronise_all(self) -> None:
        corr, begin = self.synth.next_correlation(), self.now
        last = max(self.streams.values(), key=lambda node: node.end, default=None)
        waits = last is not None and last.end > begin
        took = last.end - begin if last and waits else 0
        node = self._host(took + 2_000, "call", last if waits else None)
        self.synth.api("cudaDeviceSynchronize_v3020", begin, node.end, corr=corr)
        # nsys writes a stream that has nothing to do with the wait.
        self.synth.sync(begin, node.end, "context", stream=7, corr=corr)


def run(path: Path, seed: int) -> tuple[Machine, Path]:
    rng = random.Random(seed)
    machine = Machine(Synth(path).gpu(0).process(PID))
    for _ in range(rng.randrange(8, 40)):
        stream = rng.choice((20, 21))
        kind = rng.choice(("launch",) * 5 + ("think", "wait", "synchronise", "all", "copy"))
        if kind == "launch":
            machine.launch(stream, rng.randrange(1_000, 90_000))
        elif kind == "think":
            machine.think(rng.randrange(1_000, 60_000))
        elif kind == "wait":
            machine.wait(stream, 41 - stream)
        elif kind == "copy":
            machine.copy(stream, rng.randrange(1_000, 90_000))
        elif kind == "all":
            machine.synchronise_all()
        else:
            machine.synchronise(stream)
    for stream in (20, 21):
        machine.synchronise(stream)
    return machine, machine.synth.write()


def true_path(machine: Machine, start: int) -> list[tuple[int, int, str]]:
    """From the end back: each node from the time that its cause was ready, to where we stand."""
    found, node, time = [], machine.host, machine.now
    while node is not None and time > start:
        if node.what in ("host", "call"):
            waited = (
                node.before
                if node.before and node.before.what.startswith(("kernel", COPY))
                else None
            )
            begin = waited.end if waited else node.start
            found.append((begin, time, node.what))
        elif node.before is not None and node.before.what == "call":
            found.append((node.start, time, node.what))
            found.append((node.before.start, node.start, "launch"))
            begin, node = node.before.start, node.before
            node = Node(begin, begin, "host", node.before)
        else:
            found.append((node.start, time, node.what))
            begin = node.start
        time, node = begin, node.before
    return [(max(a, start), b, what) for a, b, what in found if b > max(a, start)][::-1]


def kind_of(segment: Segment) -> str:
    names = {What.CALL: "call", What.HOST: "host", What.LAUNCH: "launch"}
    return names.get(segment.what, segment.name)


@pytest.mark.parametrize("seed", range(80))
def test_the_path_is_that_of_the_machine(tmp_path: Path, seed: int) -> None:
    machine, path = run(tmp_path / "r.sqlite", seed)
    report = open_report(path, use_cache=False)
    start = random.Random(seed + 1).choice((1_000, machine.now // 3))
    found = critical_path(report, start, machine.now, global_pid(PID), global_tid(PID, PID))
    assert (found[0].start, found[-1].end) == (start, machine.now)
    assert all(one.end == following.start for one, following in pairwise(found))
    assert found[0].edge is Edge.START
    shown = [(one.start, one.end, kind_of(one)) for one in found]
    assert joined(shown) == joined(true_path(machine, start))


def joined(segments: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Neighbours of one kind as one: a thread's calls need not be told from each other."""
    found: list[tuple[int, int, str]] = []
    for start, end, what in segments:
        if found and found[-1][2] == what:
            start = found.pop()[0]
        found.append((start, end, what))
    return found


def test_the_late_rank_is_on_the_path_of_the_one_that_waits(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite")
    lengths = {0: 20_000, 1: 70_000}
    for rank, ns in lengths.items():
        synth.process(10 + rank).gpu(rank).cuda_device(10 + rank, 0, rank)
        synth.launch("gemm(int)", (1_000, 2_000), (5_000, 5_000 + ns))
        synth.launch("ncclKernel_AllReduce(int)", (2_000, 3_000), (6_000 + ns, 90_000))
    report = open_report(synth.write(), use_cache=False)
    path = critical_path(report, 0, 90_000, global_pid(10), -1)
    gpu = [(one.what, one.where.split(",")[0], one.ns) for one in path if one.row >= 0]
    assert gpu == [(What.COMPUTE, "GPU 1", 70_000), (What.COMM, "GPU 0", 14_000)]
    assert sum(one.ns for one in path) == 90_000


@pytest.mark.parametrize("waits", [True, False])
def test_what_runs_on_past_a_step_is_on_its_path_only_if_the_host_does_not_wait(
    tmp_path: Path, waits: bool
) -> None:
    """A copy for the next step runs beside the work whose end the host waits for."""
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(PID)
    synth.api("cudaMemcpyAsync_v3020", 1_000, 2_000, corr=1)
    synth.memcpy(5_000, 150_000, kind="HtoD", src="pinned", stream=13, corr=1)
    synth.launch("gemm(int)", (3_000, 4_000), (6_000, 90_000))
    if waits:
        synth.api("cudaStreamSynchronize_v3020", 5_000, 92_000, corr=9)
        synth.sync(5_000, 92_000, "stream", corr=9)
    report = open_report(synth.write(), use_cache=False)
    path = critical_path(report, 0, 100_000, global_pid(PID), global_tid(PID, PID))
    gpu = [(one.what, one.ns) for one in path if one.row >= 0]
    assert gpu == ([(What.COMPUTE, 84_000)] if waits else [(What.MEMORY, 95_000)])
    assert sum(one.ns for one in path) == 100_000


@pytest.mark.parametrize("ahead", [True, False])
def test_what_was_launched_before_a_step_does_not_hold_up_its_end(
    tmp_path: Path, ahead: bool
) -> None:
    """The GPU still works for an earlier step when the host ends one in which it only launches."""
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(PID)
    synth.launch("gemm(int)", (2_000, 4_000) if ahead else (22_000, 24_000), (25_000, 150_000))
    synth.osrt("read", 30_000, 90_000)
    report = open_report(synth.write(), use_cache=False)
    path = critical_path(report, 20_000, 100_000, global_pid(PID), global_tid(PID, PID))
    took = {one.name: one.ns for one in path}
    assert ("gemm" in took, took.get("read")) == ((False, 60_000) if ahead else (True, None))
    assert sum(one.ns for one in path) == 80_000


def test_a_wait_for_a_thread_leads_to_what_that_thread_did(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(PID)
    synth.osrt("pthread_cond_wait", 1_000, 80_000)
    synth.osrt("read", 5_000, 70_000, tid=77).osrt("pthread_cond_signal", 78_000, 79_000, tid=77)
    synth.launch("gemm(int)", (82_000, 83_000), (85_000, 99_000))
    report = open_report(synth.write(), use_cache=False)
    path = critical_path(report, 0, 99_000, global_pid(PID), global_tid(PID, PID))
    took = {one.name: one.ns for one in path}
    assert took["read"] == 65_000
    assert took["pthread_cond_wait"] == 2_000
    assert next(one for one in path if one.name == "pthread_cond_wait").edge is Edge.ASSUMED


def test_the_demo_loader_is_on_the_path_of_the_slow_step(tmp_path: Path) -> None:
    demo = make(tmp_path, steps=10)
    report = open_report(demo.path, use_cache=False)
    slow = next(step for step in demo.truth["step_times"] if step["name"] == "Train step 8")
    end = slow["start"] + slow["time_ns"]
    ranges = report.ranges
    thread = next(
        int(ranges.threads[ranges.thread[row]])
        for row in range(len(ranges))
        if ranges.start[row] == slow["start"]
    )
    path = critical_path(report, slow["start"], end, thread & ~0xFFFFFF, thread)
    assert sum(one.ns for one in path if one.name == "pread64") > 50_000_000
    assert any(one.what is What.COMM for one in path)
    assert sum(one.ns for one in path) == slow["time_ns"]
    demo.connection.close()


def test_the_path_tells_how_much_shorter_a_step_gets_without_its_communication(
    tmp_path: Path,
) -> None:
    times, on_path = [], 0
    for comm in (2_000_000, 2_000):
        synth = programs.reducing(tmp_path / f"{comm}.sqlite", comm)
        report = open_report(synth.write(), use_cache=False)
        found = find_iterations(report)
        path = step_path(report, found, found.typical)
        times.append(path.time_ns)
        on_path = on_path or sum(one.time_ns for one in path.work if one.what == What.COMM)
    assert on_path == 2_000_000
    assert times[0] - times[1] == 2_000_000 - 2_000, "what is left is the shorter transfer"
