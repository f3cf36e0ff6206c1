"""Runs too small to judge, and small ones that recur and are judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import MS, US, Machine

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.rules.verdict import verdict
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000 * MS


def judged(run: Machine, session: int = 5 * SECOND) -> tuple[bool, set[Severity]]:
    """Whether a run is one-shot, and how grave its findings are."""
    case = Case(open_report(run.report.session(session).write(), use_cache=False))
    found = find_in(case)
    is_once = verdict(case, found).startswith("One-shot: ")
    return is_once, {one.severity for one in found}


def launched(run: Machine, count: int, ns: int, rest: int, device: int = 0) -> None:
    for _ in range(count):
        run.launch("linear", ns, device)
        run.wait()
        run.now += rest


@pytest.mark.parametrize(
    ("count", "rest", "session", "once"),
    [
        (200, 5 * US, 5 * SECOND, True),
        (200, 5 * US, 50 * MS, False),  # all that was captured
        (4000, 5 * US, 5 * SECOND, False),
        (200, MS, 5 * SECOND, False),  # steps of 1 ms
    ],
)
def test_hundreds_of_short_kernels_after_seconds_are_no_run(
    tmp_path: Path, count: int, rest: int, session: int, once: bool
) -> None:
    """After 40 ms of set-up, kernels of 2 us each a little after the one before."""
    run = Machine(tmp_path / "r.sqlite")
    run.launch("fill", 2 * US)
    run.now += 40 * MS
    launched(run, count, 2 * US, rest)
    is_once, grave = judged(run, session)
    assert is_once is once
    assert (grave == {Severity.LOW}) is once


@pytest.mark.parametrize(("steps", "once"), [(3, True), (300, False)])
def test_few_steps_on_several_gpus_are_no_run(tmp_path: Path, steps: int, once: bool) -> None:
    """Two GPUs wait 200 ms for each other at first; then each works 300 us a step."""
    run = Machine(tmp_path / "r.sqlite", gpus=2)
    for device in (0, 1):
        run.launch("join", 10 * US, device)
    run.now += 200 * MS
    for _ in range(steps):
        for device in (0, 1):
            launched(run, 10, 30 * US, 20 * US, device)
    assert judged(run)[0] is once


@pytest.mark.parametrize("name", ["gemv warm-up", "WARMUP", "loop"])
def test_a_loop_that_is_called_warm_up_is_no_run(tmp_path: Path, name: str) -> None:
    run = Machine(tmp_path / "r.sqlite")
    launched(run, 60, 50 * US, 100 * US)
    run.named(name, 0)
    run.now += 20 * MS
    launched(run, 1, 50 * US, US)
    assert judged(run)[0] is (name != "loop")
