"""What GPUs give back that others, or their hosts, wait for: late ranks, and shorter work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from nsys_tui.analysis.nccl.waiting import collective_waits
from nsys_tui.analysis.rules.case import AND_OTHERS, Case
from nsys_tui.analysis.rules.finding import Finding
from nsys_tui.analysis.rules.held import host_waits, launched_late, limited, work_of
from nsys_tui.analysis.rules.imbalance import AT_ONCE_NS
from nsys_tui.analysis.rules.nsys import PEER_COPY
from nsys_tui.analysis.stalls.causes import Gaps
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Float64, Int64, Integers
from nsys_tui.model.categories import Category
from nsys_tui.model.groups import sums
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.target import PROCESS_MASK

_TELL_OTHERS: Final = ("exposed_copies", "gpu_idle", "gpu_imbalance", "sync_by_range")
"""Rules that say where several GPUs lose time alike; of the rest all may."""
_LATE: Final = 3
"""So many times as long as the late rank all others wait: less may be chance."""
_OF_WORK: Final = (
    *("dominant_kernel", "exposed_copies", "memsets", "migrations_in_kernels", "movement_kernels"),
    "slow_copies",
)
"""Rules on work that could be shorter, which do not know where that shortens nothing."""


def without_others(case: Case, findings: Sequence[Finding]) -> list[Finding]:
    """The findings, those of ranks that come late together each priced by what it alone costs.

    All wait until the last rank has come to the next collective, however late the others come.
    """
    late = [one for one in findings if _is_late(one)]
    last = meetings_of(case) if late and len(case.by_device) > 1 else np.empty(0, np.int64)
    if not len(last):
        return [*findings]
    meetings, came = case.report.operations.start[last], _came_last(case, last)
    late_by: dict[int, Int64] = {}
    lateness = {id(one): _lateness(case, one, meetings) for one in late}
    for one in late:
        if one.device is not None:
            late_by[one.device] = late_by.get(one.device, 0) + lateness[id(one)]
    priced, when = [], dict[int, str]()
    told, gained = dict.fromkeys(late_by, 0), dict.fromkeys(late_by, 0)
    for one in findings:
        if one.device is not None and _is_late(one):
            device = one.device
            lost = lateness[id(one)]
            saved, whom = _alone(device, lost, late_by, came)
            if one.lost is None and len(late_by) == 1:
                saved = one.saved_ns
            told[device] += one.saved_ns
            gained[device] += min(saved, one.saved_ns)
            when[device] = f"{case.device_labels([whom])} comes sooner, too"
            one = limited(one, saved, when[device])
        priced.append(one)
    return [_victim(one, told, gained, when) if one.late in when else one for one in priced]


def _victim(
    waiting: Finding,
    told: dict[int, int],
    gained: dict[int, int],
    when: dict[int, str],
) -> Finding:
    """A wait for a late GPU: it ends as much sooner as the faults of that GPU that explain it.

    Args:
        waiting: the finding.
        told: what each GPU is late for by its own findings.
        gained: what these give back alone.
        when: what gives the rest back.
    """
    late = waiting.late
    explained = 2 * told[late] >= waiting.saved_ns
    rest = max(0, waiting.saved_ns - told[late] + gained[late])
    saved = gained[late] if explained else rest
    return limited(waiting, saved, when[late]) if waiting.saved_ns else waiting


def _alone(device: int, lost: Int64, late_by: dict[int, Int64], came: Integers) -> tuple[int, int]:
    """What it saves if a GPU alone does not lose some time before each meeting; who else is late.

    Nothing where another one comes last nevertheless.

    Args:
        device: of the GPU.
        lost: by meeting, and after them.
        late_by: what each late GPU loses in all, alike.
        came: the GPU that comes last to each meeting.
    """
    own, sooner = late_by[device], came != device
    others = {other: by for other, by in late_by.items() if other != device}
    latest = np.maximum.reduce([np.zeros_like(own), *others.values()])
    saved = np.maximum(own, latest) - np.maximum(own - lost, latest)
    saved[:-1][sooner] = 0
    if not others:
        return int(saved.sum()), int(sums(came, lost[:-1] * sooner, int(came.max()) + 1).argmax())
    return int(saved.sum()), max(others, key=lambda one: int(np.minimum(lost, others[one]).sum()))


def _is_late(finding: Finding) -> bool:
    """Whether one GPU alone idles or computes longer for it, so that its rank may come late."""
    known = finding.lost is not None or finding.rule == "gpu_imbalance"
    alone = finding.rule in _TELL_OTHERS and AND_OTHERS not in finding.title
    return known and finding.device is not None and alone and finding.saved_ns > 0


def _lateness(case: Case, finding: Finding, meetings: Int64) -> Int64:
    """How much later a GPU comes to each meeting; one that computes longer does so all the time."""
    if finding.lost is not None or finding.device is None:
        return _between(meetings, finding.lost or intervals.empty())
    ops, rows = case.report.operations, case.doing(finding.device, Category.COMPUTE)
    took = _between(meetings, (ops.start[rows], ops.end[rows]))
    return took * finding.saved_ns // max(int(took.sum()), 1)


def meetings_of(case: Case) -> Int64:
    """The last rank's operation of each collective of all GPUs that most of them wait for.

    Where a GPU computes on meanwhile, it comes to the next one no sooner.
    """
    waits, ops = collective_waits(case.report), case.report.operations
    waited = np.zeros(len(waits.row), bool)
    for device in case.by_device:
        begun = ops.start[case.doing(device, Category.COMPUTE)]
        mine = ops.device[waits.row] == device
        edges = (ops.start[waits.row[mine]], ops.end[waits.row[mine]])
        waited[mine] = np.equal(*(np.searchsorted(begun, edge) for edge in edges))
    last, group, count = np.unique(waits.last, return_inverse=True, return_counts=True)
    whole = count == len(case.by_device)
    most = whole & (2 * np.bincount(group.ravel(), waited, len(last)) >= count)
    meetings: Int64 = last[most if most.any() else whole]
    return meetings[np.argsort(ops.start[meetings], kind="stable")]


def _came_last(case: Case, last: Int64) -> Integers:
    """The GPU that makes each meeting late, by the last rank's operation of it.

    Collectives that begin at once where the one before ends were ready: who came last to the first
    of such a row holds up all of it.
    """
    ops, every = case.report.operations, collective_waits(case.report).last
    every = np.unique(every)
    every = every[np.argsort(ops.start[every], kind="stable")]
    begun, done = ops.start[every], np.maximum.accumulate(ops.end[every])
    alone = np.append(np.ones(1, bool), begun[1:] > done[:-1] + AT_ONCE_NS)
    first = np.maximum.accumulate(np.where(alone, np.arange(len(every)), 0))
    return np.asarray(ops.device[every[first[np.searchsorted(begun, ops.start[last])]]])


def _between(meetings: Int64, lost: Intervals) -> Int64:
    """How long some time lasts before each of the meetings, and after them."""
    return sums(np.searchsorted(meetings, lost[0]), lost[1] - lost[0], len(meetings) + 1)


def late_rank(case: Case, gaps: Gaps) -> tuple[int, int]:
    """The GPU for whose rank the others wait in MPI, -1 for none, and how much time that can cost.

    Without waits the run takes what else its ranks do. So what the rank that waits least waits is
    all there is to gain; where the others wait for it, what the next one waits.
    """
    ops, waited = case.report.operations, np.bincount(gaps.device, gaps.idle)
    ranks = [
        device for device, rows in case.by_device.items() if _calls_mpi(case, ops.process[rows])
    ]
    waited = np.append(waited, np.zeros(len(case.report.devices)))
    order = sorted(ranks, key=lambda device: waited[device])
    if len(order) < 2:
        return -1, case.base_ns
    least, next_ = (int(waited[device]) for device in order[:2])
    return (order[0], next_) if _LATE * least < next_ else (-1, least)


def _calls_mpi(case: Case, process: Integers) -> bool:
    """Whether a process that some operations are of makes calls of MPI."""
    ops, ranks = case.report.operations, case.mpi_calls[0] & PROCESS_MASK
    return bool(np.isin(ops.processes[np.flatnonzero(np.bincount(process))], ranks).any())


def without_messages(case: Case, gaps: Gaps, lost: Intervals) -> tuple[Gaps, Intervals]:
    """Waits of one GPU's rank, and when it idles for them, without copies between GPUs meanwhile.

    These bring what it waits for: nobody is late then.
    """
    ops, device = case.report.operations, int(gaps.device[0])
    copies = case.copies[ops.copy_kind[case.copies] == PEER_COPY]
    copied = ops.runs(copies[ops.device[copies] != device])
    within = intervals.covered(intervals.meet(lost, copied), gaps.start, gaps.end)
    late = replace(gaps, idle=np.maximum(gaps.idle - within, 0))
    return late.take(late.idle > 0), intervals.subtract(lost, copied)


def messages_next(case: Case, gaps: Gaps) -> bool:
    """Whether most of some time is waits after which the same thread calls MPI, within the gap."""
    thread, start, _ = case.mpi_calls
    code = np.bincount(gaps.caller[gaps.caller >= 0], minlength=1).argmax()
    begun = np.sort(start[thread == case.report.api.threads[code]])
    called = np.greater(*np.searchsorted(begun, (gaps.end, gaps.start)))
    return 2 * int(gaps.idle[called].sum()) > int(gaps.idle.sum())


class Spare(NamedTuple):
    """By how much work of a GPU could be shorter."""

    times: Int64
    """Ascending."""
    until: Float64
    """Of what runs until each of them, ns."""

    @property
    def ns(self) -> int:
        """In all."""
        return round(self.until[-1]) if len(self.until) else 0

    def at(self, times: Int64) -> Float64:
        """Of what runs until some times."""
        return np.asarray(np.interp(times, self.times, self.until), np.float64)


def waited_for(
    case: Case, findings: Sequence[Finding], spare: Mapping[int, Spare]
) -> list[Finding]:
    """The findings of a rule, priced by what the run would be shorter.

    Args:
        case: the report.
        findings: each priced by all that its GPU could do sooner.
        spare: that of each GPU.
    """
    if not findings:
        return []
    needed = {device: _needed(case, device, one) for device, one in spare.items()}
    saved, whom = _of_all(case, needed)
    own = max(one.ns for one in needed.values())
    late = f"{case.device_labels([whom])} comes sooner, too"
    when = late if 2 * saved < own else "the host is quicker"
    return [limited(one, saved, when) for one in findings]


def sooner(case: Case, finding: Finding) -> Finding:
    """A finding on work, priced by what its host waits for and does not launch late after."""
    device = finding.device
    if finding.rule not in _OF_WORK or finding.lost or not finding.saved_ns or device is None:
        return finding
    spans = finding.gone or work_of(case, finding) or case.runs(device, Category.COMPUTE)
    part = finding.saved_ns / max(intervals.total(*spans), 1)
    until = np.repeat(np.cumsum(spans[1] - spans[0]) * part, 2)
    spare = Spare(np.stack(spans, axis=1).ravel(), np.append(0, until)[:-1])
    fuses = finding.rule == "movement_kernels"  # Fusing kernels makes launches fewer, too.
    saved = (_in_time if fuses else _needed)(case, device, spare).ns
    return limited(finding, saved, "the host is quicker")


def _in_time(case: Case, device: int, spare: Spare) -> Spare:
    """Without what a launch comes late after."""
    starts, ends = launched_late(case, device)
    times = np.unique(np.concatenate((spare.times, starts, ends)))
    begun, over = (np.searchsorted(edges, times[:-1], side="right") for edges in (starts, ends))
    shorter = np.where(begun > over, 0, np.diff(spare.at(times)))
    return Spare(times, np.append(0, np.cumsum(shorter)))


def _needed(case: Case, device: int, spare: Spare) -> Spare:
    """The same, and no more than the host waits up to each wait that ends with the GPU idle.

    Others, for one of several streams or for room in the queue, leave it enough to do.
    """
    spare = _in_time(case, device, spare)
    if (waits := host_waits(case)) is None:
        return spare
    busy = case.idle_time.busy(device)
    idles = intervals.covered(busy, waits[1], waits[1] + 1) == 0
    idles[-1:] = True
    done, waited = waits[1][idles], intervals.covered(busy, *waits)
    waited = sums(np.searchsorted(done, waits[1]), waited, len(done))
    gains = np.minimum(np.diff(spare.at(done), prepend=0), waited)
    return Spare(np.append(case.base[0], done), np.append(0, gains.cumsum()))


def _of_all(case: Case, spare: Mapping[int, Spare]) -> tuple[int, int]:
    """How much sooner the last GPU comes to each collective, each as soon as it can.

    Returns:
        the time, and the GPU that comes last then most often.
    """
    devices, ops = [*case.by_device], case.report.operations
    last = meetings_of(case) if len(devices) > 1 else np.empty(0, np.int64)
    if not len(last):
        device = max(spare, key=lambda one: spare[one].ns)
        return spare[device].ns, device
    waits, order = collective_waits(case.report), np.argsort(last)
    row = waits.row[np.isin(waits.last, last)]
    which = order[np.searchsorted(last, waits.last[np.isin(waits.last, last)], sorter=order)]
    came = np.tile(np.append(ops.start[last], 0), (len(devices), 1))
    came[:, -1] = [ops.end[case.by_device[device]].max(initial=0) for device in devices]
    came[np.searchsorted(devices, ops.device[row]), which] = ops.start[row]
    could = came.astype(np.float64)
    for place, device in enumerate(devices):
        if device in spare:
            could[place] -= np.diff(spare[device].at(came[place]), prepend=0)
    latest = np.bincount(could.argmax(axis=0)).argmax()
    return int((came.max(axis=0) - could.max(axis=0)).sum()), devices[int(latest)]
