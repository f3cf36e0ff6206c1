from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from synth import Synth
from tui.frames import rows, running, settled

from nsys_tui.capture.record import Record, ReportFile, State, Store, new_id
from nsys_tui.cli import main
from nsys_tui.commands.remote import local_path
from nsys_tui.config import Config
from nsys_tui.errors import UsageError
from nsys_tui.paths import existing_path, given_path, told_apart


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("run 1.sqlite", "run 1.sqlite"),
        ("'/tmp/run 1.sqlite' ", "/tmp/run 1.sqlite"),
        ('"/tmp/a.sqlite"', "/tmp/a.sqlite"),
        ("file:///tmp/run%201.sqlite", "/tmp/run 1.sqlite"),
        ("file://localhost/tmp/a.sqlite", "/tmp/a.sqlite"),
        ("'", "'"),
        ("it's.sqlite", "it's.sqlite"),
        ("'/tmp/it'\\''s $1.sqlite'", "/tmp/it's $1.sqlite"),
        ("/tmp/run\\ 1\\(2\\).sqlite", "/tmp/run 1(2).sqlite"),
        ("'file:///tmp/run%201.sqlite'", "/tmp/run 1.sqlite"),
        ("~/a.sqlite", str(Path.home() / "a.sqlite")),
    ],
)
def test_dropped_files_are_understood(text: str, path: str) -> None:
    assert given_path(text) == Path(path)


def test_a_name_that_exists_is_taken_as_typed(tmp_path: Path) -> None:
    odd = tmp_path / "'odd'"
    for path in (odd, tmp_path / "odd", tmp_path / "run 1.sqlite"):
        path.touch()
    assert existing_path(str(odd)) == odd
    assert existing_path(f"'{tmp_path}/run 1.sqlite' ") == tmp_path / "run 1.sqlite"
    assert existing_path("absent.sqlite ") == Path("absent.sqlite ")


def test_namesakes_are_told_apart_by_as_few_folders_as_needed() -> None:
    paths = [
        Path(name) for name in ("/x/a/r.sqlite", "/y/a/r.sqlite", "/b/r.sqlite", "/b/s.sqlite")
    ]
    assert told_apart(paths) == ["x/a/r.sqlite", "y/a/r.sqlite", "b/r.sqlite", "s.sqlite"]
    assert told_apart([paths[0], paths[0]]) == ["r.sqlite", "r.sqlite"]
    assert told_apart([]) == []


def test_what_is_named_says_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Synth(tmp_path / name / "report1.sqlite").process(1, "t").gpu().launch(
            "k", (0, 5), (10, 20)
        ).write()
    assert main(["overview", f"'{tmp_path}/a/report1.sqlite' "]) == 0
    assert main(["overview", "a"]) == 65
    assert "it is a folder\nname a report file in it: report1.sqlite" in capsys.readouterr().err
    assert main(["compare", "a/report1.sqlite", "b/report1.sqlite", "--section", "summary"]) in (
        0,
        2,
        3,
    )
    out, err = capsys.readouterr()
    assert "A: a/report1.sqlite" in out + err
    assert "B: b/report1.sqlite" in out + err


def test_the_id_of_a_capture_stands_for_its_report(tmp_path: Path) -> None:
    store = Store()
    report = tmp_path / "r.sqlite"
    report.touch()
    made = Record(id=new_id(), plan={}, state=State.DONE)
    store.save(made)
    with pytest.raises(UsageError, match="capture with no report here") as caught:
        local_path(made.id, Config())
    assert caught.value.hint == f"nsys-tui captures attach {made.id}"
    files = (ReportFile(path="r", size=0, local=str(report)),)
    store.save(replace(made, reports=files))
    assert local_path(made.id, Config()) == report
    store.save(replace(made, reports=files * 2))
    with pytest.raises(UsageError, match="2 reports"):
        local_path(made.id, Config())


async def test_open_namesakes_carry_their_folder_in_the_title(tmp_path: Path) -> None:
    paths = [tmp_path / name / "report1.sqlite" for name in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        Synth(path).process(1, "t").gpu().launch("k", (0, 5), (10, 20)).write()
    async with running(*paths) as pilot:
        assert "a/report1.sqlite" in rows(pilot)[0]
        await pilot.press("ctrl+w")
        await settled(pilot)
        assert " report1.sqlite" in rows(pilot)[0]
