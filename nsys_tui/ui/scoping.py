"""From the shared view state to the scope of an analysis: the one place that translates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.analysis.window import Scope
from nsys_tui.model.target import pid_of

if TYPE_CHECKING:
    from nsys_tui.model.report import Report
    from nsys_tui.state import ViewState


def report_scope(report: Report, state: ViewState) -> Scope:
    """What window and filter let through.

    Streams are chosen by their number; a number that occurs in several processes lets all pass.
    """
    kept = state.filter
    streams = report.streams if kept.streams else ()
    return Scope(
        window=state.window,
        devices=kept.devices or None,
        processes=frozenset(pid_of(pid) for pid in kept.processes) or None,
        streams=frozenset(streams[place].id for place in kept.streams) or None,
    )


def same_scope(old: ViewState, new: ViewState) -> bool:
    """Whether two states look at the same part of the report."""
    return (old.window, old.filter.devices, old.filter.streams, old.filter.processes) == (
        new.window,
        new.filter.devices,
        new.filter.streams,
        new.filter.processes,
    )
