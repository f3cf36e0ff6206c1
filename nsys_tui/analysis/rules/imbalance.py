"""Our rule on GPUs that compute longer than the others: slower ones, and those with more work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.nccl.waiting import collective_waits
from nsys_tui.analysis.rules.case import AND_OTHERS
from nsys_tui.analysis.rules.communication import pairwise
from nsys_tui.analysis.rules.finding import Finding, Severity
from nsys_tui.analysis.rules.register import Arguments, Parameter, Result, rule
from nsys_tui.analysis.window import clipped
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Float64, Indices, Int64
from nsys_tui.model.categories import Category
from nsys_tui.model.groups import factorise_rows, sums
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.table import Column, Unit, Values
from nsys_tui.names import brief

if TYPE_CHECKING:
    from nsys_tui.analysis.breakdown import DeviceSplit
    from nsys_tui.analysis.rules.case import Case
    from nsys_tui.model.events import Operations

_SOME: Final = 0.1
"""Part of a GPU's compute time that its run has to wait for, else it being slower matters not."""
MORE_WORK: Final = "has more work than the others"
"""End of the subject of a GPU that is not slow."""
AT_ONCE_NS: Final = 10_000
"""From the end of a collective to the next that waited for it alone, at most."""
_MODEL_CELLS: Final = 30
_NAME_CELLS: Final = 22
_ALIKE: Final = 0.5
"""Part of the slowest GPU's excess from which another one holds the run up beside it."""
_BY_SHAPE: Final = "nsys-tui stats REPORT -r cuda_gpu_kern_gb_sum --by-device"


@rule(
    "GPUs that compute longer than others",
    advice="One GPU has more compute time than the others, which then wait for it: balance the"
    " work, or look for a throttled GPU.",
    nothing="The GPUs compute about equally long, or there is only one.",
    parameters=(Parameter("threshold", 5.0, "difference that counts, in percent of the median"),),
)
def gpu_imbalance(case: Case, arguments: Arguments) -> Result:
    """Compute time of each GPU against the median of the others, where all run the same kernels.

    A slow GPU could be as fast as the others. One that runs more kernels, or larger ones, or is as
    fast in all but one, has more work, which does not vanish: divided in whatever way, some GPU
    computes for the mean of all at least, so that the gain ends there (of two GPUs, at half of the
    difference). One of another model stays slow: the gain ends where all of them, each at its pace,
    end together.
    """
    splits = [split for split in case.splits if split.compute_ns]
    if len(splits) < 2 or not (work_together(case) and _do_the_same(case)):
        splits = []
    compute = np.array([split.compute_ns for split in splits], np.int64)
    others = _medians_of_others(compute)
    excess = compute - others
    more = 100 * excess / others
    rows = np.flatnonzero(more >= arguments.number("threshold"))
    findings: list[Finding] = []
    if len(rows):
        slow = int(rows[np.argmax([more[device] for device in rows])])
        split, saved = splits[slow], excess[slow]
        advice = "balance the work, or look for a throttled or shared GPU"
        near = rows[more[rows] >= _ALIKE * more[slow]].tolist()
        longer = {row: _slower_ns(case, splits[row].index) for row in near}
        slower = {row: 2 * longer[row][0] >= excess[row] for row in near}
        label, computes, doubt, settle = split.device.label, "computes", "", ""
        subject = f"{label} slower than the others"
        if not slower[slow]:
            advice = "give the others a part of its work"
            saved = _balanced(case, split, compute.mean(), others[slow])
            subject = f"{label} {MORE_WORK}"
            doubt, settle = "it may be work that no other GPU can do", _BY_SHAPE
        elif _is_another_model(split, splits):
            advice = (
                f"it is a {brief(split.device.name, _MODEL_CELLS)}, as no other is: give it less"
            )
            saved = compute[slow] - len(splits) / (1 / compute).sum()
        elif (name := longer[slow][1]) >= 0:
            advice = "other kernels are as quick: balance its data, or see the GPU's clocks"
            saved = _balanced(case, split, compute.mean(), others[slow])
            subject = f"{brief(case.report.operations.shown[name], _NAME_CELLS)} longer on {label}"
            doubt, settle = "if its clock is lower, all of the difference could be saved", _BY_SHAPE
        elif sum(slower.values()) > 1:
            label, computes = label + AND_OTHERS, "compute up to"
            subject = f"{label} slower than the others"
        paces = _paces(case, split.index)
        findings = case.finding(
            "gpu_imbalance",
            f"{label} {computes} {units.format_percent(more[slow])} longer"
            f" than the others ({units.format_duration(split.compute_ns)} against"
            f" {units.format_duration(round(others[slow]))})",
            advice,
            subject=subject,
            saved_ns=round(saved * paces),
            at_most=Severity.HIGH if paces > _SOME else Severity.LOW,
            stake_ns=round(excess[slow]),
            window=case.base,
            device=split.index,
            screen="2",
            command="nsys-tui overview REPORT --section devices",
            doubt=doubt,
            settle=settle,
        )
    listed = splits if len(rows) else []
    columns: tuple[tuple[Column, Values], ...] = (
        (Column("GPU"), [split.device.label for split in listed]),
        (Column("Compute", Unit.NS), [split.compute_ns for split in listed]),
        (Column("Against Others", Unit.PERCENT, 1), more if listed else []),
        (Column("Communication", Unit.NS), [split.comm_ns for split in listed]),
        (Column("Idle", Unit.NS), [split.idle_ns for split in listed]),
    )
    return Result(columns, findings)


