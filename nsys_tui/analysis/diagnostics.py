"""What nsys itself said about the capture: each message once, those that matter here first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.model.arrays import Bool, Indices
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import OpKind
from nsys_tui.model.groups import used
from nsys_tui.model.report import Report
from nsys_tui.model.target import Diagnostic, pid_of
from nsys_tui.names import api_name
from nsys_tui.units import format_count, format_share, plural

_SPARSE: Final = 256
_SEVERITIES: Final = ("error", "warning")
_LOSS: Final = re.compile(
    r"(?i)not all .* (events|data)|dropped|incomplete|lost|buffers? .*(partly|not) |cupti_error"
    r"|flush.* error|error.* flush|might (have not|not have) been (started|collected)"
)
_UNSURE: Final = re.compile(r"(?i)\bmight\b")
_ROUTINE: Final = re.compile(r"(?i)^no (nvtx|opengl|vulkan|direct)")
_NONE_LOST: Final = re.compile(
    r"(?i)(lost|dropped)\s*[:=]\s*0\b|\b(0|no)( \w+)? events( \w+)? (lost|dropped)"
)
_CUDA: Final = re.compile(r"(?i)cuda|cupti")
_OF_A_PART: Final = re.compile(r"(?i)unified memory|legacy|hardware|\bgraph")
"""What is said of CUDA that is no reason for there being nothing of it."""
_CLOCKS: Final = re.compile(r"(?i)\bclocks?\b|timestamp|event order|time sync")
_CAPTURED: Final = re.compile(r"nsight-systems[-/](\d{4}\.\d+)")
"""Where nsys's own libraries were loaded from while it recorded."""
_ASKED_FOR: Final = {
    OpKind.KERNEL: (r"cu(da)?LaunchKernel", "kernels"),
    OpKind.MEMCPY: (r"cu(da)?Memcpy", "copies"),
    OpKind.MEMSET: (r"cu(da)?Memset", "memsets"),
    OpKind.GRAPH: (r"cu(da)?GraphLaunch", "CUDA graphs"),
}
"""Calls that ask for GPU work by its kind, and what to call it."""
NO_LAUNCH: Final = "set-up only, no launch was captured"
_CAPTURES: Final = r"cu(da)?StreamBeginCapture"
_LAUNCHES: Final = r"cu(da)?(Launch(Cooperative)?Kernel|GraphLaunch)"
_ERRORS: Final = {
    1: "invalid value",
    2: "out of memory",
    9: "no such grid or block",
    98: "no such kernel",
    209: "no code for this GPU",
    222: "PTX newer than the driver",
    700: "illegal address before",
    701: "too many resources",
    710: "assertion before",
    716: "misaligned address before",
    719: "failed before",
}
"""What errors of calls mean, short."""
_NO_FAULTS: Final = (4, 600, 709)
"""Results of calls at the program's end, after CUDA has gone, and that work is not done yet."""
_MATTER: Final = (
    rf"{_LAUNCHES}|cu(da)?(Mem(cpy|set|Alloc|Free)|Malloc|HostAlloc|Free|"
    r"(Device|Stream|Event|Ctx)Synchronize)"
)
"""Calls that a program cannot do without: others are asked what they can do, and say no."""
_AHEAD: Final = 0.01
"""Part of GPU work that begins before its own call from which clocks do not fit."""
_LOOKED_AT: Final = 1_000_000
"""Operations that tell as much of the clocks as all of them."""


@dataclass(frozen=True)
class Message:
    """One text, however often it was said."""

    first: Diagnostic
    count: int
    elsewhere: bool
    """Whether only processes without GPU work said it, though others have some."""

    @property
    def serious(self) -> bool:
        """Whether it is an error or a warning."""
        return self.first.severity.lower() in _SEVERITIES

    @property
    def is_of_cuda(self) -> bool:
        """Whether it is about the trace of CUDA."""
        return _CUDA.search(self.first.text) is not None

    @property
    def tells_of_loss(self) -> bool:
        """Whether it says that events are missing which should be there."""
        text = _NONE_LOST.sub("", self.first.text)
        return self.serious and bool(_LOSS.search(text)) and not _ROUTINE.search(text)

    @property
    def how(self) -> str:
        """How sure a loss is: nsys says of whole reports, too, that events might be missing."""
        return "maybe lost" if _UNSURE.search(self.first.text) else "lost"

    @property
    def is_grave(self) -> bool:
        """Whether a loss is of the work that is looked at: sure, or that of CUDA."""
        return not self.elsewhere and (self.how == "lost" or self.is_of_cuda)

    @property
    def text(self) -> str:
        """What was said, how often, and whether it is about the work that is looked at."""
        times = f" ({format_count(self.count)} times)" if self.count > 1 else ""
        where = " (in a process without GPU work)" if self.elsewhere else ""
        return " ".join(self.first.text.split()) + times + where


