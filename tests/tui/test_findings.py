from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from tui.frames import rows, running, settled

from nsys_tui.demo.report import make_report

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

LINE = re.compile(r"(!H|[ ][ML]) (.*?) \[(\d)\]")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The demo report and its true figures."""
    folder = tmp_path_factory.mktemp("demo")
    made = make_report(folder / "demo.sqlite", truth_path=folder / "truth.json")
    assert made.truth is not None
    return made.report, json.loads(made.truth.read_text())


def listed(pilot: Pilot[int]) -> list[tuple[str, str, str]]:
    """Severity, text and screen of the findings that are seen."""
    return [match.groups() for line in rows(pilot) if (match := LINE.search(line))]


@pytest.mark.parametrize(("size", "lines"), [((80, 24), 6), ((160, 45), 12)])
async def test_planted_problems_of_the_demo_are_found_gravest_first(
    demo: tuple[Path, dict[str, Any]], size: tuple[int, int], lines: int
) -> None:
    async with running(demo[0], size=size) as pilot:
        found = listed(pilot)
        assert len(found) == lines
        grades = [severity.strip("! ") for severity, _, _ in found]
        assert grades == sorted(grades, key="HML".index)
        texts = "\n".join(text for _, text, _ in found)
        for pattern in (
            r"of communication expose" if size[0] > 100 else r"\(upper bound\)",
            r"GPU 0 and others idle \d\S+ ms i",
            r"GPU 1 computes 1[12]\.\d% longer than",
            r"copies that nothing",
            r"1 of 11 steps much slower",
        ):
            assert re.search(pattern, texts), pattern
        if size[0] > 100:
            assert re.search(r"3 x asynchronous copy of pageable memory", texts)
            assert re.search(r"1 launch-bound phase: 480 short operations", texts)
            assert re.search(r"idle .* sync call", texts)


async def test_enter_on_idle_time_shows_the_planted_gap_and_escape_comes_back(
    demo: tuple[Path, dict[str, Any]],
) -> None:
    path, truth = demo
    async with running(path) as pilot:
        app: Any = pilot.app
        app.screen.query_one("#findings").focus()
        await pilot.press("down", "down")
        await settled(pilot)
        assert "idle" in listed(pilot)[2][1]
        before = rows(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert app.front.SCREEN == "stalls"
        slow = [p for p in truth["problems"] if p["kind"] == "slow_step"]
        longest = max(p["longest_ns"] for p in slow)
        assert f"{longest / 1e6:.2f}ms OSRT call: pread64" in rows(pilot)[4]
        window = app.session.window
        assert any(window.start <= p["window"][0] < window.end for p in slow)
        await pilot.press("escape")
        await settled(pilot)
        assert app.front.SCREEN == "overview"
        assert rows(pilot) == before


async def test_times_of_findings_follow_the_format(demo: tuple[Path, dict[str, Any]]) -> None:
    async with running(demo[0], size=(160, 45)) as pilot:
        assert re.search(r"!H GPU 0 0\.890 s ", "\n".join(rows(pilot)))
        await pilot.press("T")
        await settled(pilot)
        assert re.search(r"!H GPU 0 890\d{6}", "\n".join(rows(pilot)))
