"""What Stalls and Findings send to the timeline: it is named, fitted, and stands on its GPU."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from synth import Synth
from tui.timeline_pilot import running, settled, text

from nsys_tui.state import Selection, Window

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

US = 1_000


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On GPU 1 a gap of 200 us, during which the host waits in a sync call for 190 us."""
    synth = Synth(tmp_path_factory.mktemp("idle") / "idle.sqlite").gpu(0).gpu(1)
    synth.process(10, "train").thread(10, "main").cuda_device(10, 0, 0).cuda_device(10, 1, 1)
    synth.launch("other", (0, 10 * US), (20 * US, 400 * US), device=0)
    synth.launch("first", (0, 10 * US), (20 * US, 100 * US), device=1)
    synth.api("cudaStreamSynchronize_v3020", 50 * US, 290 * US).nvtx("optimizer", 0, 400 * US)
    synth.launch("second", (290 * US, 295 * US), (300 * US, 400 * US), device=1)
    return synth.write()


async def press(pilot: Pilot[int], *keys: str) -> str:
    for key in keys:
        await pilot.press(key)
        await settled(pilot)
    return text(pilot)


def app_of(pilot: Pilot[int]) -> Any:
    return pilot.app


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_a_gap_brings_its_cause_and_the_lane_of_its_gpu(
    idle: Path, size: tuple[int, int]
) -> None:
    async with running(idle, size=size) as pilot:
        body = await press(pilot, "5", "enter")
        assert "gap: sync call: cudaStream" in body
        assert "Nothing selected" not in body
        assert "200.0 us" in body
        assert app_of(pilot).front.model.row.title.startswith("GPU 1")
        assert app_of(pilot).front.model.cursor_time == 100 * US
        await press(pilot, "f")
        assert app_of(pilot).state.window == Window(90 * US, 310 * US)
        body = await press(pilot, "enter")
        for fact in ("GPU      1", "thread   main", "range    optimizer", "before   first"):
            assert fact in body
        assert "meanwhile" in body
        assert "sync call 190.0 us" in body


async def test_a_finding_says_what_to_do(idle: Path) -> None:
    async with running(idle, size=(160, 45)) as pilot:
        app = app_of(pilot)
        await press(pilot, "enter")
        chosen = app.state.selection
        assert chosen.kind == "finding"
        body = await press(pilot, "2")
        assert "Nothing selected" not in body
        assert chosen.label[:20] in body
        assert "advice" in body
        assert "severity" in body


async def test_what_is_not_found_again_still_has_its_span(idle: Path) -> None:
    async with running(idle) as pilot:
        span = Window(33 * US, 44 * US)
        stale = Selection("gap", (7, *span), span, label="unknown")
        app_of(pilot).show("timeline", selection=stale)
        await settled(pilot)
        body = text(pilot)
        assert "gap: unknown" in body
        assert "11.00 us" in body


async def test_without_a_selection_the_cell_under_the_cursor_is_told(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(100, "train").gpu(0)
    synth.launch("gemm", call=(0, 2_000), gpu=(10_000, 200_000))
    synth.launch("relu", call=(600_000, 602_000), gpu=(603_000, 1_000_000))
    synth.osrt("read", 250_000, 590_000)
    for time, on in ((0, True), (260_000, False), (580_000, True)):
        synth.sched(time, on)
    async with running(synth.write(), size=(160, 45)) as pilot:
        await pilot.press("2", *["right"] * 5)
        await settled(pilot)
        assert re.search(r"stream 7 compute: 8\.\d+ us at", text(pilot))
        assert re.search(r"gemm 8\.\d+ us 100\.0% from before", text(pilot))
        assert "idle 0 ns" not in text(pilot)
        await pilot.press("up", "g", *"400us", "enter")
        await settled(pilot)
        assert "in a gap of 403.0 us, I/O (enter: why)" in text(pilot)
        await pilot.press("down", "down")
        await settled(pilot)
        assert re.search(r"blocked 8\.\d+ us 100\.0%", text(pilot))
        assert "read 8." in text(pilot)
        assert "from before" in text(pilot)
        await pilot.press("down", "tab")
        await settled(pilot)
        assert "relu" in text(pilot)
        assert "blocked" not in text(pilot)
