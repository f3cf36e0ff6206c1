"""The same run written otherwise: rows in another order, other ids, later: the same answers."""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from demo_making import make_report
from paths import REPORTS, needs_reports

from nsys_tui.cli import main
from nsys_tui.reader.schema import STRINGS, declared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LATER: Final = 3 * 3600 * 10**9
FURTHER: Final = 100_000
"""What is added to ids of processes, threads, streams, contexts and calls."""
EVERY_STREAM: Final = 2**32 - 1
VERBS: Final = (
    ("overview", "--top", "0"),
    ("analyze", "-r", "all"),
    ("stalls",),
    ("iterations",),
    ("collectives",),
    (
        "stats",
        "-r",
        "cuda_gpu_kern_sum,cuda_gpu_mem_size_sum,cuda_api_sum,osrt_sum,nvtx_gpu_proj_sum",
    ),
)
TIES: Final = ("cuda_memcpy_async", "cuda_memcpy_sync", "cuda_memset_sync", "cuda_api_sync")
"""nsys's rules list events of one length as they stand in the file."""


def columns(db: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Table and column of everything that the schema declares."""
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        known = declared(table)
        for _, column, *_ in db.execute(f'PRAGMA table_info("{table}")') if known else ():
            yield table, column


def change(db: sqlite3.Connection, table: str, column: str, how: Callable[[int], int]) -> None:
    db.create_function("how", 1, lambda value: how(value) if isinstance(value, int) else value)
    db.execute(f'UPDATE "{table}" SET "{column}" = how("{column}")')


def shuffled(db: sqlite3.Connection) -> None:
    chance = random.Random(1)
    db.create_function("chance", 0, chance.random)
    for table in {table for table, _ in columns(db)} - {STRINGS, "TARGET_INFO_GPU"}:
        if not table.startswith(("META_DATA", "EXPORT_META", "TARGET_INFO_SYSTEM")):  # as listed
            db.execute(f'CREATE TEMP TABLE rows AS SELECT * FROM "{table}" ORDER BY chance()')
            db.execute(f'DELETE FROM "{table}"')
            db.execute(f'INSERT INTO "{table}" SELECT * FROM rows')
            db.execute("DROP TABLE rows")


def string_columns(db: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    for table, column in list(columns(db)):
        known = declared(table)
        of_strings = [one for one in known.columns.values() if one.type == "s"] if known else []
        if any(column in (one.name, *one.aliases) for one in of_strings):
            yield table, column


def strings_renumbered(db: sqlite3.Connection) -> None:
    old = [number for (number,) in db.execute(f"SELECT id FROM {STRINGS}")]
    new = dict(zip(old, random.Random(2).sample(range(1, 2**31), len(old)), strict=True))
    rows = db.execute(f"SELECT id, CAST(value AS BLOB) FROM {STRINGS}").fetchall()
    db.execute(f"DELETE FROM {STRINGS}")
    insert = f"INSERT INTO {STRINGS} (id, value) VALUES (?, CAST(? AS TEXT))"
    db.executemany(insert, [(new[number], value) for number, value in rows])
    for table, column in list(string_columns(db)):
        change(db, table, column, lambda number: new.get(number, number))


def strings_twice(db: sqlite3.Connection) -> None:
    """Each text under two ids, of which events use either."""
    chance = random.Random(3)
    (more,) = db.execute(f"SELECT max(id) + 1 FROM {STRINGS}").fetchone()
    db.execute(f"INSERT INTO {STRINGS} (id, value) SELECT id + {more}, value FROM {STRINGS}")
    for table, column in list(string_columns(db)):
        change(db, table, column, lambda number: number + more * chance.randrange(2))


def later(db: sqlite3.Connection) -> None:
    for table, column in list(columns(db)):
        if column in ("start", "end", "timestamp", "rawTimestamp", "stopTime", "duration"):
            change(db, table, column, lambda time: time + LATER)


def ids_renamed(db: sqlite3.Connection) -> None:
    def thread(number: int) -> int:
        return number + (FURTHER << 24) + (FURTHER if number & 0xFFFFFF else 0)

    for table, column in list(columns(db)):
        if column in ("globalTid", "globalPid", "endGlobalTid"):
            change(db, table, column, thread)
        elif column in ("pid", "processId", "streamId", "contextId", "correlationId"):
            change(db, table, column, lambda n: n if n in (0, -1, EVERY_STREAM) else n + FURTHER)


WAYS: Final = (shuffled, strings_renumbered, strings_twice, later, ids_renamed)


def answers(path: Path) -> dict[str, Any]:
    """Every value in what the verbs print as JSON, by where it stands."""
    found: dict[str, Any] = {}
    for verb, *options in VERBS:
        out, said = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
            status = main([verb, str(path), "--format", "json", "--no-cache", *options])
        printed = json.loads(out.getvalue()) if out.getvalue().strip() else said.getvalue()
        found |= flat((status, printed), verb)
    return found


def flat(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value.get("kind") == "head":
        return  # before the first operation: its longest part depends on when the run began
    if isinstance(value, dict | list | tuple):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in inner:
            yield from flat(part, f"{place}.{key}")
    else:
        yield place, value


OF_THE_SESSION: Final = re.compile(r"link$|verdict$|session|utilisation|outside_work|stalls.*notes")
"""How much of the session has GPU work, which a later begin of it all changes."""
IDS: Final = re.compile(r"\.[a-z_]*(id|pids\.\d+|process|stream|context)$")


def alike(way: Any, place: str, before: Any, after: Any) -> bool:
    """Whether two values are one but for what the way changes: when it was, what ids are."""
    if before == after:
        return True
    if way is later and isinstance(before, int) and isinstance(after, int):
        return (after - before) % LATER == 0
    if way is later:
        return OF_THE_SESSION.search(place) is not None
    if way is ids_renamed and isinstance(before, str) and isinstance(after, str):
        return bool(re.sub(r"\d+", "", before) == re.sub(r"\d+", "", after))
    if way is ids_renamed:
        return IDS.search(place) is not None and bool(after == before + FURTHER)
    return way is shuffled and any(f".{rule}." in place for rule in TIES)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "demo.sqlite"
    make_report(path, steps=3)
    return path


def differences(source: Path, folder: Path) -> list[str]:
    path = folder / "report.sqlite"
    shutil.copyfile(source, path)
    before, told = answers(path), []
    assert len(before) > 100
    for way in WAYS:
        shutil.copyfile(source, path)
        path.chmod(0o644)
        with closing(sqlite3.connect(path)) as db:
            way(db)
            db.commit()
        after = answers(path)
        told += [
            f"{way.__name__}: {place}: {before.get(place)!r} -> {after.get(place)!r}"
            for place in before.keys() | after.keys()
            if not alike(way, place, before.get(place), after.get(place))
        ]
    return told


def test_the_demo_written_otherwise_says_the_same(demo: Path, tmp_path: Path) -> None:
    assert differences(demo, tmp_path) == []


@needs_reports
@pytest.mark.parametrize("name", ["cloverleaf-a100-2024.5"])
def test_a_real_report_written_otherwise_says_the_same(name: str, tmp_path: Path) -> None:
    assert differences(REPORTS / f"{name}.sqlite", tmp_path) == []
