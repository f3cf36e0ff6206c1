"""Planted runs of ranks that wait for each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from machine import FULL, MS, US, Machine
from synth import Synth

if TYPE_CHECKING:
    from pathlib import Path

MESSAGE: int = 50 * US


def _ranks(path: Path, count: int) -> Synth:
    synth = Synth(path)
    for gpu in range(count):
        synth.process(10 + gpu, f"rank {gpu}").gpu(gpu)
    return synth


def _where(gpu: int, stream: int = 7) -> dict[str, Any]:
    return {"device": gpu, "context": gpu + 1, "stream": stream}


def forward_and_backward(
    path: Path,
    batches: int = 4,
    stages: int = 4,
    *,
    ahead: bool = True,
    last: int = 1,
    work: float = 1.0,
) -> Synth:
    """A pipeline: 8 ms of each step forward, 16 back, in so many parts; receives wait in kernels.

    While a part is computed the kernel that receives the next one waits already, so that compute
    hides most of what is received, and little compute is left to hide the rest. Who sends waits for
    the kernel that receives.

    Args:
        path: of the report.
        batches: parts.
        stages: GPUs.
        ahead: else each part is asked for when the one before is computed.
        last: kernels of a part on the last stage, as much work each as another stage has.
        work: so much of it for each kernel.
    """
    synth, begin = _ranks(path, stages), 0
    for _ in range(8):
        free, ready = [begin] * stages, [[begin] * batches] * (stages + 1)
        for name, whole, order in (("forward", 8, 1), ("backward", 16, -1)):
            ready[-1 if order > 0 else 0] = [begin] * batches
            came = [begin] * batches
            for gpu in range(stages)[::order]:
                asked = free[gpu]
                for batch in range(batches):
                    if gpu != range(stages)[::order][0]:
                        asked = asked if ahead else max(asked, free[gpu])
                        until = max(asked, came[batch]) + MESSAGE
                        synth.process(10 + gpu - order)
                        sends = _where(gpu - order, 21)
                        synth.kernel("ncclDevKernel_SendRecv", came[batch], until, **sends)
                        synth.process(10 + gpu)
                        synth.kernel("ncclDevKernel_SendRecv", asked, until, **_where(gpu, 20))
                        asked = came[batch] = until
                    synth.process(10 + gpu)
                    start = max(free[gpu], came[batch])
                    count = last if gpu == stages - 1 else 1
                    for span in _parts(start, round(count * work * whole * MS / batches), count):
                        synth.kernel(name, *span, grid=FULL, **_where(gpu))
                        free[gpu] = came[batch] = span[1]
        begin = max(free)
    return synth


def _parts(start: int, lasts: int, count: int) -> list[tuple[int, int]]:
    return [(start + lasts * n // count, start + lasts * (n + 1) // count) for n in range(count)]


def accumulating(
    path: Path, reduced: tuple[int, ...] = (0, 1, 2, 3), kernels: int = 1, buckets: int = 1
) -> Synth:
    """Steps of four micro-steps of 4 ms; after some of these 1 ms of reduction, beside nothing.

    Args:
        path: of the report.
        reduced: micro-steps that reduce.
        kernels: of a micro-step.
        buckets: of a reduction, one collective each.
    """
    synth, now = _ranks(path, 2), 0
    for step in range(8):
        begin = now
        for part in range(4):
            lasts = MS if part in reduced else 0
            for gpu in range(2):
                synth.process(10 + gpu)
                for number, (start, end) in enumerate(_parts(now, 4 * MS, kernels)):
                    synth.kernel(f"gemm_{number}", start, end, grid=FULL, **_where(gpu))
                for start, end in _parts(now + 4 * MS, lasts, buckets if lasts else 0):
                    synth.kernel("ncclDevKernel_AllReduce", start, end, **_where(gpu, 20))
            now += 4 * MS + lasts
        for gpu in range(2):
            synth.process(10 + gpu).nvtx(f"step {step}", begin, now)
    return synth


def late_behind_collectives(path: Path) -> Synth:
    """Rank 3 starts each step 5 ms late; all reduce behind their compute, but for 100 us."""
    synth, begin = _ranks(path, 4), 0
    for _ in range(12):
        for part in range(4):
            arrived = [
                begin + part * 2 * MS + 2 * MS + (5 * MS if gpu == 3 else 0) for gpu in range(4)
            ]
            for gpu, came in enumerate(arrived):
                synth.process(10 + gpu)
                synth.kernel("gemm", came - 2 * MS, came, grid=FULL, **_where(gpu))
                until = max(arrived) + 100 * US
                synth.kernel("ncclDevKernel_AllReduce", came, until, **_where(gpu, 20))
        begin += 13 * MS + 200 * US
    return synth


def slow_from_half(path: Path) -> Synth:
    """From the half on kernels of rank 1 take a fifth longer; rank 0 waits for it."""
    synth, begin = _ranks(path, 2), 0
    for step in range(40):
        took = [4 * MS, 4 * MS + (800 * US if step >= 20 else 0)]
        for gpu in range(2):
            synth.process(10 + gpu)
            for part, name in enumerate(("gemm", "softmax", "norm", "gelu")):
                edges = (begin + took[gpu] * each // 4 for each in (part, part + 1))
                synth.kernel(name, *edges, grid=FULL, **_where(gpu))
            end = begin + max(took) + 200 * US
            synth.kernel("ncclDevKernel_AllReduce", begin + took[gpu], end, **_where(gpu))
        begin += max(took) + 200 * US
    return synth


def hot_experts(path: Path) -> Synth:
    """An all-to-all waits for the GPU with the hot expert, by turns: two have it oftener."""
    synth, begin = _ranks(path, 4), 0
    for step in range(24):
        hot = (0, 1, 2, 3, 1, 0)[step % 6]
        for gpu in range(4):
            synth.process(10 + gpu)
            end = begin + (6 * MS if gpu == hot else 2 * MS)
            synth.kernel("expert", begin, end, grid=FULL, **_where(gpu))
            synth.kernel("ncclDevKernel_SendRecv", end, begin + 6 * MS + MESSAGE, **_where(gpu, 20))
        begin += 6 * MS + MESSAGE
    return synth


def evicting(path: Path) -> Synth:
    """A kernel computes 500 us, then 2 MB are evicted and 2 MB come, in four parts each."""
    synth = _ranks(path, 1).process(10)
    for launch in range(4):
        begin = now = launch * 20 * MS
        for _ in range(10):
            now += 500 * US
            for kind in ("UVM DtoH", "UVM HtoD"):
                for _ in range(4):
                    synth.memcpy(now, now + 150 * US, bytes=2**21, kind=kind, stream=0)
                    now += 150 * US
        synth.launch("stencil", (begin - 9 * US, begin - 4 * US), (begin, now), grid=FULL)
        synth.api("cudaDeviceSynchronize_v3020", begin - 3 * US, now + US)
    return synth


def unexplained(path: Path, idle: int) -> Synth:
    """Each step copies for 400 us and computes for 8 ms; then nothing is recorded for a time."""
    run = Machine(path)
    for step in range(20):
        since = run.now
        run.copy(8_000_000, 20, "HtoD")
        run.layers(8, 800 * US)
        run.wait()
        run.now += idle
        run.named(f"train step {step}", since)
    return run.report


def slow_link_and_reads(path: Path) -> Synth:
    """Uploads to the second GPU are slow; in each fourth step the first one's host reads a file."""
    synth, now = Synth(path), 0
    for gpu in (0, 1):
        synth.process(10 + gpu, f"rank {gpu}").gpu(gpu)
    for step in range(24):
        reads = 20 * MS if step % 4 == 3 else 0
        until = now + (25 if reads else 13) * MS
        for gpu, takes in ((0, 2 * MS), (1, 10 * MS)):
            synth.process(10 + gpu)
            since, corr = now + reads * (gpu == 0), synth.next_correlation()
            synth.api("cudaMemcpyAsync_v3020", since, since + 5 * US, corr=corr)
            since += 10 * US
            upload: Any = {"bytes": 48_000_000 + 4096 * step, "src": "pinned", "corr": corr}
            synth.memcpy(since, since + takes, **upload, **_where(gpu))
            since += takes
            synth.kernel("gemm", since, since + 3 * MS, grid=FULL, **_where(gpu))
            synth.kernel("ncclDevKernel_AllReduce", since + 3 * MS, until + MS, **_where(gpu))
        if reads:
            synth.process(10).osrt("read", now, now + reads)
        now = until + MS
    return synth


