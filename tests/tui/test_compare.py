from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from synth import Synth
from training import Run
from tui.frames import FANCY, PLAIN, rows, running, settled, text, until

from nsys_tui import cli
from nsys_tui.analysis.compare.comparison import compare
from nsys_tui.analysis.compare.measure import measure
from nsys_tui.analysis.compare.plan import plan
from nsys_tui.analysis.window import Scope
from nsys_tui.capture.record import Record, ReportFile, State, Store, new_id
from nsys_tui.config import Config
from nsys_tui.errors import UsageError
from nsys_tui.export import measured_sides
from nsys_tui.reader import open_report
from nsys_tui.state import Filter, Mark, Selection, Window
from nsys_tui.ui.evidence import selection_of
from nsys_tui.ui.screens.compare.changes import change_text
from nsys_tui.ui.screens.compare.pair import Part
from nsys_tui.ui.screens.compare.panes import UNLIKE
from nsys_tui.ui.screens.compare.screen import CompareScreen
from nsys_tui.ui.session import Session
from nsys_tui.ui.terminal import Colours

if TYPE_CHECKING:
    from textual.pilot import Pilot

SIZES = [(80, 24), (160, 45)]
CHANGES = {-53.94: "-53.9%", 999.94: "+999.9%", 999.96: "11x", 18868.3: "190x", 2.1e6: "21.0kx"}


def test_a_change_of_any_size_has_room() -> None:
    assert {value: change_text(value) for value in CHANGES} == CHANGES


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    fused = (("gemm_kernel(float*)", 330), ("fused_adamw(float*)", 90))
    made = {
        "before": Run(jitter=0.004, seed=1),
        "after": Run(jitter=0.004, seed=2, names=fused),
        "noise": Run(jitter=0.004, seed=3),
        "single": Run(steps=1, step_name=""),
    }
    return {name: run.write(folder / f"{name}.sqlite") for name, run in made.items()}


