"""Where our rows are not nsys's, and why: every difference that is found has a name here.

A name that no report shows any more fails the test as much as a difference without a name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Named:
    """One reason for differences."""

    why: str
    signs: frozenset[str]
    """How it shows: ``column NAME``, ``header NAME``, ``rows``, ``order``, ``theirs alone``, or
    ``ties`` where rows of the same share and total stand in another order."""
    tables: frozenset[str]
    """Reports or rules in which it shows."""
    files: frozenset[str] = frozenset()
    """Reports of whom; empty for any."""

    def tells(self, file: str, table: str, sign: str) -> bool:
        """Whether a difference is this one."""
        return (
            sign in self.signs and table in self.tables and (not self.files or file in self.files)
        )


def _named(why: str, signs: str, tables: str, files: str = "") -> Named:
    parts = frozenset(sign.strip() for sign in signs.split(";"))
    return Named(why, parts, frozenset(tables.split()), frozenset(files.split()))


_TWICE: Final = "mpi-nvtx-callchains-2022.2"
"""Every CUDA call stands twice, with and without its backtrace, under one correlation id."""

_NESTING: Final = (
    "column DurChild (ns); column DurNonChild (ns); column Lvl; column NumChild;"
    " column ParentId; column RangeStack; column NameTree"
)

STATS: Final = {
    "exact throughput": _named(
        "bytes / ns is divided once, in floating point; theirs divides whole numbers first, so that"
        " addresses of almost the same throughput stand in another order",
        "column Throughput (MB/s); column Migration Throughput (MB/s); column Virtual Address",
        "cuda_gpu_trace um_sum",
    ),
    "column of newer files": _named(
        "green contexts have a column where the file has one, and no empty column elsewhere",
        "header GreenCtx",
        "cuda_gpu_trace",
    ),
    "GPU without a name": _named(
        "a device that TARGET_INFO_GPU does not name is called by its number",
        "column Device",
        "cuda_gpu_trace",
    ),
    "call with a backtrace": _named(
        "a kernel is launched by one call: the row that carries the backtrace is no second launch",
        "rows; column Count; column QCount; column TAvg (ns); column TMed (ns); column TMax (ns);"
        " column TStdDev (ns); column AAvg (ns); column AMed (ns); column AMax (ns);"
        " column AStdDev (ns); column QAvg (ns); column QMed (ns); column QMin (ns);"
        " column QStdDev (ns); column KStdDev (ns); column Total Time (ns); column StdDev (ns)",
        "cuda_kern_exec_sum cuda_kern_exec_trace nvtx_kern_sum",
        _TWICE,
    ),
    "deviation of nothing": _named(
        "where no kernel queued there is no deviation either, as there is no mean",
        "column QStdDev (ns)",
        "cuda_kern_exec_sum",
    ),
    "rows of equal time": _named(
        "rows with the same total and count stand by their labels; theirs in the order of groups",
        "ties",
        "cuda_gpu_kern_gb_sum nvtx_sum nvtx_pushpop_sum cuda_api_gpu_sum cuda_api_sum"
        " cuda_gpu_kern_sum cuda_gpu_sum nvtx_kern_sum",
    ),
    "launches of equal time": _named(
        "launches with the same mean stand by thread and name; theirs in the order of groups",
        "; ".join(
            f"column {part}{figure} (ns)"
            for part in "AQK"
            for figure in ("Avg", "Med", "Min", "Max", "StdDev")
        )
        + "; column Kernel Name",
        "cuda_kern_exec_sum",
        "pytorch-nccl-2gpu-2026.2",
    ),
    "spelling of headers": _named(
        "sizes are written Size, and no header begins with a blank",
        "header HtoD Migration size (MB); header DtoH Migration size (MB);"
        " header  GPU Page Faults; header HtoD Migration Size (MB);"
        " header DtoH Migration Size (MB); header GPU Page Faults",
        "um_sum",
    ),
    "totals of nothing": _named(
        "without migrations and page faults there is no row of zeros",
        "theirs alone",
        "um_total_sum",
    ),
    "addresses of migrations": _named(
        "the range of addresses is that of migrations and faults; theirs of GPU faults alone",
        "column Minimum Virtual Address; column Maximum Virtual Address",
        "um_total_sum",
        "uvm-migration-2025.1",
    ),
    "work outside of ranges": _named(
        "work that no range encloses is no projection of a range",
        "rows; theirs alone",
        "nvtx_gpu_proj_trace",
    ),
    "ranges never closed": _named(
        "a range that was never closed has no duration; theirs ends with the last event",
        "rows",
        "nvtx_sum nvtx_pushpop_sum nvtx_startend_sum",
        "demo unclosed",
    ),
    "ranges that cross": _named(
        "of two ranges that cross, the one that was opened last is around what both hold, as push"
        " and pop mean it; theirs the shorter one",
        f"{_NESTING}; column Avg Range Lvl; column Avg Num Child",
        "nvtx_gpu_proj_sum nvtx_gpu_proj_trace nvtx_pushpop_trace",
        "crossing unclosed",
    ),
    "ranges of the same times": _named(
        "of two ranges of a thread with the same start and end the later row is inside the other;"
        " theirs takes each for inside the other, and loses both",
        f"rows; {_NESTING}; column Avg Range Lvl; column Avg Num Child",
        "nvtx_gpu_proj_sum nvtx_gpu_proj_trace nvtx_pushpop_trace",
        "twins",
    ),
    "operations of one call": _named(
        "operations of one call, such as the nodes of a graph, are counted one by one; theirs are"
        " as many as the calls",
        "column NumGPUOps; column Total GPU Ops; column Avg GPU Ops",
        "nvtx_gpu_proj_sum nvtx_gpu_proj_trace",
        "shared",
    ),
    "kinds without a label": _named(
        "a copy of a kind that the file does not name has its number; theirs leaves it out",
        "rows",
        "cuda_api_gpu_sum cuda_gpu_mem_size_sum cuda_gpu_mem_time_sum cuda_gpu_sum",
        "odd",
    ),
    "names of copies up to 2022": _named(
        "copies are called as newer nsys calls them, not HtoD and DtoH; rows of equal time stand by"
        " those names",
        "column Operation; column Name; column Category",
        "cuda_api_gpu_sum cuda_gpu_mem_size_sum cuda_gpu_mem_time_sum cuda_gpu_sum cuda_gpu_trace",
    ),
    "units up to 2022": _named(
        "throughput is in MB/s, which was written MBps",
        "header Throughput (MBps); header Throughput (MB/s);"
        " header Migration Throughput (MBps); header Migration Throughput (MB/s)",
        "cuda_gpu_trace um_sum",
    ),
    "order by exact throughput": _named(
        "as in exact throughput; the column itself has another header up to 2022",
        "order",
        "um_sum",
        "uvm-migration-2025.1",
    ),
    "kernels by shape up to 2022": _named(
        "cuda_gpu_kern_sum is by name; what was called gpukernsum was by grid and block too",
        "header GridXYZ; header BlockXYZ; rows",
        "cuda_gpu_kern_sum",
    ),
    "lost nesting up to 2022": _named(
        "8,016 of 19,118 ranges have fewer around them than their times say; 2023.4 agrees with us",
        _NESTING,
        "nvtx_pushpop_trace nvtx_gpu_proj_trace",
        "pytorch-nccl-2gpu-2026.2",
    ),
    "threads up to 2022": _named(
        "ranges of several threads stand by their start, as 2023.4 has them; theirs thread by"
        " thread",
        "order",
        "nvtx_pushpop_trace",
        "interleaved",
    ),
    "no ranges at all": _named(
        "a file without a single range holds no NVTX data, be its table there or not",
        "theirs alone",
        "nvtx_kern_sum",
    ),
}
"""By name; of ``stats``."""

RULES: Final = {
    "name of the call": _named(
        "calls stand without their version, as nsys's own statistical reports print them",
        "column API Name",
        "cuda_api_sync cuda_memcpy_async cuda_memcpy_sync cuda_memset_sync",
    ),
    "exact bytes": _named(
        "bytes are whole; theirs are 10**6 bytes, rounded",
        "header Bytes (MB); header Bytes (B)",
        "cuda_memcpy_async cuda_memcpy_sync cuda_memset_sync",
    ),
    "calls of another process": _named(
        "a copy is launched by a call of its own process; theirs takes any with its number",
        "theirs alone",
        "cuda_memcpy_async",
        "interleaved",
    ),
    "no green contexts up to 2022": _named(
        "2022.4 has no column for them",
        "header Green Context ID",
        "cuda_memcpy_async cuda_memcpy_sync cuda_memset_sync",
    ),
    "copies of equal time up to 2022": _named(
        "copies that take equally long stand by their calls, as 2023.4 has them; theirs by start",
        "column Start (ns); column PID; column Device ID; column Context ID; column Stream ID",
        "cuda_memcpy_async",
        "pytorch-nccl-2gpu-2026.2",
    ),
    "idle cells up to 2022": _named(
        "a stretch is as long as its cells; theirs loses those without any work beside others, and"
        " keeps the last where none has",
        "rows; column In-Use (%); column Duration (ns); column Start (ns); column PID;"
        " column Context ID",
        "gpu_time_util",
        "demo interleaved",
    ),
    "call with a backtrace": _named(
        "a call is one call: the row that carries its backtrace is no second one",
        "rows",
        "cuda_api_sync cuda_memcpy_async cuda_memcpy_sync",
        f"{_TWICE} demo",
    ),
}
"""By name; of ``analyze`` with ``compat``."""
