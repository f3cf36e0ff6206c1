"""Opening SQLite files of every condition: read, or refused in plain words; never changed."""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from paths import needs_reports, report_paths

from nsys_tui.errors import UNREADABLE, UnreadableReportError
from nsys_tui.reader.sqlite import Database

ROWS = 500
LOGGED_ROWS = 5000
as_ordinary_user = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read and write everything"
)


def make(path: Path, rows: int = ROWS, journal_mode: str = "delete") -> Path:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA journal_mode = {journal_mode}")
        db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (start INTEGER, text TEXT)")
        db.executemany("INSERT INTO StringIds (value) VALUES (?)", [("name",)] * rows)
        db.execute("CREATE VIEW broken AS SELECT * FROM nowhere")
        db.commit()
    return path


def strings(path: Path) -> list[tuple[int, str]]:
    with Database.open(path) as db:
        return db.select("StringIds", ("id", "value"))


def snapshot(folder: Path) -> dict[str, str]:
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.iterdir()
        if file.is_file()
    }


def refusal(path: Path) -> UnreadableReportError:
    with pytest.raises(UnreadableReportError) as caught:
        Database.open(path)
    error = caught.value
    assert path.name in error.title
    assert error.message
    assert error.hint
    assert error.exit_code == UNREADABLE
    return error


def test_tables_are_real_tables_with_columns_in_file_order(tmp_path: Path) -> None:
    with Database.open(make(tmp_path / "r.sqlite")) as db:
        assert dict(db.tables) == {
            "StringIds": ("id", "value"),
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT": ("start", "text"),
        }


def test_rows_are_counted_without_reading_them_and_missing_tables_have_none(tmp_path: Path) -> None:
    with Database.open(make(tmp_path / "r.sqlite")) as db:
        assert db.has_rows("StringIds")
        assert not db.has_rows("CUPTI_ACTIVITY_KIND_CUDA_EVENT")
        assert not db.has_rows("nowhere")
        assert db.row_count("StringIds") == ROWS
        assert db.row_count("CUPTI_ACTIVITY_KIND_CUDA_EVENT") == 0
        assert db.row_count("nowhere") == 0


def test_an_absurd_rowid_does_not_make_an_absurd_count(tmp_path: Path) -> None:
    path = make(tmp_path / "r.sqlite", rows=3)
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("INSERT INTO StringIds VALUES (9223372036854775807, 'far')")
        writer.execute("INSERT INTO StringIds VALUES (-9223372036854775808, 'near')")
        writer.commit()
    with Database.open(path) as db:
        assert db.row_count("StringIds") == 5


def test_select_gives_none_for_columns_that_a_table_lacks(tmp_path: Path) -> None:
    with Database.open(make(tmp_path / "r.sqlite", rows=1)) as db:
        assert db.select("StringIds", ("value", "absent", "id")) == [("name", None, 1)]
        assert db.select("nowhere", ("id",)) == []


