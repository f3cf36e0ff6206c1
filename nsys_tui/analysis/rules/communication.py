"""Communication that nothing hides: whom a GPU waits for, and what of it stays in any case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.analysis.iterations.steps import Rule
from nsys_tui.analysis.nccl.waiting import PAIRWISE, collective_waits, waited_for
from nsys_tui.analysis.rules.case import Case, kept
from nsys_tui.analysis.rules.copies import bare
from nsys_tui.analysis.rules.nsys import DEVICE_TO_HOST, VALUE
from nsys_tui.analysis.stalls.causes import Cause, Edge
from nsys_tui.analysis.window import Scope
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Int64, Integers
from nsys_tui.model.categories import Category
from nsys_tui.model.groups import factorise_rows, sums
from nsys_tui.model.target import pid_of

if TYPE_CHECKING:
    from nsys_tui.analysis.breakdown import DeviceSplit
    from nsys_tui.analysis.iterations.steps import Iterations

_FEWEST: Final = 3
"""Steps from which on it is known what comes in each."""
_FINER: Final = (8, 4, 2)
"""Times as many micro-batches that a pipeline is imagined with."""
_QUICK: Final = 0.25
"""Part of a pipeline's messages, half of those that wait for no other stage."""
_SHORT_NS: Final = 30_000
"""What a message between GPUs takes however little it sends, and what delays it."""
_ALIKE: Final = 0.9
"""Part of the most messages of a GPU that each has, at least, where all exchange them at once."""
SEVERAL: Final = 3
"""GPUs from which on it shows whether all of them send at once."""


class _Stretches(NamedTuple):
    """Exposed communication of a device in steps: what compute does not separate is one stretch."""

    exposed: Int64
    step: Integers
    """Of each row, from 1 on."""
    stretch: Integers
    """Of each row."""
    of_step: Integers
    """Step of each stretch."""
    counts: Bool
    """Stretches half as long as the longest of their step, or longer."""


def _stretches(case: Case, device: int) -> _Stretches | None:
    """None where there is none, or no steps are known."""
    ops, comm = case.report.operations, case.doing(device, Category.COMM)
    compute = case.doing(device, Category.COMPUTE)
    exposed = bare(case, device, comm, (Category.COMPUTE,))
    comm, exposed = comm[exposed > 0], exposed[exposed > 0]
    steps = steps_of(case, comm) if len(comm) else case.iterations
    if not len(comm) or len(steps) < _FEWEST:
        return None
    begun = ops.start[comm] if steps.rule is Rule.PATTERN else case.begun(comm)
    step = np.searchsorted(steps.start, begun, side="right")
    stretch, kinds = factorise_rows((step, ops.places(compute, ops.end[comm])))
    time, of_step = sums(stretch, exposed, len(kinds)), kinds[:, 0]
    longest = np.zeros(step.max() + 1, np.int64)
    np.maximum.at(longest, of_step, time)
    counts = np.asarray(2 * time >= longest[of_step], np.bool_)
    return _Stretches(exposed, step, stretch, of_step, counts)


def staying(case: Case, device: int) -> int:
    """Of exposed communication that comes several times a step, the first or last of each.

    Where a step has one stretch alone, its collectives count; a lone one can be split.
    """
    if (found := _stretches(case, device)) is None:
        return 0
    exposed, step, stretch, of_step, counts = found
    lone = np.bincount(of_step[counts]) == 1
    parts, whole = (lone[of_step] & counts)[stretch], counts & ~lone[of_step]
    time = np.append(sums(stretch, exposed, len(of_step))[whole], exposed[parts])
    step = np.append(of_step[whole], step[parts])
    order = np.argsort(step, kind="stable")
    time, step = time[order], step[order]
    first = np.flatnonzero(np.diff(step, prepend=-1))
    last = np.append(first[1:], len(step)) - 1
    return int(np.minimum(time[first], time[last])[first < last].sum())


