"""Which kinds of stacks a report has data of, and those of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.stacks.folding import (
    NO_RULES,
    Stacks,
    StackSource,
    call_stacks,
    cpu_stacks,
)
from nsys_tui.analysis.stacks.off_cpu import off_cpu_stacks
from nsys_tui.model.capabilities import Capability

if TYPE_CHECKING:
    from nsys_tui.analysis.stacks.frames import FrameRules
    from nsys_tui.analysis.window import Scope
    from nsys_tui.model.report import Report

NEEDED: Final = {
    StackSource.CPU: Capability.SAMPLES,
    StackSource.CUDA: Capability.CUDA_BACKTRACES,
    StackSource.OSRT: Capability.OSRT_BACKTRACES,
    StackSource.OFF: Capability.SCHED,
}
OF_THREADS: Final = (StackSource.CPU, StackSource.OFF)
"""Sources that can be folded of one thread."""


def host_stacks(
    report: Report,
    source: StackSource,
    scope: Scope,
    rules: FrameRules = NO_RULES,
    thread: int | None = None,
) -> Stacks:
    """Folds any source but GPU time.

    Args:
        report: its report.
        source: what is folded.
        scope: window and processes.
        rules: what becomes of frames.
        thread: globalTid of the only one that counts, of sources in ``OF_THREADS``.

    Raises:
        NoDataError: the source was not recorded.
    """
    if source not in OF_THREADS:
        return call_stacks(report, source, scope, rules=rules)
    fold = cpu_stacks if source is StackSource.CPU else off_cpu_stacks
    return fold(report, scope, rules=rules, thread=thread)


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
