"""What a run is bound by: its time split into classes that add up, largest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.diagnostics import other_generation
from nsys_tui.analysis.stalls.causes import SHARES, Cause
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.table import column, columns, data
from nsys_tui.units import format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.analysis.rules.case import Case
    from nsys_tui.model.report import Report

COMPUTE: Final = "compute"
RENDERING: Final = "rendering"
GRAPHS: Final = "CUDA graphs"
COMMUNICATION: Final = "communication"
COPIES: Final = "memory copies"
HOST: Final = "launch and host"
DEVICE: Final = "waits on the device"
SHORT: Final = "gaps too short to look at"
UNKNOWN: Final = "idle for unknown reasons"
EDGES: Final = "before or after a GPU's work"
_SEEN: Final = 0.0005
"""Share from which a class is told: less is 0.0 %."""
_WAITS: Final = (Cause.PEER, Cause.PROCESS, Cause.EVENT, Cause.STREAM)


@dataclass(frozen=True)
class Part:
    """A class of time over all GPUs."""

    name: str
    ns: int
    share: float
    """Of the time of all GPUs, 0 to 1."""


PART: Final = (column("name"), data("time_ns", lambda part, _: part.ns), column("share"))
NOT_LOOKED_AT: Final = columns("what reason")
"""Keys of both in JSON."""


def parts(case: Case) -> list[Part]:
    """The time of all GPUs by class: they add up to all of it; classes without time are left out.

    Communication and copies count where nothing hides them. Idle time goes by the cause of its
    gap; gaps too short to be looked at (10 us) are a class of their own.

    Args:
        case: the report with the time looked at.
    """
    whole = len(case.splits) * case.base_ns
    if not whole:
        return []
    busy = {
        COMPUTE: sum(split.compute_ns for split in case.splits) - case.rendering_ns,
        RENDERING: case.rendering_ns,
        COMMUNICATION: sum(split.exposed_comm_ns for split in case.splits),
        COPIES: sum(split.exposed_memory_ns for split in case.splits),
    }
    idle = sum(split.idle_ns for split in case.splits)
    # What graph launches alone fill; where copies run beside them, both would count.
    busy[GRAPHS] = max(0, whole - idle - sum(busy.values()))
    by_cause = _idle_by_cause(case)
    found = busy | {
        HOST: sum(by_cause[cause] for cause in SHARES[: Cause.NOTHING]),
        DEVICE: sum(by_cause[cause] for cause in _WAITS),
        SHORT: sum(total.below_ns for total in case.stalls.totals),
        EDGES: by_cause[-1],
    }
    found[UNKNOWN] = max(0, whole - sum(found.values()))
    listed = [Part(name, ns, ns / whole) for name, ns in found.items() if ns]
    return sorted(listed, key=lambda part: -part.ns)


def _idle_by_cause(case: Case) -> list[int]:
    """Idle time within the time looked at by the cause of its gap; launch-bound runs are latency.

    The last is that at the edges, which counts as far as other GPUs work meanwhile.
    """
    gaps = case.stalls.gaps
    lo, hi = case.base
    inside = np.clip(np.minimum(gaps.end, hi) - np.maximum(gaps.start, lo), 0, gaps.idle)
    cause = np.where(gaps.run >= 0, Cause.LAUNCH_LATENCY, gaps.cause)
    cause = np.where(gaps.outside, len(Cause), cause)
    return [int(inside[cause == one].sum()) for one in range(len(Cause) + 1)]


def bound_line(found: Sequence[Part]) -> str:
    """The class with most time and its runner-up, empty where there is none."""
    seen = [part for part in found[:2] if part.share >= _SEEN] or found[:1]
    return ", then ".join(f"{part.name} ({format_share(part.share, 1)})" for part in seen)


def verdict_facts(verdict: str, found: Sequence[Part]) -> list[tuple[str, str]]:
    """What stands first in every text: the verdict and what the time is bound by, where known."""
    facts = [("verdict", verdict), ("bound by", bound_line(found))]
    return [fact for fact in facts if fact[1]]


@dataclass(frozen=True)
class NotLookedAt:
    """A question that the report cannot answer."""

    what: str
    reason: str
    """What is missing, and the option that records it."""


_QUESTIONS: Final = (
    (Capability.API, "calls that wait, copy or allocate; why GPUs are idle"),
    (Capability.LAUNCH_SHAPES, "grids, blocks and occupancy"),
    (Capability.GPU_PROPERTIES, "grids against the number of SMs, occupancy"),
    (Capability.NVTX, "steps and phases; what happens in every step and what once"),
    (Capability.OSRT, "files, locks and sleep of the host"),
    (Capability.GPU_METRICS, "memory bandwidth, tensor cores and clocks of the GPU"),
)


def not_looked_at(report: Report) -> list[NotLookedAt]:
    """What no rule could look at, and what would record it."""
    lacking = [(report.lacks(capability), what) for capability, what in _QUESTIONS]
    found = [NotLookedAt(what, reason) for reason, what in lacking if reason]
    if not (report.can(Capability.SCHED) or report.can(Capability.SAMPLES)):
        reason = report.lacks(Capability.SCHED)
        found.append(NotLookedAt("what the host did between its calls", reason))
    if other := other_generation(report):
        found.append(NotLookedAt("what the nsys that recorded it did not know of", other))
    return found
