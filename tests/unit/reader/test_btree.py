"""The page decoder reads ordinary tables itself and refuses what it would have to guess."""

from __future__ import annotations

import random
import sqlite3
import struct
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from paths import needs_reports, report_paths

from nsys_tui.reader import btree
from nsys_tui.reader.btree import TablePages
from nsys_tui.reader.cells import PagesRefusedError, varints
from nsys_tui.reader.sqlite import Database, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

TABLE = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"


def make(path: Path, columns: str, rows: Iterable[tuple[Any, ...]], *more: str) -> Path:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"CREATE TABLE {TABLE} ({columns})")
        for row in rows:
            db.execute(f"INSERT INTO {TABLE} VALUES ({', '.join('?' * len(row))})", row)
        for sql in more:
            db.commit()
            db.execute(sql)
        db.commit()
    return path


def decode(path: Path, *columns: str) -> dict[str, list[int | None]]:
    """All rows of the columns, from pages only."""
    with Database.open(path) as db:
        pages = TablePages.open(db, TABLE)
        piece = pages.decode(np.arange(len(pages.leaves)), columns)
    found: dict[str, list[int | None]] = {"rowid": list(piece.rowid.tolist())}
    for name in columns:
        null = piece.nulls.get(name, np.zeros(len(piece.rowid), bool))
        values = piece.values[name].tolist()
        found[name] = [None if n else v for v, n in zip(values, null.tolist(), strict=True)]
    return found


def refused(path: Path, *columns: str) -> str:
    with pytest.raises(PagesRefusedError) as caught:
        decode(path, *columns)
    return str(caught.value)


EDGES = [
    0, 1, -1, 2, 127, 128, -128, -129, 2**15 - 1, 2**15, -(2**15), 2**23 - 1, 2**23, -(2**23) - 1,
    2**31 - 1, 2**31, -(2**31), 2**47 - 1, 2**47, -(2**47) - 1, 2**63 - 1, -(2**63), None,
]  # fmt: skip


@pytest.mark.parametrize("value", EDGES)
def test_a_column_of_one_width_has_its_value(tmp_path: Path, value: int | None) -> None:
    path = make(tmp_path / "r", "before, v INTEGER", [("x", value)] * 3)
    assert decode(path, "v") == {"rowid": [1, 2, 3], "v": [value] * 3}


def test_a_column_of_all_widths_keeps_every_value(tmp_path: Path) -> None:
    path = make(tmp_path / "r", "a INTEGER, v INTEGER", [(7, value) for value in EDGES])
    assert decode(path, "v", "a")["v"] == EDGES


def test_columns_after_text_of_any_length_are_found(tmp_path: Path) -> None:
    rows = [("x" * length, length) for length in (0, 1, 57, 58, 59, 120, 1000, 3900)]
    path = make(tmp_path / "r", "t TEXT, v INTEGER", rows)
    assert decode(path, "v")["v"] == [length for _, length in rows]


def test_a_tree_of_three_levels_is_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "r"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA page_size = 512")
        db.execute(f"CREATE TABLE {TABLE} (v INTEGER, t TEXT)")
        db.executemany(f"INSERT INTO {TABLE} VALUES (?, ?)", [(v, "x" * 90) for v in range(20000)])
        db.commit()
    assert decode(path, "v")["v"] == list(range(20000))


def test_the_primary_key_is_the_rowid(tmp_path: Path) -> None:
    path = make(tmp_path / "r", "id INTEGER PRIMARY KEY, v", [(5, 1), (-3, 2), (2**40, 3)])
    assert decode(path, "id", "v") == {
        "rowid": [-3, 5, 2**40],
        "id": [-3, 5, 2**40],
        "v": [2, 1, 3],
    }


def test_a_descending_key_is_a_column_of_its_own(tmp_path: Path) -> None:
    path = make(tmp_path / "r", "id INTEGER PRIMARY KEY DESC, v", [(9, 1), (4, 2)])
    assert decode(path, "id") == {"rowid": [1, 2], "id": [9, 4]}


def test_rowids_of_mixed_widths_on_a_page(tmp_path: Path) -> None:
    ids = [-(2**62), -5, 0, 1, 126, 127, 128, 129, 16384, 2**21, 2**56, 2**63 - 1]
    path = make(tmp_path / "r", "id INTEGER PRIMARY KEY, v", [(i, i % 100) for i in ids])
    assert decode(path, "v") == {"rowid": ids, "v": [i % 100 for i in ids]}


