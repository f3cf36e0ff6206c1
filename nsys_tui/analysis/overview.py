"""What a report is and where its GPU time went, in one frozen result for screen, pipe and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.analysis.aggregate import aggregate
from nsys_tui.analysis.breakdown import DeviceSplit, ten_figures
from nsys_tui.analysis.diagnostics import Message, messages, why_no_work
from nsys_tui.analysis.host_time import HostTime, host_time, mpi_calls, osrt_calls, python_samples
from nsys_tui.analysis.nccl.waiting import collective_waits, splits_with_waiting
from nsys_tui.analysis.window import WHOLE_REPORT, Rows, Scope, clipped, row_numbers
from nsys_tui.model.arrays import Int32
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import EventSet
from nsys_tui.model.groups import regroup
from nsys_tui.model.report import Report
from nsys_tui.model.target import Metadata
from nsys_tui.names import NameStyle, numbered_alike

TOP: Final = 10

_CUDA: Final = frozenset(
    (
        Capability.KERNELS,
        Capability.COPIES,
        Capability.MEMSETS,
        Capability.GRAPHS,
        Capability.API,
        Capability.SYNC,
        Capability.LAUNCH_SHAPES,
        Capability.LAUNCH_CALLS,
    )
)
_OF_SOME_PROGRAMS: Final = _CUDA | {Capability.RENDERING}
_CUDA_NEEDED: Final = (Capability.KERNELS, Capability.API)
"""With CUDA traced, only these are worth a line when they are absent: the rest did not happen."""
NO_WORK: Final = "no GPU work in this report or scope"


@dataclass(frozen=True)
class Headline:
    """One figure each over all devices in scope: the sum over devices; shares of n x base."""

    device_count: int
    base_ns: int
    session_ns: int | None
    busy_ns: int
    idle_ns: int
    compute_ns: int
    comm_ns: int
    memory_ns: int
    graph_ns: int
    exposed_comm_ns: int
    exposed_memory_ns: int
    kernel_count: int
    max_gap_ns: int
    comm_waiting_ns: int | None = None
    """Communication that only waits for other ranks; None where a GPU's is not known."""
    exposed_waiting_ns: int | None = None

    def share(self, ns: int) -> float | None:
        """``ns`` as a part of the whole, 0 to 1, or None without a whole."""
        whole = self.device_count * self.base_ns
        return ns / whole if whole else None

    def session_share(self, ns: int) -> float | None:
        """``ns`` as a part of the recorded session, or None where that is unknown."""
        whole = self.device_count * (self.session_ns or 0)
        return ns / whole if whole else None


@dataclass(frozen=True)
class TopName:
    """Time of all events of one name."""

    name: str
    total_ns: int
    count: int
    """Those that start in the window."""
    straddling: int
    """Those that reach into the window from before it."""
    share: float
    """Of the total over all names, 0 to 1; of GPU work, of all of it."""
    mean_ns: float | None
    """Whole duration of those that start in the window; None where none does."""


@dataclass(frozen=True)
class Missing:
    """A kind of data the report lacks, and why or what would record it."""

    kind: str
    reason: str


@dataclass(frozen=True)
class Overview:
    """Everything the first screen says."""

    metadata: Metadata
    scope: Scope
    base: tuple[int, int]
    headline: Headline
    devices: tuple[DeviceSplit, ...]
    breakdown: dict[str, int | float | None]
    """The ten figures by the older rule (``breakdown.ten_figures``), None where not known."""
    kernels: tuple[TopName, ...]
    ranges: tuple[TopName, ...]
    """NVTX ranges by host time, digits as ``#``; open ranges are not in it."""
    open_range_count: int
    missing: tuple[Missing, ...]
    notes: tuple[str, ...]
    gpu_known: bool = True
    """False where the file's GPU work is not believed: then no figure of it means anything."""
    host: HostTime | None = None
    """What the host did; only where there is no GPU work, or where it was asked for."""
    calls: tuple[TopName, ...] = ()
    """OS runtime calls by name, with ``host``."""
    mpi: tuple[TopName, ...] = ()
    """MPI calls by name, with ``host``."""
    messages: tuple[Message, ...] = ()
    """What nsys said about the capture."""
    waits_note: str = ""
    """What is not known about waiting for other ranks."""
    other_work: tuple[TopName, ...] = ()
    """GPU work beside kernels: copies, memsets, graphs."""

    @property
    def called(self) -> str:
        """Whose calls stand for the host's work: those of MPI where there are any."""
        return "MPI" if self.mpi else "OS runtime"


