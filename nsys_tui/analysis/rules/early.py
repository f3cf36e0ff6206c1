"""How much of what a GPU does first is set-up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from nsys_tui.analysis.launches import LAUNCHES_GRAPH, MAKES_GRAPH, calls_to
from nsys_tui.model.arrays import Indices, Int64, Integers
from nsys_tui.model.categories import Category
from nsys_tui.model.groups import used
from nsys_tui.model.report import Report

_SET_UP: Final = 0.05
_EARLY: Final = 1 / 3
"""Part of the work up to which all graphs are made, or all kernels tried, where that is set-up."""
_FEW: Final = 50
"""Part of the operations, one of so many, up to which all memory is allocated, where that is."""
_ALLOCATES: Final = "Malloc|MemAlloc|MemCreate|HostAlloc|HostRegister"
_TRIALS: Final = 5
"""Times that kernels come on average, at most, which are only tried: some at several shapes."""


def told_by(report: Report) -> list[tuple[Int64, Int64]]:
    """The calls that make graphs, launch them and allocate: when each ended, and its process."""
    return [calls_to(report, does) for does in (MAKES_GRAPH, LAUNCHES_GRAPH, _ALLOCATES)]


def set_up_work(report: Report, rows: Indices, calls: Sequence[tuple[Int64, Int64]]) -> int:
    """How many operations of a GPU, without copies, come until a twentieth of the work is done.

    Graphs that are made, kernels that are tried and memory that is allocated later, before a third
    of it is done and never again, are set-up, too. Communication is no measure: at first it waits
    for ranks that set up longer.

    Args:
        report: the report.
        rows: the operations.
        calls: as ``told_by`` finds them.
    """
    ops = report.operations
    works = ops.category[rows] != Category.COMM
    done = np.cumsum(ops.durations(rows) * (works if works.any() else 1))
    twentieth, third = map(int, np.searchsorted(done, np.array((_SET_UP, _EARLY)) * done[-1]))
    mine = ops.processes[used(ops.process[rows])]
    made, launched, allocated = (
        ops.places(rows, ends[np.isin(owners, mine)]) for ends, owners in calls
    )
    return max(
        twentieth,
        _made(made, launched, third),
        _all_early(allocated, min(third, len(rows) // _FEW)),
        _tried(ops.name[rows], third),
    )


def _all_early(places: Integers, early: int) -> int:
    """How many operations come until the last of some calls, 0 where that is no set-up."""
    last = int(places.max(initial=0))
    return last * (last <= early)


def _made(graphs: Integers, launched: Integers, early: int) -> int:
    """The same of graphs that are made: later ones, too, if hardly any is launched before."""
    begun, last = int(graphs.min(initial=early + 1)) <= early, int(graphs.max(initial=0))
    before = int(np.count_nonzero(launched < last))
    return last if begun and before < _SET_UP * len(launched) else _all_early(graphs, early)


def _tried(names: Integers, early: int) -> int:
    """How many kernels come until the last is tried, 0 where that is no set-up.

    Most names come a few times, early and never again; of the others all came among them.

    Args:
        names: of the kernels.
        early: how many of them come early.
    """
    later = np.bincount(names[early:], minlength=int(names.max()) + 1) > 0
    until = int(np.flatnonzero(~later[names[:early]]).max(initial=-1)) + 1
    count = np.bincount(names[:until], minlength=len(later))
    tried = ~later & (count > 0)
    new, most = (later & (count == 0)).any(), tried.sum() > later.sum()
    return 0 if new or not most or count[tried].sum() > _TRIALS * tried.sum() else until
