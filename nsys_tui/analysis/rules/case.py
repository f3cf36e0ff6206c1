"""A report under examination, with the analyses that several rules share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, wraps
from typing import Any, Final, TypeVar, cast

import numpy as np

from nsys_tui.analysis.breakdown import DeviceSplit
from nsys_tui.analysis.diagnostics import clock_trouble, loss
from nsys_tui.analysis.launches import launching
from nsys_tui.analysis.rules.finding import (
    CERTAINTY,
    NEARLY_ALL,
    TITLE_CELLS,
    UNSURE,
    Confidence,
    Finding,
    Held,
    Severity,
    counted_ns,
    phase_of,
    severity,
)
from nsys_tui.analysis.rules.idle_time import IdleTime
from nsys_tui.analysis.rules.one_shot import is_one_shot, is_set_up
from nsys_tui.analysis.rules.run import WORTH_A_LINE, Run
from nsys_tui.analysis.stalls.causes import Cause, range_classes
from nsys_tui.analysis.stalls.gaps import Stalls, stalls
from nsys_tui.analysis.stalls.host_activity import HostWork
from nsys_tui.analysis.window import Rows, Scope, masked, row_numbers
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Int64
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.groups import first_rows, rows_of_values, used
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.report import Report
from nsys_tui.model.target import PROCESS_MASK
from nsys_tui.names import cut
from nsys_tui.units import format_duration, format_share

T = TypeVar("T")
Ask = TypeVar("Ask", bound=Callable[..., Any])
_LEFT_OUT: Final = 0.1
"""Part of the time from which set-up is left out of it: less changes shares by hardly more."""
_LITTLE: Final = 0.02
_SHORT_NS: Final = 250_000_000
"""Part of the time, and how long, below which what is left without set-up is no run to judge."""
AND_OTHERS: Final = " and others"
"""Behind the label of a device in a title, where others lose time in the same way."""
_PHASES: Final = ("launch_bound", "slow_steps", "warm_up")
"""Rules that say themselves when what they found was."""


SET_UP: Final[list[Callable[[Case], Intervals]]] = []
"""What measures set-up: the rule on what happens once, which needs a case to be imported."""


class Case(Run):
    """One report under examination, with the analyses that several rules share.

    Args:
        report: the report.
        scope: window, devices, processes and streams.
        splits: where the time of each device went, if that is known already.
        idle: gives the idle gaps with their causes, where others want them too.
    """

    def __init__(
        self,
        report: Report,
        scope: Scope | None = None,
        splits: Sequence[DeviceSplit] | None = None,
        idle: Callable[[], Stalls] | None = None,
    ) -> None:
        super().__init__(report, scope, splits)
        self._idle = idle
        self._kept: dict[str, Any] = {}

    @cached_property
    def is_one_shot(self) -> bool:
        """Whether the GPU hardly works, and hardly any of that recurs, or not for long."""
        return is_one_shot(self)

    @property
    def is_set_up(self) -> bool:
        """Whether it is that and no more: its few kernels run once, or once more to be timed."""
        return self.is_one_shot and is_set_up(self)

    @cached_property
    def clock_trouble(self) -> str:
        """Why times of host and GPU cannot be compared, empty where they can."""
        return clock_trouble(self.report)

    @cached_property
    def loss(self) -> str:
        """That GPU work is missing, empty where nothing tells so."""
        return loss(self.report)

    @cached_property
    def work(self) -> HostWork:
        """What host threads did."""
        return HostWork(self.report) if self._idle is None else self.stalls.work

    @cached_property
    def stalls(self) -> Stalls:
        """Idle gaps with their causes."""
        if self._idle is not None:
            return self._idle()
        parts = self.device_coverage if self.scope.window is None else None
        return stalls(self.report, self.scope, work=self.work, parts=parts)

    @cached_property
    def set_up(self) -> Intervals:
        """When no GPU computes for what happens once, such as loading code; never for little."""
        once = intervals.joined(*(measure(self) for measure in SET_UP))
        return once if intervals.total(*once) >= _LEFT_OUT * self.base_ns else intervals.empty()

    @cached_property
    def set_up_ns(self) -> int:
        """How long that is."""
        return intervals.total(*self.set_up)

    @cached_property
    def set_up_idle_ns(self) -> int:
        """How long GPUs idle in it, added up; else they copy."""
        idle = (self.idle_time.idle_part(device, self.set_up) for device in self.by_device)
        return sum(intervals.total(*part) for part in idle)

    @property
    def judged_ns(self) -> int:
        """The time looked at without that: what findings and their shares are rated by."""
        return self.base_ns - self.set_up_ns

    def share(self, ns: int) -> str:
        """The part of that in words."""
        of = "without set-up" if self.set_up_ns else "of the time"
        return f"{format_share(ns, self.judged_ns)} {of}"

    @property
    def is_start(self) -> bool:
        """Whether hardly anything but set-up was captured, and that is too short to judge."""
        return self.judged_ns < min(_SHORT_NS, _LITTLE * self.base_ns)

    def once(self, key: str, make: Callable[[], T]) -> T:
        """What rules of one family share: made for the first of them, kept for the others."""
        if key not in self._kept:
            self._kept[key] = make()
        result: T = self._kept[key]
        return result

    @cached_property
    def sm_counts(self) -> Int64:
        """Multiprocessors of each device, 0 where that is not recorded."""
        infos = (device.info for device in self.report.devices)
        return np.array([(info and info.sm_count) or 0 for info in infos], np.int64)

    @cached_property
    def idle_time(self) -> IdleTime:
        """When each device worked."""
        return IdleTime(self.report, self.base, self.by_device, self.device_coverage)

    def short_gaps(self, device: int, runs: Intervals) -> tuple[Indices, Indices, Int64, Int64]:
        """Gaps of a device that no cause is told of: the rows before and after, and when it was.

        Args:
            device: of the device; -1 has no gaps.
            runs: when longer gaps count, too.
        """
        if device not in self.by_device:
            return (*np.empty((2, 0), np.intp), *intervals.empty())
        rows, done = self.by_device[device], self.device_coverage[device].stretches
        reach, begun = done.ends[:-1], done.starts[1:]
        kept = begun - reach < self.stalls.threshold_ns
        inside = np.searchsorted(reach, runs[0])
        until = np.maximum(np.searchsorted(begun, runs[1], "right"), inside)
        kept[intervals.stretched(inside, until)] = True
        after = done.first[1:][kept]
        return rows[after - 1], rows[after], reach[kept], begun[kept]

    def launch_bound(self, device: int) -> Intervals:
        """When launch-bound runs of a device are."""
        runs = [(run.start, run.end) for run in self.stalls.bound if run.device == device]
        return intervals.union(*np.array(runs, np.int64).reshape(-1, 2).T)

    def where(self, test: Callable[[Rows], Bool]) -> Indices:
        """Rows of the operations in scope that pass a test, which gets rows to look at.

        Without a scope these are a slice, so that columns need not be copied to be looked at.
        """
        rows = masked(self._in_scope, test(self._in_scope))
        return self.operations if isinstance(rows, slice) else rows

    @cached_property
    def copies(self) -> Indices:
        """Rows of the copies in scope."""
        kind = self.report.operations.kind
        return self.where(lambda rows: kind[rows] == OpKind.MEMCPY)

    @cached_property
    def first_of_names(self) -> Indices:
        """Row of the first operation of each name on each GPU: each loads code."""
        return first_rows(self.names_of_gpus(slice(None)))

    @property
    def calls(self) -> Indices:
        """Rows of the API calls in scope, backtrace duplicates left out; all are not kept."""
        return row_numbers(self.report.api, self.once("calls", self._calls))

    def _calls(self) -> Rows:
        rows = self.scope.threads(self.report.api)
        return masked(rows, self.report.api.real[rows])

    def launching(self, device: int) -> Indices:
        """Places in ``Report.api.threads`` of the threads that launch work on a device."""
        threads, rows = self.report.api.thread, self.by_device[device]
        if len(rows) == len(self.report.operations.of_devices[device]):
            pairs = launching(self.report)
            return np.asarray(pairs[pairs[:, 0] == device, 1], np.intp)
        return self.once(f"launching {device}", lambda: used(threads[self.report.called(rows)[1]]))

    @cached_property
    def mpi_calls(self) -> tuple[Int64, Int64, Int64]:
        """Thread, start and end of each call of MPI; older nsys writes them as ranges."""
        events, ranges = self.report.host_events, self.report.ranges
        sets = ((events, events.of_mpi), (ranges, range_classes(ranges) == Cause.MPI))
        parts = [(one.threads[one.thread[of]], one.start[of], one.end[of]) for one, of in sets]
        thread, start, end = (np.concatenate(part) for part in zip(*parts, strict=True))
        return thread, start, end

    def within_mpi(self, owners: Int64, starts: Int64, ends: Int64) -> Int64:
        """How much of each time MPI calls cover, those of a globalTid, or of a globalPid."""
        (threads, begun, done), within = self.mpi_calls, np.zeros(len(owners), np.int64)
        for owner, mine in rows_of_values(owners):
            own = (threads == owner) | (threads & PROCESS_MASK == owner)
            calls = intervals.union(begun[own], done[own])
            within[mine] = intervals.covered(calls, starts[mine], ends[mine])
        return within

    def device_labels(self, places: Iterable[int]) -> str:
        """``GPU 0, GPU 1``."""
        return ", ".join(self.report.devices[device].label for device in sorted(set(places)))

    def most_of(self, *findings: Finding) -> int:
        """What findings can save together at most: the time of the one kernel that all tell of."""
        ops, kernels = self.report.operations, set[tuple[int, int]]()
        for one in findings:
            if one.device is None or one.window is None or AND_OTHERS in one.subject:
                return self.base_ns
            rows, start = self.doing(one.device, Category.COMPUTE), one.window[0]
            shown = rows[slice(*ops.places(rows, (start, start + 1)))]
            names = ops.name[shown[ops.end[shown] == one.window[1]]]
            kernels.add((one.device, int(names[0]) if len(names) else -1 - len(kernels)))
        ((device, name), *others) = kernels
        if others or name < 0:
            return self.base_ns
        rows = self.doing(device, Category.COMPUTE)
        return min(self.base_ns, int(ops.durations(rows[ops.name[rows] == name]).sum()))

    def _is_once(self, rule: str, device: int | None, lost: Intervals | None) -> bool:
        """Whether nearly all that a finding loses comes before most of the work, and so once."""
        if rule == "warm_up" or device is None or not lost or not len(lost[0]):
            return rule == "warm_up"
        early = intervals.clip(*lost, self.base[0], int(self.set_up_until[device]))
        return intervals.total(*early) >= NEARLY_ALL * intervals.total(*lost)

    def finding(
        self,
        rule: str,
        title: str,
        advice: str,
        *,
        subject: str,
        saved_ns: int,
        window: tuple[int, int] | None,
        device: int | None = None,
        screen: str = "2",
        command: str = "",
        at_least: Severity | None = None,
        at_most: Severity | None = None,
        stake_ns: int = 0,
        confidence: Confidence | None = None,
        doubt: str = "",
        settle: str = "",
        lost: Intervals | None = None,
        gone: Intervals | None = None,
        when: Intervals | None = None,
        late: int = -1,
        held: Held | None = None,
    ) -> list[Finding]:
        """A finding rated by the time it could save; nothing where that is hardly any.

        Args:
            rule: name of the rule.
            title: what is wrong.
            advice: what to do.
            subject: what it is about, in a few words.
            saved_ns: time that could be saved at most; more than all of it never is.
            window: where it shows.
            device: on which device.
            screen: number key of the screen that shows it.
            command: command that shows it; the rule itself by default.
            at_least: this severity, for what costs no time but matters.
            at_most: the gravest it can be, for what is not known well enough.
            stake_ns: time that it is about, where what could be saved cannot be told or is less.
            confidence: how it is known; by default, like the next two, what holds of the rule.
            doubt: how it could be wrong.
            settle: what would tell.
            lost: when the GPU is idle because of it, where that is known.
            gone: when it would be no more without it, by default the same.
            when: when it happens, by default ``lost``: what keeps to a phase of the run says so.
            late: place of the GPU that it mostly waits for, -1 for none.
            held: when a thread that is waited for works on.
        """
        once = self._is_once(rule, device, lost)
        whole = self.base_ns if once else self.judged_ns
        gone = lost if gone is None else gone
        if lost is not None and gone is not None and not once and self.set_up_ns:
            stake_ns -= intervals.overlap_length(lost, self.set_up)
            saved_ns = max(0, saved_ns - intervals.overlap_length(gone, self.set_up))
            before = lost, gone
            lost, gone = (intervals.subtract(one, self.set_up) for one in before)
            title = title.replace(_idle(before[0]), _idle(lost)).replace(
                _idle(before[1]), _idle(gone)
            )
        saved_ns, stake_ns = int(min(saved_ns, whole)), max(0, int(stake_ns))
        weight = min(max(saved_ns, stake_ns), whole)
        usual = CERTAINTY.get(rule, UNSURE)
        known = (confidence or usual.confidence, doubt or usual.doubt, settle or usual.settle)
        stake = min(stake_ns, whole)
        counts = counted_ns(saved_ns, stake, whole, known[0], idle=lost is not None)
        rated = at_least or severity(counts, whole)
        if self.is_one_shot or (self.is_start and not once):
            at_most = Severity.LOW
        elif once:
            at_most = at_most or Severity.MEDIUM
        if at_least is None and at_most is not None and rated.rank > at_most.rank:
            rated = at_most
        if at_least is None and weight < WORTH_A_LINE * whole:
            return []
        where = (window, device, screen, command or f"nsys-tui analyze REPORT -r {rule}")
        when = lost if when is None else when
        phase = "only once" if once and rule not in _PHASES else ""
        if when and not phase and rule not in _PHASES:
            phase = phase_of(when, self.base, max(self.first_step, self.base[1] - self.judged_ns))
        if phase and len(title) + len(phase) + 2 <= TITLE_CELLS:
            title += f", {phase}"
        title = cut(title, TITLE_CELLS)
        told = (rule, rated, title, subject, advice, saved_ns)
        times = (lost, gone, late)
        found = Finding(*told, *where, stake_ns, *known, *times, phase=phase, held=held)
        return [replace(found, of_ns=whole, is_once=once)]


def _idle(spans: Intervals) -> str:
    return f"idle {format_duration(intervals.total(*spans))}"


def kept(make: Ask) -> Ask:
    """The same function of a case, which runs once for it and all else that it is given."""

    @wraps(make)
    def ask(case: Case, *given: object) -> object:
        return case.once(f"{make} {given}", lambda: make(case, *given))

    return cast(Ask, ask)
