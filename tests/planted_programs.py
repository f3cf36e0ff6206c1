"""Planted runs of whole programs: what they do is told, and ``machine`` says when it happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from machine import FULL, MS, US, Machine
from synth import Synth

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def decoding(path: Path) -> Synth:
    """Small kernels one after another: each is being launched while the GPU falls idle."""
    run = Machine(path)
    for token in range(20):
        since = run.now
        for layer in range(60):
            run.launch(f"gemv_{layer % 5}", 3 * US)
            run.now += 3 * US
        run.copy(8, 10, "DtoH", "pageable")
        run.named(f"decode {token}", since)
    return run.report


def failing(path: Path, returned: int = 701, calls: int = 30) -> Synth:
    """Some launches return an error, so that only their set-up runs."""
    run = Machine(path)
    run.layers(2)
    for _ in range(calls):
        run.report.api("cudaLaunchKernel_v7000", run.now, run.now + 3 * US, returned=returned)
        run.now += 10 * US
    run.copy(MS, 5, "DtoH", "pageable")
    return run.report


def asking_whether_done(path: Path) -> Synth:
    """Queries return that work is not done, which is no error."""
    run = Machine(path)
    run.layers(2)
    for _ in range(30):
        run.report.api("cudaStreamQuery_v3020", run.now, run.now + US, returned=600)
        run.now += 10 * US
    run.copy(MS, 5, "DtoH", "pageable")
    return run.report


def logging(path: Path, loads: int = 0, saves: int = 0) -> Synth:
    """Steps only launch; in each tenth the host waits for all of them, and writes.

    Args:
        path: of the report.
        loads: how long it waits for a batch in step 25, ns.
        saves: how long it writes in step 29 besides, when the GPU is done.
    """
    run = Machine(path)
    for step in range(30):
        since = run.now
        if loads and step == 25:
            run.off("poll", loads)
            run.named("load", since)
        run.layers()
        if step % 10 == 9:
            run.wait()
            run.off("write", 3 * MS + saves * (step == 29))
            run.layers(1)
        run.named(f"train step {step}", since)
    return run.report


def accumulating(path: Path) -> Synth:
    """Each fourth step runs the optimiser too."""
    run = Machine(path)
    for step in range(24):
        since = run.now
        run.layers()
        if step % 4 == 3:
            run.launch("adam", 5 * MS)
        run.wait()
        run.named(f"micro step {step}", since)
    return run.report


def evaluating(path: Path) -> Synth:
    """After each tenth step the model is evaluated."""
    run = Machine(path)
    for step in range(30):
        since = run.now
        run.layers()
        run.wait()
        run.named(f"train step {step}", since)
        if step % 10 == 9:
            since = run.now
            run.layers(24, tag="eval_")
            run.wait()
            run.named("evaluate", since)
    return run.report


def autotuning(path: Path) -> Synth:
    """Two of 25 steps try kernels out, with memory of their own for each."""
    run = Machine(path)
    for step in range(25):
        since = run.now
        for trial in range(20 if step < 2 else 0):
            run.call("cudaMalloc_v3020", 200 * US)
            run.launch(f"trial_{trial}", 900 * US)
            run.wait()
            run.call("cudaFree_v3020", 200 * US)
        run.layers()
        run.named(f"train step {step}", since)
    run.wait()
    return run.report


def by_turns(path: Path, together: bool = False, blocks: int = 1080) -> Synth:
    """Two processes on one GPU: their kernels alternate, or run together."""
    synth = Machine(path).report
    for number in range(100):
        start = number * 2 * MS
        for place, pid in enumerate((10, 11)):
            begun = start + place * MS * (not together)
            call = (start - MS, start - MS + 5 * US)
            synth.process(pid, f"rank {place}" if number == 0 else None)
            gpu, grid = (begun, begun + MS - 9 * US), (blocks, 1, 1)
            synth.launch("gemm", call, gpu, context=place + 1, grid=grid)
    return synth


def beside(path: Path) -> Synth:
    return by_turns(path, together=True, blocks=40)


def crammed(path: Path) -> Synth:
    return by_turns(path, together=True)


def small_by_turns(path: Path) -> Synth:
    return by_turns(path, blocks=40)


def far_memory(path: Path) -> Synth:
    """Pinned uploads at a quarter of the rate of downloads."""
    run = Machine(path)
    for step in range(20):
        since = run.now
        run.copy(20_000_000, 6, "HtoD")
        run.layers()
        run.copy(20_000_000, 24, "DtoH")
        run.named(f"train step {step}", since)
    return run.report


def halo(path: Path) -> Synth:
    """Each iteration copies its edge out, exchanges it, and copies it back."""
    run = Machine(path)
    for step in range(20):
        since = run.now
        run.launch("stencil", 5 * MS)
        run.copy(8_000_000, 12, "DtoH")
        run.report.mpi("MPI_Sendrecv", run.now, run.now + 1500 * US, "p2p", size=8_000_000)
        run.now += 1500 * US
        run.copy(8_000_000, 12, "HtoD")
        run.named(f"iteration {step}", since)
    return run.report


def one_thread_two_gpus(path: Path) -> Synth:
    """One thread launches for both GPUs, and waits: the second one idles while it does."""
    run = Machine(path, gpus=2)
    for step in range(25):
        since = run.now
        for device in (0, 1):
            for _ in range(20):
                run.launch("gemm", 100 * US, device)
        run.wait()
        run.named(f"step {step}", since)
    return run.report


def rendering(path: Path) -> Synth:
    """Each frame computes for 2.1 ms and is drawn for 6."""
    run = Machine(path)
    for frame in range(20):
        since = run.now
        run.layers(3)
        run.wait()
        run.report.render("VULKAN", run.now, run.now + 6 * MS, call="vkQueueSubmit")
        run.now += 6 * MS
        run.named(f"frame {frame}", since)
    return run.report


def copying(path: Path) -> Synth:
    """Copies for 98 % of the time, behind which hardly anything could run."""
    run = Machine(path)
    for _ in range(20):
        run.copy(500_000_000, 27, "HtoD")
        run.launch("k", 300 * US)
    return run.report


def choosing(path: Path, reads: bool = True) -> Synth:
    """The host computes for 500 us before each kernel, and reads one value after it, or none."""
    run = Machine(path)
    run.report.sched(0, True)
    for _ in range(200):
        run.now += 500 * US
        run.launch("k", 100 * US)
        if reads:
            run.copy(4, 10, "DtoH")
    return run.report


def displaced(path: Path, early: int = 3 * MS, every: int = 1) -> Synth:
    """The GPU's clock is behind: kernels begin before they are launched."""
    synth = evaluating(path)
    for row in synth.rows["CUPTI_ACTIVITY_KIND_KERNEL"][::every]:
        row["start"] -= early
        row["end"] -= early
    return synth