async def press(pilot: Pilot[int], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


def screen(pilot: Pilot[int]) -> CompareScreen:
    found: Any = pilot.app.screen
    assert isinstance(found, CompareScreen)
    return found


def line_of(pilot: Pilot[int], part: str) -> str:
    """The row of a table; not a sentence about it."""
    return next(line for line in rows(pilot) if part in line and not line.startswith("| > "))


@pytest.mark.parametrize("size", SIZES)
async def test_frame_tells_verdict_figures_and_changes(
    runs: dict[str, Path], size: tuple[int, int]
) -> None:
    async with running(runs["before"], runs["after"], size=size) as pilot:
        await press(pilot, "7")
        lines = rows(pilot)
        assert len(lines) == size[1]
        assert {len(line) for line in lines} == {size[0]}
        assert lines[0].rstrip().endswith("A vs B")
        assert "7 C" in lines[1]
        assert lines[2].startswith("+- Compare  A: before.sqlite   B: after.sqlite ---")
        assert "aligned on: step -+" in lines[2]
        assert lines[3].startswith("| better: mean wall per step -")
        wall = line_of(pilot, "wall (11 steps)")
        # 4 x (300 + 120 + 80) us against 4 x (330 + 90) us, and 120 us beside the kernels.
        figures = [float(word) for word in wall.split()[4:8:2]]
        assert figures == pytest.approx([2.120, 1.800], rel=0.005)
        assert wall.rstrip(" |#").endswith("better")
        assert any("> softmax_kernel is gone, -479.8 us per step" in line for line in lines)
        body = text(pilot)
        assert f"by |delta|{'  < less  > more' * (size[0] < 100)}  threshold 1%" in body
        assert " gone " in line_of(pilot, "softmax_kernel")
        assert " new " in line_of(pilot, "fused_adamw")
        less, more = ("<<<", ">") if size[0] < 100 else ("-479.8 us  ####", "  ####")
        assert less in line_of(pilot, "softmax_kernel")
        assert more in line_of(pilot, "fused_adamw")
        assert "worse" in line_of(pilot, "gemm_kernel")


async def test_a_tall_screen_shows_both_timelines_locked(runs: dict[str, Path]) -> None:
    async with running(runs["before"], runs["after"], size=(160, 45)) as pilot:
        await press(pilot, "7")
        body = text(pilot)
        assert "- A: before.sqlite  step " in body
        assert "- B: after.sqlite  step " in body
        assert "a/d w/- move both, L unlocks" in body
        twins = screen(pilot).twins
        first, second = twins.windows
        assert first.width == second.width
        await press(pilot, "d")
        moved = twins.windows[0].start - first.start
        assert moved > 0
        assert twins.windows[1].start - second.start == moved
        await press(pilot, "w")
        assert twins.windows[0].width == twins.windows[1].width == first.width // 2
        await press(pilot, "L")
        assert "unlocked: L locks" in text(pilot)
        before = list(twins.windows)
        await press(pilot, "a")
        assert twins.windows[0] != before[0]
        assert twins.windows[1] == before[1]


async def test_enter_shows_both_timelines_and_escape_comes_back(runs: dict[str, Path]) -> None:
    async with running(runs["before"], runs["after"]) as pilot:
        await press(pilot, "7", "enter")
        body = text(pilot)
        assert "A: before.sqlite  step" in body
        assert "B: after.sqlite  step" in body
        assert body.count("[gemm") > 4
        assert "steady steps" not in body
        twins = screen(pilot).twins
        width = twins.windows[0].width
        await press(pilot, "tab", "s")
        assert twins.windows[1].width == 2 * width
        start = twins.windows[0].start
        await press(pilot, ")")
        assert twins.windows[0].start > start
        assert twins.windows[1].width == pytest.approx(width, rel=0.01)
        await press(pilot, "escape")
        assert "> Kernels" in text(pilot)
        assert "A: before.sqlite  step" not in text(pilot)


async def test_no_lane_is_scrolled_away_where_all_have_room(runs: dict[str, Path]) -> None:
    async with running(runs["before"], runs["after"]) as pilot:
        await press(pilot, "7", "enter")
        for canvas, half in zip(
            screen(pilot).twins.canvases, screen(pilot).twins.halves, strict=True
        ):
            assert half is not None
            hidden = max(0, len(half.tracks) - canvas.lanes_shown)
            assert canvas.scene.top <= hidden


@pytest.mark.parametrize("size", SIZES)
async def test_timelines_follow_the_row_under_the_cursor(
    runs: dict[str, Path], size: tuple[int, int]
) -> None:
    async with running(runs["before"], runs["after"], size=size) as pilot:
        await press(pilot, "7", "enter")
        for _ in range(2):
            change, twins = screen(pilot).table.change, screen(pilot).twins
            assert change is not None
            picks = [pick for pick in twins.picked if pick is not None]
            assert {selection_of(p.events, p.row, "short").label for p in picks} == {change.name}
            assert twins.step is not None
            await press(pilot, "down")


async def test_run_noise_and_further_runs_decide_the_verdict(runs: dict[str, Path]) -> None:
    async with running(runs["before"], runs["after"], size=(160, 45)) as pilot:
        await press(pilot, "7", "r", "ctrl+a", "ctrl+k", *"40%", "enter")
        assert "run noise 40% assumed" in text(pilot)
        await pilot.resize_terminal(80, 24)
        await settled(pilot)
        assert " inconclusive " in line_of(pilot, "gemm")
        await pilot.resize_terminal(160, 45)
        await settled(pilot)
        assert "| inconclusive: " in text(pilot)
        await press(pilot, "u", *str(runs["noise"]), "enter", "a")
        body = text(pilot)
        assert "A: before.sqlite and 1 more   B: after.sqlite" in body
        found = screen(pilot).result
        assert found is not None
        assert (found.comparison.a.run_count, found.comparison.b.run_count) == (2, 1)
        await press(pilot, "b")
        assert "A: after.sqlite   B: before.sqlite and 1 more" in text(pilot)


async def test_enter_on_a_timeline_opens_it(runs: dict[str, Path]) -> None:
    async with running(runs["before"], runs["after"]) as pilot:
        await press(pilot, "7", "enter", "tab", "tab", "enter")
        assert "[2 Time" in rows(pilot)[1]
        assert rows(pilot)[0].startswith(" nsys-tui | before.sqlite [after.sqlite]")
        assert pilot.app.state.window is not None  # type: ignore[attr-defined]


async def test_swap_exchanges_sides_and_verdicts(runs: dict[str, Path]) -> None:
    async with running(runs["before"], runs["after"]) as pilot:
        await press(pilot, "7", "b")
        assert "A: after.sqlite   B: before.sqlite" in rows(pilot)[2]
        assert rows(pilot)[3].startswith("| worse: mean wall per step +")
        assert " new " in line_of(pilot, "softmax_kernel")
        await press(pilot, "b")
        assert rows(pilot)[3].startswith("| better: mean wall per step -")


async def test_group_and_threshold_change_the_table(runs: dict[str, Path]) -> None:
    async with running(runs["before"], runs["after"]) as pilot:
        await press(pilot, "7")
        for title in (
            "Copies and memsets",
            "NVTX ranges",
            "CUDA API",
            "Idle time by cause",
            "Findings",
            "Kernels",
        ):
            await press(pilot, "g")
            assert f"> {title}" in text(pilot)
        await press(pilot, "t", *["backspace"] * 4, *"20%", "enter")
        assert "threshold 20%" in text(pilot)
        assert rows(pilot)[3].startswith("| same: mean wall per step -")
        await press(pilot, "t", *["backspace"] * 4, *"lots", "enter")
        assert "not a percentage" in text(pilot)


async def test_n_goes_from_change_to_change_and_search_takes_it_over(
    runs: dict[str, Path],
) -> None:
    async with running(runs["before"], runs["noise"]) as pilot:
        await press(pilot, "7", "n")
        assert "no row of this list is better or worse" in text(pilot)
    async with running(runs["before"], runs["after"]) as pilot:
        await press(pilot, "7")
        table, chosen = screen(pilot).table, screen(pilot)
        seen = []
        for _ in range(4):
            assert chosen.table.change is not None
            seen.append(chosen.table.change.words)
            await press(pilot, "n")
        assert set(seen) == {"gone", "new", "worse: slower"}
        await press(pilot, "/", *"gemm", "enter")
        assert chosen.table.change is not None
        assert chosen.table.change.name == "gemm_kernel"
        table.put_cursor(0)
        await press(pilot, "n")
        assert chosen.table.change.name == "gemm_kernel"


async def test_n_goes_to_new_and_solved_findings(runs: dict[str, Path], tmp_path: Path) -> None:
    lean = Run(jitter=0.004, seed=1, copies=0).write(tmp_path / "lean.sqlite")
    async with running(runs["before"], lean) as pilot:
        await press(pilot, "7", *"ggggg")
        assert "> Findings" in text(pilot)
        found = screen(pilot).result.comparison.findings  # type: ignore[union-attr]
        changed = [n for n, change in enumerate(found or ()) if change.status != "in both"]
        assert changed
        screen(pilot).table.put_cursor(len(found or ()) - 1)
        await press(pilot, "n")
        assert screen(pilot).table.row == changed[0]


async def test_flame_graph_tells_more_and_less_in_words(runs: dict[str, Path]) -> None:
    async with running(runs["before"], runs["after"]) as pilot:
        await press(pilot, "7", "v")
        body = text(pilot)
        assert "GPU time of B by NVTX path" in body
        assert "gemm_kernel +" in body
        assert "all -" in body
        await press(pilot, "down", "v")
        assert "A: before.sqlite  step" in text(pilot)


async def test_without_colour_the_flame_graph_fills_with_signs(runs: dict[str, Path]) -> None:
    mono = replace(PLAIN, colours=Colours.MONO)
    async with running(runs["before"], runs["after"], size=(140, 24), terminal=mono) as pilot:
        await press(pilot, "7", "v")
        body = text(pilot)
        assert "<<: less, >>: more" in body
        (longer,) = (line for line in rows(pilot) if "gemm_kernel +" in line)
        assert ">>>" in longer.partition("gemm_kernel +")[2]
        (whole,) = (line for line in rows(pilot) if line.startswith("|all -"))
        assert "<<<" in whole


async def test_one_report_asks_for_another_and_takes_a_baseline(runs: dict[str, Path]) -> None:
    assert cli.main(["baseline", "save", "main", str(runs["before"]), "--no-cache"]) == 0
    async with running(runs["after"]) as pilot:
        await press(pilot, "7")
        assert "enter: compare with another report" in text(pilot)
        assert "threshold" not in rows(pilot)[-1], "there is nothing to compare yet"
        await press(pilot, "enter", *"main", "enter")
        assert "A: baseline main   B: after.sqlite" in rows(pilot)[2]
        assert rows(pilot)[3].startswith("| better: mean wall per step -")
        await press(pilot, "enter")
        assert "a baseline holds no events" in text(pilot)


async def test_another_report_is_read_without_coming_to_the_front(runs: dict[str, Path]) -> None:
    async with running(runs["before"]) as pilot:
        await press(pilot, "7")
        screen(pilot).choosing.choose(runs["after"])
        await settled(pilot)
        assert "A: before.sqlite   B: after.sqlite" in rows(pilot)[2]
        assert rows(pilot)[0].startswith(" nsys-tui | [before.sqlite] after.sqlite")


async def test_another_screen_can_ask_for_a_comparison_with_an_earlier_report(
    runs: dict[str, Path],
) -> None:
    async with running(runs["after"]) as pilot:
        earlier = Selection("compare", (str(runs["before"]),))
        pilot.app.show("compare", selection=earlier)  # type: ignore[attr-defined]
        await settled(pilot)
        assert "A: before.sqlite   B: after.sqlite" in rows(pilot)[2]
        assert rows(pilot)[3].startswith("| better: mean wall per step -")


async def test_few_steps_say_so_and_timelines_stand_on_an_instance(
    runs: dict[str, Path],
) -> None:
    async with running(runs["single"], runs["before"], size=(160, 45)) as pilot:
        await press(pilot, "7")
        assert "| not comparable: " in text(pilot)
        assert "aligned on: name" in rows(pilot)[2]
        await press(pilot, "enter")
        assert "around one instance" in text(pilot)


async def test_different_work_takes_less_and_more_and_is_not_judged(tmp_path: Path) -> None:
    paths = [
        Run(scale=scale, gpu=gpu).write(tmp_path / f"{gpu}.sqlite")
        for gpu, scale in (("Slow", 2.0), ("Fast", 1.0))
    ]
    async with running(*paths) as pilot:
        await press(pilot, "7")
        assert "| not comparable: GPUs: Slow in A" in text(pilot)
        said = " ".join(re.sub(r"[|#]", " ", text(pilot)).split())
        assert "nsys-tui compare --force compares them anyway" in said
        assert "aligned on: step" in rows(pilot)[2]
        assert line_of(pilot, "wall (11 steps)").rstrip(" |#").endswith("less")
        assert " less " in line_of(pilot, "gemm_kernel")
        assert "few" not in line_of(pilot, "gemm_kernel")


async def test_what_was_compared_before_is_not_measured_again(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError("measured again")

    config = Config(cache=replace(Config().cache, dir=str(tmp_path)))
    frames = []
    for _ in range(2):
        async with running(runs["before"], runs["after"], config=config) as pilot:
            await press(pilot, "7")
            frames.append(text(pilot))
        for name in ("measure", "first_look"):
            monkeypatch.setattr(measured_sides, name, broken)
    assert "| better: mean wall per step -" in frames[0]
    assert frames[0] == frames[1]


async def test_export_writes_markdown_and_never_over_a_file(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with running(runs["before"], runs["after"]) as pilot:
        await press(pilot, "7", "e", "enter")
        assert (
            (tmp_path / "before.compare.md")
            .read_text()
            .startswith("### better: mean wall per step -")
        )
        await press(pilot, "e", "enter")

        def said() -> str:  # in the dialog, where a long path breaks anywhere
            lines = text(pilot).splitlines()
            top = next((line for line in lines if "+- Write" in line), "+- Write-+")
            box = slice(top.index("+- Write") + 1, top.index("-+") + 1)
            return "".join("".join(line[box] for line in lines).replace("|", "").split())

        await until(lambda: "before.compare.mdexistsalready" in said())


async def test_colours_are_blue_and_orange_and_words_stand_beside(runs: dict[str, Path]) -> None:
    async with running(runs["before"], runs["after"], terminal=FANCY) as pilot:
        await press(pilot, "7")
        theme = pilot.app.palette  # type: ignore[attr-defined]
        found = set()
        for y in range(24):
            for segment in pilot.app.screen._compositor.render_strips()[y]:
                word = segment.text.strip()
                if word in ("better", "worse") and segment.style and segment.style.color:
                    found.add((word, segment.style.color.name.upper()))
        expected = {(word, theme.colour(word).upper()) for word in ("better", "worse")}
        assert expected <= found


async def test_the_window_and_filter_of_each_report_count_and_are_said(
    runs: dict[str, Path],
) -> None:
    window = Window(2_100_000, 16_900_000)
    sides = [
        measure(plan(open_report(runs[name]), Scope(window=part)))
        for name, part in (("before", None), ("after", (window.start, window.end)))
    ]
    wall = compare(*sides).row("wall")
    assert wall is not None
    async with running(runs["before"], runs["after"]) as pilot:
        app: Any = pilot.app
        first, second = app.sessions
        await press(pilot, "7")
        everything = screen(pilot).result
        second.state = replace(second.state, window=window)
        app.sync()
        await settled(pilot)
        assert rows(pilot)[3].startswith("| only A: everything  B: 0.00210-0.01690 s")
        result = screen(pilot).result
        assert result is not None
        assert result.comparison.row("wall") == wall
        # The window holds fewer steps than the whole, but enough of them.
        assert 5 <= len(result.comparison.b.steps) < len(result.comparison.a.steps)
        await press(pilot, "0")
        assert second.state.window is None
        assert screen(pilot).result.comparison.summary == everything.comparison.summary  # type: ignore[union-attr]
        assert "only A" not in text(pilot)
        first.state = replace(first.state, filter=Filter(devices=frozenset((0,))))
        app.sync()
        await settled(pilot)
        assert "only A: GPU 0  B: everything" in rows(pilot)[3]
        assert UNLIKE not in text(pilot)
        assert any(line.startswith("| > ") for line in rows(pilot)[4:9])
        first.state = replace(first.state, filter=Filter(), window=Window(2_100_000, 4_000_000))
        app.sync()
        await settled(pilot)
        assert UNLIKE in text(pilot)


async def test_two_iterations_of_one_report(runs: dict[str, Path]) -> None:
    async with running(runs["before"], size=(160, 45)) as pilot:
        await press(pilot, "7", "i")
        body = text(pilot)
        assert "Part A (before)" in body
        assert "iteration 0: step 0 (warm-up)" in body
        await press(pilot, *"iteration", "space", "3", "enter")
        assert "Part B (after)" in text(pilot)
        await press(pilot, *"iteration", "space", "5", "enter")
        body = text(pilot)
        assert re.search("iteration 5: step 5 takes .* than iteration 3: step 3", body)
        pair = screen(pilot).choosing.pair
        assert pair is not None
        starts = [plan.window[0] for plan in screen(pilot).result.plans]  # type: ignore[union-attr, index]
        step = 4 * (300 + 120 + 80 + 25) * 1000 + 20_000
        assert starts[1] - starts[0] == pytest.approx(2 * step, rel=0.01)
        # Both timelines stand on their own iteration.
        windows = screen(pilot).twins.windows
        assert [w.start < start < w.end for w, start in zip(windows, starts, strict=True)]
        await press(pilot, "b")
        assert re.search("iteration 3: step 3 takes .* than iteration 5: step 5", text(pilot))
        await press(pilot, "0")
        assert "enter: compare with another report" in text(pilot)


async def test_bookmarks_windows_and_halves_are_parts(runs: dict[str, Path]) -> None:
    async with running(runs["before"]) as pilot:
        app: Any = pilot.app
        marks = {"a": Mark("a", 5_000_000, "timeline", window=Window(4_000_000, 6_000_000))}
        app.session.state = replace(
            app.session.state, marks=marks, window=Window(1_000_000, 9_000_000)
        )
        await press(pilot, "7", "B", *"two", "space", "iter", "enter")
        body = text(pilot)
        for part in ("shown: 0.001000-0.009000 s", "bookmark a: 0.004000-0.006000 s",
                     "from start to a:", "from a to end:", "first half:"):  # fmt: skip
            assert part in body
        await press(pilot, *"first", "enter", *"12ms/20ms", "enter")
        assert "B: 0.012000-0.020000 s" in rows(pilot)[3]
        await press(pilot, "i", *"nonsense", "enter")
        assert "not a time window" in text(pilot)


async def test_reports_that_captures_brought_home_can_be_chosen(runs: dict[str, Path]) -> None:
    store = Store()
    home = ReportFile("/far/x.nsys-rep", 1, local=str(runs["after"]))
    made = {"program": ["python", "train.py"]}
    store.save(Record(new_id(), made, State.DONE, reports=(home,)))
    async with running(runs["before"]) as pilot:
        await press(pilot, "7", "B", *"train.py")
        assert "after.sqlite" in line_of(pilot, "capture")
        await press(pilot, "enter")
        assert "A: before.sqlite   B: after.sqlite" in rows(pilot)[2]


async def test_a_report_and_its_own_baseline_are_the_same(runs: dict[str, Path]) -> None:
    assert cli.main(["baseline", "save", "own", str(runs["single"]), "--no-cache"]) == 0
    async with running(runs["single"]) as pilot:
        await press(pilot, "7", "B", *"own", "enter")
        assert rows(pilot)[3].startswith("| same: A and B are the same part of one report")


async def test_enter_on_a_finding_shows_where_each_side_has_it(runs: dict[str, Path]) -> None:
    async with running(runs["before"], runs["after"], size=(160, 45)) as pilot:
        await press(pilot, "7", *"ggggg")
        found = screen(pilot).result.comparison.findings  # type: ignore[union-attr]
        assert found is not None
        both = next(n for n, change in enumerate(found) if change.status == "in both")
        screen(pilot).table.put_cursor(both)
        await press(pilot, "enter")
        for side, window in zip(
            (found[both].a, found[both].b), screen(pilot).twins.windows, strict=True
        ):
            assert side is not None
            assert side.window is not None
            assert window.start < side.window[0] <= side.window[1] < window.end
        assert found[both].rule in text(pilot)


def test_a_part_of_a_closed_report_says_so() -> None:
    with pytest.raises(UsageError, match=r"run\.sqlite is closed"):
        _ = Part(Session(Path("run.sqlite"))).report


async def test_reports_without_kernels_are_compared_by_what_they_have(tmp_path: Path) -> None:
    paths = []
    for name, length in (("a", 1_000_000), ("b", 2_000_000)):
        synth = Synth(tmp_path / f"{name}.sqlite").process(1000)
        for number in range(12):
            begin = number * 10_000_000
            synth.nvtx("load", begin, begin + length + 1000 * number)
        paths.append(synth.write())
    async with running(*paths) as pilot:
        await press(pilot, "7")
        assert "NVTX ranges" in text(pilot)
        assert "worse" in line_of(pilot, " load ")
        await press(pilot, *"gg")
        assert "A and B: no kernels in this report" in text(pilot)
        await press(pilot, *"gg")
        assert "> Kernels" in text(pilot)


async def test_enter_on_a_call_shows_its_lane(tmp_path: Path) -> None:
    paths = []
    for name, length in (("a", 1_000_000), ("b", 2_000_000)):
        synth = Synth(tmp_path / f"{name}.sqlite").process(1000)
        for number in range(12):
            begin = number * 10_000_000
            synth.osrt("read", begin, begin + length + 1000 * number)
            synth.mpi("MPI_Bcast", begin + 5_000_000, begin + 6_000_000)
        paths.append(synth.write())
    async with running(*paths) as pilot:
        await press(pilot, "7")
        assert "> MPI calls" in text(pilot)
        await press(pilot, "enter")
        assert all("MPI" in half for half in text(pilot).split("B: b.sqlite  around")[-2:])
        await press(pilot, "escape", "g")
        assert "> OS runtime calls" in text(pilot)
        assert "worse" in line_of(pilot, " read ")
        await press(pilot, "enter")
        assert sum(" osrt " in line for line in rows(pilot)) == 2
