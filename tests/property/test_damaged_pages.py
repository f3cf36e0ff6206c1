"""Pages damaged in many ways: what is read is what sqlite3 reads, or it is said, or refused.

A few thousand mutants run here. Any number of them, with another seed:

    python tests/property/test_damaged_pages.py 70000 --seed 7
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import struct
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pytest
from paths import REPORTS

from nsys_tui.errors import UnreadableReportError
from nsys_tui.reader import btree
from nsys_tui.reader.columns import read_columns, read_text_column
from nsys_tui.reader.sqlite import Database, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

TABLE = "events"
"""A name that nsys does not use: what its columns mean is not asked here."""
MARK = "CREATE TABLE META_DATA_CAPTURE (name, value)"
"""Makes a file an export of nsys."""
LEAF, INTERIOR = 13, 5
HEADER = {LEAF: 8, INTERIOR: 12}
MOST_ROWS = 400
REAL = {
    "many-kernels-2025.5": ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    "no-metadata-old": ("NVTX_EVENTS", "StringIds", "CUPTI_ACTIVITY_KIND_KERNEL"),
    "windows-streams-2022.1": ("CUPTI_ACTIVITY_KIND_MEMCPY", "NVTX_EVENTS", "OSRT_API"),
}
MADE = (
    # page size, auto vacuum, columns, rows, further statements
    (512, 0, "start INTEGER, end INTEGER, text TEXT, last INTEGER", 700, ()),
    (512, 1, "id INTEGER PRIMARY KEY, start INTEGER, text TEXT", 500, ()),
    (1024, 0, "start INTEGER, end INTEGER, a INTEGER, b INTEGER, c INTEGER, text TEXT", 500,
     ("DELETE FROM events WHERE rowid % 5 = 2",)),
    (512, 0, "start INTEGER, text TEXT", 300, ("ALTER TABLE events ADD COLUMN late INTEGER",)),
    (4096, 0, "start INTEGER, end INTEGER, other REAL", 900, ()),
    (65536, 0, "start INTEGER, text TEXT", 900, ()),
    (512, 0, "start INTEGER", 30, ()),
)  # fmt: skip


@dataclass
class Base:
    """A small database of one table, and where the pages of that table are."""

    path: Path
    content: bytes = field(repr=False)

    @cached_property
    def page_size(self) -> int:
        size = int.from_bytes(self.content[16:18], "big")
        return 65536 if size == 1 else size

    @cached_property
    def columns(self) -> list[tuple[str, bool]]:
        """Each column, and whether it is one of texts."""
        with closing(sqlite3.connect(self.path)) as db:
            info = db.execute(f"PRAGMA table_info({TABLE})").fetchall()
        return [(name, "TEXT" in kind.upper()) for _, name, kind, *_ in info]

    @cached_property
    def pages(self) -> list[int]:
        """Offsets of the table's pages, those of interior ones first."""
        with closing(sqlite3.connect(self.path)) as db:
            sql = "SELECT rootpage FROM sqlite_master WHERE name = ?"
            level = [db.execute(sql, (TABLE,)).fetchone()[0]]
        found = []
        while level:
            offsets = [(page - 1) * self.page_size for page in level]
            found += offsets
            level = []
            for offset in offsets:
                if self.content[offset] == INTERIOR:
                    level += [number(self.content, at, 4) for at in cells(self.content, offset)]
                    level.append(number(self.content, offset + 8, 4))
        return found

    @cached_property
    def interior(self) -> list[int]:
        return [page for page in self.pages if self.content[page] == INTERIOR]


def number(content: bytes, at: int, size: int = 2) -> int:
    return int.from_bytes(content[at : at + size], "big")


def cells(content: bytes, page: int) -> list[int]:
    first = page + HEADER[content[page]]
    return [page + number(content, first + 2 * i) for i in range(number(content, page + 3))]


