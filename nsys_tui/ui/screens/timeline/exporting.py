"""Export: the window, or the selected area, as a trace that ui.perfetto.dev opens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from nsys_tui.analysis.window import Scope
from nsys_tui.export.perfetto import event_count, trace
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.ui.saving import Saving, text_writer
from nsys_tui.ui.scoping import report_scope
from nsys_tui.ui.session import Session


def trace_of(session: Session, report: Report) -> Saving:
    """What can be written of a session's report."""
    selection = session.state.selection
    area = selection.span if selection is not None and selection.kind == "area" else None
    window = area or session.state.window
    what = "area" if area else ("window" if window else "whole trace")
    scope = report_scope(report, replace(session.state, window=window))
    return Saving(
        title=f"Write the {what} as a trace for Perfetto",
        name=f"{Path(session.name).stem}.trace.json",
        writers={".json": lambda file, progress: _write(report, scope, file, progress)},
    )


def _write(report: Report, scope: Scope, file: BinaryIO, progress: Progress) -> None:
    write = text_writer(lambda: trace(report, scope), event_count(report, scope), "writing events")
    write(file, progress)