@pytest.mark.parametrize(
    "made", ["k TEXT PRIMARY KEY) WITHOUT ROWID", "rowid TEXT, _rowid_ TEXT, oid TEXT)"]
)
def test_a_table_of_nsys_whose_rows_have_no_numbers_is_refused(tmp_path: Path, made: str) -> None:
    path = make(tmp_path / "r.sqlite")
    with closing(sqlite3.connect(path)) as writer:
        writer.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({made}")
    with pytest.raises(UnreadableReportError, match="its CUPTI_ACTIVITY_KIND_KERNEL has no rowid"):
        Database.open(path)


def test_columns_named_like_the_rowid_do_not_hide_it(tmp_path: Path) -> None:
    path = make(tmp_path / "r.sqlite")
    with closing(sqlite3.connect(path)) as writer:
        writer.execute('CREATE TABLE odd (ROWID TEXT, _rowid_ TEXT, "a""b" INTEGER)')
        writer.execute("INSERT INTO odd VALUES ('x', 'y', 7)")
        writer.execute("CREATE TABLE keyed (k TEXT PRIMARY KEY) WITHOUT ROWID")
        writer.commit()
    with Database.open(path) as db:
        assert db.rowid_name("odd") == "oid"
        assert db.rowid_name("keyed") is None
        assert db.row_count("odd") == 1
        assert db.row_count("keyed") == 0
        assert db.select("odd", ('a"b',)) == [(7,)]


def test_invalid_utf8_is_replaced_and_control_characters_stay(tmp_path: Path) -> None:
    path = make(tmp_path / "r.sqlite", rows=0)
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("INSERT INTO StringIds VALUES (1, CAST(x'4a6fe0' AS TEXT))")
        writer.execute("INSERT INTO StringIds VALUES (2, CAST(x'1b5b6d0041' AS TEXT))")
        writer.commit()
    assert strings(path) == [(1, "Jo\ufffd"), (2, "\x1b[m\0A")]


@pytest.mark.parametrize(
    "name", ["a b.sqlite", "a?b.sqlite", "a#b.sqlite", "a%20b.sqlite", "a'b\"c.sqlite", "ü→.sqlite"]
)
def test_any_file_name_opens(tmp_path: Path, name: str) -> None:
    assert len(strings(make(tmp_path / name))) == ROWS


def test_a_name_that_is_no_utf8_opens(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.sqlite"))
    make(tmp_path / "r.sqlite").rename(path)
    assert len(strings(path)) == ROWS


def test_a_symlink_opens_and_the_same_file_opens_twice(tmp_path: Path) -> None:
    path = make(tmp_path / "r.sqlite")
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    with Database.open(path) as first, Database.open(link) as second:
        first.close()
        assert second.row_count("StringIds") == ROWS


@needs_reports
@pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
def test_real_reports_open_and_every_table_can_be_selected(path: Path) -> None:
    with (
        Database.open(path) as db,
        closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as c,
    ):
        for table, columns in db.tables.items():
            (count,) = c.execute(f'SELECT count(*) FROM "{table}"').fetchone()
            assert len(db.select(table, columns)) == count
            assert db.has_rows(table) == bool(count)


class TestFilesThatAreNoReport:
    def test_a_missing_path(self, tmp_path: Path) -> None:
        assert "no such file" in refusal(tmp_path / "r.sqlite").message

    def test_a_folder(self, tmp_path: Path) -> None:
        assert "folder" in refusal(tmp_path).message

    def test_a_pipe_does_not_hang(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "r.sqlite")
        assert "no regular file" in refusal(tmp_path / "r.sqlite").message

    def test_a_loop_of_symlinks(self, tmp_path: Path) -> None:
        (tmp_path / "r.sqlite").symlink_to(tmp_path / "r.sqlite")
        refusal(tmp_path / "r.sqlite")

    @as_ordinary_user
    def test_no_permission(self, tmp_path: Path) -> None:
        path = make(tmp_path / "r.sqlite")
        path.chmod(0)
        assert "permission" in refusal(path).message

    def test_an_empty_file(self, tmp_path: Path) -> None:
        (tmp_path / "r.sqlite").touch()
        assert "0 bytes" in refusal(tmp_path / "r.sqlite").message

    @pytest.mark.parametrize("kept", [20, 99, 5000, 0.5, 0.999])
    def test_a_file_that_was_cut(self, tmp_path: Path, kept: float) -> None:
        path = make(tmp_path / "r.sqlite", rows=3000)
        size = path.stat().st_size
        os.truncate(path, int(kept if kept > 1 else size * kept))
        assert "cut off" in refusal(path).message

    def test_a_cut_file_whose_header_counts_no_pages(self, tmp_path: Path) -> None:
        path = make(tmp_path / "r.sqlite", rows=3000)
        content = bytearray(path.read_bytes())
        content[92:96] = bytes(4)
        path.write_bytes(content[:-1000])
        assert "whole number of pages" in refusal(path).message

    @pytest.mark.parametrize(
        ("content", "kind"),
        [
            (b"Generating '/tmp/nsys-report.qdstrm'\n" * 9, "text"),
            (b"\x1f\x8b\x08" + bytes(range(200)), "gzip"),
            (b"\x89PNG\r\n\x1a\n" + bytes(200), "PNG"),
            (bytes(8192), "zeros"),
            (bytes(range(256)), "unknown or encrypted"),
            (b"NVIDIA Tegra Profiler Report\0" + bytes(200), "NVIDIA's own format"),
        ],
    )
    def test_another_format(self, tmp_path: Path, content: bytes, kind: str) -> None:
        (tmp_path / "r.sqlite").write_bytes(content)
        error = refusal(tmp_path / "r.sqlite")
        assert kind in error.message
        assert "nsys export" in error.hint

    def test_a_raw_stream(self, tmp_path: Path) -> None:
        (tmp_path / "r.qdstrm").write_bytes(b"\x01" * 300)
        assert "QdstrmImporter" in refusal(tmp_path / "r.qdstrm").hint

    def test_another_sqlite_database(self, tmp_path: Path) -> None:
        with closing(sqlite3.connect(tmp_path / "r.sqlite")) as db:
            db.execute("CREATE TABLE bookmarks (url TEXT)")
        assert "not one that nsys exported" in refusal(tmp_path / "r.sqlite").message

    def test_a_damaged_schema(self, tmp_path: Path) -> None:
        path = make(tmp_path / "r.sqlite")
        content = bytearray(path.read_bytes())
        content[100:4096] = bytes(3996)
        path.write_bytes(content)
        assert "damaged" in refusal(path).message

    def test_a_page_of_zeros_is_explained_when_it_is_reached(self, tmp_path: Path) -> None:
        path = make(tmp_path / "r.sqlite", rows=3000)
        content = bytearray(path.read_bytes())
        content[4096:] = bytes(len(content) - 4096)
        path.write_bytes(content)
        with Database.open(path) as db, pytest.raises(UnreadableReportError, match="SQLite says"):
            db.select("StringIds", ("id", "value"))


class TestHardening:
    def test_nothing_can_be_written(self, tmp_path: Path) -> None:
        with Database.open(make(tmp_path / "r.sqlite")) as db:
            for sql in ("DELETE FROM StringIds", "CREATE TABLE t (x)", "PRAGMA user_version = 3"):
                with pytest.raises(UnreadableReportError):
                    db.query(sql)

    def test_no_extension_can_be_loaded(self, tmp_path: Path) -> None:
        with Database.open(make(tmp_path / "r.sqlite")) as db, pytest.raises(UnreadableReportError):
            db.query("SELECT load_extension('x')")

    def test_a_reading_leaves_file_and_folder_as_they_were(self, tmp_path: Path) -> None:
        make(tmp_path / "r.sqlite", journal_mode="wal")
        assert snapshot(tmp_path).keys() == {"r.sqlite"}
        before, times = snapshot(tmp_path), (tmp_path / "r.sqlite").stat().st_mtime_ns
        assert len(strings(tmp_path / "r.sqlite")) == ROWS
        assert snapshot(tmp_path) == before
        assert (tmp_path / "r.sqlite").stat().st_mtime_ns == times

    @as_ordinary_user
    def test_a_read_only_folder(self, tmp_path: Path) -> None:
        folder = tmp_path / "fixed"
        folder.mkdir()
        path = make(folder / "r.sqlite", journal_mode="wal")
        folder.chmod(0o500)
        assert len(strings(path)) == ROWS

    def test_a_change_while_reading_is_noticed(self, tmp_path: Path) -> None:
        path = make(tmp_path / "r.sqlite")
        with Database.open(path) as db:
            db.check_unchanged()
            with closing(sqlite3.connect(path)) as writer:
                writer.execute("UPDATE StringIds SET value = 'other'")
                writer.commit()
            with pytest.raises(UnreadableReportError, match="changed while"):
                db.check_unchanged()

    def test_pages_that_a_writer_left_half_way_are_not_called_damage(self, tmp_path: Path) -> None:
        path = make(tmp_path / "r.sqlite")
        with Database.open(path) as db:
            with path.open("r+b") as file:
                file.seek(db.header.page_size)
                file.write(b"\xff" * (db.size - db.header.page_size))
                file.write(b"more")
            with pytest.raises(UnreadableReportError, match="changed while"):
                db.query("SELECT count(value || 'x') FROM StringIds")

    def test_a_file_that_is_replaced_while_open_still_reads_as_it_was(self, tmp_path: Path) -> None:
        path = make(tmp_path / "r.sqlite")
        with Database.open(path) as db:
            os.replace(make(tmp_path / "new.sqlite", rows=1), path)
            assert len(db.select("StringIds", ("id",))) == ROWS
            db.check_unchanged()

    def test_a_database_that_nobody_holds_gives_its_descriptor_back(self, tmp_path: Path) -> None:
        database = Database.open(make(tmp_path / "r.sqlite"))
        descriptor = database.descriptor
        del database
        gc.collect()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)

    def test_a_closed_database_closes_again_and_answers_no_more(self, tmp_path: Path) -> None:
        db = Database.open(make(tmp_path / "r.sqlite"))
        db.close()
        db.close()
        with pytest.raises(UnreadableReportError):
            db.query("SELECT 1")


def leave_log(folder: Path, journal_mode: str) -> Path:
    """Copies a database in the midst of a change together with its log, as a crash leaves it."""
    work = folder / "work"
    work.mkdir()
    path = make(work / "r.sqlite", LOGGED_ROWS, journal_mode)
    with closing(sqlite3.connect(path)) as writer:
        if journal_mode == "delete":
            writer.execute("PRAGMA cache_size = 1")
            writer.execute("PRAGMA cache_spill = 1")
        writer.execute("UPDATE StringIds SET value = value || ' of a later time ' || id")
        if journal_mode == "wal":
            writer.commit()
        for file in work.iterdir():
            if not file.name.endswith("-shm"):
                shutil.copy(file, folder)
        writer.rollback()
    return folder / path.name


class TestLogsLeftByAWriter:
    def test_a_write_ahead_log_is_applied_to_a_copy_only(self, tmp_path: Path) -> None:
        path = leave_log(tmp_path, "wal")
        before = snapshot(tmp_path)
        assert before.keys() == {"r.sqlite", "r.sqlite-wal"}
        assert strings(path)[6] == (7, "name of a later time 7")
        assert snapshot(tmp_path) == before

    def test_a_hot_journal_is_rolled_back_in_a_copy_only(self, tmp_path: Path) -> None:
        path = leave_log(tmp_path, "delete")
        before = snapshot(tmp_path)
        assert before.keys() == {"r.sqlite", "r.sqlite-journal"}
        assert b"of a later time" in path.read_bytes()
        assert strings(path) == [(row, "name") for row in range(1, LOGGED_ROWS + 1)]
        assert snapshot(tmp_path) == before

    def test_the_copy_does_not_stay(self, tmp_path: Path) -> None:
        path, scratch = leave_log(tmp_path, "wal"), tmp_path / "scratch"
        with Database.open(path, scratch) as db:
            assert scratch.is_dir()
            assert db.row_count("StringIds") == LOGGED_ROWS
        assert list(scratch.iterdir()) == []

    def test_a_copy_that_cannot_be_made_is_explained(self, tmp_path: Path) -> None:
        path = leave_log(tmp_path, "wal")
        (tmp_path / "file").touch()
        with pytest.raises(UnreadableReportError, match="unfinished changes"):
            Database.open(path, tmp_path / "file" / "scratch")

    def test_a_log_of_a_database_that_does_not_use_it_is_ignored(self, tmp_path: Path) -> None:
        path = make(tmp_path / "r.sqlite")
        (tmp_path / "r.sqlite-wal").write_bytes(b"\x37\x7f\x06\x82" + bytes(4000))
        (tmp_path / "r.sqlite-journal").write_bytes(bytes(4000))
        assert strings(path) == [(row, "name") for row in range(1, ROWS + 1)]

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux for its locks")
    @pytest.mark.parametrize(("lock", "opens"), [("EXCLUSIVE", False), ("IMMEDIATE", True)])
    def test_a_database_locked_by_a_writer(self, tmp_path: Path, lock: str, opens: bool) -> None:
        path = make(tmp_path / "r.sqlite")
        script = (
            "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None);"
            "db.execute('BEGIN ' + sys.argv[2]); db.execute('DELETE FROM StringIds');"
            "print('locked', flush=True); sys.stdin.read()"
        )
        command = [sys.executable, "-c", script, str(path), lock]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdin is not None
            assert writer.stdout.readline() == b"locked\n"
            if opens:
                assert len(strings(path)) == ROWS
            else:
                assert "another program is writing" in refusal(path).message
            writer.stdin.close()
