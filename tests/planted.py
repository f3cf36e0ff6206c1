"""Runs whose truth is planted: what each rule must find, and what nearly looks so and must not.

``PLANTED`` maps a rule to a run that must trigger it and one that must not; unit tests ask for
each, and ``tests/benchmarks/bench_findings.py`` prints precision and recall over all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import planted_hpc as hpc
import planted_kernels as kernels
import planted_programs as programs
import planted_ranks as ranks
import planted_training as training
from synth import Synth

from nsys_tui.analysis.rules.ranking import find_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nsys_tui.analysis.rules.case import Case

US, MS = 1_000, 1_000_000
WORTH: Final = 0.01
"""Part of the run from which a finding counts."""
STEPS: Final = 20
FULL: Final = (1080, 1, 1)
"""A grid that fills the GPU of ``Synth`` ten times."""


def bare(path: Path) -> Synth:
    return Synth(path).process(10, "train").gpu(0)


def steps(path: Path, *, lead: int = 0, idle: int = 0) -> Synth:
    """Named steps of 10 ms, in each of which nine kernels of many names fill the GPU.

    Args:
        path: of the report.
        lead: how long before its kernel each launch is made, ns.
        idle: GPU idle time at the start of each step, ns.
    """
    synth = bare(path)
    for step in range(STEPS):
        start = step * 10 * MS
        synth.nvtx(f"step {step}", start, start + 10 * MS)
        begun = start + idle
        for number in range(9):
            end = start + (number + 2) * 10 * MS // 10 if number else start + 2 * MS
            call = max(0, begun - lead - 10 * US)
            synth.launch(f"k{number}", call=(call, call + 5 * US), gpu=(begun, end), grid=FULL)
            begun = end
    return synth


def sleeping_host(path: Path) -> Synth:
    synth = steps(path, idle=MS)
    for step in range(STEPS):
        synth.osrt("nanosleep", step * 10 * MS, step * 10 * MS + MS - 12 * US)
    return synth


def sleeping_helper(path: Path) -> Synth:
    synth = steps(path, lead=MS)
    for step in range(STEPS):
        synth.osrt("nanosleep", step * 10 * MS, step * 10 * MS + MS, tid=99)
    return synth


def one_name_sleeping(path: Path) -> Synth:
    """Steps of one kernel, before which the host sleeps as long as it runs."""
    synth = bare(path)
    for step in range(STEPS):
        start = step * 10 * MS
        synth.nvtx(f"step {step}", start, start + 10 * MS)
        synth.osrt("nanosleep", start, start + 8 * MS)
        call = (start + 8 * MS, start + 8 * MS + 5 * US)
        synth.launch("gemm", call=call, gpu=(start + 8 * MS + 9 * US, start + 10 * MS), grid=FULL)
    return synth


def whole_nevertheless(path: Path) -> Synth:
    """nsys says so of reports that hold all, too."""
    synth = sleeping_host(path)
    return synth.diagnostic("Not all CUDA events might have been collected.", severity=2)


def lost_events(path: Path) -> Synth:
    synth = whole_nevertheless(path)
    del synth.rows["CUPTI_ACTIVITY_KIND_KERNEL"][40:44]
    return synth


def dropped_events(path: Path) -> Synth:
    synth = sleeping_host(path)
    return synth.diagnostic("7 CUPTI events were dropped: incomplete.", severity=2)


def flushed(path: Path) -> Synth:
    """The profiler holds the launching thread up in every step."""
    synth = steps(path, idle=MS)
    for step in range(STEPS):
        start = step * 10 * MS
        synth.overhead("CUDA profiling data flush", start, start + MS - 12 * US)
    return synth


def late_loader(path: Path) -> Synth:
    synth = steps(path, idle=MS)
    return synth.osrt("pread64", 70 * MS, 71 * MS - 12 * US)


def copy_bound(path: Path) -> Synth:
    synth = bare(path)
    for step in range(STEPS):
        start = step * 10 * MS
        synth.memcpy(start, start + 8 * MS, bytes=10**8, src="pageable")
        synth.kernel(f"k{step}", start + 8 * MS, start + 10 * MS, grid=FULL)
    return synth


def copies_hidden(path: Path) -> Synth:
    synth = steps(path, lead=MS)
    for step in range(STEPS):
        start = step * 10 * MS
        synth.memcpy(start + 100, start + 8 * MS, bytes=10**8, stream=9)
    return synth


def one_kernel(path: Path) -> Synth:
    return bare(path).launch("lone", call=(0, 5 * US), gpu=(10 * US, 90 * MS), grid=FULL)


def tiny_grid(path: Path, blocks: int = 1) -> Synth:
    grid = (blocks, 1, 1)
    return bare(path).launch("tiny", call=(0, 5 * US), gpu=(10 * US, 90 * MS), grid=grid)


def half_of_the_sms(path: Path) -> Synth:
    return tiny_grid(path, 54)


def most_of_the_sms(path: Path) -> Synth:
    """Tiles of a library on 108 SMs: halves of them would take a second wave."""
    return tiny_grid(path, 98)


def tiny_beside_others(path: Path) -> Synth:
    synth = bare(path)
    for stream in range(108):
        synth.kernel("tiny", 0, 90 * MS, stream=stream + 10, grid=(1, 1, 1))
    return synth


def scalar_reads(path: Path) -> Synth:
    """Each step one value is copied back and waited for."""
    synth = bare(path)
    for number in range(120):
        start = number * MS
        synth.launch("k", call=(start, start + 5), gpu=(start + 10, start + MS // 2), grid=FULL)
        synth.api("cudaMemcpyAsync_v3020", start + 20, start + 40, corr=number + 1)
        synth.memcpy(start + 500_000, start + 502_000, kind="DtoH", bytes=4, corr=number + 1)
        synth.api("cudaStreamSynchronize_v3020", start + 50, start + MS - 10)
    return synth


def reads_ahead(path: Path) -> Synth:
    synth = steps(path, lead=MS)
    for number in range(120):
        start = number * MS
        synth.api("cudaMemcpyAsync_v3020", start + 20, start + 40, corr=number + 1)
        synth.memcpy(start + 500, start + 2_500, kind="DtoH", bytes=4, corr=number + 1, stream=9)
    return synth


def slow_gpu(path: Path, slower: int = 9 * MS, grid: tuple[int, int, int] = FULL) -> Synth:
    """One process on two GPUs, of which one computes longer, in kernels of so many blocks."""
    synth = bare(path).gpu(1)
    for step in range(STEPS):
        start = step * 10 * MS
        for device, took in ((0, 8 * MS), (1, slower)):
            end = start + took
            blocks = grid if device else FULL
            synth.kernel("gemm", start, end, device=device, stream=7 + device, grid=blocks)
            synth.kernel(
                "ncclDevKernel_AllReduce", end, start + 10 * MS, device=device, stream=9 + device
            )
    return synth


def own_programs(path: Path) -> Synth:
    """Two processes, each with a GPU of its own, of which none waits for the other."""
    synth = Synth(path).gpu(0).gpu(1)
    for device, took in ((0, 8 * MS), (1, 9 * MS)):
        synth.process(10 + device, "train")
        for step in range(STEPS):
            begun = step * 10 * MS
            synth.kernel("gemm", begun, begun + took, device=device, grid=FULL)
    return synth


def even_gpus(path: Path) -> Synth:
    return slow_gpu(path, slower=8 * MS + 100 * US)


def allocator(path: Path) -> Synth:
    synth = steps(path, idle=MS)
    for step in range(STEPS):
        start = step * 10 * MS
        synth.api("cudaMalloc_v3020", start, start + 900 * US)
    return synth


def allocated_ahead(path: Path) -> Synth:
    synth = steps(path, lead=MS)
    for number in range(STEPS):
        synth.api("cudaMalloc_v3020", number * 10 * US, number * 10 * US + 9 * US)
    return synth


def waits(path: Path) -> Synth:
    synth = steps(path, idle=MS)
    for step in range(STEPS):
        start = step * 10 * MS
        synth.api("cudaThreadSynchronize_v3020", start - MS, start + MS - 12 * US)
    return synth


def waits_for_work(path: Path) -> Synth:
    """The host waits, but the GPU has work queued all the time."""
    synth = steps(path, lead=MS)
    for step in range(STEPS):
        start = step * 10 * MS
        synth.api("cudaStreamSynchronize_v3020", start, start + 9 * MS)
    return synth


def lazy_loading(path: Path) -> Synth:
    """The first kernel of each name loads its code in its launch."""
    synth = bare(path)
    for number in range(50):
        start = number * 2 * MS
        name = f"k{min(number, 20)}"
        first = number <= 20
        call = (start, start + (900 * US if first else 5 * US))
        synth.launch(name, call=call, gpu=(call[1] + 5 * US, start + 2 * MS), grid=FULL)
    return synth


def loaded_ahead(path: Path) -> Synth:
    synth = steps(path, lead=MS)
    return synth.api("cuModuleLoadData", 0, 8 * MS, tid=99)


def migrating(path: Path, lasts: int = 700 * US) -> Synth:
    synth = bare(path).launch("touches", call=(0, 5 * US), gpu=(MS, 90 * MS), grid=FULL)
    for number in range(80):
        begun = (number + 2) * MS
        synth.memcpy(begun, begun + lasts, kind="UVM HtoD", migrationCause=2)
    return synth


def prefetching(path: Path) -> Synth:
    return migrating(path).api("cudaMemPrefetchAsync_v8000", 10 * US, 20 * US)


def migrated_ahead(path: Path) -> Synth:
    synth = bare(path).launch("touches", call=(0, 5 * US), gpu=(90 * MS, 190 * MS), grid=FULL)
    for number in range(80):
        synth.memcpy((number + 2) * MS, (number + 2) * MS + 700 * US, kind="UVM HtoD")
    return synth


def slow_step(path: Path, reads: int = 0) -> Synth:
    """One step takes four times as long, of which the host reads a file for some time first."""
    synth = bare(path)
    start = 0
    for step in range(STEPS):
        end = start + (40 * MS if step == 11 else 10 * MS)
        call = start + (reads if step == 11 else 0)
        synth.nvtx(f"step {step}", start, end)
        synth.launch(f"k{step}", call=(call, call + 9), gpu=(call + 10, end), grid=FULL)
        start = end
    return synth.osrt("read", 110 * MS, 110 * MS + reads) if reads else synth


def uneven_steps(path: Path) -> Synth:
    """One step takes a third longer, where others differ by a fifth."""
    synth = bare(path)
    start = 0
    for step in range(STEPS):
        end = start + (13 * MS if step == 11 else (9 + step % 3) * MS)
        synth.nvtx(f"step {step}", start, end)
        synth.launch(f"k{step}", call=(start, start + 9), gpu=(start + 10, end), grid=FULL)
        start = end
    return synth


def reading_step(path: Path) -> Synth:
    return slow_step(path, reads=30 * MS)


def oversubscribed(path: Path) -> Synth:
    """The launching thread is taken off its CPU for 900 us of every step."""
    synth = steps(path, idle=MS)
    for step in range(STEPS):
        start = step * 10 * MS
        synth.sched(start + 10 * US, False).sched(start + 900 * US, True)
    return synth


def alternating(
    path: Path, *, blocks: int = 20, ahead: bool = True, waits: bool = False, named: int = 8
) -> Synth:
    """Kernels of 1 ms that alternate between the default stream and another one.

    Args:
        path: of the report.
        blocks: of each kernel; the GPU has 108 SMs.
        ahead: launched long before they run, else after the one before has begun.
        waits: each waits for an event of the one before.
        named: the other stream.
    """
    synth = bare(path).stream_info(7, flag=3).stream_info(named, flag=1)
    for number in range(60):
        start = 10 * MS + number * MS
        call = number * 20 * US if ahead else start - MS // 2
        stream = (7, named)[number % 2]
        if waits:
            corr = synth.next_correlation()
            synth.api("cudaStreamWaitEvent_v3020", call - 9 * US, call - 8 * US, corr=corr)
            synth.sync(call - 9 * US, call - 8 * US, "stream wait", stream=stream, corr=corr)
        gpu = (start, start + MS)
        synth.launch("k", (call, call + 5 * US), gpu, stream=stream, grid=(blocks, 1, 1))
    return synth


def alternating_full(path: Path) -> Synth:
    return alternating(path, blocks=1080)


def alternating_late(path: Path) -> Synth:
    return alternating(path, ahead=False)


def alternating_by_events(path: Path) -> Synth:
    return alternating(path, waits=True)


def tiny_launches(path: Path, *, lead: int = 0) -> Synth:
    """Kernels of 2 us, each launched by a call of 8 us that begins while the one before runs.

    Args:
        path: of the report.
        lead: how long before its kernel each call begins, beyond its own time, ns.
    """
    synth = bare(path)
    for number in range(1500):
        call = number * 8 * US
        start = 12_010 * US + number * 2 * US if lead else call + 9 * US
        synth.launch("tiny", (call, call + 8 * US), (start, start + 2 * US), grid=FULL)
    return synth


def tiny_queued(path: Path) -> Synth:
    return tiny_launches(path, lead=1)


def copies_of(path: Path, rates: Sequence[tuple[int, str]]) -> Synth:
    """Copies of 60 MB at given rates (GB/s) and from given memory, each before a kernel of 5 ms."""
    synth, now = bare(path), 0
    for number, (rate, memory) in enumerate(rates):
        end = now + 60 * MS // rate
        synth.memcpy(now, end, bytes=60_000_000 + 4096 * number, src=memory)
        synth.kernel(f"k{number}", end, end + 5 * MS, grid=FULL)
        now = end + 5 * MS
    return synth


def pageable_slow(path: Path) -> Synth:
    return copies_of(path, [(3, "pageable"), (15, "pinned")] * 6)


def all_alike(path: Path) -> Synth:
    return copies_of(path, [(12, "pageable"), (13, "pinned")] * 6)


def same_upload(path: Path) -> Synth:
    synth = bare(path)
    for number in range(9):
        start = number * 10 * MS
        synth.memcpy(start, start + 3 * MS, bytes=33_177_600)
        synth.kernel(f"k{number}", start + 3 * MS, start + 10 * MS, grid=FULL)
    return synth


def batches(path: Path) -> Synth:
    """Every named step uploads its batch."""
    synth = steps(path, idle=2 * MS, lead=MS)
    for step in range(STEPS):
        start = step * 10 * MS
        synth.memcpy(start, start + MS, bytes=33_177_600)
    return synth


def cleared(path: Path, took: int = 4 * MS) -> Synth:
    synth = bare(path)
    for number in range(STEPS):
        start = number * 10 * MS
        synth.memset(start, start + took, bytes=10**9)
        synth.kernel(f"k{number}", start + took, start + 10 * MS, grid=FULL)
    return synth


def cleared_little(path: Path) -> Synth:
    return cleared(path, 300 * US)


def late_rank(path: Path) -> Synth:
    """Two equally fast GPUs, of which the second is launched 2 ms late in every step."""
    synth = bare(path).gpu(1)
    for step in range(STEPS):
        start = step * 10 * MS
        for device, late in ((0, 0), (1, 2 * MS)):
            end = start + late + 7 * MS
            synth.kernel("gemm", start + late, end, device=device, stream=7 + device, grid=FULL)
            reduce = "ncclDevKernel_AllReduce"
            synth.kernel(reduce, end, start + 10 * MS, device=device, stream=7 + device)
    return synth


def reading_rank(path: Path) -> Synth:
    """The second of two ranks reads a file before every step; the first one waits for it."""
    synth = bare(path).gpu(1)
    for step in range(STEPS):
        start = step * 10 * MS
        synth.osrt("read", start, start + 3 * MS, tid=99)
        for device, late, tid in ((0, 0, None), (1, 3 * MS, 99)):
            begun, end = start + late + 20 * US, start + late + 6 * MS
            call = (start + late, start + late + 5 * US)
            stream, name = 7 + device, "ncclDevKernel_AllReduce"
            synth.launch(
                "gemm", call, (begun, end), tid=tid, device=device, stream=stream, grid=FULL
            )
            synth.kernel(name, end, start + 10 * MS, device=device, stream=stream, grid=FULL)
    return synth


def registers(path: Path, used: int = 255) -> Synth:
    return bare(path).kernel("heavy", 0, 90 * MS, grid=FULL, registersPerThread=used)


def few_registers(path: Path) -> Synth:
    return registers(path, 32)


def rows_one_by_one(path: Path) -> Synth:
    synth = bare(path)
    for number in range(1934):
        start, corr = number * 22 * US, synth.next_correlation()
        synth.api("cudaMemcpy_v3020", start, start + 20 * US, corr=corr)
        synth.memcpy(start + 12 * US, start + 14 * US, bytes=4096, corr=corr, src="pageable")
    return synth.kernel("k", 43 * MS, 48 * MS, grid=FULL)


def printing(path: Path) -> Synth:
    """The host writes its results out for more than half of the run."""
    synth = bare(path)
    for number in range(20):
        start = number * 10 * MS
        synth.launch("k", (start, start + 5 * US), (start + 10 * US, start + 4 * MS), grid=FULL)
        for line in range(50):
            begun = start + 4 * MS + line * 118 * US
            synth.osrt("write", begun, begun + 110 * US)
    return synth


def set_up(path: Path) -> Synth:
    """Named steps without a gap, after a second of set-up between two kernels."""
    synth = steps(path, lead=MS).launch(
        "first", call=(-(10**9), -(10**9) + 9), gpu=(-(10**9) + 10, -999 * MS)
    )
    return synth.osrt("connect", -990 * MS, -10 * MS)


def told(case: Case) -> set[str]:
    """Rules with a finding that is about 1 % of the run or more, or about no time at all."""
    return {
        one.rule
        for one in find_in(case)
        if not one.weight_ns or one.weight_ns >= WORTH * case.base_ns
    }


def launch_bound(path: Path) -> Synth:
    """Each kernel of 5 us is launched after the one before has ended."""
    synth = bare(path)
    for number in range(400):
        call = number * 20 * US
        synth.launch("k", (call, call + 5 * US), (call + 10 * US, call + 15 * US), grid=FULL)
    return synth


def clocked(synth: Synth, first: int, second: int) -> Synth:
    """The same with samples of the clocks of two GPUs, in MHz."""
    for number in range(40):
        for gpu, mhz in ((0, first), (1, second)):
            synth.gpu_metric(number * 5 * MS + MS, "GPC Clock Frequency [MHz]", mhz, gpu=gpu)
    return synth


class Planted(NamedTuple):
    """Runs for one rule."""

    triggers: tuple[Callable[[Path], Synth], ...]
    near: tuple[Callable[[Path], Synth], ...]


WORTH_FIXING: Final[dict[Callable[[Path], Synth], str]] = {
    cleared: "memsets",
    copies_hidden: "",
    copy_bound: "copies not hidden",
    hpc.both_ways: "copies not hidden",
    hpc.allocated_once: "",
    hpc.parsed_once: "",
    hpc.uploaded_once: "",
    hpc.spinning: "idle, host waits for its threads: do_spin (100.0% of samples)",
    hpc.sharing_a_loop: "idle, host compute: forces (100.0% of samples)",
    hpc.flushed_rank: "",
    hpc.exchanging: "idle, MPI: most in MPI_Waitall",
    hpc.in_thirds: "idle, MPI",
    hpc.waiting_once: "idle, MPI: MPI_Waitall",
    hpc.stat_storm: "idle, I/O: most in stat",
    hpc.checkpointing: "idle, I/O: pwrite64 on GPU 0",
    hpc.imbalanced: "GPU 2 slower than the others",
    hpc.late_by_turns: "idle, MPI: MPI_Barrier",
    hpc.faulting: "pages migrate in scale",
    hpc.long_faults: "pages migrate in scale",
    hpc.losing: "",
    hpc.losing_elsewhere: "idle, I/O: write",
    hpc.narrow: "small blocks of distance",
    hpc.whole_warps: "",
    programs.asleep: "idle, off the CPU",
    programs.autotuning: "",
    programs.asking: "idle, cudaStreamQuery waits for GPU 1",
    programs.calling_back: "idle, its stream waits for a host function",
    programs.choosing: "idle, host compute",
    programs.crowded: "idle, waits for a CPU",
    programs.decoding: "idle around tiny kernels",
    programs.evaluating: "",
    programs.failing: "",
    programs.asking_whether_done: "",
    programs.event_loop: "",
    programs.asking_a_store: "idle, wait: poll",
    programs.asking_since_before: "idle, wait: poll",
    programs.cameras: "",
    programs.cameras_by_hand: "",
    programs.decoded_in_hardware: "",
    programs.serving_with_a_store: "",
    programs.fetching: "idle, wait: poll",
    programs.far_memory: "slow Host-to-Device copies",
    programs.halo: "idle, MPI: MPI_Sendrecv",
    programs.handing_over: "idle, wait: while loader runs decode_jpeg",
    programs.held_up: "",
    programs.ticking_helper: "",
    programs.fused_little: "idle around tiny kernels",
    programs.launched_late: "idle, launch latency: cudaLaunchKernel",
    programs.logging: "idle, I/O: write",
    programs.other_ranks: "idle, wait: poll",
    programs.pool: "idle, wait: while 3 worker run decode_jpeg",
    programs.reading_a_pipe: "idle, wait: poll",
    programs.serving: "",
    programs.behind_a_socket: "",
    programs.sleeping_beside_a_pool: "idle, sleep: clock_nanosleep",
    programs.sleeping_for_a_pool: "idle, sleep: while 3 worker run decode_jpeg",
    programs.allocating: "allocations between GPU work",
    programs.allocating_at_first: "allocations between GPU work in the first 40%",
    programs.loading_again: "code loaded between GPU work",
    programs.sleeping_for_long: "idle, sleep: usleep",
    programs.sleeping_alike: "idle, sleep: clock_nanosleep",
    programs.stalling: "",
    programs.stopped: "kernels of several streams run apart",
    programs.stages: "idle, its stream waits for GPUs by turns",
    programs.ticking: "",
    programs.waiting_for_ranks: "idle, MPI: MPI_Waitall",
    programs.ranges_of_mpi: "idle, MPI: MPI_Waitall",
    programs.ranges_alike: "idle, host compute",
    programs.one_beside: "idle, lock: pthread_mutex_lock",
    programs.two_beside: "idle, lock: pthread_mutex_lock",
    programs.blocking: "launches that wait for their kernels",
    programs.other_link: "slow Host-to-Device copies on GPU 1",
    programs.woken: "idle, wait: while reader is in read",
    programs.woken_by_nobody: "idle, wait: pthread_cond_wait",
    ranks.forward_and_backward: "send and receive not hidden on GPU 0",
    ranks.hot_experts: "waiting for GPUs by turns in collectives",
    ranks.late_behind_collectives: "waiting for GPU 3 in collectives",
    ranks.slow_from_half: "GPU 1 slower than the others",
    training.beside_the_tail: "",
    training.connecting: "",
    training.micro_batches: "send and receive not hidden on GPU 2",
    kernels.apart: "",
    kernels.fused: "",
    kernels.one_after_another: "copy kernels",
    training.queued_reads: "",
    training.evaluated: "copies not hidden in the first 36%",
    training.experts: "waiting for GPUs by turns in collectives",
    training.many_waves: "",
    training.one_value_first: "",
    training.streamed: "",
    training.streamed_beside_graphs: "",
    training.one_hot_gpu: "expert longer on GPU 3",
    training.parted: "kernels of several streams run apart",
    training.sharing_sms: "",
    training.two_by_turns: "waiting for GPUs by turns in collectives",
    training.waves: "last wave of k0",
    training.weights: "",
    training.weights_each_step: "copies not hidden",
    flushed: "",
    late_rank: "waiting for GPU 1 in collectives",
    one_name_sleeping: "idle, sleep: nanosleep",
    pageable_slow: "slow Host-to-Device copies",
    printing: "idle, I/O: write",
    reading_rank: "idle, I/O: read on GPU 1",
    rows_one_by_one: "small copies",
    scalar_reads: "small copies",
    sleeping_host: "idle, sleep: nanosleep",
    slow_gpu: "GPU 1 slower than the others",
    tiny_grid: "small grids of tiny",
    tiny_launches: "idle around tiny kernels",
}
"""What a verdict names first as worth fixing, empty for nothing."""
PLANTED: Final = {
    "blocking_launches": Planted(
        (programs.blocking, programs.blocking_tiny),
        (programs.blocking_half, programs.slow_launches, programs.slow_tiny, tiny_launches),
    ),
    "dominant_kernel": Planted((one_kernel,), (steps,)),
    "exposed_copies": Planted(
        (copy_bound, training.weights_each_step), (copies_hidden, training.weights)
    ),
    "exposed_communication": Planted(
        (slow_gpu, late_rank, ranks.forward_and_backward), (steps, training.connecting)
    ),
    "failed_calls": Planted((programs.failing,), (programs.asking_whether_done,)),
    "frequent_allocation": Planted((allocator,), (allocated_ahead,)),
    "gpu_idle": Planted(
        (sleeping_host, late_loader, oversubscribed, programs.stages),
        (sleeping_helper, set_up, programs.stages_filled),
    ),
    "gpu_imbalance": Planted(
        (slow_gpu, hpc.imbalanced), (even_gpus, late_rank, own_programs, hpc.late_by_turns)
    ),
    "launch_bound": Planted((launch_bound, programs.decoding), (tiny_queued,)),
    "outside_work": Planted(
        (hpc.writing_at_the_end, hpc.pinning_at_first),
        (hpc.waiting_at_the_end, hpc.checkpointing, hpc.starting_only),
    ),
    "last_waves": Planted(
        (training.waves,),
        (training.many_waves, training.beside_the_tail, training.sharing_sms, tiny_grid),
    ),
    "low_occupancy": Planted((registers,), (few_registers,)),
    "memsets": Planted((cleared,), (cleared_little,)),
    "movement_kernels": Planted(
        (kernels.one_after_another,), (kernels.fused, kernels.apart, kernels.beside_others)
    ),
    "migrations_in_kernels": Planted(
        (migrating, prefetching, hpc.on_demand, hpc.long_faults, hpc.faulting),
        (migrated_ahead, hpc.prefetched, hpc.of_no_cause),
    ),
    "repeated_uploads": Planted((same_upload,), (batches, ranks.batches_ahead)),
    "serial_streams": Planted(
        (alternating, training.parted),
        (
            alternating_full,
            alternating_late,
            alternating_by_events,
            training.never_parted,
            training.parted_beside,
        ),
    ),
    "shared_gpus": Planted(
        (programs.by_turns, programs.crammed, programs.small_by_turns, hpc.queueing),
        (programs.beside, hpc.taking_turns),
    ),
    "slow_copies": Planted(
        (pageable_slow, programs.far_memory, programs.other_link), (all_alike, programs.other_model)
    ),
    "slow_steps": Planted(
        (slow_step,), (uneven_steps, steps, programs.logging, programs.autotuning)
    ),
    "small_copies": Planted((scalar_reads,), (reads_ahead, training.queued_reads)),
    "small_grids": Planted(
        (tiny_grid, half_of_the_sms, hpc.narrow),
        (tiny_beside_others, most_of_the_sms, hpc.whole_warps),
    ),
    "tiny_kernels": Planted((tiny_launches, programs.fused_little), (tiny_queued,)),
    "sync_by_range": Planted((waits,), (waits_for_work,)),
    "unused_gpus": Planted((training.without_work,), (training.never_opened,)),
    "warm_up": Planted(
        (
            lazy_loading,
            set_up,
            programs.autotuning,
            programs.graphs_first,
            programs.second_process,
            training.weights,
            training.connecting,
        ),
        (
            loaded_ahead,
            sleeping_host,
            programs.loading_again,
            training.streamed,
            training.evaluated,
            programs.graphs_again,
            programs.halo,
            programs.second_set_up,
        ),
    ),
}
