"""Export: the window, or the selected area, as a trace that ui.perfetto.dev opens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from nsys_tui.export.perfetto import event_count, trace
from nsys_tui.ui.saving import Saving, save, text_writer
from nsys_tui.ui.scoping import report_scope
from nsys_tui.ui.screens.timeline.core import TimelineCore

if TYPE_CHECKING:
    from nsys_tui.analysis.window import Scope
    from nsys_tui.model.progress import Progress
    from nsys_tui.model.report import Report


class Exporting(TimelineCore):
    """The action that writes a file."""

    @property
    def can_export(self) -> bool:
        """Before the report is read, the trace would lack what is still to come."""
        return self.session.finished

    def action_export_view(self) -> None:
        """Asks for a file name and writes the trace in a worker."""
        if self.report is None:
            return
        selection = self.state.selection
        area = selection.span if selection is not None and selection.kind == "area" else None
        window = area or self.state.window
        what = "area" if area else ("window" if window else "whole trace")
        report, scope = self.report, report_scope(self.report, replace(self.state, window=window))
        saving = Saving(
            title=f"Write the {what} as a trace for Perfetto",
            name=f"{Path(self.session.name).stem}.trace.json",
            writers={".json": lambda file, progress: _write(report, scope, file, progress)},
        )
        save(self.app, saving)


def _write(report: Report, scope: Scope, file: BinaryIO, progress: Progress) -> None:
    write = text_writer(lambda: trace(report, scope), event_count(report, scope), "writing events")
    write(file, progress)
