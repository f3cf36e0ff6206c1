from __future__ import annotations

from typing import TYPE_CHECKING

from synth import Synth

from nsys_tui.analysis.stalls.surroundings import MOST_EVENTS, scene
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

US = 1_000


def test_a_lane_shows_the_longest_and_of_equals_the_first(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10, "train")
    lasting = [2, 1, 3, 1, 2] * (MOST_EVENTS // 2)
    for place, length in enumerate(lasting):
        start = 20 * place * US
        synth.launch(
            f"k{place}", call=(start, start + US), gpu=(start + US, start + US * (1 + length))
        )
    report = open_report(synth.write())
    (lane,) = scene(report, 0, (0, 20 * len(lasting) * US), -1).gpu
    ranked = sorted(range(len(lasting)), key=lambda place: (-lasting[place], place))
    assert lane.names == tuple(f"k{place}" for place in sorted(ranked[:MOST_EVENTS]))
    assert lane.hidden == len(lasting) - MOST_EVENTS
