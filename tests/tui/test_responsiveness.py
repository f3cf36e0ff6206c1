from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

import pytest
from synth import Synth
from textual._compositor import Compositor, LayoutUpdate
from textual.css.stylesheet import Stylesheet
from textual.driver import Driver
from tui.frames import running, settled, text, until

from nsys_tui.ui.keymap import SCREENS, ScreenSpec
from nsys_tui.ui.runtime import responsive_app
from nsys_tui.ui.screens.base import ReportScreen

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def small(folder: Path) -> Path:
    made = Synth(folder / "r.sqlite").process(100, "train").gpu(0).nvtx("step", 0, 900)
    return made.launch("gemm", call=(10, 20), gpu=(100, 400)).write()


def watch_painting(monkeypatch: pytest.MonkeyPatch, note: Callable[[Any], None]) -> None:
    """Has every update of the screen noted as it is made."""
    paint = Compositor.render_update

    def noted(compositor: Compositor, **options: Any) -> Any:
        update = paint(compositor, **options)
        note(update)
        return update

    monkeypatch.setattr(Compositor, "render_update", noted)


async def test_after_loading_the_other_screens_are_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []
    load = ScreenSpec.load

    def noted(spec: ScreenSpec) -> type:
        fetched.append(spec.name)
        return load(spec)

    monkeypatch.setattr(ScreenSpec, "load", noted)
    async with running(small(tmp_path)):
        await until(lambda: len(fetched) > len(SCREENS))
    assert set(fetched) == {spec.name for spec in SCREENS}


async def test_a_screen_is_imported_while_the_app_stays_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    load = ScreenSpec.load

    def noted(spec: ScreenSpec) -> type:
        threads.append(threading.get_ident())
        return load(spec)

    async with running(small(tmp_path)) as pilot:
        monkeypatch.setattr(ScreenSpec, "loaded", property(lambda spec: spec.name != "kernels"))
        monkeypatch.setattr(ScreenSpec, "load", noted)
        await pilot.press("3")
        await settled(pilot)
        assert pilot.app.current_mode == "kernels"
    assert threads[0] != threading.get_ident()


async def test_a_switch_of_screens_reads_no_styles_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(small(tmp_path)) as pilot:
        read: list[Any] = []
        monkeypatch.setattr(Stylesheet, "reparse", lambda sheet: read.append(sheet))
        for key in "2341":
            await pilot.press(key)
            await settled(pilot)
        assert pilot.app.current_mode == "overview"
        assert read == []


async def test_a_theme_reaches_screens_that_are_built_and_screens_that_are_not(
    tmp_path: Path,
) -> None:
    async with running(small(tmp_path)) as pilot:
        app: Any = pilot.app
        await pilot.press("3")
        await pilot.press("1")
        app.use_theme("light")
        for key in "342":
            await pilot.press(key)
            await settled(pilot)
            wanted = app.get_css_variables()["background"]
            assert app.screen.styles.background.hex.lower() == wanted.lower()


async def test_a_new_screen_has_the_panes_of_a_wide_terminal_from_its_first_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(small(tmp_path), size=(160, 45)) as pilot:
        sides: list[int] = []
        lay = Compositor.reflow

        def noted(compositor: Compositor, parent: Any, size: Any) -> Any:
            result = lay(compositor, parent, size)
            sides.extend(w.size.width for w in compositor.widgets if w.id == "functions")
            return result

        monkeypatch.setattr(Compositor, "reflow", noted)
        await pilot.press("6")
        await settled(pilot)
        assert sides
        assert all(sides)


@pytest.mark.parametrize("patience", [0.0, 60.0])
async def test_a_new_screen_is_painted_when_filled_or_when_patience_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    async with running(small(tmp_path)) as pilot:
        painted: list[str] = []
        go_on = threading.Event()
        compute = ReportScreen.compute

        def waiting(
            screen: ReportScreen, group: str, work: Any, *others: Any, **options: Any
        ) -> None:
            compute(screen, group, lambda: go_on.wait(60) and work(), *others, **options)

        monkeypatch.setattr(responsive_app, "FILLED", patience)
        watch_painting(monkeypatch, lambda _: painted.append(pilot.app.current_mode))
        monkeypatch.setattr(ReportScreen, "compute", waiting)
        await pilot.press("3")
        await until(lambda: patience > 0 or "kernels" in painted)
        assert ("kernels" in painted) is not bool(patience)
        go_on.set()
        await settled(pilot)
        assert "kernels" in painted
        assert "gemm" in text(pilot)


async def test_a_timer_rings_although_its_moment_is_past_at_the_first_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(small(tmp_path)) as pilot:
        rang: list[bool] = []
        with monkeypatch.context() as busy:
            busy.setattr("textual._time.get_time", itertools.count(step=1.0).__next__)
            pilot.app.set_timer(0.005, lambda: rang.append(True))
            await settled(pilot)
        assert rang


async def test_after_a_suspension_the_whole_screen_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(small(tmp_path)) as pilot:
        painted: list[Any] = []
        watch_painting(monkeypatch, painted.append)
        pilot.app.post_message(Driver.SignalResume())
        await settled(pilot)
        assert any(isinstance(update, LayoutUpdate) for update in painted)


async def test_what_is_laid_out_in_a_batch_is_painted_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(small(tmp_path)) as pilot:
        painted: list[bool] = []
        watch_painting(monkeypatch, lambda _: painted.append(pilot.app._batch_count > 0))
        with pilot.app.batch_update():
            pilot.app.screen.query_one("#trace").styles.height = 9
            pilot.app.screen._refresh_layout()
            assert painted == []
        await settled(pilot)
        assert painted
        await pilot.press("question_mark")
        await settled(pilot)
        assert "type to filter" in text(pilot)
        await pilot.press("escape")
        await settled(pilot)
        assert "Top kernels" in text(pilot)
        assert not any(painted)
