"""A column or table called otherwise, gone, or of another type: the same figures, or a word.

Each declared column of a report is renamed, dropped and declared as another type in turn. Where a
note names table and column, figures may differ; where none does, every verb prints what it printed
before. Most columns are told at opening and need no verb at all, which keeps this quick; ``pytest
--all-columns`` compares after every mutation.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import pytest
from demo_making import make_report
from paths import REPORTS, needs_reports

from nsys_tui.cli import main
from nsys_tui.errors import UnreadableReportError
from nsys_tui.reader import open_report
from nsys_tui.reader.schema import METADATA_TABLES, declared

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STATS: Final = (
    "cuda_gpu_trace,cuda_api_trace,osrt_sum,nvtx_pushpop_sum,nvtx_gpu_proj_sum,cuda_kern_exec_sum,"
    "cuda_gpu_mem_size_sum,um_sum,cuda_gpu_kern_gb_sum,mpi_event_sum"
)
VERBS: Final = (
    ("overview", "--top", "0"),
    ("stats", "--report", STATS),
    ("stalls",),
    ("stacks", "--source", "cpu"),
)
OTHER_TYPE: Final = {"INTEGER": "TEXT", "TEXT": "INTEGER", "REAL": "TEXT"}
FEWEST: Final = 5
"""Steps of a demo that has rows in all tables it can have."""
HOWS: Final = ("rename", "drop", "retype")
pytestmark = pytest.mark.timeout(7200)  # all columns take longer than any other test


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def declared_columns(path: Path) -> Iterator[tuple[str, str, str]]:
    """Table, column and type of what the schema declares and the report has rows of."""
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as db:
        tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            known = declared(table)
            if known is None or not db.execute(f"SELECT 1 FROM {quoted(table)} LIMIT 1").fetchone():
                continue
            for _, column, kind, *_ in db.execute(f"PRAGMA table_info({quoted(table)})"):
                if column in known.columns:
                    yield table, column, kind


@contextlib.contextmanager
def copied(source: Path, target: Path) -> Iterator[sqlite3.Connection]:
    """A copy to change, without the views, which would hold its names."""
    shutil.copyfile(source, target)
    with closing(sqlite3.connect(target, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        for (view,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
            db.execute(f"DROP VIEW {quoted(view)}")
        yield db


def mutated(source: Path, target: Path, table: str, column: str, how: str) -> bool:
    """Whether a copy of the report could be changed so."""
    with copied(source, target) as db:
        try:
            if how == "rename":
                db.execute(f"ALTER TABLE {quoted(table)} RENAME {quoted(column)} TO strange_name")
            elif how == "drop":
                db.execute(f"ALTER TABLE {quoted(table)} DROP COLUMN {quoted(column)}")
            else:
                return _retyped(db, table, column)
        except sqlite3.OperationalError:
            return False  # a key of its table, or in an index
    return True


def _retyped(db: sqlite3.Connection, table: str, column: str) -> bool:
    (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    pattern = re.compile(rf'((?m:^|[(,])\s*"?{re.escape(column)}"?\s+)(INTEGER|TEXT|REAL)')
    changed = pattern.sub(lambda match: match[1] + OTHER_TYPE[match[2]], sql, count=1)
    (version,) = db.execute("PRAGMA schema_version").fetchone()
    db.execute("PRAGMA writable_schema = ON")
    db.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (changed, table))
    db.execute(f"PRAGMA schema_version = {version + 1}")
    return bool(changed != sql)


def renamed(source: Path, target: Path, table: str, name: str) -> None:
    with copied(source, target) as db:
        db.execute(f"ALTER TABLE {quoted(table)} RENAME TO {quoted(name)}")


def printed(path: Path) -> list[tuple[int, Any]]:
    """Exit status and JSON of every verb."""
    found: list[tuple[int, Any]] = []
    for verb, *options in VERBS:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            status = main([verb, str(path), "--format", "json", "--no-cache", *options])
        text = out.getvalue()
        found.append((status, json.loads(text) if text.strip() else None))
    return found


def silent_differences(source: Path, folder: Path, *, thorough: bool) -> list[str]:
    """Mutations that change what a verb prints, and of which no note names table and column."""
    target = folder / source.name
    shutil.copyfile(source, target)
    before = printed(target)
    silent, tried, told = [], 0, 0
    for table, column, _ in declared_columns(source):
        known = declared(table)
        assert known is not None
        counts = known.columns[column].required or column in known.lost
        for how in HOWS if counts or thorough else HOWS[:1]:
            if not mutated(source, target, table, column, how):
                continue
            tried += 1
            try:
                with contextlib.closing(open_report(target, use_cache=False)) as report:
                    notes = list(report.notes)
            except UnreadableReportError:
                told += 1
                continue
            if any((note.table, note.column) == (table, column) for note in notes):
                told += 1
                assert all(
                    table in n.text and column in n.text for n in notes if n.column == column
                )
            elif (counts or thorough) and printed(target) != before:
                silent.append(f"{how} {table}.{column}")
    assert told > 20, f"of {tried} mutations only {told} were said"
    return silent


def silent_tables(source: Path, folder: Path) -> list[str]:
    """Tables whose new name no note says although that changes what a verb prints."""
    target = folder / source.name
    shutil.copyfile(source, target)
    before, silent = printed(target), []
    for table in sorted({table for table, *_ in declared_columns(source)}):
        for name in (f"{table}_X", "strange_name")[: 1 if table in METADATA_TABLES else 2]:
            renamed(source, target, table, name)
            try:
                with contextlib.closing(open_report(target, use_cache=False)) as report:
                    texts = report.notes.texts
            except UnreadableReportError:
                continue
            if not any(name in text or table in text for text in texts):
                silent += [f"{table} -> {name}"] * (printed(target) != before)
    return silent


@needs_reports
@pytest.mark.parametrize("name", ["demo", "cuda-graph-2025.5", "windows-streams-2022.1"])
def test_no_table_is_lost_in_silence(name: str, tmp_path: Path) -> None:
    source = REPORTS / f"{name}.sqlite"
    if name == "demo":
        source = tmp_path / "made" / "demo.sqlite"
        source.parent.mkdir()
        make_report(source, steps=3)
    assert silent_tables(source, tmp_path) == []


def test_no_column_of_the_demo_is_lost_in_silence(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    demo = tmp_path / "made" / "demo.sqlite"
    demo.parent.mkdir()
    make_report(demo, steps=FEWEST)
    thorough = request.config.getoption("--all-columns")
    assert silent_differences(demo, tmp_path, thorough=thorough) == []


@needs_reports
@pytest.mark.parametrize(
    "name", ["windows-streams-2022.1", "cuda-graph-2025.5", "cloverleaf-a100-2024.5"]
)
def test_no_column_of_a_real_report_is_lost_in_silence(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    thorough = request.config.getoption("--all-columns")
    if name != "windows-streams-2022.1" and not thorough:
        pytest.skip("the demo has rows in all its columns; --all-columns asks for it too")
    source = REPORTS / f"{name}.sqlite"
    assert silent_differences(source, tmp_path, thorough=thorough) == []
