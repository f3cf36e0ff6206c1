"""Programs that pace themselves, or wait for somebody outside, and those that nearly do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from machine import MS, US, Machine
from planted import bare

from nsys_tui.analysis.rules.awaited import at_usual_rate
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.rules.verdict import verdict
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from synth import Synth

    from nsys_tui.analysis.rules.finding import Finding

SECOND = 1_000 * MS


def found(synth: Synth) -> tuple[str, list[Finding]]:
    case = Case(open_report(synth.write(), use_cache=False))
    findings = find_in(case)
    return verdict(case, findings), findings


@pytest.mark.parametrize(
    ("sleep", "work", "waits", "paced"),
    [
        (2 * SECOND, 30 * MS, True, True),
        (2 * SECOND, 600 * MS, True, False),  # much to do between
        (60 * MS, 30 * MS, False, False),  # sleeps instead of waiting for the GPU
    ],
)
def test_equal_sleeps_with_little_between_are_a_rate(
    tmp_path: Path, sleep: int, work: int, waits: bool, paced: bool
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for round_ in range(16):
        run.layers(2, work // 4 + round_ * 7 % 5 * MS // 10)
        if waits:
            run.wait()
        run.off("clock_nanosleep", sleep)
    _, findings = found(run.report)
    idle = next(one for one in findings if "sleep" in one.title)
    assert ("sleeps to keep a rate" in idle.title) is paced
    assert (idle.saved_ns == 0) is paced


@pytest.mark.parametrize(
    ("rounds", "sleeps", "paced"), [(4, 1, True), (4, 40, False), (2, 1, False)]
)
def test_few_equal_sleeps_are_a_rate_where_each_gap_has_one(
    tmp_path: Path, rounds: int, sleeps: int, paced: bool
) -> None:
    """A capture may hold few rounds; who sleeps often in each looks for something to come."""
    run = Machine(tmp_path / "r.sqlite")
    for round_ in range(rounds + 1):
        run.layers(2, (7 + round_ * 7 % 5) * MS)
        run.wait()
        for _ in range(sleeps * (round_ < rounds)):
            run.off("clock_nanosleep", 2 * SECOND // sleeps)
    _, findings = found(run.report)
    idle = next(one for one in findings if "sleep" in one.title)
    assert ("sleeps to keep a rate" in idle.title) is paced
    assert (idle.saved_ns == 0) is (paced or sleeps > 1)


@pytest.mark.parametrize(
    ("call", "sends", "outside"),
    [("recv", False, True), ("recv", True, False), ("read", False, False)],
)
def test_who_only_receives_waits_for_somebody_outside(
    tmp_path: Path, call: str, sends: bool, outside: bool
) -> None:
    """One that sends a little as well may ask for what it waits for."""
    run = Machine(tmp_path / "r.sqlite")
    for round_ in range(40):
        run.off("poll", (150 + round_ * 37 % 11 * 20) * MS)
        run.off(call, 20 * US)
        if sends and round_ % 4 == 0:
            run.off("sendto", 20 * US)
        run.layers(4)
        run.wait()
    line, findings = found(run.report)
    (idle,) = [one for one in findings if one.rule == "gpu_idle"]
    assert ("waits for input: poll" in idle.title) is outside
    assert (idle.saved_ns == 0) is outside
    assert ("poll (up to" in line or "that (up to" in line) is not outside


@pytest.mark.parametrize("answered", [False, True])
def test_what_comes_at_its_own_times_is_not_worked_on_sooner(
    tmp_path: Path, answered: bool
) -> None:
    """Who waits as long after each answer, whatever that took, is asked sooner by a quicker one."""
    run, chance = Machine(tmp_path / "r.sqlite"), np.random.default_rng(7)
    for block, more in enumerate(chance.exponential(14 * MS, 120).astype(int).tolist()):
        run.off("poll", 30 * MS if answered else 200 * US + more)
        run.off("recv", 20 * US)
        run.copy(20_000_000, 5, "HtoD", "pageable")
        run.layers(2 + block * 7 % 11)
        run.wait()
    line, findings = found(run.report)
    (copies,) = [one for one in findings if one.rule == "exposed_copies"]
    assert ("once what is waited for comes sooner" in copies.advice) is not answered
    assert ("copies not hidden" in line) is answered


@pytest.mark.parametrize(
    ("period", "deviates", "paced"),
    [
        (SECOND // 60, 60 * US, True),
        (SECOND // 60, 3 * MS, False),
        (18_100 * US, 60 * US, False),  # no rate of a display
    ],
)
def test_pictures_that_begin_evenly_are_paced(
    tmp_path: Path, period: int, deviates: int, paced: bool
) -> None:
    synth, late = bare(tmp_path / "r.sqlite"), np.random.default_rng(3).normal(0, deviates, 300)
    for frame, off in enumerate(late):
        start = frame * period + 10 * MS + int(off)
        synth.render("VULKAN", start, start + 2 * MS, call="vkQueueSubmit")
        synth.render("VULKAN", start + 3 * MS, start + 6 * MS, call="vkQueueSubmit")
    line, findings = found(synth)
    idle = next(one for one in findings if one.rule == "gpu_idle")
    assert ("its frames keep a rate" in idle.title) is paced
    assert idle.severity is Severity.MEDIUM  # others may be paced as well
    assert ("cannot be said" in line) is not paced


@pytest.mark.parametrize("before", ["write", "open"])
def test_a_question_before_all_gpu_work_is_no_loss(tmp_path: Path, before: str) -> None:
    """The program asks, reads one answer for long, then works; or reads a file."""
    run = Machine(tmp_path / "r.sqlite")
    run.call("cuInit", 10 * US)
    run.off(before, 10 * US)
    run.off("read", 900 * MS)
    for _ in range(20):
        run.layers(4)
    run.wait()
    _, findings = found(run.report)
    assert ("outside_work" in {one.rule for one in findings}) is (before == "open")


@pytest.mark.parametrize(("times", "priced"), [(1, False), (12, True)])
def test_one_pause_until_somebody_sends_is_not_worth_fixing(
    tmp_path: Path, times: int, priced: bool
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for number in range(24):
        if number >= 12 and number < 12 + times:
            run.off("poll", (200 + number * 37 % 11 * 20) * MS)
            run.off("read", 20 * US)
        run.layers(8)
        run.wait()
    _, findings = found(run.report)
    idle = next(one for one in findings if "poll" in one.title)
    assert (idle.saved_ns > 0) is priced


def test_waits_that_all_end_at_one_time_keep_no_rate() -> None:
    once = np.full(20, SECOND)
    assert not at_usual_rate(once, once)
    assert not at_usual_rate(once, np.zeros(20, np.int64), 0)
