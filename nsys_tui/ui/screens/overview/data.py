"""What the overview shows, computed off the screen's thread, and what of it a file can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.breakdown import DeviceSplit, device_splits
from nsys_tui.analysis.estimate import kernel_runs
from nsys_tui.analysis.memory import recorded_memory
from nsys_tui.analysis.overview import (
    Headline,
    Overview,
    TopName,
    headline,
    missing,
    overview,
    top_kernels,
)
from nsys_tui.analysis.overview_answer import DOCUMENT, OverviewAnswer
from nsys_tui.analysis.rules.finding import Finding
from nsys_tui.analysis.rules.verdict import judged
from nsys_tui.analysis.timeline.events import naming
from nsys_tui.analysis.timeline.tracks import Section
from nsys_tui.analysis.window import Scope
from nsys_tui.model.target import tid_of
from nsys_tui.render.dominant import Layers
from nsys_tui.render.raster import LaneView
from nsys_tui.text.documents import document_text
from nsys_tui.text.sections import sections
from nsys_tui.ui.saving import Writer, table_writers, text_writer
from nsys_tui.ui.widgets.trace import SummaryRow, TraceRow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_tui.model.events import Operations
    from nsys_tui.model.report import Report
    from nsys_tui.names import NameStyle
    from nsys_tui.ui.session import Session

MOST: Final = 50
"""Kernels and ranges listed."""
CALLS: Final = ("api", "osrt", "MPI")
"""Labels of rows of calls on the timeline."""


def gpu_rows(session: Session, report: Report) -> list[SummaryRow]:
    """One row per GPU with all its work, on the lanes that the timeline draws its streams from."""
    from nsys_tui.timeline.parts import part_tracks

    tracks, _ = part_tracks(session.memo, report, "devices")
    return [SummaryRow(track.label, track.summary) for track in tracks if track.summary is not None]


def recording(choice: object) -> str:
    """Options of ``nsys profile`` that would settle a finding, or show what was not looked at."""
    if isinstance(choice, Finding):
        return choice.settle.partition("nsys profile")[2]
    if isinstance(choice, list):
        return " ".join(one.reason.partition("nsys profile")[2] for one in choice)
    return ""


def first_words(report: Report, splits: Sequence[DeviceSplit]) -> str:
    """The verdict while the rules are still at work."""
    from nsys_tui.analysis.rules import verdict
    from nsys_tui.analysis.rules.case import Case

    return verdict.first_words(Case(report, splits=splits))


def estimated_rows(sample: Operations) -> list[TraceRow]:
    """One row per GPU, shaded by the share of the time that the sample lets expect."""
    rows = []
    for number, device in enumerate(sample.devices):
        lane = kernel_runs(sample, number).lane()
        view = LaneView(lane, layers=Layers.build(lane), summary=True)
        rows.append(TraceRow(device.label, view))
    return rows


def host_rows(session: Session, report: Report, part: str) -> list[TraceRow]:
    """Rows of the host, on the lanes that the timeline draws.

    Args:
        session: keeps the lanes.
        report: the part is loaded.
        part: ``ranges`` of the leading thread by level, or calls of the busiest threads.
    """
    from nsys_tui.timeline.parts import part_tracks

    tracks, layers = part_tracks(session.memo, report, part)
    if part == "ranges":
        rows = sorted((t for t in tracks if t.order[0] == Section.NVTX), key=lambda t: t.order)
        labels = ["nvtx", *(track.words for track in rows[1:])]
    else:
        rows = [track for track in tracks if track.label in CALLS]
        rows = sorted(rows, key=lambda t: t.lane.busy_total if t.lane is not None else 0)[::-1]
        labels = _names(report, [track.thread or -1 for track in rows[:MOST]])
    return [
        TraceRow(label, LaneView(t.lane, label=naming(t.events), layers=layers.get(t.lane)))
        for label, t in zip(labels, rows[:MOST], strict=False)
        if t.lane is not None and t.events is not None and len(t.lane)
    ]


def _names(report: Report, threads: Sequence[int]) -> list[str]:
    """Threads in the few cells there are; those of one name by their numbers."""
    names = [report.thread_name(thread).removeprefix("MPI ") for thread in threads]
    return [
        name if names.count(name) == 1 and not name.startswith("tid ") else str(tid_of(thread))
        for name, thread in zip(names, threads, strict=True)
    ]


def gpu_figures(session: Session, report: Report, names: NameStyle) -> Overview:
    """The part of the overview that needs the operations only."""

    def figures() -> Overview:
        splits = tuple(device_splits(report))
        kernels = top_kernels(report, style=names)
        return _partly(report, headline(report, Scope(), splits), splits, kernels)

    return session.memo(("GPU figures", names), figures)


def estimates(report: Report, sample: Operations, names: NameStyle) -> Overview:
    """Busy shares and top kernels as a sample lets expect them; lengths only serve as shares."""
    span = sample.bounds() or (0, 1)
    shares = [kernel_runs(sample, device).shares for device in range(len(sample.devices))]
    base = span[1] - span[0]
    busy, compute, comm = (round(base * sum(parts)) for parts in zip(*shares, strict=True))
    head = Headline(
        device_count=len(shares),
        base_ns=base,
        session_ns=None,
        busy_ns=busy,
        idle_ns=base * len(shares) - busy,
        compute_ns=compute,
        comm_ns=comm,
        memory_ns=0,
        graph_ns=0,
        exposed_comm_ns=0,
        exposed_memory_ns=0,
        kernel_count=0,
        max_gap_ns=0,
    )
    return _partly(report, head, (), top_kernels(report.with_sample(sample), style=names), span)


def _partly(
    report: Report,
    head: Headline,
    splits: tuple[DeviceSplit, ...],
    kernels: list[TopName],
    base: tuple[int, int] | None = None,
) -> Overview:
    return Overview(
        metadata=report.metadata,
        scope=Scope(),
        base=base or Scope().base(report),
        headline=head,
        devices=splits,
        breakdown={},
        kernels=tuple(kernels[:MOST]),
        ranges=(),
        open_range_count=0,
        missing=tuple(missing(report)),
        notes=(*report.metadata.notes, *report.notes.texts),
        gpu_known=not report.gpu_doubt,
    )


def overview_writers(report: Report, names: NameStyle, section: str) -> dict[str, Writer]:
    """Writers of what ``nsys-tui overview`` prints.

    Args:
        report: the report.
        names: how kernels are named.
        section: the section that formats of one table hold.
    """

    def answer() -> OverviewAnswer:
        result = overview(report, style=names)
        told, bound = judged(report, result.scope, result.devices)
        return OverviewAnswer(report, result, recorded_memory(report), None, told, bound)

    def data() -> Iterator[str]:
        result = answer()
        return document_text(DOCUMENT, result, result, [*result.result.notes, *report.notes])

    def markdown() -> Iterator[str]:
        return sections([*answer().tables().values()], "markdown")

    whole = {".md": text_writer(markdown, 0), ".json": text_writer(data, 0)}
    return table_writers(lambda: answer().tables()[section], 0) | whole
