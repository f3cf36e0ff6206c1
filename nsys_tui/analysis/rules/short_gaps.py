"""Idle gaps of GPUs that are too short to be looked at one by one."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.launches import launches_graphs
from nsys_tui.analysis.rules import gap_facts as facts
from nsys_tui.analysis.rules import idle_causes as words
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.copy_advice import mpi_advice
from nsys_tui.analysis.rules.finding import Confidence, Finding
from nsys_tui.analysis.rules.nsys import HOST_COPIES
from nsys_tui.model import intervals
from nsys_tui.units import plural

_MUCH: Final = 0.01
"""Part of the time looked at from which short gaps are told."""


def short_gaps(case: Case) -> list[Finding]:
    """Gaps too short to be looked at one by one, where they add up to much.

    A launch whose call ends only when the GPU is idle already comes late; of others the GPU itself
    needs the time.
    """
    least = max(_MUCH * case.judged_ns, 1)
    below = {total.device: total.below_ns for total in case.stalls.totals}
    device = max(below, key=lambda key: below[key], default=-1)
    if device < 0 or below[device] < least or not len(case.report.api):
        return []
    before, after, reach, begun = case.short_gaps(device, intervals.empty())
    calls = case.report.calls[after]
    late = (calls >= 0) & (case.report.api.end[calls] >= reach)
    starts, ends = intervals.subtract((reach[late], begun[late]), case.launch_bound(device))
    idle = intervals.total(starts, ends)
    if idle < least:
        return []
    why, advice = "each launch comes only after the work before it", "launch further ahead"
    if facts.waits_for_each(case, calls[late]):
        why, advice = "the host waits for each, then launches the next", words.WAIT_ONCE
    if 2 * int(launches_graphs(case.report, calls[late]).sum()) > int(late.sum()):
        advice = words.NEXT_GRAPH
    else:
        advice = f"{advice}, fuse kernels, or capture the phase as a CUDA graph"
    beside = np.stack((before[late], after[late]))
    copies = np.isin(case.report.operations.copy_kind[beside], HOST_COPIES)
    if 2 * int(copies.any(axis=0).sum()) > len(beside[0]):
        advice = mpi_advice(case, np.unique(beside[copies])) or advice
    return case.finding(
        "gpu_idle",
        f"{case.device_labels([device])} idle {units.format_duration(idle)} in"
        f" {plural(len(starts), 'short gap')}: {why}",
        advice,
        subject="idle, short gaps before late launches",
        saved_ns=intervals.total(*case.idle_time.late_part(device, (starts, ends))),
        window=(int(starts[0]), int(ends[-1])),
        device=device,
        screen="2",
        command="nsys-tui stalls REPORT --threshold 1us",
        confidence=Confidence.INFERRED,
        doubt="the host may need a result of the GPU before it can launch",
        settle="nsys-tui stalls REPORT --threshold 1us",
        lost=case.idle_time.idle_part(device, (starts, ends)),
    )
