"""Where both timelines of a comparison stand: on a step, a name, a finding, or a window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.compare.example_events import event_of
from nsys_tui.timeline.painter import Picked
from nsys_tui.ui.screens.base import ReportScreen
from nsys_tui.ui.screens.compare.pair import Pair, Part, Result
from nsys_tui.ui.screens.compare.timelines import Half, TwinTimelines, around, prepared

if TYPE_CHECKING:
    from nsys_tui.analysis.compare.rows import Row

GROUPS: Final = {
    "kernels": ("Kernels", ("kernels", "copies")),
    "copies": ("Copies and memsets", ("copies",)),
    "ranges": ("NVTX ranges", ("ranges",)),
    "api": ("CUDA API", ("api",)),
    "stalls": ("Idle time by cause", ("stalls",)),
    "findings": ("Findings", ()),
}
"""What the table shows, in the order of ``g``: title, and groups of the comparison."""


class ComparePositions(ReportScreen):
    """Moves both timelines to what is compared; ``CompareCore`` says what that is."""

    def __init__(self) -> None:
        super().__init__()
        self.group = "kernels"
        self.result: Result | None = None
        self._lanes_for: Pair | None = None
        self._step: int | None = None

    @property
    def twins(self) -> TwinTimelines:
        """Both timelines."""
        return self.query_one(TwinTimelines)

    def _prepare_lanes(self, result: Result) -> None:
        pair, plans = result.pair, result.plans
        if self._lanes_for == pair:
            return
        self._lanes_for = pair

        def work() -> list[Half | None]:
            ends = (pair.a, pair.b)
            return [
                prepared(end, plan) if isinstance(end, Part) and plan is not None else None
                for end, plan in zip(ends, plans, strict=True)
            ]

        def done(halves: list[Half | None]) -> None:
            self.twins.show_pair((pair.a, pair.b), (halves[0], halves[1]))
            self._go_to_step(result.step)

        self.compute("lanes", work, done)

    def _windows(self, step: int | None) -> tuple[tuple[int, int] | None, ...]:
        """The step of each side, else its window; None where there is neither."""
        result = self.result
        if result is None:
            return None, None
        if step is None:
            return tuple(plan.window if plan is not None else None for plan in result.plans)
        sides = (result.found.a.steps, result.found.b.steps)
        return tuple((int(s.start[step]), int(s.end[step])) for s in sides)

    def _go_to_step(
        self, step: int | None, picked: tuple[Picked | None, Picked | None] = (None, None)
    ) -> None:
        """Puts the same step of both side by side, equally wide; without steps, what is picked."""
        spans = self._windows(step)
        self._step = step
        what = self._step_name(step)
        starts, lengths = [], []
        for span, pick, half in zip(spans, picked, self.twins.halves, strict=True):
            if step is None and pick is not None:
                begin, end = int(pick.events.start[pick.row]), int(pick.events.end[pick.row])
                what = "around one instance"
                span = begin - 4 * (end - begin), end + 4 * (end - begin)
            if span is None:
                report = half.session.report if half is not None else None
                span = (report.span or report.extent) if report is not None else (0, 1)
            starts.append(span[0])
            lengths.append(max(span[1] - span[0], 1))
        width = max(lengths)
        self.twins.look_at((around(starts[0], width), around(starts[1], width)), what, picked)

    def _step_name(self, step: int | None) -> str:
        """What a step is called: by its range, else by its number."""
        if step is None or self.result is None:
            return "all"
        for plan in self.result.plans:
            if plan is not None and step < len(plan.rows):
                ranges = plan.report.ranges
                return ranges.names[int(ranges.name[plan.rows[step]])]
        return f"step {step + 1}"

    def _pick(self, row: Row, step: int | None) -> tuple[Picked | None, Picked | None]:
        """One event of a name on each side."""
        result, (_, groups) = self.result, GROUPS[self.group]
        if result is None or self.group == "stalls":
            return None, None
        picked: list[Picked | None] = []
        for plan, window in zip(result.plans, self._windows(step), strict=True):
            found = event_of(plan, groups[0], row.name, window) if plan is not None else None
            picked.append(None if found is None else Picked(*found))
        return picked[0], picked[1]

    def _go_to_finding(self, row: int) -> None:
        """Each timeline where its side has the finding; the whole where it has none."""
        changes = self.result.found.findings if self.result is not None else None
        if not changes:
            return
        sides = (changes[row].a, changes[row].b)
        windows = []
        for found, half in zip(sides, self.twins.halves, strict=True):
            span = found.window if found is not None else None
            if span is None:
                report = half.session.report if half is not None else None
                span = (report.span or report.extent) if report is not None else (0, 1)
            windows.append(around(span[0], max(span[1] - span[0], 1)))
        self._step = None
        self.twins.look_at((windows[0], windows[1]), changes[row].rule)
