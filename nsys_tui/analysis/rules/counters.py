"""Findings against what else a report holds: lost events, clocks that do not fit, and counters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from nsys_tui.analysis.diagnostics import unanswered
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Confidence, Finding, Severity
from nsys_tui.analysis.rules.idle_causes import LAUNCHES
from nsys_tui.analysis.rules.imbalance import MORE_WORK
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Int64
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import FARTHEST
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.report import Report
from nsys_tui.units import format_percent, format_share

SMS, DRAM, TENSOR = "SMs active", "DRAM", "tensor cores"
_COUNTERS: Final = {
    SMS: re.compile(r"(?i)^SMs? active"),
    TENSOR: re.compile(r"(?i)^tensor.*active"),
    DRAM: re.compile(r"(?i)^DRAM"),
    "PCIe": re.compile(r"(?i)^PCIe"),
    "NVLink": re.compile(r"(?i)^NVLink"),
}
"""Counters in per cent by what a finding calls them; of reads and writes the sum counts."""
_CLOCK: Final = re.compile(r"(?i)^(GPC|SM|GR) clock")
_BUSY: Final = 20.0
"""Per cent of SMs active from which a GPU was not idle."""
_BOUND: Final = 60.0
"""Per cent of the DRAM's bandwidth from which a kernel looks bound by it."""
_RESTS: Final = 100_000
"""Idle time from which a GPU's clock may fall; shorter gaps between kernels keep it, ns."""
_SLOWER: Final = 0.03
"""Part by which a clock has to be lower to explain a slow GPU."""


def witnessed(case: Case, findings: Iterable[Finding]) -> list[Finding]:
    """The findings with what their GPU's counters say, less sure where times or events lack."""
    if missing := case.clock_trouble or case.loss:
        findings = [_unsure(case, one, missing) for one in findings]
    if not case.report.can(Capability.GPU_METRICS):
        return [*findings]
    return [_witnessed(case, one) for one in findings]


def _unsure(case: Case, finding: Finding, missing: str) -> Finding:
    """Idle time of a report that lacks events of GPUs, or whose clocks do not fit."""
    lost = finding.lost
    if lost is None:
        return finding
    if case.clock_trouble:
        return replace(finding, confidence=Confidence.GUESS, doubt=missing)
    sure = finding.confidence
    finding = replace(
        finding,
        confidence=Confidence.INFERRED if sure is Confidence.MEASURED else sure,
        doubt=missing,
    )
    if finding.device is None or not _lacks_work(case, finding.device, lost):
        return finding
    return replace(unpriced(finding), confidence=Confidence.GUESS)


def unpriced(finding: Finding) -> Finding:
    """The same, of which nobody can tell what it could give back."""
    rated = min(finding.severity, Severity.MEDIUM, key=lambda severity: severity.rank)
    return replace(finding, saved_ns=0, stake_ns=finding.weight_ns, severity=rated)


def _lacks_work(case: Case, device: int, lost: Intervals) -> bool:
    """Whether a device idled mostly in gaps since whose last one work was asked for that lacks."""
    api, calls = case.report.api, case.report.calls
    named = np.array([name.startswith(LAUNCHES) for name in api.names], bool)
    asked = named[api.name] & api.real
    asked[calls[calls >= 0]] = False
    asked[unanswered(case.report, OpKind.MEMCPY)] = True
    times = np.sort(api.start[asked])
    whole = np.array([case.base], np.int64).T
    starts, ends = case.idle_time.idle_part(device, intervals.union(*whole))
    since = np.append(-FARTHEST, ends[:-1])
    holes = np.searchsorted(times, ends) > np.searchsorted(times, since)
    missing = intervals.overlap_length((starts[holes], ends[holes]), lost)
    return 2 * missing > intervals.total(*lost)


