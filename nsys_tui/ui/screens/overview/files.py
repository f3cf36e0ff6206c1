"""What of an overview can be written to a file: the same as ``nsys-tui overview`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.analysis.memory import recorded_memory
from nsys_tui.analysis.overview import overview
from nsys_tui.analysis.overview_answer import DOCUMENT, OverviewAnswer
from nsys_tui.analysis.rules.verdict import judged
from nsys_tui.text.documents import document_text
from nsys_tui.text.sections import sections
from nsys_tui.ui.saving import table_writers, text_writer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_tui.model.report import Report
    from nsys_tui.names import NameStyle
    from nsys_tui.ui.saving import Writer


def overview_writers(report: Report, names: NameStyle, section: str) -> dict[str, Writer]:
    """Writers of what ``nsys-tui overview`` prints.

    Args:
        report: the report.
        names: how kernels are named.
        section: the section that formats of one table hold.
    """

    def answer() -> OverviewAnswer:
        found = overview(report, style=names)
        told, bound = judged(report, found.scope, found.devices)
        return OverviewAnswer(report, found, recorded_memory(report), None, told, bound)

    def data() -> Iterator[str]:
        found = answer()
        return document_text(DOCUMENT, found, found, [*found.result.notes, *report.notes])

    def markdown() -> Iterator[str]:
        return sections([*answer().tables().values()], "markdown")

    whole = {".md": text_writer(markdown, 0), ".json": text_writer(data, 0)}
    return table_writers(lambda: answer().tables()[section], 0) | whole
