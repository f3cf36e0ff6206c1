"""Rules on lost data, failed calls and missing ranges; and nsys's rule on DirectX 12 memory."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui.analysis import diagnostics
from nsys_tui.analysis.diagnostics import losses
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.register import Arguments, Result, cut, rule
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.events import FARTHEST
from nsys_tui.model.groups import factorise_rows
from nsys_tui.model.kinds import Kind
from nsys_tui.model.table import Column, Unit
from nsys_tui.model.target import tid_of

_NOT_ZEROED: Final = 0x1000
_MOST: Final = 0.5
"""Part of launch calls that failed from which the run did not do its work."""
_LAST: Final = (700, 710, 714, 715, 716, 717, 718, 719)
"""Errors after which every further call of the process fails.

Source: CUDA runtime API, cudaError.
"""
_UNRECORDED: Final = (
    "record again: an nsys older than the driver, another profiler, or a crash hides it"
)


@rule(
    "Data that nsys says it lost",
    advice="Parts of this report may be missing, and figures too low: profile for a shorter time,"
    " trace less, or raise the flush interval.",
    nothing="nsys reports no loss of data.",
)
def data_loss(case: Case, arguments: Arguments) -> Result:
    """Messages about events that were dropped, and calls for GPU work none of which is recorded.

    Not that some of CUDA might be missing where launches and kernels fit without exception.
    """
    lost, report = losses(case.report), case.report
    shown, hidden = cut(lost, arguments)
    vain = "" if diagnostics.failed_calls(report) else diagnostics.asked_in_vain(report)
    vain = vain.replace(diagnostics.NO_LAUNCH, "")
    said = vain or (f"{lost[0].how}: {lost[0].text}" if lost else "")
    least = Severity.MEDIUM if any(one.is_grave for one in lost) else Severity.LOW
    findings = case.finding(
        "data_loss",
        said,
        _UNRECORDED if vain else "profile for a shorter time, or trace less",
        subject="lost data",
        saved_ns=0,
        stake_ns=case.base_ns * bool(vain),
        window=None,
        screen="1",
        at_least=Severity.HIGH if vain else least,
    )
    columns = (
        (Column("Time", Unit.NS), [message.first.time for message in shown]),
        (Column("Severity"), [message.first.severity for message in shown]),
        (Column("Source"), [message.first.source for message in shown]),
        (Column("Message"), [message.text for message in shown]),
    )
    return Result(columns, findings if said else (), hidden=hidden)


@rule(
    "No NVTX ranges",
    advice="Without ranges, time cannot be told by phase, step or layer: annotate the program"
    " (torch.cuda.nvtx, nvtx; an nsys newer than 2023.4: --pytorch=autograd-nvtx) and trace nvtx.",
    nothing="The program has NVTX ranges, or no GPU work.",
)
def missing_nvtx(case: Case, arguments: Arguments) -> Result:  # noqa: ARG001
    """Reports with GPU work but without a single range."""
    report = case.report
    missing = bool(len(report.operations)) and not len(report.ranges)
    reason = report.lacks(Capability.NVTX) or "the NVTX table holds no range"
    asked = report.traced(Capability.NVTX)
    findings = case.finding(
        "missing_nvtx",
        f"steps and phases have no names: {reason}",
        "annotate steps and phases with NVTX" + ("" if asked else ", and record --trace=cuda,nvtx"),
        subject="no NVTX ranges",
        saved_ns=0,
        window=None,
        screen="4",
        at_least=Severity.LOW,
    )
    return Result(
        ((Column("Reason"), [reason] if missing else []),), tuple(findings) if missing else ()
    )


_UPLOAD, _READBACK = 2, 3
_WRITE_COMBINED, _WRITE_BACK = 2, 3


@rule(
    "DirectX 12 memory operations that cost time",
    advice="Create heaps without zeroing, and read and write sub-resources only on heaps and pages"
    " meant for it.",
    nothing="No DirectX 12 memory operation of a flagged kind.",
    of_nsys=True,
    finds=False,
)
def dx12_mem_ops(case: Case, arguments: Arguments) -> Result:
    """Heaps created with zeroing, and reads or writes of sub-resources on the wrong heap or page.

    The codes of heap types are those that reports hold (2 upload, 3 readback), by name of the call.
    """
    report = case.report
    calls = report.rows(Kind.DX12_CALL, "id", "start", "end", "global_tid", "name")
    operations = report.rows(
        Kind.DX12_MEMORY, "trace_event_id", "heap_type", "heap_flags", "cpu_page_property", "gpu"
    )
    by_id = {
        identity: (start, end, thread, name or "")
        for identity, start, end, thread, name in zip(*calls.lists(), strict=True)
    }
    listed, window = [], case.scope.window or (-FARTHEST, FARTHEST)
    for event, *details in zip(*operations.lists(), strict=True):
        call = by_id.get(event)
        warning = _dx12_warning(call[3], *details[:3]) if call else ""
        timed = call is not None and None not in call[:2]
        if call and timed and warning and call[0] < window[1] and call[1] > window[0]:
            listed.append((call[1] - call[0], call[0], tid_of(call[2] or 0), details[3], warning))
    listed.sort(key=lambda row: -row[0])
    shown, hidden = cut(listed, arguments)
    columns = (
        (Column("Duration", Unit.NS), [row[0] for row in shown]),
        (Column("Start", Unit.NS), [row[1] for row in shown]),
        (Column("TID", Unit.NONE), [row[2] for row in shown]),
        (Column("Device ID", Unit.NONE), [row[3] for row in shown]),
        (Column("Warning Type"), [row[4] for row in shown]),
    )
    return Result(columns, hidden=hidden)


def _dx12_warning(
    name: str, heap_type: int | None, heap_flags: int | None, page: int | None
) -> str:
    creates = "CreateHeap" in name or "CreateCommittedResource" in name
    reads, writes = "ReadFromSubresource" in name, "WriteToSubresource" in name
    flagged = {
        "Heap or resource created with zeroing": creates and not (heap_flags or 0) & _NOT_ZEROED,
        "Read from an upload heap": reads and heap_type == _UPLOAD,
        "Read from a write-combined page": reads and page == _WRITE_COMBINED,
        "Write to a readback heap": writes and heap_type == _READBACK,
        "Write to a write-back page": writes and page == _WRITE_BACK,
    }
    return next((warning for warning, holds in flagged.items() if holds), "")


@rule(
    "Launches, copies, waits, allocations and frees that failed",
    advice="What they asked for was not done, and results may be wrong: check the error of each"
    " call, and run the program under compute-sanitizer.",
    nothing="No such call returned an error, or API calls are not recorded.",
)
def failed_calls(case: Case, arguments: Arguments) -> Result:
    """Calls that a program cannot do without and that returned an error, by call and error."""
    api = case.report.api
    failed = diagnostics.failed_rows(case.report)
    failed = failed[np.isin(failed, case.calls)] if len(failed) else failed
    codes, kinds = factorise_rows((api.name[failed], api.return_value[failed]))
    first, count = np.unique(codes, return_index=True, return_counts=True)[1:]
    order, hidden = cut(np.argsort(-count, kind="stable"), arguments)
    columns = (
        (Column("Name"), [api.names[code] for code in kinds[order, 0].tolist()]),
        (Column("Error"), [diagnostics.error_label(error) for error in kinds[order, 1].tolist()]),
        (Column("Count", Unit.COUNT), count[order]),
        (Column("First", Unit.NS), api.start[failed[first[order]]]),
    )
    if not len(failed):
        return Result(columns)
    launches, calls = diagnostics.failed_launches(case.report)
    grave = len(launches) > _MOST * calls or np.isin(api.return_value[failed], _LAST).any()
    findings = case.finding(
        "failed_calls",
        diagnostics.failed_calls(case.report),
        "check the error of each call in the program; compute-sanitizer PROGRAM shows where",
        subject="calls that failed",
        saved_ns=0,
        window=(int(api.start[failed[0]]), int(api.end[failed[0]])),
        at_least=Severity.HIGH if grave else Severity.MEDIUM,
    )
    return Result(columns, findings, hidden=hidden)
