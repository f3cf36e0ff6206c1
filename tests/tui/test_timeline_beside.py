"""Several reports in one timeline: whose clock, whose lanes, whose facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from brute import query
from synth import Synth
from tui.timeline_pilot import running, settled, text

from nsys_tui.analysis.timeline.area import area
from nsys_tui.state import Window

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

US = 1_000
UTC = 1_780_000_000_000_000_000
LATER = 100 * US
"""The second rank's session starts so much later."""


def rank(folder: Path, number: int, utc: int | None) -> Path:
    """A kernel of 100 us from 200 us of its own session on, in a range of 50 to 400 us."""
    synth = Synth(folder / f"run_rank{number}.sqlite").gpu(0).process(10 + number, "train")
    synth.cuda_device(10 + number, 0, 0).thread(10 + number, "main")
    synth.nvtx("step", 50 * US, 400 * US)
    synth.launch(f"kernel_of_{number}", (60 * US, 65 * US), (200 * US, 300 * US))
    synth.launch("shared_kernel", (70 * US, 75 * US), (300 * US, 350 * US))
    if utc is not None:
        synth.session(500 * US, utc=utc)
    return synth.write()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("ranks")
    return rank(folder, 0, UTC), rank(folder, 1, UTC + LATER)


async def press(pilot: Pilot[int], *keys: str) -> str:
    for key in keys:
        await pilot.press(key)
        await settled(pilot)
    await settled(pilot)
    return text(pilot)


def app_of(pilot: Pilot[int]) -> Any:
    return pilot.app


def notes(pilot: Pilot[int]) -> str:
    return "\n".join(row.note for row in app_of(pilot).front.model.rows)


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_another_rank_joins_on_the_utc_clock_and_leaves_again(
    ranks: tuple[Path, Path], size: tuple[int, int]
) -> None:
    async with running(*ranks, size=size) as pilot:
        front = app_of(pilot).front
        alone = await press(pilot, "2")
        assert "rank 1" in await press(pilot, "A", "enter")
        front = app_of(pilot).front
        assert "run_rank0.sqlite: the report in front" in notes(pilot)
        assert "run_rank1.sqlite: aligned by UTC session start, +100.0 us" in notes(pilot)
        assert front.model.extent == (0, 600 * US)
        assert front.model.row.title.startswith("rank 1 ")
        tracks = front.model.lanes.whole.lineup.tracks
        work = [t for t in tracks if t.part == "operations" and t.lane is not None]
        starts = {track.title: int(track.lane.starts[0]) for track in work}
        assert starts == {"GPU 0 str 7": 200 * US, "rank 1 GPU 0 str 7": 300 * US}
        body = await press(pilot, "A", "enter")
        assert body.splitlines()[3:13] == alone.splitlines()[3:13]
        assert not front.model.beside


async def test_facts_selection_and_fit_are_those_of_the_other_report(
    ranks: tuple[Path, Path],
) -> None:
    async with running(*ranks, size=(160, 45)) as pilot:
        await press(pilot, "2", "A", "enter", "down", "down", "space", "down", ".")
        app, front = app_of(pilot), app_of(pilot).front
        body = text(pilot)
        assert "+- kernel_of_1" in body
        assert front.model.cursor_time == 300 * US, "on the clock of the report in front"
        assert "+140.0 us" in body, "of two times of one report"
        assert "main" in body
        rowid = query(ranks[1], "SELECT rowid FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start")[0][0]
        assert app.state.selection.key[1::2] == ("operation", rowid)
        await press(pilot, "f")
        assert app.state.window == Window(295 * US, 405 * US)
        await press(pilot, "f")
        window = app.state.window
        assert (window.start + window.end) // 2 == (50 + 400 + 200) * US // 2
        assert "o brings this one there" in await press(pilot, "[")
        assert "+- kernel_of_1" in await press(pilot, "1", "2"), "it is found again"
        await press(pilot, "A", "enter")
        assert app.state.selection is None


async def test_groups_fold_hide_and_are_searched_and_summed(ranks: tuple[Path, Path]) -> None:
    async with running(*ranks, size=(160, 36)) as pilot:
        body = await press(pilot, "2", "A", "enter")
        front = app_of(pilot).front
        shown = len(front.model.rows)
        await press(pilot, "space")
        assert len(front.model.rows) == shown - 2
        await press(pilot, "space", "home", "ctrl+home", "space")
        assert [row.depth for row in front.model.rows].count(0) == len(front.model.rows)
        assert "kernel_of_0" not in text(pilot)
        await press(pilot, "space", "/", *"shared", "enter")
        assert sum(app_of(pilot).state.search.counts.values()) == 2
        tracks = [
            track for track in front.model.lanes.whole.lineup.tracks if track.events is not None
        ]
        found = area(tracks, (0, 600 * US), "short")
        busy = {row.name: (row.busy, row.of, row.events) for row in found.categories}
        assert busy["compute"] == (300 * US, 1200 * US, 4)
        names = {row.name: (row.total, row.events) for row in found.names}
        assert names["shared_kernel"] == (100 * US, 2)
        assert "rank 1" in body


async def test_clocks_that_cannot_be_laid_on_each_other_are_said(tmp_path: Path) -> None:
    paths = rank(tmp_path, 0, UTC), rank(tmp_path, 1, None), rank(tmp_path, 2, UTC + 10**15)
    async with running(*paths, size=(160, 45)) as pilot:
        await press(pilot, "2", "A", "enter")
        front = app_of(pilot).front
        assert {found.offset for found in front.model.beside.values()} == {0}
        assert "no UTC start recorded: drawn from its own session start" in notes(pilot)
        assert "not captured together" in notes(pilot)


async def test_the_fleet_puts_a_rank_beside_and_a_lone_report_says_how(
    ranks: tuple[Path, Path],
) -> None:
    async with running(*ranks, size=(160, 45)) as pilot:
        await press(pilot, "f7")
        assert "report in front" in await press(pilot, "b")
        await press(pilot, "down", "b")
        assert app_of(pilot).front.SCREEN == "timeline"
        assert "aligned by UTC session start" in notes(pilot)
    async with running(ranks[0]) as pilot:
        assert "no other report is open" in await press(pilot, "2", "A")
