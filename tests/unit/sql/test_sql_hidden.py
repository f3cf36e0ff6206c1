"""A redacted console: no piece of a secret comes out of any query, and all else is as it was."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from synth import Synth

from nsys_tui.reader import open_report
from nsys_tui.sql.console import Console
from nsys_tui.sql.faults import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = "hf_QxZvKjWqYpGhTbNmRdLfScUo"
PIECES = [TOKEN[at : at + 4] for at in range(3, len(TOKEN) - 3)]
BLOB = f"notes(at, raw) VALUES (5, CAST('key {TOKEN}' AS BLOB))"


@pytest.fixture(scope="module", params=["UTF-8", "UTF-16le"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two kernels 20 us apart; a token in names of both, in a range, a blob and an int column."""
    synth = Synth(tmp_path_factory.mktemp("hidden") / "r.sqlite").nvtx(f"step {TOKEN}", 0, 90_000)
    for at in (0, 30_000):
        synth.launch(f"gemm<{TOKEN}, {at}>()", (at, at + 10), (at + 10, at + 9_000))
    synth.sql("CREATE TABLE notes (at INTEGER, raw BLOB)").sql(f"INSERT INTO {BLOB}")
    written = synth.write()
    if request.param == "UTF-8":
        return written
    other = written.with_name("utf16.sqlite")
    with closing(sqlite3.connect(written)) as old, closing(sqlite3.connect(other)) as new:
        new.execute(f"PRAGMA encoding = '{request.param}'")
        for line in old.iterdump():
            new.execute(line)
    return other


@pytest.fixture(scope="module")
def console(path: Path) -> Iterator[Console]:
    made = Console(open_report(path, use_cache=False), redacts=True)
    yield made
    made.close()


@pytest.mark.parametrize(
    "query",
    [
        *(f"select substr({what}, {at}, 9) from {where}" for what, where in (
            ("value", "StringIds"), ("full_name", "kernels"), ("text", "NVTX_EVENTS"),
            ("name", "ranges"), ("short_name", "kernels"), ("cast(raw as text)", "notes"),
            ("range", "stalls"), ("previous", "stalls"),
        ) for at in range(1, 36, 3)),
        "select replace(value, 'hf_', '') from StringIds",
        "select group_concat(substr(name, 6, 8)) from ranges",
        "select json_group_array(substr(text, 6, 8)) from NVTX_EVENTS as n",
        "select trim(full_name, 'gem<hf_') from kernels",
    ],
)  # fmt: skip
def test_no_piece_comes_out(path: Path, console: Console, query: str) -> None:
    assert not any(piece in _told(console, query) for piece in PIECES)


def test_what_is_asked_letter_by_letter_is_not_there(console: Console) -> None:
    for query in (
        f"select * from StringIds where value glob '*{TOKEN[:5]}*'",
        f"select * from StringIds where instr(value, '{TOKEN[5:9]}')",
        f"select * from ranges where name like '%{TOKEN[3:6]}%'",
        f"select * from notes where hex(raw) like '%{TOKEN[3:6].encode().hex()}%'",
    ):
        assert not console.run(query).table.rows()


def test_the_table_of_the_file_itself_is_refused(console: Console) -> None:
    console.run("select value from StringIds")
    for query in (
        "select substr(value, 3) from main.StringIds",
        "select substr(value, 3) from main . 'stringids'",
        "with main as (select 1) select count(*) from main.StringIds where value > 'hf'",
    ):
        with pytest.raises(QueryError, match="holds secrets: leave out main"):
            console.run(query)


def test_all_else_is_as_without(path: Path, console: Console) -> None:
    plain = Console(open_report(path, use_cache=False))
    for query in (
        "select id, start_ns, end_ns, device, correlation from kernels order by 1",
        "select id, value from StringIds where value not like '%_hf%' and value not like '%<%'",
        "select id, start, end, typeof(text) from (select rowid as id, * from NVTX_EVENTS)",
        "select at, typeof(at) from notes where at = '5'",
        "select count(*) from ranges r join kernels k on k.end_ns < r.end_ns",
    ):
        assert console.run(query).table.rows() == plain.run(query).table.rows() != []
    assert TOKEN in _told(plain, "select name from ranges")
    plain.close()


def _told(console: Console, query: str) -> str:
    return repr(console.run(query).table.rows())
