from __future__ import annotations

from typing import TYPE_CHECKING

from synth import Synth

from nsys_tui.reader import open_report
from nsys_tui.state import Mark
from nsys_tui.ui.mark_spans import span_between, split_between

if TYPE_CHECKING:
    from pathlib import Path

US = 1_000


def test_shares_are_of_all_gpus_and_clipped_to_the_marks(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).gpu(1).process(10, "train")
    synth.cuda_device(10, 0, 0).cuda_device(10, 1, 1)
    synth.launch("gemm", (0, US), (0, 150 * US), device=0)
    synth.launch("ncclDevKernel_AllReduce(int)", (0, US), (150 * US, 500 * US), device=1)
    report = open_report(synth.write(), use_cache=False)
    first, last = Mark("a", 100 * US, "timeline"), Mark("b", 300 * US, "timeline")
    assert span_between(first, last) == "a-b 200.0 us"
    assert (
        split_between(report, first, last) == "a-b 200.0 us: compute 12.5%, comm 37.5%, idle 50.0%"
    )
    assert split_between(report, first, first) == "a-a 0 ns"
