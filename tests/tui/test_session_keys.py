"""Several reports, taking up where one left, the command line, and Ctrl+C."""

from __future__ import annotations

import shutil
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from synth import Synth
from textual.widgets import Input
from tui.frames import rows, running, settled, text

from nsys_tui.cli import main
from nsys_tui.commands import open as open_verb
from nsys_tui.commands.open import START
from nsys_tui.errors import UsageError
from nsys_tui.paths import state_folder
from nsys_tui.state import Window, displayed
from nsys_tui.ui.host import HINT, Host
from nsys_tui.ui.resume import keep_session, last_session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from textual.pilot import Pilot


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@asynccontextmanager
async def resumed(*paths: Path) -> AsyncIterator[Pilot[int]]:
    """The app with ``--resume``."""
    begin = Host.__init__

    def init(app: Any, *arguments: Any, **options: Any) -> None:
        begin(app, *arguments, **options | {"resume": True})

    with patch.object(Host, "__init__", init):
        async with running(*paths) as pilot:
            yield pilot


async def pressed(pilot: Pilot[int], *keys: str) -> str:
    for key in keys:
        await pilot.press(key)
    await settled(pilot)
    return text(pilot)


async def test_reports_are_tabs_told_apart_and_a_key_goes_to_the_next(
    small: Path, tmp_path: Path
) -> None:
    paths = [tmp_path / name / "run.sqlite" for name in "ab"]
    for path in paths:
        path.parent.mkdir()
        shutil.copy(small, path)
    async with running(*paths) as pilot:
        app: Any = pilot.app
        assert rows(pilot)[0].startswith(" nsys-tui | [a/run.sqlite] b/run.sqlite | 2x")
        await pressed(pilot, "3")
        app.set_state(replace(app.state, window=Window(0, 500_000)))
        assert "a/run.sqlite [b/run.sqlite]" in await pressed(pilot, "}")
        await pilot.click("#title", offset=(14, 0))
        assert "[a/run.sqlite] b/run.sqlite" in await pressed(pilot)
        await pilot.click("#title", offset=(rows(pilot)[0].index("b/run"), 0))
        assert "a/run.sqlite [b/run.sqlite]" in await pressed(pilot)
        assert "[3 Kern" in rows(pilot)[1]
        assert rows(pilot)[0].rstrip().endswith("(all)"), "each report has a window of its own"
        assert "[a/run.sqlite] b/run.sqlite" in await pressed(pilot, "}")
        assert "(all)" not in rows(pilot)[0]
        assert "a/run.sqlite [b/run.sqlite]" in await pressed(pilot, "{")
        await pressed(pilot, "ctrl+w")
        assert rows(pilot)[0].startswith(" nsys-tui | run.sqlite | 2x")
        assert "no other report is open" in await pressed(pilot, "}")


async def test_many_reports_are_counted_where_their_names_do_not_fit(
    small: Path, tmp_path: Path
) -> None:
    paths = [Path(shutil.copy(small, tmp_path / f"a-long-name-{n}.sqlite")) for n in range(4)]
    async with running(*paths) as pilot:
        assert "| a-long-name-0.sqlite (1 of 4) |" in rows(pilot)[0]
        assert "| a-long-name-3.sqlite (4 of 4) |" in await pressed(pilot, "{")


async def test_resume_brings_back_window_pins_filter_and_screen(small: Path) -> None:
    async with running(small) as pilot:
        app: Any = pilot.app
        await pressed(pilot, "2")
        app.set_state(displayed(app.state, pinned=("gpu:1",)))
        app.set_state(
            replace(
                app.state,
                window=Window(100_000, 600_000),
                filter=replace(app.state.filter, pattern="gemm"),
            )
        )
        await pressed(pilot, "4", "q")
    async with running(small) as pilot:
        assert "[1 Over" in rows(pilot)[1]
        assert "(all)" in rows(pilot)[0]
        pilot.app.session.report_id = ""  # type: ignore[attr-defined]
        await pressed(pilot, "q")
    async with resumed(small) as pilot:
        app = pilot.app
        await settled(pilot)
        assert "[4 NVTX]" in rows(pilot)[1]
        assert "(all)" not in rows(pilot)[0]
        assert app.state.window == (100_000, 600_000)
        assert app.state.filter.pattern == "gemm"
        assert app.state.display.pinned == ("gpu:1",)


