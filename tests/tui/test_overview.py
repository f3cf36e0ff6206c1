from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

import pytest
from paths import REPORTS, needs_reports
from synth import Synth
from textual.events import MouseMove
from textual.geometry import Offset
from tui.frames import FANCY, frame, rows, running, settled, text

from nsys_tui.analysis.rules.finding import Finding, Severity
from nsys_tui.model.progress import Progress, silent
from nsys_tui.model.report import Report
from nsys_tui.render.cells import Emphasis
from nsys_tui.state import Window
from nsys_tui.ui import loader
from nsys_tui.ui.widgets.lines import Verdict
from nsys_tui.ui.widgets.trace import TracePane

if TYPE_CHECKING:
    from pathlib import Path


async def test_overview_at_80x24_says_where_the_time_went(small: Path) -> None:
    lines = await frame(small, (80, 24))
    assert lines[0].startswith(" nsys-tui | small.sqlite | 2x Test GPU")
    assert lines[1].startswith("[1 Over")
    assert lines[2].rstrip() == " One-shot: 1.800 ms of GPU work is too little to judge"
    # Two GPUs over a span of 900..1000 us: (800 + 1000) of 2000 us busy, 1600 of them computing.
    assert lines[3].strip() == "#" * 62 + "=" * 8 + "." * 8
    assert "# compute 80.0%  = comm 10.0% (10.0% exposed)  . idle 10.0%" in lines[4]
    assert lines[5].startswith("+- > Findings (")
    assert lines[23].rstrip().endswith("? help")


async def test_the_verdict_begins_with_the_first_exact_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, bool]] = []
    begun, tell, load = threading.Event(), Verdict.tell, Report.load

    def noted(pane: Verdict, words: str) -> None:
        app: Any = pane.app
        told.append((words, app.session.report.loaded("api")))
        begun.set()
        tell(pane, words)

    def held(report: Report, part: str, progress: Progress = silent) -> None:
        if part == "api":
            begun.wait(60)
        load(report, part, progress)

    monkeypatch.setattr(loader, "SAMPLE_FROM_BYTES", 0)
    monkeypatch.setattr(Verdict, "tell", noted)
    monkeypatch.setattr(Report, "load", held)
    synth, us = Synth(tmp_path / "loop.sqlite").gpu(0, "Test GPU").process(100, "train"), 1_000
    synth.session(20_000 * us)
    for at in range(0, 20_000 * us, 1_000 * us):
        synth.launch("gemm_kernel", (at, at + us), (at + 100 * us, at + 1_000 * us))
    lines = await frame(synth.write(), (80, 24))
    assert told[0] == ("GPU 90.5% busy. What is worth fixing is not known yet", False)
    assert lines[2].startswith(" GPU 90.5% busy. "), "then what rules found"
    assert "not known yet" not in lines[2]


async def test_figures_of_the_wide_layout_name_each_gpu(small: Path) -> None:
    body = "\n".join(await frame(small, (160, 45)))
    assert "GPU 0      80.0  60.0  20.0   0.0" in body
    assert "GPU 1     100.0 100.0   0.0   0.0" in body
    assert "Top NVTX ranges" in body
    assert "gemm_kernel" in body


@pytest.mark.parametrize("size", [(80, 24), (120, 30), (160, 45), (240, 67)])
async def test_every_size_fills_the_screen_without_overflow(
    small: Path, size: tuple[int, int]
) -> None:
    lines = await frame(small, size)
    assert len(lines) == size[1]
    assert {len(line) for line in lines} == {size[0]}
    assert all(line.isascii() for line in lines)
    assert ("Whole trace" in "\n".join(lines)) == (size[1] >= 30)


async def test_names_from_a_report_are_text_and_never_control_sequences(small: Path) -> None:
    body = "\n".join(await frame(small, (160, 45), terminal=FANCY))
    assert "[bold_red]evil[/]" in body
    assert "\x1b" not in body
    assert "\x07" not in body


async def test_resizing_live_changes_the_layout_and_keeps_the_cursor(small: Path) -> None:
    async with running(small, size=(160, 45)) as pilot:
        await pilot.press("down")
        before = pilot.app.focused.choice  # type: ignore[union-attr]
        assert before is not None
        await pilot.resize_terminal(80, 24)
        await settled(pilot)
        assert "Top kernels and NVTX ranges" in text(pilot)
        assert pilot.app.focused.choice == before  # type: ignore[union-attr]
        await pilot.resize_terminal(160, 45)
        await settled(pilot)
        assert "+- Top NVTX ranges" in text(pilot)


