"""The reduce step: summaries of reports become one fleet of ranks on one clock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Final

import numpy as np

from nsys_tui.fleet.collectives import Matched, match
from nsys_tui.fleet.ranks import BY_ORDER
from nsys_tui.fleet.summary import (
    MAPPED,
    Collectives,
    Failure,
    Options,
    ProcessSummary,
    ReportSummary,
)
from nsys_tui.fleet.summary_parts import METRIC_SHIFT, metric_grid
from nsys_tui.fleet.times import Grid, SessionClock, grid_over, rebinned
from nsys_tui.model.arrays import Float64, Int64
from nsys_tui.units import format_duration, named_ranks

DEFAULT_BINS: Final = 500
"""Bins of a heat map at most; at least half as many."""


class Clock(StrEnum):
    """How the clocks of reports are put together."""

    AUTO = "auto"
    UTC = "utc"
    ENDS = "ends"
    SESSION = "session"


@dataclass(frozen=True, eq=False)
class Member:
    """One rank: a process of a report."""

    rank: int
    source: str
    """What the rank was taken from."""
    path: str
    report: ReportSummary
    process: ProcessSummary
    clock: SessionClock
    of_other_run: bool = False
    """Captured at another time than the largest run, and not on its clock."""

    @property
    def offset(self) -> int:
        """ns to add to the session's zero to get fleet time."""
        return self.clock.offset

    @property
    def guessed(self) -> bool:
        """Whether nothing sure tells its rank."""
        return self.source == BY_ORDER or self.source.startswith("≈")

    @property
    def file(self) -> str:
        """File name of the report."""
        return os.path.basename(self.path)

    @property
    def base(self) -> tuple[int, int]:
        """What shares are of, in session time: the window, else the span of the GPU work."""
        return self.process.window or self.report.base

    @property
    def lasted(self) -> int:
        """Length of that, ns."""
        return self.base[1] - self.base[0]

    @property
    def gpus(self) -> str:
        """The GPUs it used."""
        return ", ".join(self.process.devices)


