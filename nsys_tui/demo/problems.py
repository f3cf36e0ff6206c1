"""The problems planted in the run: which step has which, and what each one is.

| step | problem | what happens |
|------|---------|--------------|
| 4 | sync stall | the host waits for the stream after every layer forward, and wakes late |
| 5 | pageable copy | rank 0 copies a checkpoint to unpinned memory; staging outlasts the transfer |
| 6 | launch-bound phase | an evaluation of tiny kernels, each shorter than its launch |
| 7 | exposed communication | one all-reduce after the backward pass instead of one per layer |
| 8 | slow step | the data loader's file system hangs, so every rank waits for its batch |
| all | straggling GPU | the last rank's kernels take 12% longer at a lower clock |

Steps 0 (loading of modules) and 2 (an allocation in mid-step) have smaller gaps of other causes.
Each problem is also measured in the events, so that the truth states what really happened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from nsys_tui.demo.brute import Interval, RankView, category, length, minus, span
from nsys_tui.demo.events import MEMCPY, Phase, Trace
from nsys_tui.demo.kernels import SMALL

DEFAULT_STEPS: Final = 10
GAP_THRESHOLD: Final = 10_000
"""Gaps from this length on are listed, ns."""

MODULE_LOAD_STEP: Final = 0
ALLOCATION_STEP: Final = 2
SYNC_STALL_STEP: Final = 4
PAGEABLE_STEP: Final = 5
LAUNCH_BOUND_STEP: Final = 6
EXPOSED_STEP: Final = 7
SLOW_STEP: Final = 8

SYNC_WAKE_NS: Final = 210_000
"""How late the host wakes from each of the twelve waits."""

CHECKPOINT_BYTES: Final = 96_000_000
UNSTAGE_NS: Final = 2_400_000
"""Host copy out of the staging buffer, after the last byte left the GPU."""

SMALL_KERNELS: Final = 480
SMALL_LAUNCH_NS: Final = 9_500

LOADER_HANG_NS: Final = 100_000_000
"""Longer than a step, of which the loader is one ahead, so about 55 ms are felt."""

STRAGGLER_PERMILLE: Final = 120


@dataclass(frozen=True, slots=True)
class Planted:
    """One problem as the truth states it."""

    kind: str
    measure: Callable[[Trace, RankView, Planted], dict[str, Any]]
    step: int | None
    """The step that holds it, or None for the whole run."""
    ranks: str
    """``all``, ``first`` or ``last``."""
    cause: str
    """The cause a gap is given, or what else the analysis should find."""
    text: str


def planted_problems(trace: Trace, views: Sequence[RankView]) -> list[dict[str, Any]]:
    """Each problem on each device that has it: window, cause, duration and its own figures."""
    problems = []
    for planted in PLANTED:
        if planted.step is None or planted.step < trace.steps:
            for info in trace.ranks:
                first, last = info.rank == 0, info.rank == len(views) - 1
                if {"all": True, "first": first, "last": last}[planted.ranks]:
                    figures = planted.measure(trace, views[info.rank], planted)
                    problems.append(
                        {
                            "kind": planted.kind,
                            "device": info.gpu,
                            "rank": info.rank,
                            "step": planted.step,
                            "cause": planted.cause,
                            "text": planted.text,
                            **figures,
                        }
                    )
    return problems


def _step_window(trace: Trace, rank: int, planted: Planted) -> Interval:
    name = f"Train step {planted.step}"
    step = next(r for r in trace.ranges if r.rank == rank and r.name == name)
    assert step.end is not None
    return step.start, step.end


def _measure_gaps(trace: Trace, view: RankView, planted: Planted) -> dict[str, Any]:
    """The listed gaps of the planted cause that begin in the step."""
    a, b = _step_window(trace, view.rank, planted)
    gaps = _gaps_of_cause(view, planted.cause)
    return _gap_figures([gap for gap in gaps if a <= gap[0] < b])


def _measure_slow_step(trace: Trace, view: RankView, planted: Planted) -> dict[str, Any]:
    """The longest gap of the planted cause that reaches into the step (it begins before)."""
    a, b = _step_window(trace, view.rank, planted)
    gaps = [g for g in _gaps_of_cause(view, planted.cause) if g[0] < b and g[1] > a]
    return _gap_figures([max(gaps, key=lambda gap: gap[1] - gap[0])])


def _gaps_of_cause(view: RankView, cause: str) -> list[Interval]:
    return [g for g in view.gaps() if g[1] - g[0] >= GAP_THRESHOLD and view.cause(g) == cause]


def _gap_figures(gaps: list[Interval]) -> dict[str, Any]:
    return {
        "window": [gaps[0][0], gaps[-1][1]],
        "duration_ns": length(gaps),
        "gaps": len(gaps),
        "longest_ns": max(e - s for s, e in gaps),
    }


def _measure_pageable(trace: Trace, view: RankView, planted: Planted) -> dict[str, Any]:
    a, b = _step_window(trace, view.rank, planted)
    copy = next(
        o for o in view.operations if o.kind == MEMCPY and o.target == 0 and a <= o.start < b
    )
    problem = _measure_gaps(trace, view, planted)
    return problem | {
        "window": [copy.start, problem["window"][1]],
        "copy_ns": copy.ns,
        "copy_bytes": copy.bytes,
    }


def _measure_launch_bound(trace: Trace, view: RankView, planted: Planted) -> dict[str, Any]:
    a, b = _step_window(trace, view.rank, planted)
    short = {kernel.short for kernel in SMALL}
    run = [o for o in view.operations if a <= o.start < b and o.kernel and o.kernel.short in short]
    window = span(run)
    busy = sum(o.ns for o in run)
    late = sum(view.calls[o.correlation].start > before.end for before, o in pairwise(run))
    return {
        "window": list(window),
        "duration_ns": window[1] - window[0],
        "operations": len(run),
        "busy_ns": busy,
        "idle_ns": window[1] - window[0] - busy,
        "late_calls": late,
    }


def _measure_exposed(trace: Trace, view: RankView, planted: Planted) -> dict[str, Any]:
    """The longest collective of the step, and how much of it no compute hides."""
    a, b = _step_window(trace, view.rank, planted)
    longest = max(
        (o for o in view.operations if category(o) == "comm" and a <= o.start < b),
        key=lambda o: o.ns,
    )
    own = [(longest.start, longest.end)]
    return {
        "window": list(own[0]),
        "duration_ns": length(minus(own, view.covered("compute"))),
        "kernel_ns": longest.ns,
    }


def _measure_straggler(trace: Trace, view: RankView, _: Planted) -> dict[str, Any]:
    """How much longer the compute kernels of the loop take than on the first rank."""

    def compute(rank: int) -> int:
        loop = (o for o in trace.operations if o.rank == rank and o.phase is Phase.LOOP)
        return sum(o.ns for o in loop if category(o) == "compute")

    return {
        "window": list(span(view.operations)),
        "duration_ns": compute(view.rank) - compute(0),
        "compute_ns": compute(view.rank),
        "other_compute_ns": compute(0),
        "slowdown_permille": STRAGGLER_PERMILLE,
    }


PLANTED: Final = (
    Planted(
        "sync_stall",
        _measure_gaps,
        SYNC_STALL_STEP,
        "all",
        "sync call",
        "cudaStreamSynchronize after every layer of the forward pass leaves the GPU idle",
    ),
    Planted(
        "pageable_copy",
        _measure_pageable,
        PAGEABLE_STEP,
        "first",
        "blocking or pageable copy",
        "a checkpoint goes to pageable host memory; the call returns long after the transfer",
    ),
    Planted(
        "launch_bound",
        _measure_launch_bound,
        LAUNCH_BOUND_STEP,
        "all",
        "launch-bound run",
        "the evaluation launches kernels that are shorter than their launches",
    ),
    Planted(
        "exposed_communication",
        _measure_exposed,
        EXPOSED_STEP,
        "all",
        "exposed communication",
        "the gradients are reduced in one call after the backward pass, hidden by nothing",
    ),
    Planted(
        "slow_step",
        _measure_slow_step,
        SLOW_STEP,
        "all",
        "I/O",
        "the data loader's pread64 hangs, and every rank waits for its batch",
    ),
    Planted(
        "straggler",
        _measure_straggler,
        None,
        "last",
        "slow GPU",
        "every compute kernel of the last rank takes 12% longer; the others wait in collectives",
    ),
)
