"""The served app in a real browser, by keyboard and mouse."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest
from browser import tab
from synth import Synth

pytest.importorskip("textual_serve", reason="pip install 'nsys-terminal[web]'")

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.e2e


class Drawn:
    """What the app sent to the page."""

    def __init__(self) -> None:
        self.text = ""

    def take(self, data: bytes | str) -> None:
        self.text += data.decode("utf-8", "replace") if isinstance(data, bytes) else ""

    async def until(self, *wanted: str) -> None:
        """Waits for some texts, and forgets what was drawn."""
        for _ in range(1200):
            if all(text in self.text for text in wanted):
                self.text = ""
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{wanted} not in {self.text!r}")


async def test_keys_and_mouse_reach_the_app_and_its_end_is_said(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "run.sqlite").gpu(0, "Test GPU").process(7, "train")
    synth.cuda_device(7, 0, 0)
    for at in range(0, 1_000_000, 50_000):
        synth.launch("gemm", (at, at + 1_000), (at + 5_000, at + 25_000), device=0)
    report = synth.write()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "nsys_tui", "serve", str(report)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    address = (await process.stdout.readline()).decode().strip()
    drawn = Drawn()
    async with tab() as seen:
        seen.page.on("websocket", lambda socket: socket.on("framereceived", drawn.take))
        await seen.page.goto(address)
        await drawn.until("run.sqlite", "Top kernels")
        await seen.page.keyboard.press("2")
        await drawn.until("lane ")
        await seen.page.mouse.click(290, 27)  # the tab "3 Kernels" in the second line
        await drawn.until("gemm", "avg")
        await seen.page.reload()
        await drawn.until("Top kernels")
        said = seen.page.get_by_role("status")
        assert not await said.is_visible()
        await seen.page.keyboard.press("q")
        await said.wait_for(state="visible")
        assert seen.faults == []
        assert all(asked.startswith((address, "data:")) for asked in seen.requests)
    assert await asyncio.wait_for(process.wait(), 60) == 0
