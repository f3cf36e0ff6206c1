from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make_report
from paths import REPORTS, needs_reports
from synth import Synth
from tui.frames import frame, rows, running, settled, text

from nsys_tui.state import Window
from nsys_tui.ui.screens.stalls.screen import StallsScreen, step_of

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

US, MS = 1_000, 1_000_000


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The demo report and its true figures."""
    folder = tmp_path_factory.mktemp("demo")
    made = make_report(folder / "demo.sqlite", truth_path=folder / "truth.json")
    assert made.truth is not None
    return made.report, json.loads(made.truth.read_text())


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Gaps of 200 us (a sync call), 60 us (file I/O), 12 us and 4 us on one GPU."""
    synth = Synth(tmp_path / "r.sqlite").process(10, "train").thread(10, "main")
    synth.launch("first", call=(0, 10 * US), gpu=(20 * US, 100 * US))
    synth.api("cudaStreamSynchronize_v3020", 50 * US, 280 * US).nvtx("optimizer", 0, 400 * US)
    synth.launch("second", call=(290 * US, 295 * US), gpu=(300 * US, 400 * US))
    synth.osrt("pread64", 395 * US, 450 * US)
    synth.launch("third", call=(455 * US, 458 * US), gpu=(460 * US, 500 * US))
    synth.launch("fourth", call=(505 * US, 508 * US), gpu=(512 * US, 600 * US))
    synth.launch("fifth", call=(601 * US, 602 * US), gpu=(604 * US, 700 * US))
    return synth.write()