def messages(report: Report) -> list[Message]:
    """All messages: errors, then warnings; about the GPU work first, CUDA before the rest."""
    said: dict[tuple[str, str], list[Diagnostic]] = {}
    for diagnostic in report.metadata.diagnostics:
        said.setdefault((diagnostic.severity, diagnostic.text), []).append(diagnostic)
    working = {pid_of(process) for process in report.operations.processes.tolist()}
    texts = [
        Message(same[0], len(same), bool(working) and not _concerns(same, working))
        for same in said.values()
    ]
    return sorted(texts, key=_order)


def why_no_work(report: Report) -> str:
    """What nsys says of CUDA first, to be put after a reason; empty where it says nothing."""
    about = (one.text for one in messages(report) if one.serious and one.is_of_cuda)
    said = (f"; nsys says: {text}" for text in about if not _OF_A_PART.search(text))
    return next(said, "")


def asked_in_vain(report: Report) -> str:
    """Whether calls of CUDA launched the work that is missing; empty where nobody can tell."""
    api = report.api
    if not report.can(Capability.API) or len(report.operations):
        return ""
    if calls := sum(len(unanswered(report, kind)) for kind in _ASKED_FOR):
        return f"{plural(calls, 'call')} asked for GPU work, none of it is recorded"
    asked = _named(report, "|".join(pattern for pattern, _ in _ASKED_FOR.values()))
    return "" if asked[api.name].any() else NO_LAUNCH


def failed_rows(report: Report, pattern: str = _MATTER) -> Indices:
    """Rows of calls that returned an error, the first one first.

    Args:
        report: the report.
        pattern: how their names begin; by default those that a program cannot do without.
    """
    api, failed = report.api, np.flatnonzero(report.api.return_value > 0)
    failed = failed[_named(report, pattern)[api.name[failed]] & api.real[failed]]
    failed = failed[~np.isin(api.return_value[failed], _NO_FAULTS)]
    return failed[np.argsort(api.start[failed], kind="stable")]


def error_label(error: int) -> str:
    """An error's number, and what it means where that is known."""
    return f"error {error}" + (f" ({_ERRORS[error]})" if error in _ERRORS else "")


def failed_launches(report: Report) -> tuple[Indices, int]:
    """Rows of launch calls that returned an error, and how many launch calls there are."""
    calls = int(report.api.count_of_names[_named(report, _LAUNCHES)].sum())
    return failed_rows(report, _LAUNCHES), calls


def failed_calls(report: Report) -> str:
    """How many launches, or other calls, returned an error, and the first one's: empty for none."""
    api, (launches, calls) = report.api, failed_launches(report)
    failed = launches if len(launches) else failed_rows(report)
    if not len(failed):
        return ""
    called = f"{plural(len(failed), 'call')}, first {api_name(api.names[api.name[failed[0]]])},"
    if len(launches):
        called = f"{format_count(len(failed))} of {plural(calls, 'launch call')}"
    return f"{called} failed: {error_label(int(api.return_value[failed[0]]))}"


def loss(report: Report) -> str:
    """That GPU work which is looked at is missing, empty where nothing tells so."""
    if said := [one.how for one in losses(report) if one.is_of_cuda and one.is_grave]:
        may = "" if "lost" in said else "may have "
        return f"nsys {may}lost CUDA events: idle time may be work that is missing"
    for kind, (_, what) in _ASKED_FOR.items():
        if calls := len(unanswered(report, kind)):
            return f"{what} of {plural(calls, 'call')} are not recorded: idle time may be such work"
    return ""


def losses(report: Report) -> list[Message]:
    """Messages about missing events, the gravest first, but for those that the rows contradict."""
    said = [one for one in messages(report) if one.tells_of_loss]
    whole = bool(said) and _is_whole(report)
    left = (one for one in said if not (whole and one.is_of_cuda and one.how != "lost"))
    return sorted(left, key=lambda one: not one.is_grave)


