"""How long others waited because of a rank, and why it was late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from nsys_tui.analysis.aggregate import Float64
    from nsys_tui.fleet.collectives import Group, Matched
    from nsys_tui.model.events import Int64

CAUSES: Final = ("slow kernels", "data wait", "other comm", "late launch", "late before", "unknown")
"""Why a rank comes last, by what it did since its collective before, beside the others: longer
kernels, longer copies or loading, longer other communication, or a longer idle GPU; or it came
late out of the collective before. Unknown of the first one."""


@dataclass(frozen=True, eq=False)
class Blame:
    """What each rank cost the others, ns over all of them."""

    cost: Int64
    """Shape (ranks,): each call's wait for it alone, times the ranks that waited."""
    causes: Float64
    """Shape (ranks, causes); sums to the cost."""
    mostly: tuple[int, ...]
    """The group in which it cost most, place in ``Matched.groups``; -1 for none."""


def blame(matched: Matched) -> Blame:
    """Blames the rank that comes last to each call, in its own communicator."""
    groups = matched.groups
    causes = np.zeros((matched.ranks, len(CAUSES)))
    most, mostly = np.zeros(matched.ranks), np.full(matched.ranks, -1)
    for place, group in enumerate(groups):
        if not group.calls:
            continue
        members = np.array(group.members)
        own = np.zeros((len(members), len(CAUSES)))
        cost = group.behind.astype(np.float64) * (len(members) - 1)
        np.add.at(own, group.last, _shares(group) * cost[:, None])
        causes[members] += own
        worse = own.sum(axis=1) > most[members]
        mostly[members[worse]] = place
        most[members[worse]] = own.sum(axis=1)[worse]
    cost = np.rint(causes.sum(axis=1)).astype(np.int64)
    return Blame(cost, causes, tuple(mostly.tolist()))


def _shares(group: Group) -> Float64:
    """Of each call: parts of the lateness of its last rank by cause, shape (calls, causes).

    What a rank did longer than the median of the members counts; what it did less of does not.
    """
    calls = np.arange(group.calls)
    gap = group.gap.astype(np.float64)
    idle = gap - group.before.sum(axis=2)
    own = np.concatenate([group.before, idle[:, :, None]], axis=2)
    excess = own[group.last, calls] - np.median(own, axis=0)
    begun = group.start - gap
    late = begun[group.last, calls] - np.median(begun, axis=0)
    found = np.zeros((group.calls, len(CAUSES)))
    found[:, :-1] = np.maximum(np.column_stack([excess, late]), 0)
    found[(group.gap < 0).any(axis=0)] = 0
    total = found.sum(axis=1)
    found[total == 0, -1] = 1
    return np.asarray(found / np.where(total > 0, total, 1)[:, None])
