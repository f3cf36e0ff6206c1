from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make
from paths import REPORTS, needs_reports
from textual.events import MouseScrollDown
from textual.geometry import Offset
from tui.frames import FANCY, frame, rows, running, settled, text

from nsys_tui.analysis.estimate import sampled_kernels
from nsys_tui.analysis.window import Scope
from nsys_tui.model.kernel_names import short_names
from nsys_tui.render.spark import MARGIN
from nsys_tui.state import Selection, Window
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

SQL = """
    select s.value, count(*), sum(k.end - k.start), min(k.end - k.start), max(k.end - k.start)
    from CUPTI_ACTIVITY_KIND_KERNEL k join StringIds s on s.id = k.shortName
    where k.start < ? and k.end > ? group by s.value order by 3 desc
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("demo"), steps=4).path


def kernels_in_sql(path: Path, window: tuple[int, int] = (-(2**62), 2**62)) -> list[Any]:
    database = sqlite3.connect(path)
    found = database.execute(SQL, (window[1], window[0])).fetchall()
    database.close()
    return found


async def ready(pilot: Pilot[int], *keys: str) -> Any:
    for key in ("3", *keys):
        await pilot.press(key)
        await settled(pilot)
    return pilot.app.screen


def line_of(pilot: Pilot[int], word: str) -> str:
    return next(line for line in rows(pilot) if word in line)


async def test_the_wheel_scrolls_a_table(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot)
        await pilot._post_mouse_events([MouseScrollDown], offset=Offset(20, 8))
        await settled(pilot)
        assert screen.table.scroll_offset.y > 0
        assert screen.table.cursor == 0


async def test_kernels_at_80x24_look_like_the_drawing(demo: Path) -> None:
    lines = await frame(demo, (80, 24), "3")
    assert lines[1].startswith("1 Over 2 Time [3 Kern] 4 NVTX")
    assert lines[2].startswith("+- > Kernels 33 of 33  group: name")
    assert lines[2].rstrip("-+ ").endswith("sort: total desc")
    assert lines[3].split() == [
        "|",
        "of",
        "sum",
        "total",
        "v",
        "calls",
        "avg",
        "p99",
        "when",
        "name",
        "|",
    ]
    assert lines[4].startswith("|>")
    assert lines[16].startswith("+- Durations of")
    assert all(line.isascii() and len(line) == 80 for line in lines)


async def test_figures_are_those_of_plain_sql(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        await ready(pilot)
        for name, count, total, least, most in kernels_in_sql(demo)[:12]:
            if len(name) > 24:
                continue
            line = line_of(pilot, name)
            assert f" {count:,} " in line
            for figure in (total, least, most, round(total / count)):
                assert format_duration(figure) in line, (name, figure)


async def test_wide_frame_shows_instances_and_facts_beside_each_other(demo: Path) -> None:
    body = "\n".join(await frame(demo, (160, 45), "3"))
    for header in ("med", "stddev", "GPU", "stream", "Durations of", "Instances", "grid 8,1,1"):
        assert header in body
    assert "called by" in body


async def test_figures_of_a_sample_are_marked_and_replaced_in_place(demo: Path) -> None:
    async with running(demo, terminal=FANCY) as pilot:
        screen = await ready(pilot)
        exact = rows(pilot)[2:15]
        report = screen.report
        sample = report.sampled_operations()
        made = sampled_kernels(report, sample, Scope(), screen.state.display.names)
        screen._show_estimate(made)
        await settled(pilot)
        lines = rows(pilot)
        assert "≈ from a sample" in lines[2]
        assert lines[3] == exact[1], "the header stands where it will stand"
        assert all("≈" in line for line in lines[4:8])
        assert not screen.table.check_action("export_view", ())
        await pilot.press("down")
        name = screen._labels[screen.table.row]
        screen.show_result(screen.report, screen.result)
        await settled(pilot)
        assert "≈" not in text(pilot)
        assert screen.result.labels[screen.table.row] == name
        assert rows(pilot)[3] == exact[1]


async def test_sorting_keeps_the_cursor_on_its_row_and_turns_round(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot, "down", "down", "down")
        table = screen.table
        label = screen.result.labels[table.row]
        await pilot.press(">", "s")
        await settled(pilot)
        assert screen.result.labels[table.row] == label
        calls = [screen.result.count[table.row_at(i)] for i in range(table.shown)]
        assert calls == sorted(calls, reverse=True)
        await pilot.press("s")
        await settled(pilot)
        assert "sort: calls asc" in text(pilot)
        assert screen.result.labels[table.row] == label
        await pilot.press("<", "<", "s")
        await settled(pilot)
        assert "| of sumv " in rows(pilot)[3]


async def test_search_counts_goes_round_and_becomes_a_filter(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot)
        await pilot.press("slash", *"gemm")
        await settled(pilot)
        assert "7 of 33" in text(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert "/gemm: 1 of 7" in text(pilot)
        await pilot.press("N")
        await settled(pilot)
        assert "/gemm: 7 of 7" in text(pilot)
        await pilot.press("n", "slash", "ctrl+f")
        await settled(pilot)
        assert "7 of 33  filter: gemm" in text(pilot)
        assert pilot.app.state.filter.pattern == "gemm"  # type: ignore[attr-defined]
        await pilot.press("escape")
        await settled(pilot)
        assert screen.table.shown == 33


async def test_a_filter_that_hides_all_says_so(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        await ready(pilot)
        await pilot.press("slash", *"xyzzy", "ctrl+f")
        await settled(pilot)
        assert "the filter hides all 33 rows: esc clears it" in text(pilot)


async def test_frequency_counts_a_column_and_enter_filters_by_a_value(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot)
        while screen.table.columns[screen.table.column].header != "GPU":
            await pilot.press(">")
        await pilot.press("F")
        await settled(pilot)
        assert "Frequency of GPU: 2 values" in text(pilot)
        await pilot.press("down", "enter")
        await settled(pilot)
        assert screen.table.shown < 33
        assert "GPU = 0" in text(pilot)
        await pilot.press("escape")
        await settled(pilot)
        assert screen.table.shown == 33


async def test_groups_cycle_and_add_up_to_the_same_time(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot)
        total, seen = int(screen.result.total.sum()), []
        for _ in range(6):
            seen.append(str(screen.result.by))
            assert int(screen.result.total.sum()) == total
            await pilot.press("g")
            await settled(pilot)
        assert seen == ["name", "name, grid, block", "stream", "GPU", "category", "NVTX range"]
        assert "group: name" in text(pilot)


async def test_instances_open_sort_and_close(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot, "space")
        assert screen.instances.has_focus
        assert "+- > Instances" in text(pilot)
        await pilot.press(">", "s")
        await settled(pilot)
        ops, at = screen.report.operations, screen.detail.rows
        order = [at[screen.instances.row_at(i)] for i in range(screen.instances.shown)]
        lengths = [int(ops.end[row] - ops.start[row]) for row in order]
        assert lengths == sorted(lengths, reverse=True)
        await pilot.press("escape")
        await settled(pilot)
        assert screen.table.has_focus
        assert "Durations of" in text(pilot)


async def test_enter_shows_the_longest_instance_and_escape_returns_as_it_was(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot, ">", "s", "end", "up", "up")
        before = screen.table.view()
        rows_ = screen.result.instances(screen.table.row)
        ops = screen.report.operations
        longest = rows_[(ops.end[rows_] - ops.start[rows_]).argmax()]
        frame_before = rows(pilot)[2:16]
        await pilot.press("enter")
        await settled(pilot)
        app: Any = pilot.app
        assert app.front.SCREEN == "timeline"
        assert app.state.selection.span.start == int(ops.start[longest])
        assert app.state.window.start <= ops.start[longest] < app.state.window.end
        await pilot.press("escape")
        await settled(pilot)
        assert app.front is screen
        assert app.state.window is None
        assert screen.table.view() == before
        assert rows(pilot)[2:16] == frame_before


async def test_enter_on_an_instance_shows_that_one(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot, "space", "down", "down")
        await pilot.press("enter")
        await settled(pilot)
        ops, row = screen.report.operations, screen.detail.rows[2]
        selection = pilot.app.state.selection  # type: ignore[attr-defined]
        assert selection.kind == "operation"
        assert selection.key[1] == int(ops.rowid[row])


async def test_the_shared_window_clips_the_table_and_counts_straddling(demo: Path) -> None:
    name, *_ = kernels_in_sql(demo)[0]
    database = sqlite3.connect(demo)
    spans = database.execute(
        "select k.start, k.end from CUPTI_ACTIVITY_KIND_KERNEL k join StringIds s"
        " on s.id = k.shortName where s.value = ? order by 1",
        (name,),
    ).fetchall()
    lo, hi = (spans[3][0] + spans[3][1]) // 2, spans[40][1]
    total = sum(min(end, hi) - max(start, lo) for start, end in spans if start < hi and end > lo)
    begun = sum(lo <= start < hi for start, _ in spans)
    straddling = sum(start < lo < end for start, end in spans)
    async with running(demo, size=(160, 45)) as pilot:
        app: Any = pilot.app
        app.show("kernels", window=Window(lo, hi))
        await settled(pilot)
        await settled(pilot)
        (shown,) = short_names([(name, name)])
        line = line_of(pilot, shown)
        assert format_duration(total) in line
        assert f"{begun:,} +{straddling}" in line
        await pilot.press("0")
        await settled(pilot)
        assert f" {len(spans):,} " in line_of(pilot, shown)


async def test_an_empty_window_says_how_to_leave_it(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        app: Any = pilot.app
        app.show("kernels", window=Window(0, 1_000))
        await settled(pilot)
        assert "no GPU work in this window: 0 shows the whole trace" in text(pilot)


async def test_a_name_chosen_elsewhere_is_under_the_cursor(demo: Path) -> None:
    recorded = kernels_in_sql(demo)[5][0]
    (name,) = short_names([(recorded, recorded)])
    async with running(demo, size=(80, 24)) as pilot:
        app: Any = pilot.app
        app.show("kernels", selection=Selection("kernel_name", (name,), label=name))
        await settled(pilot)
        screen = app.front
        assert screen.result.labels[screen.table.row] == name


async def test_columns_that_do_not_fit_are_reached_by_scrolling(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        await ready(pilot)
        assert "stddev" not in text(pilot)
        for _ in range(12):
            await pilot.press(">")
        await settled(pilot)
        assert "stream" in rows(pilot)[3]
        for _ in range(12):
            await pilot.press("<")
        await settled(pilot)
        assert rows(pilot)[3].startswith("| of sum")


async def test_mouse_sorts_by_a_header_and_moves_the_cursor(demo: Path) -> None:
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot)
        await pilot.click(offset=(rows(pilot)[3].index("calls") + 1, 3))
        await settled(pilot)
        assert "sort: calls desc" in text(pilot)
        await pilot.click(offset=(20, 7))
        await settled(pilot)
        assert screen.table.cursor == 3


async def test_copying_gives_the_cell_and_the_row(
    demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []
    async with running(demo, size=(80, 24)) as pilot:
        screen = await ready(pilot)
        monkeypatch.setattr(pilot.app, "copy", lambda value, _what: copied.append(value))
        await pilot.press("y", "Y")
        await settled(pilot)
        total = format_duration(int(screen.result.total[screen.table.row]))
        assert copied[0] == total
        cells = copied[1].split("\t")
        assert cells[1] == total
        assert cells[-1] == screen.result.labels[screen.table.row]


async def test_resizing_live_keeps_cursors_focus_and_sort(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot, "down", "down", "s", "space", "down", "down", "down")
        label, instance = screen.result.labels[screen.table.row], screen.instances.row
        for size in ((80, 24), (120, 30)):
            await pilot.resize_terminal(*size)
            await settled(pilot)
            assert screen.result.labels[screen.table.row] == label
            assert screen.instances.row == instance
            assert screen.instances.has_focus
            assert "sort: total asc" in text(pilot)


async def test_hostile_names_are_text(small: Path) -> None:
    body = "\n".join(await frame(small, (160, 45), "3", terminal=FANCY))
    assert "[bold_red]evil[/]" in body
    assert "\x1b" not in body
    assert "\x07" not in body


async def test_names_follow_the_style(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot, "D", "D")
        assert any("(" in label for label in screen.result.labels)


@pytest.mark.parametrize("size", [(120, 30), (240, 67)])
async def test_every_size_fills_the_screen(demo: Path, size: tuple[int, int]) -> None:
    lines = await frame(demo, size, "3")
    assert {len(line) for line in lines} == {size[0]}
    assert len(lines) == size[1]


@needs_reports
@pytest.mark.parametrize("name", ["nvtx-only-2022.4", "no-events"])
async def test_reports_without_kernels_say_what_would_record_them(name: str) -> None:
    body = "\n".join(await frame(REPORTS / f"{name}.sqlite", (80, 24), "3"))
    assert "no kernels in this report: record with nsys profile --trace=cuda" in body


@pytest.mark.parametrize(("size", "more"), [((240, 67), True), ((160, 24), False)])
async def test_what_few_rows_leave_of_a_tall_screen_shows_more_instances(
    demo: Path, size: tuple[int, int], more: bool
) -> None:
    async with running(demo, size=size) as pilot:
        await pilot.press("3")
        await settled(pilot)
        screen: Any = pilot.app.screen
        before = screen.instances.size.height
        screen.table.ask_filter("adamw")
        await settled(pilot)
        assert screen.table.shown == 1
        assert screen.table.size.height > 1
        assert (screen.instances.size.height > before) is more
        screen.table.ask_filter("")
        await settled(pilot)
        assert screen.table.shown > 1
        assert screen.instances.size.height == before


async def test_a_click_on_a_bar_goes_to_the_longest_instance_in_it(demo: Path) -> None:
    async with running(demo, size=(160, 45)) as pilot:
        screen = await ready(pilot)
        detail = screen.detail
        durations = detail.report.operations.durations(detail.rows)
        edges, counts = detail.durations.edges, detail.durations.counts
        for place in (int(counts.argmax()), len(counts) - 1):
            await pilot.click("#histogram", offset=(1 + MARGIN + place, 2))
            await settled(pilot)
            low, high = edges[place], edges[place + 1]
            inside = [d for d in durations if low <= d < high or (d == high == edges[-1])]
            assert durations[screen.instances.row] == max(inside)
        before = screen.instances.row
        await pilot.click("#histogram", offset=(1 + MARGIN + int((counts == 0).argmax()), 2))
        await settled(pilot)
        assert screen.instances.row == before, "nobody stands there"
