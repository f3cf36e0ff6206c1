"""KernelDetail: what is shown about the group of GPU work under the cursor: facts, durations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from nsys_tui.analysis.kernel_facts import KernelFacts, Parts, kernel_facts
from nsys_tui.analysis.kernel_table import KernelTable
from nsys_tui.analysis.nvtx.operation_paths import OperationPaths, operation_paths
from nsys_tui.model.arrays import Indices
from nsys_tui.model.categories import Category
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.names import cut, visible
from nsys_tui.render.cells import MUTED, Line
from nsys_tui.render.glyphs import Glyphs
from nsys_tui.render.spark import MARGIN, Histogram, draw_histogram, histogram
from nsys_tui.ui.pane_text import labelled
from nsys_tui.ui.screens.kernels.columns import instance_columns
from nsys_tui.ui.screens.tables import DetailScreen
from nsys_tui.ui.session import Session
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.units import (
    format_bytes,
    format_count,
    format_duration,
    format_rate,
    format_share,
    out_of,
)

NAME_LIMIT: Final = 2_000
"""Characters of a full name that are wrapped into lines."""


def bins_for(width: int) -> int:
    """Bins of a chart of durations in a pane of ``width`` cells."""
    return max(8, min(width - MARGIN - 1, 96))


def histogram_lines(counted: Histogram, height: int, glyphs: Glyphs) -> list[Line]:
    """Durations by equal factors; the axis is labelled at its edges."""
    rows = draw_histogram(counted, max(1, height - 2), glyphs, format_duration)
    return [row.runs() for row in rows]


def fact_lines(facts: KernelFacts, where: str, width: int, note: str = "") -> list[Line]:
    """What the instances of a row have in common, most telling first.

    Args:
        facts: the facts.
        where: GPUs and streams of the row.
        width: cells of a line.
        note: a sentence on top, such as a count of straddling operations.
    """
    pairs = [("", note)] if note else []
    pairs.append(("where", where))
    if facts.shapes.listed:
        pairs.append(("shape", parts_text(facts.shapes)))
    if facts.registers is not None and facts.shared is not None:
        shared = " to ".join(dict.fromkeys(format_bytes(size) for size in facts.shared))
        pairs.append(("regs", f"{_span(facts.registers)}  smem {shared}"))
    if facts.bytes:
        rate = f", {format_rate(facts.bytes * 1e9 / facts.time)}" if facts.time else ""
        pairs.append(("bytes", f"{format_bytes(facts.bytes)}{rate}"))
    pairs.append(("gap p50", f"{_time(facts.gap)}  launch {_time(facts.latency)}"))
    if facts.callers.listed:
        pairs.append(("called by", parts_text(facts.callers)))
    if facts.uncalled:
        pairs.append(("", f"{out_of(facts.uncalled, facts.count)} without an API call"))
    if facts.ranges.listed:
        pairs.append(("nvtx", parts_text(facts.ranges)))
    more = f"  (+{facts.name_count - 1:,} more)" if facts.name_count > 1 else ""
    full = cut(visible(facts.names[0][:NAME_LIMIT]), NAME_LIMIT) if facts.names else ""
    pairs.append(("name", full + more))
    return [line for label, text in pairs for line in labelled(label, text, width)]


def parts_text(parts: Parts) -> str:
    """``mlp 62%, attn 38%, 3 more``; a single part needs no share."""
    if len(parts.listed) == 1 and not parts.more and parts.listed[0].share > 0.9995:
        return visible(parts.listed[0].text)
    texts = [f"{visible(part.text)} {format_share(part.share)}" for part in parts.listed]
    return ", ".join([*texts, *([f"{parts.more} more"] if parts.more else [])])


def _span(pair: tuple[int, int]) -> str:
    return " to ".join(dict.fromkeys(format_count(value) for value in pair))


def _time(ns: float | None) -> str:
    return "-" if ns is None else format_duration(ns)


SLOW_FROM = 1_000_000
"""Operations from which facts take so long that waiting for them is told."""


@dataclass(frozen=True, eq=False)
class Detail:
    """What is seen at once about one row."""

    report: Report
    table: KernelTable
    group: int
    rows: Indices
    """Its operations."""
    durations: Histogram
    bins: int
    """Bins that ``durations`` was made for."""


class Told(NamedTuple):
    """What comes later about a row, because API calls and ranges are looked through."""

    detail: Detail
    facts: KernelFacts
    paths: OperationPaths


class KernelDetail(DetailScreen[KernelTable]):
    """Durations, instances and facts of a group; the screen itself shows which groups there are."""

    def __init__(self) -> None:
        super().__init__()
        self.detail: Detail | None = None
        self._known_paths: OperationPaths | None = None
        self._shown: tuple[KernelTable, int] | None = None

    def forget(self) -> None:
        """Another report: nothing is known of it."""
        self.detail = self._known_paths = self._shown = None

    def _look(self, group: int) -> None:
        """Looks at a group; while one look is under way, only the last wish is kept."""
        report, table = self.report, self.result
        if report is not None and table is not None:
            width = self.query_one("#histogram", LinePane).size.width
            work = partial(find_detail, report, table, group, bins_for(width))
            self.look_at("detail", work, self._show_detail, "#histogram", "#instances", "#facts")

    def _show_detail(self, detail: Detail) -> None:
        if detail.table is not self.result:
            return
        self.detail = detail
        pane = self.query_one("#histogram", LinePane)
        pane.heading(f"Durations of {len(detail.rows):,} (log)")
        glyphs = self.app.glyphs

        def chart(width: int) -> list[Line]:
            # A chart for another width would be cut, so it is counted anew.
            if bins_for(width) != detail.bins and detail is self.detail:
                self.call_later(self._look, detail.group)
            return histogram_lines(detail.durations, pane.size.height, glyphs)

        pane.show_built(chart)
        self._show_instances(detail)
        self._tell(detail)

    def on_line_pane_clicked(self, message: LinePane.Clicked) -> None:
        """A click on a bar goes to the longest of its instances."""
        if (detail := self.detail) is None or message.pane.id != "histogram":
            return
        durations = detail.report.operations.durations(detail.rows)
        inside = detail.durations.members(durations, message.column)
        if len(inside):
            self.instances.go_to_row(int(inside[durations[inside].argmax()]))

    def _tell(self, detail: Detail) -> None:
        """Collects the facts; on a large report they come later than what is seen at once."""
        if not self.session.finished:
            self._show_facts(detail, "reading API calls and ranges ...")
            return
        if len(detail.table.codes) > SLOW_FROM:
            self._show_facts(detail, "computing ...")
        work = partial(_find_facts, self.session, detail)
        failed = partial(self.say_fault, "#facts")
        self.compute_telling("facts", work, self._show_told, self._untold, failed)

    def _show_told(self, told: Told) -> None:
        if told.detail is not self.detail:
            return
        self._show_facts(told.detail, told.facts)
        if self._known_paths is None:
            self._known_paths = told.paths
            self._show_instances(told.detail)

    def _untold(self) -> None:
        """Cancelled: the facts are computed when the cursor comes back."""
        if self.detail is not None:
            self._show_facts(self.detail, "cancelled: another row and back computes them")

    def _clear_detail(self) -> None:
        for pane in self.query(LinePane):
            pane.show([])
        self.instances.title = "Instances"
        self.instances.show_rows((), 0)

    def _show_facts(self, detail: Detail, facts: KernelFacts | str) -> None:
        report, table, group = detail.report, detail.table, detail.group
        pane = self.query_one("#facts", LinePane)
        pane.heading(table.labels[group])
        if isinstance(facts, str):
            pane.show([[(facts, MUTED)]])
            return
        devices = ", ".join(report.devices[code].label for code in table.devices[group])
        ids = sorted({report.streams[code].label for code in table.streams[group]})
        where = f"{devices}  {', '.join(ids[:6])}" + (f" +{len(ids) - 6}" if len(ids) > 6 else "")
        note = ""
        if table.straddling[group]:
            note = f"+{table.straddling[group]:,} straddling: began before this window"
        if table.category[group] == Category.GRAPH:
            note = "graphs traced as a whole: no figures of the kernels inside"
        pane.show_built(lambda width: fact_lines(facts, where, width, note))

    def _show_instances(self, detail: Detail) -> None:
        """The instances; columns of what is not loaded yet come later."""
        paths = self._known_paths
        columns = instance_columns(detail.report, detail.rows, self.state.display, paths)
        self.instances.title = "Instances"
        same = self._shown == (detail.table, detail.group)
        row = self.instances.row if same else None
        self._shown = (detail.table, detail.group)
        self.instances.show_rows(columns, len(detail.rows), row=row)


def paths_of(session: Session, report: Report, progress: Progress) -> OperationPaths:
    """NVTX paths of all operations, found once for all screens; for a worker."""
    return session.memo("operation_paths", lambda: operation_paths(report, progress=progress))


def _find_facts(session: Session, detail: Detail, progress: Progress) -> Told:
    paths = paths_of(session, detail.report, progress)
    return Told(detail, kernel_facts(detail.report, detail.rows, paths), paths)


def find_detail(report: Report, table: KernelTable, group: int, bins: int) -> Detail:
    """Looks at one group of a table."""
    ops, rows = report.operations, table.instances(group)
    durations = ops.durations(rows)
    return Detail(report, table, group, rows, histogram(durations, bins), bins)
