"""From .nsys-rep to .sqlite with a stand-in nsys that behaves, fails, hangs and babbles as told."""

from __future__ import annotations

import ast
import os
import shutil
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from nsys_tui.errors import (
    NSYS_MISSING,
    CancelledError,
    NsysMissingError,
    UnreadableReportError,
)
from nsys_tui.reader import find_nsys as finder
from nsys_tui.reader.cache import Cache, cache_root
from nsys_tui.reader.find_nsys import all_nsys, find_nsys
from nsys_tui.reader.nsys import ensure_sqlite
from nsys_tui.reader.sqlite import Database

MAGIC = b"NVIDIA Tegra Profiler Report\0"
STAND_IN = """\
#!{python}
import pathlib, sqlite3, sys, time
arguments = sys.argv[1:]
pathlib.Path({log!r}).open("a").write(repr(arguments) + "\\n")
output = arguments[arguments.index("--output") + 1]
{behaviour}
"""
WORKS = """\
for percent in (0, 40, 100):
    sys.stderr.write(f"\\r[1/1] [=={percent}%    ] report.sqlite")
    sys.stderr.flush()
db = sqlite3.connect(output)
db.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
db.execute("INSERT INTO StringIds VALUES (1, 'exported')")
db.commit()
"""


@pytest.fixture(autouse=True)
def no_nsys_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(finder, "INSTALL_FOLDERS", ())
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "work" / "run 7.nsys-rep"
    path.parent.mkdir()
    path.write_bytes(MAGIC + b"\1\2" * 5000)
    return path


def stand_in(tmp_path: Path, behaviour: str = WORKS) -> Path:
    path = tmp_path / "bin" / "nsys"
    path.parent.mkdir(exist_ok=True)
    log = str(tmp_path / "calls")
    path.write_text(STAND_IN.format(python=sys.executable, log=log, behaviour=behaviour))
    path.chmod(0o755)
    return path


def calls(tmp_path: Path) -> list[list[str]]:
    file = tmp_path / "calls"
    return (
        [ast.literal_eval(line) for line in file.read_text().splitlines()] if file.exists() else []
    )


def export_beside(
    report: Path,
    source: str | None = None,
    exported: str = "2030-01-01T00:00:00",
    start: int = 1_800_000_000,
    table: str = "META_DATA_EXPORT",
    key: str = "EXPORT_PARAM_INPUT_FILE",
) -> Path:
    path = report.with_suffix(".sqlite")
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        db.execute(f"CREATE TABLE {table} (name TEXT, value TEXT)")
        rows = [(key, source or report.name), ("EXPORT_TIME_UTC", exported)]
        db.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)
        db.execute("CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER)")
        db.execute(
            "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?)", (start * 1_000_000_000,)
        )
        db.commit()
    return path


def texts(path: Path) -> list[str]:
    with Database.open(path) as db:
        return [value for (value,) in db.select("StringIds", ("value",))]


@pytest.mark.parametrize("source", [None, "other.nsys-rep"])
def test_what_a_writer_left_beside_is_copied_where_the_user_wants_the_cache(
    report: Path, tmp_path: Path, source: str | None
) -> None:
    path = export_beside(report, source)
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("INSERT INTO StringIds VALUES (2, 'later')")
        writer.commit()
        left = [(file.name, file.read_bytes()) for file in report.parent.glob("*.sqlite*")]
    for name, content in left:
        if not name.endswith("-shm"):
            (report.parent / name).write_bytes(content)
    ensure_sqlite(report, cache=Cache(tmp_path / "mine", 10**9))
    assert (tmp_path / "mine" / "copies").is_dir()
    assert not (cache_root() / "copies").exists()


