from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from paths import ROOT
from synth import Synth
from tui.frames import rows, running, settled, text

from nsys_tui.capture.record import Store
from nsys_tui.ui.screens.capture.screen import CaptureScreen

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot


@pytest.fixture
def report(tmp_path: Path) -> Path:
    synth = Synth(tmp_path / "first.sqlite").process(1000).kernel("k", 0, 10)
    for name, value in (
        ("CAPTURE_EVENT_TYPE", "Cuda"),
        ("CAPTURE_EVENT_TYPE", "NvtxEvents"),
        ("PROCESS_0:COMMAND", "sh"),
        ("PROCESS_0:ARGUMENT_0", "-c"),
        ("PROCESS_0:ARGUMENT_1", "echo [red]hello"),
        ("PROCESS_0:ENVIRONMENT_VARIABLE", 'MODE="quick and hidden"'),
        ("PROCESS_0:ENVIRONMENT_VARIABLE", 'API_TOKEN="sesame"'),
    ):
        synth.add("META_DATA_CAPTURE", name=name, value=value)
    return synth.write()


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, report: Path) -> None:
    monkeypatch.setenv("PATH", str(ROOT / "tests" / "fake_nsys"), prepend=":")
    monkeypatch.setenv("FAKE_NSYS_REPORT", str(report))
    monkeypatch.setenv("FAKE_NSYS_SQLITE", str(report))
    monkeypatch.chdir(tmp_path)


async def press(pilot: Pilot[int], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


def screen(pilot: Pilot[int]) -> CaptureScreen:
    front: Any = pilot.app
    assert isinstance(front.front, CaptureScreen)
    return front.front


async def test_profile_again_is_filled_in_from_the_report(report: Path) -> None:
    async with running(report, size=(100, 45)) as pilot:
        await press(pilot, "p")
        body = text(pilot)
        assert "[9 Capture]" in body
        assert "sh -c 'echo [red]hello'" in body
        assert "--trace=cuda,nvtx" in body
        assert "sesame" not in body
        assert "quick and hidden" not in body
        await press(pilot, *["down"] * 30)
        body = text(pilot)
        assert "MODE" in body
        assert "looks like a secret" in body


async def test_choices_cycle_and_text_is_typed(report: Path) -> None:
    async with running(report, size=(100, 45)) as pilot:
        await press(pilot, "p", *["down"] * 6, "space")
        assert screen(pilot).form.options["capture-range"] == "none"
        await press(pilot, "space")
        assert "--capture-range=cudaProfilerApi" in text(pilot)
        await press(pilot, "up", "space")
        for key in ("ctrl+a", "ctrl+k", *"cuda,osrt", "enter"):
            await pilot.press(key)
        await settled(pilot)
        assert "--trace=cuda,osrt" in text(pilot)


async def test_the_command_says_what_is_missing(report: Path) -> None:
    async with running(report, size=(80, 24)) as pilot:
        await press(pilot, "9", "space", "ctrl+a", "ctrl+k", *'sh "open', "enter")
        assert "close the quote" in text(pilot)
        assert "needs" not in rows(pilot)[0]


async def test_a_capture_runs_and_its_report_opens(report: Path, stand_in: None) -> None:
    async with running(report, size=(100, 36)) as pilot:
        await press(pilot, "p", "enter")
        assert "came home" in text(pilot)
        await press(pilot, "o")
        app: Any = pilot.app
        assert len(app.sessions) == 2
        assert "[1 Overview]" in text(pilot)
        (record,) = Store().all()
        assert record.program == ("sh", "-c", "echo [red]hello")
        assert record.repeats
        await press(pilot, "9", "h")
        assert "local" in text(pilot)
        assert "1 report(s) here" in text(pilot)


async def test_stopping_asks_and_keeps(report: Path, stand_in: None) -> None:
    async with running(report, size=(100, 36)) as pilot:
        await press(pilot, "p", "space", "ctrl+a", "ctrl+k", *"sleep 30", "enter")
        await pilot.press("enter")
        for _ in range(200):
            await pilot.pause(0.05)
            if screen(pilot).capture and "running" in text(pilot):
                break
        await pilot.press("K")
        await pilot.pause()
        assert "keep what was collected" in text(pilot)
        await pilot.press("k")
        await settled(pilot)
        assert "came home" in text(pilot)
        (record,) = Store().all()
        assert record.kept == "kept"


async def test_the_next_start_offers_what_was_left_running(report: Path, stand_in: None) -> None:
    from nsys_tui.capture.record import Record, State

    plan = {"target": {"name": "gpu-box"}, "program": ["sleep"]}
    Store().save(Record(id="20260101-000000-abcdef", plan=plan, state=State.RUNNING))
    async with running(report, size=(120, 30)) as pilot:
        assert "1 capture(s) not finished on gpu-box" in text(pilot)


async def test_the_new_report_is_laid_beside_the_old_one(report: Path, stand_in: None) -> None:
    async with running(report, size=(100, 36)) as pilot:
        await press(pilot, "p", "enter", "c")
        app: Any = pilot.app
        assert app.session.path == report
        assert "[7 Compare]" in text(pilot)
        assert "sh.sqlite" in text(pilot)
