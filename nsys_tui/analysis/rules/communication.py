"""Communication that nothing hides: whom a GPU waits for, and what of it stays in any case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.analysis.nccl.waiting import PAIRWISE, collective_waits, waited_for
from nsys_tui.analysis.rules.copies import bare
from nsys_tui.analysis.window import Scope
from nsys_tui.model.arrays import Indices
from nsys_tui.model.categories import Category
from nsys_tui.model.groups import factorise_rows, sums
from nsys_tui.model.target import pid_of

if TYPE_CHECKING:
    from nsys_tui.analysis.iterations.detection import Iterations
    from nsys_tui.analysis.rules.case import Case

_SEVERAL: Final = 3
"""GPUs from which on it shows whether all of them send at once."""


def staying(case: Case, device: int) -> int:
    """Of exposed communication that comes several times a step, the first or last of each.

    What compute does not separate is one stretch, and counts if half as long as the longest of its
    step. Where a step has one alone nothing stays for sure: smaller last buckets shorten it.
    """
    if not case.has_loop:
        return 0
    ops, rows = case.report.operations, case.by_device[device]
    compute, comm = (rows[ops.category[rows] == kind] for kind in (Category.COMPUTE, Category.COMM))
    exposed = bare(case, device, comm, (Category.COMPUTE,))
    comm, exposed = comm[exposed > 0], exposed[exposed > 0]
    if not len(comm):
        return 0
    step = np.searchsorted(_steps_of(case, comm).start, case.begun(comm), side="right")
    after = np.searchsorted(ops.start[compute], ops.end[comm])
    codes, kinds = factorise_rows((step, after))
    time = sums(codes, exposed, len(kinds))
    longest = np.zeros(step.max(initial=0) + 1, np.int64)
    np.maximum.at(longest, kinds[:, 0], time)
    counts = 2 * time >= longest[kinds[:, 0]]
    time, step = time[counts], kinds[counts, 0]
    first = np.flatnonzero(np.diff(step, prepend=-1))
    last = np.append(first[1:], len(step)) - 1
    return int(np.minimum(time[first], time[last])[first < last].sum())


def _steps_of(case: Case, rows: Indices) -> Iterations:
    """Steps of the process that runs some operations."""
    ops = case.report.operations
    process = int(ops.processes[ops.process[rows[0]]])
    if process == case.iterations.process:
        return case.iterations
    return find_iterations(case.report, scope=Scope(processes=frozenset((pid_of(process),))))


def late_gpu(case: Case, device: int, waited: int) -> tuple[int, bool]:
    """The GPU that one mostly waits for, -1 for none, and whether several are late by turns.

    They are where none has half of the waiting, or where that one waits half as long itself.
    """
    for_each = waited_for(case.report, device)
    late = int(np.argmax(for_each))
    if not for_each[late]:
        return -1, False
    waits_too = next((s.exposed_waiting_ns or 0 for s in case.steady_splits if s.index == late), 0)
    if 2 * for_each[late] < for_each.sum() or 2 * waits_too >= waited:
        return -1, True
    return late, False


def pairwise(case: Case, device: int) -> Indices:
    """Kernels of a GPU that talk to one other, as between stages of a pipeline, if most do.

    Where the kernels of three GPUs or more end as one, each talks to all of them.
    """
    ops = case.report.operations
    rows = case.where(lambda rows: ops.category[rows] == Category.COMM)
    rows = rows[ops.device[rows] == device]
    pairwise = np.array([PAIRWISE in name.short for name in ops.names], bool)
    chosen: Indices = rows[pairwise[ops.name[rows]]]
    together = np.isin(chosen, collective_waits(case.report).row)
    each_other = len(case.splits) < _SEVERAL or 2 * int(together.sum()) < len(together)
    most = 2 * ops.durations(chosen).sum() > ops.durations(rows).sum()
    return chosen if most and each_other else chosen[:0]
