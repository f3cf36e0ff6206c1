"""What copies cost: their time now, less what they must still take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import Machine
from planted import FULL, MS, US, bare

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from synth import Synth

    from nsys_tui.analysis.rules.finding import Finding


def copies(synth: Synth) -> list[Finding]:
    case = Case(open_report(synth.write(), use_cache=False))
    return [one for one in find_in(case) if one.rule == "exposed_copies"]


def test_pinned_copies_are_no_quicker_for_some_that_were(tmp_path: Path) -> None:
    """A hundred read-backs of 2.4 to 3 ms, each after a kernel of 0.2 ms, which alone can hide."""
    synth, now = bare(tmp_path / "r.sqlite"), 0
    for number in range(100):
        synth.kernel("fill", now, now + 200 * US, grid=FULL)
        now += 200 * US
        lasts = 2400 * US if number % 5 == 0 else 3 * MS
        synth.memcpy(now, now + lasts, bytes=60_000_000, kind="DtoH", dst="pinned")
        now += lasts
    (one,) = copies(synth)
    assert one.saved_ns == pytest.approx(100 * 200 * US, rel=0.02)
    assert one.advice.startswith("copy less")


@pytest.mark.parametrize("pinned", [0, 12, 20])
def test_pageable_memory_becomes_as_quick_as_pinned_memory_of_the_report(
    tmp_path: Path, pinned: int
) -> None:
    """Without any pinned copy up it is as quick as the bus, at 26 GB/s."""
    synth, now = bare(tmp_path / "r.sqlite"), 0
    for _ in range(20):
        synth.memcpy(now, now + 10 * MS, bytes=60_000_000, src="pageable")
        now += 10 * MS
        if pinned:
            synth.memcpy(now, now + 24 * MS // pinned, bytes=24_000_000, src="pinned")
            now += 24 * MS // pinned
        synth.kernel("step", now, now + 10 * US, grid=FULL)
        now += 10 * US
    (one,) = copies(synth)
    still = 20 * 60 * MS / (pinned or 26)
    assert one.saved_ns == pytest.approx(20 * 10 * MS - still, rel=0.02)


def test_each_kind_of_copies_has_a_price_of_its_own(tmp_path: Path) -> None:
    """What is copied within the GPU goes for another reason than uploads that are pinned."""
    synth = bare(tmp_path / "r.sqlite")
    for now in range(0, 200 * MS, 10 * MS):
        synth.memcpy(now, now + 2 * MS, bytes=12_000_000, src="pageable")
        synth.memcpy(now + 2 * MS, now + 3 * MS, bytes=600_000_000, kind="DtoD")
        synth.kernel("step", now + 3 * MS, now + 10 * MS, grid=FULL)
    within, up = sorted(copies(synth), key=lambda one: one.saved_ns)
    assert (within.subject, within.saved_ns) == ("copies within the GPU", 20 * MS)
    assert (up.subject, up.saved_ns) == ("copies not hidden", 40 * MS)
    assert "20.00 ms of copies exposed" in within.title
    assert "40.00 ms of copies exposed" in up.title


@pytest.mark.parametrize(("rounds", "told"), [(1, Severity.MEDIUM), (20, Severity.HIGH)])
def test_what_is_copied_once_stands_behind_what_recurs(
    tmp_path: Path, rounds: int, told: Severity
) -> None:
    """A tenth of the time in all: in one piece before a long loop, or in each of its rounds."""
    synth, now = bare(tmp_path / "r.sqlite"), 0
    for _ in range(rounds):
        synth.memcpy(now, now + 40 * MS // rounds, bytes=120_000_000 // rounds, src="pageable")
        now += 40 * MS // rounds
        for _ in range(40 // rounds):
            synth.kernel("step", now, now + 9 * MS, grid=FULL)
            now += 9 * MS
    synth.memcpy(now, now + 10 * MS, bytes=30_000_000, kind="DtoH", dst="pageable")
    assert max(one.severity for one in copies(synth)) is told


@pytest.mark.parametrize(("memory", "keeps"), [("pinned", True), ("pageable", False)])
def test_what_a_runtime_stages_of_arrays_that_go_back_is_given_back(
    tmp_path: Path, memory: str, keeps: bool
) -> None:
    """Each array takes the host 3 ms beside its copy; of pageable memory the driver does that."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(50):
        run.launch("sweep", MS)
        for way in ("DtoH", "DtoH", "HtoD", "HtoD"):
            run.copy(8_400_000, 12, way, memory)
            run.now += 3 * MS
    (one,) = copies(run.report)
    assert one.advice.startswith("keep the data on the GPU: what comes to the host") is keeps
    around = 50 * (4 * 700 * US + 3 * 3 * MS)
    assert (one.saved_ns == pytest.approx(around, rel=0.05)) is keeps


@pytest.mark.parametrize(("first", "staged"), [(10, True), (100, False)])
def test_the_first_piece_waits_for_the_host_as_the_others_do(
    tmp_path: Path, first: int, staged: bool
) -> None:
    """Eight pieces of 16 MB with 2 ms between: 10 ms before them is staging, 100 ms is work."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(20):
        run.launch("sweep", MS)
        run.wait()
        run.now += first * MS
        for _ in range(8):
            run.upload(800 * US)
            run.wait()
            run.now += 2 * MS
    (one,) = copies(run.report)
    assert "or pin the arrays: the host copies each piece first" in one.advice
    assert one.lost is not None
    told = 7 * 2 * MS + (first + 2) * MS * staged
    assert int((one.lost[1] - one.lost[0]).sum()) == pytest.approx(20 * told, rel=0.05)


@pytest.mark.parametrize("large", [False, True], ids=["small alone", "and a large one"])
def test_small_copies_are_one_story_with_the_time_that_they_take(
    tmp_path: Path, large: bool
) -> None:
    """Gathering them gives both back; the time of a large one is another story."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(200):
        for _ in range(4):
            run.copy(16_384, 4, "HtoD", "pageable")
        if large:
            run.copy(4_000_000, 4, "HtoD", "pageable")
        run.launch("step", 200 * US)
        run.wait()
    found = find_in(Case(open_report(run.report.write(), use_cache=False)))
    (exposed,) = [one for one in found if one.rule == "exposed_copies"]
    assert exposed.same_as == ("" if large else "small copies")
    assert exposed.severity is (Severity.HIGH if large else Severity.LOW)
