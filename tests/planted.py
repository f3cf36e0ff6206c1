"""Runs whose truth is planted: what each rule must find, and what nearly looks so and must not.

``PLANTED`` maps a rule to a run that must trigger it and one that must not; unit tests ask for
each, and ``tests/benchmarks/bench_findings.py`` prints precision and recall over all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from synth import Synth

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

US, MS = 1_000, 1_000_000
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


def tiny_grid(path: Path) -> Synth:
    return bare(path).launch("tiny", call=(0, 5 * US), gpu=(10 * US, 90 * MS), grid=(1, 1, 1))


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


def slow_gpu(path: Path, slower: int = 9 * MS) -> Synth:
    synth = bare(path).gpu(1)
    for step in range(STEPS):
        start = step * 10 * MS
        for device, took in ((0, 8 * MS), (1, slower)):
            end = start + took
            synth.kernel("gemm", start, end, device=device, stream=7 + device, grid=FULL)
            synth.kernel(
                "ncclDevKernel_AllReduce", end, start + 10 * MS, device=device, stream=9 + device
            )
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


def migrating(path: Path) -> Synth:
    synth = bare(path).launch("touches", call=(0, 5 * US), gpu=(MS, 90 * MS), grid=FULL)
    for number in range(80):
        synth.memcpy((number + 2) * MS, (number + 2) * MS + 700 * US, kind="UVM HtoD")
    return synth


def migrated_ahead(path: Path) -> Synth:
    synth = bare(path).launch("touches", call=(0, 5 * US), gpu=(90 * MS, 190 * MS), grid=FULL)
    for number in range(80):
        synth.memcpy((number + 2) * MS, (number + 2) * MS + 700 * US, kind="UVM HtoD")
    return synth


def slow_step(path: Path) -> Synth:
    synth = bare(path)
    start = 0
    for step in range(STEPS):
        took = 40 * MS if step == 11 else 10 * MS
        synth.nvtx(f"step {step}", start, start + took)
        synth.launch(f"k{step}", call=(start, start + 9), gpu=(start + 10, start + took), grid=FULL)
        start += took
    return synth


def oversubscribed(path: Path) -> Synth:
    """The launching thread is taken off its CPU for 900 us of every step."""
    synth = steps(path, idle=MS)
    for step in range(STEPS):
        start = step * 10 * MS
        synth.sched(start + 10 * US, False).sched(start + 900 * US, True)
    return synth


class Planted(NamedTuple):
    """Runs for one rule."""

    triggers: tuple[Callable[[Path], Synth], ...]
    near: tuple[Callable[[Path], Synth], ...]


PLANTED: Final = {
    "dominant_kernel": Planted((one_kernel,), (steps,)),
    "exposed_copies": Planted((copy_bound,), (copies_hidden,)),
    "exposed_communication": Planted((slow_gpu,), (steps,)),
    "frequent_allocation": Planted((allocator,), (allocated_ahead,)),
    "gpu_idle": Planted((sleeping_host, late_loader, oversubscribed), (sleeping_helper,)),
    "gpu_imbalance": Planted((slow_gpu,), (even_gpus,)),
    "migrations_in_kernels": Planted((migrating,), (migrated_ahead,)),
    "slow_steps": Planted((slow_step,), (steps,)),
    "small_copies": Planted((scalar_reads,), (reads_ahead,)),
    "small_grids": Planted((tiny_grid,), (tiny_beside_others,)),
    "sync_by_range": Planted((waits,), (waits_for_work,)),
    "warm_up": Planted((lazy_loading,), (loaded_ahead,)),
}
