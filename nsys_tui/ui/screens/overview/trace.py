"""WholeTrace: the GPUs over the whole trace, and what the host did meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size

from nsys_tui.timeline.opening import FewSteps, opening
from nsys_tui.ui.session import Session
from nsys_tui.ui.widgets.trace import HINT, AnyRow, TracePane, TraceRow
from nsys_tui.units import format_duration, plural

TALL = 40
"""Rows of a screen from which ranges and a legend are shown."""
FIXED, PART = 16, 4
"""Rows that other panes need at least, and the part of the rest that GPUs may take."""
LEVEL = 5
"""Rows of a tall screen for which there is one level of ranges more."""


class WholeTrace(TracePane):
    """Holds the rows that are known, and shows as many as there is room for."""

    gpu_rows: Sequence[AnyRow] = ()
    host_rows: Sequence[TraceRow] = ()
    few: FewSteps | None = None
    """Steps that stand for all of them."""
    telling: Sequence[int] = ()
    """GPUs that findings are about, the one that others wait for first."""

    def forget(self) -> None:
        """Another report: nothing is known yet."""
        self.gpu_rows, self.host_rows, self.few, self.telling = (), (), None, ()

    def fit_in(self, session: Session, size: Size) -> None:
        """GPUs always; ranges where the screen is tall.

        Args:
            session: of the report.
            size: of the screen.
        """
        most = max(2, (size.height - FIXED) // PART)
        levels = 1 + (size.height - TALL) // LEVEL if self.gpu_rows else most
        there = range(len(self.gpu_rows))
        telling = dict.fromkeys((*(place for place in self.telling if place in there), *there))
        gpus = [self.gpu_rows[place] for place in sorted([*telling][:most])]
        rows = [*gpus, *self.host_rows[: max(levels, 0)]]
        hidden = len(self.gpu_rows) - most
        rest = f" ({plural(hidden, 'more GPU')}: timeline)" if hidden > 0 else ""
        estimated = session.report is not None and not session.exact
        mark = "≈ from a sample, " if estimated and self.gpu_rows else ""
        extent, report = session.extent, session.report
        span = report.span if report is not None and session.exact else None
        work = opening(span, self.few, extent, size.width)
        whole = format_duration(extent[1] - extent[0])
        busy = "" if span is None else format_duration(span[1] - span[0])
        part = "" if work is None else f"GPU work, {busy} of {whole}"
        part = part if self.few is None else f"{self.few} ({whole})".capitalize()
        self.heading(f"{part or 'Whole trace'}{rest}", f"{mark}{HINT}")
        legend = size.height >= TALL and bool(self.gpu_rows)
        self.show(rows, work or extent, legend=legend)
        self.styles.height = len(rows) + legend + 3
        self.set_class(not rows and session.finished, "-empty")