def value_of(rng: random.Random) -> int | None:
    bits = rng.choice((1, 1, 3, 7, 8, 15, 16, 23, 31, 47, 62))
    return rng.choice((None, 0, 1, rng.getrandbits(bits), -rng.getrandbits(bits)))


def make(path: Path, page_size: int, vacuum: int, columns: str, rows: int, more: Any) -> Base:
    rng = random.Random(rows)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA page_size = {page_size}")
        db.execute(f"PRAGMA auto_vacuum = {vacuum}")
        db.execute(MARK)
        db.execute(f"CREATE TABLE {TABLE} ({columns})")
        kinds = columns.split(", ")
        for row in range(1, rows):
            values: list[object] = []
            for kind in kinds:
                if "KEY" in kind:
                    values.append(row * 3 - 200)
                elif "TEXT" in kind:
                    values.append(rng.choice((None, "", "gemm", "é" * 40, f"step {row}", "x" * 90)))
                else:
                    values.append(value_of(rng))
            db.execute(f"INSERT INTO {TABLE} VALUES ({', '.join('?' * len(kinds))})", values)
        for sql in more:
            db.execute(sql)
        db.execute(f"CREATE TABLE other AS SELECT * FROM {TABLE} LIMIT 40")
        db.commit()
    return Base(path, path.read_bytes())


