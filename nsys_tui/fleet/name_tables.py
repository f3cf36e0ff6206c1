"""Statistics per name over all ranks, and for every rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from nsys_tui.fleet.fleet import Fleet
from nsys_tui.fleet.name_stats import NameStats, merge
from nsys_tui.fleet.summary import OF_GPU
from nsys_tui.fleet.table_parts import Columns, count_column, share_column, time_column
from nsys_tui.model.kernel_names import called_by_key
from nsys_tui.model.table import Column, Table, Unit, Values


def names_table(fleet: Fleet, family: str, by_rank: bool) -> Table:
    """Durations of one family of events by name.

    Args:
        fleet: the ranks.
        family: one of ``summary.FAMILIES`` that the options held.
        by_rank: a row per name and rank, with exact quartiles; else a row per name over all ranks,
            with the ranks where it takes longest and shortest on average.
    """
    if family not in fleet.options.families:
        return Table.of(family, family.capitalize(), [], [f"not computed: --section {family}"])
    fleet = fleet if by_rank else fleet.run
    parts = _parts(fleet, family)
    if family == "kernels":
        parts = _told_apart(parts)
    columns = _by_rank(fleet, parts) if by_rank else _over_all(fleet, parts)
    notes = [] if by_rank else [_APPROXIMATE]
    if not len(columns[0][1]):
        notes = [f"no {family} in {'this run' if fleet.without else 'any report'}"]
    of = "and rank" if by_rank else "over all ranks, time as a share of all of it"
    title = f"{_TITLES.get(family, family.capitalize())} by name {of}"
    unknown = fleet.unknown if family in OF_GPU or fleet.without else []
    return Table.of(family, title, columns, [*notes, *unknown])


def _parts(fleet: Fleet, family: str) -> list[NameStats]:
    place = fleet.options.families.index(family)
    return [member.process.stats[place] for member in fleet.members]


def _told_apart(parts: list[NameStats]) -> list[NameStats]:
    """Kernels by what they are called beside those of all ranks."""
    called = called_by_key({key for part in parts for key in part.names})
    return [replace(part, names=tuple(called[key] for key in part.names)) for part in parts]


_TITLES: Final = {"api": "CUDA API calls", "osrt": "OS runtime calls", "mpi": "MPI calls"}
_APPROXIMATE: Final = "≈ quartiles over all ranks are within 1%; --by rank gives exact ones"
_NOBODY: Final = (None, None)
"""Mean and rank of a name that only reaches into the window."""


def _over_all(fleet: Fleet, parts: list[NameStats]) -> Columns:
    merged = merge(parts)
    ranks = [member.rank for member in fleet.members]
    whole = max(int(merged.inside.sum()), 1)
    means = [
        [(int(parts[p].total[r]) / int(parts[p].count[r]), ranks[p])
         for p, r in of_name if parts[p].count[r]]
        for of_name in merged.holders
    ]  # fmt: skip
    slow = [
        max(of_name, key=lambda pair: (pair[0], -pair[1]), default=_NOBODY) for of_name in means
    ]
    fast = [min(of_name, default=_NOBODY) for of_name in means]
    return [
        (share_column("Time"), 100 * merged.inside / whole),
        (time_column("Total"), merged.inside),
        (count_column("Instances"), merged.count),
        (count_column("Ranks"), [len(of_name) for of_name in merged.holders]),
        (time_column("Mean"), merged.mean),
        (time_column("StdDev"), merged.std),
        (time_column("Min"), merged.least),
        (time_column("≈ Q1"), merged.quartiles[:, 0]),
        (time_column("≈ Median"), merged.quartiles[:, 1]),
        (time_column("≈ Q3"), merged.quartiles[:, 2]),
        (time_column("Max"), merged.most),
        (time_column("Slowest mean"), [mean for mean, _ in slow]),
        (Column("Slowest rank", Unit.NONE), [rank for _, rank in slow]),
        (time_column("Fastest mean"), [mean for mean, _ in fast]),
        (Column("Fastest rank", Unit.NONE), [rank for _, rank in fast]),
        (Column("Name"), list(merged.names)),
    ]


def _by_rank(fleet: Fleet, parts: list[NameStats]) -> Columns:
    ranks = [m.rank for m, part in zip(fleet.members, parts, strict=True) for _ in part.names]

    def joined(key: str) -> Values:
        return np.concatenate([getattr(part, key) for part in parts]) if parts else np.zeros(0)

    count, total = np.asarray(joined("count")), np.asarray(joined("total"))
    squares = np.asarray(joined("squares"), np.float64)
    quartiles = np.concatenate([part.quartiles for part in parts]) if parts else np.zeros((0, 3))
    return [
        (Column("Rank", Unit.NONE), ranks),
        (time_column("Total"), joined("inside")),
        (count_column("Instances"), count),
        (time_column("Mean"), np.where(count, total / np.maximum(count, 1), np.nan)),
        (time_column("StdDev"), np.sqrt(squares / np.maximum(count - 1, 1))),
        (time_column("Min"), joined("least")),
        (time_column("Q1"), quartiles[:, 0]),
        (time_column("Median"), quartiles[:, 1]),
        (time_column("Q3"), quartiles[:, 2]),
        (time_column("Max"), joined("most")),
        (Column("Name"), [name for part in parts for name in part.names]),
    ]
