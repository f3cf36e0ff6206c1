"""Iterations and their phases as tables, and all of them as one document for programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from nsys_tui import units
from nsys_tui.analysis.iterations.flops import Flops
from nsys_tui.analysis.iterations.parts import IDLE_LABELS, IDLE_PARTS, SHORT, StepParts
from nsys_tui.analysis.iterations.path_answer import PATH, StepPath
from nsys_tui.analysis.iterations.steps import Rule
from nsys_tui.analysis.iterations.table import IterationTable, Spread, iteration_table
from nsys_tui.analysis.nvtx.paths import Paths
from nsys_tui.analysis.window import WHOLE_REPORT, Scope
from nsys_tui.model.arrays import Array, Int64
from nsys_tui.model.report import Report
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

PHASES: Final = 4
"""Phases that have a column of their own where people read."""
LISTED: Final = 20
"""Phases listed where people read."""
CAUSES: Final = 3
"""Causes of idle time that have a column of their own where people read."""
SHORT_PLACE: Final = IDLE_PARTS.index(SHORT)


@dataclass(frozen=True, eq=False)
class IterationAnswer:
    """The iterations of a report, with what their rows need once."""

    report: str
    table: IterationTable
    gpu_doubt: str = ""
    """Why the report's GPU work is not believed."""
    gpu: str = "its GPU"
    """Which GPU the iterations ran on, where it is one."""
    flops: Flops | None = None
    """How much of the GPUs' peak a step used, where the user gave its FLOPs."""
    path: StepPath | None = None
    """The critical path of the step that was asked for."""

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
    def shares(self) -> Array:
        """Busy part of each iteration."""
        return self.table.busy_shares()

    @cached_property
    def outliers(self) -> frozenset[int]:
        """Numbers of the iterations that stand out."""
        return frozenset(self.table.iterations.outliers.tolist())

    @property
    def typical(self) -> int:
        """The steady step whose time is nearest to the median; the first of several."""
        return self.table.iterations.typical

    @property
    def warm_up(self) -> str:
        """How many steps at the beginning are warm-up, in words."""
        count = self.table.iterations.warm_up
        return (
            f"the first {count}: they are warm-up" if count > 1 else "the first one: it is warm-up"
        )

    def phases(self) -> Table:
        """Statistics of whole iterations and of their phases."""
        iterations, parts = self.table.iterations, self.by_phase
        shown = [*parts[:-1][:LISTED], parts[-1]] if len(parts) > 1 else []
        hidden, open_count = max(0, len(parts) - 1 - LISTED), int(iterations.never_closed.sum())
        gpu_step = self.table.gpu_step_ns
        notes = {
            "the host runs ahead: these are times of launching; the GPU takes ≈"
            f" {units.format_duration(round(gpu_step or 0))} a step": gpu_step,
            f"mean to max without {self.warm_up}": iterations.warm_up and len(self.table) > 1,
            f"{open_count} {iterations.unended}: in no statistics": open_count,
            "found by a repeating pattern of kernels: a repeat may be several steps": (
                iterations.rule is Rule.PATTERN
            ),
            f"{iterations.coverage}: of the others nothing is known of the GPU": (
                iterations.coverage
            ),
            f"{hidden} more phases (--format json)": hidden,
        }
        return table_of(
            "iteration_phases",
            f"{units.format_count(len(self.table))} iterations:"
            f" {iterations.name} ({iterations.rule})",
            _PHASE,
            [("whole iteration", self.whole), *shown],
            self,
            [note for note, holds in notes.items() if holds]
            + (self.flops.notes if self.flops else []),
        )

    def where(self, limit: int | None = None) -> Table:
        """Where the time of each iteration went, for people; rows add up to its time."""
        parts, count = self.table.parts, min(limit or len(self.table), len(self.table))
        shown = [place for place in parts.idle_causes if place != SHORT_PLACE][:CAUSES]
        rest = [place for place in parts.idle_causes if place not in shown]
        columns = (*_EACH[:1], *_EACH[3:4], *self._part_columns(), *map(_idle, shown))
        gpus = f"mean of {parts.gpus} GPUs" if parts.gpus != 1 else self.gpu
        notes = {
            parts.note: parts.busy["waiting"].any() or parts.busy["transfer"].any(),
            f"other idle: {', '.join(IDLE_LABELS[place] for place in rest)}; short gaps are those"
            f" below {units.format_duration(parts.threshold_ns)}": rest,
        }
        return table_of(
            "iteration_parts",
            f"Where the time of each iteration went ({gpus})",
            (*columns, *([_others(rest)] if rest else []), _LEAD, _WHY),
            range(count),
            self,
            [note for note, holds in notes.items() if holds and note],
        )

    def _part_columns(self) -> tuple[Column, ...]:
        """Parts of a busy GPU: what did not happen, or is not known, has no column."""
        busy = self.table.parts.busy
        always = ("compute", "transfer", "copies")
        return tuple(_PARTS[name] for name in busy if name in always or busy[name].any())

    def each(
        self, limit: int | None = None, *, exact: bool = True, parts: bool | None = None
    ) -> Table:
        """One row an iteration.

        Args:
            limit: iterations at most.
            exact: a column for every phase.
            parts: columns for where the time went too; by default with ``exact``.
        """
        step_parts = self.table.parts
        split: list[Column] = []
        if (exact if parts is None else parts) and step_parts.gpus:
            split = [*self._part_columns(), _IDLE, *map(_idle, step_parts.idle_causes), _LEAD]
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
            (*_EACH, *split, *phases, _NOTE),
            range(count),
            self,
            [note for note, holds in notes.items() if holds],
        )


