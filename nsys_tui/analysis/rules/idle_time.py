"""When each GPU of a report is idle, and which one others hold up longest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

import numpy as np

from nsys_tui.analysis.breakdown import Coverage, Covered
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Indices, Int64, Integers
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import FARTHEST
from nsys_tui.model.groups import used
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.report import Report

_QUEUED: Final = 20
"""Kernels that follow each other as they are queued, from which it is known how soon that is."""
_ENOUGH: Final = 1 << 17
"""Operations that tell it: the last ones, long after set-up."""
_STEP_NS: Final = 1_000
"""Time from one queued kernel of a stream to the next, where a report does not show it."""


class IdleTime:
    """When devices work and when they do not.

    Args:
        report: the report.
        base: the time looked at.
        by_device: place of each device in scope, and rows of its operations.
        coverage: when each of them did what, by its place.
    """

    def __init__(
        self,
        report: Report,
        base: tuple[int, int],
        by_device: Mapping[int, Indices],
        coverage: Mapping[int, Coverage],
    ) -> None:
        self.report, self.base, self.by_device, self._coverage = report, base, by_device, coverage

    @cached_property
    def _idle_of(self) -> dict[int, tuple[Covered, frozenset[int]]]:
        """When each device idled, and the processes (globalPid) that it worked for."""
        ops, idle = self.report.operations, {}
        for device, rows in self.by_device.items():
            busy = self.busy(device)
            streams = [one for one in ops.streams if one.device == device]
            if len(rows) < len(ops.of_devices[device]):
                streams = [ops.streams[code] for code in used(ops.stream[rows])]
            # No CUDA call holds rendering up.
            owners = frozenset(one.globalPid for one in streams if one.id >= -OpKind.GRAPH)
            idle[device] = Covered(*intervals.gaps(*busy, *self.base)), owners
        return idle

    def busy_ns(self, device: int, since: int = -FARTHEST) -> int:
        """How long a device worked, since a time."""
        edges = np.array([[max(since, self.base[0])], [self.base[1]]])
        return int((edges[1] - edges[0] - self._idle_of[device][0].within(*edges))[0])

    def busy(self, device: int) -> Intervals:
        """When a device worked."""
        return self._coverage[device].busy.pair

    def idle_part(self, device: int, spans: Intervals) -> Intervals:
        """What of some intervals a device was idle in, within the time looked at."""
        idle = self._idle_of[device][0]
        return intervals.meet(intervals.union(*spans), (idle.starts, idle.ends))

    def late_part(self, device: int, spans: Intervals) -> Intervals:
        """What of each idle time would not pass with the next operation queued, or in a graph."""
        starts = np.minimum(spans[0] + self.steps[device], spans[1])
        return starts[starts < spans[1]], spans[1][starts < spans[1]]

    @cached_property
    def steps(self) -> dict[int, int]:
        """Of each device the usual time between queued kernels of a stream, within limits."""
        ops, api, steps = self.report.operations, self.report.api, {}
        for device, rows in self.by_device.items():
            rows = rows[-_ENOUGH:][ops.kind[rows[-_ENOUGH:]] == OpKind.KERNEL]
            before, after = rows[:-1], rows[1:]
            calls, step = self.report.calls[after], ops.start[after] - ops.end[before]
            queued = (ops.stream[before] == ops.stream[after]) & (calls >= 0) & (step > 0)
            queued[queued] = api.end[calls[queued]] + _STEP_NS <= ops.end[before[queued]]
            seen = np.median(step[queued]) if queued.sum() >= _QUEUED else _STEP_NS
            steps[device] = min(int(seen), 2 * _STEP_NS)
        return steps

    def idlest(self, devices: Iterable[int], spans: Intervals) -> tuple[int, Intervals]:
        """Which of some devices idled longest in some intervals, and when; -1 of none."""
        merged, (device, *others) = intervals.union(*spans), [*devices] or [-1]
        if others:
            device = max(
                (device, *others), key=lambda one: self._idle_of[one][0].within(*merged).sum()
            )
        return device, self.idle_part(device, merged) if device >= 0 else intervals.empty()

    def by_turns(self, device: int, others: Iterable[int]) -> bool:
        """Whether others work through most of a device's idle time, and idle while it works."""
        idle = self._idle_of[device][0].starts, self._idle_of[device][0].ends
        busy = self.busy(device)
        idle_too, alone = idle, busy
        for other in others:
            idle_too, alone = self.idle_part(other, idle_too), self.idle_part(other, alone)
        taken = 2 * intervals.total(*idle_too) < intervals.total(*idle)
        return taken and 2 * intervals.total(*alone) > intervals.total(*busy)

    def held_up(
        self, starts: Int64, ends: Int64, codes: Integers, processes: Int64
    ) -> tuple[int, Intervals]:
        """The GPU that host events held up longest: which one, and when it was idle meanwhile.

        Args:
            starts: of the events.
            ends: of the events.
            codes: place in ``processes`` of each.
            processes: globalPids; only GPUs that work for them count.

        Returns:
            the place of the GPU, -1 for none, and disjoint intervals.
        """
        known = {*processes[used(codes)].tolist()}
        devices_of: dict[frozenset[int], list[int]] = {}
        for device, (_, owners) in self._idle_of.items():
            if mine := owners & known:
                devices_of.setdefault(mine, []).append(device)
        held = []
        for mine, devices in devices_of.items():
            of_processes = np.isin(processes, [*mine])[codes]
            held.append(self.idlest(devices, (starts[of_processes], ends[of_processes])))
        nobody = (-1, intervals.empty())
        return max(held, key=lambda one: (intervals.total(*one[1]), -one[0]), default=nobody)

    def held_up_by_calls(self, calls: Integers) -> tuple[int, Intervals]:
        """The same of API calls.

        Gaps that end with work which another call had launched before, or another thread launches,
        or another process has, are none of theirs. Until a copy of another GPU begins, its call
        waits for that one.
        """
        api, ops = self.report.api, self.report.operations
        spans = (api.start[calls], api.end[calls], api.thread[calls])
        device, lost = self.held_up(*spans, api.thread_process)
        if not len(lost[0]):
            return device, lost
        (idle, owners), rows = self._idle_of[device], self.by_device[device]
        held = np.searchsorted(idle.starts, lost[0], side="right") - 1
        held = held[np.diff(held, prepend=-1) > 0]
        gaps = idle.starts[held], idle.ends[held]
        done = self._coverage[device].stretches
        after = np.searchsorted(done.starts, gaps[1])
        last = after == len(done.starts)
        after = np.where(last, -1, rows[np.append(done.first, 0)[after]])
        call = np.where(after >= 0, self.report.calls[after], -1)
        owner = np.where(after >= 0, ops.processes[ops.process[after]], -1)
        asked = np.zeros(len(api), bool)
        asked[calls] = True
        queued = (call >= 0) & (api.start[call] < gaps[0]) & ~asked[call]
        parts = []
        for thread in used(spans[2]).tolist():
            own = ~queued & ((call < 0) | (api.thread[call] == thread))
            own &= (owner == -1) | (owner == api.thread_process[thread])
            mine = calls[spans[2] == thread]
            spent = api.runs(mine)
            parts.append(intervals.meet(spent, (gaps[0][own], gaps[1][own])))
        copies = ops.of_kind(OpKind.MEMCPY)
        copies, called = self.report.called(copies[ops.device[copies] != device])
        copies = copies[asked[called]]
        copies = copies[np.isin(ops.processes[ops.process[copies]], [*owners])]
        waits = until_copies(self.report, copies)
        return device, intervals.subtract(intervals.joined(*parts), waits)


def until_copies(report: Report, rows: Indices) -> Intervals:
    """When calls that return after their copies wait for the work before these.

    Args:
        report: the report.
        rows: copies.
    """
    api, ops = report.api, report.operations
    rows = rows[report.calls[rows] >= 0]
    rows = rows[api.end[report.calls[rows]] >= ops.end[rows]]
    begun = api.start[report.calls[rows]]
    return intervals.union(begun, np.maximum(begun, ops.start[rows]))
