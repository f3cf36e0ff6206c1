from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make
from loglines import body, info, init
from paths import LOGS, needs_logs
from synth import Synth
from tui.frames import rows, running, settled, text

from nsys_tui.model.table import Column, Table
from nsys_tui.ui.screens.logs.screen import LogsScreen, expand
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.ui.widgets.table.result_columns import columns_of

if TYPE_CHECKING:
    from pathlib import Path

    from demo_making import Demo
    from textual.pilot import Pilot


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return make(tmp_path_factory.mktemp("demo"), steps=2)


def screen(pilot: Pilot[int]) -> LogsScreen:
    found: Any = pilot.app.screen
    assert isinstance(found, LogsScreen)
    return found


async def press(pilot: Pilot[int], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


async def open_logs(pilot: Pilot[int], demo: Demo) -> None:
    await press(pilot, "f8", "o")
    await pilot.press(*("slash" if c == "/" else c for c in str(demo.logs[0].parent)))
    await press(pilot, "enter")


async def test_without_logs_and_collectives_the_screen_says_what_to_do(small: Path) -> None:
    async with running(small) as pilot:
        await press(pilot, "f8")
        shown = text(pilot)
        assert "[F8 Logs]" in rows(pilot)[1]
        assert "no log is open: o opens NCCL, trainer or MPI logs" in shown
        assert "NCCL_DEBUG=INFO" in shown


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_a_report_alone_shows_bandwidth_from_its_payloads(
    demo: Demo, size: tuple[int, int]
) -> None:
    async with running(demo.path, size=size) as pilot:
        await press(pilot, "f8")
        lines = rows(pilot)
        assert "bandwidth" in lines[3]
        header, first = lines[3], lines[4]
        assert "Bus GB/s" in header
        assert "AllReduce" in first
        assert "14.2 MB" in first
        shown = text(pilot)
        assert "sizes from NVTX payloads" in shown
        assert "per-op" not in shown


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_logs_of_a_folder_are_read_and_joined(demo: Demo, size: tuple[int, int]) -> None:
    async with running(demo.path, size=size) as pilot:
        await open_logs(pilot, demo)
        assert screen(pilot).section == "per-op"
        assert "AllReduce" in text(pilot)
        await press(pilot, "k")
        assert screen(pilot).section == "files"
        assert "Logs 2 of 2" in text(pilot)
        await pilot.click("#sections", offset=(4, 7))
        await settled(pilot)
        assert screen(pilot).section == "aggregate"
        assert "Distinct sizes, by total bytes" in text(pilot)
        await press(pilot, "k", "k", "k")
        assert screen(pilot).section == "files"
        await press(pilot, "k")
        assert screen(pilot).section == "which kernel"
        notes = " ".join(text(pilot).split())
        assert "joined by order" in notes


async def test_the_first_section_leads_with_what_the_logs_say(small: Path, tmp_path: Path) -> None:
    form = "completed step: {}, seconds: {}, TFLOP/s/device: 40.25, loss: 2.0"
    log = tmp_path / "train.log"
    log.write_text("\n".join(form.format(n, 9.0 if n == 1 else 2.5) for n in range(1, 12)))
    async with running(small) as pilot:
        await press(pilot, "f8")
        screen(pilot).open([log])
        await settled(pilot)
        assert screen(pilot).section == "steps"
        lines = rows(pilot)
        assert "Median step (s)" in lines[3]
        assert "2.500000" in lines[4]
        note = next(i for i, line in enumerate(lines) if "Notes" in line)
        assert "maxtext: median step 2.500000 s" in lines[note + 1]
        listed = [line[2:16].strip(" >") for line in lines[3:8]]
        assert listed == ["files", "steps", "", "", ""]
        await press(pilot, "k")
        assert "maxtext" not in "".join(rows(pilot)[note:])


@needs_logs
async def test_the_chosen_section_is_in_view(demo: Demo) -> None:
    async with running(demo.path) as pilot:
        await press(pilot, "f8")
        screen(pilot).open([LOGS / "nccl-tests-2.27.7-allreduce-1proc-2gpu.log"])
        await settled(pilot)
        assert screen(pilot).section == "benchmarks"
        assert ">benchmarks" in text(pilot)


@needs_logs
async def test_a_line_comes_into_view_before_its_pane_has_a_scrollbar(demo: Demo) -> None:
    async with running(demo.path) as pilot:
        await press(pilot, "f8")
        pane = pilot.app.screen.query_one("#sections", LinePane)
        pane.show([[(f" {number}", 0)] for number in range(60)], range(60))
        pane.cursor = 50
        pane.scroll_to_cursor()
        pane.show_vertical_scrollbar = False
        await settled(pilot)
        assert ">50" in text(pilot)


async def test_enter_and_a_double_click_show_a_row_in_full(demo: Demo) -> None:
    async with running(demo.path) as pilot:
        await open_logs(pilot, demo)
        await press(pilot, "k", "enter")
        assert screen(pilot).section == "files"
        notes = pilot.app.screen.query_one("#notes", LinePane)
        before = notes._lines
        await press(pilot, "enter")
        shown = " ".join(text for line in notes._lines for text, _ in line)
        assert str(demo.logs[0].name) in shown
        for column in screen(pilot).table.columns:
            if value := column.text(0).strip():
                assert f"{column.header}: {value}" in " ".join(shown.split())
        await pilot.click("#table", offset=(4, 3), times=2)
        await settled(pilot)
        assert "Row 2 in full" in text(pilot)
        await press(pilot, "shift+tab", "j", "k")
        assert notes._lines == before, "the notes come back with the section"


async def test_enter_on_a_collective_shows_its_kernel_on_the_timeline(demo: Demo) -> None:
    async with running(demo.path) as pilot:
        await press(pilot, "f8", "j", "j", "enter", "enter")
        app: Any = pilot.app
        assert app.front.SCREEN == "timeline"
        assert app.state.selection is not None
        report = app.session.report
        start, _ = app.state.selection.span
        names = {
            report.operations.names[n].short
            for n in report.operations.name[report.operations.start == start]
        }
        assert any("AllReduce" in name for name in names)


async def test_enter_on_an_operation_shows_its_longest_collective(demo: Demo) -> None:
    async with running(demo.path) as pilot:
        await press(pilot, "f8", "enter")
        assert screen(pilot).section == "bandwidth"
        joined = screen(pilot).result
        assert joined is not None
        calls = joined.calls
        sizes = [row[1] for row in screen(pilot)._tables["bandwidth"].rows()]
        await press(pilot, "down", "enter")
        app: Any = pilot.app
        assert app.front.SCREEN == "timeline"
        of_size = [n for n, size in enumerate(calls.bytes.tolist()) if size == sizes[1]]
        longest = max(of_size, key=lambda n: calls.time[n])
        assert app.state.selection.span.start == calls.last_start[longest]


async def test_a_name_without_a_file_is_told_in_the_status_line(demo: Demo) -> None:
    async with running(demo.path) as pilot:
        await press(pilot, "f8", "o")
        await pilot.press(*"nope")
        await press(pilot, "enter")
        assert "no log there: nope" in text(pilot)
        await press(pilot, "escape")
        assert "bandwidth" in text(pilot)


def test_a_pattern_names_one_log_per_rank(tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"rank{rank}.log").write_text("x\n")
    assert [p.name for p in expand(str(tmp_path / "rank[01].log"))] == ["rank0.log", "rank1.log"]
    assert len(expand(str(tmp_path))) == 3
    (tmp_path / "rank3.log.xz").write_bytes(b"x")
    (tmp_path / "model.tar.gz").write_bytes(b"x")
    assert [p.name for p in expand(str(tmp_path))][3:] == ["rank3.log.xz"]


def run_of_two_ranks(folder: Path) -> list[Path]:
    """A report and a log per rank; the processes have other ids in the logs, as in containers."""
    paths = []
    for rank in range(2):
        synth = Synth(folder / f"run_rank{rank}.sqlite").process(5)
        synth.session(10**9, utc=10**18 + rank * 1000)
        lines = [info(init("0x10", rank, 2), pid=70 + rank)]
        for call in range(3):
            at = 1_000_000 * (call + 1) - rank * 1000 + rank * 400
            kernel = (at, at + 50_000 - rank * 400)
            name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)"
            synth.launch(name, (at - 9000, at - 8000), kernel)
            text = body(op_count=call, count=256 << call, comm="0x10", nranks=2)
            lines.append(info(text, pid=70 + rank))
        paths.append(synth.write())
        (folder / f"nccl{rank}.log").write_text("".join(f"{line}\n" for line in lines))
    return paths


