"""Idle gaps that come once, at a rate, or far more rarely than the waits before them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import Machine
from planted import MS

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.rules.verdict import verdict
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from synth import Synth

    from nsys_tui.analysis.rules.finding import Finding


def told(synth: Synth) -> tuple[list[Finding], str]:
    findings = find_in(case := Case(open_report(synth.write(), use_cache=False)))
    return findings, verdict(case, findings)


@pytest.mark.parametrize(("every", "blamed"), [(1, True), (40, False)])
def test_a_wait_is_to_blame_for_no_pause_far_longer_than_it(
    tmp_path: Path, every: int, blamed: bool
) -> None:
    """A result is read in each step; the host works for 4 ms then, or for 160 after each 40th."""
    run = Machine(tmp_path / "r.sqlite")
    for step in range(200):
        run.launch("train", 5 * MS)
        run.copy(8, 1, "DtoH")
        run.now += (step % every == every - 1) * every * 4 * MS
    (one,) = [one for one in told(run.report)[0] if "nothing recorded" in one.title]
    assert " after cudaMemcpy" in one.title
    assert one.advice.startswith("read results later") is blamed
