from __future__ import annotations

import argparse
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tui.frames import FANCY, rows, running, settled, text
from unit.fleet.fleet_reports import US, Run, both_in_one

from nsys_tui import cli
from nsys_tui.analysis.window import Choice
from nsys_tui.commands import fleet as verb
from nsys_tui.commands import open as opening
from nsys_tui.config import Config
from nsys_tui.errors import UNREADABLE, CancelledError, UsageError
from nsys_tui.fleet.table_parts import Ask
from nsys_tui.fleet.tables import SECTIONS
from nsys_tui.text.documents import table_rows
from nsys_tui.ui.screens.fleet import reading
from nsys_tui.ui.screens.fleet import screen as fleet_screen
from nsys_tui.ui.screens.fleet.heat import HeatPane
from nsys_tui.ui.screens.fleet.screen import FleetScreen
from nsys_tui.ui.session import Session

CHOSEN_RANGE = ["--device", "0", "--device", "1", "--nvtx", "train step 2"]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    run = Run(ranks=4, slow={(2, 3): 150 * US}, begun={1: 200 * US, 3: 350 * US})
    return run.write(tmp_path_factory.mktemp("fleet"))


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FleetScreen, "WORKERS", 1)


def test_the_verb_has_all_that_the_app_asks_for(ranks: list[Path]) -> None:
    parser = argparse.ArgumentParser()
    verb.add_arguments(parser)
    given = parser.parse_args([*map(str, ranks), "--open"])
    app = opening._app(given, ranks, Config(), FANCY, "fleet")
    assert [session.path for session in app.sessions] == ranks


@pytest.mark.parametrize("size", [(80, 24), (120, 30), (160, 45), (240, 67)])
async def test_the_fleet_fills_every_size(ranks: list[Path], size: tuple[int, int]) -> None:
    async with running(*ranks, size=size) as pilot:
        await pilot.press("f7")
        await settled(pilot)
        lines = rows(pilot)
        assert {len(line) for line in lines} == {size[0]}
        body = "\n".join(lines)
        assert "Ranks 4 of 4" in body
        assert "Heat map: GPU busy (full: 100%)" in body
        assert lines[2].startswith(" rank 2 cost the others ")
        assert "node1" in body
        assert all(line.isascii() for line in lines)


async def test_the_map_follows_the_table_and_the_table_the_map(ranks: list[Path]) -> None:
    async with running(*ranks, size=(120, 30)) as pilot:
        await pilot.press("f7")
        await settled(pilot)
        heat = pilot.app.screen.query_one(HeatPane)
        assert heat.row == 2, "the rank that the verdict names"
        await pilot.press("up", "up", "down", "down")
        await settled(pilot)
        assert heat.row == 2
        heat.focus()
        await pilot.press("up")
        await settled(pilot)
        assert pilot.app.screen.query_one("#ranks").row == 1  # type: ignore[attr-defined]
        assert ">1" in text(pilot)


async def test_the_map_bears_a_terminal_without_room_for_it(ranks: list[Path]) -> None:
    async with running(*ranks, size=(120, 30)) as pilot:
        await pilot.press("f7")
        await settled(pilot)
        heat = pilot.app.screen.query_one(HeatPane)
        heat.focus()
        await pilot.press("end", *["right"] * 90)
        heat.styles.height, heat.styles.width = 1, 20
        await settled(pilot)
        await pilot.press("down", "right", "up", "left", "m")
        await settled(pilot)
        assert 0 <= heat.row < len(ranks)
        assert heat.column is not None
        assert heat.column < heat.cells


async def test_keys_go_round_the_maps(ranks: list[Path]) -> None:
    async with running(*ranks, size=(120, 30), terminal=FANCY) as pilot:
        await pilot.press("f7")
        await settled(pilot)
        seen = []
        for _ in range(6):
            await pilot.press("m")
            await settled(pilot)
            seen.append(pilot.app.screen.query_one(HeatPane).shown.name)  # type: ignore[union-attr]
        assert seen == ["compute", "comm", "overlap", "exposed", "memory", "busy"]
        await pilot.press("M")
        await settled(pilot)
        assert "Heat map: copies and memsets" in text(pilot)


async def test_enter_opens_the_rank_at_that_time_and_f7_comes_back(ranks: list[Path]) -> None:
    async with running(*ranks, size=(120, 30)) as pilot:
        app: Any = pilot.app
        await pilot.press("f7")
        await settled(pilot)
        heat = app.screen.query_one(HeatPane)
        heat.focus()
        await pilot.press("down", "down", "down", *["right"] * 40)
        await settled(pilot)
        lo, hi = heat.window()
        await pilot.press("enter")
        await settled(pilot)
        assert app.session.path == ranks[3]
        # The session of rank 3 started 350 us after the first.
        assert app.state.window == (lo - 350 * US, hi - 350 * US)
        assert app.current_mode == "timeline"
        (usual,) = app.session.beside
        assert usual.path in ranks[:3]
        await pilot.press("f7")
        await settled(pilot)
        assert "Ranks 4 of 4" in text(pilot)
        assert "report_3.sqlite" in rows(pilot)[0]


