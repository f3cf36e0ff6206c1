"""Export: the window, or the selected area, as a trace that ui.perfetto.dev opens."""

from __future__ import annotations

from pathlib import Path

from nsys_tui.analysis.window import Scope
from nsys_tui.export.perfetto import trace
from nsys_tui.ui.saving import Saving, save, text_writer
from nsys_tui.ui.screens.timeline.core import TimelineCore


class Exporting(TimelineCore):
    """The action that writes a file."""

    def action_export_view(self) -> None:
        """Asks for a file name and writes the trace in a worker."""
        if self.report is None or not self.session.finished:
            self.app.say("wait until the report is read")
            return
        selection = self.state.selection
        area = selection.span if selection is not None and selection.kind == "area" else None
        window = area or self.state.window
        what = "area" if area else ("window" if window else "whole trace")
        title = f"Write the {what} as a trace for Perfetto"
        name = f"{Path(self.session.name).stem}.trace.json"
        report, scope = self.report, Scope(None if window is None else (window[0], window[1]))
        writer = text_writer(lambda: trace(report, scope), 0, "writing events")
        save(self.app, Saving(title, name, {".json": writer}))
