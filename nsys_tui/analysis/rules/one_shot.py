"""Whether a run is too small to judge: hardly any work, of which hardly anything comes again."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui.analysis.breakdown import UVM_COPY_KINDS, DeviceSplit
from nsys_tui.analysis.rules.run import A_RUN, Run
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Indices, Int64, Integers
from nsys_tui.model.categories import Category
from nsys_tui.model.groups import rows_of_values

_TOO_SHORT_NS: Final = 1_000_000
"""GPU work that lasts less than this is a first try, not a run; nor is it one that recurs."""
_FRAME_NS: Final = 16_000_000
"""What passes before a display shows its next frame is no run, where a session is far longer."""
_MOMENT_NS: Final = 5_000_000
"""What is idle for less time is so for a moment."""
_ONCE_NS: Final = 10_000_000
"""GPU work that is less than this may be one that comes once."""
_BURST_NS: Final = 25_000_000
"""Kernels that last less and hardly recur may be one burst: what they lose is too little."""
_MOMENTS: Final = 20
"""Moments of a session."""
_BURSTS: Final = 10
"""Bursts of a session: one that lasts for more of it is what was captured."""
_TWICE: Final = 2


def is_one_shot(run: Run) -> bool:
    """Whether GPUs work for a moment, or hardly, with little that recurs of it or between it.

    The longest of each name comes once. Copies may each be of another array: only kernels tell
    of work that comes again. Those beside each other are one piece of it.
    """
    busy = max(map(worked_ns, run.splits), default=0)
    moment, burst = run.session_ns // _MOMENTS, min(_BURST_NS, run.session_ns // _BURSTS)
    if not run.works or run.base_ns < max(_TOO_SHORT_NS, min(_FRAME_NS, moment)):
        return run.works
    if busy >= max(_ONCE_NS, burst) or run.scope.window is not None:
        return False
    every, work, idle = np.array([_again(run, rows) for rows in run.by_device.values()]).max(axis=0)
    little = _TOO_SHORT_NS if 2 * every >= busy else 0  # long copies are worth a finding
    if work >= (little if busy >= _ONCE_NS else max(_TOO_SHORT_NS, busy // 2)):
        return False
    ops, rows = run.report.operations, run.operations
    asked = rows[~np.isin(ops.copy_kind[rows], UVM_COPY_KINDS)]
    return bool(idle < min(_MOMENT_NS, moment) or _of_a_name(run, asked) < A_RUN)


def worked_ns(split: DeviceSplit) -> int:
    """How long a GPU works: waiting for other ranks is none."""
    return split.busy_ns - (split.exposed_waiting_ns or 0)


def is_set_up(run: Run) -> bool:
    """Whether each GPU's kernels are few and run once, or once more to be timed."""
    ops, rows = run.report.operations, run.operations
    kernels = rows[np.flatnonzero(ops.category[rows] != Category.MEMORY)]
    most = int(np.bincount(ops.device[kernels]).max(initial=0))
    return most < A_RUN and _of_a_name(run, kernels) <= _TWICE


def _again(run: Run, rows: Indices) -> tuple[int, int, int]:
    """How long a GPU runs kernels, how long but for the longest launch of each name, and idles.

    It idles before operations, but for the longest time before each name, too.
    """
    ops = run.report.operations
    since = np.maximum.accumulate(ops.end[rows])
    idle = np.maximum(ops.start[rows] - np.append(ops.start[rows[:1]], since[:-1]), 0)
    kernels = rows[ops.category[rows] != Category.MEMORY]
    again = 0
    for _, places in rows_of_values(ops.name[kernels]):
        mine = kernels[places]
        again += intervals.total(*ops.runs(mine)) - int(ops.durations(mine).max())
    every = intervals.total(*ops.runs(kernels))
    return every, again, _repeated(ops.name[rows], idle)


def _repeated(name: Integers, took: Int64) -> int:
    """The time of all but the longest of each name."""
    longest = np.zeros(int(name.max(initial=0)) + 1, np.int64)
    np.maximum.at(longest, name, took)
    return int(took.sum() - longest.sum())


def _of_a_name(run: Run, rows: Indices) -> int:
    """How many of some operations of one GPU have the most frequent name."""
    return int(np.bincount(run.names_of_gpus(rows)).max(initial=0))