def _is_another_model(split: DeviceSplit, splits: Sequence[DeviceSplit]) -> bool:
    """Whether a GPU has a name that none of the others has."""
    known = all(one.device.info for one in splits)
    return known and [one.device.name for one in splits].count(split.device.name) == 1


def _paces(case: Case, device: int) -> float:
    """Part of a GPU's compute time that its run waits for.

    What merely fills the time between late launches is none, where most does: a launch-bound phase
    in a run is no reason to be slow. Nor is what runs beside collectives, one at once after the
    other, that go on when it ends, and wait for no other rank.
    """
    ops, comm = case.report.operations, case.doing(device, Category.COMM)
    compute = case.doing(device, Category.COMPUTE)
    computes = intervals.union(*clipped(ops, compute, case.base))
    whole = max(intervals.total(*computes), 1)
    late = intervals.overlap_length(computes, case.launch_bound(device)) / whole
    waits = collective_waits(case.report)
    waited = waits.row[waits.until > ops.start[waits.row] + AT_ONCE_NS]
    longer = _outlasting(ops, np.setdiff1d(comm, waited), computes)
    beside = intervals.overlap_length(computes, longer) / whole
    return 1 - beside - late * (2 * late > 1)


def _outlasting(ops: Operations, comm: Indices, computes: Intervals) -> Intervals:
    """Communication without a pause at whose end nothing computes."""
    starts, ends = intervals.union(ops.start[comm], ops.end[comm] + AT_ONCE_NS)
    ends = ends - AT_ONCE_NS
    over = intervals.covered(computes, ends - AT_ONCE_NS, ends) == 0
    return starts[over], ends[over]


def work_together(case: Case) -> bool:
    """Whether one GPU may wait for another: they communicate, or one process drives several."""
    ops, rows = case.report.operations, case.operations
    by_host = any(kind.startswith("mpi_") for kind in case.report.host_events.kinds)
    if by_host or any(split.comm_ns for split in case.splits):
        return True
    _, pairs = factorise_rows((ops.device[rows], ops.process[rows]))
    return len(np.unique(pairs[:, 1])) < len(pairs)


def _do_the_same(case: Case) -> bool:
    """Whether each GPU spends most of its compute time in kernels that all of them run.

    Of GPUs that do different work none is slow.
    """
    every = case.alike.where(case.alike.category == Category.COMPUTE)
    shared = np.ones(len(case.report.operations.names), bool)
    time = []
    for device in np.unique(every.device):
        mine = every.where(every.device == device)
        time.append(sums(mine.name, mine.time, len(shared)))
        shared &= time[-1] > 0
    return all(2 * per_name[shared].sum() > per_name.sum() for per_name in time)


def _slower_ns(case: Case, slow: int) -> tuple[float, int]:
    """How much longer kernels of a GPU take than on the others, where all have the same work.

    A launch is measured by those of its name and shape on the others, without any by those of its
    name and their threads; what others do not run at all is no slower, but more work.

    Returns:
        The time, and the only name whose kernels take longer, -1 where others do, too.
    """
    launch = case.report.launch_attributes
    every = case.alike.where(case.alike.category == Category.COMPUTE)
    codes, kinds = factorise_rows((every.name, every.code, every.device == slow))
    time, count = (sums(codes, of, len(kinds)) for of in (every.time, every.launched))
    threads = count * np.maximum(launch.blocks * launch.threads, 1)[kinds[:, 1]]
    own = kinds[:, 2] > 0
    of_shape, _ = factorise_rows((kinds[:, 0], kinds[:, 1]))
    usual = np.zeros(np.count_nonzero(own))
    for codes in (kinds[:, 0], of_shape):
        there = sums(codes[~own], threads[~own], codes.max() + 1)
        pace = sums(codes[~own], time[~own], len(there)) / np.maximum(there, 1)
        mine = codes[own]
        usual = np.where(there[mine] > 0, pace[mine] * threads[own], usual)
    known, took, name = usual > 0, time[own], kinds[own, 0]
    longer = np.bincount(name[known], (took - usual)[known], 1)
    top, rest = int(longer.argmax()), longer.sum() - longer.max()
    compared = took[known & (name != top)].sum() > _SOME * took.sum()
    return float(longer.sum()), top if compared and rest < _SOME * longer.max() else -1


def _balanced(case: Case, busiest: DeviceSplit, mean: float, others: float) -> float:
    """What the busiest GPU saves if all have as much work; a pipeline fills and drains slower then.

    Args:
        case: the report.
        busiest: of that GPU.
        mean: compute time of all GPUs.
        others: usual compute time of the other ones.
    """
    saved = busiest.compute_ns - mean
    if not len(pairwise(case, busiest.index)):
        return saved
    return max(0.0, saved - (case.base_ns - busiest.compute_ns) * (mean / others - 1))


def _medians_of_others(values: Int64) -> Float64:
    """For each value the median of all others, from one sort."""
    ordered = np.sort(values)
    rank = np.searchsorted(ordered, values)
    middle = [(len(values) - 2) // 2, (len(values) - 1) // 2]
    pairs = [ordered[place + (place >= rank)] for place in middle] if len(values) > 1 else [values]
    return np.asarray(np.mean(pairs, axis=0), np.float64)
