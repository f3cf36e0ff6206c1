"""Advice: what a log cannot tell and which NCCL setting would have recorded it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.logs.line_prefixes import NO_TIME
from nsys_tui.logs.result import LogResult, Window
from nsys_tui.logs.trainers.step_lines import StepLine

SUBSYSTEMS: Final = "INIT,COLL,NET,NVLS,GRAPH,TUNING,ENV"
DEBUG_TIME: Final = (
    "NCCL_DEBUG_TIME is no variable of NCCL, in no version: setting it does nothing. "
    "For times set NCCL_DEBUG_TIMESTAMP_LEVELS=INFO with NCCL 2.26 or newer; "
    "before that let the launcher stamp the lines"
)
NO_DURATIONS: Final = (
    "a log line is written when a collective is issued, never when it ends: durations and "
    "bandwidth need a report of the same run"
)


@dataclass(frozen=True)
class Advice:
    """One sentence for the user."""

    severity: str
    """``warning`` or ``note``."""
    text: str


def advise(result: LogResult) -> tuple[Advice, ...]:
    """What is missing or misleading in the logs, warnings first."""
    findings = [one for part in _PARTS for one in part(result)]
    return tuple(sorted(findings, key=lambda one: one.severity != "warning"))


def _warning(text: str) -> Advice:
    return Advice("warning", text)


def _note(text: str) -> Advice:
    return Advice("note", text)


def _debug_time(result: LogResult) -> Iterator[Advice]:
    if result.mentions_debug_time:
        yield _warning(DEBUG_TIME)
    elif len(result.calls):
        if not any(file.timed for file in result.files):
            yield _note("the lines carry no time, so rates are unknown; " + DEBUG_TIME)
        yield _note(NO_DURATIONS)


def _torn(result: LogResult) -> Iterator[Advice]:
    torn = sum(file.torn_lines for file in result.files)
    cut = sum(file.cut_lines for file in result.files)
    if torn:
        yield _warning(
            f"{torn} torn line{'s' * (torn != 1)}: several processes wrote over one another;"
            " what is whole was used. Set NCCL_DEBUG_FILE=nccl.%h.%p.log, one file per process"
        )
    if cut:
        yield _note(f"{cut} lines filled NCCL's buffer of 1024 bytes; their end is missing")
    if result.mpi.torn_lines:
        yield _warning(
            f"{result.mpi.torn_lines} torn MPI lines: ranks that share a file overwrite it. "
            "Give each rank its own MPI_MSG_LOG_FILE"
        )


def _cut_short(result: LogResult) -> Iterator[Advice]:
    for file in result.files:
        if file.cut_short:
            yield _warning(f"{file.path!r} ends in the middle: what stands before that was read")


def _unsized(result: LogResult) -> Iterator[Advice]:
    sums = result.calls.sums
    if unsized := sums.total(sums.bytes < 0):
        yield _warning(f"{unsized} calls of an unknown data type are in no sum of bytes")


def _groups(result: LogResult) -> Iterator[Advice]:
    used = {c.group for c in result.communicators if c.calls}
    if used and not any(result.groups[group].certain for group in used):
        known = any(c.rank >= 0 for c in result.communicators)
        why = "no ids of communicators" if known else "no Init lines: ranks are unknown"
        more = f"log Init lines of NCCL 2.16 or newer: NCCL_DEBUG_SUBSYS={SUBSYSTEMS}"
        yield _note(f"{why}; communicators are joined by size and order, which is a guess; {more}")


def _devices(result: LogResult) -> Iterator[Advice]:
    calls = result.calls.sums
    if not len(calls):
        return
    device_of = np.array([c.cuda_device for c in result.communicators])[calls.communicator]
    if other := calls.total((device_of >= 0) & (calls.device >= 0) & (device_of != calls.device)):
        yield _note(
            f"{other} lines show another device in [brackets] than their communicator's: that is "
            "the calling thread's current device; GPUs here are the communicator's"
        )


def _window(result: LogResult) -> Iterator[Advice]:
    window = result.window
    if window and window.legacy:
        held = f"{window.steps[0]} to {window.steps[-1]}" if window.steps else "no steps"
        yield _warning(
            f"legacy window: a step line closes its step, so these are the collectives of {held}"
        )
    elif window and not window.steps:
        yield _warning(f"no step line from {window.first} to {window.last} in these logs")
    mine = [step for step in result.step_lines if step.format == result.trainer]
    epochs = {step.epoch for step in mine if inside(step, window)}
    if len(epochs) > 1:
        yield _warning(f"the window holds steps of {len(epochs)} epochs; --epoch chooses one")
    if result.trainer == "megatron" and window and not window.legacy:
        steps = sorted({step.step for step in mine})
        if len(steps) > 1 and (every := min(np.diff(steps))) > 1:
            yield _note(
                f"step lines come every {every} steps: calls count for the step whose line"
                " closes them, and times are means over the interval"
            )


def inside(step: StepLine, window: Window | None) -> bool:
    """Whether a step is in a window; False without one."""
    return window is not None and window.first <= step.step <= window.last


def _carried_steps(result: LogResult) -> Iterator[Advice]:
    """How calls of files without step lines came by their steps, and how many did not."""
    told = {step.file for step in result.step_lines if step.format == result.trainer}
    silent = ~np.isin(result.every_call.by_kind.file, list(told))
    if result.window is None or not told or not silent.any() or result.window.legacy:
        return
    lost, carried = 0, set[int]()
    for part in result.every_call.parts(silent):
        lost += int((part.step < 0).sum())
        carried.update(np.unique(part.communicator[part.step >= 0]).tolist())
    if lost:
        yield _warning(
            f"{lost:,} calls of files without step lines belong to no step that can be told"
        )
    if any(not result.groups[result.communicators[i].group].certain for i in carried):
        yield _note(
            "≈ files without step lines take their steps from the other ranks by opCount, and "
            "which communicators belong together is a guess"
        )


def _mixed_trainers(result: LogResult) -> Iterator[Advice]:
    others = sorted({s.format for s in result.step_lines} - {result.trainer})
    if others and result.trainer:
        yield _note(
            f"step lines of several trainers; {result.trainer} is used, {', '.join(others)} not "
            "(--trainer chooses)"
        )


def _step_figures(result: LogResult) -> Iterator[Advice]:
    mine = [step for step in result.step_lines if step.format == result.trainer]
    if any(step.approximate and step.time_ns != NO_TIME for step in mine):
        yield _note(
            "this trainer prints no step time: it is the time between the stamps of its lines"
        )
    if any(step.tokens_per_s and not step.tflops for step in mine) and result.trainer == "llm.c":
        yield _note("llm.c prints no TFLOPs and its model table is missing: give --flops-per-token")


_PARTS: Final = (
    _debug_time,
    _torn,
    _cut_short,
    _unsized,
    _groups,
    _devices,
    _window,
    _carried_steps,
    _mixed_trainers,
    _step_figures,
)
"""In the order in which they are told."""