def _is_whole(report: Report) -> bool:
    """Whether each kernel has its call, and each launch before the last operation its kernel.

    Calls and kernels come in buffers of their own, so where some are lost they do not fit.
    """
    api, ops, calls = report.api, report.operations, report.calls
    kernels = calls[ops.kind == OpKind.KERNEL]
    if not len(kernels) or (kernels < 0).any():
        return False
    rows = np.flatnonzero(_named(report, _ASKED_FOR[OpKind.KERNEL][0])[api.name])
    rows = rows[api.real[rows] & (api.return_value[rows] == 0)]
    answered = np.bincount(kernels, minlength=len(api)) > 0
    return bool(answered[rows[api.end[rows] < ops.start.max()]].all())


def _named(report: Report, pattern: str) -> Bool:
    """Which names of API calls begin so."""
    return np.array([re.match(pattern, name) is not None for name in report.api.names], bool)


def unanswered(report: Report, kind: OpKind) -> Indices:
    """API calls that ask for GPU work of a kind, in processes of which none of it is recorded.

    What a stream captures runs in a graph, and calls that failed ask for nothing.
    """
    api, ops = report.api, report.operations
    asked, captured = (_named(report, one) for one in (_ASKED_FOR[kind][0], _CAPTURES))
    if not (asked & (api.count_of_names > 0)).any():
        return np.empty(0, np.intp)
    done = ops.of_kind(kind)
    for some in (done[::_SPARSE], done):  # Mostly a few of them tell that no process is silent.
        silent = ~np.isin(api.thread_process, ops.processes[used(ops.process[some])])
        asks = np.flatnonzero(asked[api.name] & silent[api.thread]) if silent.any() else done[:0]
        if not len(asks):
            return asks
    if kind is OpKind.GRAPH:
        launched = (report.calls >= 0) & asked[api.name[report.calls]]
        launched |= (ops.graph_node != 0) | (not report.can(Capability.LAUNCH_CALLS))
        working = ops.processes[used(ops.process[launched | (ops.kind == kind)])]
        silent = ~np.isin(api.thread_process, working)
    captures = np.flatnonzero(captured[api.name] & silent[api.thread])
    asks, captures = (
        rows[silent[api.thread[rows]] & api.real[rows] & (api.return_value[rows] == 0)]
        for rows in (asks, captures)
    )
    asking, capturing = (api.thread_process[api.thread[calls]] for calls in (asks, captures))
    in_graphs = np.isin(asking, capturing) & (kind is not OpKind.GRAPH)
    missing: Indices = asks[~in_graphs]
    return missing


def clock_trouble(report: Report) -> str:
    """Why times of host and GPU cannot be compared, empty where nothing is wrong with them."""
    ops = report.operations
    rows = np.arange(0, len(ops), len(ops) // _LOOKED_AT + 1)
    called = rows[report.calls[rows] >= 0]
    begun = report.api.start[report.calls[called]] if len(called) else called
    ahead = int((ops.start[called] < begun).sum())
    if ahead > _AHEAD * len(called):
        return (
            f"{format_share(ahead, len(called))} of GPU work begins before its call: clocks differ"
        )
    if backwards := int((ops.end[rows] < ops.start[rows]).sum()):
        return f"{format_count(backwards)} GPU operations end before they begin: clocks jumped"
    said = (one.text for one in messages(report) if one.serious and _CLOCKS.search(one.text))
    return next((f"nsys doubts its clocks: {text.rstrip('.')}" for text in said), "")


def other_generation(report: Report) -> str:
    """That another nsys exported the report than the one that recorded it, empty if not so."""
    exported = ".".join(report.metadata.product_version.split(".")[:2])
    said = (_CAPTURED.search(one.text) for one in report.metadata.diagnostics)
    captured = next((version[1] for version in said if version), exported)
    differs = bool(exported) and captured != exported
    return f"recorded by nsys {captured}, exported by {exported}" if differs else ""


def _concerns(same: list[Diagnostic], working: set[int]) -> bool:
    """Whether a process with GPU work said it, or the profiler, which has no process of its own."""
    pids = {0 if one.process < 0 else pid_of(one.process) for one in same}
    return 0 in pids or not pids.isdisjoint(working)


def _order(message: Message) -> tuple[int, bool, bool]:
    severity = message.first.severity.lower()
    rank = _SEVERITIES.index(severity) if message.serious else len(_SEVERITIES)
    return rank, message.elsewhere, not message.is_of_cuda