def overview(
    report: Report,
    scope: Scope = WHOLE_REPORT,
    *,
    style: NameStyle = NameStyle.NORMALISED,
    top: int | None = TOP,
    host: bool = False,
    named: bool = True,
    known: Overview | None = None,
) -> Overview:
    """Computes the overview of a report, or of a part of it.

    Args:
        report: the report; operations and ranges are loaded.
        scope: window, devices, processes and streams.
        style: how kernels are named, and so which are counted together.
        top: how many kernels, ranges, threads and calls are listed; None for all.
        host: tell of the host's side also where there is GPU work.
        named: False leaves out the older figures and what is listed by name.
        known: the same of GPU work alone, whose splits and kernels are taken.
    """
    host = host or not len(report.operations)
    splits = tuple(splits_with_waiting(report, scope, known.devices if known else ()))
    kernels = known.kernels if known else ()
    if named and not known:
        kernels = tuple(top_kernels(report, scope, style)[:top])
    figures = ten_figures(report, scope) if named else {}
    if named and not len(report.operations):
        figures = dict.fromkeys(figures) | {"session_ns": figures["session_ns"]}
    return Overview(
        metadata=report.metadata,
        messages=tuple(messages(report)),
        scope=scope,
        base=scope.base(report),
        headline=headline(report, scope, splits),
        devices=splits,
        breakdown=figures,
        kernels=kernels,
        other_work=tuple(other_work(report, scope)) if named else (),
        ranges=tuple(top_ranges(report, scope)[:top]) if named else (),
        open_range_count=int(report.ranges.open.sum()),
        missing=tuple(missing(report)),
        notes=tuple(_notes(report, splits)),
        waits_note=collective_waits(report).note,
        gpu_known=not report.gpu_doubt,
        host=host_time(report, scope, top) if host else None,
        calls=tuple(top_calls(report, scope)[:top]) if host else (),
        mpi=tuple(top_mpi(report, scope)[:top]) if host else (),
    )


def headline(report: Report, scope: Scope, splits: tuple[DeviceSplit, ...]) -> Headline:
    """Sums the devices; nothing is merged across them."""
    base = scope.base(report)
    summed = (
        "busy_ns",
        "idle_ns",
        "compute_ns",
        "comm_ns",
        "memory_ns",
        "graph_ns",
        "exposed_comm_ns",
        "exposed_memory_ns",
        "kernel_count",
    )
    return Headline(
        device_count=len(splits),
        base_ns=base[1] - base[0],
        session_ns=None if scope.window else report.metadata.session_duration_ns,
        max_gap_ns=max((split.max_gap_ns for split in splits), default=0),
        comm_waiting_ns=_sum([split.comm_waiting_ns for split in splits if split.comm_ns]),
        exposed_waiting_ns=_sum([split.exposed_waiting_ns for split in splits if split.comm_ns]),
        **{name: sum(getattr(split, name) for split in splits) for name in summed},
    )


