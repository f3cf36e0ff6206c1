"""From the shared view state to the scope of an analysis: the one place that translates."""

from __future__ import annotations

from nsys_tui.analysis.window import Scope
from nsys_tui.model.report import Report
from nsys_tui.model.target import pid_of
from nsys_tui.state import TimeFormat, ViewState, Window
from nsys_tui.times import window_text


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
        streams=frozenset(streams[stream].id for stream in kept.streams) or None,
    )


def same_scope(old: ViewState, new: ViewState) -> bool:
    """Whether two states look at the same part of the report."""
    return (old.window, old.filter.devices, old.filter.streams, old.filter.processes) == (
        new.window,
        new.filter.devices,
        new.filter.streams,
        new.filter.processes,
    )


def scope_text(report: Report, scope: Scope, style: TimeFormat = TimeFormat.AUTO) -> str:
    """What a scope lets through, ``2.1-2.2 s, GPU 0, process 4411``; empty for everything."""
    said = []
    if scope.window is not None:
        said.append(window_text(Window(*scope.window), style, report))
    if scope.devices is not None:
        said += [report.devices[device].label for device in scope.device_rows(report)]
    said += [f"process {pid}" for pid in sorted(scope.processes or ())]
    said += [f"stream {stream}" for stream in sorted(scope.streams or ())]
    return ", ".join(said)
