"""Sections of a fleet as tables; the same for people, CSV, Parquet and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from nsys_tui.fleet.collective_tables import calls_table, collectives_table, stragglers_table
from nsys_tui.fleet.fleet import Fleet, Member
from nsys_tui.fleet.name_tables import names_table
from nsys_tui.fleet.step_tables import pace_ranks_table, pace_table, step_ranks_table, steps_table
from nsys_tui.fleet.summary import FAMILIES, SPLIT
from nsys_tui.fleet.table_parts import (
    Ask,
    Columns,
    Section,
    count_column,
    cut,
    percent,
    share_column,
    time_column,
)
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.table import Column, Table, Unit, Values
from nsys_tui.units import plural

_UNRECORDED: Final = f"no GPU metrics: record with nsys profile {Capability.GPU_METRICS.option}"


def reports_table(fleet: Fleet, ask: Ask) -> Table:
    """Which file is which rank, and what that was taken from."""
    members = fleet.members
    columns: Columns = [
        (Column("Rank", Unit.NONE), [m.rank for m in members]),
        (Column("Rank from"), [m.source for m in members]),
        (Column("Host"), [m.report.host or None for m in members]),
        (Column("Node", Unit.NONE), [m.report.node for m in members]),
        (
            Column("Pid", Unit.NONE),
            [m.process.pid if m.process.pid >= 0 else None for m in members],
        ),
        (Column("GPU"), [m.gpus or None for m in members]),
        (
            time_column("Clock"),
            [m.offset if m.clock.aligned or not m.clock.drift else None for m in members],
        ),
        *_clock_columns(members),
        (time_column("Session"), [m.report.session_ns for m in members]),
        (Column("Job"), [m.report.job or None for m in members]),
        (Column("Report"), [m.file for m in members]),
    ]
    if ask.human:
        empty = ("Host", "Node", "Job")
        columns = [(c, values) for c, values in columns if c.header not in empty or _any(values)]
    return cut(Table.of("reports", "Reports", columns, list(fleet.notes)), ask.top)


def _any(values: Values) -> bool:
    return any(value is not None for value in values)


def _clock_columns(members: Sequence[Member]) -> Columns:
    """Drift and residual, where clocks could be looked at."""
    clocks = [member.clock for member in members]
    if all(clock.residual is None for clock in clocks):
        return []
    drift = Column("Drift ppm", Unit.NONE, 2)
    return [
        (drift, [1e6 * c.drift if c.residual is not None and c.aligned else None for c in clocks]),
        (time_column("Residual"), [c.residual for c in clocks]),
        (Column("Aligned"), ["yes" if c.aligned else "no" for c in clocks]),
    ]


def skipped_table(fleet: Fleet, ask: Ask) -> Table:
    """Reports that could not be read, and those that are no ranks of their own."""
    every = (*fleet.failures, *fleet.left_out)
    columns: Columns = [
        (Column("Report"), [failure.path for failure in every]),
        (Column("Reason"), [failure.reason for failure in every]),
    ]
    return cut(Table.of("skipped", "Skipped", columns), ask.top)


_SHARES: Final = (
    ("Busy", "busy"),
    ("Compute", "compute"),
    ("Comm", "comm"),
    ("Exposed comm", "exposed_comm"),
    ("Overlap", "compute_comm_overlap"),
    ("Memory", "memory"),
    ("Idle", "idle"),
)
"""Overlap is communication while the GPU computes."""


def ranks_table(fleet: Fleet, ask: Ask) -> Table:
    """Where the time of each rank's GPUs went, as shares of its report's span."""
    rows = fleet.rows
    splits = [_split(fleet.members[member], device) for member, device in rows]
    base = [fleet.members[member].lasted for member, _ in rows]
    columns: Columns = [
        (Column("Rank", Unit.NONE), [fleet.members[member].rank for member, _ in rows]),
        (Column("Host"), [fleet.members[member].report.host or None for member, _ in rows]),
        (Column("GPU"), [fleet.members[member].process.devices[device] for member, device in rows]),
        *(
            (share_column(header), [percent(s[key], b) for s, b in zip(splits, base, strict=True)])
            for header, key in _SHARES
        ),
        *(
            (time_column(f"{header} time"), [s[key] for s in splits])
            for header, key in (() if ask.human else _SHARES)
        ),
        *_bubbles(fleet, rows, base),
        (time_column("Span"), base),
        (count_column("Kernels"), [s["kernels"] for s in splits]),
        (Column("Report"), [fleet.members[member].file for member, _ in rows]),
    ]
    notes = fleet.unknown
    if not rows and not notes:
        notes = ["no GPU work in any report: record with nsys profile --trace=cuda"]
    return cut(Table.of("ranks", "Ranks, shares of their spans", columns, notes), ask.top)


def _bubbles(fleet: Fleet, rows: Sequence[tuple[int, int]], base: Sequence[int]) -> Columns:
    """Share of sends and receives that nothing hides, where there are any."""
    calls_of = [fleet.members[member].process.collectives for member, _ in rows]
    if not any(one.point_to_point for one in calls_of):
        return []
    shares = [percent(one.alone_ns, span) for one, span in zip(calls_of, base, strict=True)]
    return [(share_column("Bubbles"), shares)]


def _split(member: Member, device: int) -> dict[str, int]:
    return dict(zip(SPLIT, member.process.splits[device].tolist(), strict=True))


def total_table(fleet: Fleet, ask: Ask) -> Table:
    """The same figures over all GPUs: sum, mean share, and the ranks at both ends."""
    del ask
    fleet = fleet.run
    rows = fleet.rows
    splits = [_split(fleet.members[member], device) for member, device in rows]
    base = np.array([fleet.members[member].lasted for member, _ in rows], np.float64)
    rows_of = []
    for header, key in _SHARES if rows else ():
        values = np.array([s[key] for s in splits], np.float64)
        share = np.divide(100 * values, base, out=np.zeros(len(values)), where=base > 0)
        low, high = int(np.argmin(share)), int(np.argmax(share))
        whole = percent(float(values.sum()), float(base.sum()))
        rows_of.append(
            (header, int(values.sum()), whole, share[low], fleet.label(rows[low]),
             share[high], fleet.label(rows[high]))
        )  # fmt: skip
    headers = (
        Column("Figure"),
        time_column("Sum"),
        share_column("Share"),
        share_column("Lowest"),
        Column("Lowest rank"),
        share_column("Highest"),
        Column("Highest rank"),
    )
    ranks = len({member for member, _ in rows})
    title = f"All {plural(len(rows), 'GPU')} of {plural(ranks, 'rank')}, shares of their spans"
    title = title if rows else "No GPU work"
    columns: Columns = [(c, [row[n] for row in rows_of]) for n, c in enumerate(headers)]
    return Table.of("total", title, columns, fleet.unknown)


def heat_table(fleet: Fleet, ask: Ask) -> Table:
    """Busy, communication and overlap of every rank and bin of time."""
    grid = fleet.grid(ask.bins)
    edges, rows = fleet.edges(grid), fleet.rows
    width = 100 / grid.width
    columns: Columns = [
        (Column("Rank", Unit.NONE),
         np.repeat([fleet.members[p].rank for p, _ in rows], grid.count).astype(np.int64)),
        (Column("GPU"),
         [fleet.members[p].process.devices[d] for p, d in rows for _ in range(grid.count)]),
        (time_column("Start"), np.tile(edges[:-1], len(rows))),
        *(
            (share_column(header), fleet.heat(figure, grid).ravel() * width)
            for header, figure in (
                ("Busy", "busy"), ("Compute", "compute"), ("Comm", "comm"),
                ("Overlap", "compute_comm_overlap"), ("Memory", "memory"),
            )
        ),
    ]  # fmt: skip
    title = f"Heat map: {grid.count} bins of {grid.width:,} ns"
    return cut(Table.of("heat", title, columns, fleet.unknown), ask.top)


def memory_table(fleet: Fleet, ask: Ask) -> Table:
    """Most GPU memory held by each rank."""
    rows = [
        (m.rank, m.report.host or None, m.process.devices[d], int(m.process.memory_peak[d]))
        for member, d in fleet.rows
        for m in (fleet.members[member],)
        if m.process.memory_peak[d] >= 0
    ]
    columns: Columns = [
        (Column("Rank", Unit.NONE), [row[0] for row in rows]),
        (Column("Host"), [row[1] for row in rows]),
        (Column("GPU"), [row[2] for row in rows]),
        (Column("Peak", Unit.BYTES), [row[3] for row in rows]),
    ]
    option = "--cuda-memory-usage=true"
    notes = [] if rows else [f"GPU memory was not recorded: nsys profile {option}"]
    return cut(Table.of("memory", "GPU memory", columns, notes), ask.top)


def metrics_table(fleet: Fleet, ask: Ask) -> Table:
    """Sampled GPU metrics over the span of the GPU work, by host and GPU."""
    rows: list[tuple[str, str, int, float, float]] = []
    for name in fleet.metrics:
        for report in fleet.reports:
            if name in report.metrics:
                place = report.metrics.index(name)
                for gpu, number in enumerate(report.metric_gpus):
                    count = int(report.metric_count[gpu, place].sum())
                    if count:
                        mean = int(report.metric_sum[gpu, place].sum()) / count
                        rows.append((name, report.host, number, count, mean))
    columns: Columns = [
        (Column("Metric"), [row[0] for row in rows]),
        (Column("Host"), [row[1] or None for row in rows]),
        (Column("GPU", Unit.NONE), [row[2] for row in rows]),
        (count_column("Samples"), [row[3] for row in rows]),
        (Column("Mean", Unit.NONE, 2), [row[4] for row in rows]),
    ]
    notes = [] if rows else [_UNRECORDED]
    return cut(Table.of("metrics", "GPU metrics", columns, notes), ask.top)


def _names_section(family: str) -> Section:
    def section(fleet: Fleet, ask: Ask) -> Table:
        return cut(names_table(fleet, family, ask.by_rank), ask.top)

    section.__doc__ = f"Durations of {family} by name."
    return section


SECTIONS: Final[dict[str, Section]] = {
    "reports": reports_table,
    "ranks": ranks_table,
    "total": total_table,
    "steps": steps_table,
    "step-ranks": step_ranks_table,
    "collectives": collectives_table,
    "stragglers": stragglers_table,
    "calls": calls_table,
    "heat": heat_table,
    "memory": memory_table,
    "metrics": metrics_table,
    "pace": pace_table,
    "pace-ranks": pace_ranks_table,
    **{family: _names_section(family) for family in FAMILIES},
    "skipped": skipped_table,
}
"""Every section by name."""


def summary_sections(fleet: Fleet) -> list[str]:
    """What is shown where nothing was asked for: sections with something to say."""
    recorded = {
        "memory": any((m.process.memory_peak >= 0).any() for m in fleet.members),
        "metrics": bool(fleet.metrics),
        "mpi": bool(fleet.mpi_shares()),
        "pace-ranks": fleet.options.pace is not None,
        "skipped": bool(fleet.failures or fleet.left_out),
        "calls": False,
        "pace": False,
    }
    families = set(fleet.options.families)
    return [
        name
        for name in SECTIONS
        if recorded.get(name, True) and (name not in FAMILIES or name in families)
    ]
