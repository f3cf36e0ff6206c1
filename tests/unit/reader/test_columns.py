"""Columns come from pages or through sqlite3, and the result is the same but for its method."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nsys_tui.errors import CancelledError, UnreadableReportError
from nsys_tui.reader import btree, texts
from nsys_tui.reader.btree import TablePages
from nsys_tui.reader.cells import PagesRefusedError
from nsys_tui.reader.columns import (
    iter_columns,
    read_columns,
    read_text,
    read_text_column,
    sample_columns,
)
from nsys_tui.reader.raw_columns import Wanted
from nsys_tui.reader.sqlite import Database

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsys_tui.reader.raw_columns import RawColumns

NEEDED = {"start": Wanted(filled=True, required=True)}
TABLE = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """3000 rows: start = 10 × rowid, a NULL end in every third."""
    path = tmp_path / "r.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"CREATE TABLE {TABLE} (start INTEGER, end INTEGER, text TEXT)")
        db.executemany(
            f"INSERT INTO {TABLE} VALUES (?, ?, ?)",
            [
                (10 * i, None if i % 3 == 0 else i, "odd" if i % 2 else "even")
                for i in range(1, 3001)
            ],
        )
        db.commit()
    return path


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        for sql in statements:
            db.execute(sql)
        db.commit()


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(btree, "CHUNK_BYTES", 4 * 4096)


def refuse_pages(monkeypatch: pytest.MonkeyPatch, after: int = 0) -> None:
    """Makes the decoder refuse its ``after``-th and all later chunks."""
    decode, calls = TablePages.decode, iter(range(10**6))

    def refusing(self: TablePages, pages: Any, columns: Sequence[str]) -> Any:
        if next(calls) >= after:
            raise PagesRefusedError("refused for the test")
        return decode(self, pages, columns)

    monkeypatch.setattr(TablePages, "decode", refusing)


def check(raw: RawColumns) -> None:
    """Compares with what the fixture wrote."""
    rows = np.arange(1, 3001)
    assert raw.rowid.tolist() == rows.tolist()
    assert raw.values["start"].tolist() == (10 * rows).tolist()
    assert raw.nulls.keys() == {"end"}
    assert raw.nulls["end"].tolist() == (rows % 3 == 0).tolist()
    assert raw.values["end"].tolist() == np.where(rows % 3 == 0, 0, rows).tolist()
    assert raw.values["start"].dtype == np.int64


def test_an_ordinary_table_is_read_from_pages(path: Path) -> None:
    with Database.open(path) as db:
        raw = read_columns(db, TABLE, ["start", "end", "absent"])
    check(raw)
    assert raw.values.keys() == {"start", "end"}
    assert (raw.method, raw.why, raw.bad) == ("pages", "", {})


def test_refused_pages_are_read_through_sqlite3_with_the_reason(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_pages(monkeypatch)
    with Database.open(path) as db:
        raw = read_columns(db, TABLE, ["start", "end"])
    check(raw)
    assert (raw.method, raw.why) == ("sqlite3", "refused for the test")


@pytest.mark.usefixtures("small_chunks")
def test_a_refusal_in_the_midst_goes_on_from_the_row_reached(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_pages(monkeypatch, after=2)
    with Database.open(path) as db:
        methods = [piece.method for piece in iter_columns(db, TABLE, ["start"])]
        assert methods[:2] == ["pages", "pages"]
        assert set(methods[2:]) == {"sqlite3"}
    monkeypatch.undo()
    monkeypatch.setattr(btree, "CHUNK_BYTES", 4 * 4096)
    refuse_pages(monkeypatch, after=2)
    with Database.open(path) as db:
        check(read_columns(db, TABLE, ["start", "end"]))


def test_rows_that_differ_from_what_sqlite3_reads_are_not_believed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = TablePages.decode

    def wrong(self: TablePages, pages: Any, columns: Sequence[str]) -> Any:
        piece = decode(self, pages, columns)
        piece.values["start"] += 1
        return piece

    monkeypatch.setattr(TablePages, "decode", wrong)
    with Database.open(path) as db:
        raw = read_columns(db, TABLE, ["start", "end"])
    check(raw)
    assert "differ" in raw.why


def test_values_that_are_no_integers_become_null_and_are_counted(path: Path) -> None:
    change(
        path,
        f"UPDATE {TABLE} SET start = 'soon' WHERE rowid IN (5, 6)",
        f"UPDATE {TABLE} SET start = 2.5 WHERE rowid = 7",
        f"UPDATE {TABLE} SET start = x'00' WHERE rowid = 8",
    )
    with Database.open(path) as db:
        raw = read_columns(db, TABLE, ["start", "end"])
    assert raw.method == "sqlite3"
    assert db.notes.texts == (
        f"2 rows with text in `start` of {TABLE}: taken as missing",
        f"1 row with a fraction in `start` of {TABLE}: taken as missing",
        f"1 row with a blob in `start` of {TABLE}: taken as missing",
    )
    assert raw.bad == {"start": {"text": 2, "a fraction": 1, "a blob": 1}}
    assert np.flatnonzero(raw.nulls["start"]).tolist() == [4, 5, 6, 7]
    assert raw.values["start"][:9].tolist() == [10, 20, 30, 40, 0, 0, 0, 0, 90]


@pytest.mark.usefixtures("small_chunks")
def test_rows_without_a_required_number_are_left_out_and_counted(path: Path) -> None:
    change(
        path,
        f"UPDATE {TABLE} SET start = 'soon' WHERE rowid IN (5, 2995)",
        f"UPDATE {TABLE} SET start = NULL WHERE rowid = 7",
        f"UPDATE {TABLE} SET end = 'late' WHERE rowid = 2996",
    )
    with Database.open(path) as db:
        raw = read_columns(db, TABLE, ["start", "end"], wanted=NEEDED)
        assert db.notes.texts == (
            f"2 rows with text in `start` of {TABLE} left out",
            f"1 row with NULL in `start` of {TABLE} left out",
            f"1 row with text in `end` of {TABLE}: taken as missing",
        )
        sampled = sample_columns(db, TABLE, ["start"], 3000 - 1, wanted=NEEDED)
        assert not {5, 7, 2995} & set(sampled.rowid.tolist())
    assert raw.rowid.tolist() == [row for row in range(1, 3001) if row not in (5, 7, 2995)]
    assert raw.left_out.tolist() == [4, 6, 2994]
    assert "start" not in raw.nulls
    assert raw.nulls["end"][-5]
    assert (raw.values["start"] == 10 * raw.rowid).all()


@pytest.mark.parametrize("method", ["pages", "sqlite3"])
def test_rows_with_null_where_a_number_is_required_are_left_out(
    path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    change(path, f"UPDATE {TABLE} SET start = NULL WHERE rowid IN (1, 7, 3000)")
    if method == "sqlite3":
        refuse_pages(monkeypatch)
    with Database.open(path) as db:
        raw = read_columns(db, TABLE, ["start"], wanted=NEEDED)
        sampled = sample_columns(db, TABLE, ["start"], 3000 - 1, wanted=NEEDED)
        assert f"3 rows with NULL in `start` of {TABLE} left out" in db.notes.texts
    assert raw.method == method
    assert not {1, 7, 3000} & {*raw.rowid.tolist(), *sampled.rowid.tolist()}
    assert (len(raw.rowid), "start" in raw.nulls) == (2997, False)


def test_what_is_no_text_is_read_as_text_and_counted(path: Path) -> None:
    change(
        path,
        "CREATE TABLE unknown_events (start INTEGER, text)",
        "INSERT INTO unknown_events VALUES (1, 'a'), (2, 7), (3, x'62'), (4, NULL)",
    )
    with Database.open(path) as db:
        codes, values = read_text_column(db, "unknown_events", "text")
        mine = [note.text for note in db.notes if note.column == "text"]
    assert [values[code] if code >= 0 else None for code in codes] == ["a", "7", "b", None]
    assert mine == [
        "1 row with a number in `text` of unknown_events: read as text",
        "1 row with a blob in `text` of unknown_events: read as text",
    ]


def test_whole_numbers_in_a_real_column_read_the_same_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "real.sqlite"
    change(
        path,
        f"CREATE TABLE {TABLE} (v REAL)",
        f"INSERT INTO {TABLE} VALUES (7), (-3), (1e12)",
    )
    with Database.open(path) as db:
        from_pages = read_columns(db, TABLE, ["v"])
        refuse_pages(monkeypatch)
        through = read_columns(db, TABLE, ["v"])
    assert (from_pages.method, through.method) == ("pages", "sqlite3")
    assert from_pages.values["v"].tolist() == through.values["v"].tolist() == [7, -3, 10**12]


def test_an_index_of_another_tool_does_not_change_the_order(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(path, f"UPDATE {TABLE} SET start = -start", f"CREATE INDEX i ON {TABLE} (start, end)")
    refuse_pages(monkeypatch)
    with Database.open(path) as db:
        raw = read_columns(db, TABLE, ["start"])
        assert raw.values["start"].tolist() == [-10 * row for row in range(1, 3001)]
        sampled = sample_columns(db, TABLE, ["start"], 100)
        assert (sampled.values["start"] == -10 * sampled.rowid).all()


def test_missing_and_empty_tables_have_no_rows(path: Path) -> None:
    change(path, "CREATE TABLE OSRT_API (start INTEGER)")
    with Database.open(path) as db:
        for table in ("OSRT_API", "nowhere"):
            raw = read_columns(db, table, ["start"])
            assert len(raw.rowid) == 0
            assert all(len(values) == 0 for values in raw.values.values())
            assert len(sample_columns(db, table, ["start"], 10).rowid) == 0
            codes, values = read_text_column(db, table, "start")
            assert (len(codes), values) == (0, [])
            keys, found = read_text(db, table, "id", "value")
            assert (len(keys), found) == (0, [])


def test_no_columns_at_all_still_gives_the_rows(path: Path) -> None:
    with Database.open(path) as db:
        assert len(read_columns(db, TABLE, []).rowid) == 3000


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("pages", [True, False])
def test_progress_rises_to_the_number_of_rows(
    path: Path, monkeypatch: pytest.MonkeyPatch, pages: bool
) -> None:
    if not pages:
        refuse_pages(monkeypatch)
    seen: list[tuple[str, int, int]] = []
    with Database.open(path) as db:
        read_columns(db, TABLE, ["start"], lambda *step: seen.append(step))
    done = [step[1] for step in seen]
    assert done == sorted(done)
    assert (seen[0], seen[-1]) == ((TABLE, 0, 3000), (TABLE, 3000, 3000))


@pytest.mark.usefixtures("small_chunks")
def test_an_error_in_progress_cancels(path: Path) -> None:
    def cancel(what: str, done: int, total: int) -> None:
        if done:
            raise CancelledError("cancelled")

    with Database.open(path) as db:
        with pytest.raises(CancelledError):
            read_columns(db, TABLE, ["start"], cancel)
        check(read_columns(db, TABLE, ["start", "end"]))


def test_threads_share_an_open_report(path: Path) -> None:
    with Database.open(path) as db, ThreadPoolExecutor(4) as pool:
        for raw in pool.map(lambda _: read_columns(db, TABLE, ["start", "end"]), range(12)):
            check(raw)


def test_a_file_changed_meanwhile_is_an_error(path: Path) -> None:
    def write(what: str, done: int, total: int) -> None:
        if done:
            change(path, f"DELETE FROM {TABLE} WHERE rowid = 1")

    with Database.open(path) as db, pytest.raises(UnreadableReportError, match="changed while"):
        read_columns(db, TABLE, ["start"], write)


@pytest.mark.parametrize("pages", [True, False])
def test_a_sample_is_spread_over_the_table(
    path: Path, monkeypatch: pytest.MonkeyPatch, pages: bool
) -> None:
    if not pages:
        refuse_pages(monkeypatch)
    with Database.open(path) as db:
        raw = sample_columns(db, TABLE, ["start"], 1000)
    assert 300 <= len(raw.rowid) <= 1500
    assert (np.diff(raw.rowid) > 0).all()
    assert (raw.values["start"] == 10 * raw.rowid).all()
    thirds = np.bincount((raw.rowid - 1) // 1000, minlength=3)
    assert (thirds > 0).all()


def test_a_small_table_is_sampled_whole(path: Path) -> None:
    with Database.open(path) as db:
        check(sample_columns(db, TABLE, ["start", "end"], 3000))


class TestTexts:
    HARD = (
        "", "a", "a\0", "a\0b", "\x1b[31m", "[red]", "e\u0301", "é", "🚀" * 9, "x" * 7, "x" * 8,
        "x" * 9, "x" * 64, "x" * 64 + "y", "y" + "x" * 64, "line\nline\t", "\u202eabc",
    )  # fmt: skip

    def make(self, path: Path, values: Sequence[object]) -> Path:
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
            db.executemany("INSERT INTO StringIds (value) VALUES (?)", [(v,) for v in values])
            db.commit()
        return path

    @pytest.mark.parametrize("pages", [True, False])
    def test_texts_of_every_kind(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: bool
    ) -> None:
        expected = [*self.HARD, None, *reversed(self.HARD)]
        path = self.make(tmp_path / "r", expected)
        if not pages:
            monkeypatch.setattr(TablePages, "texts", self.refusing)
        with Database.open(path) as db:
            codes, values = read_text_column(db, "StringIds", "value")
        assert codes.dtype == np.int32
        assert [values[code] if code >= 0 else None for code in codes] == expected
        assert values == list(self.HARD)

    @staticmethod
    def refusing(*_: object) -> None:
        raise PagesRefusedError("refused for the test")

    def test_invalid_utf8_is_replaced_and_a_number_is_its_digits(self, tmp_path: Path) -> None:
        path = self.make(tmp_path / "r", ["x"])
        change(path, "INSERT INTO StringIds VALUES (2, CAST(x'41ff' AS TEXT)), (3, x'42fe')")
        with Database.open(path) as db:
            codes, values = read_text_column(db, "StringIds", "value")
            keys, found = read_text(db, "StringIds", "id", "value")
        assert [values[code] for code in codes] == ["x", "A\ufffd", "B\ufffd"]
        assert (keys.tolist(), found) == ([1, 2, 3], ["x", "A\ufffd", "B\ufffd"])

    def test_a_name_of_100_000_characters(self, tmp_path: Path) -> None:
        path = self.make(tmp_path / "r", ["short", "k" * 100_000, "short"])
        with Database.open(path) as db:
            codes, values = read_text_column(db, "StringIds", "value")
        assert (codes.tolist(), values) == ([0, 1, 0], ["short", "k" * 100_000])

    def test_null_texts_and_keys_that_are_no_integers(self, tmp_path: Path) -> None:
        path = tmp_path / "r"
        change(
            path,
            "CREATE TABLE StringIds (id, value)",
            "INSERT INTO StringIds VALUES (5, NULL), ('k', 'lost'), (NULL, 'lost'), (7, 'x')",
        )
        with Database.open(path) as db:
            keys, found = read_text(db, "StringIds", "id", "value")
        assert (keys.tolist(), keys.dtype, found) == ([5, 7], np.int64, ["", "x"])

    def test_a_text_that_differs_from_what_sqlite3_reads_is_not_believed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = self.make(tmp_path / "r", ["one", "two"])
        monkeypatch.setattr(texts.TextSpans, "text", lambda self, row: "wrong")
        with Database.open(path) as db:
            codes, values = read_text_column(db, "StringIds", "value")
        assert (codes.tolist(), values) == ([0, 1], ["one", "two"])

    def test_texts_that_share_a_hash_stay_apart(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(texts, "_MULTIPLIER", np.uint64(0))
        path = self.make(tmp_path / "r", ["abc", "abd", "abc", "b"])
        with Database.open(path) as db:
            codes, values = read_text_column(db, "StringIds", "value")
        assert (codes.tolist(), values) == ([0, 1, 0, 2], ["abc", "abd", "b"])