def one_displaced(path: Path) -> Synth:
    return displaced(path, 8 * US, 500)


def exported_later(path: Path) -> Synth:
    text = "Loaded CUPTI library: /opt/nvidia/nsight-systems/2022.4.2/libcupti.so.11.8"
    return evaluating(path).diagnostic(text)


def exported_at_once(path: Path) -> Synth:
    text = "Loaded CUPTI library: /opt/nvidia/nsight-systems/2026.2.1/libcupti.so.13.1"
    return evaluating(path).diagnostic(text)


def gathering(path: Path) -> Synth:
    """One thread drives two GPUs and waits for both; the first one alone updates the model."""
    run = Machine(path, gpus=2)
    for step in range(20):
        since = run.now
        for device in (0, 1):
            run.launch("gemm", 3 * MS, device)
        run.launch("adam", 2 * MS)
        run.wait()
        run.named(f"train step {step}", since)
    return run.report


def stages(path: Path, batches: int = 1) -> Synth:
    """Three GPUs, each of a process of its own, whose stream waits for an event of the one before.

    Args:
        path: of the report.
        batches: that go through all of them before the next round.
    """
    synth = Machine(path, gpus=3).report
    free = [2 * MS] * 3
    for number in range(24):
        ready = max(free) if number % batches == 0 else free[0]
        for stage in range(3):
            begun, corr = max(ready, free[stage]) + 10 * US, synth.next_correlation()
            call = (free[stage] + 5 * US if batches == 1 else begun - MS) - stage
            synth.process(10 + stage, f"stage {stage}" if not number and stage else None)
            synth.api("cudaStreamWaitEvent_v3020", call, call + US, corr=corr)
            where: dict[str, Any] = {"device": stage, "context": stage + 1}
            synth.sync(call, call + US, "stream wait", corr=corr, **where)
            gpu = (begun, begun + 3 * MS)
            synth.launch("forward", (call + 2 * US, call + 7 * US), gpu, grid=FULL, **where)
            ready = free[stage] = gpu[1]
    return synth


