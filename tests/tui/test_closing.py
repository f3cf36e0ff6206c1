from __future__ import annotations

import asyncio
import gc
import inspect
import os
import re
import shutil
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make
from tui.frames import rows, running, settled, text

from nsys_tui.ui.runtime.responsive_app import QUIET

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.pilot import Pilot

PATIENCE = 60.0
"""Seconds in which a worker of a busy machine has its turn."""
SCREENS = ("2", "3", "4", "5", "6", "7", "f7", "f8", "9", "i", "1")
"""Keys of all screens; the events (i) come from the timeline."""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("closing")
    paths = []
    for number in range(3):
        (folder / str(number)).mkdir()
        made = make(folder / str(number), steps=3 + number).path
        paths.append(made.rename(folder / f"run{number}.sqlite"))
    return paths


async def press(pilot: Pilot[int], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


async def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if condition():
            return
        gc.collect()
        await asyncio.sleep(QUIET / 3)
    raise AssertionError(f"never: {inspect.getsource(condition)}")


def opened(path: Path) -> list[str]:
    """Descriptors and mappings of this process that belong to a file."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue
    found += Path("/proc/self/maps").read_text().splitlines()
    return [entry for entry in found if str(path) in entry]


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_the_next_report_takes_the_place_of_the_closed_one(
    reports: list[Path], size: tuple[int, int]
) -> None:
    async with running(*reports, size=size) as pilot:
        await press(pilot, "3", "ctrl+w")
        assert "run1.sqlite" in rows(pilot)[0]
        assert "closed run0.sqlite: run1.sqlite is in front" in rows(pilot)[-1]
        assert [s.name for s in pilot.app.sessions] == ["run1.sqlite", "run2.sqlite"]  # type: ignore[attr-defined]
        await press(pilot, "ctrl+p", *"run2", "enter", "ctrl+w")
        assert "run1.sqlite" in rows(pilot)[0]
        await press(pilot, "ctrl+w")
        assert "this is the only report: o opens another, q quits" in text(pilot)
        assert "run1.sqlite" in rows(pilot)[0]
        for key in SCREENS[:-2]:
            await press(pilot, key)
            assert "run1.sqlite" in rows(pilot)[0]
            assert "internal error" not in text(pilot)


@pytest.mark.parametrize(
    "keys", [*(("2", last) for last in SCREENS), (*(key for key in SCREENS if key != "i"), "2")]
)
async def test_memory_and_files_of_a_closed_report_are_free(
    reports: list[Path], keys: tuple[str, ...]
) -> None:
    async with running(*reports[:2]) as pilot:
        app: Any = pilot.app
        await press(pilot, *keys)
        report = weakref.ref(app.session.report)
        operations = weakref.ref(app.session.report.operations)
        assert opened(reports[0])
        await press(pilot, "ctrl+w")
        await until(lambda: report() is None and operations() is None and not opened(reports[0]))
        await press(pilot, *keys)
        assert "internal error" not in text(pilot)
        assert opened(reports[1])


async def test_a_report_that_is_still_read_can_be_closed(
    reports: list[Path], tmp_path: Path
) -> None:
    other = Path(shutil.copy(reports[1], tmp_path / "other.sqlite"))
    async with running(reports[0], other) as pilot:
        app: Any = pilot.app
        app.bring_to_front(app.sessions[1])
        await pilot.press("ctrl+w")
        await settled(pilot)
        assert "run0.sqlite" in rows(pilot)[0]
        assert "loading cancelled" not in text(pilot)
        await until(lambda: not opened(other))
        await press(pilot, "3")
        assert re.search(r"Kernels \d+ of \d+", text(pilot))


async def test_lanes_and_pairs_of_a_closed_report_go_with_it(reports: list[Path]) -> None:
    async with running(*reports, size=(160, 45)) as pilot:
        app: Any = pilot.app
        first, second, third = app.sessions
        await press(pilot, "2")
        app.put_beside(second)
        app.sync()
        await settled(pilot)
        app.bring_to_front(second)
        await press(pilot, "7")
        app.screen.choosing.choose(first)
        await settled(pilot)
        assert "A: run0.sqlite   B: run1.sqlite" in text(pilot)
        await press(pilot, "ctrl+w")
        assert app.session is third
        assert first.beside == []
        assert "run1.sqlite" not in "\n".join(rows(pilot)[:-1])
        assert "A: run0.sqlite   B: run2.sqlite" in text(pilot)
        await press(pilot, "f7")
        assert "Ranks 4 of 4" in text(pilot)


async def test_a_report_that_was_read_again_leaves_no_file_open(
    reports: list[Path], tmp_path: Path
) -> None:
    copy = Path(shutil.copy(reports[0], tmp_path / "copy.sqlite"))
    async with running(copy) as pilot:
        before = len(opened(copy))
        assert before
        await press(pilot, "R")
        await until(lambda: len(opened(copy)) == before)
        await press(pilot, "3")
        assert re.search(r"Kernels \d+ of \d+", text(pilot))
