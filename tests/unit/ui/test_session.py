from __future__ import annotations

from typing import TYPE_CHECKING

from synth import Synth

from nsys_tui.reader import open_report
from nsys_tui.ui.session import Session

if TYPE_CHECKING:
    from pathlib import Path


def test_gpus_are_those_that_worked_else_those_of_the_host(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0, "NVIDIA A100-SXM4-80GB").process(1)
    synth.gpu(1, "NVIDIA A100-SXM4-80GB")
    idle = Session(synth.write(), report=open_report(synth.write(), use_cache=False))
    assert idle.gpus == "2x A100-SXM4-80GB"
    idle.loaded.append("operations")
    assert idle.gpus == "2x A100-SXM4-80GB"
    synth.kernel("k", 0, 10)
    busy = Session(synth.write(), report=open_report(synth.write(), use_cache=False))
    busy.loaded.append("operations")
    assert busy.gpus == "A100-SXM4-80GB"