def could_hide(case: Case, device: int) -> int:
    """How long compute of a GPU could hide what it has exposed of its communication, ns.

    That comes before communication since the host last read a value: what follows needs the
    results, and what the host launched before it read is over.
    """
    ops, comm = case.report.operations, case.doing(device, Category.COMM)
    computes = case.doing(device, Category.COMPUTE)
    copies = case.doing(device, Category.MEMORY)
    read = (ops.copy_kind[copies] == DEVICE_TO_HOST) & (ops.bytes[copies] <= VALUE)
    reads = ops.start[copies[read]]
    begun = ops.start[computes]
    part, of_comm = (intervals.placed(reads, times) for times in (begun, ops.start[comm]))
    last = np.zeros(len(reads) + 1, np.int64)
    np.maximum.at(last, of_comm, ops.start[comm])
    exposed = sums(of_comm, bare(case, device, comm, (Category.COMPUTE,)), len(last))
    before = (begun < last[part]) & (exposed > 0)[part]
    alone = bare(case, device, computes[before], (Category.COMM,))
    hiding = sums(part[before], alone, len(last))
    return int(np.minimum(hiding, exposed).sum())


def steps_of(case: Case, rows: Indices) -> Iterations:
    """Steps of the process that runs some operations."""
    ops = case.report.operations
    process = int(ops.processes[ops.process[rows[0]]])
    if process == case.iterations.process:
        return case.iterations
    return find_iterations(case.report, scope=Scope(processes=frozenset((pid_of(process),))))


def waiting(case: Case, split: DeviceSplit) -> int:
    """How long a GPU waits in collectives, or in transfers that queue behind those of late ranks.

    That is what it has exposed beyond what the last ranks have.
    """
    transfers = of_last_ranks(case, split.index, (Category.COMPUTE,))
    return max(split.exposed_waiting_ns or 0, split.exposed_comm_ns - transfers)


def late_gpu(case: Case, device: int, waited: int) -> tuple[int, bool]:
    """The GPU that one mostly waits for, -1 for none, and whether several are late by turns.

    They are where none has half of the waiting, or where that one waits half as long itself.
    """
    for_each = waited_for(case.report, device)
    late = int(np.argmax(for_each))
    if not for_each[late]:
        return -1, False
    waits_too = next((waiting(case, s) for s in case.steady_splits if s.index == late), 0)
    if 2 * for_each[late] < for_each.sum() or 2 * waits_too >= waited:
        return -1, True
    return late, False


def launched_late(case: Case, device: int) -> int:
    """How long a GPU is in communication alone while its own host prepares what runs next, ns.

    Were the others in time, it would idle then. A host that launches only when communication is
    over may have waited for it.
    """
    ops, rows = case.report.operations, case.by_device[device]
    rows = rows[(ops.category[rows] != Category.COMM) & (ops.category[rows] != Category.MEMORY)]
    alone = case.exposed(device, Category.COMM)
    alone = intervals.subtract(alone, case.runs(device, Category.GRAPH))
    done, launched = np.maximum.accumulate(ops.end[rows])[:-1], case.begun(rows[1:])
    late = (launched > done) & (launched < ops.start[rows[1:]]) & (done >= case.first_step)
    done, launched = done[late], launched[late]
    late = intervals.covered(alone, launched, launched + 1) > 0
    return intervals.overlap_length(intervals.union(done[late], launched[late]), alone)


def of_last_ranks(case: Case, device: int, hiding: Sequence[Category]) -> int:
    """What the last rank of each collective of a GPU has exposed of it: how long all transfer.

    The others begin sooner and wait; of a collective whose ranks are not known, its own.
    """
    return int(_of_last_ranks(case, hiding)[device])


@kept
def _of_last_ranks(case: Case, hiding: Sequence[Category]) -> Int64:
    """The same of all GPUs, by their places."""
    ops, waits = case.report.operations, collective_waits(case.report)
    rows = np.concatenate([case.doing(one, Category.COMM) for one in case.by_device])
    _, place, known = np.intersect1d(rows, waits.row, assume_unique=True, return_indices=True)
    last = rows.copy()
    last[place] = waits.last[known]
    last = np.where(np.isin(ops.device[last], [*case.by_device]), last, rows)
    exposed = np.zeros(len(rows), np.int64)
    for device in case.by_device:
        mine = ops.device[last] == device
        exposed[mine] = bare(case, device, last[mine], hiding)
    return sums(ops.device[rows], exposed, len(case.report.devices))