def late_together(
    path: Path,
    poll: int = 5 * MS,
    write: int = 6 * MS,
    turns: int = 1,
    known: bool = True,
) -> Synth:
    """Ranks 1 and 2 of four start late: one polls, one writes; all compute 2 ms and reduce.

    Args:
        path: of the report.
        poll: how late rank 1 is, ns.
        write: how late rank 2 is, ns.
        turns: 2 where each of them is in every second step alone.
        known: whether the call of rank 2 is recorded.
    """
    synth, begin = _ranks(path, 4), 0
    for step in range(16):
        late = {1: poll * (step % turns == 0), 2: write * ((step + 1) % turns == 0)}
        came = [begin + late.get(gpu, 0) for gpu in range(4)]
        until = max(came) + 2 * MS + 300 * US
        for gpu, at in enumerate(came):
            synth.process(10 + gpu)
            if at > begin and (known or gpu == 1):
                synth.osrt("poll" if gpu == 1 else "write", begin, at)
            computes, reduces = (at + 10 * US, at + 2 * MS), (at + 2 * MS, until)
            synth.launch("gemm", (at, at + 5 * US), computes, grid=FULL, **_where(gpu))
            call = (at + 6 * US, at + 11 * US)
            synth.launch("ncclDevKernel_AllReduce", call, reduces, **_where(gpu, 20))
        begin = until + 10 * US
    return synth