async def test_too_small_a_terminal_says_so_and_still_quits(small: Path) -> None:
    async with running(small, size=(70, 20)) as pilot:
        assert "needs 80x24, this is 70x20" in text(pilot)
        assert "nsys-tui overview small.sqlite" in text(pilot).replace("\n", " ").replace("  ", "")
        await pilot.press("q")
    assert pilot.app.return_code == 0


async def test_wide_pane_gives_shares_of_kernels(small: Path) -> None:
    lines = await frame(small, (160, 45))
    gemm = next(line for line in lines if "gemm_kernel" in line)
    # 600 us of 1800 us of kernel time, two calls of 300 us.
    assert "33.3%" in gemm
    assert "600.0 us" in gemm
    assert "300.0 us" in gemm


@needs_reports
async def test_a_report_without_events_says_once_in_its_facts_what_it_lacks() -> None:
    for size in ((160, 45), (80, 24)):
        body = "\n".join(await frame(REPORTS / "no-events.sqlite", size))
        assert body.count("no kernels in this report") == 2, "the verdict and the report's facts"
        assert "Top " not in body
        assert not re.search(r"recorded +not recorded", body)


@needs_reports
async def test_a_report_without_gpu_work_says_what_would_record_it() -> None:
    lines = await frame(REPORTS / "nvtx-only-2022.4.sqlite", (120, 40))
    body = "\n".join(lines)
    assert body.count("no kernels in this report") == 2, "the verdict and the report's facts"
    assert "--trace=cuda" in body
    assert "Top kernels" not in body
    assert "Time split" not in body
    assert re.search(r"\|nvtx +[^ ]", body)
    assert re.search(r"\|level 2 +[^ ]", body)


@needs_reports
async def test_a_real_training_run_shows_its_command_and_share() -> None:
    async with running(REPORTS / "pytorch-nccl-2gpu-2026.2.sqlite", size=(160, 45)) as pilot:
        body = text(pilot)
        assert "torchrun" in body
        assert "flash fwd hd128" in body
        await pilot.press("D", "D")
        await settled(pilot)
        assert "void" in text(pilot) or "cutlass" in text(pilot)
        assert len(rows(pilot)) == 45


