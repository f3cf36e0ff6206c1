"""The rule on kernels that a tuner tries in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import MS
from planted_kernels import tuned

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Confidence
from nsys_tui.analysis.rules.ranking import RULES, find
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from synth import Synth

SHAPES, KINDS = 6, 8


def case_of(synth: Synth) -> Case:
    return Case(open_report(synth.write(), use_cache=False))


def test_what_is_tried_could_be_saved(tmp_path: Path) -> None:
    """Six times eight kernels of 1 ms; the first begins 10 us after its call, for good."""
    (one,) = RULES["tried_kernels"].run(case_of(tuned(tmp_path / "r.sqlite"))).findings
    assert one.title.startswith("48 kernels tried in turn on GPU 0, 6 of them used after: 47.94 ms")
    assert one.confidence is Confidence.GUESS
    assert one.saved_ns == SHAPES * (KINDS * MS - 10_000)


def test_it_leads_what_it_is_made_of(tmp_path: Path) -> None:
    findings = find(open_report(tuned(tmp_path / "r.sqlite").write(), use_cache=False))
    assert findings[0].rule == "tried_kernels"


def test_steps_that_hand_values_to_the_host_are_no_alternatives(tmp_path: Path) -> None:
    synth = tuned(tmp_path / "r.sqlite", shapes=1)
    synth.memcpy(2 * MS + 2_000, 2 * MS + 4_000, bytes=4, kind="DtoH")
    assert not RULES["tried_kernels"].run(case_of(synth)).findings


@pytest.mark.parametrize("before", [True, False])
def test_in_the_first_of_named_steps_it_is_warm_up(tmp_path: Path, before: bool) -> None:
    """One shape, tried before or within the first of ten steps."""
    synth = tuned(tmp_path / "r.sqlite", shapes=1)
    first = KINDS * MS if before else 0
    for step in range(10):
        start = first if step == 0 else (KINDS + 2 * step) * MS - 60_000
        synth.nvtx(f"step {step}", start, (KINDS + 2 * step + 2) * MS - 60_000)
    case = case_of(synth)
    assert not RULES["tried_kernels"].run(case).findings
    (one,) = RULES["warm_up"].run(case).findings
    assert "tries kernels for 7.990 ms" in one.title