async def test_resume_lays_reports_side_by_side_again(small: Path, tmp_path: Path) -> None:
    other = Synth(tmp_path / "other.sqlite").launch("elsewhere", (10, 20), (30, 600_000)).write()
    async with running(small, other) as pilot:
        app: Any = pilot.app
        await pressed(pilot, "2")
        app.put_beside(app.sessions[1])
        await settled(pilot)
        await pressed(pilot, "q")
    async with resumed(small, other) as pilot:
        app = pilot.app
        await settled(pilot)
        assert app.session.beside == [app.sessions[1]]
        assert "other.sqlite" in "".join(rows(pilot)[2:])
    async with resumed(small) as pilot:
        await settled(pilot)
        assert "[2 Time" in rows(pilot)[1]
        assert "other.sqlite" not in text(pilot), "it is not open"
        await pressed(pilot, "q")
    async with resumed(small, other) as pilot:
        app = pilot.app
        await settled(pilot)
        assert app.session.beside == [app.sessions[1]], "and not forgotten meanwhile"
        app.session.beside = []
        await pressed(pilot, "q")
    async with resumed(small, other) as pilot:
        await settled(pilot)
        assert "other.sqlite" not in "".join(rows(pilot)[2:]), "it was taken away"


async def test_the_reports_of_the_last_session_are_kept_from_the_one_in_front(
    small: Path, tmp_path: Path
) -> None:
    paths = [Path(shutil.copy(small, tmp_path / f"{name}.sqlite")) for name in "abc"]
    paths.insert(1, tmp_path / "broken.sqlite")
    paths[1].write_text("no report")
    async with running(*paths) as pilot:
        for key in "}}q":
            await pressed(pilot, key)
    assert last_session() == [paths[3], paths[0], paths[2]], "what was no report is none"
    async with running() as pilot:
        await pressed(pilot, "q")
    assert len(last_session()) == 3, "a session without a report leaves nothing"


def without_names(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Path], str]:
    """What ``--resume`` alone gives to the app, and what it tells."""
    opened: list[tuple[list[Path], str]] = []

    def run_app(_: Any, paths: list[Path], *given: Any, gone: str, **more: Any) -> int:
        opened.append((paths, gone))
        return 0

    monkeypatch.setattr(open_verb, "run_app", run_app)
    assert main(["--resume"]) == 0
    (told,) = opened
    return told