def test_old_records_lack_an_added_column(tmp_path: Path) -> None:
    added = (f"ALTER TABLE {TABLE} ADD COLUMN w INTEGER", f"INSERT INTO {TABLE} VALUES (3, 4)")
    path = make(tmp_path / "r", "v", [(1,), (2,)], *added)
    assert decode(path, "v", "w") == {"rowid": [1, 2, 3], "v": [1, 2, 3], "w": [None, None, 4]}


def test_an_empty_table_has_no_rows(tmp_path: Path) -> None:
    with Database.open(make(tmp_path / "r", "v", [])) as db:
        pages = TablePages.open(db, TABLE)
        assert (len(pages.leaves), list(pages.chunks())) == (0, [])


def test_the_pages_of_a_table_are_listed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database.open(make(tmp_path / "r", "v", [(1,)])) as db:
        first = TablePages.open(db, TABLE)
        monkeypatch.delattr(btree, "_leaf_pages")
        assert TablePages.open(db, TABLE).leaves is first.leaves


def test_reserved_bytes_at_the_end_of_pages_hold_nothing(tmp_path: Path) -> None:
    path = make(tmp_path / "r", "v", [], f"DROP TABLE {TABLE}", "VACUUM")
    content = bytearray(path.read_bytes())
    content[20] = 32
    struct.pack_into(">H", content, 105, 4096 - 32)
    path.write_bytes(content)
    make(path, "v, t", [(v, "x" * (v % 700)) for v in range(900)])
    with Database.open(path) as db:
        assert db.header.reserved == 32
    assert decode(path, "v")["v"] == list(range(900))


