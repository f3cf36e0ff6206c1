"""Idle time that holds up no GPU: while the host reads results, and before nothing but clean-up."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Confidence, Finding, Severity
from nsys_tui.analysis.rules.gap_facts import after_all_launches
from nsys_tui.analysis.rules.nsys import TO_HOST
from nsys_tui.analysis.rules.run import A_RUN
from nsys_tui.analysis.stalls.causes import Edge, Gaps
from nsys_tui.model.arrays import Bool
from nsys_tui.model.categories import OpKind

_REST: Final = 0.1
"""Part of a GPU's work up to which what comes last may be clean-up."""
_MUCH: Final = 0.1
"""Part of the time looked at from which it is told."""


def before_clean_up(case: Case, gaps: Gaps) -> Bool:
    """Before which gaps a GPU did all but a few kernels that never ran before, and copies nothing.

    What these make is not read, though results were, so that they end what the GPU is there for. In
    a window before more work none does.
    """
    ops = case.report.operations
    since = np.full(len(case.report.devices), len(ops))
    ends_here = case.report.span is not None and case.report.span[1] <= case.base[1]
    for device, rows in case.by_device.items() if ends_here else ():
        last = rows[-A_RUN:]
        ends = (ops.kind[last] == OpKind.KERNEL) & np.isin(last, case.first_of_names)
        last = last[len(last) - int(np.argmin(np.append(False, ends)[::-1])) :]
        rest = np.cumsum(ops.durations(last)[::-1])[::-1]
        read = np.isin(ops.copy_kind[case.copies[ops.device[case.copies] == device]], TO_HOST).any()
        last = last[read & (rest <= _REST * case.idle_time.busy_ns(device))]
        since[device] = last[0] if len(last) and len(last) < len(rows) else len(ops)
    return np.asarray((gaps.next >= 0) & (gaps.next >= since[gaps.device]), np.bool_)


def clean_up(case: Case) -> list[Finding]:
    """The idle time of one GPU before its clean-up, of which nobody can tell what it holds up."""
    gaps = case.stalls.gaps
    return _unpriced(
        case,
        gaps.take((gaps.edge == Edge.INNER) & before_clean_up(case, gaps)),
        "after its results, before clean-up",
        "no fault of the GPU's work: nothing waits for what comes after, but the program's end",
        subject="idle before clean-up",
        doubt="kernels that run once may work on what the host made there",
    )


def results_read(case: Case) -> list[Finding]:
    """Idle time after all launches: no work waits for it, but it may be most of a short run.

    Of a few operations, done once, that is no matter.
    """
    if case.is_one_shot:
        return []
    gaps = case.stalls.gaps
    return _unpriced(
        case,
        gaps.take((gaps.edge == Edge.INNER) & after_all_launches(case, gaps)),
        "after its last kernel, while the host reads managed results",
        "prefetch them to the host first, and compute on the GPU what is made of them",
        subject="the host reading managed results",
        doubt="a program that only checks its results there does so once",
    )


def _unpriced(
    case: Case, gaps: Gaps, when: str, advice: str, *, subject: str, doubt: str
) -> list[Finding]:
    """Some gaps of the GPU that idles most in them, where that is much: it has no price."""
    idle = np.bincount(gaps.device, gaps.idle, minlength=1)
    device = int(np.argmax(idle))
    if idle[device] < max(_MUCH * case.base_ns, 1):
        return []
    gaps = gaps.take(gaps.device == device)
    return case.finding(
        "gpu_idle",
        f"{case.device_labels([device])} idle {units.format_duration(int(idle[device]))} {when}",
        advice,
        subject=subject,
        saved_ns=0,
        stake_ns=int(idle[device]),
        window=(int(gaps.start[0]), int(gaps.end[-1])),
        device=device,
        screen="5",
        command="nsys-tui stalls REPORT",
        at_most=Severity.MEDIUM,
        confidence=Confidence.INFERRED,
        doubt=doubt,
        settle="nsys-tui stalls REPORT",
        lost=case.idle_time.idle_part(device, (gaps.start, gaps.end)),
    )
