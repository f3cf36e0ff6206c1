"""Idle time before nothing but clean-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import MS, US, Machine

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.window import Scope
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("last", "lasts", "reads", "told"),
    [
        ("release", 2 * MS, False, True),
        ("render", 2 * MS, False, False),
        ("release", 60 * MS, False, False),
        ("release", 2 * MS, True, False),
    ],
)
def test_a_gap_before_clean_up_is_no_fault(
    last: str, lasts: int, reads: bool, told: bool, tmp_path: Path
) -> None:
    """Not where the kernel ran before, works long, or makes what is read."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(20):
        run.launch("render", 5 * MS)
    run.copy(4_000_000, 10, "DtoH")
    run.off("fread", 100 * MS)
    run.launch(last, lasts)
    run.wait()
    if reads:
        run.copy(4_000, 10, "DtoH")
    run.call("cudaFree_v3020", 20 * US)
    idle = [one for one in find_in(Case(open_report(run.report.write()))) if "idle" in one.title]
    assert idle
    assert ("before clean-up" in idle[0].title) is told
    assert ("fread" in idle[0].title) is not told


def test_in_a_window_before_more_work_nothing_is_clean_up(tmp_path: Path) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(20):
        run.launch("render", 5 * MS)
    run.copy(4_000_000, 10, "DtoH")
    run.off("fread", 100 * MS)
    run.launch("encode", 2 * MS)
    run.wait()
    until = run.now
    for _ in range(20):
        run.launch("encode", 5 * MS)
    found = find_in(Case(open_report(run.report.write()), Scope((0, until))))
    assert not any("clean-up" in one.title for one in found)
    assert any("fread" in one.title for one in found)
