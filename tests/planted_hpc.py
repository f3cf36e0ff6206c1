"""Planted runs of HPC programs: ranks with a GPU each, copies, set-up and output of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from machine import FULL, MS, US, Machine
from synth import Synth

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STEPS = 20


def ranks(path: Path, works: Sequence[Sequence[int]], call: str = "") -> Synth:
    """Ranks that meet at a barrier after each step, a GPU for each.

    Args:
        path: of the report.
        works: how long each rank's kernel takes, in ms, in one step after another, again and again.
        call: of the operating system in which the first rank then spends 6 ms of each fourth step.
    """
    synth, now = Synth(path), 0
    for rank in range(len(works[0])):
        synth.gpu(rank)
    for step in range(STEPS):
        work = works[step % len(works)]
        writes = [6 * MS if call and not rank and step % 4 == 3 else 0 for rank in range(len(work))]
        last = now + max(ms * MS + extra for ms, extra in zip(work, writes, strict=True)) + 50 * US
        for rank, (ms, extra) in enumerate(zip(work, writes, strict=True)):
            synth.process(10 + rank, "solver" if not step else None)
            done = now + 10 * US + ms * MS
            gpu = (now + 10 * US, done)
            synth.launch("sweep", (now, now + 5 * US), gpu, device=rank, grid=FULL)
            synth.api("cudaDeviceSynchronize_v3020", now + 6 * US, done + 4 * US)
            if extra:
                synth.osrt(call, done + 5 * US, done + extra)
            synth.mpi("MPI_Barrier", done + extra + 6 * US, last)
        now = last + 5 * US
    return synth


def imbalanced(path: Path) -> Synth:
    return ranks(path, [(3, 3, 5)])


def late_by_turns(path: Path) -> Synth:
    """Each rank is the late one in every third step."""
    return ranks(path, [(5, 3, 3), (3, 5, 3), (3, 3, 5)])


def often_late(path: Path) -> Synth:
    """The first rank is the late one in every second step: the others wait twice as long."""
    return ranks(path, [(5, 3, 3), (3, 5, 3), (5, 3, 3), (3, 3, 5)])


def checkpointing(path: Path) -> Synth:
    """The others wait while the first rank writes."""
    return ranks(path, [(3, 3, 3)], call="pwrite64")


def both_ways(path: Path, rate: int = 20) -> Synth:
    """Pinned copies up and down and a kernel on one stream: three could run at a time."""
    run = Machine(path)
    for _ in range(STEPS):
        run.copy(60_000_000, rate, "HtoD")
        run.launch("sobel", 2 * MS)
        run.copy(60_000_000, rate, "DtoH")
    return run.report


def narrow(path: Path, threads: int = 16) -> Synth:
    """Very many blocks of half a warp."""
    synth = Synth(path).process(10, "knn").gpu(0)
    grid, block = (60_000, 1, 1), (threads, 1, 1)
    for number in range(STEPS):
        call, begun = number * 10 * US, number * 10 * MS + MS
        gpu = (begun, begun + 10 * MS - 2 * US)
        synth.launch("distance", (call, call + 5 * US), gpu, grid=grid, block=block)
    return synth


def whole_warps(path: Path) -> Synth:
    return narrow(path, 32)


def writing_at_the_end(path: Path, call: str = "write") -> Synth:
    """A run of 20 ms, after which the host writes for 200 ms, or waits."""
    run = Machine(path)
    for _ in range(STEPS):
        run.launch("step", MS)
    run.wait()
    for _ in range(100):
        run.off(call, 2 * MS)
    return run.report


def waiting_at_the_end(path: Path) -> Synth:
    return writing_at_the_end(path, "poll")


def pinning_at_first(path: Path) -> Synth:
    """A context of 200 ms and a pinned buffer of 600 ms before a run of 20 ms."""
    run = Machine(path)
    run.call("cudaGetDeviceCount_v3020", MS)
    run.call("cudaMalloc_v3020", 200 * MS)
    run.call("cudaHostAlloc_v3020", 600 * MS)
    for _ in range(STEPS):
        run.launch("step", MS)
    run.wait()
    return run.report


def starting_only(path: Path) -> Synth:
    """Nothing but a context for each of eight GPUs before a run of 20 ms."""
    run = Machine(path)
    for _ in range(8):
        run.call("cudaMalloc_v3020", 200 * MS)
    for _ in range(STEPS):
        run.launch("step", MS)
    run.wait()
    return run.report


def losing(path: Path, seen: int = 5) -> Synth:
    """Steps that wait for two kernels; of the middle ones nsys kept no kernel, or of none.

    Args:
        path: of the report.
        seen: from which step on, and up to so many before the end, kernels are missing.
    """
    run = Machine(path)
    run.report.diagnostic("Not all CUDA events might have been collected.", severity=3)
    for step in range(STEPS):
        if seen <= step < STEPS - seen:
            run.call("cudaLaunchKernel_v7000", 5 * US)
            run.call("cudaDeviceSynchronize_v3020", 4 * MS)
        else:
            run.launch("solve", 2 * MS)
            run.launch("update", 2 * MS)
            run.wait()
    return run.report


def losing_elsewhere(path: Path) -> Synth:
    """Nothing is missing where the GPU idles, which the message does not tell."""
    run = Machine(path)
    run.report.diagnostic("Not all CUDA events might have been collected.", severity=3)
    for _ in range(STEPS):
        run.launch("solve", 4 * MS)
        run.wait()
        run.off("write", 4 * MS)
    return run.report


def faulting(path: Path, gpus: int = 1) -> Synth:
    """A kernel that waits for the pages it touches: 5 us for each, and 20 us until they move.

    Args:
        path: of the report.
        gpus: that do the same side by side.
    """
    run = Machine(path, gpus)
    pages: Any = {"bytes": 65536, "kind": "UVM HtoD", "src": "managed", "dst": "managed"}
    for _ in range(4):
        for gpu in range(gpus):
            run.launch("scale", 10 * MS, device=gpu)
            begun = run.free[gpu, 7] - 10 * MS
            for page in range(400):
                fault = begun + page * 25 * US + 20 * US
                run.report.memcpy(fault, fault + 5 * US, device=gpu, **pages)
        run.wait()
    return run.report


def faulting_twice(path: Path) -> Synth:
    return faulting(path, 2)


def long_faults(path: Path, cause: int = 2, *, recorded: bool = True) -> Synth:
    """Every 500 us a kernel waits 400 us for a fault, of which its page moves in the last 50.

    Args:
        path: of the report.
        cause: of the migrations.
        recorded: whether the faults are.
    """
    run = Machine(path)
    for _ in range(4):
        run.launch("scale", 10 * MS)
        for page in range(20):
            fault = run.free[0, 7] - 10 * MS + page * 500 * US
            start, end = fault + 350 * US, fault + 400 * US
            run.report.memcpy(start, end, kind="UVM HtoD", src="managed", migrationCause=cause)
            if recorded:
                run.report.gpu_fault(fault, end)
                run.report.gpu_fault(fault, end + 90 * US, device=1)
        run.wait()
    return run.report


def exchanging(
    path: Path, calls: Sequence[tuple[str, int]] = (("MPI_Isend", 900), ("MPI_Waitall", 2100))
) -> Synth:
    """After each step one call of MPI after the other, each for so many us."""
    run = Machine(path)
    for _ in range(STEPS):
        run.launch("sweep", 4 * MS)
        run.wait()
        for name, lasts in calls:
            run.report.mpi(name, run.now, run.now + lasts * US, "wait")
            run.now += lasts * US
    return run.report


def in_thirds(path: Path) -> Synth:
    return exchanging(path, [("MPI_Sendrecv", 1100), ("MPI_Barrier", 1000), ("MPI_Reduce", 900)])


def waiting_once(path: Path) -> Synth:
    return exchanging(path, [("MPI_Isend", 10), ("MPI_Waitall", 2990)])


def stat_storm(path: Path) -> Synth:
    """After each step small files are opened, looked at and closed."""
    run = Machine(path)
    for _ in range(STEPS):
        run.launch("sweep", 4 * MS)
        run.wait()
        for _ in range(5):
            run.off("open64", 120 * US)
            run.off("stat", 400 * US)
            run.off("close", 80 * US)
    return run.report


def set_up_once(
    path: Path,
    *,
    allocates: int = 0,
    parses: int = 0,
    uploads: int = 0,
    mid_run: bool = False,
    again: bool = False,
) -> Synth:
    """A first kernel, set-up of so many ms or uploads of so many MB, and iterations of one name."""
    run = Machine(path)
    run.report.sched(0, True)
    if not mid_run:
        run.call("cudaMalloc_v3020", 200 * US)
    run.launch("init", 100 * US)
    run.wait()
    for _ in range(allocates):
        run.call("cudaMalloc_v3020", MS)
        run.copy(8192, 10, "HtoD", "pageable")
    run.now += parses * MS
    for number in range(uploads):
        run.copy(1_000_000 + 4096 * number, 5, "HtoD", "pageable")
    for number in range(100):
        run.launch("sweep", MS)
        if again and number == 60:
            run.wait()
            run.now += parses * MS
    run.wait()
    return run.report


def allocated_once(path: Path) -> Synth:
    return set_up_once(path, allocates=30)


def parsed_once(path: Path) -> Synth:
    return set_up_once(path, parses=30)


def uploaded_once(path: Path) -> Synth:
    return set_up_once(path, uploads=100)


def spinning(path: Path, frames: Sequence[str] = ("do_spin", "gomp_team_barrier_wait")) -> Synth:
    """After each step a parallel loop: the launching thread waits in it for the others."""
    run = Machine(path)
    run.report.sched(0, True)
    for _ in range(STEPS):
        run.launch("sweep", 4 * MS)
        run.wait()
        for number in range(12):
            when, module = run.now + number * 250 * US + 9 * US, "/usr/lib/libgomp.so.1.0.0"
            run.report.sample(when, (*frames, "GOMP_parallel", "main"), module=module)
        run.now += 3 * MS
    return run.report


def sharing_a_loop(path: Path) -> Synth:
    """The same, but it computes like the others."""
    synth = spinning(path, ("forces",))
    for chain in synth.rows["SAMPLING_CALLCHAINS"]:
        chain["module"] = synth.string("app" if chain["stackDepth"] == 0 else "libgomp.so.1")
    return synth


def flushed_rank(path: Path) -> Synth:
    """The profiler holds one of two ranks up; the other one waits for it in the collective."""
    synth, now = Synth(path).gpu(0).gpu(1), 0
    for step in range(STEPS):
        for rank, late in ((0, 0), (1, 3 * MS)):
            synth.process(10 + rank, "train" if not step else None)
            begun = now + late
            if late:
                synth.overhead("CUDA profiling data flush overhead", now, begun)
            gpu = (begun + 8 * US, begun + 5 * MS)
            synth.launch("gemm", (begun, begun + 5 * US), gpu, device=rank, grid=FULL)
            call, until = (begun + 6 * US, begun + 9 * US), now + 9 * MS
            name = "ncclDevKernel_AllReduce_Sum_f32"
            synth.launch(name, call, (gpu[1], until), device=rank, grid=FULL)
        now += 9 * MS + 10 * US
    return synth


def prefetched(path: Path, cause: int = 1) -> Synth:
    """While each kernel runs, pages move for a quarter of it, as the program asked or on demand."""
    run = Machine(path)
    for _ in range(STEPS):
        run.call("cudaMemPrefetchAsync_v8000", 8 * US)
        run.launch("scale", 4 * MS)
        begun = run.free[0, 7] - 3 * MS
        run.report.memcpy(
            begun, begun + MS, bytes=20_000_000, kind="UVM HtoD", migrationCause=cause
        )
    return run.report


def on_demand(path: Path) -> Synth:
    return prefetched(path, 2)


def of_no_cause(path: Path) -> Synth:
    """Pages move, and nothing tells whether as the program asked."""
    return prefetched(path, 0)


def taking_turns(path: Path, ahead: bool = False) -> Synth:
    """Two ranks on one GPU by turns: each launches when the other one is done, or long before."""
    synth = Synth(path).gpu(0)
    for number in range(60):
        synth.process(10 + number % 2, f"rank {number}" if number < 2 else None)
        start = MS + number * MS
        call = number * 9 * US if ahead else start
        gpu, grid = (start + 9 * US, start + MS - 9 * US), (20, 1, 1)
        synth.launch("step", (call, call + 5 * US), gpu, context=1 + number % 2, grid=grid)
    return synth


def queueing(path: Path) -> Synth:
    return taking_turns(path, ahead=True)
