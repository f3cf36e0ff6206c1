from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make_report
from paths import REPORTS, needs_reports
from tui.frames import rows, running, settled

from nsys_tui.analysis.rules.finding import Finding, Severity
from nsys_tui.ui.screens.overview.panes import ADVISED, finding_lines

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

LINE = re.compile(r"\|(!H|[ ][ML]) ([^|]*)")
"""The first line of a finding; what its title goes on with, or where and what to do, is below."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The demo report and its true figures."""
    folder = tmp_path_factory.mktemp("demo")
    made = make_report(folder / "demo.sqlite", truth_path=folder / "truth.json")
    assert made.truth is not None
    return made.report, json.loads(made.truth.read_text())


def listed(pilot: Pilot[int]) -> list[tuple[str, str]]:
    """Severity and text, of two lines, of the findings that are seen."""
    lines = rows(pilot)
    found = [(number, match) for number, line in enumerate(lines) if (match := LINE.search(line))]
    return [
        (
            match[1],
            f"{match[2].strip(' #')} {lines[n + 1][match.start(2) : match.end(2)].strip(' #')}",
        )
        for n, match in found
    ]


@pytest.mark.parametrize(("size", "seen"), [((80, 24), 3), ((160, 45), 7)])
async def test_planted_problems_of_the_demo_are_found_gravest_first(
    demo: tuple[Path, dict[str, Any]], size: tuple[int, int], seen: int
) -> None:
    async with running(demo[0], size=size) as pilot:
        found = listed(pilot)
        assert len(found) == seen
        assert "Findings (15)" in "".join(rows(pilot))
        pane: Any = pilot.app.screen.query_one("#findings")
        grades = [choice.severity.letter for choice in pane._choices if hasattr(choice, "severity")]
        assert grades == sorted(grades, key="HML".index)
        texts = "\n".join("".join(text for text, _ in line) for line in pane._lines)
        assert ("command " in texts) == (size[0] < 120), "facts stand elsewhere on a wide screen"
        for pattern in (
            r"of communication expose",
            r"GPU 0 and others idle \d\S+ ms in",
            r"GPU 1 computes 1[12]\.\d% longer than",
            r"copies exposed",
        ):
            assert re.search(pattern, texts), pattern
        if size[0] > 100:
            # The planted one, and the one after it, which holds the validation.
            assert re.search(r"2 of 10 steps much slower: Train step 8", texts), "below its stall"
            assert re.search(r"3x async copy of pageable memory", texts)
            assert re.search(r"1 launch-bound phase: 480 short operations", texts)
            assert re.search(r"idle .* sync call", texts)
            assert re.search(r"GPU 0 0\.890 s \[2\] see what GPU 1 does before", texts)
            assert re.search(r"GPU 1 0\.896 s \[2\] overlap collectives", texts)


async def test_what_is_part_of_a_finding_says_so_below_it(
    demo: tuple[Path, dict[str, Any]],
) -> None:
    """So that a larger share below a smaller one is no riddle."""
    async with running(demo[0]) as pilot:
        found = [text for _, text in listed(pilot)]
        late = next(n for n, title in enumerate(found) if "GPU 1 computes" in title)
        below = found[late + 1]
        assert "communication exposed" in below
        assert below.endswith("(part of: GPU 1 slower than the")


async def test_enter_on_idle_time_shows_the_planted_gap_and_escape_comes_back(
    demo: tuple[Path, dict[str, Any]],
) -> None:
    path, truth = demo
    async with running(path) as pilot:
        app: Any = pilot.app
        place = next(n for n, row in enumerate(listed(pilot)) if "idle" in row[1])
        await pilot.press(*["down"] * place)
        await settled(pilot)
        before = rows(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert app.front.SCREEN == "stalls"
        slow = [p for p in truth["problems"] if p["kind"] == "slow_step"]
        longest = max(p["longest_ns"] for p in slow)
        assert f"{longest / 1e6:.2f} ms I/O: pread64" in rows(pilot)[4]
        window = app.session.window
        assert any(window.start <= p["window"][0] < window.end for p in slow)
        await pilot.press("escape")
        await settled(pilot)
        assert app.front.SCREEN == "overview"
        assert rows(pilot) == before


async def test_times_of_findings_follow_the_format(demo: tuple[Path, dict[str, Any]]) -> None:
    async with running(demo[0], size=(160, 45)) as pilot:
        assert re.search(r"   GPU 0 0\.890 s \[", "\n".join(rows(pilot)))
        await pilot.press("T")
        await settled(pilot)
        assert re.search(r"   GPU \d \d{9} ns \[", "\n".join(rows(pilot)))


@pytest.mark.parametrize("width", range(60, 130))
def test_no_line_of_a_finding_is_cut_and_its_secrets_are_kept(width: int) -> None:
    token = "hf_" + "aB3dE5fG7h" * 4
    finding = Finding(
        rule="some_rule",
        severity=Severity.HIGH,
        title=f"GPU 0 idle 40.00 ms, most in a range with a long name: load {token} again",
        subject="idle",
        advice="read ahead on another thread, so that the launching one need not wait for it",
        saved_ns=1,
        window=None,
        device=0,
        screen="5",
        command="",
        same_as="something that is told above",
    )
    lines, _ = finding_lines([finding], [], width, lambda _: "GPU 0", lambda _: "1.0%")
    first, *below = ["".join(text for text, _ in line).rstrip() for line in lines]
    assert all(len(line) <= width for line in (first, *below))
    told = " ".join(line.strip() for line in (first, *below))
    assert "again" in told
    assert "(part of: something that is told above)" in told
    assert ("wait for it" in told) == (width >= ADVISED)
    for line in below:
        assert token[:8] not in line or token in line


@needs_reports
async def test_where_there_is_room_the_chosen_finding_says_what_would_settle_it() -> None:
    path = REPORTS / "pytorch-nccl-2gpu-2026.2.sqlite"
    told = []
    async with running(path, size=(240, 72)) as pilot:
        for _ in range(2):
            told.append([row[72:] for row in rows(pilot) if "settled by" in row])
            await pilot.press("down")
            await settled(pilot)
    assert "guess, but told by names" in told[0][0]
    assert [len(lines) for lines in told] == [1, 1]
    assert told[0] != told[1]