async def test_logs_join_every_open_report_of_the_run(tmp_path: Path) -> None:
    paths = run_of_two_ranks(tmp_path)
    other = Synth(tmp_path / "other.sqlite").process(5).session(10**9, utc=2 * 10**18)
    other.kernel("gemm", 0, 9)
    async with running(*paths, other.write(), size=(160, 45)) as pilot:
        await press(pilot, "f8")
        screen(pilot).open([tmp_path / "nccl0.log", tmp_path / "nccl1.log"])
        await settled(pilot)
        joined = screen(pilot).result
        assert joined is not None
        assert joined.calls.seen.tolist() == [2, 2, 2]
        assert joined.calls.skew.tolist() == [400] * 3
        assert joined.calls.bytes.tolist() == [1024, 2048, 4096]
        await press(pilot, "k", "k")
        assert screen(pilot).section == "which kernel"
        notes = " ".join(text(pilot).split())
        assert "2 open reports of one run are joined: run_rank0.sqlite, run_rank1" in notes
        assert "at another time, so not joined: other.sqlite" in notes
        await press(pilot, "enter", "enter")
        app: Any = pilot.app
        assert app.front.SCREEN == "timeline"
        assert app.session.path == paths[1]
        assert app.state.selection is not None
        assert app.state.selection.span.start == 1_000_000 - 600


