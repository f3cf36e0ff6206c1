"""From a gap to the stacks of what the host ran meanwhile: which source can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.stacks.folding import StackSource
from nsys_tui.analysis.window import touching
from nsys_tui.model.capabilities import Capability
from nsys_tui.state import Window
from nsys_tui.ui.stack_options import Options

if TYPE_CHECKING:
    from nsys_tui.analysis.stalls.rows import StallRow
    from nsys_tui.model.report import Report
    from nsys_tui.ui.host import Host


def show_stacks(app: Host, stall: StallRow | None) -> None:
    """Goes to the stacks of a gap; where nothing was sampled in it, of the window as it is."""
    report = app.session.report
    options = host_stacks(report, stall) if report is not None and stall is not None else None
    if options is None or stall is None:
        if report is not None and stall is not None:
            app.say(report.lacks(Capability.SAMPLES) or "no CPU sample and no backtrace in the gap")
        app.show("stacks")
        return
    app.show("stacks", window=Window(stall.start, stall.end))
    if (front := app.front) is not None:
        front.call_after_refresh(front.restore, options)


def host_stacks(report: Report, stall: StallRow) -> Options | None:
    """What to fold: samples of the launching thread, of any thread, or calls with backtraces."""
    samples = report.samples
    lo, hi = np.searchsorted(samples.start, (stall.start, stall.end))
    if hi > lo:
        of_thread = samples.threads == stall.thread
        if len(of_thread) and of_thread[samples.thread[lo:hi]].any():
            return Options(source=StackSource.CPU, thread=stall.thread)
        return Options(source=StackSource.CPU)
    window = (stall.start, stall.end)
    if (report.osrt.callchain[touching(report.osrt, window)] > 0).any():
        return Options(source=StackSource.OSRT)
    if (report.api.callchain[touching(report.api, window)] > 0).any():
        return Options(source=StackSource.CUDA)
    return None
