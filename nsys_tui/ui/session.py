"""Session: one report in the app, with its view state and what is loaded of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.analysis.links import Place
from nsys_tui.config import DisplayConfig
from nsys_tui.model.events import Operations
from nsys_tui.model.report import Report
from nsys_tui.model.target import counted_names, short_gpu
from nsys_tui.names import NameStyle
from nsys_tui.state import (
    ALL_DEPTHS,
    ColourBy,
    CounterStyle,
    Density,
    Display,
    Filter,
    TimeFormat,
    ViewState,
    Window,
)
from nsys_tui.timeline.opening import FewSteps, few_steps
from nsys_tui.ui.memo import Memo

T = TypeVar("T")


NO_REPORT: Final = Path("no report")
"""Stands for a report where none is open."""
FEW: Final = "few steps"
"""Key of the steps that stand for many."""


@dataclass(eq=False)
class Session:
    """One opened report. ``report`` is None until the reader has read its metadata."""

    path: Path
    report: Report | None = None
    state: ViewState = field(default_factory=ViewState)
    sample: Operations | None = None
    """Some of the operations, while the exact ones are still being read."""
    loaded: list[str] = field(default_factory=list)
    """Parts that are complete, in the order of their coming; ``sample`` for a sample."""
    report_id: str = ""
    """Identifies the report by content; empty until it is known."""
    started: bool = False
    """True once loading began."""
    finished: bool = False
    """True when no part is being loaded any more."""
    beside: list[Session] = field(default_factory=list)
    """Other sessions whose lanes stand in this one's timeline."""
    screen: str = ""
    """Where the user was when it left the front; empty before."""
    cancel: threading.Event = field(default_factory=threading.Event)
    results: Memo = field(default_factory=Memo)
    label: str = ""
    """Its name among namesakes, with a folder; empty where the file's name is enough."""
    place: Place | None = None
    """Where a link leads, as long as its GPU is not known yet."""

    @property
    def name(self) -> str:
        """File name for titles, which tells it from other open reports."""
        return self.label or self.path.name

    @property
    def exact(self) -> bool:
        """Whether the GPU operations are complete; figures before that carry "≈"."""
        return "operations" in self.loaded

    @property
    def gpus(self) -> str:
        """``2x H100``, ``A100``; from the devices that ran work, else from the host's."""
        if self.report is None:
            return ""
        worked = self.report.devices if self.exact else ()
        names = [d.info.name if d.info else "GPU" for d in worked]
        names = names or [gpu.name for gpu in self.report.metadata.gpus]
        if set(names) == {"GPU"}:
            return f"{len(names)} GPU{'s' * (len(names) > 1)}"
        return counted_names(map(short_gpu, names))

    @property
    def extent(self) -> tuple[int, int]:
        """The whole trace as far as it is known; (0, 1) before anything is."""
        if self.report is None:
            return 0, 1
        lo, hi = self.report.known_extent
        if self.sample is not None and not self.exact and (bounds := self.sample.bounds()):
            return min(lo, bounds[0]), max(hi, bounds[1])
        return lo, hi

    @property
    def window(self) -> Window:
        """The window shown, in ns."""
        return self.state.shown(self.extent)

    def few_steps(self) -> FewSteps | None:
        """A few of many steps, which stand for all at first; for a worker."""
        report = self.report
        if report is None or not len(report.operations):
            return None
        steps = self.memo("iterations", lambda: find_iterations(report))
        return self.memo(FEW, lambda: few_steps(steps), lasting=True)

    @property
    def known_few_steps(self) -> FewSteps | None:
        """The same where it was found before."""
        few: FewSteps | None = self.results.known(FEW)
        return few

    def memo(self, key: Hashable, make: Callable[[], T], *, lasting: bool = False) -> T:
        """A value computed once and shared by the screens; call it from a worker (``Memo.get``)."""
        return self.results.get(key, make, lasting=lasting)


def initial_state(display: DisplayConfig) -> ViewState:
    """The view state that a report starts with, from the user's settings."""
    return ViewState(
        filter=Filter(min_duration=display.min_duration),
        display=Display(
            names=NameStyle(display.names),
            time=TimeFormat(display.time),
            colour_by=ColourBy(display.colour_by),
            density=Density(display.density),
            counters=CounterStyle(display.counters),
            labels=display.labels != "off",
            nvtx_depth=int(display.nvtx_depth) if display.nvtx_depth.isdigit() else ALL_DEPTHS,
        ),
    )


def nothing_open(state: ViewState) -> Session:
    """What is in front where no report was named: nothing will be loaded for it."""
    return Session(NO_REPORT, state=state, started=True, finished=True)
