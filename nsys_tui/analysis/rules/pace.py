"""Our rules on GPUs that slow down in the course of the run, or work by turns for processes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.register import Arguments, Parameter, Result, cut, rule
from nsys_tui.model import intervals
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.groups import sums
from nsys_tui.model.table import Column, Unit
from nsys_tui.names import fit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.analysis.rules.case import Case
    from nsys_tui.analysis.rules.finding import Finding
    from nsys_tui.model.events import Int64

    Floats = NDArray[np.float64]
    Rows = NDArray[np.intp]

_FEWEST: Final = 10
"""Launches of a kernel in the first and in the last third from which its pace is known."""
_NEARLY_ALL: Final = 0.9
"""Part of the time whose kernels must slow down: of one alone its data may have grown."""
_GROWN: Final = 1.5
_GROWS: Final = 1.05
"""Factors of a kernel whose data grows: in all, and at least from each later quarter to the next,
so that one change is no growth."""
_TURNS: Final = 20
_NAME_CELLS: Final = 15


@rule(
    "Kernels that take longer and longer",
    advice="All kernels slow down from the first third of the run to the last: look at the GPU's"
    " clocks, power limit and temperature, and for other programs on it.",
    nothing="Kernels take as long at the end as at the beginning, or only some take longer.",
    parameters=(Parameter("slower", 5.0, "mean increase that counts, in percent"),),
)
def slowing_kernels(case: Case, arguments: Arguments) -> Result:
    """Mean time of each kernel in the last third of a GPU's work against the first third.

    Nearly all of them must slow down: of one that takes longer and longer its data grows.
    """
    ops = case.report.operations
    found: list[Finding] = []
    listed: list[tuple[str, float, float, str]] = []
    for place, rows in case.by_device:
        rows = rows[(ops.kind[rows] == OpKind.KERNEL) & (ops.category[rows] == Category.COMPUTE)]
        third = len(rows) // 3
        if third < _FEWEST:
            continue
        early, late = (_paces(case, part) for part in (rows[:third], rows[len(rows) - third :]))
        known = np.flatnonzero((early[1] >= _FEWEST) & (late[1] >= _FEWEST) & (early[0] > 0))
        if not len(known):
            continue
        first, last = (times[known] / count[known] for times, count in (early, late))
        slow = last >= first * (1 + arguments.number("slower") / 100)
        if late[0][known[slow]].sum() < _NEARLY_ALL * max(late[0].sum(), 1) or slow.sum() < 2:
            cost = late[0][known] - first * late[1][known]
            top = int(np.argmax(np.where(last >= _GROWN * first, cost, -1)))
            if last[top] >= _GROWN * first[top]:
                found += _growing(
                    case, place, rows[ops.name[rows] == known[top]], (first[top], last[top])
                )
            continue
        usual = np.zeros(len(ops.names))
        usual[known] = first
        more = (ops.durations(rows) - usual[ops.name[rows]]) * (usual[ops.name[rows]] > 0)
        by_time = np.argsort(-late[0][known], kind="stable")
        label = case.device_labels([place])
        listed += [(label, first[k], last[k], ops.shown[known[k]]) for k in by_time.tolist()]
        factor = float(late[0][known].sum() / (first * late[1][known]).sum())
        found += case.finding(
            "slowing_kernels",
            f"kernels of {label} take {100 * factor - 100:.0f}% longer at the end than at first",
            "see its clocks, power limit and temperature, and what else runs on it",
            subject=f"kernels of {label} slow down",
            saved_ns=max(0, int(more.sum())),
            window=(int(ops.start[rows[-third]]), int(ops.end[rows].max())),
            place=place,
        )
    shown, hidden = cut(listed, arguments)
    columns = (
        (Column("GPU"), [row[0] for row in shown]),
        (Column("First Third", Unit.NS), [row[1] for row in shown]),
        (Column("Last Third", Unit.NS), [row[2] for row in shown]),
        (Column("Kernel"), [row[3] for row in shown]),
    )
    return Result(columns, tuple(sorted(found, key=lambda one: -one.order_ns)[:1]), hidden=hidden)


def _growing(case: Case, place: int, rows: Rows, means: tuple[float, float]) -> list[Finding]:
    """A kernel that takes longer and longer.

    Args:
        case: the report.
        place: of its GPU.
        rows: of its launches.
        means: in the first and in the last third.
    """
    ops = case.report.operations
    quarters = [part.mean() for part in np.array_split(ops.durations(rows), 4)]
    if any(after < _GROWS * before for before, after in pairwise(quarters[1:])):
        return []
    cost = max(0, int((ops.durations(rows) - means[0]).sum()))
    name = fit(ops.shown[ops.name[rows[0]]], 2 * _NAME_CELLS)
    takes = f"{name} takes {means[1] / means[0]:.1f}x as long at the end as at first"
    return case.finding(
        "slowing_kernels",
        f"{takes}: {units.format_duration(cost)} more in all",
        "see whether its data has to grow so: a cache or a list that nobody cuts",
        subject=takes,
        saved_ns=0,
        stake_ns=cost,
        window=(int(ops.start[rows[-1]]), int(ops.end[rows[-1]])),
        place=place,
        screen="3",
        at_most=Severity.MEDIUM,
        doubt="the work may be meant to grow, as with the length of a sequence",
        settle="print the size of its data in each step, in the program itself",
    )


def _paces(case: Case, rows: Rows) -> tuple[Int64, Int64]:
    """GPU time and launches by code of the name."""
    ops = case.report.operations
    count = np.bincount(ops.name[rows], minlength=len(ops.names))
    return sums(ops.name[rows], ops.durations(rows), len(ops.names)), count.astype(np.int64)


@rule(
    "GPUs that work for several processes by turns",
    advice="Without MPS a GPU switches between processes, and their kernels never run together:"
    " use MPS, or a GPU for each process.",
    nothing="Each GPU works for one process, or its processes run together.",
    parameters=(Parameter("share", 10.0, "share of a GPU's time that counts, in percent"),),
)
def shared_gpus(case: Case, arguments: Arguments) -> Result:
    """GPUs that switch often between processes whose work does not overlap."""
    ops = case.report.operations
    listed: list[tuple[str, str, int, float]] = []
    found: list[Finding] = []
    for place, rows in case.by_device:
        code = ops.process[rows]
        time = sums(code, ops.durations(rows), len(ops.processes))
        turns = np.flatnonzero(np.diff(code))
        if len(turns) < _TURNS or np.count_nonzero(time) < 2:
            continue
        order = [c for c in np.argsort(-time, kind="stable").tolist() if time[c]]
        whole, second = int(time.sum()), int(time[order[1]])
        spans = [rows[code == c] for c in order[:2]]
        runs = [intervals.union(ops.start[own], ops.end[own]) for own in spans]
        together = intervals.overlap_length(*runs)
        if 100 * second < arguments.number("share") * whole or 10 * together > second:
            continue
        label = case.device_labels([place])
        names = [case.report.process_name(int(ops.processes[c])) for c in order]
        listed += [
            (label, name, int(time[c]), 100 * time[c] / whole)
            for c, name in zip(order, names, strict=True)
        ]
        found += case.finding(
            "shared_gpus",
            f"{label} works by turns for {len(order)} processes:"
            f" {units.format_share(int(time[order[0]]), whole, 0)} of its time for"
            f" {fit(names[0], _NAME_CELLS)}, {units.format_share(second, whole, 0)} for"
            f" {fit(names[1], _NAME_CELLS)}",
            "use MPS (nvidia-cuda-mps-control) so that they overlap, or a GPU for each",
            subject=f"{label} shared by processes",
            saved_ns=0,
            stake_ns=whole - int(time[order[0]]),
            window=(int(ops.start[rows[turns[0]]]), int(ops.end[rows[turns[0] + 1]])),
            place=place,
            at_most=Severity.MEDIUM,
        )
    shown, hidden = cut(listed, arguments)
    columns = (
        (Column("GPU"), [row[0] for row in shown]),
        (Column("Process"), [row[1] for row in shown]),
        (Column("GPU Time", Unit.NS), [row[2] for row in shown]),
        (Column("Share", Unit.PERCENT, 1), [row[3] for row in shown]),
    )
    return Result(columns, tuple(sorted(found, key=lambda one: -one.stake_ns)[:1]), hidden=hidden)
