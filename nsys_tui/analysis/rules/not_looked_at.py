"""What no rule could look at in a report, and what would record it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nsys_tui.analysis.diagnostics import other_generation
from nsys_tui.analysis.rules.case import Case
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import OpKind
from nsys_tui.model.table import columns

NOT_LOOKED_AT: Final = columns("what reason")
"""Keys in JSON."""


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
_WHOLE_GRAPHS: Final = NotLookedAt(
    "what runs inside CUDA graphs",
    "traced as a whole: record with nsys profile --cuda-graph-trace=node",
)
_NO_STEPS: Final = NotLookedAt(
    "what happens in every step and what once; slow steps",
    "no NVTX ranges that repeat as steps here: give those of all steps one name",
)


def not_looked_at(case: Case) -> list[NotLookedAt]:
    """What no rule could look at, and what would record it."""
    report = case.report
    lacking = [(report.lacks(capability), what) for capability, what in _QUESTIONS]
    missing = [NotLookedAt(what, reason) for reason, what in lacking if reason]
    if ((report.operations.kind == OpKind.GRAPH) & report.operations.counted).any():
        missing.insert(0, _WHOLE_GRAPHS)
    if report.can(Capability.NVTX) and case.works and not case.has_loop:
        missing.append(_NO_STEPS)
    if not (report.can(Capability.SCHED) or report.can(Capability.SAMPLES)):
        reason = report.lacks(Capability.SCHED)
        missing.append(NotLookedAt("what the host did between its calls", reason))
    if other := other_generation(report):
        missing.append(NotLookedAt("what the nsys that recorded it did not know of", other))
    return missing
