from __future__ import annotations

import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make
from textual.widgets import Input
from tui.frames import PLAIN, rows, running, settled, text

from nsys_tui.config import Config, DisplayConfig, KeysConfig
from nsys_tui.errors import NsysTuiError, UnreadableReportError
from nsys_tui.state import Mark, Selection, Window, marked
from nsys_tui.ui.app import NsysTuiApp
from nsys_tui.ui.dialogs.help import whole_keys
from nsys_tui.ui.keymap import SCREENS
from nsys_tui.ui.messages import Failed, ProgressMoved

if TYPE_CHECKING:
    from nsys_tui.model.report import Report


async def test_help_lists_what_works_here_finds_and_runs_it(small: Path) -> None:
    async with running(small) as pilot:
        await pilot.press("question_mark")
        await settled(pilot)
        body = text(pilot)
        assert "+- Help ---" in body
        assert body.startswith(" nsys-tui | small.sqlite"), "title and tabs stay visible"
        assert "[1 Over" in body
        assert "one line of SQL" not in body, "what nothing implements is not listed"
        await pilot.press(*"time form")
        await settled(pilot)
        assert "name style" not in text(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert pilot.app.state.display.time == "ns"  # type: ignore[attr-defined]


def test_help_shows_whole_keys_only() -> None:
    assert whole_keys("shift+tab shift+f6", 14) == "shift+tab"
    assert whole_keys("w +", 12) == "w +"
    assert whole_keys("ctrl+shift+page_down", 14) == "ctrl+shift+pag"


async def test_help_says_so_when_no_key_fits(small: Path) -> None:
    async with running(small) as pilot:
        await pilot.press("f1", *"xyzzy", "enter")
        await settled(pilot)
        assert "no key does that here" in text(pilot)
        await pilot.press("escape")
        assert "Help" not in text(pilot)


async def test_palette_changes_the_theme(small: Path) -> None:
    async with running(small) as pilot:
        await pilot.press("ctrl+p", *"theme light", "enter")
        await settled(pilot)
        assert pilot.app.palette.name == "light"  # type: ignore[attr-defined]


async def test_palette_finds_actions_by_what_the_footer_calls_them(small: Path) -> None:
    async with running(small) as pilot:
        app: Any = pilot.app
        await pilot.press("2")
        await settled(pilot)
        await pilot.press("ctrl+p", *"colour")
        await settled(pilot)
        assert "colour: by category, stream, name or duration" in text(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert app.state.display.colour_by == "stream"


@pytest.mark.parametrize("typed", ["picture", "screenshot", "settings", "share"])
async def test_palette_finds_actions_by_words_that_are_not_theirs(small: Path, typed: str) -> None:
    async with running(small) as pilot:
        await pilot.press("ctrl+p", *typed)
        await settled(pilot)
        wanted = "live panel" if typed == "settings" else "write an HTML page"
        assert wanted in text(pilot)


async def test_palette_goes_to_other_screens_for_their_actions(small: Path) -> None:
    async with running(small) as pilot:
        app: Any = pilot.app
        app.fetch_screens()
        while not all(spec.loaded for spec in SCREENS):
            await pilot.pause(0.05)
        await pilot.press("ctrl+p", *"stalls thr")
        await settled(pilot)
        assert "Stalls: " in text(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert app.front.SCREEN == "stalls"
        assert isinstance(app.screen.focused, Input)
        assert "List gaps from" in text(pilot)


async def test_enter_right_after_typing_uses_what_was_typed(small: Path, tmp_path: Path) -> None:
    other = Path(shutil.copy(small, tmp_path / "other.sqlite"))
    async with running(small) as pilot:
        await pilot.press("o")
        pilot.app.screen.query_one(Input).value = str(other)
        await pilot.press("enter")
        await settled(pilot)
        assert pilot.app.session.path == other  # type: ignore[attr-defined]
        assert "other.sqlite" in text(pilot)
        assert len(pilot.app.sessions) == 2  # type: ignore[attr-defined]


async def test_display_panel_changes_and_resets_at_once(small: Path) -> None:
    async with running(small) as pilot:
        app: Any = pilot.app
        await pilot.press("C", "down", "down", "down", "down", "right")
        await settled(pilot)
        assert app.state.display.names == "normalised"
        assert "normalised   here" in text(pilot)
        await pilot.press("r")
        await settled(pilot)
        assert app.state.display.names == "short"
        assert "short        default" in text(pilot)
        await pilot.press("escape")
        assert "Display" not in text(pilot)


async def test_jump_letters_move_the_focus(small: Path) -> None:
    async with running(small) as pilot:
        await pilot.press("ctrl+o")
        await settled(pilot)
        assert " a " in text(pilot)
        await pilot.press("b")
        await settled(pilot)
        assert pilot.app.focused.id == "kernels"  # type: ignore[union-attr]


async def test_tab_moves_focus_and_shows_it_without_colour(small: Path) -> None:
    async with running(small) as pilot:
        assert "+- > Findings" in text(pilot)
        await pilot.press("tab")
        await settled(pilot)
        assert "+- Findings" in text(pilot)
        assert "+- > Top kernels" in text(pilot)


async def test_maximise_gives_one_pane_the_body_and_gives_it_back(small: Path) -> None:
    async with running(small) as pilot:
        await pilot.press("f10")
        await settled(pilot)
        assert "Top kernels" not in text(pilot)
        assert "Findings" in text(pilot)
        await pilot.press("f10")
        await settled(pilot)
        assert "Top kernels" in text(pilot)


async def test_a_resize_while_a_pane_is_maximised_reaches_the_others_too(small: Path) -> None:
    async with running(small, size=(160, 45)) as pilot:
        await pilot.press("3")
        await settled(pilot)
        before = rows(pilot)[:-1]
        await pilot.press("f10")
        await settled(pilot)
        for width in (170, 160):
            await pilot.resize_terminal(width, 45)
            await settled(pilot)
        await pilot.press("f10")
        await settled(pilot)
        assert rows(pilot)[:-1] == before


@pytest.mark.parametrize("key", ["1", "2", "3", "4", "5", "9"])
async def test_any_pane_maximised_fills_the_screen(small: Path, key: str) -> None:
    async with running(small, size=(160, 45)) as pilot:
        await pilot.press(key)
        await settled(pilot)
        screen = pilot.app.screen
        for pane in screen.focus_chain:
            before = text(pilot)
            screen.set_focus(pane)
            await pilot.press("f10")
            await settled(pilot)
            assert (pane.region.offset, pane.region.size) == ((0, 0), (160, 45)), pane
            await pilot.press("f10")
            await settled(pilot)
            assert pane.region.size != (160, 45)
        assert before.count("-+") == text(pilot).count("-+")


async def test_a_jump_is_undone_and_redone_with_window_and_selection(small: Path) -> None:
    async with running(small) as pilot:
        app: Any = pilot.app
        picked = Selection("operation", ("t", 1))
        app.show("overview", window=Window(10, 20), selection=picked)
        assert app.state.window == Window(10, 20)
        await pilot.press("backspace")
        assert app.state.window is None
        assert app.state.selection is None
        await pilot.press("alt+right")
        assert app.state.window == Window(10, 20)
        assert app.state.selection == picked


async def test_an_error_stays_in_the_bar_until_escape(small: Path) -> None:
    async with running(small) as pilot:
        pilot.app.post_message(
            Failed(NsysTuiError("disk is full", "why: [b]no room[/b]", "clear it"))
        )
        await settled(pilot)
        body = text(pilot)
        assert "! disk is full" in body
        assert "[b]no room[/b]" in body
        await pilot.press("escape")
        await settled(pilot)
        assert "disk is full" not in text(pilot)


async def test_progress_is_shown_after_half_a_second_and_escape_cancels(small: Path) -> None:
    async with running(small) as pilot:
        app: Any = pilot.app
        begun = ProgressMoved("decoding kernels", 0, 1_000_000)
        app.work.moved(begun, time.monotonic() - 10)
        app.post_message(ProgressMoved("decoding kernels", 250_000, 1_000_000))
        await settled(pilot)
        assert "decoding kernels  250,000 of 1,000,000" in text(pilot)
        assert re.search(r"3\d s left", text(pilot))
        await pilot.press("escape")
        assert app.session.cancel.is_set()


async def test_an_unreadable_only_report_ends_the_app_with_its_error(tmp_path: Path) -> None:
    def opener(path: Path, progress: Any) -> Report:
        raise UnreadableReportError(f"{path.name} is no report")

    app = NsysTuiApp([tmp_path / "x.sqlite"], opener, terminal=PLAIN)
    async with app.run_test() as pilot:
        await settled(pilot)
    assert app.return_code == UnreadableReportError.exit_code
    assert isinstance(app.fatal, UnreadableReportError)


async def test_faults_while_the_only_report_is_read_again_leave_the_app_running(
    small: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copy(small, tmp_path / "r.sqlite"))
    async with running(path) as pilot:
        app: Any = pilot.app
        path.unlink()
        await pilot.press("R")
        app.post_message(Failed(UnreadableReportError("a preset is no preset")))
        await settled(pilot)
        assert app.is_running
        assert app.fatal is None
        await pilot.press("escape")
        assert "this report is not read: R reads it again" in text(pilot)


async def test_an_unreadable_second_report_leaves_the_first_alone(
    small: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.sqlite"
    bad.touch()
    async with running(small) as pilot:
        app: Any = pilot.app
        app.open_path(bad)
        await settled(pilot)
        title, *_, error = text(pilot).split("\n! ")
        assert "cannot read" in error
        assert "bad.sqlite" not in title
        assert "2x Test GPU" in title
        assert [session.path for session in app.sessions] == [small]


async def test_unreadable_first_reports_are_named_and_the_next_one_is_in_front(
    small: Path, tmp_path: Path
) -> None:
    bad = [tmp_path / name for name in ("bad.sqlite", "worse.sqlite")]
    for path in bad:
        path.touch()
    async with running(*bad, small) as pilot:
        app: Any = pilot.app
        await settled(pilot)
        title, *_ = text(pilot).split("\n! cannot read")
        assert "bad.sqlite" not in title
        assert "2x Test GPU" in title
        assert app.error.title == "\n".join(f"cannot read {path}" for path in bad)
        assert [session.path for session in app.sessions] == [small]


async def test_reload_keeps_window_and_marks(small: Path) -> None:
    async with running(small) as pilot:
        app: Any = pilot.app
        app.show("overview", window=Window(10, 20))
        first = app.session.report
        await pilot.press("R")
        await settled(pilot)
        assert app.session.report is not first
        assert app.state.window == Window(10, 20)
        assert "compute " in text(pilot)


async def test_a_fault_in_background_work_is_a_bar_and_no_traceback(small: Path) -> None:
    def work() -> None:
        raise ZeroDivisionError("oops")

    async with running(small) as pilot:
        app: Any = pilot.app
        app.front.compute("x", work, lambda _: None)
        await settled(pilot)
        assert "internal error: ZeroDivisionError: oops" in text(pilot)


async def test_a_result_that_was_overtaken_is_dropped(small: Path) -> None:
    got: list[int] = []
    async with running(small) as pilot:
        app: Any = pilot.app
        for value in range(3):
            app.front.compute("x", lambda v=value: v, got.append)
        await settled(pilot)
    assert got == [2]


async def test_the_users_own_keys_win(small: Path) -> None:
    config = Config(
        display=DisplayConfig(theme="dark"),
        keys=KeysConfig(bindings={"display.time": ("ctrl+t",), "app.help": ("H",)}),
    )
    async with running(small, config=config) as pilot:
        app: Any = pilot.app
        await pilot.press("T")
        assert app.state.display.time == "auto"
        await pilot.press("ctrl+t")
        assert app.state.display.time == "ns"
        assert "H help" in text(pilot)


async def test_a_chord_of_two_keys_runs_its_action(small: Path) -> None:
    keys = KeysConfig(bindings={"display.time": ("g t",)})
    async with running(small, config=Config(keys=keys)) as pilot:
        app: Any = pilot.app
        await pilot.press("g", "x", "t")
        assert app.state.display.time == "auto"
        await pilot.press("g", "t")
        assert app.state.display.time == "ns"


async def test_footer_and_tabs_can_be_clicked(small: Path) -> None:
    async with running(small) as pilot:
        line = text(pilot).splitlines()[23]
        await pilot.click(offset=(line.index("palette"), 23))
        await settled(pilot)
        assert "Palette" in text(pilot)


@pytest.mark.parametrize(
    "theme", ["dark", "light", "high-contrast", "ansi-dark", "ansi-light", "mono"]
)
async def test_every_theme_draws_the_same_text(small: Path, theme: str) -> None:
    async with running(small, theme=theme) as pilot:
        assert "idle 10.0%" in text(pilot)
        assert pilot.app.palette.name == theme  # type: ignore[attr-defined]
        await pilot.press("C")
        await settled(pilot)
        assert "colour by" in text(pilot)
        assert "compute " in text(pilot), "the screen stays in view beside the panel"


@pytest.mark.parametrize("theme", ["mono", "ansi-dark", "ansi-light"])
async def test_no_color_leaves_the_colours_to_the_terminal(
    small: Path, monkeypatch: pytest.MonkeyPatch, theme: str
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running(small, theme=theme) as pilot:
        strips = pilot.app.screen._compositor.render_strips()
        background = pilot.app.screen.background_colors[1]
        for strip in strips:
            for line_filter in pilot.app.get_line_filters():
                strip = strip.apply_filter(line_filter, background)
            styles = [segment.style for segment in strip if segment.style]
            colours = [colour for style in styles for colour in (style.color, style.bgcolor)]
            assert all(colour is None or colour.is_default for colour in colours)


async def test_no_color_sends_no_hue(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running(small, theme="dark") as pilot:
        strips = pilot.app.screen._compositor.render_strips()
        filters = pilot.app.get_line_filters()
        background = pilot.app.screen.background_colors[1]
        for strip in strips:
            for line_filter in filters:
                strip = strip.apply_filter(line_filter, background)
            for segment in strip:
                for colour in (segment.style.color, segment.style.bgcolor) if segment.style else ():
                    triplet = colour.triplet if colour is not None else None
                    assert triplet is None or max(triplet) - min(triplet) <= 2


async def test_marks_are_listed_visited_and_kept_for_the_next_time(small: Path) -> None:
    async with running(small) as pilot:
        app: Any = pilot.app
        mark = Mark(
            "b", 123_000, "overview", window=Window(100_000, 200_000), note="here [b]it[/b] is"
        )
        app.set_state(marked(app.state, mark))
        await pilot.press("apostrophe")
        await settled(pilot)
        assert "here [b]it[/b] is" in text(pilot)
        await pilot.press("b")
        await settled(pilot)
        assert app.state.window == Window(100_000, 200_000)
        assert app.state.cursor.time == 123_000
    async with running(small) as pilot:
        app = pilot.app
        assert app.state.marks == {"b": mark}
        await pilot.press("apostrophe", "B")
        await settled(pilot)
        assert app.state.window is None, "a capital goes to the time only"
        assert app.state.cursor.time == 123_000
        await pilot.press("apostrophe", "delete")
        await settled(pilot)
        assert app.state.marks == {}


async def test_the_footer_names_no_key_twice(small: Path) -> None:
    async with running(small, size=(200, 50)) as pilot:
        for key in "123456789":
            await pilot.press(key)
            await settled(pilot)
            keys = [pair.split()[0] for pair in re.split(r"\s{2,}", rows(pilot)[-1].strip())]
            assert len(keys) == len(set(keys)), keys
        await pilot.press("2")
        await settled(pilot)
        assert "tab snap   F6 pane" in rows(pilot)[-1]


async def test_help_explains_the_columns_of_the_screen_and_finds_words(small: Path) -> None:
    async with running(small, size=(100, 200)) as pilot:
        await pilot.press("5", "question_mark")
        await settled(pilot)
        shown = text(pilot)
        assert "WHAT THE WORDS MEAN" in shown
        assert "The operation that ends the gap" in shown, "column next of the stalls screen"
        await pilot.press(*"skew")
        await settled(pilot)
        assert "How long the first rank had to wait" in text(pilot), "a word of another screen"


WORDS = {
    "1": "verdict line",
    "2": "thread state",
    "3": "launch latency",
    "4": "path",
    "5": "cause",
    "6": "sandwich",
    "7": "verdict",
    "8": "views of sql",
    "9": "preset",
    "f7": "straggler",
    "f8": "bus bandwidth",
}
"""A word that is told on each screen."""


async def test_help_explains_words_on_every_screen_and_the_thing_under_the_cursor(
    small: Path,
) -> None:
    async with running(small, size=(120, 260)) as pilot:
        app: Any = pilot.app
        for key, word in WORDS.items():
            await pilot.press(key)
            await settled(pilot)
            await pilot.press("question_mark")
            await settled(pilot)
            lines = [line.strip("| ") for line in rows(pilot)]
            assert "WHAT THE WORDS MEAN" in lines, key
            assert word in lines, key
            told = lines[3:7]
            if key in ("2", "5", "6"):
                # Before the keys: the row's kind, the gap's cause, what is folded.
                assert not told[0].startswith("THIS VIEW"), key
                assert {
                    "2": "GPU operation",
                    "5": "cause: nothing recorded",
                    "6": "path",
                }[key] in told, key
            await pilot.press("escape")
            await settled(pilot)
            assert app.error is None


async def test_help_tells_of_the_field_and_of_the_selected_events_figures(
    tmp_path: Path,
) -> None:
    async with running(make(tmp_path, steps=3).path, size=(120, 260)) as pilot:
        for keys, words in {
            "9 a down down down down down down question_mark": ["capture-range"],
            "escape 2 f tab question_mark": ["occupancy", "waves", "queue", "launch latency"],
        }.items():
            for key in keys.split():
                await pilot.press(key)
                await settled(pilot)
            lines = [line.strip("| ") for line in rows(pilot)]
            assert set(words) <= {*lines}, words
            assert words[0] in lines[3:5], "told first"
