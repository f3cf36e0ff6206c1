"""The home screen: what is offered, what choosing it gives, and the app without a report."""

from __future__ import annotations

import gzip
import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest
from loglines import body, info, init, nemo
from tui.frames import PLAIN, rows, running, settled, text

from nsys_tui.cli import main
from nsys_tui.config import Config, TargetConfig
from nsys_tui.errors import UnreadableReportError
from nsys_tui.ui.app import NsysTuiApp
from nsys_tui.ui.recent import opened_before, remember
from nsys_tui.ui.resume import keep_session
from nsys_tui.ui.screens.home.app import Choice, HomeApp, since

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from textual.pilot import Pilot


@asynccontextmanager
async def home(folder: Path, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Pilot[Any]]:
    app = HomeApp(Config(), PLAIN, folder)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield pilot


@pytest.fixture
def folder(tmp_path: Path, small: Path) -> Path:
    """A folder with two reports, one of which was opened before, and a third elsewhere."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    for path in (here / "a.sqlite", here / "b.sqlite", there / "a.sqlite"):
        shutil.copyfile(small, path)
    remember(there / "a.sqlite")
    remember(here / "b.sqlite", verdict="GPU 40% busy. Worth fixing: the data loader")
    return here


async def test_a_verdict_is_not_cut_where_there_is_room(folder: Path) -> None:
    verdict = " ".join(["GPU 40% busy."] * 12)
    remember(folder / "a.sqlite", verdict=verdict)
    async with home(folder, (240, 67)) as pilot:
        assert any(verdict in row and "a.sqlite" in row for row in rows(pilot))
    async with home(folder, (120, 45)) as pilot:
        shown = rows(pilot)
        first = next(n for n, row in enumerate(shown) if "here" in row and "a.sqlite" in row)
        begin = shown[first].index("GPU 40%")
        broken = [row[begin:].strip(" |") for row in shown[first : first + 3]]
        assert " ".join(broken) == verdict, "it goes on below itself"
        await pilot.press(*["down"] * (first - 1))
        assert rows(pilot)[first + 3].startswith("|>"), "the cursor goes from report to report"


async def test_home_lists_reports_with_their_verdicts_and_first_steps(folder: Path) -> None:
    async with home(folder, (120, 24)) as pilot:
        shown = text(pilot)
        listed = [row.split() for row in rows(pilot)[2:8]]
        assert "GPU 40% busy. Worth fixing: the data loader" in shown
        kinds = [words[0].lstrip("|>") or words[1] for words in listed]
        assert sorted(kinds[:2]) == ["here", "here"]
        assert kinds[2:5] == ["recent", "new", "demo"]
        await pilot.press(*"loader")
        await pilot.pause()
        assert str(folder / "b.sqlite") in text(pilot), "the line under the cursor is told in full"
        assert "demo" not in text(pilot)
        await pilot.press("enter")
    assert cast("HomeApp", pilot.app).choice == Choice(
        (folder / "b.sqlite",),
        told=f"{folder / 'b.sqlite'}\nGPU 40% busy. Worth fixing: the data loader",
    )


async def test_namesakes_are_told_apart_and_all_reports_stand_in_columns(folder: Path) -> None:
    async with home(folder, (120, 24)) as pilot:
        listed = [row for row in rows(pilot) if " kB" in row]
    names = [row.split(".sqlite")[0].split()[-1] for row in listed]
    assert sorted(names) == ["b", "here/a", "there/a"]
    assert len({row.index(" kB") for row in listed}) == 1


async def test_reports_named_after_ranks_are_offered_as_one_run(folder: Path) -> None:
    ranks = [
        (folder / name).rename(folder / f"rank{n}.sqlite")
        for n, name in enumerate(("a.sqlite", "b.sqlite"))
    ]
    async with home(folder) as pilot:
        assert "all 2 ranks: who holds the others up" in rows(pilot)[2]
        await pilot.press("enter")
    choice = cast("HomeApp", pilot.app).choice
    assert choice is not None
    assert (choice.paths, choice.screen) == (tuple(ranks), "fleet")


async def test_the_last_session_is_offered_as_it_was_left(folder: Path) -> None:
    left = (folder / "b.sqlite", folder / "a.sqlite")
    keep_session([*left, folder / "gone.sqlite"])
    async with home(folder) as pilot:
        await pilot.press(*"as you left it: b.sqlite and 1 more", "enter")
    choice = cast("HomeApp", pilot.app).choice
    assert choice == Choice(left, told=f"{left[0]}\n{left[1]}", resume=True)


async def test_a_report_under_two_paths_is_listed_once(folder: Path) -> None:
    link = folder.parent / "link"
    link.symlink_to(folder)
    remember(link / "a.sqlite", verdict="GPU 7% busy")
    async with home(folder, (120, 24)) as pilot:
        (listed,) = [row for row in rows(pilot)[2:8] if "GPU 7% busy" in row]
        assert "here" in listed


def test_a_screen_that_is_printed_leaves_nothing_to_home(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["open", "--print", "overview", str(small)]) == 0
    assert "[1 Over" in capsys.readouterr().out
    assert opened_before() == []


@pytest.mark.parametrize(
    ("typed", "chosen"),
    [
        ("demo", Choice(demo=True)),
        ("profile", Choice(screen="capture")),
        ("box:runs/r.sqlite", Choice(name="box:runs/r.sqlite")),
    ],
)
async def test_what_is_typed_is_chosen(folder: Path, typed: str, chosen: Choice) -> None:
    async with home(folder) as pilot:
        await pilot.press(*typed, "enter")
    assert cast("HomeApp", pilot.app).choice == chosen


async def test_the_user_s_targets_are_offered(folder: Path) -> None:
    targets = {"box": TargetConfig(host="box"), "b": TargetConfig(host="far", launcher="sbatch")}
    app = HomeApp(Config(targets=targets), PLAIN, folder)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "target  profile a program on box " in text(pilot)
        await pilot.press(*"sbatch", "enter")
    assert app.choice == Choice(screen="capture", target="b", told="b  far  sbatch")


async def test_escape_leaves(folder: Path) -> None:
    async with home(folder) as pilot:
        await pilot.press("escape")
    assert cast("HomeApp", pilot.app).choice is None


def test_a_verdict_is_of_the_file_as_it_was(folder: Path) -> None:
    path = folder / "b.sqlite"
    assert opened_before()[0].present_verdict
    remember(path)
    assert opened_before()[0].present_verdict, "opening it again does not forget"
    with path.open("ab") as file:
        file.write(b"more")
    assert not opened_before()[0].present_verdict


def test_a_damaged_line_of_the_file_is_passed_over(folder: Path, own_folders: Path) -> None:
    (recent,) = own_folders.rglob("recent.txt")
    recent.write_text(f'["{folder / "a.sqlite"}", "", 0]\n[broken\n\n{folder}\n')
    assert [entry.path for entry in opened_before()] == [folder / "a.sqlite"]


async def test_the_overview_s_verdict_is_remembered(small: Path) -> None:
    async with running(small):
        pass
    assert opened_before()[0].present_verdict.startswith("One-shot: 1.800 ms of GPU work")


async def test_without_a_report_every_screen_stands_and_one_can_be_opened(small: Path) -> None:
    app = NsysTuiApp((), lambda path, _: _open(path), config=Config(), terminal=PLAIN)
    async with app.run_test(size=(80, 24)) as pilot:
        for key in ("9", "2", "3", "4", "5", "6", "7", "f7", "f8", "R", "ctrl+w", "1"):
            await pilot.press(key)
            await settled(cast("Pilot[int]", pilot))
            assert app.error is None
        assert "no report is open: o opens one" in text(cast("Pilot[int]", pilot))
        await pilot.press("o", *str(small), "enter")
        await settled(cast("Pilot[int]", pilot))
        assert "compute " in text(cast("Pilot[int]", pilot))
        assert [session.path for session in app.sessions] == [small]


def _open(path: Path) -> Any:
    from nsys_tui.reader import open_report

    return open_report(path, use_cache=False)


def test_without_a_terminal_it_says_how_to_begin(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert main([]) == 64
    said = capsys.readouterr().out
    for verb in ("overview", "compare", "capture", "demo"):
        assert f"nsys-tui {verb} " in said
    assert main([str(folder)]) == 65
    assert "name a report file in it: " in capsys.readouterr().err


async def test_a_folder_without_reports_says_so(tmp_path: Path) -> None:
    async with home(tmp_path) as pilot:
        assert f"(none in {tmp_path.name}/)" in rows(pilot)[0]


def test_a_missing_file_is_told_before_the_app_and_logs_open_as_logs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []

    def run_app(_: Any, paths: Any, *rest: Any, **more: Any) -> int:
        started.append((paths, rest[1], more.get("logs")))
        return 0

    monkeypatch.setattr("nsys_tui.commands.open.run_app", run_app)
    assert main([str(tmp_path / "absent.sqlite")]) == 65
    assert "there is no such file" in capsys.readouterr().err
    log = tmp_path / "train.log"
    log.write_text(nemo(1))
    assert main([str(log)]) == 0
    assert started == [((), "logs", [log])]


def test_home_comes_back_where_the_choice_cannot_be_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = iter((Choice((folder / "a.sqlite",)), None))
    refusals = []

    def run(app: HomeApp, **_: Any) -> None:
        app.choice = next(chosen)
        refusals.append(app.refused)

    def run_app(*_: Any, **__: Any) -> int:
        raise UnreadableReportError("a.sqlite: no report")

    monkeypatch.setattr(HomeApp, "run", run)
    monkeypatch.setattr("nsys_tui.commands.open.run_app", run_app)
    monkeypatch.setattr("nsys_tui.commands.open.settings", lambda _: (Config(), PLAIN))
    assert main([str(folder)]) == 0
    assert refusals == ["", "a.sqlite: no report"]


async def test_home_says_what_could_not_be_opened(folder: Path) -> None:
    app = HomeApp(Config(), PLAIN, folder, "a.sqlite: no report")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.pause()
        assert "a.sqlite: no report" in text(cast("Pilot[int]", pilot))


def test_ages_are_in_their_largest_unit() -> None:
    assert [since(s) for s in (5, 60, 7_200, 200_000, 10**6, 10**8)] == [
        "now", "1 min", "2 h", "2 d", "1 w", "3 y",
    ]  # fmt: skip


async def test_the_logs_of_a_folder_are_offered_and_read(
    tmp_path: Path,
) -> None:
    lines = [info(init("0x55", 0, 2)), info(body(nranks=2)), nemo(1)]
    for name in ("rank1.log", "rank0.log.gz", "requirements.txt"):
        data = "\n".join(lines).encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    async with home(tmp_path) as pilot:
        assert "2 logs: hangs, slow ranks" in rows(pilot)[2]
        await pilot.press("enter")
    choice = cast("HomeApp", pilot.app).choice
    assert choice is not None
    assert (choice.paths, choice.screen) == ((), "logs")
    assert choice.logs == (tmp_path / "rank0.log.gz", tmp_path / "rank1.log")

    app = NsysTuiApp((), cast("Any", None), config=Config(), terminal=PLAIN, start="logs")
    app.logs = choice.logs
    async with app.run_test(size=(80, 24)) as reader:
        await settled(cast("Pilot[int]", reader))
        told = text(cast("Pilot[int]", reader))
        assert "Training steps 1 of 1" in told
        assert ">nemo" in told
        assert "no report is open" not in told, "o opens logs here"