def idle_for_host(case: Case) -> Int64:
    """By device, how long it idled from the first step on while its host worked, or did I/O."""
    gaps = case.stalls.gaps
    works = gaps.time(Cause.IO, Cause.OSRT, Cause.HOST)
    inner = (gaps.edge == Edge.INNER) & (gaps.start >= case.first_step)
    return sums(gaps.device, works * inner, len(case.report.devices))


@kept
def pairwise(case: Case, device: int) -> Indices:
    """Kernels of a GPU that talk to one other, as between stages of a pipeline, if most do.

    Where the kernels of three GPUs or more end as one, each talks to all of them.
    """
    ops, chosen = case.report.operations, _messages(case, device)
    together = np.isin(chosen, collective_waits(case.report).row, kind="table")
    each_other = len(case.splits) < SEVERAL or 2 * int(together.sum()) < len(together)
    each_other &= not exchange_at_once(case)
    whole = ops.durations(case.doing(device, Category.COMM)).sum()
    most = 2 * ops.durations(chosen).sum() > whole
    return chosen if most and each_other else chosen[:0]


def _messages(case: Case, device: int) -> Indices:
    """Kernels of a GPU that send and receive."""
    ops, rows = case.report.operations, case.doing(device, Category.COMM)
    pairwise = np.array([PAIRWISE in name.short for name in ops.names], bool)
    chosen: Indices = rows[pairwise[ops.name[rows]]]
    return chosen


def exchange_little(case: Case, device: int) -> bool:
    """Whether they do, and messages are so short that their number takes the time."""
    took = case.report.operations.durations(_messages(case, device))
    return exchange_at_once(case) and float(np.median(took)) <= _SHORT_NS


@kept
def exchange_at_once(case: Case) -> bool:
    """Whether several GPUs mostly begin to exchange at one time, as no stages of a pipeline do.

    Each has about as many messages: a capture may begin between those of two, or lose some.
    """
    ops, rows = case.report.operations, [_messages(case, one) for one in case.by_device]
    fewest, *others = sorted(rows, key=len)
    if len(rows) < SEVERAL or not len(fewest) >= _ALIKE * len(others[-1]) > 0:
        return False
    begun, half = ops.start[fewest], ops.durations(fewest) // 2
    near = [ops.places(mine, begun + half) > ops.places(mine, begun - half) for mine in others]
    return 2 * int(np.all(near, axis=0).sum()) > len(fewest)


def finer_batches(case: Case, paced: int) -> tuple[int, int]:
    """What more micro-batches of a pipeline could save, and how many times as many, 1 for none.

    Stages wait the less for each other, at fill and drain, the more there are; the busiest one
    waits for nothing else. Each brings messages of its own, and those that nothing hides delay the
    stage with most of them. Where that costs more than it saves, what is left is to hide them.

    Args:
        case: the report.
        paced: how long the stage that computes longest does not compute, ns.
    """
    ops, rows = case.report.operations, {one: pairwise(case, one) for one in case.by_device}
    # Of each two kernels of a message one comes last, and lasts as long as the transfer.
    transfer = int(np.quantile(ops.durations(np.concatenate([*rows.values()])), _QUICK))
    sent = max(_sent(case, one, some, transfer) for one, some in rows.items())
    sent = min(sent, paced)
    waited = paced - sent
    more = [(waited - waited // times - (times - 1) * sent, times) for times in _FINER]
    return max((sent, 1), *more)


def _sent(case: Case, device: int, messages: Indices, transfer: int) -> int:
    """What transfers of messages last where no compute hides them; some run beside others."""
    computes = case.runs(device, Category.COMPUTE)
    starts, ends = intervals.subtract(case.report.operations.runs(messages), computes)
    return int(np.minimum(ends - starts, transfer).sum())
