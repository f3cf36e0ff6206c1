"""The critical path of a step as tables: what is on it, and one stretch after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Final, NamedTuple

from nsys_tui.analysis.iterations.critical_path import Edge, Segment, What, critical_path
from nsys_tui.analysis.iterations.steps import Iterations
from nsys_tui.errors import UsageError
from nsys_tui.model.report import Report
from nsys_tui.model.table import (
    Column,
    Table,
    Unit,
    column,
    columns,
    data,
    number,
    records,
    table_of,
)
from nsys_tui.units import format_count, format_duration

SLOWEST, TYPICAL = "slowest", "typical"
LISTED: Final = 20
"""Kinds of work listed where people read."""


class OnPath(NamedTuple):
    """Work of one name at one place."""

    what: str
    name: str
    where: str
    time_ns: int
    """Sum of its segments: by so much the step gets shorter at most if it took no time there."""
    segments: int
    share: float
    """Of the step, 0 to 1."""


class Stretch(NamedTuple):
    """Neighbouring segments on one stream or one thread."""

    start_ns: int
    end_ns: int
    what: str
    name: str
    where: str
    edge: str
    """Of its first segment in time: how it is known to have waited for what comes before it."""
    row: int
    """Row of ``Report.operations`` of the longest operation, -1 for the host."""

    @property
    def time_ns(self) -> int:
        """Length."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, eq=False)
class StepPath:
    """The critical path of one step."""

    step: int
    label: str
    start_ns: int
    end_ns: int
    segments: Sequence[Segment]

    @property
    def time_ns(self) -> int:
        """Length of the step, which the segments add up to."""
        return self.end_ns - self.start_ns

    @cached_property
    def work(self) -> list[OnPath]:
        """What is on the path, by name and place, most time first."""
        sums: dict[tuple[str, str, str], list[int]] = {}
        for one in self.segments:
            entry = sums.setdefault((one.what, one.name, one.where), [0, 0])
            entry[0] += one.ns
            entry[1] += 1
        whole = max(self.time_ns, 1)
        listed = [OnPath(*key, ns, count, ns / whole) for key, (ns, count) in sums.items()]
        return sorted(listed, key=lambda work: (-work.time_ns, work.name))

    @cached_property
    def stretches(self) -> list[Stretch]:
        """The path in order of time, stream by stream and thread by thread."""
        return [_stretch([*group]) for _, group in groupby(self.segments, lambda one: one.where)]

    def longest(self, listed: OnPath | Stretch) -> Segment:
        """The longest segment of some work, or of a stretch."""
        if isinstance(listed, OnPath):
            parts = (one for one in self.segments if one[2:5] == listed[:3])
        else:
            lo, hi = listed.start_ns, listed.end_ns
            parts = (one for one in self.segments if lo <= one.start < hi)
        return max(parts, key=lambda one: one.ns)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """How the edges are known."""
        edges = [one.edge for one in self.segments]
        told = [f"{format_count(edges.count(edge))} {edge}" for edge in (Edge.RECORDED, Edge.ORDER)]
        assumed = edges.count(Edge.ASSUMED)
        notes = [
            "a line's time is the most by which the step gets shorter if that work took none in it",
            f"what waited for what: {', '.join(told)}, {format_count(assumed)} assumed"
            + " (nothing recorded links them, times fit)" * bool(assumed),
        ]
        rest = sum(one.ns for one in self.segments if one.what is What.REST)
        return (*notes, *([f"{format_duration(rest)} are not followed"] if rest else []))

    def tables(self, limit: int | None = None) -> list[Table]:
        """What is on the path, and its stretches.

        Args:
            limit: stretches at most; None for all.
        """
        work, stretches = self.work[:LISTED], self.stretches[:limit]
        rest, left = len(self.work) - len(work), len(self.stretches) - len(stretches)
        notes = [*([f"{rest} more (--format json)"] if rest else []), *self.notes]
        hidden = [f"{left} more (--limit 0)"] if left else []
        title = f"Critical path of {self.label}: {format_duration(self.time_ns)}"
        return [
            table_of("path_work", title, WORK, work, self, notes),
            table_of("path", "From its start to its end", STRETCH, stretches, self, hidden),
        ]


def _stretch(group: list[Segment]) -> Stretch:
    """Named after the work with most time in it."""
    time: dict[tuple[str, str], int] = {}
    for one in group:
        time[one.what, one.name] = time.get((one.what, one.name), 0) + one.ns
    what, name = max(time, key=lambda key: time[key])
    row = max(group, key=lambda one: (one.row >= 0, one.ns)).row
    more = f" and {len(group) - 1} more" if len(group) > 1 else ""
    first = group[0]
    return Stretch(first.start, group[-1].end, what, name + more, first.where, first.edge, row)


def step_path(report: Report, iterations: Iterations, step: int) -> StepPath:
    """The critical path of one step.

    Args:
        report: the report.
        iterations: its steps.
        step: place of the step among them.
    """
    start, end, thread = int(iterations.start[step]), int(iterations.end[step]), -1
    if len(iterations.rows):
        ranges = report.ranges
        thread = int(ranges.threads[ranges.thread[iterations.rows[step]]])
    segments = critical_path(report, start, end, iterations.process, thread)
    return StepPath(step, iterations.labels[step], start, end, segments)


def step_of(iterations: Iterations, text: str, typical: int) -> int:
    """The step that a text means: its label, its number from 0, ``slowest`` or ``typical``.

    Raises:
        UsageError: there is no such step.
    """
    if text == SLOWEST:
        return int((iterations.duration * iterations.counted).argmax())
    if text == TYPICAL:
        return typical
    if (number := iterations.number_of(text)) is not None:
        return number
    raise UsageError(
        f"no step {text!r}",
        hint=f"{SLOWEST}, {TYPICAL}, a label such as {iterations.labels[0]!r},"
        f" or 0 to {len(iterations) - 1}",
    )


WORK: Final = (
    column("time_ns", "Time"),
    Column("Share", Unit.PERCENT, 1, read=lambda work, _: 100 * work.share),
    column("count", "Count", lambda work, _: work.segments, Unit.COUNT),
    column("what", "What"),
    column("name", "Name"),
    column("where", "Where"),
)
STRETCH: Final = (
    column("start_ns", "Start"),
    column("time_ns", "Time"),
    Column("Share", Unit.PERCENT, 1, read=lambda one, path: 100 * one.time_ns / path.time_ns),
    column("what", "What"),
    column("name", "Name"),
    column("where", "Where"),
    column("linked", "Linked", lambda one, _: one.edge),
)
_SEGMENT: Final = (
    data("start_ns", lambda one, _: one.start),
    data("end_ns", lambda one, _: one.end),
    data("time_ns", lambda one, _: one.ns),
    *columns("what name where"),
    data("linked", lambda one, _: one.edge),
    number("operation_row", lambda one, _: one.row if one.row >= 0 else None),
)
PATH: Final = (
    column("label"),
    *columns("start_ns end_ns time_ns"),
    records("work", WORK, lambda path, _: path.work),
    records("segments", _SEGMENT, lambda path, _: path.segments),
)
"""A path as JSON."""