def answer_of(
    report: Report,
    pattern: str | None = None,
    scope: Scope = WHOLE_REPORT,
    paths: Paths | None = None,
) -> IterationAnswer:
    """The iterations of a report; arguments and errors are those of ``iteration_table``."""
    table = iteration_table(report, pattern, scope, paths)
    labels = [report.devices[device].label for device in table.parts.places]
    return IterationAnswer(report.name, table, report.gpu_doubt, ", ".join(labels))


def _phase(name: str) -> Column:
    return Column(name, Unit.NS, key="", read=lambda row, answer: answer.times[name][row])


def _remark(row: int, answer: IterationAnswer) -> str:
    iterations = answer.table.iterations
    if iterations.never_closed[row]:
        return iterations.unended
    if row < iterations.warm_up:
        return "warm-up"
    if row not in answer.outliers:
        return ""
    why = answer.table.why(row)
    return f"outlier (z={iterations.z[row]:.1f}){': ' if why else ''}{why}"


def _of_median(row: int, answer: IterationAnswer) -> float | None:
    median = answer.whole.median
    return 100 * int(answer.table.iterations.duration[row]) / median if median else None


def _mean(header: str, time: Callable[[StepParts, int], int]) -> Column:
    """Time of a part of each iteration, as the mean of the GPUs."""
    return Column(
        header, Unit.NS, key="", read=lambda row, a: _per_gpu(a, row, time(a.table.parts, row))
    )


def _part(name: str, header: str) -> Column:
    return _mean(header, lambda parts, row: parts.busy[name][row])


def _idle(place: int) -> Column:
    """Idle time of a cause."""
    label = IDLE_LABELS[place]
    header = label.capitalize() if place == SHORT_PLACE else label
    return _mean(header, lambda parts, row: parts.idle[row, place])


def _others(places: list[int]) -> Column:
    return _mean("Other idle", lambda parts, row: parts.idle[row, places].sum())


def _per_gpu(answer: IterationAnswer, row: int, ns: int) -> float | int | None:
    gpus = answer.table.gpus
    if not answer.table.knows(row):
        return None
    return int(ns) if gpus == 1 else int(ns) / gpus


def _lead(row: int, answer: IterationAnswer) -> float | None:
    lead = float(answer.table.parts.lead[row])
    return None if lead != lead else lead


