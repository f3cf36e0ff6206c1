from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from synth import Synth
from tui.frames import rows, running, settled, text

from nsys_tui.state import Filter, Window
from nsys_tui.ui.screens.stacks.screen import StacksScreen
from nsys_tui.ui.widgets.icicle import IciclePane

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """fwd 600 ns of gemm and 100 ns of relu, bwd 300 ns of gemm; samples on two threads."""
    synth = Synth(tmp_path / "r.sqlite").process(1000).nvtx("step", 0, 1000)
    synth.nvtx("bwd", 0, 400).nvtx("fwd", 500, 900)
    for corr, call, name, start, length in (
        (1, 10, "gemm", 2000, 300),
        (2, 510, "gemm", 3000, 600),
        (3, 520, "relu", 4000, 100),
    ):
        synth.api("cudaLaunchKernel_v7000", call, call + 5, corr=corr)
        synth.kernel(name, start, start + length, corr=corr)
    for time, tid in ((100, 7), (200, 7), (300, 8)):
        synth.sample(time, ("leaf", "rec", "rec", "main"), tid=tid)
    return synth.write()


async def press(pilot: Pilot[int], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


def pane(pilot: Pilot[int]) -> IciclePane:
    screen: Any = pilot.app.screen
    assert isinstance(screen, StacksScreen)
    return screen.query_one("#icicle", IciclePane)


def path(pilot: Pilot[int]) -> tuple[str, ...]:
    stacks = pane(pilot).stacks
    assert stacks is not None
    return stacks.trie.path(pane(pilot).selected)


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_icicle_is_left_heavy_and_shows_shares(report: Path, size: tuple[int, int]) -> None:
    async with running(report, size=size) as pilot:
        await press(pilot, "6")
        lines = rows(pilot)
        assert ("[6 Stack]" if size[0] == 80 else "[ 6 Stacks ]") in lines[1]
        assert lines[3].startswith("|all 100.0% -")
        assert lines[4].startswith("|step 100.0% -")
        fwd, bwd = lines[5].index("fwd 70.0%"), lines[5].index("bwd 30.0%")
        assert fwd < bwd
        assert "GPU time by NVTX path" in lines[2]
        assert "total 1.000 us" in text(pilot)


async def test_keys_walk_zoom_and_come_back(report: Path) -> None:
    async with running(report) as pilot:
        await press(pilot, "6", "j", "j")
        assert path(pilot) == ("step", "fwd")
        await press(pilot, "l")
        assert path(pilot) == ("step", "bwd")
        await press(pilot, "h", "j", "enter")
        assert path(pilot) == ("step", "fwd", "gemm")
        seen = [line.split("  ")[0] for line in rows(pilot)[3:7]]
        assert seen[:3] == ["|all 100.0%", "|step 100.0%", "|fwd 70.0%"]
        assert rows(pilot)[6].startswith("|gemm 60.0% -")
        await press(pilot, "k", "k")
        assert path(pilot) == ("step",)
        assert rows(pilot)[6].startswith("|gemm 60.0% -")
        await press(pilot, "j", "j")
        assert path(pilot) == ("step", "fwd", "gemm")
        await press(pilot, "escape")
        assert rows(pilot)[3].startswith("|all 100.0% -")
        assert rows(pilot)[5].index("fwd 70.0%") < rows(pilot)[5].index("bwd 30.0%")


async def test_0_leaves_all_zooms_at_once(report: Path) -> None:
    async with running(report) as pilot:
        await press(pilot, "6", "j", "enter", "j", "enter", "j", "enter")
        assert "zoomed" in rows(pilot)[2]
        await press(pilot, "0")
        assert "zoomed" not in rows(pilot)[2]
        assert path(pilot) == ("step", "fwd", "gemm"), "the selection stays"
        assert rows(pilot)[5].index("fwd 70.0%") < rows(pilot)[5].index("bwd 30.0%")


async def test_0_leaves_the_zoom_first_and_then_the_window(report: Path) -> None:
    async with running(report) as pilot:
        app: Any = pilot.app
        app.show("stacks", window=Window(0, 1_000_000))
        await settled(pilot)
        await press(pilot, "j", "enter", "0")
        assert "zoomed" not in rows(pilot)[2]
        assert app.state.window is not None
        await press(pilot, "0")
        assert app.state.window is None


async def test_same_frame_goes_to_its_next_place(report: Path) -> None:
    async with running(report) as pilot:
        await press(pilot, "6", "j", "j", "j", "#")
        assert path(pilot) == ("step", "bwd", "gemm")


async def test_search_counts_and_shares(report: Path) -> None:
    async with running(report) as pilot:
        await press(pilot, "6", "/", *"gemm", "enter")
        assert "/gemm: 1 of 2 frames, 900 ns, 90.0% of all" in text(pilot)
        assert path(pilot) == ("step", "fwd", "gemm")
        await press(pilot, "n")
        assert path(pilot) == ("step", "bwd", "gemm")
        await press(pilot, "escape")
        assert "/gemm" not in text(pilot)


async def test_search_takes_any_case(report: Path) -> None:
    async with running(report, size=(160, 45)) as pilot:
        await press(pilot, "6", "/", *"GEMM", "enter")
        assert "/GEMM: 1 of 2 frames, 900 ns, 90.0% of all" in text(pilot)


async def test_time_order_and_sandwich(report: Path) -> None:
    async with running(report) as pilot:
        await press(pilot, "6", "v")
        line = rows(pilot)[5]
        assert line.index("bwd 30.0%") < line.index("fwd 70.0%")
        await press(pilot, "v")
        assert path(pilot) == ("gemm",), "the frame with most of its own"
        await press(pilot, "v", "v", "j", "j", "j", "v")
        body = text(pilot)
        assert "[sandwich]" in body
        assert "- Callers -" in body
        assert "gemm 100.0%" in body
        assert "fwd 66.7%" in body


async def test_a_kernel_with_numbers_in_its_name_has_a_sandwich_where_ranges_are_merged(
    tmp_path: Path,
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1)
    for step in range(3):
        at = step * 1000
        synth.nvtx(f"step {step}", at, at + 900)
        synth.launch("solve2d", (at + 10, at + 20), (at + 30, at + 800))
    async with running(synth.write()) as pilot:
        await press(pilot, "6", "m", "v", "v")
        body = text(pilot)
        assert "solve2d 100.0%" in body
        assert "step # 100.0%" in body


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_functions_are_listed_between_their_callers_and_callees(
    report: Path, size: tuple[int, int]
) -> None:
    async with running(report, size=size) as pilot:
        await press(pilot, "6", "v", "v")
        assert "Functions 5 of 5" in text(pilot)
        gemm = next(line for line in rows(pilot) if line.endswith(" gemm |") or " gemm  " in line)
        assert " 90.0% " in gemm
        await press(pilot, "<", "<", "S", "home", "down", "down")
        assert path(pilot) == ("fwd",)
        assert "gemm 85.7%" in text(pilot)
        await press(pilot, "enter")
        assert path(pilot) == ("step", "fwd")
        assert "[left-heavy]" in text(pilot)


async def test_samples_fold_recursion_collapses_and_threads_part(report: Path) -> None:
    async with running(report) as pilot:
        await press(pilot, "6", "s")
        assert "CPU samples" in text(pilot)
        assert text(pilot).count("|rec 100.0%") == 2
        await press(pilot, "r")
        assert text(pilot).count("|rec 100.0%") == 1
        await press(pilot, "t")
        assert "2 samples" in text(pilot)


async def test_frames_without_symbols_are_their_library_until_told_apart(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1).sample(5, ("0x7f01", "0x7f02", "main"))
    async with running(synth.write()) as pilot:
        await press(pilot, "6", "j", "j")
        assert path(pilot) == ("main", "[python3]")
        await press(pilot, "m")
        assert "|0x7f02 100.0%" in text(pilot)


async def test_a_source_without_data_says_what_records_it(report: Path) -> None:
    async with running(report, size=(160, 45)) as pilot:
        await press(pilot, "6", "s", "s")
        assert "host time by NVTX path" in text(pilot)
        await press(pilot, "s")
        assert "record with nsys profile --cudabacktrace" in text(pilot)
        assert "--cpuctxsw" in text(pilot)
        assert "all 100.0%" in text(pilot)


async def test_time_off_the_cpu_is_told_by_thread_and_call(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(7, "train")
    for time, on in ((0, True), (100, False), (400, True), (500, False), (600, True)):
        synth.sched(time, on)
    synth.osrt("read", 90, 390, frames=("fread", "load", "main")).osrt("poll", 700, 800)
    synth.kernel("gemm", 600, 700)
    async with running(synth.write()) as pilot:
        await press(pilot, "6", *"sss", "j", "j", "j", "j", "j")
        assert "off the CPU by OS call" in text(pilot)
        assert path(pilot)[1:] == ("main", "load", "fread", "read")
        assert "total 290 ns, 72.5%" in text(pilot)
        assert "[no OS call" in text(pilot)


async def test_the_same_stacks_as_a_tree(report: Path) -> None:
    async with running(report) as pilot:
        await press(pilot, "6", "j", "j", "i")
        body = text(pilot)
        assert "frame" in body
        assert "step" in body
        line = next(line for line in body.splitlines() if "fwd" in line)
        assert "700 ns" in line
        assert "70.0%" in line
        await press(pilot, "up", "i")
        assert path(pilot) == ("step",)


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_similar_ranges_merge_and_the_place_is_kept(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1)
    for step in range(120):
        begin = step * 100
        synth.nvtx(f"step {step}", begin, begin + 90).nvtx("fwd", begin, begin + 80)
        synth.launch("gemm_8", (begin + 10, begin + 20), (begin + 30, begin + 60 + step))
    async with running(synth.write(), size=size) as pilot:
        await press(pilot, "6")
        assert "merged" in rows(pilot)[2]
        assert "names that differ in numbers only are one: m tells them apart" in text(pilot)
        await press(pilot, "j")
        assert path(pilot) == ("step #",)
        await press(pilot, "m", "k")
        assert "m merges names that differ in numbers only" in text(pilot)
        await press(pilot, "j", "j")
        assert path(pilot) == ("step 119", "fwd")
        await press(pilot, "m")
        assert path(pilot) == ("step #", "fwd")
        assert "merged" in rows(pilot)[2]
        assert "in step #" in text(pilot)
        await press(pilot, "v")
        assert path(pilot) == ("step #", "fwd")
        await press(pilot, "v")
        assert path(pilot) == ("fwd",), "in the middle of the sandwich"
        await press(pilot, "v", "j")
        assert path(pilot) == ("step #", "fwd", "gemm_8")


async def test_the_filter_decides_what_is_folded(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1)
    synth.kernel("first", 0, 100, device=0).kernel("second", 0, 300, device=1)
    async with running(synth.write()) as pilot:
        await press(pilot, "6")
        app: Any = pilot.app
        app.show("stacks", filter=Filter(devices=frozenset({1})))
        await settled(pilot)
        stacks = pane(pilot).stacks
        assert stacks is not None
        assert int(stacks.weight[0]) == 300


async def test_g_shows_the_longest_instance_with_its_facts(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1)
    for step, length in ((0, 5_000), (1, 3_000)):
        begin = step * 100_000
        synth.nvtx(f"step {step}", begin, begin + 90_000)
        synth.launch("gemm", (begin, begin + 10), (begin + 20, begin + 20 + length))
    async with running(synth.write(), size=(160, 45)) as pilot:
        await press(pilot, "6", "m", "j", "g")
        app: Any = pilot.app
        selection = app.state.selection
        assert (selection.kind, selection.label) == ("operation", "gemm")
        assert (selection.span.start, selection.span.end) == (20, 5_020)
        assert app.state.cursor.time == 20
        assert "+- gemm, 1 of 2" in text(pilot)
        assert "step 0" in text(pilot), "the facts of the kernel name its range"


async def test_a_window_without_events_says_so_and_0_leaves_it(report: Path) -> None:
    async with running(report) as pilot:
        await press(pilot, "6")
        app: Any = pilot.app
        app.show("stacks", window=Window(500_000, 600_000))
        await settled(pilot)
        assert "nothing of this source here" in text(pilot)
        assert "0: the whole trace" in text(pilot)
        await press(pilot, "0")
        assert "total 1.000 us" in text(pilot)


async def test_a_report_without_gpu_work_opens_on_what_it_has(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "cpu.sqlite").process(1000)
    synth.sample(10, ("leaf", "main")).sample(20, ("leaf", "main"))
    async with running(synth.write()) as pilot:
        await press(pilot, "6")
        assert "CPU samples  v: [left-heavy]" in text(pilot)
        assert "leaf 100.0%" in text(pilot)


async def test_a_wider_terminal_has_room_for_the_other_orders(report: Path) -> None:
    async with running(report) as pilot:
        await press(pilot, "6", "a", "r", "u")
        assert "v: [left-heavy] " in text(pilot)
        assert "sandwich" not in text(pilot)
        await pilot.resize_terminal(240, 45)
        await settled(pilot)
        assert "v: [left-heavy] time sandwich" in text(pilot)


async def test_facts_stay_with_the_stacks_that_they_are_of(report: Path) -> None:
    async with running(report, size=(120, 30)) as pilot:
        await press(pilot, "6", "j", "j", "j", "v", "v")
        few = pane(pilot).stacks
        await press(pilot, "v")
        assert few is not None
        assert pane(pilot).selected >= len(few.trie), "no frame of the sandwich has this number"
        assert "of its caller" in text(pilot)
