"""Planted runs of training and inference on several streams and GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from machine import FULL, MS, US, Machine
from synth import Synth

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ONE_AN_SM = {"block": (1024, 1, 1), "dynamicSharedMemory": 150 * 1024}
"""Blocks of which an SM of ``Synth``'s GPU holds one at a time."""


def waves(path: Path, blocks: Sequence[int] = (109,), **shape: object) -> Synth:
    """Kernels of 2 ms on as many streams as numbers of blocks are given, side by side."""
    synth = Synth(path).process(10, "train").gpu(0)
    for number in range(40):
        for stream, count in enumerate(blocks, 7):
            start = number * 2 * MS
            attributes = {**ONE_AN_SM, **shape, "stream": stream, "grid": (count, 1, 1)}
            synth.kernel(f"k{number % 4}", start, start + 2 * MS, **attributes)  # type: ignore[arg-type]
    return synth


def many_waves(path: Path) -> Synth:
    """The last of 21 waves is short: a tail of 5 %."""
    return waves(path, (2161,))


def beside_the_tail(path: Path) -> Synth:
    return waves(path, (109, 107))


def sharing_sms(path: Path) -> Synth:
    """A last wave of a hundredth, of blocks of which an SM holds sixteen: it is quick."""
    return waves(path, (16 * 108 + 17,), block=(128, 1, 1), dynamicSharedMemory=0)


def parted(path: Path, flag: int = 1) -> Synth:
    """A memset on the default stream lies between kernels of half a GPU on two streams.

    Args:
        path: of the report.
        flag: of these streams: 1 they wait for the default stream, 2 they do not.
    """
    synth = Synth(path).process(10, "solve").gpu(0).stream_info(7, flag=3)
    synth.stream_info(13, flag=flag).stream_info(14, flag=flag)
    for number in range(60):
        start, call = 10 * MS + number * MS, number * 20 * US
        synth.memset(start - 9 * US, start - 5 * US)
        gpu, shape = (start, start + MS - 10 * US), (50, 1, 1)
        synth.launch("solve", (call, call + 5 * US), gpu, stream=13 + number % 2, grid=shape)
    return synth


def never_parted(path: Path) -> Synth:
    return parted(path, 2)


def parted_beside(path: Path) -> Synth:
    """Kernels on two streams run beside each other, pair after pair, with a memset between."""
    synth = Synth(path).process(10, "solve").gpu(0).stream_info(7, flag=3)
    synth.stream_info(13, flag=1).stream_info(14, flag=1)
    for number in range(60):
        start, call = 10 * MS + number * MS, number * 20 * US
        synth.memset(start - 9 * US, start - 5 * US)
        for stream in (13, 14):
            gpu, shape = (start, start + MS - 10 * US), (50, 1, 1)
            synth.launch("solve", (call, call + 5 * US), gpu, stream=stream, grid=shape)
    return synth


def without_work(path: Path, *, opened: bool = True, works: int = 0) -> Synth:
    """GPU 1 is there, and the process has a context on it or has none, and may work there once."""
    run = Machine(path, gpus=2)
    run.report.context_info(1, 0)
    if opened:
        run.report.context_info(2, 1)
    if works:
        run.launch("init", works, 1)
    run.layers(20)
    return run.report


def never_opened(path: Path) -> Synth:
    return without_work(path, opened=False)


def weights(path: Path, *, each: bool = False) -> Synth:
    """Copies of 30 ms before the first step, or in each step."""
    run = Machine(path)
    for step in range(20):
        since = run.now
        if each or not step:
            run.copy(150_000_000, 5, "HtoD", "pageable")
        if not each and not step:
            since = run.now
        run.layers(10)
        run.named(f"train step {step}", since)
    return run.report


def one_value_first(path: Path) -> Synth:
    """The only copy that nothing hides comes before the first step, and is tiny."""
    run = Machine(path)
    run.copy(4096, 1, "HtoD")
    for step in range(40):
        since = run.now
        run.layers(10)
        run.named(f"train step {step}", since)
    return run.report


def streamed(path: Path) -> Synth:
    """Uploads of 1 ms beside the kernel of 3 ms before, in a pipeline: only the first is bare."""
    synth = Synth(path).process(10, "filter").gpu(0)
    for number in range(80):
        start = number * 3 * MS
        synth.memcpy(start, start + MS, bytes=20_000_000, stream=13)
        gpu = (start + MS, start + 4 * MS)
        synth.launch("filter", (start, start + 5 * US), gpu, stream=14, grid=FULL)
    return synth


