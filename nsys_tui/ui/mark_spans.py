"""Between two marks: how far they are apart, and what the GPUs did meanwhile."""

from __future__ import annotations

from nsys_tui.analysis.breakdown import device_splits
from nsys_tui.analysis.overview import headline
from nsys_tui.analysis.window import Scope
from nsys_tui.model.report import Report
from nsys_tui.state import Mark
from nsys_tui.units import format_duration, format_share


def span_between(first: Mark, last: Mark) -> str:
    """``a-b 29.1 ms``."""
    return f"{first.letter}-{last.letter} {format_duration(last.time - first.time)}"


def split_between(report: Report, first: Mark, last: Mark) -> str:
    """``a-b 29.1 ms: compute 65%, idle 17%`` of the GPUs together; slow, for a worker.

    Args:
        report: its operations are loaded.
        first: the earlier mark.
        last: the later one.
    """
    span = span_between(first, last)
    if last.time <= first.time or not len(report.operations):
        return span
    scope = Scope((first.time, last.time))
    head = headline(report, scope, tuple(device_splits(report, scope)))
    whole = head.device_count * head.base_ns
    parts = {
        "compute": head.compute_ns,
        "comm": head.comm_ns,
        "memory": head.memory_ns,
        "graph": head.graph_ns,
        "idle": head.idle_ns,
    }
    shares = (f"{name} {format_share(ns, whole)}" for name, ns in parts.items() if ns)
    return f"{span}: {', '.join(shares)}"