async def test_long_names_keep_the_ends_that_tell_them_apart(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(1)
    for number, end in enumerate(("64x3_nt", "64x3_nn")):
        name = f"layer_normalisation_of_a_very_long_name_for_all_the_tests_{end}"
        synth.launch(name, (number * 100, number * 100 + 5), (number * 100 + 10, number * 100 + 90))
    async with running(synth.write()) as pilot:
        listed = [row for row in rows(pilot) if "layer_no" in row]
        assert sum("64x3_nt" in row for row in listed) == 1
        assert sum("64x3_nn" in row for row in listed) == 1


async def test_the_title_names_the_time_that_the_figures_are_of(small: Path) -> None:
    async with running(small) as pilot:
        title = rows(pilot)[0]
        assert title.rstrip().endswith("(all)")
        await pilot.press("2", "w", "w")
        await settled(pilot)
        assert "(all)" not in rows(pilot)[0]
        await pilot.press("1")
        await settled(pilot)
        assert rows(pilot)[0] == title


async def test_findings_lead_to_their_evidence_and_are_told_in_full(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Finding(
        "gpu_idle", Severity.HIGH, "GPU 0 idle 200 us [not markup], " + "x" * 60, "idle",
        "drop the sync",
        200_000, (400_000, 500_000), 0, "1", "nsys-tui stalls REPORT",
        of_ns=1_000_000,
    )  # fmt: skip
    monkeypatch.setattr("nsys_tui.analysis.rules.ranking.find_in", lambda *_: [found])
    async with running(small, size=(100, 24)) as pilot:
        app: Any = pilot.app
        assert "Findings (1)" in text(pilot)
        assert re.search(r"!H +[\d.]+% GPU 0 idle 200 us \[not markup\],", text(pilot))
        body = text(pilot)
        assert "x" * 60 in body, "the whole title"
        assert "drop the sync" in body
        assert "nsys-tui stalls small.sqlite" in body
        await pilot.press("enter")
        await settled(pilot)
        assert app.state.window == (380_000, 520_000)
        assert app.state.selection.span == (400_000, 500_000)
        await pilot.press("backspace")
        assert app.state.window is None


async def test_without_findings_there_is_no_box(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_tui.analysis.rules.ranking.find_in", lambda *_: [])
    body = "\n".join(await frame(small, (80, 24)))
    assert "Findings" not in body
    assert "command" in body


async def test_a_span_of_the_trace_is_chosen_with_keys_and_opened(small: Path) -> None:
    async with running(small, size=(160, 45)) as pilot:
        app: Any = pilot.app
        await pilot.press("v", "home", "escape", "v", *["right"] * 9, "v", "left")
        await settled(pilot)
        pane = app.screen.query_one(TracePane)
        viewport = pane._viewport(pane.size.width)
        span = Window(viewport.lo, int(viewport.edges[10]))
        await pilot.press("enter")
        await settled(pilot)
        assert app.front.SCREEN == "timeline"
        assert app.state.window == span
        assert span.start <= app.front.model.cursor_time < span.end
        await pilot.press("1")
        await settled(pilot)
        axis = pane.draw()[0]
        reverse = axis.styles & (Emphasis.REVERSE << 16) > 0
        assert reverse.nonzero()[0].tolist() == list(range(8, 18)), "the window in force"


async def test_a_span_of_the_trace_is_dragged(small: Path) -> None:
    async with running(small, size=(80, 30)) as pilot:
        app: Any = pilot.app
        pane = app.screen.query_one(TracePane)
        viewport = pane._viewport(pane.size.width)
        x, y = pane.content_region.offset
        await pilot.mouse_down(offset=(x + 8 + 20, y + 1))
        await pilot._post_mouse_events([MouseMove], offset=Offset(x + 8 + 9, y + 1), button=1)
        await pilot.mouse_up(offset=(x + 8 + 9, y + 1))
        await pilot.press("enter")
        await settled(pilot)
        assert app.state.window == Window(viewport.time(9), int(viewport.edges[21]))


async def test_a_tall_screen_explains_the_fills(small: Path) -> None:
    assert "# compute   = comm" in "\n".join(await frame(small, (160, 45)))
    assert "# compute   =" not in "\n".join(await frame(small, (120, 30)))


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_without_gpu_work_it_tells_of_the_host(tmp_path: Path, size: tuple[int, int]) -> None:
    synth = Synth(tmp_path / "host.sqlite").process(1000)
    synth.meta("PROCESS_0:COLLECT_CUDA_TRACE", "true", capture=True)
    synth.sched(0, True, tid=7).sched(600_000, False, tid=7).osrt("poll", 600_000, 1_000_000, tid=7)
    async with running(synth.write(), size=size) as pilot:
        body = text(pilot)
        await pilot.press("tab", "enter")
        await settled(pilot)
        app: Any = pilot.app
        assert app.front.SCREEN == "timeline"
        assert app.state.selection.label == "poll"
        await pilot.press("5")
        await settled(pilot)
        assert "Scene" not in text(pilot), "there is nothing to tell beside an empty table"
    assert "thread              CPU      %" in body
    assert "tid 7" in body
    assert "600.0 us" in body
    assert "no CUDA call" in body
    assert "Top OS runtime calls" in body
    assert "poll" in body
    if size[0] == 160:
        assert re.search(r"\|7 +\S* *poll", body), "the call on the trace"


@needs_reports
async def test_what_no_rule_could_look_at_is_said_and_recorded_with_one_key() -> None:
    path = REPORTS / "pytorch-nccl-2gpu-2026.2.sqlite"
    async with running(path, size=(160, 45)) as pilot:
        await pilot.press(*["down"] * 40)
        await settled(pilot)
        body = text(pilot)
        assert "?  not looked at: " in body
        assert "--cpuctxsw=process-tree" in body
        await pilot.press("p")
        await settled(pilot)
        assert "--cpuctxsw=process-tree" in text(pilot)


@needs_reports
async def test_a_tall_screen_frames_no_empty_middle() -> None:
    async with running(REPORTS / "nvtx-only-2022.4.sqlite", size=(240, 67)) as pilot:
        empty = [row for row in rows(pilot) if not row.strip("| ") and "||" in row]
        assert len(empty) <= 1
        await pilot.resize_terminal(160, 40)
        await settled(pilot)
        assert "no thread scheduling" not in text(pilot), "panes share what there is"
        await pilot.resize_terminal(240, 67)
        await settled(pilot)
        assert "no thread scheduling" in text(pilot)


@needs_reports
async def test_panes_that_are_laid_out_late_frame_no_empty_middle_either() -> None:
    async with running(REPORTS / "nvtx-only-2022.4.sqlite", size=(240, 67)) as pilot:
        front: Any = pilot.app.front  # type: ignore[attr-defined]
        fitting = rows(pilot)
        split = front.query_one("#split")
        split.add_class("-empty")
        await settled(pilot)
        split.rebuild()
        front._fit_upper()
        split.remove_class("-empty")
        await settled(pilot)
        assert rows(pilot) == fitting
        assert "Top NVTX ranges" in text(pilot)