_PARTS: Final = {
    "compute": _part("compute", "Compute"),
    "transfer": _part("transfer", "Exposed comm"),
    "waiting": _part("waiting", "Waiting for ranks"),
    "copies": _part("copies", "Copies"),
    "graph": _part("graph", "Graphs"),
}
_IDLE: Final = _mean("Idle", lambda parts, row: parts.idle_ns[row])
_LEAD: Final = column("host_lead_mean_ns", "Host lead", _lead)
_WHY: Final = Column("Why longer", key="", read=lambda row, a: a.table.why(row))
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
    column("label", "Iteration", lambda row, a: a.table.iterations.labels[row]),
    column("start_ns", "Start", lambda row, a: a.table.iterations.start[row]),
    data("end_ns", lambda row, a: a.table.iterations.end[row]),
    column("time_ns", "Time", lambda row, a: a.table.iterations.duration[row]),
    Column("Of median", Unit.PERCENT, 1, "of_median_share", _of_median),
    data("warm_up", lambda row, a: row < a.table.iterations.warm_up, Unit.FLAG),
    data("closed", lambda row, a: not a.table.iterations.never_closed[row], Unit.FLAG),
    data("outlier", lambda row, a: row in a.outliers, Unit.FLAG),
    data("deviations", lambda row, a: round(float(a.table.iterations.z[row]), 3), Unit.NONE),
    data("gpu_busy_ns", lambda row, a: a.table.busy[row] if a.table.knows(row) else None),
    Column("GPU busy", Unit.PERCENT, 1, read=lambda row, a: 100 * float(a.shares[row])),
    data(
        "phases_ns",
        lambda row, a: {name: time[row] for name, time in a.times.items()},
        form=Form.MAP,
    ),
)
_SPLIT: Final = (
    data(
        "parts_ns",
        lambda row, a: (
            {name: ns[row] for name, ns in a.table.parts.busy.items()}
            | {"idle": a.table.parts.idle_ns[row]}
            if a.table.knows(row)
            else None
        ),
        form=Form.MAP,
    ),
    data(
        "idle_by_cause_ns",
        lambda row, a: {
            IDLE_PARTS[place]: a.table.parts.idle[row, place]
            for place in a.table.parts.idle_causes
            if a.table.knows(row) and a.table.parts.idle[row, place]
        },
        form=Form.MAP,
    ),
    data("host_lead_mean_ns", _lead),
    data("why_longer", lambda row, a: a.table.why(row)),
)
_NOTE: Final = Column("Note", key="", read=_remark)
_FLOPS: Final = (
    data("step_flops", lambda one, _: one.step_flops, Unit.NONE),
    data("peak_flops", lambda one, _: one.peak_flops, Unit.NONE),
    column("peak_source"),
    column("utilisation_share"),
    column("tensor_share"),
)
DOCUMENT: Final = Document(
    "iterations",
    (
        column("report"),
        data("rule", lambda a, _: a.table.iterations.rule),
        data("name", lambda a, _: a.table.iterations.name),
        number("pid", lambda a, _: _pid(a.table.iterations.process)),
        number("gpus", lambda a, _: a.table.gpus),
        number("count", lambda a, _: len(a.table)),
        data("waiting_known", lambda a, _: a.table.parts.waits_known, Unit.FLAG),
        data("gpu_step_ns", lambda a, _: a.table.gpu_step_ns),
        data("short_gaps_below_ns", lambda a, _: a.table.parts.threshold_ns),
        record("steady", _SPREAD, lambda a, _: ("", a.whole)),
        Column(key="flops", read=lambda a, _: a.flops, inner=_FLOPS, optional=True),
        Column(key="critical_path", read=lambda a, _: a.path, inner=PATH, optional=True),
        records("phases", _PHASE, lambda a, _: a.by_phase),
        records("iterations", (*_EACH, *_SPLIT), lambda a, _: range(len(a.table))),
    ),
)
"""Iterations as JSON."""


def _pid(process: int) -> int | None:
    return pid_of(process) if process >= 0 else None
