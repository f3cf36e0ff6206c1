"""Pages of unified memory: each counts once, and one that goes to and fro is kept apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import Machine
from planted import FULL, MS, US, bare, migrating

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.idle_causes import ON_FLAG
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from synth import Synth

    from nsys_tui.analysis.rules.finding import Finding

RULE = "migrations_in_kernels"


def found(run: Synth) -> Finding:
    (one,) = [one for one in find_in(Case(open_report(run.write()))) if one.rule == RULE]
    return one


def test_pages_count_once_for_kernels_side_by_side(tmp_path: Path) -> None:
    one = found(migrating(tmp_path / "one.sqlite"))
    run = migrating(tmp_path / "three.sqlite")
    for stream in (8, 9):
        run.launch("reads", call=(0, 5 * US), gpu=(MS, 90 * MS), grid=FULL, stream=stream)
    three = found(run)
    assert three.title.split()[:2] == one.title.split()[:2]
    assert three.saved_ns <= one.saved_ns


@pytest.mark.parametrize("count", [1, 3])
def test_one_page_to_and_fro_is_not_to_be_prefetched(tmp_path: Path, count: int) -> None:
    """A flag: more pages at each launch are data."""
    run = bare(tmp_path / "r.sqlite")
    for at in range(0, 60 * MS, MS):
        run.launch("level", (at, at + 5 * US), (at + 10 * US, at + 600 * US), grid=FULL)
        for page in range(count):
            begun = at + 20 * US + page * 30 * US
            run.memcpy(begun, begun + 20 * US, kind="UVM HtoD", bytes=65536, migrationCause=2)
            begun += 650 * US
            run.memcpy(begun, begun + 20 * US, kind="UVM DtoH", bytes=65536, migrationCause=2)
    assert (found(run).advice == ON_FLAG) is (count == 1)


@pytest.mark.parametrize("pages", [3, 8])
def test_small_grids_of_kernels_that_wait_for_pages_are_not_told(
    tmp_path: Path, pages: int
) -> None:
    """Each page takes a ms of the kernel's 10."""
    run = bare(tmp_path / "r.sqlite")
    for at in range(0, 60 * MS, 12 * MS):
        run.launch("reads", (at, at + 5 * US), (at + MS, at + 11 * MS), grid=(2, 1, 1))
        for page in range(1, pages + 1):
            begun = at + page * MS
            run.memcpy(begun, begun + MS, kind="UVM HtoD", bytes=12_000_000, migrationCause=2)
    rules = {one.rule for one in find_in(Case(open_report(run.write())))}
    assert RULE in rules
    assert ("small_grids" in rules) is (pages == 3)


def test_kernels_between_two_migrations_wait_for_none(tmp_path: Path) -> None:
    """Less passes from one migration to the next than the first lasts, but not in one kernel."""
    machine = Machine(tmp_path / "r.sqlite")
    for _ in range(10):
        machine.faults("stencil", 300 * US, 2 * MS)
        machine.launch("sum", MS)
        machine.wait()
    one = found(machine.report)
    assert "migrate while stencil runs" in one.title
    assert one.saved_ns == pytest.approx(10 * 2 * MS, rel=0.16)