class TestFinding:
    def test_none(self) -> None:
        assert find_nsys() is None
        assert find_nsys("/nowhere/nsys") is None

    def test_on_the_path(self, tmp_path: Path) -> None:
        path = stand_in(tmp_path)
        assert find_nsys() == path

    def test_an_explicit_file_folder_or_command(self, tmp_path: Path) -> None:
        path = stand_in(tmp_path)
        for explicit in (str(path), str(path.parent), str(tmp_path), "nsys"):
            assert find_nsys(explicit) == path

    def test_a_file_that_cannot_be_executed_is_none(self, tmp_path: Path) -> None:
        path = stand_in(tmp_path)
        path.chmod(0o644)
        assert find_nsys(str(path)) is None

    def test_one_in_the_current_folder_is_run_from_there(
        self, report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        nsys = stand_in(tmp_path)
        monkeypatch.chdir(nsys.parent)
        for given in (nsys.name, f"./{nsys.name}"):
            assert find_nsys(given) == nsys
        assert texts(ensure_sqlite(report, f"./{nsys.name}").path)

    def test_the_newest_of_the_install_folders(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for version in ("2024.5.1", "2025.10.2", "2025.9.1"):
            folder = tmp_path / "nsight-systems" / version / "bin"
            folder.mkdir(parents=True)
            shutil.copy(sys.executable, folder / "nsys")
        pattern = str(tmp_path / "nsight-systems*/*/bin/nsys")
        monkeypatch.setattr(finder, "INSTALL_FOLDERS", ("C:/x/nsys.exe", pattern))
        found = find_nsys()
        assert found is not None
        assert found.parts[-3] == "2025.10.2"


SAYS = """\
#!/bin/sh
[ "$1" != --version ] || {{ echo "NVIDIA Nsight Systems version {version}-1v0"; exit; }}
echo {version} >> {log}
exec {nsys} "$@"
"""


def of_version(tmp_path: Path, version: str, nsys: Path | str) -> Path:
    path = tmp_path / version / "nsys"
    path.parent.mkdir()
    path.write_text(SAYS.format(version=version, log=tmp_path / "tried", nsys=nsys))
    path.chmod(0o755)
    return path


class TestSeveralOnTheMachine:
    def test_the_newest_that_can_read_the_report_opens_it(
        self, report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        works = stand_in(tmp_path)
        old, newest, newer = (
            of_version(tmp_path, version, nsys)
            for version, nsys in (("2022.4.2", works), ("2024.10.1", "false"), ("2024.9.1", works))
        )
        folders = (old.parent, newest.parent, newer.parent, newest.parent)
        monkeypatch.setenv("PATH", ":".join([*map(str, folders), "/usr/bin:/bin"]))
        assert all_nsys() == all_nsys("auto") == [newest, newer, old]
        assert all_nsys(str(old)) == [old]
        assert texts(ensure_sqlite(report).path) == ["exported"]
        assert (tmp_path / "tried").read_text().split() == ["2024.10.1", "2024.9.1"]

    def test_what_the_newest_said_is_told_where_none_can(
        self, report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folders = [of_version(tmp_path, v, "false").parent for v in ("2023.1.1", "2024.1.1")]
        monkeypatch.setenv("PATH", ":".join([*map(str, folders), "/usr/bin:/bin"]))
        with pytest.raises(UnreadableReportError, match=r"2024\.1\.1/nsys export ended"):
            ensure_sqlite(report)


class TestWhatNeedsNoExport:
    def test_a_sqlite_file_is_itself_under_any_name(self, report: Path) -> None:
        beside = export_beside(report)
        assert ensure_sqlite(beside) == ensure_sqlite(beside, None)
        assert ensure_sqlite(beside).path == beside
        renamed = beside.rename(report.with_name("really.qdrep"))
        assert ensure_sqlite(renamed).path == renamed

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            ("r.qdstrm", b"\1" * 400, "raw stream"),
            ("r.sqlite", b"\x89PNG\r\n\x1a\n" + bytes(90), "PNG"),
            ("r.nsys-rep", b"", "0 bytes"),
        ],
    )
    def test_wrong_files_are_explained(
        self, tmp_path: Path, name: str, content: bytes, words: str
    ) -> None:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UnreadableReportError) as caught:
            ensure_sqlite(tmp_path / name)
        assert name in caught.value.title
        assert words in caught.value.message

    def test_missing_files_and_folders_are_explained(self, tmp_path: Path) -> None:
        for path in (tmp_path / "nowhere.nsys-rep", tmp_path):
            with pytest.raises(UnreadableReportError):
                ensure_sqlite(path)


class TestFreshness:
    @pytest.mark.parametrize(
        ("table", "key"),
        [
            ("META_DATA_EXPORT", "EXPORT_PARAM_INPUT_FILE"),
            ("EXPORT_META_DATA", "EXPORT_INPUT_FILE"),
        ],
    )
    @pytest.mark.parametrize("folder", ["", "/old/place/", "C:\\Users\\x\\"])
    def test_the_export_of_that_report_is_used(
        self, tmp_path: Path, report: Path, table: str, key: str, folder: str
    ) -> None:
        stand_in(tmp_path)
        beside = export_beside(report, folder + report.name, table=table, key=key)
        found = ensure_sqlite(report)
        assert (found.path, found.stale_reason) == (beside, None)
        assert calls(tmp_path) == []

    @pytest.mark.parametrize(
        ("difference", "words"),
        [
            ({"source": "other.nsys-rep"}, "another report"),
            ({"exported": "2020-01-01T00:00:00"}, "before the session"),
            ({"exported": "yesterday"}, "when it was exported"),
            ({"key": "EXPORT_OTHER"}, "which report"),
        ],
    )
    def test_a_doubtful_one_is_exported_afresh_or_opened_with_the_doubt(
        self, tmp_path: Path, report: Path, difference: dict[str, str], words: str
    ) -> None:
        beside = export_beside(report, **difference)  # type: ignore[arg-type]
        found = ensure_sqlite(report)
        assert found.path == beside
        assert found.stale_reason is not None
        assert words in found.stale_reason
        stand_in(tmp_path)
        found = ensure_sqlite(report)
        assert texts(found.path) == ["exported"]
        assert found.stale_reason is None

    def test_a_report_captured_again_under_the_same_name(self, report: Path) -> None:
        beside = export_beside(report, exported="2025-01-01T00:00:00", start=1_700_000_000)
        os.utime(beside, (1_735_689_600, 1_735_689_600))
        os.utime(report, (1_735_600_000, 1_735_600_000))
        assert ensure_sqlite(report).stale_reason is None
        os.utime(report, (1_735_776_000, 1_735_776_000))
        reason = ensure_sqlite(report).stale_reason
        assert reason is not None
        assert "was written after" in reason

    def test_a_pair_that_was_copied_together_is_trusted(self, report: Path) -> None:
        beside = export_beside(report, exported="2025-01-01T00:00:00", start=1_700_000_000)
        os.utime(beside, (1_780_000_000, 1_780_000_000))
        os.utime(report, (1_780_000_003, 1_780_000_003))
        assert ensure_sqlite(report).stale_reason is None

    def test_an_unreadable_one_is_no_help(self, tmp_path: Path, report: Path) -> None:
        report.with_suffix(".sqlite").write_bytes(b"SQLite format 3\0 cut")
        with pytest.raises(NsysMissingError):
            ensure_sqlite(report)
        stand_in(tmp_path)
        assert texts(ensure_sqlite(report).path) == ["exported"]


class TestExporting:
    def test_the_export_goes_into_the_cache_with_progress_and_is_found_again(
        self, tmp_path: Path, report: Path
    ) -> None:
        executable = stand_in(tmp_path)
        seen: list[tuple[str, int, int]] = []
        found = ensure_sqlite(report, str(executable), lambda *step: seen.append(step))
        assert texts(found.path) == ["exported"]
        assert cache_root() in found.path.parents
        assert (found.path.name, found.stale_reason) == ("run 7.sqlite", None)
        assert seen[-1] == ("exporting run 7.nsys-rep", 100, 100)
        assert [file.name for file in report.parent.iterdir()] == [report.name]
        assert ensure_sqlite(report).path == found.path
        (call,) = calls(tmp_path)
        assert call[:3] == ["export", "--type", "sqlite"]
        assert call[-1] == str(report)
        assert {"--include-json", "--include-blobs"} <= set(call)

    def test_qdrep_and_reports_under_another_name(self, tmp_path: Path, report: Path) -> None:
        stand_in(tmp_path)
        for name in ("old.qdrep", "no-suffix", "wrong.sqlite"):
            path = Path(shutil.copy(report, report.with_name(name)))
            path.write_bytes(path.read_bytes() + name.encode())
            assert texts(ensure_sqlite(path).path) == ["exported"]

    def test_a_changed_report_is_exported_again(self, tmp_path: Path, report: Path) -> None:
        stand_in(tmp_path)
        ensure_sqlite(report)
        report.write_bytes(MAGIC + b"\3" * 5000)
        ensure_sqlite(report)
        assert len(calls(tmp_path)) == 2

    def test_an_old_nsys_without_payload_options(self, tmp_path: Path, report: Path) -> None:
        old = "if '--include-json' in arguments: sys.exit('unrecognised option --include-json')\n"
        stand_in(tmp_path, old + WORKS)
        assert texts(ensure_sqlite(report).path) == ["exported"]
        assert len(calls(tmp_path)) == 2

    def test_arguments_are_passed_byte_for_byte(self, tmp_path: Path, report: Path) -> None:
        stand_in(tmp_path)
        path = report.rename(report.with_name("-a $(touch x) 'q\";.nsys-rep"))
        ensure_sqlite(path)
        assert calls(tmp_path)[0][-1] == str(path)

    @pytest.mark.parametrize(
        ("behaviour", "words"),
        [
            ("sys.exit('Importer error: wrong version')", "wrong version"),
            ("print('all is well')", "status 0"),
            ("open(output, 'w').write('junk')", "no usable database"),
            (WORKS + "sys.exit(3)", "status 3"),
            (
                "open(output, 'w'); print('[tag_message*] = database or disk is full')",
                "No space left on device",
            ),
        ],
    )
    def test_a_failure_tells_the_last_words_and_leaves_nothing(
        self, tmp_path: Path, report: Path, behaviour: str, words: str
    ) -> None:
        stand_in(tmp_path, behaviour)
        with pytest.raises(UnreadableReportError) as caught:
            ensure_sqlite(report)
        assert report.name in caught.value.title
        assert words in caught.value.message
        assert not list(cache_root().rglob("*.sqlite"))
        assert not list(cache_root().rglob(".new-*"))

    def test_cancelling_ends_nsys_and_leaves_nothing(self, tmp_path: Path, report: Path) -> None:
        pid_file = tmp_path / "pid"
        stand_in(
            tmp_path,
            "import os; open(output, 'w').write('part'); print('[1/1] [ 12%]', flush=True);"
            f"pathlib.Path({str(pid_file)!r}).write_text(str(os.getpid())); time.sleep(60)",
        )

        def cancel(what: str, done: int, total: int) -> None:
            if pid_file.exists() and pid_file.read_text():
                raise CancelledError("cancelled")

        begun = time.monotonic()
        with pytest.raises(CancelledError):
            ensure_sqlite(report, progress=cancel)
        assert time.monotonic() - begun < 30
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid_file.read_text()), 0)
        assert not list(cache_root().rglob(".new-*"))

    def test_a_helper_that_keeps_the_output_open_does_not_hang_us(
        self, tmp_path: Path, report: Path
    ) -> None:
        stand_in(tmp_path, "import subprocess; subprocess.Popen(['/bin/sleep', '5'])\n" + WORKS)
        begun = time.monotonic()
        assert texts(ensure_sqlite(report).path) == ["exported"]
        assert time.monotonic() - begun < 4

    def test_a_cache_that_takes_nothing_is_explained(
        self, tmp_path: Path, report: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stand_in(tmp_path)
        (tmp_path / "file").touch()
        monkeypatch.setenv("NSYS_TUI_CACHE", str(tmp_path / "file" / "cache"))
        with pytest.raises(UnreadableReportError) as caught:
            ensure_sqlite(report)
        assert "NSYS_TUI_CACHE" in caught.value.hint


class TestWithoutNsys:
    def test_the_error_says_how_to_export_and_where(self, report: Path) -> None:
        with pytest.raises(NsysMissingError) as caught:
            ensure_sqlite(report)
        assert report.name in caught.value.title
        assert "nsys export --type sqlite" in caught.value.hint
        assert "at least as new" in caught.value.hint
        assert caught.value.exit_code == NSYS_MISSING

    def test_a_wrong_explicit_nsys_is_named(self, report: Path) -> None:
        with pytest.raises(NsysMissingError, match="/nowhere/nsys"):
            ensure_sqlite(report, "/nowhere/nsys")

    def test_an_nsys_that_does_not_run_is_named(self, tmp_path: Path, report: Path) -> None:
        broken = stand_in(tmp_path)
        broken.write_bytes(b"\0\1\2")
        with pytest.raises(NsysMissingError, match="cannot be run"):
            ensure_sqlite(report, str(broken))
