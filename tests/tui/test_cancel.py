"""Long work of a screen tells how far it is, and Esc cancels it before anything else."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make
from tui.frames import running, settled, text

from nsys_tui.ui.screens.events import screen as events
from nsys_tui.ui.screens.kernels import screen as kernels
from nsys_tui.ui.screens.nvtx import screen as nvtx
from nsys_tui.ui.widgets.table import sifted

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("demo"), steps=2).path


def endless(entered: threading.Event, kept: dict[str, Any]) -> Any:
    """Work that lasts until its progress is cancelled."""

    def wait(*_: object, progress: Any = None, **others: object) -> None:
        del others
        entered.set()
        while not kept.get("over"):
            progress("working", 1, 4)
            threading.Event().wait(0.01)

    return wait


async def told(pilot: Pilot[int], part: str) -> None:
    """Waits until a text is on the screen."""
    for _ in range(400):
        await pilot.pause(0.01)
        if part in text(pilot):
            return
    raise AssertionError(f"{part!r} was never shown:\n{text(pilot)}")


@pytest.mark.parametrize(
    ("module", "function", "name"),
    [(kernels, "kernel_table", "kernels"), (events, "events_table", "events")],
    ids=["kernels", "events"],
)
async def test_escape_cancels_work_and_says_so(
    demo: Path, monkeypatch: pytest.MonkeyPatch, module: Any, function: str, name: str
) -> None:
    entered, kept = threading.Event(), {}  # type: ignore[var-annotated]
    monkeypatch.setattr(module, function, endless(entered, kept))
    async with running(demo) as pilot:
        try:
            pilot.app.show(name)  # type: ignore[attr-defined]
            await told(pilot, "working  1 of 4 (25.0%)")
            await pilot.press("escape")
            await settled(pilot)
            assert "cancelled: R reads the report again" in text(pilot)
            assert name == pilot.app.screen.SCREEN  # type: ignore[attr-defined]
        finally:
            kept["over"] = True


async def test_a_cancelled_tree_keeps_what_was_shown(
    demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(demo) as pilot:
        await pilot.press("4")
        await settled(pilot)
        before = pilot.app.screen.query_one("#tree").shown  # type: ignore[attr-defined]
        entered, kept = threading.Event(), {}  # type: ignore[var-annotated]

        def forever(
            _report: object, _raw: object, _similar: object, _scope: object, told: Any
        ) -> None:
            endless(entered, kept)(progress=told)

        monkeypatch.setattr(nvtx, "nvtx_table", forever)
        try:
            await pilot.press("g")
            await told(pilot, "(25.0%)")
            await pilot.press("escape")
            await told(pilot, "cancelled")
            await settled(pilot)
            assert pilot.app.screen.query_one("#tree").shown == before  # type: ignore[attr-defined]
        finally:
            kept["over"] = True


async def test_escape_stops_a_sort_and_keeps_the_order(
    demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(demo) as pilot:
        await pilot.press("3")
        await settled(pilot)
        monkeypatch.setattr(sifted, "AT_ONCE", 0)
        table = pilot.app.screen.table  # type: ignore[attr-defined]
        go, before = threading.Event(), table.arrangement
        column = table.columns[2]
        slow = column.source
        waiting = slow._replace(all=lambda: (go.wait(5), slow.all())[1])
        object.__setattr__(column, "source", waiting)
        first = table.row_at(0)
        table.sort_by(2)
        await pilot.pause()
        assert "sorting" in text(pilot)
        assert "esc cancels" in text(pilot)
        await pilot.press("escape")
        go.set()
        await settled(pilot)
        assert table.arrangement == before
        assert table.row_at(0) == first
        assert "sorting" not in text(pilot)
