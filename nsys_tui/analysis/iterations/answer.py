"""Iterations and their phases as tables, and all of them as one document for programs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from nsys_tui import units
from nsys_tui.model.table import (
    Column,
    Document,
    Form,
    Table,
    Unit,
    column,
    data,
    number,
    record,
    records,
    table_of,
)
from nsys_tui.model.target import pid_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.analysis.iterations.table import IterationTable, Spread
    from nsys_tui.model.events import Int64

PHASES: Final = 4
"""Phases that have a column of their own where people read."""
LISTED: Final = 20
"""Phases listed where people read."""


@dataclass(frozen=True, eq=False)
class IterationAnswer:
    """The iterations of a report, with what their rows need once."""

    report: str
    table: IterationTable
    gpu_doubt: str = ""
    """Why the report's GPU work is not believed."""

    @cached_property
    def whole(self) -> Spread:
        """Statistics of whole iterations."""
        return self.table.whole()

    @cached_property
    def by_phase(self) -> list[tuple[str, Spread]]:
        """Statistics of the phases."""
        return self.table.by_phase()

    @cached_property
    def times(self) -> dict[str, Int64]:
        """Time of each phase in every iteration."""
        return dict(zip(self.table.phases.names, self.table.phases.time, strict=True))

    @cached_property
    def shares(self) -> NDArray[Any]:
        """Busy part of each iteration."""
        return self.table.busy_shares()

    @cached_property
    def outliers(self) -> frozenset[int]:
        """Numbers of the iterations that stand out."""
        return frozenset(self.table.found.outliers.tolist())

    def phases(self) -> Table:
        """Statistics of whole iterations and of their phases."""
        found, parts = self.table.found, self.by_phase
        shown = [*parts[:-1][:LISTED], parts[-1]]
        hidden, open_count = len(parts) - len(shown), int(found.never_closed.sum())
        notes = {
            "mean to max without the first one: it is warm-up": len(self.table) > 1,
            f"{open_count} never closed: in no statistics": open_count,
            "found by a repeating pattern of kernels: no NVTX range tells phases": not len(
                found.rows
            ),
            f"{hidden} more phases (--format json)": hidden,
        }
        return table_of(
            "iteration_phases",
            f"{units.format_count(len(self.table))} iterations: {found.name} ({found.rule})",
            _PHASE,
            [("whole iteration", self.whole), *shown],
            self,
            [note for note, holds in notes.items() if holds],
        )

    def each(self, limit: int | None = None, *, exact: bool = True) -> Table:
        """One row an iteration; with ``exact``, a column for every phase."""
        count = min(limit or len(self.table), len(self.table))
        named = [name for name, _ in self.by_phase]
        chosen = named if exact or len(named) <= PHASES + 1 else [*named[:PHASES], named[-1]]
        phases = [_phase(name) for name in chosen if len(named) > 1]
        left, hidden, gpus = len(self.table) - count, len(named) - len(chosen), self.table.gpus
        mean = f"GPU busy is the mean of {gpus} GPUs" if gpus else "no GPU work"
        mean = "how busy GPUs were is not known" if self.gpu_doubt else mean
        notes = {
            f"{left} more iterations (--limit 0)": left,
            f"{hidden} more phases are not shown here (--format csv)": hidden,
            mean: not exact and gpus != 1,
        }
        return table_of(
            "iterations",
            "Each iteration",
            (*_EACH, *phases, _NOTE),
            range(count),
            self,
            [note for note, holds in notes.items() if holds],
        )


def _phase(name: str) -> Column:
    return Column(name, Unit.NS, key="", read=lambda row, answer: answer.times[name][row])


def _remark(row: int, answer: IterationAnswer) -> str:
    found = answer.table.found
    if found.never_closed[row]:
        return "never closed"
    if not row:
        return "warm-up"
    return f"outlier (z = {found.z[row]:.1f})" if row in answer.outliers else ""


def _of_median(row: int, answer: IterationAnswer) -> float | None:
    median = answer.whole.median
    return 100 * int(answer.table.found.duration[row]) / median if median else None


_SPREAD: Final = (
    column("mean_ns", "Mean", lambda row, _: row[1].mean),
    column("median_ns", "Median", lambda row, _: row[1].median),
    column("stddev_ns", "StdDev", lambda row, _: row[1].deviation),
    column("min_ns", "Min", lambda row, _: row[1].least),
    column("max_ns", "Max", lambda row, _: row[1].most),
)
_PHASE: Final = (
    Column(
        "Share",
        Unit.PERCENT,
        1,
        read=lambda row, a: 100 * row[1].mean / a.whole.mean if a.whole.mean else None,
    ),
    *_SPREAD,
    column("name", "Phase", lambda row, _: row[0]),
)
_EACH: Final = (
    column("label", "Iteration", lambda row, a: a.table.found.labels[row]),
    column("start_ns", "Start", lambda row, a: a.table.found.start[row]),
    data("end_ns", lambda row, a: a.table.found.end[row]),
    column("time_ns", "Time", lambda row, a: a.table.found.duration[row]),
    Column("Of median", Unit.PERCENT, 1, "of_median_share", _of_median),
    data("warm_up", lambda row, _: row == 0, Unit.FLAG),
    data("closed", lambda row, a: not a.table.found.never_closed[row], Unit.FLAG),
    data("outlier", lambda row, a: row in a.outliers, Unit.FLAG),
    data("deviations", lambda row, a: round(float(a.table.found.z[row]), 3), Unit.NONE),
    data("gpu_busy_ns", lambda row, a: a.table.busy[row]),
    Column("GPU busy", Unit.PERCENT, 1, read=lambda row, a: 100 * float(a.shares[row])),
    data(
        "phases_ns",
        lambda row, a: {name: time[row] for name, time in a.times.items()},
        form=Form.MAP,
    ),
)
_NOTE: Final = Column("Note", key="", read=_remark)
DOCUMENT: Final = Document(
    "iterations",
    (
        column("report"),
        data("rule", lambda a, _: a.table.found.rule),
        data("name", lambda a, _: a.table.found.name),
        number("pid", lambda a, _: _pid(a.table.found.process)),
        number("gpus", lambda a, _: a.table.gpus),
        number("count", lambda a, _: len(a.table)),
        record("steady", _SPREAD, lambda a, _: ("", a.whole)),
        records("phases", _PHASE, lambda a, _: a.by_phase),
        records("iterations", _EACH, lambda a, _: range(len(a.table))),
    ),
)
"""Iterations as JSON."""


def _pid(process: int) -> int | None:
    return pid_of(process) if process >= 0 else None
