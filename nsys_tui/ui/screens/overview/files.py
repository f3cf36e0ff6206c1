"""What of an overview can be written to a file: the same as ``nsys-tui overview`` prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nsys_tui.analysis.memory import recorded_memory
from nsys_tui.analysis.overview import overview
from nsys_tui.text.overview import tables_of
from nsys_tui.text.overview_data import as_json
from nsys_tui.text.sections import sections
from nsys_tui.ui.saving import table_writers, text_writer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_tui.model.report import Report
    from nsys_tui.model.table import Table
    from nsys_tui.names import NameStyle
    from nsys_tui.ui.saving import Writer


def overview_writers(report: Report, names: NameStyle, section: str) -> dict[str, Writer]:
    """Writers of what ``nsys-tui overview`` prints.

    Args:
        report: the report.
        names: how kernels are named.
        section: the section that formats of one table hold.
    """

    def tables() -> dict[str, Table]:
        found = overview(report, style=names)
        return tables_of(report, found, recorded_memory(report), None)

    def data() -> Iterator[str]:
        found = overview(report, style=names)
        yield json.dumps(as_json(report, found, recorded_memory(report)), indent=1) + "\n"

    def markdown() -> Iterator[str]:
        yield from sections([*tables().values()], "markdown")

    whole = {".md": text_writer(markdown, 0), ".json": text_writer(data, 0)}
    return table_writers(lambda: tables()[section], 0) | whole