async def test_logs_of_another_run_leave_the_report_its_own_sizes(
    demo: Demo, tmp_path: Path
) -> None:
    (tmp_path / "other.log").write_text(info(body(), pid=1) + "\n")
    async with running(demo.path) as pilot:
        await press(pilot, "f8")
        screen(pilot).open([tmp_path / "other.log"])
        await settled(pilot)
        joined = screen(pilot).result
        assert joined is not None
        assert joined.calls.sized_by == "NVTX payloads"
        assert any("the logs fit no open report" in note for note in joined.calls.notes)
        await press(pilot, "k")
        shown = text(pilot)
        assert "other.log" in shown
        assert "the lines carry no time" in shown


async def test_logs_that_grow_are_followed(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_tui.ui.screens.logs.screen.FOLLOW_S", 0.05)
    log = tmp_path / "nccl.log"
    log.write_text(info(body()) + "\n")
    async with running(small) as pilot:
        await press(pilot, "f8")
        screen(pilot).open([log])
        await settled(pilot)
        while screen(pilot).section != "per-op":
            await press(pilot, "j")
        assert "Broadcast" not in text(pilot)
        await press(pilot, "t")
        with log.open("a") as file:
            file.write(info(body("Broadcast", 6)) + "\n")
        while "Broadcast" not in text(pilot):
            await pilot.pause(0.05)
            await settled(pilot)
        assert screen(pilot).section == "per-op"
        await press(pilot, "t")
        assert screen(pilot)._follower is None


async def test_logs_open_on_hangs_where_there_are_any(small: Path, tmp_path: Path) -> None:
    calls = {0: 3, 1: 2}
    for rank, count in calls.items():
        lines = [info(init("0x10", rank, 2), pid=70 + rank)]
        for call in range(count):
            said = body(op_count=call, count=256 << call, comm="0x10", nranks=2)
            lines.append(info(said, pid=70 + rank))
        (tmp_path / f"nccl{rank}.log").write_text("".join(f"{line}\n" for line in lines))
    async with running(small, size=(160, 45)) as pilot:
        await press(pilot, "f8")
        screen(pilot).open(expand(str(tmp_path / "*.log")))
        await settled(pilot)
        assert screen(pilot).section == "hangs"
        assert screen(pilot).table.shown


@pytest.mark.parametrize(("room", "shown"), [(44, True), (14, False)])
def test_the_last_text_of_a_table_takes_what_room_there_is(room: int, shown: bool) -> None:
    table = Table("t", "T", (Column("Finding"), Column("Ranks")), (["late"], ["rank 3, " * 20]))
    columns = columns_of(table, least=16)
    assert (sum(column.width for column in columns) < room) is shown
    assert columns[-1].grow