@dataclass(frozen=True, eq=False)
class Fleet:
    """All ranks in rank order, on one clock that begins with the first session."""

    members: tuple[Member, ...]
    failures: tuple[Failure, ...]
    clock: Clock
    origin: int = 0
    """UTC time of fleet time 0, ns; 0 where no report tells."""
    options: Options = field(default_factory=Options)
    notes: tuple[str, ...] = ()
    left_out: tuple[Failure, ...] = ()
    """Reports that are no ranks of their own: copies, and captures of another run."""
    without: tuple[str, ...] = ()
    """Files of other runs that this is the ``run`` without."""

    @cached_property
    def run(self) -> Fleet:
        """The largest run alone: sums over ranks, and steps and calls side by side, are of one."""
        kept = tuple(member for member in self.members if not member.of_other_run)
        if len(kept) == len(self.members):
            return self
        others = dict.fromkeys(m.file for m in self.members if m.of_other_run)
        return replace(self, members=kept, without=tuple(others))

    @cached_property
    def collectives(self) -> Matched:
        """Collectives matched over the ranks of a run whose clocks are aligned."""
        calls_of = [
            m.process.collectives if m.clock.aligned and not m.of_other_run else Collectives()
            for m in self.members
        ]
        return match(calls_of, [member.clock for member in self.members])

    @cached_property
    def span(self) -> tuple[int, int]:
        """First operation's start to last one's end over all ranks, in fleet time."""
        bounds = [
            tuple(map(member.clock.fleet_time, member.base))
            for member in self.members
            if len(member.process.devices)
        ]
        if not bounds:
            return 0, 1
        return min(lo for lo, _ in bounds), max(hi for _, hi in bounds)

    @cached_property
    def absent(self) -> list[int]:
        """Ranks of the program without a report, where ranks are told and not guessed."""
        world = max((m.report.world or 0 for m in self.members), default=0)
        if world < 2 or any(member.guessed for member in self.members):
            return []
        return sorted(set(range(world)) - {member.rank for member in self.members})

    def cut_to(self, parts: Mapping[str, ReportSummary | Failure], options: Options) -> Fleet:
        """The same ranks on the same clock, with summaries of a part.

        Args:
            parts: by path; a rank whose report failed is left out.
            options: what they are of; the window in fleet time.
        """
        kept = [
            replace(member, report=part, process=process)
            for member in self.members
            if isinstance(part := parts[member.path], ReportSummary)
            for process in part.processes
            if (process.process, process.unit) == (member.process.process, member.process.unit)
        ]
        return replace(
            self,
            members=tuple(kept),
            failures=(*self.failures, *(p for p in parts.values() if isinstance(p, Failure))),
            options=options,
            notes=tuple(dict.fromkeys((*only_notes(options), *self.notes))),
        )

    @property
    def rows(self) -> list[tuple[int, int]]:
        """(member, device) of every row of the heat map."""
        return [
            (place, device)
            for place, member in enumerate(self.members)
            for device in range(len(member.process.devices))
        ]

    def label(self, row: tuple[int, int]) -> str:
        """``3`` or, where a rank has several GPUs, ``3 GPU 1``."""
        member = self.members[row[0]]
        devices = member.process.devices
        return f"{member.rank} {devices[row[1]]}" if len(devices) > 1 else str(member.rank)

    def mpi_shares(self) -> dict[int, float]:
        """Part of its session that each rank was in MPI calls, 0 to 1, where any was."""
        if "mpi" not in self.options.families:
            return {}
        place = self.options.families.index("mpi")
        return {
            member.rank: ns / whole
            for member in self.members
            if (whole := member.lasted or member.report.session_ns)
            and (ns := int(member.process.stats[place].inside.sum()))
        }

    def grid(self, most: int = DEFAULT_BINS, *, metrics: bool = False) -> Grid:
        """Bins over the whole fleet, as fine as all reports allow; ``edges`` tells their times."""
        grids = [member.report.grid for member in self.members]
        shift = max((g.shift for g in grids), default=0)
        lo, hi = self.span
        return grid_over(
            lo + self.origin, hi + self.origin, most, shift + METRIC_SHIFT if metrics else shift
        )

    def edges(self, grid: Grid) -> Int64:
        """Edges of bins in fleet time, int64 [bins + 1]."""
        return grid.edges(self.origin)

    def _moved(self, member: Member) -> int:
        """From the clock of a report's bins to that of the fleet's: 0 where both are UTC."""
        middle = sum(member.base) // 2
        return member.clock.fleet_time(middle) - middle + self.origin - member.report.anchor

    def heat(self, figure: str, grid: Grid) -> Int64:
        """One of ``summary.MAPPED`` for every row and bin, ns."""
        place = MAPPED.index(figure)
        return self._map(grid, lambda m, device: m.process.heat[device, place])

    def held_memory(self, grid: Grid) -> Int64:
        """Most bytes of GPU memory held in each bin; -1 for rows that did not record it."""

        def own(member: Member, device: int) -> Int64 | None:
            return member.process.memory[device] if member.process.memory.size else None

        return self._map(grid, own, peak=True)

    def _map(
        self, grid: Grid, values: Callable[[Member, int], Int64 | None], *, peak: bool = False
    ) -> Int64:
        cells = np.full((len(self.rows), grid.count), -1, np.int64)
        for row, (who, device) in enumerate(self.rows):
            member = self.members[who]
            own = values(member, device)
            if own is not None:
                moved = self._moved(member)
                cells[row] = rebinned(own, member.report.grid, grid, moved=moved, peak=peak)
        return cells

    @cached_property
    def unknown(self) -> list[str]:
        """Notes on whose work is not in a figure over ranks, if anybody's; why is in ``notes``."""
        ranks = [member.rank for member in self.members if member.report.gpu_doubt]
        return [
            *[f"GPU work of {named_ranks(ranks)} is not known: it is not in this"] * bool(ranks),
            *[f"another run, not in this: {listed(self.without)}"] * bool(self.without),
        ]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the GPU metrics that any report sampled."""
        return tuple(dict.fromkeys(name for r in self.reports for name in r.metrics))

    @cached_property
    def reports(self) -> tuple[ReportSummary, ...]:
        """The reports, by their lowest rank."""
        return tuple({member.path: member.report for member in self.members}.values())

    def metric(self, name: str, grid: Grid) -> tuple[list[str], Float64]:
        """Mean of a metric's samples in each bin, by host and GPU; NaN where there is none.

        Returns:
            a label for each row, and float64 [rows, bins].
        """
        labels, rows = [], []
        for path, member in {m.path: m for m in self.members}.items():
            report = member.report
            if name not in report.metrics:
                continue
            place = report.metrics.index(name)
            own, moved = metric_grid(report.grid), self._moved(member)
            for gpu, number in enumerate(report.metric_gpus):
                sums = rebinned(report.metric_sum[gpu, place], own, grid, moved=moved)
                counts = rebinned(report.metric_count[gpu, place], own, grid, moved=moved)
                labels.append(f"{report.host or os.path.basename(path)} GPU {number}")
                with np.errstate(invalid="ignore", divide="ignore"):
                    rows.append(sums / counts)
        return labels, np.array(rows).reshape(len(rows), grid.count)


def only_notes(options: Options) -> list[str]:
    """What counts, where that is not everything."""
    choice = options.choice
    chosen = {"process": choice.processes, "GPU": choice.devices, "stream": choice.streams}
    notes = [
        f"only {kind} {listed(map(str, numbers))} of each report"
        for kind, numbers in chosen.items()
        if numbers is not None
    ]
    if options.step is not None:
        notes.append(f"only step {options.step!r} of each rank")
    if options.nvtx is not None:
        notes.append(f"only the NVTX range {options.nvtx!r} of each rank")
    if options.window is not None:
        start, end = ("" if ns is None else format_duration(ns) for ns in options.window)
        notes.append(f"only the window {start or 'start'} to {end or 'end'}")
    return notes


def listed(names: Iterable[str], most: int = 8) -> str:
    """The first names, and how many more there are."""
    every = list(names)
    rest = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + rest