def streamed_beside_graphs(path: Path) -> Synth:
    """Uploads of 1 ms beside graphs of 2 ms, of which nobody knows what runs in them."""
    synth = Synth(path).process(10, "train").gpu(0)
    for number in range(60):
        start = number * 3 * MS
        synth.graph(start, start + 2 * MS)
        synth.memcpy(start + MS // 2, start + 3 * MS // 2, bytes=20_000_000, stream=13)
        synth.kernel("adam", start + 2 * MS, start + 3 * MS, grid=FULL)
    return synth


def items(path: Path, *, slow: int = 80 * US, reads: bool = True) -> Synth:
    """The optimizer reads eight values in each step, after each of which the host is slow.

    Args:
        path: of the report.
        slow: how long the host takes after each.
        reads: else it reads none.
    """
    run = Machine(path)
    for step in range(40):
        since = run.now
        for number in range(40):
            run.launch(f"forward {number % 7}", 150 * US)
        for _ in range(8):
            run.launch("norm", 20 * US)
            if reads:
                run.copy(4, 10, "DtoH", "pageable")
            run.now += slow
            run.launch("adam", 60 * US)
        run.named(f"train step {step}", since)
    return run.report


def weights_each_step(path: Path) -> Synth:
    return weights(path, each=True)


def experts(path: Path, gpus: int = 4, *, turns: bool = True) -> Synth:
    """An all-to-all that waits for the GPU with the hot expert: another one in each step.

    Args:
        path: of the report.
        gpus: a process for each.
        turns: else it is always the last one.
    """
    synth, now = Synth(path), 0
    for gpu in range(gpus):
        synth.process(10 + gpu, f"rank {gpu}").gpu(gpu)
    for step in range(24):
        hot = step * 3 % gpus if turns else gpus - 1
        for gpu in range(gpus):
            synth.process(10 + gpu)
            begun = now + (6 * MS if gpu == hot else 2 * MS)
            where: Any = {"device": gpu, "context": gpu + 1}
            synth.kernel("expert", now, begun, grid=FULL, **where)
            synth.kernel("ncclDevKernel_SendRecv", begun, now + 7 * MS, stream=20, **where)
            synth.kernel("attention", now + 7 * MS, now + 9 * MS, grid=FULL, **where)
        now += 9 * MS
    return synth


def one_hot_gpu(path: Path) -> Synth:
    return experts(path, turns=False)


def two_by_turns(path: Path) -> Synth:
    return experts(path, 2)


def connecting(path: Path) -> Synth:
    """The first all-reduce takes 100 ms; the step that is launched meanwhile waits for it."""
    run = Machine(path, gpus=2)
    for gpu in (0, 1):
        corr, end = run.report.next_correlation(), 100 * MS
        run.call("cudaLaunchKernelExC_v11060", 5 * US, corr)
        run.report.kernel("ncclDevKernel_AllReduce", run.now + US, end, device=gpu, corr=corr)
        run.free[gpu, 7] = end
    for step in range(20):
        since = run.now
        for gpu in (0, 1):
            for layer in range(9):
                run.launch(f"gemm {layer}", 500 * US, gpu)
        run.named(f"train step {step}", since)
    return run.report


def queued_reads(path: Path) -> Synth:
    """One value is read in each step, after kernels of 12 us that lie 1 us apart."""
    run = Machine(path)
    for step in range(20):
        since = run.now
        for number in range(400):
            run.launch(f"adam {number % 9}", 12 * US)
        run.copy(4, 10, "DtoH", "pageable")
        run.named(f"train step {step}", since)
    return run.report


def micro_batches(path: Path, stages: int = 3, count: int = 4) -> Synth:
    """Stages of a pipeline send to the next one, which waits for it in its kernel."""
    synth = Synth(path)
    for gpu in range(stages):
        synth.process(10 + gpu, f"stage {gpu}").gpu(gpu)
    for step in range(12):
        for gpu in range(stages):
            where: Any = {"device": gpu, "context": gpu + 1}
            begin = step * (count + stages) * 4 * MS
            synth.process(10 + gpu)
            for number in range(count):
                start = begin + (number + gpu) * 4 * MS
                if gpu:
                    free = start - 4 * MS + 100 * US if number else begin
                    synth.kernel("ncclDevKernel_SendRecv", free, start, stream=20, **where)
                if gpu < stages - 1:
                    sent = (start + 4 * MS - 100 * US, start + 4 * MS)
                    synth.kernel("ncclDevKernel_SendRecv", *sent, stream=21, **where)
                synth.kernel("forward", start, start + 4 * MS - 100 * US, grid=FULL, **where)
    return synth


def evaluated(path: Path) -> Synth:
    """Ten training steps, each with a copy that nothing hides, launched far ahead; then evaluation.

    The host waits in the steps of the evaluation alone, so that these cover most of its time.
    """
    run = Machine(path)
    for step in range(10):
        since = run.now
        run.upload(2 * MS)
        run.layers(2)
        run.named(f"train step {step}", since)
    run.wait()
    for step in range(10):
        since = run.now
        run.layers(8)
        run.wait()
        run.named(f"eval batch {step}", since)
    return run.report


def resumed(path: Path, first: int = 8, *, again: bool = False) -> Synth:
    """Steps that count up from a number; in the first, or each sixth, the host reads for 20 ms."""
    run = Machine(path)
    run.layers(4)
    for step in range(first, first + 12):
        since = run.now
        if step == first or (again and step == first + 6):
            run.wait()
            run.off("pread64", 20 * MS)
        run.layers(4)
        run.wait()
        run.named(f"train step {step}", since)
    return run.report