def test_resume_without_names_means_the_reports_of_the_last_session(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [Path(shutil.copy(small, tmp_path / f"{name}#1.sqlite")) for name in "ab"]
    keep_session(paths)
    assert without_names(monkeypatch) == (paths, "")
    paths[0].unlink()
    assert without_names(monkeypatch) == (
        paths[1:],
        f"open last, and not there any more: {paths[0]}",
    )


@pytest.mark.parametrize("content", [None, "[]", "{", "7", "[7]", '["/not/there.sqlite"]'])
def test_resume_without_a_session_says_how_to_begin(
    content: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    state_folder().mkdir(parents=True)
    if content is not None:
        (state_folder() / "session.json").write_text(content)
    assert main(["--resume"]) == UsageError.exit_code
    assert capsys.readouterr().out.startswith(START)


async def test_a_report_never_seen_opens_as_ever_with_resume(small: Path) -> None:
    async with resumed(small) as pilot:
        assert "[1 Over" in rows(pilot)[1]


async def test_the_command_line_runs_an_action_with_its_argument(small: Path) -> None:
    async with running(small) as pilot:
        app: Any = pilot.app
        assert "Run an action" in await pressed(pilot, "2", ":")
        assert "timeline.goto" in await pressed(pilot, *"goto")
        await pressed(pilot, "tab")
        assert app.screen.query_one(Input).value == "timeline.goto "
        await pressed(pilot, *"700us", "enter")
        assert app.state.cursor.time == 700_000
        await pressed(pilot, ":", *"timeline.min_duration 5us", "enter")
        assert app.state.filter.min_duration == 5_000
        await pressed(pilot, ":", *"view.kernels", "enter")
        assert "[3 Kern" in rows(pilot)[1]
        await pressed(pilot, ":", *"display.names short")
        await pilot.press("enter")
        for _ in range(30):
            await settled(pilot)
            if "takes no argument" in text(pilot):
                break
        assert "display.names takes no argument" in text(pilot)


async def test_an_argument_that_is_refused_stays_to_be_corrected(small: Path) -> None:
    async with running(small) as pilot:
        await pressed(pilot, "2", ":", *"timeline.goto soon", "enter")
        assert "Go to a time" in text(pilot)
        assert pilot.app.screen.query_one(Input).value == "soon"
        await pressed(pilot, "escape")


async def test_the_palette_finds_verbs_and_words_by_some_of_their_letters(small: Path) -> None:
    async with running(small) as pilot:
        app: Any = pilot.app
        await pressed(pilot, "ctrl+p", *"expcomm")
        assert "exposed communication" in text(pilot)
        await pressed(pilot, "enter")
        assert "Help" in text(pilot)
        assert "exposed communication" in text(pilot)
        await pressed(pilot, "escape")
        copied: list[str] = []
        with patch.object(app, "copy", lambda line, what: copied.append(line)):
            await pressed(pilot, "ctrl+p", *"copy nsys-tui stalls", "enter")
        assert copied == [f"nsys-tui stalls {small}"]


async def test_ctrl_c_leaves_at_the_second_time_and_says_so_at_the_first(small: Path) -> None:
    async with running(small) as pilot:
        app: Any = pilot.app
        assert "^C again leaves nsys-tui" in await pressed(pilot, "ctrl+c")
        assert app.is_running
        app._interrupted -= 60  # it was a minute ago
        assert "^C again leaves nsys-tui" in await pressed(pilot, "ctrl+c")
        assert app._exit is False
        await pilot.press("ctrl+c")
        assert app._exit is True


async def test_ctrl_c_copies_selected_text_and_clears_nothing(small: Path) -> None:
    async with running(small) as pilot:
        app: Any = pilot.app
        copied: list[str] = []
        with (
            patch.object(type(app.screen), "get_selected_text", lambda screen: "some text"),
            patch.object(app, "copy_to_clipboard", copied.append),
        ):
            await pilot.press("ctrl+c", "ctrl+c")
            await settled(pilot)
        assert copied == ["some text", "some text"]
        assert app._exit is False
        await pressed(pilot, "ctrl+p", *"gemm")
        field = app.screen.query_one(Input)
        field.select_all()
        with patch.object(app, "copy_to_clipboard", copied.append):
            await pressed(pilot, "ctrl+c", "ctrl+c")
        assert copied[2:] == ["gemm", "gemm"]
        field.cursor_position = 0
        await pressed(pilot, "ctrl+c")
        assert app._exit is False
        await pilot.press("ctrl+c")
        assert app._exit is True


async def test_the_first_screen_of_all_has_a_hint_until_esc(small: Path) -> None:
    async with running(small) as pilot:
        app: Any = pilot.app
        assert "New here?" not in text(pilot), "only the command line asks for it"
        app.hint = HINT
        app.sync()
        await settled(pilot)
        assert HINT.splitlines() == [line.rstrip() for line in rows(pilot)[-3:-1]]
        assert "New here?" not in await pressed(pilot, "escape")
        app.hint = HINT
        assert "New here?" not in await pressed(pilot, "3")
