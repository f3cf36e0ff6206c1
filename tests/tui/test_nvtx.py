from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make
from paths import REPORTS, needs_reports
from synth import Synth
from tui.frames import frame, rows, running, settled, text

from nsys_tui.analysis.timeline.events import key_of
from nsys_tui.render.spark import bar_column
from nsys_tui.state import Selection, Window
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

STEPS = 6
HOST = """
    select count(*), sum(end - start) from NVTX_EVENTS
    where text like ? and end is not null and eventType = 59
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("demo"), steps=STEPS).path


def host_in_sql(path: Path, pattern: str) -> tuple[int, int]:
    database = sqlite3.connect(path)
    count, total = database.execute(HOST, (pattern,)).fetchone()
    database.close()
    return count, total


async def ready(pilot: Pilot[int], *keys: str) -> Any:
    for key in ("4", *keys):
        await pilot.press(key)
        await settled(pilot)
    return pilot.app.screen


def line_of(pilot: Pilot[int], word: str) -> str:
    return next(line for line in rows(pilot) if word in line)


async def test_without_gpu_work_the_tree_is_of_host_time(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).nvtx("solve", 0, 1000)
    lines = await frame(synth.write(), (80, 24), "4")
    assert lines[2].startswith("+- > NVTX tree (host time) ---")


async def test_a_domain_that_all_ranges_share_takes_no_room(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).domain(1, "edu.university.parallel.tools")
    for start, name in enumerate(("main->init", "main->solve")):
        synth.nvtx(name, 1000 * start, 1000 * start + 900, domain=1)
    lines = await frame(synth.write(), (80, 24), "4")
    assert [line[1:15] for line in lines[4:6]] == [">- main->init ", " - main->solve"]
    lines = await frame(synth.nvtx("idle", 5000, 5100).write(), (80, 24), "4")
    assert "edu.university" in lines[4]


async def test_ranges_that_only_reach_into_the_window_are_counted_apart(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10).nvtx("solve", 0, 1000).nvtx("step", 600, 700)
    async with running(synth.write(), size=(100, 24)) as pilot:
        app: Any = pilot.app
        await ready(pilot)
        app.show("nvtx", window=Window(500, 1000))
        await settled(pilot)
        assert " count +straddling " in text(pilot)
        assert " 0 +1 " in line_of(pilot, "solve")
        assert re.search(r" step +1 +100 ns", line_of(pilot, "step"))
        await pilot.press("i")
        await settled(pilot)
        assert " 0 +1 " in line_of(pilot, "solve")


async def test_nvtx_at_80x24_looks_like_the_drawing(demo: Path) -> None:
    lines = await frame(demo, (80, 24), "4")
    assert "[4 NVTX]" in lines[1]
    assert lines[2].startswith("+- > NVTX tree (gpu-projected) ---")
    assert lines[2].rstrip("-+ ").endswith("sort: total desc")
    header = lines[3].split()
    assert header == [
        "|",
        "range",
        "count",
        "total",
        "v",
        "self",
        "GPU",
        "busy",
        "idle",
        "when",
        "|",
    ]
    assert lines[4].startswith("|>v Train step 0..6")
    assert "per iteration (7)" in lines[16]
    assert all(line.isascii() and len(line) == 80 for line in lines)


async def test_figures_are_those_of_plain_sql(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot)
        for pattern, label in (("Train step %", "Train step 0..6"), ("read shard", "read shard")):
            count, total = host_in_sql(demo, pattern)
            line = line_of(pilot, label)
            assert f" {count} " in line
            assert format_duration(total) in line
        assert "Kernels under it" in text(pilot)
        assert screen.under.shown


async def test_similar_names_are_one_line_or_one_each(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot)
        assert "(7 similar)" in text(pilot)
        await pilot.press("g")
        await settled(pilot)
        assert "similar)" not in text(pilot)
        assert "Train step 3" in text(pilot)
        assert screen.by_path.shown > 6


async def test_folds_open_close_and_lead_in_and_out(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot)
        tree = screen.by_path
        opened = tree.shown
        await pilot.press("h")
        closed = tree.shown
        assert closed < opened
        await pilot.press("l")
        assert tree.shown == opened
        await pilot.press("l")
        child = tree.node
        assert int(tree.trie.parent[child]) == tree.row_at(0)
        await pilot.press("h", "h")
        assert tree.cursor == 0
        await pilot.press("E")
        assert tree.shown > opened
        await pilot.press("E")
        assert tree.shown == closed
        await pilot.press("space")
        assert tree.shown > closed


async def test_uninteresting_lines_hide_behind_one_that_opens(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot)
        tree = screen.by_path
        before = tree.shown
        await pilot.press("u")
        await settled(pilot)
        assert " small" in text(pilot)
        assert tree.shown < before
        hidden = [i for i in range(tree.shown) if tree.row_at(i) < 0]
        named = sum(map(int, re.findall(r"\.\.\. (\d+) small\b", text(pilot))))
        assert named == before - (tree.shown - len(hidden))
        for position in reversed(hidden):
            tree.put_cursor(position)
            await pilot.press("enter")
        await settled(pilot)
        assert tree.shown >= before
        await pilot.press("u")
        assert tree.shown == before


async def test_search_opens_what_it_finds(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot, "h")
        await pilot.press("slash", *"gelu", "enter")
        await settled(pilot)
        tree = screen.by_path
        assert "gelu" in screen.result.labels[tree.node]
        first = tree.node
        await pilot.press("n")
        assert tree.node != first
        await pilot.press("N")
        assert tree.node == first
        await pilot.press("escape")
        assert not tree.pattern


async def test_a_filter_keeps_the_paths_to_what_it_shows(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot)
        await pilot.press("slash", *"gelu", "ctrl+f")
        await settled(pilot)
        labels = [screen.result.labels[n] for n in map(screen.by_path.row_at, range(4))]
        assert labels[0].startswith("Train step")
        assert any("Layer" in label for label in labels)
        assert "read shard" not in text(pilot)
        await pilot.press("escape")
        await settled(pilot)
        labels = [
            screen.result.labels[screen.by_path.row_at(i)] for i in range(screen.by_path.shown)
        ]
        assert "read shard" in labels


async def test_frequency_filters_the_tree_and_folds_work_below_a_filter(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot, "<")
        tree = screen.by_path
        before, folds = tree.shown, tree.view().open
        assert tree.columns[tree.column].header == "count"
        await pilot.press("F")
        await settled(pilot)
        assert "Frequency of count" in text(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert tree.arrangement.filters
        kept = tree.shown
        assert kept != before
        tree.put_cursor(0)
        await pilot.press("space")
        assert tree.shown < kept
        await pilot.press("escape")
        await settled(pilot)
        assert tree.shown == before
        assert tree.view().open == folds


async def test_ranges_by_name_count_recursion_once(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot, "i")
        assert "NVTX by name" in text(pilot)
        count, total = host_in_sql(demo, "gpt2_forward")
        line = line_of(pilot, "gpt2_forward")
        assert f" {count} " in line
        assert format_duration(total) in line
        await pilot.press("F")
        await settled(pilot)
        assert "Frequency of" in text(pilot)
        await pilot.press("escape", "escape")
        await settled(pilot)
        assert not screen.is_flat


async def test_iterations_are_walked_and_the_slow_one_is_named(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot, "right_parenthesis", "right_parenthesis")
        assert screen.step == 1
        assert "Train step 1 61.2" in text(pilot)
        assert "(z=" in rows(pilot)[20]
        await pilot.press("left_parenthesis")
        await settled(pilot)
        assert screen.step == 0
        assert "Train step 0 90.03 ms  +" in (warm_up := rows(pilot)[20])
        assert "in no statistics" in warm_up
        await pilot.press("enter")
        await settled(pilot)
        assert pilot.app.state.selection.label == "Train step 0"  # type: ignore[attr-defined]


async def test_enter_shows_the_longest_range_and_escape_returns_as_it_was(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot, "down", "down")
        before, seen = screen.by_path.view(), rows(pilot)[2:16]
        ranges, instances = screen.report.ranges, screen.detail.instances
        longest = instances[ranges.duration[instances].argmax()]
        await pilot.press("enter")
        await settled(pilot)
        app: Any = pilot.app
        assert app.front.SCREEN == "timeline"
        assert app.state.selection.key == key_of(ranges, longest)
        await pilot.press("escape")
        await settled(pilot)
        assert app.front is screen
        assert screen.by_path.view() == before
        assert rows(pilot)[2:16] == seen


async def test_instances_of_a_range(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot, "I")
        assert screen.instances.has_focus
        assert screen.instances.shown == host_in_sql(demo, "Train step %")[0] + 2, "two are open"
        await pilot.press("escape")
        await settled(pilot)
        assert screen.by_path.has_focus


async def test_a_range_selected_elsewhere_is_revealed(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        app: Any = pilot.app
        app.show("nvtx", selection=Selection("range_name", ("gelu_forward",)))
        await settled(pilot)
        screen = app.front
        assert screen.result.labels[screen.by_path.node] == "gelu_forward"
        ranges = screen.report.ranges
        row = next(i for i in range(len(ranges)) if ranges.names[ranges.name[i]] == "Layer 3")
        picked = Selection("range", key_of(ranges, row))
        app.show("nvtx", selection=picked)
        await settled(pilot)
        assert screen.result.labels[screen.by_path.node].startswith("Layer 0..11")


async def test_sorting_orders_siblings(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot, "<", "s")
        tree = screen.by_path
        tops = [tree.row_at(i) for i in range(tree.shown) if tree.trie.depth[tree.row_at(i)] == 1]
        counts = [int(screen.result.tree.count[node]) for node in tops]
        assert counts == sorted(counts, reverse=True)
        assert "sort: count desc" in text(pilot)


async def test_a_click_on_a_fold_mark_closes(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot)
        before = screen.by_path.shown
        await pilot.click(offset=(2, 4))
        await settled(pilot)
        assert screen.by_path.shown < before


async def test_enter_on_work_outside_ranges_goes_to_its_longest_kernel(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot)
        app: Any = pilot.app
        await pilot.press("end")
        await settled(pilot)
        assert "[no NVTX range]" in text(pilot)
        kernel = screen.detail.kernels.labels[0]
        await pilot.press("enter")
        await settled(pilot)
        assert app.screen.SCREEN == "timeline"
        assert app.state.selection.label == kernel
        assert app.state.window.start <= app.state.selection.span.start < app.state.window.end


async def test_a_click_on_a_bar_chooses_its_iteration(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot)
        steps = screen.detail.steps
        second = 1 + bar_column(1, len(steps), screen.query_one("#steps").room), 4
        await pilot.click("#steps", offset=second)
        await settled(pilot)
        assert screen.step == 1
        await pilot.click("#steps", offset=second, times=2)
        await settled(pilot)
        app: Any = pilot.app
        assert app.screen.SCREEN == "timeline"
        span, row = app.state.selection.span, steps.rows[1]
        assert span.start == app.session.report.ranges.start[row]


@pytest.mark.parametrize("size", [(120, 30), (160, 45), (240, 67)])
async def test_every_size_fills_the_screen(demo: Path, size: tuple[int, int]) -> None:
    lines = await frame(demo, size, "4")
    assert {len(line) for line in lines} == {size[0]}
    assert len(lines) == size[1]


@needs_reports
async def test_a_report_without_ranges_says_why() -> None:
    body = "\n".join(await frame(REPORTS / "uvm-migration-2025.1.sqlite", (80, 24), "4"))
    assert "NVTX was asked for; no range was seen" in body


@needs_reports
async def test_ranges_without_gpu_work_have_a_tree_too() -> None:
    lines = await frame(REPORTS / "nvtx-only-2022.4.sqlite", (80, 24), "4")
    line = next(line for line in lines if "find_centers" in line)
    assert "%" not in line


async def test_without_gpu_work_no_column_tells_of_gpus(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "nvtx.sqlite").process(1000).nvtx("load", 0, 1_000_000)
    lines = await frame(synth.write(), (160, 45), "4")
    assert lines[3].split()[:6] == ["|", "range", "count", "total", "v", "self"]
    assert not any("compute " in line or "idle" in line for line in lines[2:10])