def stages_filled(path: Path) -> Synth:
    return stages(path, 24)


def serving(path: Path, answers: bool = True, waits: str = "pthread_cond_wait") -> Synth:
    """A worker waits for a condition; another thread takes requests, or polls every 7 ms."""
    run = Machine(path)
    run.report.thread(11, "front end")
    for request in range(20):
        idle = (10 + request % 7) * MS
        if answers:
            run.report.osrt("epoll_wait", run.now, run.now + idle - 20 * US, tid=11)
        run.off(waits, idle)
        run.report.sample(run.now - MS, ("parse_request", "main"), tid=11)
        run.layers(4)
        run.wait()
    for tick in range(0 if answers else run.now // (7 * MS)):
        run.report.osrt("epoll_wait", tick * 7 * MS, (tick + 1) * 7 * MS - US, tid=11)
    return run.report


def connecting(path: Path) -> Synth:
    """Its event loop connects to others and lets nobody in: it asks, or answers to one it met."""
    return serving(path).osrt("connect", 0, 10 * US, tid=11)


def behind_a_socket(path: Path) -> Synth:
    """The worker polls a socket that the thread which takes requests writes to."""
    return serving(path, waits="poll")


def ticking_helper(path: Path) -> Synth:
    """The other thread neither works nor hands anything over."""
    return serving(path, answers=False)


def handing_over(path: Path) -> Synth:
    """The launching thread waits for one that computes, as samples show."""
    run = Machine(path)
    run.report.thread(11, "loader")
    for step in range(20):
        since = run.now
        run.off("pthread_cond_wait", 4 * MS)
        for sample in range(8):
            run.report.sample(since + sample * MS // 2 + 1, ("decode_jpeg", "main"), tid=11)
        run.layers(4)
        run.wait()
        run.named(f"train step {step}", since)
    return run.report


def ticking(
    path: Path, period: int = 10 * MS, call: str = "clock_nanosleep", jitter: int = 0, lost: int = 0
) -> Synth:
    """Work of 2 to 5 ms, then rest: until the next tick, or, without a period, for 5 ms.

    Args:
        path: of the report.
        period: of the ticks.
        call: in which the thread rests.
        jitter: by which every second tick is late.
        lost: by which all ticks from half of the run on are late.
    """
    run = Machine(path)
    for tick in range(30):
        run.copy(2_000_000, 20, "HtoD")
        run.layers(3 + tick * 7 % 5)
        run.wait()
        until = (tick + 1) * period + tick % 2 * jitter + (tick >= 15) * lost
        run.off(call, until - run.now if period else 5 * MS)
    return run.report


def filmed(path: Path) -> Synth:
    """Frames of a camera at a fixed rate."""
    return ticking(path, call="poll")


def filmed_anew(path: Path) -> Synth:
    """The camera starts anew in the midst of the run."""
    return ticking(path, call="poll", lost=73 * MS)


def sent_unevenly(path: Path) -> Synth:
    """Frames of somebody who works, at no usual rate: one takes 2 % longer than the next."""
    return ticking(path, 11 * MS, call="poll", jitter=100 * US)


def sleeping_alike(path: Path) -> Synth:
    return ticking(path, 0)


def sleeping_for_long(path: Path) -> Synth:
    """Each kernel, of 1.18 to 1.22 ms, is waited for by a sleep of 2 ms: no rate is meant."""
    run = Machine(path)
    for number in range(100):
        run.launch("k", 1200 * US + (number * 7 % 5 - 2) * 10 * US)
        run.off("usleep", 2 * MS)
    return run.report


def allocating_at_first(path: Path, until: int = 100) -> Synth:
    """The first of 400 kernels allocate their memory each, and wait for it."""
    run = Machine(path)
    for number in range(400):
        run.launch(f"k{number % 5}", 300 * US)
        if number < until:
            run.wait()
            run.call("cudaFree_v3020", 150 * US)
            run.call("cudaMalloc_v3020", 150 * US)
    return run.report


def loading_again(path: Path) -> Synth:
    """Each of 60 rounds loads code, and then runs the kernels of the round before."""
    run = Machine(path)
    for _ in range(60):
        run.layers(2)
        run.wait()
        run.call("cuModuleLoadData", 300 * US)
    return run.report


def allocating(path: Path) -> Synth:
    return allocating_at_first(path, 400)


def fused_little(path: Path, tiny: int = 4 * US) -> Synth:
    """Steps that end with 200 tiny kernels, all of them launched ahead: 1 us lies between them."""
    run = Machine(path)
    for step in range(10):
        since = run.now
        run.layers(10)
        for number in range(200):
            run.launch(f"adam_{number % 2}", tiny)
        run.named(f"train step {step}", since)
    return run.report


def reducing(path: Path, comm: int = 2 * MS) -> Synth:
    """Steps in which an all-reduce on another stream lies before the last layer; no event tells so.

    Args:
        path: of the report.
        comm: how long it takes, ns.
    """
    synth, start = Machine(path).report, 0
    work = [("layer 0", MS, 7), ("layer 1", MS, 7), ("ncclDevKernel_AllReduce", comm, 20)]
    for step in range(12):
        ready = start + 10 * US
        for number, (name, lasts, stream) in enumerate([*work, ("layer 2", MS, 7)]):
            call = start + number * 2 * US
            gpu = (ready, ready + lasts)
            synth.launch(name, (call, call + 2 * US), gpu, stream=stream, grid=FULL)
            ready = gpu[1] + US
        synth.api("cudaDeviceSynchronize_v3020", start + 8 * US, ready + 3 * US)
        synth.nvtx(f"train step {step}", start, ready + 3 * US)
        start = ready + 3 * US
    return synth


def event_loop(
    path: Path, answers: bool = True, begins: Sequence[str] = (), results: bool = True
) -> Synth:
    """One thread polls, receives, works and answers; or it reads from a pipe.

    Args:
        path: of the report.
        answers: it sends.
        begins: calls of the operating system before.
        results: it has copied from the GPU.
    """
    run = Machine(path)
    for call in begins:
        run.off(call, 100 * US)
    for request in range(20):
        run.off("poll", (8 + request % 5) * MS)
        run.off("recv" if answers else "read", 10 * US)
        run.layers(4)
        if results:
            run.copy(4000, 4, "DtoH")
        run.wait()
        if answers:
            run.off("send", 10 * US)
    return run.report


def asking_since_before(path: Path) -> Synth:
    """A client that had connected when the capture began: what it sends are no results."""
    return event_loop(path, results=False)


def cameras(path: Path, jitter: int = 0) -> Synth:
    """Threads that wait for a camera each hand frames over at 25 a second.

    Args:
        path: of the report.
        jitter: by which every second frame is late.
    """
    run = Machine(path)
    for camera in range(3):
        run.report.thread(11 + camera, f"camera {camera}")
    for frame in range(60):
        camera, at = frame % 3, (frame + 1) * 13 * MS + frame % 2 * jitter
        before = at - 39 * MS - (frame % 2 - (frame + 1) % 2) * jitter
        run.report.osrt("select", max(0, before + 60 * US), at, tid=11 + camera)
        run.report.osrt("pthread_cond_signal", at + 20 * US, at + 22 * US, tid=11 + camera)
        run.off("pthread_cond_wait", at + 30 * US - run.now)
        run.layers(4)
        run.copy(4000, 4, "DtoH")
        run.wait()
    return run.report


def cameras_by_hand(path: Path) -> Synth:
    return cameras(path, MS)


def decoded_in_hardware(path: Path) -> Synth:
    """Frames of a decoder in hardware, at a fixed rate."""
    return ticking(path, call="ioctl")


def graphs_first(path: Path, *, again: bool = False, mid_run: bool = False) -> Synth:
    """A server makes a graph for each of 20 sizes of batches, with a trial, then answers.

    Args:
        path: of the report.
        again: it makes them anew in the last part.
        mid_run: the capture begins when it has allocated.
    """
    run = Machine(path)
    run.report.sched(0, True)
    if not mid_run:
        run.call("cudaMalloc_v3020", 9 * MS)
    for makes in (True, False, again):
        for batch in range(20 * makes):
            run.now += 18 * MS
            run.call("cudaGraphInstantiate_v12000", 6 * MS)
            run.launch(f"decode{batch % 3}", 6 * MS)
            run.wait()
        for token in range(60):
            run.launch(f"decode{token % 3}", 6 * MS)
        run.wait()
    return run.report


def graphs_again(path: Path) -> Synth:
    return graphs_first(path, again=True)


def asking_a_store(path: Path) -> Synth:
    """A client asks a server for each batch."""
    return event_loop(path, begins=("connect",))


def serving_with_a_store(path: Path) -> Synth:
    """A server that is a client of a data base, too."""
    return event_loop(path, begins=("connect", "accept"))


def reading_a_pipe(path: Path) -> Synth:
    return event_loop(path, answers=False)


def waiting_for_ranks(path: Path) -> Synth:
    """A call of MPI polls for what its neighbour is to send."""
    run = Machine(path)
    for _ in range(20):
        run.layers(4)
        run.wait()
        run.report.mpi("MPI_Waitall", run.now, run.now + 4 * MS, "wait")
        for _ in range(4):
            run.off("poll", MS)
    return run.report


def ranges_of_mpi(path: Path, domain: str = "MPI") -> Synth:
    """The same by an nsys that writes MPI calls as ranges; the thread is on a CPU meanwhile."""
    run = Machine(path)
    run.report.sched(0, True).domain(3, domain)
    for _ in range(20):
        run.layers(4)
        run.wait()
        run.report.nvtx("MPI_Waitall", run.now, run.now + 4 * MS, domain=3)
        run.now += 4 * MS
    return run.report


def ranges_alike(path: Path) -> Synth:
    return ranges_of_mpi(path, "solver")


def one_beside(path: Path, others: tuple[str, ...] = ("indexer",)) -> Synth:
    """The launching thread waits for a lock while other threads of it are on a CPU."""
    run = Machine(path)
    for tid, name in enumerate(others, 30):
        run.report.thread(tid, name)
    for _ in range(20):
        for tid in range(30, 30 + len(others)):
            run.report.sched(run.now + US, True, tid=tid, cpu=tid)
            run.report.sched(run.now + 4 * MS, False, tid=tid, cpu=tid)
        run.off("pthread_mutex_lock", 4 * MS)
        run.layers(4)
        run.wait()
    return run.report


def two_beside(path: Path) -> Synth:
    return one_beside(path, ("indexer", "decoder"))


def blocking(path: Path, every: int = 1, others: int = 40 * US, waited: bool = True) -> Synth:
    """Each launch, or one of so many, returns when its kernel is done.

    Args:
        path: of the report.
        every: so many launches.
        others: how long four of five kernels last.
        waited: for the fifth, too; its call is as long as the others.
    """
    run = Machine(path)
    for number in range(400):
        run.launch(f"k{number % 5}", others if number % 5 else 40 * US)
        if number % every == 0 and (waited or number % 5):
            call, kernel = (run.report.rows[table][-1] for table in _LAUNCHED)
            run.now = call["end"] = kernel["end"] + 5 * US
        run.now += 8 * US
    return run.report


_LAUNCHED = ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL")


def second_process(path: Path, works_before: bool = False) -> Synth:
    """A process begins after another one is done, and first sets up its context, or did before."""
    run = Machine(path)
    run.layers(20)
    run.wait()
    run.report.process(11, "second")
    if works_before:
        run.layers(2)
    run.call("cudaFree_v3020", 40 * MS)
    run.layers(20)
    return run.report


def second_set_up(path: Path) -> Synth:
    return second_process(path, works_before=True)


def slow_launches(path: Path) -> Synth:
    """Launch calls of 60 us, in which a kernel of 12 us begins and ends."""
    run = Machine(path)
    for number in range(400):
        corr, start = run.report.next_correlation(), run.now + 8 * US
        run.report.kernel(f"k{number % 5}", start, start + 12 * US, corr=corr, grid=FULL)
        run.call("cudaLaunchKernel_v7000", 60 * US, corr)
    return run.report


def blocking_tiny(path: Path, waited: bool = True) -> Synth:
    return blocking(path, others=6 * US, waited=waited)


def slow_tiny(path: Path) -> Synth:
    """Calls outlast tiny kernels, but not those that show whether launches wait."""
    return blocking_tiny(path, waited=False)


def blocking_half(path: Path) -> Synth:
    return blocking(path, 2)


def other_link(path: Path, model: str = "Test GPU") -> Synth:
    """Two GPUs upload batches of one size, the second one at less than half the rate."""
    synth = Synth(path).process(10, "train").gpu(0).gpu(1, model)
    for gpu, rate in ((0, 24), (1, 9)):
        for number in range(10):
            begun, size = number * 30 * MS, 120_000_000 + 4096 * number
            until = begun + size // rate
            synth.memcpy(begun, until, bytes=size, src="pinned", device=gpu)
            synth.kernel(f"k{number}", until, begun + 30 * MS, device=gpu, grid=FULL)
    return synth


def other_model(path: Path) -> Synth:
    return other_link(path, "Other GPU")


def pausing(path: Path, every: int = 8, each: int = 0) -> Synth:
    """In one of so many steps the host computes for longer than the GPU works in it.

    Args:
        path: of the report.
        every: so many steps.
        each: how long it computes in every step, ns.
    """
    run = Machine(path)
    run.report.sched(0, True)
    for step in range(24):
        since = run.now
        run.layers(2)
        run.wait()
        run.now += each + (40 * MS if step % every == every - 1 else 0)
        run.named(f"train step {step}", since)
    return run.report


def woken(path: Path, late: int = 10 * US) -> Synth:
    """A thread waits for one that reads, which wakes it: so long before it goes on, ns."""
    run = Machine(path)
    run.report.thread(11, "reader")
    for _ in range(20):
        run.off("pthread_cond_wait", 4 * MS)
        signal = run.now - late
        run.report.osrt("read", run.now - 4 * MS, signal - US, tid=11)
        run.report.osrt("pthread_cond_signal", signal, signal + 2 * US, tid=11)
        run.layers(4)
        run.wait()
    return run.report


def woken_by_nobody(path: Path) -> Synth:
    return woken(path, MS)


def pool(path: Path, ranks: bool = False, call: str = "poll", times: int = 1) -> Synth:
    """The launching thread polls while three processes of its program compute.

    Args:
        path: of the report.
        ranks: they call CUDA, so they are no workers of it.
        call: in which it waits.
        times: how often it calls in each step.
    """
    run = Machine(path)
    waits = []
    for _ in range(20):
        waits.append(run.now)
        for _ in range(times):
            run.off(call, (4 + len(waits) % 3) * MS // times)
        run.layers(4)
        run.wait()
    for pid in (100, 101, 102):
        run.report.process(pid, "train").thread(pid, "worker")
        if ranks:
            run.report.api("cudaGetDevice_v3020", 10 * US, 11 * US)
        for since in waits:
            for sample in range(8):
                run.report.sample(since + sample * MS // 2 + 1, ("decode_jpeg", "main"))
    return run.report


def sleeping_for_a_pool(path: Path) -> Synth:
    return pool(path, call="clock_nanosleep", times=4)


def sleeping_beside_a_pool(path: Path) -> Synth:
    """It sleeps once in each step, so it does not look whether the others are done."""
    return pool(path, call="clock_nanosleep")


def other_ranks(path: Path) -> Synth:
    return pool(path, ranks=True)


def crowded(path: Path, state: int = 1) -> Synth:
    """In each step the launching thread is taken off its CPU: it could go on, or (2) sleeps."""
    run = Machine(path)
    run.report.sched(0, True)
    for _ in range(20):
        run.layers(2)
        run.wait()
        run.report.sched(run.now + 1, False, threadState=state)
        run.now += 3 * MS
        run.report.sched(run.now - 1, True)
    return run.report


def crowded_at_first(path: Path, state: int) -> Synth:
    """In the first of twenty steps alone the launching thread is off its CPU for 40 ms."""
    run = Machine(path)
    run.report.sched(0, True)
    for step in range(20):
        begun = run.now
        run.layers(2)
        run.wait()
        if step == 0:
            run.report.sched(run.now + 1, False, threadState=state)
            run.now += 40 * MS
            run.report.sched(run.now - 1, True)
        run.layers(2)
        run.wait()
        run.report.nvtx(f"step {step}", begun, run.now)
    return run.report


def asleep(path: Path) -> Synth:
    return crowded(path, 2)


def computing(path: Path, waits: bool = True) -> Synth:
    """The host computes for longer than the GPU works, after it waited for it or did not."""
    run = Machine(path)
    run.report.sched(0, True)
    for _ in range(20):
        run.layers(2)
        if waits:
            run.wait()
        run.now += 4 * MS
    return run.report


def stopped(path: Path, default: bool = True) -> Synth:
    """After each kernel of three streams a tiny one on the default stream, or on another."""
    synth = Machine(path).report.stream_info(7, flag=3 if default else 2)
    for stream in (13, 14, 15):
        synth.stream_info(stream, flag=1)
    now = 10 * MS
    for number in range(120):
        for name, lasts, stream in (("solve", MS, 13 + number % 3), ("norm", 10 * US, 7)):
            call = number * 20 * US + (10 * US if stream == 7 else 0)
            blocks = 4 if stream == 7 else 40
            gpu = (now, now + lasts)
            synth.launch(name, (call, call + 5 * US), gpu, stream=stream, grid=(blocks, 1, 1))
            now += lasts
    return synth


def fetching(path: Path) -> Synth:
    """A training whose batches come over the network, by a loop that acknowledges each."""
    return event_loop(path).nvtx("train step", 0, MS)


def calling_back(path: Path, before: bool = True) -> Synth:
    """A function of the host in the stream, before each second kernel, or far ahead of all.

    Args:
        path: of the report.
        before: between the launches of the two kernels.
    """
    run = Machine(path)
    for number in range(40):
        if before or not number:
            run.call("cudaLaunchHostFunc_v10000", 5 * US)
        run.free[0, 7] = run.free.get((0, 7), 0) + MS
        run.launch("layer", 3 * MS)
    return run.report


def stalling(path: Path) -> Synth:
    return calling_back(path, before=False)


def held_up(path: Path, after: int = 3 * MS) -> Synth:
    """What is launched after each wait starts so long after its call, ns."""
    run = Machine(path)
    for _ in range(30):
        run.free[0, 7] = run.now + after
        run.launch("layer", 3 * MS)
        run.wait()
    return run.report


def launched_late(path: Path) -> Synth:
    return held_up(path, 300 * US)


def refilling(path: Path, *, waits: bool = True) -> Synth:
    """After each step the host does something unrecorded, with the GPU drained first or not."""
    run = Machine(path)
    for _ in range(20):
        run.layers(2) if waits else run.launch("gemm", 100 * US)
        if waits:
            run.wait()
        run.now += MS
    return run.report


def no_cpu(path: Path, *, all_taken: bool = True) -> Synth:
    """Other threads run while each launch call lasts, on both of the CPUs or on one."""
    run = Machine(path)
    report = run.report.sched(0, True, cpu=0).osrt("read", 0, 2 * US)
    for _ in range(20):
        begun, corr = run.now, report.next_correlation()
        for tid in (50, 51) if all_taken else (50, 51)[:1]:
            report.sched(begun + 20 * US, True, tid=tid, cpu=tid - 50)
            report.sched(begun + 3 * MS, False, tid=tid, cpu=tid - 50)
        report.sched(begun + 10 * US, False, cpu=0).sched(begun + 3 * MS + US, True, cpu=0)
        run.call("cudaLaunchKernel_v7000", 3 * MS + 9 * US, corr)
        report.kernel("gemm", run.now + 2 * US, run.now + 2 * MS, corr=corr, grid=FULL)
        run.now += 2 * MS
    report.sched(run.now, True, tid=51, cpu=1).sched(run.now + US, False, tid=51, cpu=1)
    return report


def late_back(path: Path, *, all_taken: bool = True) -> Synth:
    """When the GPU is done, others run for 3 ms on both CPUs, or on one, and the wait goes on."""
    run = Machine(path)
    report = run.report.sched(0, True, cpu=0).osrt("read", 0, 2 * US)
    for _ in range(20):
        run.launch("gemm", 2 * MS)
        done = max(run.free.values())
        report.sched(run.now + US, False, cpu=0).sched(done + 3 * MS + US, True, cpu=0)
        for tid in (50, 51) if all_taken else (50, 51)[:1]:
            report.sched(done - 9 * US, True, tid=tid, cpu=tid - 50)
            report.sched(done + 3 * MS, False, tid=tid, cpu=tid - 50)
        run.call("cudaDeviceSynchronize_v3020", done + 3 * MS + 2 * US - run.now)
    report.sched(run.now, True, tid=51, cpu=1).sched(run.now + US, False, tid=51, cpu=1)
    return report


def asking(path: Path) -> Synth:
    """One thread asks again and again whether the other GPU is done, before it goes on with one."""
    run = Machine(path, 2)
    for _ in range(25):
        run.launch("first", 3 * MS)
        run.wait()
        run.launch("second", 4 * MS, device=1)
        while run.now < run.free[1, 7]:
            run.call("cudaStreamQuery_v3020", 20 * US)
    return run.report


def ahead(path: Path) -> Synth:
    """Steps that the host only launches, and waits for outside of them; five have more work."""
    run = Machine(path)
    for step in range(24):
        since = run.now
        run.layers(8 if step < 18 or step == 23 else 12)
        run.named(f"train step {step}", since)
        run.wait()
    return run.report


def one_thread_four_gpus(path: Path) -> Synth:
    """One thread launches for four GPUs by turns and computes before each launch."""
    run = Machine(path, gpus=4)
    run.report.sched(0, True)
    for _ in range(200):
        for device in range(4):
            run.now += 50 * US
            run.launch("gemm", 150 * US, device)
    return run.report


def tiny_and_off(path: Path) -> Synth:
    """Tiny kernels; in each hundredth launch the thread loses its CPU for 2 ms."""
    run = Machine(path)
    run.report.sched(0, True)
    for number in range(2000):
        if number % 100 < 99:
            run.launch("add", 2 * US)
            continue
        corr, start = run.report.next_correlation(), run.now
        run.report.sched(start + 2 * US, False).sched(start + 2 * MS, True)
        run.call("cudaLaunchKernel_v7000", 2 * MS + 5 * US, corr)
        run.report.kernel("add", run.now + 2 * US, run.now + 4 * US, corr=corr, grid=FULL)
    return run.report


def compiled_first(path: Path, loads: int) -> Synth:
    """Steps of copies, kernels and I/O; in the first of them code is loaded for so long, ns."""
    run = Machine(path)
    for step in range(25):
        since = run.now
        run.copy(4_000_000, 20, "HtoD")
        run.layers(1)
        if not step:
            run.wait()
            run.call("cuModuleLoadData", loads)
        run.layers(1, tag="second ")
        run.wait()
        run.off("write", 100 * US)
        run.named(f"train step {step}", since)
    return run.report


def new_shapes(path: Path, computes: int, loads: int) -> Synth:
    """Each iteration has a kernel of its own: the host computes for so long, then loads it."""
    run = Machine(path)
    run.report.sched(0, True)
    for shape in range(12):
        run.now += computes
        run.call("cuModuleLoadData", loads)
        run.layers(1, tag=f"shape {shape} ")
        run.layers(6)
        run.wait()
    return run.report