async def press(pilot: Pilot[int], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


def screen(pilot: Pilot[int]) -> StallsScreen:
    shown: Any = pilot.app.screen
    assert isinstance(shown, StallsScreen)
    return shown


def lines_with(pilot: Pilot[int], pattern: str) -> list[str]:
    return [line for line in rows(pilot) if re.search(pattern, line)]


async def test_gaps_at_80x24_come_longest_first_with_cause_kernel_and_range(report: Path) -> None:
    lines = await frame(report, (80, 24), "5")
    assert "[5 Stall" in lines[1]
    # 200 + 60 + 12 + 4 us between kernels, of a span of 680 us.
    assert "Idle gaps 4 of 4  >= 10 us  between work 276.0 us (40.6%)" in lines[2]
    assert [name for name in lines[3].split() if name.isalpha()] == [
        "sev", "gpu", "start", "idle", "cause", "next", "range",
    ]  # fmt: skip
    assert re.search(
        r"> M +0 +0\.0+100\d* +200\.0 us sync call: cudaStr.* second +optimiz~", lines[4]
    )
    assert re.search(r" L +0 +0\.0+400\d* +60\.00 us I/O: pread64 +third", lines[5])
    assert re.search(r" L +0 +0\.0+500\d* +12\.00 us .* fourth", lines[6])
    assert "before the first opera" in lines[7]
    body = "\n".join(lines)
    assert "sync call 200.0 us (1), I/O 60.00 us (1)" in body
    assert "below 10 us: 1 gap, 4.000 us;  before work 20.00 us, after 0 ns" in body


async def test_scene_shows_gpu_host_and_words_around_the_gap(report: Path) -> None:
    lines = await frame(report, (80, 24), "5")
    scene = lines[15:22]
    assert scene[0].startswith("+- Gap of 200.0 us on GPU 0: sync call: cudaStreamSynchronize")
    gpu = scene[1]
    assert re.search(r"GPU 0 +first#*\][!.]+ *idle 200\.0 us *[!.]+\[?second", gpu)
    assert "[cudaStreamSynchronize !!!!" in scene[2]
    assert "sync call 180.0 us, launch latency 10.00 us, nothing recorded 10.~" in scene[3]
    assert re.search(r"NVTX +optimizer -+", scene[4])
    # The window is the gap and a quarter on either side: 50 to 350 us over 66 cells.
    assert gpu.index("!") == pytest.approx(13 + 66 * 50 / 300, abs=1)
    assert gpu.rindex("!") == pytest.approx(13 + 66 * 250 / 300, abs=1.5)


async def test_the_pane_at_160x45_adds_up_idle_time_by_cause(report: Path) -> None:
    lines = await frame(report, (160, 45), "5")
    body = "\n".join(lines)
    assert "+- Idle by cause -" in lines[2]
    # Shares of the 276 us between operations.
    assert re.search(r"72\.5% +200\.0 us +1  sync call", body)
    assert re.search(r"21\.7% +60\.00 us +1  I/O", body)
    assert re.search(r"1\.4% +4\.000 us +1  below 10 us", body)
    assert re.search(r"between operations +276\.0 us  40\.6% of the time", body)
    assert re.search(r"before the first operation +20\.00 us", body)
    assert re.search(r"exposed communication +0 ns", body)
    assert "below 10 us: 1 gap," not in body
    axis = next(line for line in lines if line.startswith("|") and line.count("|0.") > 3)
    assert " s" in axis


async def test_threshold_moves_live_and_by_prompt(report: Path) -> None:
    async with running(report) as pilot:
        await press(pilot, "5", "plus", "plus", "plus")
        assert "Idle gaps 1 of 1  >= 100 us" in text(pilot)
        assert "below 100 us: 4 gaps, 96.00 us" in text(pilot), "20 us of head are below it too"
        await press(pilot, *["minus"] * 6)
        assert "Idle gaps 5 of 5  >= 1 us" in text(pilot)
        await press(pilot, "t", *["backspace"] * 5, *"50", "enter")
        assert "a duration without its unit: '50'" in text(pilot), "here as on the command line"
        await press(pilot, *"us", "enter")
        assert "Idle gaps 2 of 2  >= 50 us" in text(pilot)
        await press(pilot, "t", *["backspace"] * 5, *"soon", "enter")
        assert "not a time" in text(pilot)
        await press(pilot, "escape")
        assert ">= 50 us" in text(pilot)


async def test_cursor_stays_on_its_gap_when_the_threshold_changes(report: Path) -> None:
    async with running(report) as pilot:
        await press(pilot, "5", "down")
        assert "60.00 us" in lines_with(pilot, r"^\|>")[0]
        await press(pilot, "minus", "minus", "minus")
        assert "60.00 us" in lines_with(pilot, r"^\|>")[0]
        await press(pilot, "plus")
        assert "pread64" in lines_with(pilot, r"^\+- Gap of")[0]


async def test_groups_by_cause_range_pair_thread_and_their_gaps(report: Path) -> None:
    async with running(report) as pilot:
        await press(pilot, "5", "g")
        assert "Idle by cause 5 of 5" in text(pilot)
        first = lines_with(pilot, r"^\|>")[0]
        # Of the 276 us between operations; the head of 20 us is no part of them.
        assert re.search(r"72\.5% +200\.0 us +1 +200\.0 us sync call", first)
        assert lines_with(pilot, r"1\.4% +4\.000 us +1 +- below threshold")
        assert lines_with(pilot, r" - +20\.00 us +1 +20\.00 us before the first operation")
        assert "Gap of 200.0 us" in text(pilot), "the scene of the longest gap of the group"
        await press(pilot, "down", "space")
        assert "Idle gaps 1 of 1  >= 10 us  cause = I/O" in text(pilot)
        await press(pilot, "escape")
        assert re.search(r">.*I/O", lines_with(pilot, r"^\|>")[0])
        titles = []
        for _ in range(5):
            await press(pilot, "g")
            titles.append(re.split(r" \d+ of ", rows(pilot)[2])[0].removeprefix("+- > "))
        assert titles == [
            "Idle by thread", "Idle by NVTX range", "Idle by operations around", "Idle by GPU",
            "Idle gaps",
        ]  # fmt: skip


async def test_pairs_name_the_operations_before_and_after(report: Path) -> None:
    lines = await frame(report, (80, 24), "5", "g", "g", "g", "g")
    assert any(re.search(r"200\.0 us +1 +200\.0 us first -> second", line) for line in lines)


async def test_enter_shows_the_gap_on_the_timeline_and_escape_returns_intact(
    report: Path,
) -> None:
    async with running(report) as pilot:
        app: Any = pilot.app
        await press(pilot, "5", "minus", "minus", "s", "down", "down")
        before = rows(pilot)
        await press(pilot, "enter")
        assert app.front.SCREEN == "timeline"
        gap = app.state.selection.span
        window = app.session.window
        assert window.start <= gap.start < gap.end <= window.end
        assert app.state.cursor.time == gap.start
        await press(pilot, "escape")
        assert app.front.SCREEN == "stalls"
        assert rows(pilot)[:-1] == before[:-1]


async def test_follows_the_window_and_goes_back_to_the_whole(report: Path) -> None:
    async with running(report) as pilot:
        app: Any = pilot.app
        await press(pilot, "5")
        app.show("stalls", window=Window(390 * US, 506 * US))
        await settled(pilot)
        # 60 us whole, and 6 of the 12 us; of a window of 116 us.
        assert "Idle gaps 2 of 2  >= 10 us  between work 66.00 us (56.9%)" in text(pilot)
        assert lines_with(pilot, r" 6\.000 us .*fourth")
        await press(pilot, "0")
        assert "Idle gaps 4 of 4" in text(pilot)


async def test_words_are_searched_and_filtered(report: Path) -> None:
    async with running(report) as pilot:
        await press(pilot, "5", "slash", *"pread", "ctrl+f")
        assert "1 of 4" in text(pilot)
        await press(pilot, "escape")
        assert "4 of 4" in text(pilot)


async def test_the_filter_of_kernels_is_not_one_of_gaps(report: Path) -> None:
    async with running(report) as pilot:
        await press(pilot, "5", "3", "slash", *"fourth", "ctrl+f")
        assert "1 of 5  filter: fourth" in text(pilot)
        await press(pilot, "5")
        assert "Idle gaps 4 of 4" in text(pilot)


async def test_stacks_open_on_the_samples_of_the_gap(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10, "train")
    synth.launch("first", call=(0, 10 * US), gpu=(20 * US, 100 * US))
    for time, stack in ((50, "before"), (150, "save"), (250, "save")):
        synth.sample(time * US, (stack, "main"))
    synth.launch("second", call=(290 * US, 295 * US), gpu=(300 * US, 400 * US))
    async with running(synth.write()) as pilot:
        app: Any = pilot.app
        await press(pilot, "5")
        assert re.search(r"stack +main -> save  \(2 of 2 samples; 6 opens stacks\)", text(pilot))
        await press(pilot, "6")
        assert app.front.SCREEN == "stacks"
        assert app.state.window == Window(100 * US, 300 * US)
        assert "CPU samples" in text(pilot)
        assert "save" in text(pilot)
        assert "before" not in text(pilot)
        await press(pilot, "backspace")
        assert app.front.SCREEN == "stalls"


async def test_copying_a_row_gives_all_its_columns(
    report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(report) as pilot:
        copied: list[str] = []
        monkeypatch.setattr(pilot.app, "copy", lambda text, _: copied.append(text))
        await press(pilot, "5", "Y")
        assert copied[0].split("\t")[3:] == [
            "200.0 us", "sync call: cudaStreamSynchronize", "second", "optimizer", "main", "1",
        ]  # fmt: skip


@pytest.mark.parametrize("size", [(80, 24), (120, 30), (160, 45), (240, 67)])
async def test_every_size_is_filled_without_overflow(
    demo: tuple[Path, Any], size: tuple[int, int]
) -> None:
    lines = await frame(demo[0], size, "5")
    assert len(lines) == size[1]
    assert {len(line) for line in lines} == {size[0]}
    assert all(line.isascii() for line in lines)
    cause = lines[3].index("cause")
    assert "I/O: pread64" in lines[4][cause:]


async def test_resizing_gives_columns_their_room_and_keeps_the_row(report: Path) -> None:
    async with running(report, size=(160, 45)) as pilot:
        await press(pilot, "5", "down")
        assert "+- Idle by cause" in text(pilot)
        await pilot.resize_terminal(80, 24)
        await settled(pilot)
        assert "+- Idle by cause" not in text(pilot)
        assert "60.00 us I/O: pread64" in lines_with(pilot, r"^\|>")[0]
        assert lines_with(pilot, r"I/O 60\.00 us \(1\)")


async def test_planted_stalls_of_the_demo_come_out_with_the_planted_figures(
    demo: tuple[Path, dict[str, Any]],
) -> None:
    path, truth = demo
    async with running(path, size=(160, 45)) as pilot:
        await press(pilot, "5")
        found = screen(pilot).result
        assert found is not None
        report: Any = screen(pilot).report
        by_device = {device.gpu_id: place for place, device in enumerate(report.devices)}
        stalls = [found.rows.row(report, place) for place in range(len(found.rows))]
        for problem in truth["problems"]:
            own = [row for row in stalls if row.device == by_device[problem["device"]]]
            a, b = problem["window"]
            inside = [row for row in own if a <= row.start and row.end <= b]
            if problem["kind"] == "launch_bound":
                (run,) = [row for row in inside if row.kind == "run"]
                assert run.idle_ns == problem["idle_ns"]
                assert str(problem["operations"]) in run.label
            elif problem["kind"] in ("sync_stall", "pageable_copy", "slow_step"):
                meant = [row for row in inside if row.cause == problem["cause"]]
                assert sum(row.idle_ns for row in meant) == problem["duration_ns"]
                assert len(meant) == problem["gaps"]
        # The hanging loader costs most and stands on top, on both GPUs.
        slow = [p for p in truth["problems"] if p["kind"] == "slow_step"]
        assert [row.idle_ns for row in stalls[:2]] == sorted(
            (p["longest_ns"] for p in slow), reverse=True
        )
        top = rows(pilot)[4]
        assert f"{max(p['longest_ns'] for p in slow) / 1e6:.2f} ms I/O: pread64" in top
        idle = [device["gaps"] for device in truth["devices"]]
        assert found.sums.whole.inner_ns == sum(gaps["total_ns"] for gaps in idle)
        assert found.sums.whole.head_ns == sum(gaps["head_ns"] for gaps in idle)
        assert found.sums.whole.tail_ns == sum(gaps["tail_ns"] for gaps in idle)


async def test_a_launch_bound_run_is_one_row_and_its_scene_the_whole_run(
    demo: tuple[Path, Any],
) -> None:
    async with running(demo[0]) as pilot:
        await press(pilot, "5", *["down"] * 6)
        assert re.search(r"launch-bound run: 480", lines_with(pilot, r"^\|>")[0])
        assert lines_with(pilot, r"^\+- Launch-bound run of [\d.]+ ms on GPU 0")
        assert lines_with(pilot, r"run +480 operations, 479 gaps, 3\.506 ms")


@needs_reports
async def test_without_gpu_work_it_says_what_would_record_it() -> None:
    body = "\n".join(await frame(REPORTS / "nvtx-only-2022.4.sqlite", (80, 24), "5"))
    assert "no kernels in this report: record with nsys profile --trace=cuda" in body
    assert "below 10 us" not in body


async def test_without_api_calls_there_are_gaps_and_the_reason_why_no_cause(
    tmp_path: Path,
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10, "train")
    synth.kernel("first", 0, 100 * US).kernel("second", 300 * US, 400 * US)
    body = "\n".join(await frame(synth.write(), (80, 24), "5"))
    assert re.search(r"200\.0 us unknown +second", body)
    assert "no causes: no CUDA API calls in this report" in body
    assert "no API call is known that launched what ends it" in body


async def test_a_single_kernel_leaves_no_gap_to_list(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10, "train")
    synth.launch("only", call=(0, 5 * US), gpu=(6 * US, 100 * US))
    body = "\n".join(await frame(synth.write(), (80, 24), "5"))
    assert "no idle gap from the threshold on" in body
    assert "below 10 us: 1 gap, 6.000 us" in body


@pytest.mark.parametrize(
    ("now", "up", "wanted"),
    [
        (10 * US, True, 20 * US),
        (10 * US, False, 5 * US),
        (12_345, True, 20 * US),
        (12_345, False, 10 * US),
        (100, False, 100),
        (0, True, 100),
        (50 * MS, True, 100 * MS),
    ],
)
def test_thresholds_step_by_one_two_five(now: int, up: bool, wanted: int) -> None:
    assert step_of(now, up=up) == wanted


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_operations_are_named_in_the_style_chosen(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10, "train")
    for name, call in (("gemm", 0), ("add", 150 * US)):
        there, gpu = (call, call + 10 * US), (call + 20 * US, call + 100 * US)
        synth.launch(f"void f::{name}<8>(float*)", call=there, gpu=gpu, short=name)
    async with running(synth.write(), size=size) as pilot:
        await press(pilot, "5")
        shown = lines_with(pilot, r"\|> L")
        for _ in range(2):
            await press(pilot, "D")
            shown += lines_with(pilot, r"\|> L")
        for line, name in zip(shown, (" add ", " f::add ", " void f::ad"), strict=True):
            assert name in line
        await press(pilot, "g", "g", "g", "g")
        assert lines_with(pilot, r"void f::gemm<8>\(float\*\) -> ")
        await press(pilot, "space")
        assert lines_with(pilot, r"Idle gaps 1 of 1")
        await press(pilot, "D")
        assert lines_with(pilot, "gemm -> add"), "the group went with its name"
