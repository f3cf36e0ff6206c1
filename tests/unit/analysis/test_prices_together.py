"""What all findings of a planted run could give back together, and parts beside their wholes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from planted import PLANTED

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.model import intervals
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from synth import Synth

RUNS = {run.__name__: run for one in PLANTED.values() for run in (*one.triggers, *one.near)}
NOISE = 2_000
"""Time by which clipped and rounded times may differ, ns."""


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_findings_of_a_run_price_no_time_twice(
    run: Callable[[Path], Synth], tmp_path: Path
) -> None:
    report = open_report(run(tmp_path / "r.sqlite").write(), use_cache=False)
    case = Case(report)
    findings = find_in(case)
    wholes = {one.subject: one.saved_ns for one in findings if not one.same_as}
    for one in findings:
        assert one.saved_ns <= case.base_ns
        if one.gone is not None and one.rule not in ("slow_steps", "warm_up"):
            evidence = max(intervals.total(*one.gone), one.stake_ns)
            assert one.saved_ns <= evidence + max(NOISE, evidence // 20), one
        if wholes.get(one.same_as) and one.rule != "slow_steps" and one.late < 0:
            assert one.saved_ns <= wholes[one.same_as], one
    # What happens once, and what merely names slow steps, is no part of the sum.
    causes = [
        one for one in findings if not one.same_as and one.rule not in ("slow_steps", "warm_up")
    ]
    for split in case.splits:
        idle = [  # of what works, too, such as kernels that need not be tried, the idle part
            min(o.saved_ns, intervals.total(*case.idle_time.idle_part(split.index, o.gone)))
            for o in causes
            if o.gone is not None and o.device == split.index
        ]
        assert sum(idle) <= split.idle_ns + split.idle_ns // 20 + NOISE
    assert sum(one.saved_ns for one in causes) <= case.base_ns
    report.close()
