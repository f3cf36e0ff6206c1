"""What shorter work of GPUs gives back: only what their hosts, and other GPUs, wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from nsys_tui.analysis.nccl.waiting import collective_waits
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Finding
from nsys_tui.analysis.rules.held import launched_late, limited
from nsys_tui.analysis.rules.late_ranks import meetings_of
from nsys_tui.model.arrays import Float64, Int64


class Spare(NamedTuple):
    """By how much work of a GPU could be shorter."""

    times: Int64
    """Ascending."""
    until: Float64
    """Of what runs until each of them, ns."""

    @property
    def ns(self) -> int:
        """In all."""
        return int(self.until[-1]) if len(self.until) else 0

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


def _needed(case: Case, device: int, spare: Spare) -> Spare:
    """Without what a launch comes late after, whenever that is done."""
    starts, ends = launched_late(case, device)
    times = np.unique(np.concatenate((spare.times, starts, ends)))
    begun, over = (np.searchsorted(edges, times[:-1], side="right") for edges in (starts, ends))
    shorter = np.where(begun > over, 0, np.diff(spare.at(times)))
    return Spare(times, np.append(0, np.cumsum(shorter)))


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
