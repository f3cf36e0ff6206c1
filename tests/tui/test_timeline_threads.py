"""A report with many threads: lanes are put in order away from the screen's own thread."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import TYPE_CHECKING, Any

import pytest
from synth import Synth
from tui.timeline_pilot import running, settled, text

from nsys_tui.analysis.timeline import tracks as tracks_module
from nsys_tui.analysis.timeline.host import api_tracks, osrt_tracks, range_tracks
from nsys_tui.reader import open_report
from nsys_tui.timeline import lanes as lanes_module
from nsys_tui.timeline.lanes import Lanes
from nsys_tui.timeline.painter import Picked

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

THREADS = 40


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Synth(tmp_path_factory.mktemp("threads") / "r.sqlite").process(100, "train").gpu(0)
    for number in range(THREADS):
        at, tid = number * 1000, 1000 + number
        made.thread(tid, f"worker {number}").nvtx("outer", at, at + 900, tid=tid)
        made.nvtx(f"inner {number % 3}", at + 10, at + 700, tid=tid)
        made.launch("gemm", call=(at, at + 10), gpu=(at + 20, at + 800), tid=tid)
        made.osrt("poll", at, at + 5, tid=tid)
    return made.write()


def front(pilot: Pilot[int]) -> Any:
    return pilot.app.front  # type: ignore[attr-defined]


async def opened(pilot: Pilot[int]) -> Any:
    await pilot.press("2")
    await settled(pilot)
    return front(pilot)


def test_parts_share_the_rows_of_processes_and_threads(threads: Path) -> None:
    report = open_report(threads, use_cache=False)
    parts = [make(report) for make in (api_tracks, osrt_tracks, range_tracks)]
    headings = {id(t) for part in parts for t in part if not t.part}
    assert len(headings) == THREADS + 1
    assert len({t.key for part in parts for t in part if not t.part}) == THREADS + 1


async def test_lanes_are_put_in_order_by_workers_alone(
    threads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    callers: list[threading.Thread] = []
    arrange = tracks_module.arrange

    def told(*args: Any) -> Any:
        callers.append(threading.current_thread())
        return arrange(*args)

    monkeypatch.setattr(lanes_module, "arrange", told)
    async with running(threads, size=(160, 45)) as pilot:
        screen = await opened(pilot)
        for keys in (("space",), ("x",), ("P",), ("/", *"inner", "enter"), ("n",), ("escape",)):
            await pilot.press(*keys)
            await settled(pilot)
        assert len(screen.model.rows) > THREADS
    assert callers
    assert threading.main_thread() not in callers


async def test_drawing_while_lanes_are_put_in_order_waits_for_them(
    threads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(threads, size=(160, 45)) as pilot:
        screen = await opened(pilot)
        shown = len(screen.model.rows)
        go, arranged, calls = threading.Event(), Lanes.arranged, []

        def slow(lanes: Lanes) -> Any:
            calls.append(lanes)
            assert go.wait(10)
            return arranged(lanes)

        monkeypatch.setattr(Lanes, "arranged", slow)
        lanes = screen.model.lanes
        screen.put_lanes(lanes.without("osrt"))
        screen.builder.draw()
        screen.put_lanes(screen.model.lanes.built("osrt", lanes.parts["osrt"], {}))
        for _ in range(3):
            screen.builder.draw()  # would each void the one before
            await pilot.pause(0.02)
        assert len(screen.model.rows) == shown
        go.set()
        await settled(pilot)
        assert not screen.model.lanes.stale
        assert len(screen.model.rows) == shown
        assert len(calls) <= 2, "one under way, one for what came meanwhile"


async def test_every_match_is_stepped_through_over_all_threads(threads: Path) -> None:
    async with running(threads, size=(160, 45)) as pilot:
        screen = await opened(pilot)
        await pilot.press("/", *"inner 1", "enter")
        await settled(pilot)
        wanted = [n * 1000 + 10 for n in range(THREADS) if n % 3 == 1]
        seen = [screen.state.cursor.time]
        for number in range(2, len(wanted) + 1):
            await pilot.press("n")
            assert screen.state.search.current == number
            seen.append(screen.state.cursor.time)
        assert seen == wanted
        await pilot.press("n")
        assert screen.state.cursor.time == wanted[0]
        await pilot.press("N")
        assert screen.state.cursor.time == wanted[-1]


async def test_an_event_is_found_in_the_lane_of_its_thread(threads: Path) -> None:
    async with running(threads, size=(160, 45)) as pilot:
        screen = await opened(pilot)
        api, last = screen.report.api, THREADS - 1
        picked = Picked(api, last)
        screen.take(screen.model.arrived(picked, screen.model.track_of(picked)))
        assert screen.model.row.title.startswith(f"worker {last}")
        await pilot.press("right_square_bracket")
        assert screen.state.cursor.time == last * 1000 + 20
        assert "launched by this call" in text(pilot)


async def test_what_a_worker_computed_is_forgotten_without_a_collection(threads: Path) -> None:
    class Large:
        """Stands for what a worker takes and makes."""

    async with running(threads) as pilot:
        screen = await opened(pilot)
        gc.collect()
        gc.disable()
        try:
            taken, got = Large(), []
            refs = [weakref.ref(taken)]

            def work(held: Large = taken) -> Large:
                made = Large()
                refs.append(weakref.ref(made))
                return made if held else held

            screen.compute("test", work, lambda made: got.append(type(made)))
            del taken, work
            await settled(pilot)
            await pilot.pause()
            assert got == [Large]
            assert [ref() for ref in refs] == [None, None]
        finally:
            gc.enable()
