"""Sums of time over all GPUs: what renders, and idle time by its causes."""

from __future__ import annotations

import numpy as np

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.staging import are_staged
from nsys_tui.analysis.stalls.causes import SHARES, Cause
from nsys_tui.analysis.window import clipped
from nsys_tui.model import intervals
from nsys_tui.model.categories import OpKind


def rendering_ns(case: Case) -> int:
    """How long nothing but work of graphics libraries ran, over all devices."""
    ops, alone = case.report.operations, 0
    renders = ops.kind > OpKind.GRAPH
    for rows in case.by_device.values() if renders.any() else ():
        rendering, other = (
            intervals.union(*clipped(ops, rows[renders[rows] == drawn], case.scope.window))
            for drawn in (True, False)
        )
        alone += intervals.total(*intervals.subtract(rendering, other))
    return alone


def idle_by_cause(case: Case) -> list[int]:
    """Idle time in what is looked at, but set-up, by its causes; launch-bound runs are latency.

    Then that at the edges, which counts as far as other GPUs work meanwhile, and what hosts stage.
    """
    gaps, (lo, hi) = case.stalls.gaps, case.base
    inside = np.clip(np.minimum(gaps.end, hi) - np.maximum(gaps.start, lo), 0, gaps.idle)
    inside = np.maximum(0, inside - intervals.covered(case.set_up, gaps.start, gaps.end))
    cause = np.where(gaps.run >= 0, Cause.LAUNCH_LATENCY, gaps.cause)
    cause = np.where(are_staged(case, gaps), len(Cause) + 1, cause)
    cause = np.where(gaps.outside, len(Cause), cause)
    mixed = (gaps.time(*SHARES) > 0) & (cause == gaps.cause)
    idle = np.bincount(cause[~mixed], inside[~mixed], len(Cause) + 2).astype(np.float64)
    part = inside[mixed] / np.maximum(gaps.end[mixed] - gaps.start[mixed], 1)
    for one, time in gaps.shares.items():
        idle[one] += part @ time[mixed]
    return [round(ns) for ns in idle.tolist()]
