"""One side of a comparison as plain figures: what is kept of a report, or of a part of it.

A ``Side`` knows no events: samples of times by name, per step and per instance, and the facts of
the capture. It is small enough to be stored as a baseline, and ``compare`` needs nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np

from nsys_tui.analysis.compare.blocks import block_length
from nsys_tui.analysis.compare.origin import NOWHERE, Origin
from nsys_tui.analysis.compare.stats import FEWEST, Sample
from nsys_tui.analysis.iterations.steps import Rule
from nsys_tui.analysis.rules.finding import Finding
from nsys_tui.model.arrays import Indices, Int64, Integers
from nsys_tui.model.groups import rows_of_codes
from nsys_tui.model.intervals import is_sorted
from nsys_tui.names import NameStyle

Bounds: TypeAlias = "tuple[Int64, Int64]"
"""Starts and ends of steps, ns."""

GROUPS: Final = {
    "kernels": "Kernels and CUDA graphs",
    "copies": "Copies and memsets",
    "ranges": "NVTX ranges (host time)",
    "api": "CUDA API calls",
    "mpi_calls": "MPI calls",
    "os_calls": "OS runtime calls",
    "ranks": "Compute kernels by rank",
    "stalls": "Idle time by cause",
}
"""What is compared by name, with its title."""
OF_HOST: Final = ("mpi_calls", "os_calls")
OPTIONAL: Final = (*OF_HOST, "ranks")
"""Groups that few reports have: not a word of them where neither side has any."""

METRICS: Final = {
    "wall": "wall",
    "p95": "wall p95",
    "p99": "wall p99",
    "slow": "slow steps",
    "busy_share": "GPU busy",
    "busy": "GPU busy time",
    "compute": "compute",
    "kernel_time": "compute kernels",
    "comm": "communication",
    "exposed_comm": "exposed comm",
    "memory": "memory",
    "exposed_memory": "exposed memory",
    "graph": "CUDA graphs",
    "idle": "GPU idle",
}
"""Figures of a step or of the whole, in the order in which they are read; times are per GPU.