def _sum(parts: Sequence[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if parts and len(known) == len(parts) else None


def top_kernels(
    report: Report, scope: Scope = WHOLE_REPORT, style: NameStyle = NameStyle.NORMALISED
) -> list[TopName]:
    """GPU time by kernel name, largest first; ties by name. Shares are of all GPU work's time."""
    return _work(report, scope, style, kernels=True)


def other_work(report: Report, scope: Scope = WHOLE_REPORT) -> list[TopName]:
    """GPU time of copies, memsets, graphs and the like by name, with the same shares."""
    return _work(report, scope, NameStyle.SHORT, kernels=False)


def _work(report: Report, scope: Scope, style: str, *, kernels: bool) -> list[TopName]:
    ops = report.operations
    rows = row_numbers(ops, scope.operations(ops))
    rows = rows[ops.counted[rows]]
    starts, ends = clipped(ops, rows, scope.window)
    chosen = rows[(ops.kind[rows] == OpKind.KERNEL) == kernels]
    names, whole = ops.texts(style), int((ends - starts).sum())
    return _by_name(names, ops.name[chosen], ops, chosen, scope.window, whole)


def top_ranges(report: Report, scope: Scope = WHOLE_REPORT) -> list[TopName]:
    """Host time by NVTX range name, largest first, without open ranges.

    Names that differ in digits only are one, with ``#`` for these.
    """
    ranges = report.ranges
    rows = row_numbers(ranges, scope.threads(ranges))
    rows = rows[~ranges.open[rows]]
    shown = numbered_alike(ranges.names)
    names = [shown[name] for name in ranges.names]
    return _by_name(names, ranges.name[rows], ranges, rows, scope.window)


def top_calls(report: Report, scope: Scope = WHOLE_REPORT) -> list[TopName]:
    """Time in OS runtime calls by name, of nested ones in the outermost, largest first."""
    rows = osrt_calls(report, scope)
    return _by_name([*report.osrt.names], report.osrt.name[rows], report.osrt, rows, scope.window)


def top_mpi(report: Report, scope: Scope) -> list[TopName]:
    """Time in MPI calls by name, largest first."""
    events, rows = report.host_events, mpi_calls(report, scope)
    return _by_name([*events.names], events.name[rows], events, rows, scope.window)


def _by_name(
    names: list[str],
    codes: Int32,
    events: EventSet,
    rows: Rows,
    window: tuple[int, int] | None,
    whole: int = 0,
) -> list[TopName]:
    """Groups events by the shown name, of which several name codes may share one.

    Shares are of ``whole``, or of their own sum.
    """
    group, shown = regroup(codes, names)
    by_name = aggregate(events, rows, group, len(shown), window)
    everything = float(whole or by_name.totals.sum()) or 1.0
    listed = [
        TopName(
            name=shown[code],
            total_ns=int(by_name.totals[code]),
            count=int(by_name.counts[code]),
            straddling=int(by_name.straddling[code]),
            share=float(by_name.totals[code] / everything),
            mean_ns=float(by_name.instances.mean[code]) if by_name.counts[code] else None,
        )
        for code in np.flatnonzero(by_name.present).tolist()
    ]
    return sorted(listed, key=lambda entry: (-entry.total_ns, entry.name))


def missing(report: Report) -> list[Missing]:
    """Kinds of data that the report lacks, with what would have recorded them.

    Where CUDA was traced, an absent kind of CUDA work is not listed: the program did none.
    """
    traced = any(report.can(kind) for kind in _CUDA)
    needed = _CUDA_NEEDED if traced else (Capability.KERNELS,)
    return [
        Missing(str(kind), report.lacks(kind))
        for kind in Capability
        if not report.can(kind) and (kind in needed or kind not in _OF_SOME_PROGRAMS)
    ]


def _notes(report: Report, splits: tuple[DeviceSplit, ...]) -> list[str]:
    notes = [*report.metadata.notes, *report.notes.texts]
    ops = report.operations
    hidden = int(((ops.kind == OpKind.GRAPH) & ops.counted).sum())
    if hidden:
        notes.append(
            f"{hidden} CUDA graph launches were traced as a whole: what ran inside them is not"
            " among the kernels, and exposed times are upper bounds"
        )
    if python := len(python_samples(report)):
        notes.append(
            f"{python:,} Python samples: nsys exports their moments and threads, not their frames"
        )
    if not splits and not report.gpu_doubt:
        notes.append(f"{NO_WORK}{why_no_work(report)}")
    return notes
