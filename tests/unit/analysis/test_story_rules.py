"""Runs after public stories in which an expert found the cause, and others that nearly have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from planted import FULL, MS, US, bare

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from synth import Synth

    from nsys_tui.analysis.rules.finding import Finding


def found(synth: Synth, rule: str) -> list[Finding]:
    case = Case(open_report(synth.write(), use_cache=False))
    return [one for one in find_in(case) if one.rule == rule]


def migrating(path: Path, cause: int) -> Synth:
    """Two kernels by turns, with ten migrations of a page in each; ten pages come back after it."""
    synth = bare(path)
    for number in range(20):
        start = number * 4 * MS
        call, gpu = (start, start + 5 * US), (start + 10 * US, start + MS)
        synth.launch(f"sort_{number % 2}", call, gpu, grid=FULL)
        for page in range(10):
            for kind, begun in (("UVM HtoD", 100 * US), ("UVM DtoH", 2 * MS)):
                begun += start + page * 50 * US
                why = 2 if kind == "UVM HtoD" else cause
                synth.memcpy(begun, begun + 20 * US, kind=kind, bytes=65536, migrationCause=why)
    return synth


def test_pages_cost_what_all_kernels_wait_for_them(tmp_path: Path) -> None:
    (one,) = found(migrating(tmp_path / "r.sqlite", 2), "migrations_in_kernels")
    faults = 9 * 50 * US + 20 * US  # of each launch; the first fault is not recorded
    assert "kernels run, led by sort_0" in one.title
    assert one.saved_ns == pytest.approx(20 * faults, rel=0.1)
    assert one.saved_ns <= 20 * faults
    assert one.advice.startswith("prefetch the pages")


def test_evicted_pages_are_not_to_be_prefetched(tmp_path: Path) -> None:
    (one,) = found(migrating(tmp_path / "r.sqlite", 4), "migrations_in_kernels")
    assert "fit the GPU's memory" in one.advice