def pausing_by_turns(path: Path, pause: int = 30 * MS) -> Synth:
    """Four ranks reduce; each one's host pauses thrice while its GPU works, GPU 2's for longer."""
    synth, begin = _ranks(path, 4), 0
    for step in range(24):
        late = [pause * (step % 8 == 2 * gpu + 1) * (4 + (gpu == 2)) // 4 for gpu in range(4)]
        until = begin + max(late) + 6 * MS + 300 * US
        for gpu in range(4):
            synth.process(10 + gpu)
            if not step:
                synth.sched(0, True)
            synth.nvtx(f"train_step {step}", begin, until)
            at = begin + late[gpu]
            computes, reduces = (at + 10 * US, at + 6 * MS), (at + 6 * MS, until)
            synth.launch("gemm", (at, at + 5 * US), computes, grid=FULL, **_where(gpu))
            call = (at + 6 * US, at + 11 * US)
            synth.launch("ncclDevKernel_AllReduce", call, reduces, **_where(gpu, 20))
            if step % 8 != 2 * gpu:
                synth.api("cudaStreamSynchronize_v3020", at + 12 * US, until)
        begin = until + 10 * US
    return synth


def batches_ahead(path: Path) -> Synth:
    """Ranks whose hosts run ahead, each a bit later, upload a batch in each step."""
    synth = _ranks(path, 3)
    for gpu in range(3):
        synth.process(10 + gpu)
        for step in range(12):
            begin, free = gpu * 300 * US + step * 800 * US, 300 * US + step * 10 * MS
            synth.nvtx(f"train_step {step}", begin, begin + 780 * US)
            corr = synth.next_correlation()
            synth.api("cudaMemcpyAsync_v3020", begin + US, begin + 6 * US, corr=corr)
            upload: Any = {"bytes": 33_177_600, "src": "pinned", "corr": corr}
            since = max(begin, free) + 10 * US
            synth.memcpy(since, since + MS, **upload, **_where(gpu))
            call, runs = (begin + 10 * US, begin + 15 * US), (since + MS, since + 9 * MS)
            synth.launch("gemm", call, runs, grid=FULL, **_where(gpu))
    return synth


def slower_but_late_launched(path: Path, every: int = 20 * US) -> Synth:
    """Two ranks' kernels of 4 and 6 us, each launched so long after the one before; few reduce."""
    synth = _ranks(path, 2)
    for number in range(1000):
        at, lasts = number * every, (4 * US, 6 * US)
        for gpu in range(2):
            synth.process(10 + gpu)
            runs, call = (at + 3 * US, at + 3 * US + lasts[gpu]), (at, at + 2 * US)
            synth.launch("scale", call, runs, grid=FULL, **_where(gpu))
            if number % 100 == 99:
                comm = (runs[1], at + 10 * US)
                synth.kernel("ncclDevKernel_AllReduce", *comm, **_where(gpu))
    return synth


def longer_steps(path: Path, hot: float = 1.5, slow: float = 1.0, more: float = 1.0) -> Synth:
    """Steps of two ranks, 4 ms of compute and a reduction; the last 5 of 24 take longer.

    Args:
        path: of the report.
        hot: by so much GPU 1 is slower in the last steps.
        slow: by so much it is slower in all.
        more: by so much both have more to do in the last steps.
    """
    synth, begin = _ranks(path, 2), 0
    for step in range(24):
        last = step >= 19
        took = [4 * MS * (more if last else 1) * factor for factor in (1, hot if last else slow)]
        until = begin + int(max(took)) + 100 * US
        for gpu, lasts in enumerate(took):
            synth.process(10 + gpu)
            for part, (start, end) in enumerate(_parts(begin, int(lasts), 4)):
                call = (begin + part * 6 * US, begin + part * 6 * US + 5 * US)
                times = (max(start, begin + 30 * US), end)
                synth.launch(f"gemm_{part % 2}", call, times, grid=FULL, **_where(gpu))
            call = (begin + 24 * US, begin + 29 * US)
            reduces = (begin + int(lasts), until)
            synth.launch("ncclDevKernel_AllReduce", call, reduces, **_where(gpu, 20))
            synth.nvtx(f"step {step}", begin, until)
        begin = until
    return synth


def saving_rank(path: Path) -> Synth:
    """Rank 0 saves before each second step, 24 ms of copies and 20 ms of writing; rank 1 waits."""
    synth, begin = _ranks(path, 2), 0
    for step in range(8):
        came = (begin + 44 * MS * (step % 2), begin)
        until = came[0] + 4 * MS + 200 * US
        if step % 2:
            synth.process(10).osrt("fsync", begin + 24 * MS, came[0])
            copied = (begin + 10 * US, begin + 24 * MS)
            to = {"kind": "DtoH", "dst": "pageable", **_where(0)}
            synth.memcpy(*copied, bytes=120_000_000, **to)
        for gpu, at in enumerate(came):
            synth.process(10 + gpu)
            computes, reduces = (at + 10 * US, at + 4 * MS), (at + 4 * MS, until)
            synth.launch("gemm", (at, at + 5 * US), computes, grid=FULL, **_where(gpu))
            call = (at + 6 * US, at + 11 * US)
            synth.launch("ncclDevKernel_AllReduce", call, reduces, **_where(gpu, 20))
        begin = until + 10 * US
    return synth


def buckets(path: Path, late: int = 0, longer: float = 1.0, wider: float = 1.0) -> Synth:
    """Four ranks compute 4 x 2 ms a step and reduce each part behind the next; the last is waited.

    Args:
        path: of the report.
        late: how long rank 3 writes a file before each step, ns.
        longer: by so much kernels of rank 1 take longer.
        wider: by so much their grids are larger.
    """
    synth, begin = _ranks(path, 4), 0
    grids = [(round(1080 * (wider if gpu == 1 else 1)), 1, 1) for gpu in range(4)]
    for step in range(16):
        since = [begin + (late if gpu == 3 else 0) for gpu in range(4)]
        if late:
            synth.process(13).osrt("write", begin, since[3])
        reduced, first = begin, [*since]
        for part in range(4):
            starts = [at + 10 * US * (part == 0) for at in since]
            since = [
                at + round(2 * MS * (longer if gpu == 1 else 1)) for gpu, at in enumerate(starts)
            ]
            reduced = max(*since, reduced) + 300 * US
            for gpu, spans in enumerate(zip(starts, since, strict=True)):
                synth.process(10 + gpu)
                call = first[gpu] + part * 12 * US
                name = ("gemm", "softmax")[part % 2]
                synth.launch(name, (call, call + 5 * US), spans, grid=grids[gpu], **_where(gpu))
                times, asked = (since[gpu], reduced), (call + 6 * US, call + 11 * US)
                synth.launch("ncclDevKernel_AllReduce", asked, times, **_where(gpu, 20))
        for gpu in range(4):
            synth.process(10 + gpu).nvtx(f"step {step}", begin, reduced)
        begin = reduced + 10 * US
    return synth


def queued_buckets(path: Path, part: int) -> Synth:
    """Two ranks reduce four parts of a backward pass, each for 1.5 ms, one transfer after another.

    Between steps both GPUs idle for 2 ms, and nobody knows why.

    Args:
        path: of the report.
        part: how long rank 1 computes each, where rank 0 does for 1 ms; ns.
    """
    synth, begin = _ranks(path, 2), 0
    for step in range(12):
        since, free = [begin + 4 * MS] * 2, [0, 0]
        for gpu, at in enumerate(since):
            synth.process(10 + gpu)
            synth.launch("gemm", (begin, begin + US), (begin, at), grid=FULL, **_where(gpu))
        for _ in range(4):
            done = [since[0] + MS, since[1] + part]
            starts = [max(one) for one in zip(done, free, strict=True)]
            free = [max(starts) + 1500 * US] * 2
            for gpu in range(2):
                synth.process(10 + gpu)
                call = (begin + 2 * US, begin + 3 * US)
                synth.launch("gemm", call, (since[gpu], done[gpu]), grid=FULL, **_where(gpu))
                times = (starts[gpu], free[gpu])
                synth.launch("ncclDevKernel_AllReduce", call, times, **_where(gpu, 20))
            since = done
        for gpu in range(2):
            synth.process(10 + gpu).nvtx(f"step {step}", begin, free[0])
        begin = free[0] + 2 * MS
    return synth


def late_to_a_queue(path: Path, writes: int = 20 * MS) -> Synth:
    """Rank 0 writes a file before two steps; transfers then queue, to which rank 1 comes last."""
    synth, begin = _ranks(path, 2), 0
    for step in range(12):
        since, ends = [begin + writes * (step in (4, 8)), begin], 0
        if since[0] > begin:
            synth.process(10).osrt("fsync", begin, since[0])
        for part in range(4):
            done = [at + MS for at in since]
            starts = [max(at, ends + gpu * 500) for gpu, at in enumerate(done)]
            ends = max(starts) + 2 * MS
            for gpu in range(2):
                synth.process(10 + gpu)
                call = since[gpu] - part * MS
                calls = [(call + at * US, call + at * US + 500) for at in (part, part + 4)]
                begins = since[gpu] + 10 * US * (not part)
                synth.launch("gemm", calls[0], (begins, done[gpu]), grid=FULL, **_where(gpu))
                times = (starts[gpu], ends)
                synth.launch("ncclDevKernel_AllReduce", calls[1], times, **_where(gpu, 20))
            since = done
        begin = ends + 10 * US
    return synth


def uneven_by_turns(
    path: Path,
    more: int = 800 * US,
    reduce: str = "ncclDevKernel_AllReduce",
) -> Synth:
    """Four ranks compute 4 x 2 ms a step, one by turns longer, and reduce each part for 1.4 ms.

    Args:
        path: of the report.
        more: how much longer the parts of that one take; where negative, of all a quarter of it.
        reduce: the kernel that reduces.
    """
    synth, begin = _ranks(path, 4), 0
    for step in range(16):
        since, ends = [begin] * 4, 0
        longer = [max(more * (gpu == step % 4), -more // 4) for gpu in range(4)]
        for part in range(4):
            done = [at + 2 * MS + max(one, 0) for at, one in zip(since, longer, strict=True)]
            starts = [max(at, ends + US) for at in done]
            ends = max(starts) + 1400 * US
            for gpu in range(4):
                synth.process(10 + gpu)
                spans, call = (since[gpu] + 10 * US * (not part), done[gpu]), begin + part * 20 * US
                grid = (1080 * (done[gpu] - since[gpu]) // (2 * MS), 1, 1)
                synth.launch("gemm", (call, call + US), spans, grid=grid, **_where(gpu))
                times, call = (starts[gpu], ends), call + 10 * US
                synth.launch(reduce, (call, call + US), times, **_where(gpu, 20))
            since = done
        begin = ends + 10 * US
    return synth


def apart_at_launch(path: Path, late: int = MS) -> Synth:
    """Two hosts launch 200 kernels a step, 50 us apart, and reduce four times; one begins late.

    The GPU of the other is in a collective meanwhile, but what it computes beside is not launched.
    """
    synth, begin = _ranks(path, 2), 0
    for _ in range(16):
        since = [begin + late, begin]
        for _ in range(4):
            for gpu in range(2):
                for call in range(since[gpu], since[gpu] + 50 * 50 * US, 50 * US):
                    spans = (call + 5 * US, call + 15 * US)
                    synth.process(10 + gpu)
                    synth.launch("gelu", (call, call + 4 * US), spans, **_where(gpu))
            since = [at + 50 * 50 * US for at in since]
            ends = max(since) + 100 * US
            for gpu, call in enumerate(since):
                synth.process(10 + gpu)
                times, called = (call + 10 * US, ends), (call - 30 * US, call - 25 * US)
                synth.launch("ncclDevKernel_AllReduce", called, times, **_where(gpu, 20))
        begin = ends + 10 * US
    return synth


def beside_copies(path: Path) -> Synth:
    """Two ranks offload gradients: what each step reduces together runs while copies do."""
    synth = _ranks(path, 2)
    for begin in range(0, 80 * MS, 5 * MS):
        for gpu in range(2):
            synth.process(10 + gpu)
            called, late = (begin, begin + 10 * US), gpu * US
            synth.launch("gemm", called, (begin + 20 * US, begin + 3 * MS), **_where(gpu))
            times = begin + 3 * MS + late, begin + 4900 * US
            synth.launch("ncclDevKernel_ReduceScatter", called, times, **_where(gpu, 20))
            copied = begin + 3 * MS, begin + 4800 * US
            synth.memcpy(*copied, bytes=40_000_000, kind="DtoH", **_where(gpu, 21))
    return synth


def far_ahead(path: Path) -> Synth:
    """Two hosts launch steps of 8 ms in 1 ms each; in every sixth they wait for the queue."""
    synth, free = _ranks(path, 2), [0, 0]
    host = [0, 3 * MS]
    for step in range(24):
        for gpu in range(2):
            synth.process(10 + gpu)
            waits = step % 6 == (3, 4)[gpu] and step > 6
            begin = host[gpu]
            host[gpu] = max(begin + MS, free[gpu] - 10 * MS) if waits else begin + MS
            calls = _parts(begin, host[gpu] - begin, 5)
            start = max(free[gpu], calls[0][1]) + 5 * US
            for (_, call), span in zip(calls, _parts(start, 8 * MS, 4), strict=False):
                synth.launch("gemm", (call - 5 * US, call), span, grid=FULL, **_where(gpu))
            free[gpu] = start + 8 * MS
            synth.nvtx(f"step {step}", begin, host[gpu])
        until = max(free) + 200 * US
        for gpu in range(2):
            synth.process(10 + gpu)
            asked = (host[gpu] - 5 * US, host[gpu] - US)
            synth.launch("ncclDevKernel_AllReduce", asked, (free[gpu], until), **_where(gpu))
            free[gpu] = until
    return synth


def waiting_less_than_sending(path: Path, sends: int = MS) -> Synth:
    """Four ranks of which another one each step computes 3 ms and not 2; all reduce after it."""
    synth, begin = _ranks(path, 4), 0
    for step in range(16):
        since = [begin + (3 if gpu == step % 4 else 2) * MS for gpu in range(4)]
        done = max(since) + sends
        for gpu, at in enumerate(since):
            call = max(0, begin - MS)
            synth.process(10 + gpu).nvtx(f"step {step}", begin, done)
            asked = (call, call + 5 * US)
            synth.launch(("gemm", "softmax")[step % 2], asked, (begin, at), **_where(gpu))
            asked = (call + 6 * US, call + 11 * US)
            synth.launch("ncclDevKernel_AllReduce", asked, (at, done), **_where(gpu, 20))
        begin = done
    return synth


def late_at_first(path: Path) -> Synth:
    """Rank 0 allocates for 40 ms in its first step, writes for 20 in the tenth; rank 1 waits."""
    synth, begin = _ranks(path, 2), 0
    for step in range(20):
        late = {0: 40, 9: 20}.get(step, 0) * MS
        came = (begin + late, begin)
        until = begin + late + 4 * MS + 200 * US
        if late:
            makes = synth.process(10).osrt if step else synth.api
            makes("write" if step else "cudaMalloc", begin + 110 * US, came[0])
        for gpu, at in enumerate(came):
            synth.process(10 + gpu).nvtx(f"step {step}", begin, until)
            looks_up, computes = (begin + 10 * US, begin + 100 * US), (at + 110 * US, at + 4 * MS)
            synth.launch("embed", (begin, begin + 5 * US), looks_up, grid=FULL, **_where(gpu))
            synth.launch("gemm", (at, at + 5 * US), computes, grid=FULL, **_where(gpu))
            call = (at + 6 * US, at + 11 * US)
            synth.launch("ncclDevKernel_AllReduce", call, (at + 4 * MS, until), **_where(gpu, 20))
        begin = until + 10 * US
    return synth
