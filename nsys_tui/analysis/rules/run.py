"""A run in a scope: its steps, what of it is set-up, and when it works steadily."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np

from nsys_tui.analysis.breakdown import (
    OF_CATEGORY,
    UVM_COPY_KINDS,
    Coverage,
    DeviceSplit,
    coverages,
)
from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.analysis.iterations.steps import Iterations, Rule
from nsys_tui.analysis.iterations.warm_up import round_begins
from nsys_tui.analysis.nccl.waiting import splits_with_waiting
from nsys_tui.analysis.rules.alike import Alike, alike
from nsys_tui.analysis.rules.early import set_up_work, told_by
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.analysis.stalls.host_activity import HostWork
from nsys_tui.analysis.window import Rows, Scope, clipped, masked, row_count, row_numbers
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Int64, Integers
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.events import FARTHEST
from nsys_tui.model.groups import factorise_rows
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.report import Report

WORTH_A_LINE: Final = 0.0005
"""Findings that could save less than this part of the time looked at are left out."""
_NEARLY_ALL: Final = 0.9
_MOSTLY: Final = 2 / 3
"""Part of all that is moved from which on what comes before most of the work is set-up."""
_RECURS: Final = 1 / 3
"""Part of all that is moved from which on what comes between kernels is told alone."""
_NEVER_AGAIN: Final = 1 / 5
"""Part of the copies from which on many of sizes that never come again are set-up there."""
_UNTOLD, PREFETCHED = 0, 1
"""Causes of migrations: not recorded, and that cudaMemPrefetchAsync asked for it."""
_PART: Final = 1 << 18
"""Operations looked at in one go for what mostly comes soon."""
A_RUN: Final = 20
"""Operations that make a run, of which the first twentieth is set-up."""


class Run:
    """What a report shows of a run, in a scope.

    Args:
        report: the report.
        scope: window, devices, processes and streams.
        splits: where the time of each device went, if that is known already.
    """

    def __init__(
        self,
        report: Report,
        scope: Scope | None = None,
        splits: Sequence[DeviceSplit] | None = None,
    ) -> None:
        self.report, self.scope = report, scope or Scope()
        if splits is not None:
            self.splits = [*splits]
        # Of a report without GPU work all is looked at.
        self.base = self.scope.base(report) if report.span else self.scope.bounds(report)
        self.base_ns = self.base[1] - self.base[0]

    @property
    def operations(self) -> Indices:
        """Rows of the operations in scope, whole where they straddle the window; not kept."""
        return row_numbers(self.report.operations, self._in_scope)

    @cached_property
    def _in_scope(self) -> Rows:
        return self.scope.operations(self.report.operations)

    @cached_property
    def alike(self) -> Alike:
        """The operations in scope by what is the same, added up."""
        return alike(self.report, self.scope)

    def doing(self, device: int, category: Category) -> Indices:
        """Rows of a device's operations of a category."""
        return self.device_coverage[device].of[category]

    def runs(self, device: int, *categories: Category) -> Intervals:
        """When a device does something of some categories."""
        if self.scope.window is not None:
            rows = [self.doing(device, one) for one in categories]
            return self.report.operations.runs(np.concatenate(rows))
        sets = self.device_coverage[device].sets
        first, *others = (sets[OF_CATEGORY[one]].pair for one in categories)
        some = [one for one in others if len(one[0])]
        return intervals.joined(first, *some) if some else first

    def exposed(self, device: int, category: Category) -> Intervals:
        """When a device does something of a category beside no compute."""
        if category is Category.COMM and self.scope.window is None:
            return self.device_coverage[device].exposed_comm
        computes = self.runs(device, Category.COMPUTE)
        return intervals.subtract(self.runs(device, category), computes)

    @cached_property
    def splits(self) -> list[DeviceSplit]:
        """Where the time of each device went, waiting for other ranks included."""
        return splits_with_waiting(self.report, self.scope, parts=self.device_coverage.values())

    @cached_property
    def device_coverage(self) -> dict[int, Coverage]:
        """When each device in scope did what."""
        return {one.device: one for one in coverages(self.report, self.scope)}

    @property
    def works(self) -> bool:
        """Whether any device works in the time looked at."""
        return any(split.busy_ns for split in self.splits) or bool(
            row_count(self.report.operations, self._in_scope)
        )

    @property
    def session_ns(self) -> int:
        """How long was recorded of what is looked at."""
        if self.scope.window:
            return self.base_ns
        if recorded := self.report.metadata.session_duration_ns:
            return recorded
        start, end = self.report.extent
        return end - start

    @cached_property
    def iterations(self) -> Iterations:
        """Steps, by NVTX name or by pattern, that CUDA was recorded in."""
        return self._every_step.of_recorded

    @cached_property
    def _every_step(self) -> Iterations:
        return find_iterations(self.report, scope=self.scope)

    @property
    def coverage(self) -> str:
        """In how many steps CUDA was recorded, empty for all."""
        return self._every_step.coverage

    @cached_property
    def has_loop(self) -> bool:
        """Whether steps are named, so that something can be inside of the loop."""
        steps = self.iterations
        return steps.rule not in (Rule.NONE, Rule.PATTERN) and len(steps) > 2

    @property
    def has_named_steps(self) -> bool:
        """Whether steps are called so: what merely repeats may be set-up as well."""
        return self.has_loop and self.iterations.rule is Rule.NAME

    @cached_property
    def loop(self) -> tuple[int, int]:
        """The part without warm-up: from that step to the last, else all GPU work."""
        steps = self.iterations
        if not self.has_loop:
            return self.base
        first = steps.first[: self.warm_up_steps + 1]
        return int(first[-1]), int(steps.own_end[-1])

    @cached_property
    def first_step(self) -> int:
        """When work launched in named steps begins; without them, that of what comes again.

        That is all there is, unless most that nothing hides comes before most of the work, or many
        copies there, of weights, say, have sizes that no copy has later.
        """
        if not self.has_named_steps:
            until = max(self.base[0], int(self.set_up_until.max(initial=-FARTHEST)))
            moved = sum(split.exposed_memory_ns + split.exposed_comm_ns for split in self.splits)
            mostly = self._moved_ns((self.base[0], until)) >= _MOSTLY * moved
            return until if moved and (mostly or self._loads(until)) else self.base[0]
        ops, ranges, steps = self.report.operations, self.report.ranges, self.iterations
        alike = ranges.name == ranges.name[steps.rows[0]]  # other ranks begin sooner
        begin = min(int(steps.first[0]), int(ranges.start[alike].min()))
        begin = min(begin, round_begins(ranges, steps.rows))
        parts = (np.arange(lo, min(lo + _PART, len(ops))) for lo in range(0, len(ops), _PART))
        parts = (part[self.begun(part) >= begin] for part in parts)
        first = next((int(ops.start[part[0]]) for part in parts if len(part)), 0)
        return max(self.base[0], begin, first)

    def _loads(self, until: int) -> bool:
        """Whether many of the copies before a time, and much of all, are of sizes of their own.

        Where most of those after it are, too, that tells nothing.
        """
        ops, rows = self.report.operations, self._in_scope
        rows = masked(rows, ops.kind[rows] == OpKind.MEMCPY)
        size, _ = factorise_rows((ops.copy_kind[rows], ops.bytes[rows]))
        early, took = ops.start[rows] < until, ops.durations(rows)
        later = np.bincount(size, ~early)[size]
        own = early & (later == 0)
        recur = 2 * took[later > 1].sum() >= took[later > 0].sum()
        much = recur and took[own].sum() >= _NEVER_AGAIN * took.sum()
        return bool(much and own.sum() >= A_RUN)

    @cached_property
    def work(self) -> HostWork:
        """What host threads did."""
        return HostWork(self.report)

    @cached_property
    def prefetches(self) -> bool:
        """Whether the program calls for pages before kernels touch them."""
        api = self.report.api
        return any("MemPrefetch" in api.names[code] for code in np.flatnonzero(api.count_of_names))

    def on_demand(self, rows: Integers) -> Bool:
        """Which of some operations are migrations that a touched page starts, and no call.

        Pages that the program prefetches, or may where no cause is recorded, are none. Once a host
        has waited for the last prefetch, or without any, no page is asked for.
        """
        ops = self.report.operations
        asked = np.isin(ops.migration[rows], (_UNTOLD, PREFETCHED))
        asked &= ops.start[rows] < self._prefetched_until
        moved = np.isin(ops.copy_kind[rows], UVM_COPY_KINDS)
        return np.asarray(moved & ~asked, np.bool_)

    @cached_property
    def _prefetched_until(self) -> int:
        """When a host has waited for the GPU after the last prefetch: pages come for others then.

        The end of time where calls are not recorded, or nobody waits.
        """
        api = self.report.api
        if not self.prefetches:
            return -FARTHEST if self.report.can(Capability.API) else FARTHEST
        asks = np.array(["MemPrefetch" in name for name in api.names], bool)[api.name]
        last = int(api.start[np.flatnonzero(asks)].max())
        waits = (self.work.api_classes == Cause.SYNC) & (api.start > last)
        return int(api.end[waits].min(initial=FARTHEST))

    @cached_property
    def steady(self) -> tuple[int, int]:
        """From the first step to the last kernel, after which copies fetch results, only once.

        To the last work that was asked for where kernels hardly recur, or such copies, or nothing
        else is copied between them.
        """
        ops, done, begun = self.report.operations, self.base[0], self.base[1]
        for kind in {*Category} - {Category.MEMORY}:
            for rows in (self.doing(device, kind) for device in self.by_device):
                begun = min(begun, int(ops.start[rows[:1]].min(initial=begun)))
                done = max(done, int(ops.end[rows].max(initial=done)))
        moved = sum(split.exposed_memory_ns for split in self.splits)
        recur = all(self._early[device] != -FARTHEST for device in self.by_device)
        last, between = (done, self.base[1]), (max(begun, self.first_step), done)
        once = (recur and self._moved_ns(last) >= _NEARLY_ALL * moved) or (
            self._are_new(done) and self._moved_ns(between) >= _RECURS * moved
        )
        return self.first_step, done if moved and once else self._asked_until(done)

    def _are_new(self, since: int) -> bool:
        """Whether most copies after a time are of sizes that none has before."""
        ops, rows = self.report.operations, self._in_scope
        rows = masked(rows, ops.kind[rows] == OpKind.MEMCPY)
        size, kinds = factorise_rows((ops.copy_kind[rows], ops.bytes[rows]))
        late, took = ops.start[rows] >= since, ops.durations(rows)
        new = late & (np.bincount(size, ~late, len(kinds))[size] == 0)
        return bool(2 * took[new].sum() > took[late].sum())

    def _asked_until(self, done: int) -> int:
        """When the last operation ends that was asked for; pages that the host touches come later.

        Args:
            done: when the last kernel does.
        """
        ops, until = self.report.operations, done
        for rows in self.by_device.values():
            late = rows[ops.places(rows, done) :]
            until = max(until, int(ops.end[late[~self.on_demand(late)]].max(initial=until)))
        return min(until, self.base[1])

    @property
    def before_kernels(self) -> Intervals:
        """The time before the first step in which no kernel ran yet."""
        ops, begun = self.report.operations, self.first_step
        for device in self.by_device:
            for kind in (Category.COMPUTE, Category.GRAPH):
                first = self.doing(device, kind)[:1]
                begun = min(begun, int(ops.start[first].min(initial=begun)))
        return intervals.clip([self.base[0]], [begun], *self.base)

    @cached_property
    def moved_once(self) -> tuple[dict[int, Intervals], dict[int, Intervals]]:
        """When copies and communication of each device ran before and after that, alone."""
        first, last = self.steady
        after = last, self._asked_until(last)
        return self._moved((self.base[0], first)), self._moved(after)

    def _moved_ns(self, window: tuple[int, int]) -> int:
        return sum(intervals.total(*one) for one in self._moved(window).values())

    def _moved(self, window: tuple[int, int]) -> dict[int, Intervals]:
        ops, alone = self.report.operations, {}
        for device, rows in self.by_device.items():
            rows = rows[slice(*ops.places(rows, window))]
            category = ops.category[rows]
            moving = rows[(category == Category.MEMORY) | (category == Category.COMM)]
            moved, computed = (
                intervals.union(*clipped(ops, chosen, window))
                for chosen in (moving, rows[category == Category.COMPUTE])
            )
            alone[device] = intervals.subtract(moved, computed)
        return alone

    @cached_property
    def steady_splits(self) -> Sequence[DeviceSplit]:
        """Where time went meanwhile: what is moved before and after comes once."""
        (lo, hi), (first, last) = self.base, self.steady
        parts = self._moved((lo, first)), self._moved((last, hi))
        once = [intervals.total(*moved) for part in parts for moved in part.values()]
        if max(once, default=0) < WORTH_A_LINE * self.base_ns:
            return self.splits
        return splits_with_waiting(self.report, replace(self.scope, window=self.steady))

    @property
    def warm_up_steps(self) -> int:
        """First steps in which what never comes again is set-up: the warm-up, one at least."""
        return max(1, self.iterations.warm_up)

    @cached_property
    def set_up_until(self) -> Int64:
        """By device, until when what never comes again is set-up; far back for few operations.

        That is the warm-up of named steps, or until a twentieth of the work but copies is done.
        """
        if self.has_named_steps:
            return np.full(len(self.report.devices), self.loop[0])
        return self._early

    @cached_property
    def _early(self) -> Int64:
        """By device, until when a twentieth of the work but copies, or set-up, is done."""
        until, ops = np.full(len(self.report.devices), -FARTHEST), self.report.operations
        calls = told_by(self.report)
        for device, rows in self.by_device.items():
            rows = rows[ops.category[rows] != Category.MEMORY]
            few = len(rows) < A_RUN
            first = len(rows) if few else set_up_work(self.report, rows, calls)
            if len(rows) - first >= A_RUN:
                until[device] = ops.start[rows[first]]
        return until

    @cached_property
    def by_device(self) -> dict[int, Indices]:
        """Place of each device in scope, and rows of its operations."""
        ops, parts = self.report.operations, self.device_coverage
        return {device: row_numbers(ops, one.rows) for device, one in parts.items()}

    def names_of_gpus(self, rows: Rows) -> Int64:
        """A code of each operation's name and GPU."""
        ops = self.report.operations
        return ops.name[rows] * np.int64(len(self.report.devices)) + ops.device[rows]

    def begun(self, rows: Indices) -> Int64:
        """When the launch of some operations began; without a call, when they did."""
        calls, started = self.report.calls[rows], self.report.api.start
        if not len(started):
            return self.report.operations.start[rows]
        begun, own = started[calls], calls < 0
        begun[own] = self.report.operations.start[rows[own]]
        return begun
