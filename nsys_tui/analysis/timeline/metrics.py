"""Tracks of sampled hardware counters, right below their GPU, and of the steps, above all lanes."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.analysis.iterations.steps import Iterations, Rule
from nsys_tui.analysis.timeline.facts import path_ranges
from nsys_tui.analysis.timeline.host import leading_thread
from nsys_tui.analysis.timeline.tracks import Counter, Section, Shape, Track, gpu_key
from nsys_tui.model.categories import Category
from nsys_tui.model.lanes import Lane
from nsys_tui.model.report import Report
from nsys_tui.names import normalise_nvtx

LATE: Final = 1.5
"""A sample lasts until the next one, which may come this many times the usual distance later."""
LAST: Final = 4
"""Their place among the rows of a GPU: after NVTX, streams and memory."""
TELLING: Final = ("sm active", "tensor", "dram read", "dram write", "dram", "pcie", "nvlink")
"""Words in the names of counters that tell most, in the order of their rows."""


def metric_tracks(report: Report) -> list[Track]:
    """One row for each counter of each GPU that was sampled; those that tell less fold away."""
    metrics = report.gpu_metrics
    places = {device.number: index for index, device in enumerate(report.devices)}
    tracks: list[Track] = []
    for gpu in np.unique(metrics.gpu).tolist():
        index = places.get(gpu)
        order = (Section.GPU, len(places) + gpu if index is None else index, LAST)
        group = f"metrics:{gpu}" if index is None else gpu_key(index)
        if index is None:
            note = f"no work of GPU {gpu} is known"
            tracks.append(_heading(group, f"GPU {gpu}", note, order, ()))
        recorded = np.unique(metrics.metric[metrics.gpu == gpu]).tolist()
        ranks = {code: _rank(metrics.metrics[code]) for code in recorded}
        rest = [code for code in recorded if ranks[code] == len(TELLING)]
        parents: tuple[str, ...] = (group,)
        more = f"metrics:{gpu}/more"
        folds = 1 < len(rest) < len(recorded)
        if folds:
            note = f"{len(rest)} more counters of GPU {gpu}"
            tracks.append(_heading(more, "metrics", note, (*order, len(TELLING)), parents))
        for code in recorded:
            above = (*parents, more) if folds and code in rest else parents
            tracks.append(_track(report, gpu, code, above, (*order, ranks[code], code + 1), index))
    return tracks


def _rank(name: str) -> int:
    """Place of a counter among those of its GPU, by what its name holds."""
    lower = name.lower()
    return next((n for n, word in enumerate(TELLING) if word in lower), len(TELLING))


def _heading(
    key: str, label: str, note: str, order: tuple[int, ...], parents: tuple[str, ...]
) -> Track:
    return Track(
        key=key,
        label=label,
        title=note,
        part="",
        order=order,
        shape=Shape.HEADING,
        depth=len(parents),
        parents=parents,
        note=note,
        folded=bool(parents),
    )


def _track(
    report: Report,
    gpu: int,
    code: int,
    parents: tuple[str, ...],
    order: tuple[int, ...],
    device: int | None,
) -> Track:
    metrics = report.gpu_metrics
    rows = np.flatnonzero((metrics.gpu == gpu) & (metrics.metric == code))
    times, values, name = metrics.start[rows], metrics.value[rows], metrics.metrics[code]
    short, _, unit = name.partition(" [")
    percent = "%" in unit
    unit = "%" if percent else unit.rstrip("]")
    return Track(
        key=f"metrics:{gpu}/{code}",
        label=short,
        title=f"GPU {gpu} {name}",
        part="gpu_metrics",
        order=order,
        shape=Shape.COUNTER,
        words=f"{short} {unit}".rstrip(),
        depth=len(parents),
        parents=parents,
        events=metrics,
        counter=Counter(
            times,
            values,
            unit,
            100.0 if percent else float(values.max()),
            reach=int(LATE * (times[-1] - times[0]) / max(len(rows) - 1, 1)),
        ),
        device=device,
    )


def step_tracks(report: Report) -> list[Track]:
    """Steps that are named, or told by a pattern of kernels, above all other lanes."""
    steps = find_iterations(report)
    if steps.rule not in (Rule.NAME, Rule.PATTERN) or _is_outermost(report, steps):
        return []
    rows = np.arange(len(steps), dtype=np.int32)
    guessed = "≈ " if steps.rule is Rule.PATTERN else ""
    return [
        Track(
            key="steps",
            label=f"{guessed}steps",
            title=f"steps {steps.rule}: {steps.name}",
            part="steps",
            order=(Section.NVTX, -1, 0),
            words=f"{guessed}steps {steps.rule}",
            lane=Lane.build(steps.start, steps.own_end, rows, Category.NVTX),
            texts=tuple(f"step {label}" if label.isdecimal() else label for label in steps.labels),
        )
    ]


def _is_outermost(report: Report, steps: Iterations) -> bool:
    """Whether the first row of the leading thread's ranges shows the steps, or a rank's own."""
    if not len(steps.rows):
        return False
    ranges, row = report.ranges, int(steps.rows[0])
    thread = int(ranges.threads[ranges.thread[row]])
    if any(one != row for one in path_ranges(report, thread, int(ranges.start[row]))):
        return False
    leader = np.flatnonzero(ranges.threads == leading_thread(ranges))
    named = np.unique(ranges.name[np.isin(ranges.thread, leader)]).tolist()
    # Of several ranks each has its own; the leader's stand for all.
    return any(normalise_nvtx(ranges.names[code]) == steps.name for code in named)
