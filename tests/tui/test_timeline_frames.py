"""The timeline as text: a report said in a few words, drawn where 10 us are one column."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make_report
from paths import REPORTS, needs_reports
from synth import Synth
from tui.frames import FANCY, until
from tui.timeline_pilot import frame, rows, running, settled, text

from nsys_tui.analysis.timeline.gpu import sample_tracks
from nsys_tui.timeline import areas
from nsys_tui.timeline.lanes import Arranged, Lanes
from nsys_tui.timeline.parts import part_tracks
from nsys_tui.ui.screens.timeline import lane_builder
from nsys_tui.ui.screens.timeline.lane_builder import LaneBuilder, Ready
from nsys_tui.ui.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from nsys_tui.timeline.filtering import Filtered

US = 1_000


@pytest.fixture(scope="session")
def handmade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """660 us on one GPU: at 80 columns, 66 of them for lanes, a column is 10 us."""
    synth = Synth(tmp_path_factory.mktemp("timeline") / "hand.sqlite").gpu(0)
    synth.process(100, "train").cuda_device(100, 0, 0).thread(100, "main")
    synth.nvtx("step 0", 0, 330 * US).nvtx("step 1", 330 * US, 660 * US)
    synth.nvtx("forward", 50 * US, 250 * US)
    synth.launch("gemm(float*)", (60 * US, 80 * US), (100 * US, 200 * US))
    synth.launch("attention(float*)", (90 * US, 100 * US), (200 * US, 300 * US))
    for number in range(20):
        at = (400 + 2 * number) * US
        synth.launch("tiny(int)", (at - 5 * US, at - 4 * US), (at, at + US))
    synth.launch(
        "ncclDevKernel_AllReduce(int)", (290 * US, 300 * US), (310 * US, 390 * US), stream=13
    )
    synth.api("cudaDeviceSynchronize_v3020", 450 * US, 600 * US, corr=900)
    return synth.write()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_report(tmp_path_factory.mktemp("demo") / "demo.sqlite", steps=4).report


PANE = """\
+- > Timeline  1 col = 10.00 us  cursor 0.000100 s -------------- lane 5 of 7 -+
| time       |0.0000             |0.0002             |0.0004 s           |     |
| v NVTX     [step 0 ------------------------][step 1 ------------------------]|
|   lvl 2         [forward ----------]                                         |
| v GPU 0    ..........#################### ======== ####......................|
|   > nvtx             [step 0 --------------------] [--]                      |
|  >str 7              [gemm####][attenti~]          ####                      |
|   str 13             |                    [AllRe~]                           |
| main             [+ [|                  [         a+++a [cudaDeviceSy~]      |
|                                                                              |
"""
"""By hand: 10 us a column from 0; gaps of 10 us are not longer than the threshold and stay blank;
the ranges on the GPU last from the first to the last kernel launched in them; the calls of the
twenty small kernels begin in five columns, the kernels in four. What the host did before the first
launch was not recorded, so that gap has no mark of a known cause."""


async def test_every_rule_of_drawing_at_80x24(handmade: Path) -> None:
    lines = await frame(handmade, (80, 24), "2")
    assert "\n".join(lines[2:12]) + "\n" == PANE
    assert lines[1].startswith("1 Over [2 Time")
    assert not lines[22].strip()
    assert lines[23].rstrip().endswith("? help")


async def test_the_wide_frame_gives_its_width_to_lanes_and_its_foot_to_facts(
    handmade: Path,
) -> None:
    lines = await frame(handmade, (160, 45), "2", "tab")
    body = "\n".join(lines)
    for heading in ("attention", "Minimap: whole trace"):
        assert f"+- {heading}" in body
    assert "Area (v)" not in body, "a pane that has nothing to tell takes no room"
    assert "Marks (')" not in body
    # 160 cells less frame, a margin of 28 for names in words and 14 for figures leave 116 columns.
    assert "1 col = 5.689 us" in lines[2]
    assert "| dur 100" in body, "what is asked first"
    assert "start 0.000200 s" in body
    assert re.search(r"grid 1,1,1[\s|]+block 128,1,1", body), "one after the other"
    assert "nvtx step 0 > forward" in body
    # 100 to 200 to 300 us begin at columns 18, 36 and 54.
    stream = next(line for line in lines if "stream 7 compute" in line)
    assert "[gemm###########]@attention#######]" in stream
    assert stream.rstrip("|").endswith(" 22"), "events in view"


@pytest.mark.parametrize("size", [(120, 30), (240, 67)])
async def test_every_size_fills_the_screen_without_overflow(
    demo: Path, size: tuple[int, int]
) -> None:
    lines = await frame(demo, size, "2", "f", "tab")
    assert len(lines) == size[1]
    assert {len(line) for line in lines} == {size[0]}
    assert all(line.isascii() for line in lines)
    body = "\n".join(lines)
    assert "v GPU 0" in body
    assert "in view" in body, "merged events are counted beside their lane"


async def test_blocks_are_solid_and_names_centred_where_the_terminal_can(handmade: Path) -> None:
    lines = await frame(handmade, (80, 24), "2", terminal=FANCY)
    stream = next(line for line in lines if "str 7" in line)
    assert "gemm   attention" in stream, "centred in ten cells each"
    assert "[" not in stream
    assert "▄▄▄▄" in stream
    gpu = next(line for line in lines if "GPU 0" in line)
    assert "█" in gpu


async def test_a_narrower_terminal_keeps_window_cursor_and_focus(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        await pilot.press("2", "f", "tab", "w", "w")
        await settled(pilot)
        state = pilot.app.state  # type: ignore[attr-defined]
        await pilot.resize_terminal(80, 24)
        await settled(pilot)
        now = pilot.app.state  # type: ignore[attr-defined]
        assert (now.window, now.cursor, now.selection) == (
            state.window,
            state.cursor,
            state.selection,
        )
        assert pilot.app.focused.id == "lanes"  # type: ignore[union-attr]
        assert len(rows(pilot)) == 24
        await pilot.resize_terminal(160, 45)
        await settled(pilot)
        assert "in view" in text(pilot)


async def test_a_pane_that_a_narrower_terminal_has_no_room_for_gives_its_keys_back(
    demo: Path,
) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        await pilot.press("2", "f", "tab", "enter")
        await settled(pilot)
        assert pilot.app.focused.id == "facts"  # type: ignore[union-attr]
        await pilot.resize_terminal(80, 24)
        await settled(pilot)
        assert pilot.app.focused.id == "lanes"  # type: ignore[union-attr]


async def test_without_colours_blanks_beside_cursor_and_events_show_no_emphasis(
    handmade: Path,
) -> None:
    async with running(handmade, terminal=FANCY, theme="mono") as pilot:
        await pilot.press("2")
        await settled(pilot)
        strips = pilot.app.screen._compositor.render_strips()
        (lane,) = [strip for strip in strips if "str 13" in strip.text]
        shown = [
            segment.text
            for segment in lane
            if segment.style and (segment.style.reverse or segment.style.underline)
        ]
        assert shown[0] == "│"
        assert "".join(shown[1:]).count(" ") == 0
        assert lane.text.count(" ") > 40


@pytest.mark.parametrize("theme", ["light", "mono"])
async def test_every_theme_draws_the_same_text_in_ascii(handmade: Path, theme: str) -> None:
    lines = await frame(handmade, (80, 24), "2", theme=theme)
    assert "\n".join(lines[2:12]) + "\n" == PANE


async def test_names_from_a_report_are_text_and_never_control_sequences(small: Path) -> None:
    lines = await frame(small, (160, 45), "2", "down", "tab", terminal=FANCY)
    body = "\n".join(lines)
    assert "\x1b" not in body
    assert "[bold_red]evil[/]" in body


@needs_reports
async def test_a_report_without_events_says_calmly_what_would_record_them() -> None:
    body = "\n".join(await frame(REPORTS / "no-events.sqlite", (80, 24), "2", "tab", "w", "v", "f"))
    assert "There is nothing to show over time in this report." in body
    assert "--trace=nvtx" in body


STARTS = [(step + 2 * (step > 2)) * 1000 * US for step in range(40)]


@pytest.fixture(scope="module")
def many_steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 steps, of which the timeline opens on a few."""
    synth = Synth(tmp_path_factory.mktemp("steps") / "many.sqlite").gpu(0)
    synth.process(100, "train").cuda_device(100, 0, 0)
    for step, at in enumerate(STARTS):
        synth.nvtx(f"step {step}", at, at + 600 * US)
        synth.launch("gemm(float*)", (at, at + US), (at + 10 * US, at + 500 * US))
    return synth.write()


async def test_of_many_steps_a_few_are_shown_first_and_the_rest_is_one_key_away(
    many_steps: Path,
) -> None:
    async with running(many_steps, size=(160, 45)) as pilot:
        assert "Steps 4-8 of 40" in text(pilot), "after the warm-up and the slow one"
        await pilot.press("2")
        await settled(pilot)
        screen = pilot.app.front  # type: ignore[attr-defined]
        assert "shown: steps 4-8 of 40; 0: all" in text(pilot)
        assert screen.model.window.start < STARTS[3] < STARTS[8] <= screen.model.window.end
        assert screen.state.window is None, "nothing was asked for"
        await pilot.press("0")
        await settled(pilot)
        assert tuple(screen.model.window) == screen.model.extent
        await pilot.press("backspace")
        await settled(pilot)
        assert "shown: steps 4-8 of 40" in text(pilot)


@pytest.mark.parametrize("keys", ["0", "f f", "minus"])
async def test_who_asks_for_the_whole_trace_before_steps_are_found_keeps_it(
    many_steps: Path, monkeypatch: pytest.MonkeyPatch, keys: str
) -> None:
    go_on, found = threading.Event(), Session.few_steps
    late = lambda session: found(session) if go_on.wait(60) else None  # noqa: E731
    async with running(many_steps) as pilot:
        monkeypatch.setattr(Session, "few_steps", late)
        monkeypatch.setattr(Session, "known_few_steps", None)
        await pilot.press("2", *keys.split())
        await pilot.pause()
        go_on.set()
        await settled(pilot)
        screen = pilot.app.front  # type: ignore[attr-defined]
        assert tuple(screen.model.window) == screen.model.extent
        assert "shown: steps" not in text(pilot)


@needs_reports
async def test_a_long_session_opens_on_its_work_and_the_rest_is_one_key_away() -> None:
    path = REPORTS / "pytorch-nccl-2gpu-2026.2.sqlite"
    async with running(path) as pilot:
        await pilot.press("2")
        await settled(pilot)
        assert "shown: GPU work, 299.9 ms of 119.4 s; 0: all" in text(pilot)
        assert "60.0965-60.4264 s" in text(pilot)
        await pilot.press("0")
        await settled(pilot)
        assert "GPU work takes 299.9 ms of 119.4 s: f fits it" in text(pilot)
        await pilot.press("backspace")
        await settled(pilot)
        assert "60.0965-60.4264 s" in text(pilot)


@needs_reports
@pytest.mark.parametrize(
    "name",
    [
        "windows-streams-2022.1",
        "cuda-graph-2025.5",
    ],
)
async def test_real_reports_survive_a_walk(name: str) -> None:
    keys = ["2", "f", "tab", ".", "w", "enter", "escape", "v", "right", "v", "c", "P", "space"]
    keys += ["x", "#", "n", "escape", "[", ")", "s", "0"]
    async with running(REPORTS / f"{name}.sqlite", size=(120, 30)) as pilot:
        await pilot.press(*keys[:3])
        await settled(pilot)
        await pilot.press(*keys[3:])
        await settled(pilot)
        body = text(pilot)
        assert "internal error" not in body
        assert "Timeline" in body


async def test_a_sample_stays_until_the_rows_of_the_devices_are_exact(
    demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gpu(pilot: Pilot[int]) -> str:
        return next(row for row in rows(pilot) if "GPU 0" in row and "nsys-tui" not in row)

    async with running(demo) as pilot:
        await pilot.press("2")
        await settled(pilot)
        screen: Any = pilot.app.screen
        report, exact = screen.report, gpu(pilot)
        explained = screen.model.lanes.explained
        screen.show_report()
        lanes = replace(screen.model.lanes, explained=explained)
        sample = sample_tracks(report.sampled_operations(300))
        screen.put_lanes(lanes.built("sample", sample, {}))
        screen.builder.draw()
        await settled(pilot)
        estimated = gpu(pilot)
        assert "from a sample" in text(pilot)
        with monkeypatch.context() as held:
            held.setattr(screen, "compute", lambda *_: None)
            screen.builder.built(
                "operations", Ready(*part_tracks(screen.session.memo, report, "operations"))
            )
            await pilot.pause(0.2)
            assert gpu(pilot) == estimated != exact
        screen.builder.waiting.discard("devices")
        screen.builder.built("devices", Ready(*part_tracks(screen.session.memo, report, "devices")))
        await settled(pilot)
        assert gpu(pilot) == exact
        assert "from a sample" not in text(pilot)


@pytest.mark.parametrize(("pause", "apart"), [(60.0, False), (1e-6, True)])
async def test_after_a_sample_the_exact_rows_of_the_gpus_are_drawn_before_all_else(
    handmade: Path, monkeypatch: pytest.MonkeyPatch, pause: float, apart: bool
) -> None:
    """With the clock out of the way: either all that can wait does, or nothing has to."""
    drawn: list[tuple[bool, set[str]]] = []
    ordered: list[str] = []
    building: dict[threading.Thread, str] = {}
    show, order, build = LaneBuilder._show, Lanes.arranged, LaneBuilder.make

    def shown(builder: LaneBuilder, whole: Arranged, found: Filtered) -> None:
        tracks = found.lineup.tracks
        drawn.append((any(t.estimate for t in tracks), {t.part for t in tracks if t.part}))
        show(builder, whole, found)

    def made(builder: LaneBuilder, session: Any, report: Any, part: str) -> Ready | None:
        building[threading.current_thread()] = part
        return build(builder, session, report, part)

    def put_in_order(lanes: Lanes) -> Arranged:
        ordered.append(building.pop(threading.current_thread(), ""))
        return order(lanes)

    async with running(handmade) as pilot:
        await pilot.press("2")
        await settled(pilot)
        screen: Any = pilot.app.screen
        session = screen.session
        for name in ("TOGETHER", "AT_ONCE", "SHARE"):
            monkeypatch.setattr(lane_builder, name, pause)
        monkeypatch.setattr(LaneBuilder, "_draw_waiting", lambda _: None)
        monkeypatch.setattr(LaneBuilder, "_show", shown)
        monkeypatch.setattr(LaneBuilder, "make", made)
        monkeypatch.setattr(Lanes, "arranged", put_in_order)
        session.loaded, loaded = [], session.loaded
        session.sample = screen.report.sampled_operations(300)
        screen.show_report()
        screen.part_loaded("sample")
        await settled(pilot)
        session.loaded = loaded
        for part in loaded:
            screen.part_loaded(part)
        screen.load_finished()
        await settled(pilot)
    first, second, *others = drawn
    assert first == (True, {"operations"})
    assert second == (False, {"operations", "ranges"}), "with what is built before them"
    assert ordered[1] == "devices", "by their own worker: no other is waited for"
    assert drawn[-1] == (False, {"operations", "ranges", "api", "projected"})
    assert len(others) > 1 or not apart


async def test_a_loaded_report_is_drawn_once_when_the_screen_is_visited_first(
    handmade: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []
    draw = LaneBuilder.draw

    def noted(builder: LaneBuilder) -> None:
        drawn.append(len(builder.lanes.parts))
        draw(builder)

    monkeypatch.setattr(lane_builder, "AT_ONCE", 60.0)
    monkeypatch.setattr(LaneBuilder, "draw", noted)
    async with running(handmade) as pilot:
        while not pilot.app.session.finished:  # type: ignore[attr-defined]
            await pilot.pause(0.01)
        await pilot.press("2")
        await settled(pilot)
        assert len(drawn) == 1
        assert "str 13" in text(pilot)


async def test_what_is_built_is_drawn_while_something_lasts(
    handmade: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def slow(report: Any) -> Any:
        go_on.wait(60)
        return {}

    monkeypatch.setattr(lane_builder, "AT_ONCE", 0.2)
    monkeypatch.setattr(lane_builder, "explained_gaps", slow)
    async with running(handmade) as pilot:
        await pilot.press("2")
        await until(lambda: "str 13" in text(pilot))
        assert not go_on.is_set()
        go_on.set()
        await settled(pilot)


async def test_two_streams_share_a_row_where_half_blocks_can_be_drawn(demo: Path) -> None:
    from nsys_tui.config import Config, DisplayConfig

    config = Config(display=DisplayConfig(theme="dark", density="compact"))
    lines = await frame(demo, (160, 45), "2", config=config, terminal=FANCY)
    row = next(line for line in lines if "str 7+13" in line)
    assert "▄" in row
    plain = await frame(demo, (160, 45), "2", config=config)
    assert not any("str 7+13" in line for line in plain), "ASCII has no half blocks"


async def test_both_lanes_of_a_shared_row_are_searched_selected_and_summed(demo: Path) -> None:
    from nsys_tui.config import Config, DisplayConfig

    config = Config(display=DisplayConfig(theme="dark", density="compact"))
    async with running(demo, size=(160, 45), config=config, terminal=FANCY) as pilot:
        for key in ("2", "f", "/", *"ampere", "enter"):
            await pilot.press(key)
            await settled(pilot)
        screen: Any = pilot.app.front  # type: ignore[attr-defined]
        row = next(line for line in rows(pilot) if "str 7+13" in line)
        tracks = screen.model.lanes.whole.lineup.tracks
        lane = next(t for t in tracks if t.label.startswith("str 13") and not t.device)
        assert f" {len(screen.model.found.matches[lane.key]):,}" in row
        model = screen.model
        screen.take(areas.select_area(model, model.trace.span, (model.lane_key, "gpu:0")))
        await settled(pilot)
        assert lane.key in pilot.app.state.selection.lanes  # type: ignore[attr-defined]


async def test_ranges_keep_a_colour_of_their_own_if_it_can_be_read(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "own.sqlite").process(100, "train")
    synth.nvtx("bright", 0, 100 * US, color=0xFF00FF00).nvtx("dim", 100 * US, 200 * US)
    synth.nvtx("unreadable", 200 * US, 300 * US, color=0xFF101010)
    async with running(synth.write(), terminal=FANCY) as pilot:
        await pilot.press("2")
        await settled(pilot)
        canvas = pilot.app.front.canvas  # type: ignore[attr-defined]
        line = next(n for n, row in enumerate(canvas._rows) if "bright" in row.text())
        grounds = {
            segment.text.strip(): str(segment.style.bgcolor.name)
            for segment in canvas._strips[line]
            if segment.text.strip() in ("bright", "dim", "unreadable")
        }
        assert grounds["bright"].lower() == "#00ff00"
        # The category's colour, one of them a luminance step away.
        assert "#00ff00" not in (grounds["dim"].lower(), grounds["unreadable"].lower())
        assert grounds["dim"] != "#101010"
        assert grounds["unreadable"] != "#101010"


async def test_a_terminal_that_was_too_small_for_a_while_changes_nothing(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        await pilot.press("2", "f", ".")
        await settled(pilot)
        before = text(pilot)
        await pilot.resize_terminal(70, 20)
        await settled(pilot)
        assert "needs 80x24" in text(pilot)
        await pilot.resize_terminal(160, 45)
        await settled(pilot)
        assert text(pilot) == before


async def test_heading_and_lanes_follow_the_size_of_the_pane(handmade: Path) -> None:
    async with running(handmade, size=(160, 45)) as pilot:
        column = re.compile(r"1 col = (.*?)  cursor")
        await pilot.press("2", "m", "a")
        await settled(pilot)
        before = column.findall(text(pilot))
        await pilot.press("f10")
        await settled(pilot)
        wide = column.findall(text(pilot))
        assert wide not in ([], before)
        await pilot.press("f10")
        await settled(pilot)
        assert column.findall(text(pilot)) == before


async def test_the_peak_of_memory_stands_in_its_label_on_a_narrow_screen(demo: Path) -> None:
    wide = "\n".join(await frame(demo, (160, 45), "2", "f"))
    narrow = "\n".join(await frame(demo, (80, 24), "2", "f"))
    peak = re.search(r"memory in use .* peak (\S+ [kMG]?B)", wide)
    assert peak is not None
    assert f" mem {peak[1]} " in narrow