def _witnessed(case: Case, finding: Finding) -> Finding:
    spans = finding.lost
    if spans is None and finding.window is not None:
        spans = (np.array(finding.window[:1], np.int64), np.array(finding.window[1:], np.int64))
    if finding.device is None or spans is None or not len(spans[0]):
        return finding
    if finding.rule == "gpu_imbalance" and not finding.subject.endswith(MORE_WORK):
        return _clocked(case, finding, finding.device)
    witness = means(case.report, finding.device, spans)
    if not witness:
        return finding
    told = ", ".join(f"{name} {format_percent(value)}" for name, value in witness.items())
    finding = replace(finding, metrics=told)
    if finding.lost is not None and witness.get(SMS, 0.0) >= _BUSY:
        return replace(
            finding,
            confidence=Confidence.GUESS,
            severity=Severity.LOW,
            doubt=f"GPU metrics contradict it ({told}): work that was not traced ran meanwhile",
        )
    tensor, advice = witness.get(TENSOR, 0.0) >= _BOUND, finding.advice
    if finding.rule == "low_occupancy" and tensor:
        advice = f"no fault here: the tensor cores are busy ({told})"
    elif finding.rule == "dominant_kernel" and tensor:
        advice = f"it keeps the tensor cores busy ({told}): let it do less"
    elif finding.rule == "dominant_kernel" and witness.get(SMS, _BUSY) < _BUSY:
        advice = f"most SMs have nothing to do ({told}): use more blocks"
    elif finding.rule == "dominant_kernel" and witness.get(DRAM, 0.0) >= _BOUND:
        advice = f"it looks bound by memory ({told}): move fewer bytes, fuse, reuse caches"
    return replace(finding, advice=advice)


def means(report: Report, device: int, spans: Intervals) -> dict[str, float]:
    """Mean of each kind of counter of a GPU over some time, per cent.

    Args:
        report: the report.
        device: the GPU.
        spans: disjoint intervals in order.
    """
    mean = {}
    for name, pattern in _COUNTERS.items():
        values = [
            float(sampled.mean())
            for code in _codes(report, pattern)
            if len(sampled := _samples(report, device, code, spans))
        ]
        if values:
            mean[name] = sum(values)
    return mean


def _codes(report: Report, pattern: re.Pattern[str]) -> list[int]:
    names = report.gpu_metrics.metrics
    return [code for code, name in enumerate(names) if pattern.search(name)]


def _samples(report: Report, device: int, code: int, spans: Intervals) -> Int64:
    """Values of one counter of a GPU in some time: whole up to the samples before and after."""
    metrics, number = report.gpu_metrics, report.devices[device].number
    mine = np.flatnonzero((metrics.metric == code) & (metrics.gpu == number))
    time = metrics.start[mine]
    apart = int(np.median(np.diff(time))) if len(time) > 1 else 0
    at = np.searchsorted(spans[0], time - apart, side="right") - 1
    inside = (at >= 0) & (time + apart <= spans[1][np.maximum(at, 0)])
    return metrics.value[mine[inside]]


def _clocked(case: Case, finding: Finding, device: int) -> Finding:
    """Whether a slow GPU's clock was lower than that of others of its model."""
    model = case.report.devices[device].name
    alike = (one.index for one in case.splits if one.device.name == model)
    clocks = {one: clock for one in alike if (clock := _clock(case, one))}
    others = [clock for other, clock in clocks.items() if other != device]
    if device not in clocks or not others:
        return finding
    own, usual = clocks[device], float(np.median(others))
    told = f"clock {format_share(own, usual)} of the others'"
    finding = replace(finding, metrics=told)
    if own > usual * (1 - _SLOWER):
        doubt = f"GPU metrics do not explain it ({told}): it may have more work"
        return replace(finding, doubt=doubt)
    return replace(
        finding,
        title=f"{finding.title}, {told}",
        advice="see why its clock is lower: power limit, temperature, other programs",
        confidence=Confidence.MEASURED,
    )


def _clock(case: Case, device: int) -> float:
    """Median clock of a GPU while it worked, in the counter's own unit; 0 where not sampled."""
    whole = intervals.union(*np.array([case.base], np.int64).T)
    starts, ends = case.idle_time.idle_part(device, whole)
    apart = ends - starts >= _RESTS
    busy = intervals.subtract(whole, (starts[apart], ends[apart]))
    values = [_samples(case.report, device, code, busy) for code in _codes(case.report, _CLOCK)]
    return next((float(np.median(one)) for one in values if len(one)), 0.0)
