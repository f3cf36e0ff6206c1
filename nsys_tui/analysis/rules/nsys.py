"""The rules of ``nsys analyze`` under their names, corrected where they err.

``compat`` gives NVIDIA's own selection back where ours is wider or stricter.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Finding, longest_of
from nsys_tui.analysis.rules.register import Arguments, Parameter, Result, rule
from nsys_tui.analysis.stats.gpu import MEMORY_LABELS
from nsys_tui.analysis.stats.kernels import ordinals
from nsys_tui.analysis.stats.summary import pids, tids
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Integers
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import ApiCalls, Operations
from nsys_tui.model.kinds import OPERATIONS
from nsys_tui.model.table import Column, Unit
from nsys_tui.names import api_name

COMPAT: Final = Parameter("compat", False, "select exactly what nsys selects")
_ASYNC_NSYS: Final = re.compile(r"cudaMemcpy.*Async")
_ASYNC: Final = re.compile(r"cu(da)?Memcpy.*Async")
_MEMCPY_NSYS: Final = re.compile(r"cudaMemcpy(?!.*Async)")
MEMCPY: Final = re.compile(r"cu(da)?Memcpy(?!.*Async)")
_SYNC_NSYS: Final = re.compile(r"cuda(Device|Stream)Synchronize")
_SYNC: Final = re.compile(r"cuda(Device|Stream|Event|Thread)Synchronize|cu(Ctx|Stream|Event)Sync")
_OF_NSYS: Final = re.compile(rf"cudaMem|{_SYNC_NSYS.pattern}")
"""Calls that nsys's own rules look at."""
_SMALL_NSYS: Final = 64_000
PAGEABLE: Final = 0
PINNED: Final = 1
MANAGED: Final = 4


def of_memory(ops: Operations, rows: Indices, kind: int) -> Bool:
    """Which of some copies are from or to a kind of memory."""
    return np.asarray((ops.src_kind[rows] == kind) | (ops.dst_kind[rows] == kind), np.bool_)


@rule(
    "Asynchronous copies of pageable memory",
    advice="An asynchronous copy from or to pageable host memory is staged by the driver and partly"
    " blocks the host: allocate that memory pinned.",
    nothing="No asynchronous copy of pageable host memory.",
    parameters=(Parameter("min_bytes", 0, "leave out smaller copies"), COMPAT),
    of_nsys=True,
)
def cuda_memcpy_async(case: Case, arguments: Arguments) -> Result:
    """Copies launched by an asynchronous call with pageable memory on either side.

    nsys looks at runtime calls only; ours looks at the driver's calls too. The driver stages small
    uploads at the price of a launch, so that the finding leaves them out.
    """
    ops = case.report.operations
    pattern = _ASYNC_NSYS if arguments.flag("compat") else _ASYNC
    rows = _launched_by(case, OpKind.MEMCPY, pattern)
    rows = rows[of_memory(ops, rows, PAGEABLE) & (ops.bytes[rows] >= arguments.count("min_bytes"))]
    advice = "pin the host memory (cudaHostAlloc, pin_memory=True)"
    staged = (ops.copy_kind[rows] == HOST_COPIES[0]) & (ops.bytes[rows] <= SMALL_COPY)
    held = rows[~staged]
    findings = _blocking(case, "cuda_memcpy_async", held, "async copy of pageable memory", advice)
    return _copy_table(case, arguments, OpKind.MEMCPY, rows, findings)


@rule(
    "Synchronous copies",
    advice="A synchronous copy stops the host until it is done: use cudaMemcpyAsync with pinned"
    " memory on a stream.",
    nothing="No synchronous copy that blocks the host.",
    parameters=(
        Parameter("small", 65_536, "host-to-device copies up to this size need not block"),
        Parameter("device_to_device", False, "look at device-to-device copies too"),
        COMPAT,
    ),
    of_nsys=True,
)
def cuda_memcpy_sync(case: Case, arguments: Arguments) -> Result:
    """Copies launched by a call that is not asynchronous.

    Small host-to-device copies and device-to-device copies do not block the host and are left out.
    nsys lists those between devices, and takes up to 64,000 bytes for small.
    """
    ops = case.report.operations
    compat = arguments.flag("compat")
    rows = _launched_by(case, OpKind.MEMCPY, _MEMCPY_NSYS if compat else MEMCPY)
    kind = ops.copy_kind[rows]
    small = _SMALL_NSYS if compat else arguments.count("small")
    harmless = (kind == 1) & (ops.bytes[rows] <= small)
    if not (compat or arguments.flag("device_to_device")):
        harmless |= kind == 8
    rows = rows[~harmless]
    pin = ", with pinned host memory" * bool(of_memory(ops, rows, PAGEABLE).any())
    advice = f"use cudaMemcpyAsync on a stream{pin}"
    findings = _blocking(case, "cuda_memcpy_sync", rows, "synchronous copy", advice)
    return _copy_table(case, arguments, OpKind.MEMCPY, rows, findings)