``kernel_time`` sums the durations of compute kernels, so that overlapping ones count each; all
others are lengths of unions.
"""
TAIL: Final = ("p95", "p99", "slow")
"""Metrics of the slowest steps: quantiles of their times, and the share of those that take more
than 1.5 times the median."""
SHARES: Final = frozenset(("busy_share", "slow"))
"""Metrics that are shares."""
MORE_IS_BETTER: Final = frozenset(("busy_share",))
HOST_AHEAD: Final = "the host runs far ahead of the GPU: its steps tell nothing of GPU time"
"""Note of a side whose steps are no measure."""
WHOLE: Final = 1_000_000_000
"""A share of 1 as the integer that stands for it."""


@dataclass(frozen=True, eq=False)
class Steps:
    """The steady steps: those after the warm-up."""

    rule: Rule
    name: str
    """What repeats, digits as ``#``."""
    start: Int64
    end: Int64
    others: Mapping[int, Bounds] = field(default_factory=dict)
    """The same steps in other processes, by globalPid: each starts them in its own time."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def bounds(self) -> tuple[int, int]:
        """From the first steady step to the end of the last."""
        return int(self.start[0]), int(self.end[-1])

    @cached_property
    def block(self) -> int:
        """How many neighbouring steps are alike, by their times."""
        return block_length(self.end - self.start)

    @property
    def enough(self) -> bool:
        """Whether they allow a verdict."""
        return len(self) >= FEWEST

    def place(self, times: Int64) -> Indices:
        """The step that holds each time, -1 for none."""
        return _place(self.start, self.end, times)

    def place_of(self, codes: Integers, processes: Int64, times: Int64) -> Indices:
        """The step that holds each time in the event's own process, -1 for none.

        Args:
            codes: index into ``processes`` of each event.
            processes: globalPid of each code.
            times: of each event, ns.
        """
        if not self.others:
            return self.place(times)
        iteration = np.empty(len(times), np.intp)
        numbers = {process: number for number, process in enumerate(self.others, 1)}
        known = np.array([numbers.get(process, 0) for process in processes.tolist()], np.int32)
        each = ((self.start, self.end), *self.others.values())
        for bounds, mine in zip(each, rows_of_codes(known[codes], len(each)), strict=True):
            iteration[mine] = _place(*bounds, times[mine])
        return iteration

    @classmethod
    def none(cls) -> Steps:
        """No steps at all."""
        nothing = np.empty(0, np.int64)
        return cls(Rule.NONE, "", nothing, nothing)


def _place(start: Int64, end: Int64, times: Int64) -> Indices:
    if is_sorted(times):
        edges = np.searchsorted(times, np.append(start, end[-1]))
        counts = np.diff(np.concatenate(([0], edges, [len(times)])))
        return np.repeat(np.append(np.arange(-1, len(start)), -1), counts)
    position = np.searchsorted(start, times, side="right") - 1
    position[times >= end[-1]] = -1
    return position


@dataclass(frozen=True, eq=False)
class Named:
    """Everything of one name."""

    instances: Sample
    """Durations of the instances, ns."""
    total: int
    """Sum of the durations, clipped to a window, ns."""
    per_step: Sample | None = None
    """Sum in each steady step, ns; None without enough steps."""
    calls: float | None = None
    """Median of the instances per steady step; None without enough steps."""
    amount: int = 0
    """Bytes that copies move, or threads that kernels launch; 0 where neither is known."""

    @property
    def count(self) -> int:
        """Instances."""
        return self.instances.count


@dataclass(frozen=True, eq=False)
class Variant:
    """One of the kernels that have a name in common."""

    full: tuple[str, ...]
    """Full names; none in a file of baselines."""
    named: Named | None = None
    """None where the name has no other variant."""


@dataclass(frozen=True)
class Found:
    """A finding of the expert rules as far as it is compared."""

    rule: str
    severity: str
    title: str
    saved_ns: int
    window: tuple[int, int] | None = None
    """Where it is to be seen."""

    @classmethod
    def of(cls, finding: Finding) -> Found:
        """What is kept of a finding."""
        severity = str(finding.severity)
        return cls(finding.rule, severity, finding.title, finding.saved_ns, finding.window)


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two things that are compared."""

    label: str
    """File name, and which part of it."""
    identity: str
    """Equal for the same part of the same report."""
    facts: Mapping[str, str]
    """GPU, driver, versions and the like by name, for what makes a comparison unfair."""
    options: Mapping[str, str]
    """Capture options that are known to change what is recorded or how long things take."""
    kinds: tuple[str, ...]
    """Kinds of data that are there."""
    device_count: int
    base_ns: int
    """Length of the part that is compared: the steady steps, the window, or the GPU's span."""
    steps: Steps
    steps_found: int
    """Steady steps in the report, also where figures are not per step."""
    metrics: Mapping[str, Sample]
    """By key of ``METRICS``: one value per steady step, or a single one."""
    groups: Mapping[str, Mapping[str, Named]]
    """By key of ``GROUPS``, then by normalised name."""
    lacks: Mapping[str, str]
    """Why a group or metric is empty, and what would record it."""
    findings: tuple[Found, ...] | None = None
    """None where the rules were not run."""
    notes: tuple[str, ...] = field(default=())
    unknown: frozenset[str] = frozenset()
    """Groups and metrics that the file may hold and that are not believed: 0 is no fact here."""
    untraced: frozenset[str] = frozenset()
    """Groups that the capture did not record: none of them is no fact either."""
    style: str = NameStyle.NORMALISED
    """How kernels are named."""
    run: str = ""
    """Equal for parts of the same report: they share what runs differ by."""
    run_count: int = 1
    """Runs of which this is made."""
    recorded: tuple[int, int] = (0, 0)
    """UTC, ns: the first and the last event; zeros where it is not known."""
    origin: Origin = NOWHERE
    variants: Mapping[str, Mapping[str, Variant]] = field(default_factory=dict)
    """Kernels by their name in ``groups``, then by template arguments; empty where not known."""
    threads: Mapping[str, int] = field(default_factory=dict)
    """Threads that kernels launch, by their name in ``groups``; empty where not known."""

    @property
    def parts(self) -> int:
        """Over what totals are means: steady steps, or runs where there are none."""
        return len(self.steps) if self.by_step else self.run_count

    @cached_property
    def by_step(self) -> bool:
        """Whether figures are per step."""
        return self.steps.enough

    def names(self, group: str) -> Mapping[str, Named]:
        """What was measured in one group."""
        return self.groups.get(group, {})

    def variants_of(self, kernel: str) -> dict[str, Named]:
        """What was measured of each variant of a kernel; empty where these are not known."""
        whole = self.names("kernels").get(kernel)
        if whole is None:
            return {}
        return {key: each.named or whole for key, each in self.variants.get(kernel, {}).items()}
