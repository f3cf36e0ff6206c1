"""RowTimes: what a row of the changes stands for, on both timelines."""

from __future__ import annotations

from functools import partial

from nsys_tui.ui.evidence import evidence_of
from nsys_tui.ui.front import Evidence
from nsys_tui.ui.screens.compare.changes import GROUPS, ChangesTable
from nsys_tui.ui.screens.compare.pair import BothPicked, Result, Span
from nsys_tui.ui.screens.compare.timelines import Half, TwinTimelines, with_lane_of
from nsys_tui.ui.screens.result import ResultScreen


class RowTimes:
    """Moves the timelines to rows of the table.

    Args:
        screen: whose result is shown, and whose workers find examples in it.
        table: the changes by name.
        twins: the timelines.
    """

    def __init__(
        self, screen: ResultScreen[Result], table: ChangesTable, twins: TwinTimelines
    ) -> None:
        self._screen, self._table, self._twins = screen, table, twins

    def follow(self, number: int | None) -> None:
        """Shows a row where both timelines are in view beside the table."""
        if self._twins.is_on_screen and self._table.has_focus:
            self.show(number)

    def show(self, number: int | None) -> None:
        """Shows a row in a usual step, or in the one that is looked at."""
        result, row = self._screen.result, self._table.change
        if result is None or number is None:
            return
        twins, step = self._twins, self._step(result)
        if self._table.group == "findings":
            changes = result.comparison.findings or ()
            if number < len(changes):
                sides = (changes[number].a, changes[number].b)
                spans = [None if side is None else side.window for side in sides]
                twins.go_to_spans(spans, changes[number].rule)
        elif row is None:
            twins.go_to_step(step)
        elif self._table.group == "stalls":
            take = partial(self._show_gaps, row.name)
            self._screen.compute("pick", lambda: result.gaps(row.name, step), take)
        else:
            halves = twins.halves

            def work() -> tuple[BothPicked, list[Half | None]]:
                picked = result.examples(self._group, row, step)
                return picked, [*map(with_lane_of, halves, picked)]

            def show(times: tuple[BothPicked, list[Half | None]]) -> None:
                if halves == twins.halves:
                    picked, (first, second) = times
                    twins.halves = first, second
                    twins.go_to_step(step, picked)

            self._screen.compute("pick", work, show)

    def _show_gaps(self, cause: str, spans: tuple[list[Span], BothPicked]) -> None:
        self._twins.go_to_spans(spans[0], cause, spans[1])

    @property
    def _group(self) -> str:
        return GROUPS[self._table.group][1][0]

    def _step(self, result: Result) -> int | None:
        return self._twins.step if self._twins.step is not None else result.step

    def evidence(self) -> Evidence | None:
        """An event of the row's name in the report in front; None where that has none."""
        result, row = self._screen.result, self._table.change
        if result is not None and row is not None:
            spans = result.examples(self._group, row, self._step(result))
            for end, picked in zip((result.pair.a, result.pair.b), spans, strict=True):
                if picked is not None and getattr(end, "session", None) is self._screen.session:
                    return evidence_of(picked.events, picked.row)
        return None