class TestRefusals:
    def test_text_in_a_wanted_column_only(self, tmp_path: Path) -> None:
        path = make(tmp_path / "r", "a, v", [(1, 1), ("text", 2), (3, 3)])
        assert "no integer" in refused(path, "a", "v")
        assert decode(path, "v")["v"] == [1, 2, 3]

    @pytest.mark.parametrize("other", [0, 1, 2**40, None])
    def test_a_fraction_in_a_wanted_column(self, tmp_path: Path, other: int | None) -> None:
        path = make(tmp_path / "r", "v", [(other,), (1.5,), (2,), (300,)])
        assert "no integer" in refused(path, "v")

    def test_overflow_before_a_wanted_column_only(self, tmp_path: Path) -> None:
        path = make(tmp_path / "r", "a, t, v", [(1, "x" * 50_000, 2)])
        assert "overflow" in refused(path, "v")
        assert decode(path, "a")["a"] == [1]

    def test_a_default_that_old_records_take(self, tmp_path: Path) -> None:
        added = f"ALTER TABLE {TABLE} ADD COLUMN w INTEGER DEFAULT 7"
        assert "default" in refused(make(tmp_path / "r", "v", [(1,)], added), "w")

    def test_generated_columns(self, tmp_path: Path) -> None:
        path = make(tmp_path / "r", "g INTEGER AS (v + 1) VIRTUAL, v INTEGER", [])
        assert "generated" in refused(path, "v")

    def test_texts_of_another_encoding(self, tmp_path: Path) -> None:
        path = tmp_path / "r"
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA encoding = 'UTF-16'")
            db.execute(f"CREATE TABLE {TABLE} (text)")
            db.execute(f"INSERT INTO {TABLE} VALUES ('name')")
            db.commit()
        with Database.open(path) as db:
            pages = TablePages.open(db, TABLE)
            with pytest.raises(PagesRefusedError, match="UTF-8"):
                pages.texts(np.array([0]), "text")

    def test_damaged_pages_are_refused_and_never_a_crash(self, tmp_path: Path) -> None:
        rows = [(v, "x" * (v % 40), v * 1000, None) for v in range(3000)]
        path = make(tmp_path / "r", "a, t, v, w", rows)
        good, random_bytes = path.read_bytes(), random.Random(4)
        for _ in range(60):
            content = bytearray(good)
            page = random_bytes.randrange(1, len(good) // 4096) * 4096
            for _ in range(random_bytes.randrange(1, 200)):
                content[page + random_bytes.randrange(4096)] = random_bytes.randrange(256)
            path.write_bytes(content)
            with Database.open(path) as db:
                try:
                    pages = TablePages.open(db, TABLE)
                    piece = pages.decode(np.arange(len(pages.leaves)), ["a", "v", "w"])
                except PagesRefusedError:
                    continue
                assert len(piece.values["v"]) == len(piece.rowid)

    def test_whole_numbers_that_sqlite_rounds(self, tmp_path: Path) -> None:
        path = make(tmp_path / "r", "v INTEGER", [(2**53 + 1,), (3,)])
        path.write_bytes(path.read_bytes().replace(b"(v INTEGER)", b"(v    REAL)"))
        with closing(sqlite3.connect(path)) as db:
            assert db.execute(f"SELECT v FROM {TABLE}").fetchall() == [(2.0**53,), (3.0,)]
        assert "no integer" in refused(path, "v")

    def test_a_tree_that_leads_back_to_itself(self, tmp_path: Path) -> None:
        path = make(tmp_path / "r", "v", [(v,) for v in range(3000)])
        with Database.open(path) as db:
            root = db.query("SELECT rootpage FROM sqlite_master")[0][0]
        content = bytearray(path.read_bytes())
        start = (root - 1) * 4096
        cells = struct.unpack_from(">H", content, start + 3)[0]
        for cell in range(cells):
            (at,) = struct.unpack_from(">H", content, start + 12 + 2 * cell)
            struct.pack_into(">I", content, start + at, root)
        struct.pack_into(">I", content, start + 8, root)
        path.write_bytes(content)
        assert "tree" in refused(path, "v")


def test_chunks_cover_all_leaves_in_pieces_of_the_given_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(btree, "CHUNK_BYTES", 3 * 4096)
    path = make(tmp_path / "r", "v, t", [(v, "x" * 300) for v in range(500)])
    with Database.open(path) as db:
        pages = TablePages.open(db, TABLE)
        chunks = list(pages.chunks())
        assert max(len(chunk) for chunk in chunks) == 3
        assert np.concatenate(chunks).tolist() == list(range(len(pages.leaves)))


def test_a_sample_is_spread_over_the_leaves_ends_included(tmp_path: Path) -> None:
    path = make(tmp_path / "r", "v, t", [(v, "x" * 300) for v in range(500)])
    with Database.open(path) as db:
        pages = TablePages.open(db, TABLE)
        picked = np.concatenate([*pages.sample(5)])
        assert len(picked) == 5
        assert picked[0] == 0
        assert picked[-1] == len(pages.leaves) - 1
        assert np.concatenate([*pages.sample(10**6)]).tolist() == list(range(len(pages.leaves)))


@pytest.mark.parametrize(
    ("data", "value", "width"),
    [
        (b"\x00", 0, 1),
        (b"\x7f", 127, 1),
        (b"\x81\x00", 128, 2),
        (b"\xff\xff\xff\xff\xff\xff\xff\x7f", 2**56 - 1, 8),
        (b"\xff" * 9, -1, 9),
        (b"\x80" * 8 + b"\xff", 255, 9),
    ],
)
def test_varints_of_every_width(data: bytes, value: int, width: int) -> None:
    values, widths = varints(np.frombuffer(data + bytes(9), np.uint8), np.array([0, len(data)]))
    assert values.tolist() == [value, 0]
    assert widths.tolist() == [width, 1]


@needs_reports
@pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
def test_event_tables_of_real_reports_are_read_from_pages_and_equal_sqlite3(path: Path) -> None:
    events = (
        "CUPTI_ACTIVITY_KIND_",
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
        "OSRT_API",
        "COMPOSITE_",
        "SCHED_",
        "SAMPLING_",
    )
    plain = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    plain.text_factory = bytes
    with closing(plain), Database.open(path) as db:
        for table in (table for table in db.tables if table.startswith(events)):
            kinds = plain.execute(f"PRAGMA table_info({quoted(table)})").fetchall()
            columns = [name.decode() for _, name, kind, *_ in kinds if kind == b"INTEGER"]
            pages = TablePages.open(db, table)
            if not len(pages.leaves):
                assert not plain.execute(f"SELECT 1 FROM {quoted(table)}").fetchall()
                continue
            piece = pages.decode(np.arange(len(pages.leaves)), columns)
            terms = ", ".join(map(quoted, columns))
            rows = plain.execute(f"SELECT {terms} FROM {quoted(table)} ORDER BY rowid").fetchall()
            for name, expected in zip(columns, zip(*rows, strict=True), strict=False):
                null = piece.nulls.get(name, np.zeros(len(rows), bool))
                assert null.tolist() == [value is None for value in expected], (table, name)
                assert piece.values[name].tolist() == [value or 0 for value in expected]
