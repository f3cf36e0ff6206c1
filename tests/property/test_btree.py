"""The page decoder against sqlite3 on random databases; sqlite3 is always right."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from nsys_tui.errors import UnreadableReportError
from nsys_tui.reader import btree
from nsys_tui.reader.columns import read_columns, read_text, read_text_column, sample_columns
from nsys_tui.reader.sqlite import Database

if TYPE_CHECKING:
    from nsys_tui.reader.raw_columns import RawColumns

INTEGERS = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from(
        [s * (2**b + d) for b in (7, 15, 23, 31, 47) for d in (-1, 0) for s in (1, -1)]
    ),
)
TEXTS = st.one_of(
    st.none(),
    st.text(max_size=90),
    st.sampled_from(["", "aten::mm", "aten::mm ", "step 7", "é" * 70, "x" * 300]),
)


@st.composite
def databases(draw: st.DrawFn) -> dict[str, Any]:
    width = draw(st.sampled_from([1, 3, 8, 40, 130]))
    rows = draw(st.lists(st.tuples(*[INTEGERS] * min(width, 3), TEXTS), max_size=60))
    return {
        "page_size": draw(st.sampled_from([512, 1024, 4096, 65536])),
        "auto_vacuum": draw(st.booleans()),
        "key": draw(st.sampled_from(["", "PRIMARY KEY", "PRIMARY KEY DESC"])),
        "chunk_bytes": draw(st.sampled_from([1, 4096, btree.CHUNK_BYTES])),
        "width": width,
        "rows": rows,
        "repeats": draw(st.sampled_from([1, 1, 7, 40])),
        "deleted": draw(st.sampled_from([None, 2, 7])),
        "added": draw(st.sampled_from([None, "", "DEFAULT 5"])),
        "far_rowids": draw(st.lists(st.integers(-(2**62), 2**62), max_size=3, unique=True)),
        "odd_value": draw(st.sampled_from([None, None, None, "'text'", "1.5", "x'00ff'"])),
    }


def build(path: Path, plan: dict[str, Any]) -> None:
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA page_size = {plan['page_size']}")
    db.execute(f"PRAGMA auto_vacuum = {int(plan['auto_vacuum'])}")
    names = [f"c{i}" for i in range(plan["width"])]
    columns = ", ".join(f"{name} INTEGER" for name in names)
    key = f"id INTEGER {plan['key']}, " if plan["key"] else ""
    db.execute(f"CREATE TABLE events ({key}{columns}, label TEXT, last INTEGER)")
    db.execute("CREATE TABLE META_DATA_CAPTURE (name, value)")
    db.execute("CREATE TABLE other (x, y)")
    insert = f"INSERT INTO events ({', '.join(names)}, label, last) VALUES ({{}})".format(
        ", ".join("?" * (plan["width"] + 2))
    )
    for turn in range(plan["repeats"]):
        for *numbers, label in plan["rows"]:
            filled = (numbers * plan["width"])[: plan["width"]]
            db.execute(insert, (*filled, label, turn))
        db.execute("INSERT INTO other VALUES (?, ?)", (turn, "q" * 700))
    if plan["deleted"]:
        db.execute("DELETE FROM events WHERE rowid % ? = 1", (plan["deleted"],))
    if plan["added"] is not None:
        db.execute(f"ALTER TABLE events ADD COLUMN late INTEGER {plan['added']}")
        db.execute("INSERT INTO events (c0, late) VALUES (1, 6)")
    for rowid in plan["far_rowids"]:
        db.execute("INSERT OR REPLACE INTO events (rowid, c0) VALUES (?, 3)", (rowid,))
    if plan["odd_value"]:
        db.execute(f"UPDATE events SET c0 = {plan['odd_value']} WHERE rowid % 3 = 0")
    db.commit()
    db.close()


def listed(raw: RawColumns, name: str) -> list[int | None]:
    null = raw.nulls.get(name, np.zeros(len(raw.rowid), bool))
    return [None if n else v for v, n in zip(raw.values[name].tolist(), null.tolist(), strict=True)]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=databases())
def test_columns_equal_what_sqlite3_reads(plan: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.sqlite"
        build(path, plan)
        chunk = mock.patch.object(btree, "CHUNK_BYTES", plan["chunk_bytes"])
        with chunk, Database.open(path) as db, closing(sqlite3.connect(path)) as truth:
            columns = [name for name in db.tables["events"] if name != "label"]
            raw = read_columns(db, "events", columns)
            event(f"{raw.method}: {raw.why}")
            rowids = [row[0] for row in truth.execute("SELECT rowid FROM events ORDER BY rowid")]
            assert raw.rowid.tolist() == rowids
            for name in columns:
                sql = f"SELECT {name} FROM events ORDER BY rowid"
                expected = [value for (value,) in truth.execute(sql)]
                assert listed(raw, name) == [
                    value if isinstance(value, int) else None for value in expected
                ]
                odd = sum(not isinstance(value, int | None) for value in expected)
                assert sum(raw.bad.get(name, {}).values()) == odd
            codes, values = read_text_column(db, "events", "label")
            assert [values[c] if c >= 0 else None for c in codes.tolist()] == [
                row[0] for row in truth.execute("SELECT label FROM events ORDER BY rowid")
            ]
            assert len(set(values)) == len(values)
            sampled = sample_columns(db, "events", columns, 5)
            assert set(sampled.rowid.tolist()) <= set(rowids)
            whole = dict(zip(rowids, listed(raw, "last"), strict=True))
            assert listed(sampled, "last") == [whole[row] for row in sampled.rowid.tolist()]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_and_never_a_surprise(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.sqlite"
        build(path, SOUND)
        content = bytearray(path.read_bytes())
        places = st.integers(16, len(content) - 4)
        patches = st.sampled_from([bytes(4), b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x00\x00\x00\x03"])
        for place in data.draw(st.lists(places, min_size=1, max_size=40)):
            patch = data.draw(patches) if place % 2 else bytes([data.draw(st.integers(0, 255))])
            content[place : place + len(patch)] = patch
        path.write_bytes(content)
        with suppress(UnreadableReportError), Database.open(path) as db:
            for table, columns in db.tables.items():
                for read in (
                    lambda table=table, columns=columns: read_columns(db, table, columns),
                    lambda table=table, columns=columns: sample_columns(db, table, columns, 5),
                    lambda table=table, columns=columns: read_text_column(db, table, columns[-1]),
                    lambda table=table, columns=columns: read_text(db, table, columns[0], "label"),
                ):
                    with suppress(UnreadableReportError):
                        read()


SOUND: dict[str, Any] = {
    "page_size": 512,
    "auto_vacuum": False,
    "key": "PRIMARY KEY",
    "width": 3,
    "rows": [(1, 2**40, None, "aten::mm"), (-5, None, 70, None), (2**20, 1, 0, "x" * 40)],
    "repeats": 30,
    "deleted": None,
    "added": "",
    "far_rowids": [],
    "odd_value": None,
}
