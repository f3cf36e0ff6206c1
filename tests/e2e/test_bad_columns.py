"""A sample of the columns of a report, each renamed, emptied or filled with what does not belong.

Every verb says plainly what it lacks or shows what is left; none fails, hangs or sends an escape.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

import pytest
from demo_making import make_report

from nsys_tui.cli import main
from nsys_tui.errors import NO_DATA, UNREADABLE

if TYPE_CHECKING:
    from pathlib import Path

VERBS: Final = (
    "overview {} --format json",
    "stats {} -f json -q",
    "analyze {} --format json",
    "stalls {} --format json",
    "stacks {} --format json",
    "doctor {}",
)
CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
EVIL: Final = "a\x1b[31mred\x07[/]\u202e"
BY_ROW: Final = "CASE rowid % 3 WHEN 0 THEN {} WHEN 1 THEN {} ELSE rowid END"
VALUES: Final = {
    "null": "NULL",
    "text": "'oops'",
    "evil": f"'{EVIL}'",
    "bytes": "x'ff41c328'",
    "huge": BY_ROW.format(2**63 - 1, "-9223372036854775808"),
    "real": BY_ROW.format("9e999", "1.5"),
    "zero": "0",
}
"""What a column is filled with."""
STRIDE: Final = 47
"""Of the columns every so manieth is taken, others for each kind of value."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_report(tmp_path_factory.mktemp("demo") / "demo.sqlite", steps=2).report


def columns(report: Path) -> list[tuple[str, str]]:
    """(table, column) of every table with rows, but those that explain numbers."""
    with closing(sqlite3.connect(report)) as db:
        tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        return [
            (table, column)
            for (table,) in tables.fetchall()
            if not table.startswith("ENUM_") and db.execute(f'SELECT 1 FROM "{table}"').fetchone()
            for _, column, *_ in db.execute(f'PRAGMA table_info("{table}")').fetchall()
        ]


def changed(report: Path, target: Path, statement: str) -> bool:
    """Whether a copy could be changed: SQLite itself keeps some columns what they are."""
    shutil.copyfile(report, target)
    with closing(sqlite3.connect(target)) as db:
        try:
            db.execute(statement)
        except sqlite3.IntegrityError:
            return False
        db.commit()
    return True


def faults(report: Path, capfd: pytest.CaptureFixture[str]) -> list[str]:
    found = []
    for verb in VERBS:
        words = verb.format(report).split()
        status = main([words[0], "--no-cache", *words[1:]])
        out, err = capfd.readouterr()
        if status not in (0, NO_DATA, UNREADABLE) or "fault" in err or "Traceback" in err:
            found.append(f"{words[0]}: status {status}: {err[-300:]}")
        if status and not err.strip() and not out.strip():
            found.append(f"{words[0]}: status {status} without a word")
        if sent := CONTROL.search(out + err):
            found.append(f"{words[0]}: sends {sent.group()!r}")
        if not status and "json" in verb:
            json.loads(out, parse_constant=_refuse)
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


@pytest.mark.parametrize("kind", VALUES)
def test_a_column_of_odd_values_is_survived(
    kind: str, demo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target, tried = tmp_path / "r.sqlite", 0
    for table, column in columns(demo)[list(VALUES).index(kind) :: STRIDE]:
        if changed(demo, target, f'UPDATE "{table}" SET "{column}" = {VALUES[kind]}'):
            tried += 1
            assert faults(target, capfd) == [], f"{table}.{column}"
    assert tried


def test_a_column_of_another_name_is_a_column_that_is_missing(
    demo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "r.sqlite"
    for table, column in columns(demo)[::STRIDE]:
        assert changed(demo, target, f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "other"')
        assert faults(target, capfd) == [], f"{table}.{column}"


@pytest.mark.parametrize("change", ["DROP TABLE {}", "DELETE FROM {}", "ALTER TABLE {} ADD extra"])
def test_a_table_that_is_missing_or_empty_or_wider_is_survived(
    change: str, demo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "r.sqlite"
    tables = sorted({table for table, _ in columns(demo)})
    for table in tables[len(change) % 3 :: 3]:
        assert changed(demo, target, change.format(table))
        assert faults(target, capfd) == [], table


@pytest.mark.parametrize("column", ["start", "end"])
def test_kernels_without_their_times_are_left_out_and_that_is_said(
    column: str, demo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target, table = tmp_path / "r.sqlite", "CUPTI_ACTIVITY_KIND_KERNEL"
    assert changed(demo, target, f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
    assert main(["overview", str(target), "--no-cache", "--format", "json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["devices"] == []
    assert any(f"{table} has no column {column}" in note for note in told["notes"])