async def test_a_rank_of_a_shared_report_opens_beside_a_typical_one(tmp_path: Path) -> None:
    path = both_in_one(tmp_path / "node.sqlite", Run(ranks=3))
    async with running(path, size=(120, 30)) as pilot:
        app: Any = pilot.app
        await pilot.press("f7")
        await settled(pilot)
        await pilot.press("down", "down", "enter")
        await settled(pilot)
        shown = {pid >> 24 & 0xFFFFFF for pid in app.state.filter.processes}
        assert len(shown) == 2
        assert 2002 in shown
        body = text(pilot)
        assert "is typical" in body
        (other,) = {2000, 2001, 2002} - shown
        titles = [row.title for row in app.front.model.lanes.shown.lineup.tracks]
        assert not [title for title in titles if title.startswith(f"GPU {other - 2000}")]
        assert [title for title in titles if title.startswith("GPU 2")]
        assert re.search(r"filter: hides \d+ lanes?", body)


async def test_a_broken_report_is_named_and_the_others_are_shown(
    ranks: list[Path], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(ranks[0].read_bytes()[:5000])
    async with running(*ranks[:2], broken, size=(160, 45)) as pilot:
        await pilot.press("f7")
        await settled(pilot)
        body = text(pilot)
        assert "Ranks 2 of 2  % of span  1 skipped" in body
        assert "broken.sqlite" in body


async def test_reports_opened_later_join_the_fleet(ranks: list[Path]) -> None:
    async with running(ranks[0], size=(120, 30)) as pilot:
        app: Any = pilot.app
        await pilot.press("f7")
        await settled(pilot)
        assert "Ranks 1 of 1" in text(pilot)
        app.open_path(ranks[2])
        await settled(pilot)
        assert "Ranks 2 of 2" in text(pilot)


async def test_a_cancelled_reading_goes_on_when_the_screen_comes_back(
    ranks: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = vars(fleet_screen)["run_fleet"]

    def cancelled(*args: Any, **kwargs: Any) -> Any:
        raise CancelledError("cancelled")

    monkeypatch.setattr(fleet_screen, "run_fleet", cancelled)
    async with running(*ranks, size=(120, 30)) as pilot:
        await pilot.press("f7")
        await settled(pilot)
        assert "cancelled: coming back here reads on" in text(pilot)
        monkeypatch.setattr(fleet_screen, "run_fleet", real)
        await pilot.press("1", "f7")
        await settled(pilot)
        assert "Ranks 4 of 4" in text(pilot)


async def test_when_no_report_can_be_read_any_more_the_error_stays(
    ranks: list[Path], tmp_path: Path
) -> None:
    copies = [Path(shutil.copy(path, tmp_path / path.name)) for path in ranks[:2]]
    async with running(*copies, size=(120, 30)) as pilot:
        await settled(pilot)
        for path in copies:
            path.write_text("nothing")
        await pilot.press("f7")
        await settled(pilot)
        assert "R reads the report again" in text(pilot)
        assert pilot.app.error is not None  # type: ignore[attr-defined]


async def test_when_no_report_can_be_read_the_app_ends_and_names_each(tmp_path: Path) -> None:
    broken = [tmp_path / f"{name}.sqlite" for name in "ab"]
    for path in broken:
        path.write_text("nothing")
    async with running(*broken) as pilot:
        await settled(pilot)
    app: Any = pilot.app
    assert app.return_code == UNREADABLE
    assert app.fatal.title == "\n".join(f"cannot read {path}" for path in broken)


async def test_ranks_appear_as_their_reports_are_read(
    ranks: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PAUSE", 0.0)
    monkeypatch.setattr(reading, "SHARE", 0)
    real, seen = FleetScreen._show_partial, []

    def seeing(self: FleetScreen, token: object, found: reading.Shown, done: int) -> None:
        real(self, token, found, done)
        seen.append((done, [m.rank for m in found.fleet.members], self.table.note))

    monkeypatch.setattr(FleetScreen, "_show_partial", seeing)
    async with running(*ranks, size=(120, 30)) as pilot:
        await pilot.press("f7")
        await settled(pilot)
        assert [(done, len(found)) for done, found, _ in seen] == [(1, 1), (2, 2), (3, 3)]
        assert seen[1][2] == "% of span  2 of 4 reports read, Esc stops"
        assert "Ranks 4 of 4" in text(pilot)
        assert "reports read" not in text(pilot)


async def test_the_cursor_stays_on_its_rank_while_others_come(ranks: list[Path]) -> None:
    async with running(*ranks[1:], size=(120, 30)) as pilot:
        app: Any = pilot.app
        await pilot.press("f7")
        await settled(pilot)
        await pilot.press("home", "down")
        assert ">    2 node1" in text(pilot)
        app.sessions.append(Session(ranks[0]))
        app.sync()
        await settled(pilot)
        assert "Ranks 4 of 4" in text(pilot)
        assert ">    2 node1" in text(pilot)


async def test_a_part_of_every_rank(ranks: list[Path]) -> None:
    async with running(*ranks, size=(120, 30)) as pilot:
        await pilot.press("f7")
        await settled(pilot)
        screen: Any = pilot.app.screen
        for typed, bases in (
            ("1ms/2ms", [(US * (1000 - begun), US * (2000 - begun)) for begun in (0, 200, 0, 350)]),
            ("step 3", [(US * (3000 - begun), US * (4000 - begun)) for begun in (0, 200, 0, 350)]),
        ):
            await pilot.press("w", "ctrl+u", *typed, "enter")
            await settled(pilot)
            assert [m.base for m in screen.fleet.members] == bases
            assert f"only {typed}" in text(pilot)
        await pilot.press("w", "ctrl+u", *"nonsense", "enter")
        await settled(pilot)
        assert "not a part" in text(pilot)
        await pilot.press("ctrl+u", *"all", "enter")
        await settled(pilot)
        assert "only" not in text(pilot)


@pytest.mark.parametrize(
    ("typed", "flags"),
    [
        ("gpu 1", ["--device", "1"]),
        ("process 2000, 2002", ["--process", "2000", "--process", "2002"]),
        ("stream 13; gpu 0,2", ["--stream", "13", "--device", "0", "--device", "2"]),
        ("step 3; stream 7", ["--step", "3", "--stream", "7"]),
        ("stream 7; 1ms/2.5ms", ["--stream", "7", "--window", "1ms/2.5ms"]),
        ("gpus 0 1 ; range train step 2", CHOSEN_RANGE),
    ],
)
async def test_what_is_chosen_counts_as_in_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: str, flags: list[str]
) -> None:
    run = Run(ranks=3, slow={(2, 3): 150 * US})
    paths = [
        both_in_one(tmp_path / "node0.sqlite", run),
        both_in_one(tmp_path / "node1.sqlite", run),
    ]
    assert cli.main(["fleet", *map(str, paths), *flags, "--format", "json", "--no-cache"]) == 0
    printed = json.loads(capsys.readouterr().out)
    async with running(*paths, size=(160, 45)) as pilot:
        await pilot.press("f7")
        await settled(pilot)
        await pilot.press("w", "ctrl+u", *typed, "enter")
        await settled(pilot)
        screen: Any = pilot.app.screen
        ask = Ask(None, False, 500, False)
        for name, section in printed["sections"].items():
            found = [*table_rows(SECTIONS[name.replace("_", "-")](screen.fleet, ask))]
            assert json.loads(json.dumps(found)) == section["rows"], name
        assert len(screen.fleet.members) == len(printed["sections"]["ranks"]["rows"])
        assert list(screen.fleet.notes) == printed["notes"]
        assert len({*printed["notes"]}) == len(printed["notes"])
        assert f"only {typed}" in text(pilot)


async def test_numbers_that_no_report_has_are_an_error_and_the_ranks_come_back(
    ranks: list[Path],
) -> None:
    async with running(*ranks, size=(80, 24)) as pilot:
        await pilot.press("f7")
        await settled(pilot)
        await pilot.press("w", "ctrl+u", *"gpu 9", "enter")
        await settled(pilot)
        assert "no GPU 9 in this report" in text(pilot)
        await pilot.press("escape", "w", "ctrl+u", "enter")
        await settled(pilot)
        assert "Ranks 4 of 4" in text(pilot)


async def test_only_some_reports_with_what_is_chosen(ranks: list[Path]) -> None:
    async with running(*ranks, size=(120, 30)) as pilot:
        await pilot.press("f7")
        await settled(pilot)
        await pilot.press("w", "ctrl+u", *"process 1002", "enter")
        await settled(pilot)
        assert "Ranks 1 of 1" in text(pilot)
        assert "3 skipped" in text(pilot)


def test_what_can_be_asked_for_as_a_part() -> None:
    assert reading.parse_cut("all") == reading.parse_cut(" ") == reading.Cut()
    both = reading.parse_cut("Step 5; stream 7 9, 7".lower())
    assert (both.step, both.choice) == ("5", Choice(streams=(7, 9)))
    assert reading.parse_cut("range a;b; device 1").nvtx == "a;b"
    assert reading.parse_cut("all; process 7").choice == Choice(processes=(7,))
    for wrong in ("gpu", "gpu x", "gpu 0 step 5", "stream 7; nonsense"):
        with pytest.raises(UsageError, match="not a part"):
            reading.parse_cut(wrong)