@rule(
    "Synchronous memsets of host memory",
    advice="A synchronous memset of pinned or managed memory stops the host: use cudaMemsetAsync.",
    nothing="No synchronous memset that blocks the host.",
    of_nsys=True,
)
def cuda_memset_sync(case: Case, arguments: Arguments) -> Result:
    """Memsets of pinned or managed memory launched by a call that is not asynchronous."""
    ops = case.report.operations
    rows = _launched_by(case, OpKind.MEMSET, re.compile(r"cudaMemset(?!.*(?i:async))"))
    rows = rows[np.isin(ops.src_kind[rows], (PINNED, MANAGED))]
    findings = _blocking(
        case, "cuda_memset_sync", rows, "synchronous memset", "use cudaMemsetAsync"
    )
    return _copy_table(case, arguments, OpKind.MEMSET, rows, findings)


def _launched_by(case: Case, kind: OpKind, name: re.Pattern[str]) -> Indices:
    """Operations of a kind whose call has such a name."""
    ops, api = case.report.operations, case.report.api
    rows = case.where(lambda rows: ops.kind[rows] == kind)
    rows, calls = case.report.called(rows)
    wanted = np.array([name.match(text) is not None for text in api.names], bool)
    return rows[wanted[api.name[calls]]] if len(rows) else rows


def _blocking(case: Case, name: str, rows: Indices, what: str, advice: str) -> list[Finding]:
    """A finding about calls that hold the host up, rated by the time that GPUs idle in them.

    Series of small copies are left to the rule on them.
    """
    report = case.report
    rows = np.setdiff1d(rows, series_of_small_copies(case), assume_unique=True)
    if not len(rows):
        return []
    calls = report.calls[rows]
    held = int(report.api.durations(calls).sum())
    device, lost = case.idle_time.held_up_by_calls(calls)
    idle = intervals.total(*lost)
    size = units.format_bytes(int(report.operations.bytes[rows].sum()))
    return case.finding(
        name,
        f"{units.format_count(len(rows))}x {what}, {size}: host held up"
        f" {units.format_duration(held)}, GPU idle {units.format_duration(idle)} of it",
        advice,
        subject=what,
        saved_ns=idle,
        window=longest_of(report.api, calls),
        device=device if device >= 0 else None,
        lost=lost,
    )


HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
PEER_COPY: Final = 10
"""Kind of copies from one GPU to another."""
DEVICE_TO_DEVICE: Final = 8
WITHIN_GPU: Final = (5, 6, 7, DEVICE_TO_DEVICE)
"""Kinds of copies within a GPU, to and from arrays of it, too."""
DIRECTIONS: Final = {
    1: "Host-to-Device",
    DEVICE_TO_HOST: "Device-to-Host",
    DEVICE_TO_DEVICE: "Device-to-Device",
}
"""Kinds of copies that a program asks for one by one."""
TO_HOST: Final = (DEVICE_TO_HOST, 12)
"""Kinds of copies that bring data to the host: of their own, or as managed pages."""
HOST_COPIES: Final = (HOST_TO_DEVICE, DEVICE_TO_HOST)
"""Those between host and device."""
SMALL_COPY: Final = 65_536
"""Bytes up to which a copy is small."""
SERIES: Final = 20
"""Copies of one direction, in the table of one size, too, from which they are a series."""
VALUE: Final = 64
"""Bytes up to which a copy brings a value or a few."""
READ_LESS: Final = "decide on the GPU, or read only each n-th of them: the host waits for each"
"""What to do about values that the host reads."""


def series_of_small_copies(case: Case) -> Indices:
    """Copies of one direction that are small and occur again and again."""
    ops, rows = case.report.operations, case.copies
    rows = rows[np.isin(ops.copy_kind[rows], [*DIRECTIONS]) & (ops.bytes[rows] <= SMALL_COPY)]
    kind = ops.copy_kind[rows]
    return rows[np.bincount(kind)[kind] >= SERIES]


