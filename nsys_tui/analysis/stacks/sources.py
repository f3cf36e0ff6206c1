"""Which kinds of stacks a report has data of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.stacks.folding import StackSource
from nsys_tui.model.capabilities import Capability

if TYPE_CHECKING:
    from nsys_tui.model.report import Report

NEEDED: Final = {
    StackSource.CPU: Capability.SAMPLES,
    StackSource.CUDA: Capability.CUDA_BACKTRACES,
    StackSource.OSRT: Capability.OSRT_BACKTRACES,
    StackSource.OFF: Capability.SCHED,
}


def first_source(report: Report) -> StackSource:
    """The first source with stacks: GPU time where ranges tell it apart, or nothing else does."""
    if len(report.operations) and (len(report.ranges) or not report.can(Capability.SAMPLES)):
        return StackSource.GPU
    return next((source for source, kind in NEEDED.items() if report.can(kind)), StackSource.GPU)


def sources(report: Report) -> list[StackSource]:
    """The sources that a report has data of."""
    known = [source for source, kind in NEEDED.items() if report.can(kind)]
    gpu = [StackSource.GPU] if len(report.operations) else []
    return [source for source in StackSource if source in (*gpu, *known)]
