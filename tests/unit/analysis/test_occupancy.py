from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from synth import Synth

from nsys_tui.analysis.kernel_facts import LIMITS, occupancy
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("launch", "share", "limit"),
    [
        # 65536 registers, 64 warps, 32 blocks, 167936 bytes per SM: worked out by hand.
        ({"block": (256, 1, 1)}, 1.0, "warps"),
        ({"block": (32, 1, 1)}, 0.5, "blocks"),
        ({"block": (16, 16, 1), "registersPerThread": 64}, 0.5, "registers"),
        ({"block": (256, 1, 1), "registersPerThread": 168}, 8 / 64, "registers"),
        ({"block": (128, 1, 1), "staticSharedMemory": 49152}, 3 * 4 / 64, "shared memory"),
        ({"block": (128, 1, 1), "dynamicSharedMemory": 166912}, 4 / 64, "shared memory"),
        ({"block": (1024, 1, 1), "registersPerThread": 80}, 0.0, "registers"),
        ({"block": (96, 1, 1)}, 21 * 3 / 64, "warps"),
    ],
)
def test_the_tightest_limit_decides(
    tmp_path: Path, launch: dict[str, Any], share: float, limit: str
) -> None:
    path = Synth(tmp_path / "r.sqlite").gpu().process(1).kernel("k", 0, 9, **launch).write()
    found = occupancy(open_report(path), np.array([0]))
    assert found.share[0] == pytest.approx(share)
    assert LIMITS[found.limit[0]] == limit


def test_copies_and_gpus_without_limits_have_none(tmp_path: Path) -> None:
    path = Synth(tmp_path / "a.sqlite").gpu().process(1).memcpy(0, 9).write()
    assert np.isnan(occupancy(open_report(path), np.array([0])).share[0])
    path = Synth(tmp_path / "b.sqlite").process(1).kernel("k", 0, 9).write()
    found = occupancy(open_report(path), np.array([0]))
    assert np.isnan(found.share[0])
    assert found.limit[0] == -1