def _copy_table(
    case: Case, arguments: Arguments, kind: OpKind, rows: Indices, findings: list[Finding]
) -> Result:
    report, ops = case.report, case.report.operations
    calls = report.calls[rows]
    order = np.lexsort((report.api.rowid[calls], -ops.durations(rows)))
    rows, hidden = _cut(rows[order], report.api, calls[order], arguments)
    streams = [ops.streams[code] for code in ops.stream[rows].tolist()]
    names = [api_name(report.api.names[c]) for c in report.api.name[report.calls[rows]].tolist()]
    details = [report.row(OPERATIONS[kind], rowid).fields for rowid in ops.rowid[rows].tolist()]
    green = [detail.get("green_context_id") or None for detail in details]
    kinds: list[tuple[Column, Any]] = [(Column("Memory Kind"), MEMORY_LABELS[ops.src_kind[rows]])]
    if kind is OpKind.MEMCPY:
        kinds = [
            (Column("Src Kind"), MEMORY_LABELS[ops.src_kind[rows]]),
            (Column("Dst Kind"), MEMORY_LABELS[ops.dst_kind[rows]]),
        ]
    columns: list[tuple[Column, Any]] = [
        (Column("Duration", Unit.NS), ops.durations(rows)),
        (Column("Start", Unit.NS), ops.start[rows]),
        *kinds,
        (Column("Bytes", Unit.BYTES), ops.bytes[rows]),
        (Column("PID", Unit.NONE), pids(ops.processes[ops.process[rows]])),
        (Column("Device ID", Unit.NONE), ordinals(ops, rows)),
        (Column("Context ID", Unit.NONE), [stream.context for stream in streams]),
        (Column("Green Context ID", Unit.NONE), green),
        (Column("Stream ID", Unit.NONE), [stream.id for stream in streams]),
        (Column("API Name"), names),
    ]
    return Result(tuple(columns), findings, hidden=hidden)


def _cut(
    rows: Indices, api: ApiCalls, calls: Integers, arguments: Arguments
) -> tuple[Indices, int]:
    """The first rows; driver calls, which nsys does not look at, push none of nsys's rows out.

    Args:
        rows: in the order in which they are listed.
        api: the CUDA calls.
        calls: which of them each row is of.
        arguments: with the number of rows.
    """
    most = arguments.count("rows")
    if most < 0 or len(rows) <= most:
        return rows, 0
    of_nsys = np.array([_OF_NSYS.match(name) is not None for name in api.names], bool)
    theirs = of_nsys[api.name[calls]]
    kept = np.arange(len(rows)) < most
    kept |= theirs & (np.cumsum(theirs) <= most)
    return rows[kept], int(np.count_nonzero(~kept))


@rule(
    "Calls that wait for the GPU",
    advice="Each of these calls stops the host until the GPU is done: order work with events and"
    " cudaStreamWaitEvent instead.",
    nothing="No call that waits for the GPU.",
    parameters=(
        Parameter("process", 0, "only this process id"),
        Parameter("thread", 0, "only this thread id"),
        COMPAT,
    ),
    of_nsys=True,
    finds=False,
)
def cuda_api_sync(case: Case, arguments: Arguments) -> Result:
    """Calls that make the host wait.

    nsys knows cudaDeviceSynchronize and cudaStreamSynchronize; ours adds event, thread and driver
    synchronisation.
    """
    api = case.report.api
    pattern = _SYNC_NSYS if arguments.flag("compat") else _SYNC
    waits = np.array([pattern.match(name) is not None for name in api.names], bool)
    rows = case.calls
    rows = rows[waits[api.name[rows]]] if len(rows) else rows
    threads = api.threads[api.thread[rows]]
    if arguments.count("process"):
        rows = rows[pids(threads) == arguments.count("process")]
    if arguments.count("thread"):
        rows = rows[tids(api.threads[api.thread[rows]]) == arguments.count("thread")]
    rows = rows[np.lexsort((api.rowid[rows], -api.durations(rows)))]
    rows, hidden = _cut(rows, api, rows, arguments)
    threads = api.threads[api.thread[rows]]
    columns = (
        (Column("Duration", Unit.NS), api.durations(rows)),
        (Column("Start", Unit.NS), api.start[rows]),
        (Column("PID", Unit.NONE), pids(threads)),
        (Column("TID", Unit.NONE), tids(threads)),
        (Column("API Name"), [api_name(api.names[code]) for code in api.name[rows].tolist()]),
    )
    return Result(columns, hidden=hidden)