def copied(path: Path, report: Path, table: str) -> Base:
    """A table of a real report in a file of its own."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("ATTACH ? AS real", (str(report),))
        db.execute(MARK)
        sql = db.execute("SELECT sql FROM real.sqlite_master WHERE name = ?", (table,)).fetchone()
        db.execute(f"CREATE TABLE {TABLE} {sql[0][sql[0].index('(') :]}")
        db.execute(f"INSERT INTO {TABLE} SELECT * FROM real.{quoted(table)} LIMIT {MOST_ROWS}")
        db.commit()
    return Base(path, path.read_bytes())


def bases(folder: Path) -> list[Base]:
    made = [make(folder / f"made-{i}", *plan) for i, plan in enumerate(MADE)]
    real = [
        copied(folder / f"{name}-{table}", REPORTS / f"{name}.sqlite", table)
        for name, tables in REAL.items()
        if (REPORTS / f"{name}.sqlite").exists()
        for table in tables
        if has_table(REPORTS / f"{name}.sqlite", table)
    ]
    return made + real


def has_table(report: Path, table: str) -> bool:
    with closing(sqlite3.connect(f"file:{report}?immutable=1", uri=True)) as db:
        return bool(db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchall())


Change = tuple[int, bytes]
"""An offset in the file and the bytes that come there."""


def some_byte(base: Base, rng: random.Random) -> Change:
    return rng.choice(base.pages) + rng.randrange(base.page_size), bytes([rng.randrange(256)])


def some_bit(base: Base, rng: random.Random) -> Change:
    at = rng.choice(base.pages) + rng.randrange(rng.choice((40, base.page_size)))
    return at, bytes([base.content[at] ^ 1 << rng.randrange(8)])


def page_header(base: Base, rng: random.Random) -> Change:
    page = rng.choice(base.pages)
    at, size = rng.choice(((0, 1), (1, 2), (3, 2), (5, 2), (7, 1)))
    old = number(base.content, page + at, size)
    choices = (0, 1, 2, 5, 10, 13, old + 1, old - 1, old * 2, rng.getrandbits(8 * size))
    return page + at, (rng.choice(choices) % (1 << 8 * size)).to_bytes(size, "big")


def empty_page(base: Base, rng: random.Random) -> Change:
    page = rng.choice(base.pages)
    start = struct.pack(
        ">BHHH", rng.choice((LEAF, base.content[page])), 0, 0, base.page_size % 65536
    )
    return page, start


def cell_pointer(base: Base, rng: random.Random) -> Change:
    page = rng.choice(base.pages)
    places = cells(base.content, page)
    at = page + HEADER[base.content[page]] + 2 * rng.randrange(len(places))
    other = rng.choice(places) - page
    choices = (other, other, rng.randrange(20), rng.randrange(base.page_size), other + 1, other - 1)
    return at, (rng.choice(choices) % 65536).to_bytes(2, "big")


def swapped_pointers(base: Base, rng: random.Random) -> Change:
    page = rng.choice(base.pages)
    first = page + HEADER[base.content[page]]
    one = first + 2 * rng.randrange(max(1, number(base.content, page + 3) - 1))
    return one, base.content[one + 2 : one + 4] + base.content[one : one + 2]


def start_of_cell(base: Base, rng: random.Random) -> Change:
    """Length, rowid, size of the header, serial types."""
    page = rng.choice(base.pages)
    at = rng.choice(cells(base.content, page)) + rng.randrange(rng.choice((3, 6, 12, 30)))
    at = min(at, len(base.content) - 1)
    old = base.content[at]
    kinds = (0, 1, 2, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0x7F, 0x80, 0x81, 0xFF)
    new = rng.choice((old + 1, old - 1, old ^ 0x80, rng.choice(kinds), rng.choice(kinds)))
    return at, bytes([new % 256])


def moved_type(base: Base, rng: random.Random) -> Change:
    """Two neighbouring bytes near the begin of a cell change places: sums stay as they were."""
    page = rng.choice(base.pages)
    at = rng.choice(cells(base.content, page)) + rng.randrange(24)
    at = min(at, len(base.content) - 2)
    return at, base.content[at : at + 2][::-1]


def other_child(base: Base, rng: random.Random) -> Change:
    if not base.interior:
        return some_bit(base, rng)
    page = rng.choice(base.interior)
    at = rng.choice([page + 8, *cells(base.content, page)])
    last = len(base.content) // base.page_size
    twin = rng.choice(base.pages) // base.page_size + 1
    new = rng.choice((0, 1, 2, last, last + 1, twin, twin, rng.randrange(last), 2**32 - 1))
    return at, new.to_bytes(4, "big")


def other_key(base: Base, rng: random.Random) -> Change:
    if not base.interior:
        return start_of_cell(base, rng)
    at = rng.choice(cells(base.content, rng.choice(base.interior))) + 4 + rng.randrange(2)
    return at, bytes([rng.choice((base.content[at] + 1, base.content[at] ^ 0x80, 0)) % 256])


def copied_page(base: Base, rng: random.Random) -> Change:
    source = rng.choice(base.pages)
    return rng.choice(base.pages), base.content[source : source + base.page_size]


def copied_cell(base: Base, rng: random.Random) -> Change:
    one, other = (rng.choice(cells(base.content, rng.choice(base.pages))) for _ in range(2))
    return min(one, len(base.content) - 16), base.content[other : other + rng.randrange(2, 16)]


CHANGES: tuple[Callable[[Base, random.Random], Change], ...] = (
    some_byte, some_bit, page_header, empty_page, cell_pointer, swapped_pointers, start_of_cell,
    start_of_cell, start_of_cell, moved_type, other_child, other_key, copied_page, copied_cell,
)  # fmt: skip

CHUNKS = (4096, btree.CHUNK_BYTES, btree.CHUNK_BYTES)
"""Damage is met at once, or when some rows are given already."""

Rows = list[tuple[object, ...]]


def read_by_sqlite(base: Base) -> Rows | None:
    """Rowid and all columns of each row by a full scan; None where sqlite3 refuses."""
    plain = sqlite3.connect(f"file:{base.path}?immutable=1", uri=True)
    plain.text_factory = lambda text: text.decode("utf-8", "replace")
    terms = ", ".join(["rowid", *(quoted(name) for name, _ in base.columns)])
    with closing(plain):
        try:
            return plain.execute(f"SELECT {terms} FROM {TABLE} NOT INDEXED").fetchall()
        except sqlite3.DatabaseError:
            return None


def expected(rows: Rows, place: int, is_text: bool) -> list[object]:
    values = [row[place] for row in rows]
    if is_text:
        return [
            value.decode("utf-8", "replace") if isinstance(value, bytes)
            else value if value is None else str(value)
            for value in values
        ]  # fmt: skip
    return [
        value if isinstance(value, int)
        else int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**63
        else None
        for value in values
    ]  # fmt: skip


def outcome(base: Base) -> str:
    """``equal``, ``said``, ``refused`` or, in many words, how our reading differs."""
    truth = read_by_sqlite(base)
    try:
        with Database.open(base.path) as db:
            numbers = [name for name, is_text in base.columns if not is_text]
            raw = read_columns(db, TABLE, numbers)
            texts = {
                name: read_text_column(db, TABLE, name) for name, is_text in base.columns if is_text
            }
            known = set(db.schema.notes)  # that the table looks like one of nsys's
            notes = [note for note in db.notes if note.table == TABLE and note not in known]
    except UnreadableReportError:
        return "refused"
    if truth is None:
        return "given where sqlite3 refuses" + (", with a note" if notes else "")
    wrong = []
    if raw.rowid.tolist() != [row[0] for row in truth]:
        wrong.append("rowids")
    for place, (name, is_text) in enumerate(base.columns, 1):
        if is_text:
            codes, values = texts[name]
            mine: list[object] = [values[code] if code >= 0 else None for code in codes]
        else:
            null = raw.nulls.get(name, np.zeros(len(raw.rowid), bool)).tolist()
            pairs = zip(raw.values[name].tolist(), null, strict=True)
            mine = [None if is_null else value for value, is_null in pairs]
            strange = sum(value is None for value in expected(truth, place, False))
            strange -= sum(row[place] is None for row in truth)
            if sum(raw.bad.get(name, {}).values()) != strange:
                wrong.append(f"count of {name}")
        if mine != expected(truth, place, is_text):
            wrong.append(name)
    if wrong:
        return f"{'noted but' if notes else 'silently'} different: {', '.join(wrong)}"
    return "said" if notes else "equal"


def run(count: int, seed: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """Reads so many mutants; returns how many had which outcome, and what was wrong."""
    rng, outcomes, wrong = random.Random(seed), Counter[str](), []
    all_bases = bases(folder)
    for base in all_bases:
        assert outcome(base) == "equal", base
    for turn in range(count):
        base = all_bases[turn % len(all_bases)]
        changes = [rng.choice(CHANGES) for _ in range(rng.choice((1, 1, 1, 1, 2, 4)))]
        made = [change(base, rng) for change in changes]
        descriptor = os.open(base.path, os.O_RDWR)
        try:
            for at, data in made:
                os.pwrite(descriptor, data, at)
            with mock.patch.object(btree, "CHUNK_BYTES", rng.choice(CHUNKS)):
                result = outcome(base)
            os.pwrite(descriptor, base.content, 0)
            os.ftruncate(descriptor, len(base.content))
        finally:
            os.close(descriptor)
        outcomes[result.partition(":")[0]] += 1
        if result not in ("equal", "said", "refused"):
            names = "+".join(change.__name__ for change in changes)
            wrong.append(f"{turn} {base.path.name} {names} {result}")
    return outcomes, wrong


@pytest.mark.parametrize("seed", [1])
def test_no_mutant_is_read_otherwise_without_a_word(tmp_path: Path, seed: int) -> None:
    outcomes, wrong = run(2000, seed, tmp_path)
    assert not wrong
    assert min(outcomes[kind] for kind in ("equal", "said", "refused")) > 100


def main() -> None:
    parser = argparse.ArgumentParser(description="Reads mutants of small tables.")
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcomes, wrong = run(chosen.count, chosen.seed, Path(folder))
    print(*wrong, dict(outcomes), sep="\n")


if __name__ == "__main__":
    main()
