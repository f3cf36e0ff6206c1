"""What compute could hide of communication: no compute that needs its results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import MS, Machine

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.gpu import NOT_TO_HIDE
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding

ROUNDS = 40


def exposed(path: Path, before: int, after: int, read: int) -> Finding:
    """Of rounds of compute around a collective, after each of which some bytes are read."""
    machine = Machine(path)
    for _ in range(ROUNDS):
        for number in range(before):
            machine.launch(f"backward_{number}", MS // 4)
        machine.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", MS)
        for number in range(after):
            machine.launch(f"check_{number}", MS // 4)
        machine.copy(read, 10, "DtoH")
    case = Case(open_report(machine.report.write(), use_cache=False))
    (one,) = [one for one in find_in(case) if one.rule == "exposed_communication"]
    return one


def test_compute_that_checks_results_before_they_are_read_hides_no_communication(
    tmp_path: Path,
) -> None:
    one = exposed(tmp_path / "r.sqlite", before=0, after=4, read=1)
    assert (one.saved_ns, one.advice) == (0, NOT_TO_HIDE)


@pytest.mark.parametrize(("before", "after", "read"), [(4, 0, 1), (2, 2, 1), (0, 4, 1_000_000)])
def test_compute_before_communication_could_hide_it_if_nothing_is_read_between(
    tmp_path: Path, before: int, after: int, read: int
) -> None:
    one = exposed(tmp_path / "r.sqlite", before, after, read)
    part = before / 4 if before else (ROUNDS - 1) / ROUNDS
    assert one.saved_ns == pytest.approx(ROUNDS * part * MS, rel=0.03)
    assert one.advice.startswith("overlap")
