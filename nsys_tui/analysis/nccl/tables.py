"""Collectives as tables: one by one, by operation and size, and by rank with its waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.analysis.nccl.match import How
from nsys_tui.model.groups import rows_of_codes, sums
from nsys_tui.model.table import Column, Table, Unit

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from nsys_tui.analysis.nccl.result import Collectives

HOW: Final = {How.NOT: "-", How.BY_CALL: "by call", How.BY_ORDER: "by order"}
_GB: Final = 1e9
"""Bandwidths are in 10**9 bytes per second, as nccl-tests prints them."""


def each_table(found: Collectives, top: int | None = None) -> Table:
    """One row per collective in the order of time.

    Args:
        found: the collectives.
        top: rows to keep; all without it.
    """
    part = slice(0, top)
    hidden = max(0, len(found) - len(range(len(found))[part]))
    more = (f"{hidden:,} more",) if hidden else ()
    last = [
        found.members[m].label if seen > 1 else "-"
        for m, seen in zip(found.last[part].tolist(), found.seen[part].tolist(), strict=True)
    ]
    return Table(
        "collectives",
        "Collectives",
        (
            Column("Start", Unit.NS),
            Column("Operation"),
            Column("Bytes", Unit.BYTES),
            Column("Time", Unit.NS),
            Column("≈"),
            Column("Alg GB/s", Unit.NONE, 2),
            Column("Bus GB/s", Unit.NONE, 2),
            Column("Ranks"),
            Column("Skew", Unit.NS),
            Column("Last"),
            Column("Joined"),
            Column("Communicator"),
            Column("Kernel"),
        ),
        (
            found.start[part],
            list(found.label[part]),
            _known(found.bytes[part]),
            found.time[part],
            ["≈" if estimated else "" for estimated in found.estimated[part].tolist()],
            found.algorithm_bandwidth[part] / _GB,
            found.bus_bandwidth[part] / _GB,
            _ranks(found, part),
            _skews(found.skew[part], found.seen[part]),
            last,
            [HOW[How(how)] for how in found.how[part].tolist()],
            [text or "-" for text in found.communicator[part]],
            list(found.kernel[part]),
        ),
        (*more, *found.notes),
    )


def operations_table(found: Collectives) -> Table:
    """One row per operation, size and communicator, by total time."""
    keys = list(zip(found.label, found.bytes.tolist(), found.communicator, strict=True))
    codes = {key: code for code, key in enumerate(dict.fromkeys(keys))}
    parts = rows_of_codes(np.array([codes[key] for key in keys], np.int64), len(codes))
    order = sorted(range(len(parts)), key=lambda n: -int(found.time[parts[n]].sum()))
    parts, chosen = [parts[n] for n in order], [list(codes)[n] for n in order]
    algorithm, bus = found.algorithm_bandwidth / _GB, found.bus_bandwidth / _GB
    return Table(
        "operations",
        "By operation and size (medians)",
        (
            Column("Operation"),
            Column("Bytes", Unit.BYTES),
            Column("Time", Unit.NS),
            Column("≈"),
            Column("Alg GB/s", Unit.NONE, 2),
            Column("Bus GB/s", Unit.NONE, 2),
            Column("Count", Unit.COUNT),
            Column("Best bus", Unit.NONE, 2),
            Column("Skew", Unit.NS),
            Column("Total time", Unit.NS),
            Column("Communicator"),
        ),
        (
            [label for label, _, _ in chosen],
            [None if size < 0 else size for _, size, _ in chosen],
            [float(np.median(found.time[rows])) for rows in parts],
            ["≈" if found.estimated[rows].any() else "" for rows in parts],
            [_of(np.median, algorithm[rows]) for rows in parts],
            [_of(np.median, bus[rows]) for rows in parts],
            [len(rows) for rows in parts],
            [_of(np.max, bus[rows]) for rows in parts],
            [
                float(np.median(found.skew[rows])) if (found.seen[rows] > 1).any() else None
                for rows in parts
            ],
            [int(found.time[rows].sum()) for rows in parts],
            [text or "-" for _, _, text in chosen],
        ),
    )


def members_table(found: Collectives) -> Table:
    """One row per rank: how often it came last, and how long it waited for others."""
    parts = found.parts
    count = len(found.members)
    shared = found.seen[parts.collective] > 1
    late = (parts.start - found.start[parts.collective])[shared]
    waited = (found.last_start[parts.collective] - parts.start)[shared]
    member = parts.member[shared]
    joined = np.bincount(member, minlength=count)
    last = np.bincount(found.last[found.seen > 1], minlength=count)
    return Table(
        "ranks",
        "Ranks: who comes late, who waits",
        (
            Column("Rank"),
            Column("PID"),
            Column("GPU"),
            Column("Collectives", Unit.COUNT),
            Column("Came last", Unit.COUNT),
            Column("Mean lateness", Unit.NS),
            Column("Waited for others", Unit.NS),
            Column("Kernel time", Unit.NS),
        ),
        (
            [str(one.rank) if one.rank >= 0 else "-" for one in found.members],
            [str(one.pid) for one in found.members],
            [one.gpu for one in found.members],
            np.bincount(parts.member, minlength=count),
            last,
            [_share(total, n) for total, n in zip(sums(member, late, count), joined, strict=True)],
            sums(member, waited, count),
            sums(parts.member, parts.end - parts.start, count),
        ),
        () if shared.any() else ("one rank alone: nothing to wait for is seen",),
    )


def _share(total: int, count: int) -> float | None:
    return float(total) / int(count) if count else None


def _of(what: Callable[[Any], Any], values: NDArray[np.float64]) -> float | None:
    known = values[~np.isnan(values)]
    return float(what(known)) if len(known) else None


def _known(values: NDArray[np.int64]) -> list[int | None]:
    return [None if value < 0 else value for value in values.tolist()]


def _skews(skew: NDArray[np.int64], seen: NDArray[np.int32]) -> list[int | None]:
    return [
        value if ranks > 1 else None
        for value, ranks in zip(skew.tolist(), seen.tolist(), strict=True)
    ]


def _ranks(found: Collectives, part: slice) -> list[str]:
    return [
        f"{seen} of {ranks}" if ranks > 0 else f"{seen} of ?"
        for seen, ranks in zip(found.seen[part].tolist(), found.ranks[part].tolist(), strict=True)
    ]


TABLES: Final[dict[str, Callable[[Collectives, int | None], Table]]] = {
    "operations": lambda found, _: operations_table(found),
    "ranks": lambda found, _: members_table(found),
    "collectives": each_table,
}
"""All tables by name, in reading order; each takes the rows to keep."""
