"""Queries of people who mean harm: nothing is written, read elsewhere, kept busy or eaten up."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hostile_sql import HOSTILE, UNSTOPPABLE
from hypothesis import given, settings
from hypothesis import strategies as st
from synth import Synth

from nsys_tui.errors import CancelledError, NsysTuiError, UsageError
from nsys_tui.reader import open_report
from nsys_tui.sql.console import Console
from nsys_tui.sql.faults import QueryError
from nsys_tui.sql.filled import FIGURES
from nsys_tui.sql.guard import FUNCTIONS, PRAGMAS, TimeLimitError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsys_tui.model.report import Report


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("attacks")
    made = Synth(folder / "r.sqlite").nvtx("step", 0, 50).launch("gemm()", (10, 20), (20, 40))
    made.sql("CREATE VIEW trap AS SELECT load_extension('evil.so')")
    made.sql("CREATE VIRTUAL TABLE shadow USING fts4(x)")
    return made.write()


@pytest.fixture(scope="module")
def console(path: Path) -> Iterator[Console]:
    made = Console(open_report(path, use_cache=False))
    yield made
    made.close()


_PRAGMAS = """
analysis_limit application_id auto_vacuum automatic_index busy_timeout cache_size cache_spill
case_sensitive_like cell_size_check checkpoint_fullfsync collation_list compile_options
count_changes data_store_directory data_version database_list default_cache_size
defer_foreign_keys empty_result_callbacks encoding foreign_key_check foreign_key_list
foreign_keys freelist_count full_column_names fullfsync function_list hard_heap_limit
ignore_check_constraints incremental_vacuum integrity_check journal_mode journal_size_limit
legacy_alter_table legacy_file_format locking_mode max_page_count mmap_size module_list optimize
page_count page_size parser_trace pragma_list query_only quick_check read_uncommitted
recursive_triggers reverse_unordered_selects schema_version secure_delete short_column_names
shrink_memory soft_heap_limit stats synchronous temp_store temp_store_directory threads
trusted_schema user_version vdbe_addoptrace vdbe_debug vdbe_listing vdbe_trace
wal_autocheckpoint wal_checkpoint writable_schema
"""
PRAGMA_NAMES = _PRAGMAS.split()


@pytest.mark.parametrize("query", HOSTILE)
def test_what_harms_is_refused(
    console: Console, path: Path, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    before = path.read_bytes()
    with pytest.raises(UsageError):
        console.run(query)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert console.run("select value from StringIds limit 1").table.rows()


@pytest.mark.parametrize("name", PRAGMA_NAMES)
@pytest.mark.parametrize("form", ["pragma {}", "pragma {} = 1", "pragma temp.{}(1)",
                                  "explain pragma {} = 1"])  # fmt: skip
def test_every_pragma_but_those_that_tell_columns_is_refused(
    console: Console, name: str, form: str
) -> None:
    with pytest.raises(UsageError):
        console.run(form.format(name))
    with closing(sqlite3.connect(":memory:")) as fresh:
        wanted = fresh.execute("pragma query_only").fetchone()
    assert wanted == (0,)


def test_every_function_of_this_sqlite_is_allowed_on_purpose_or_refused(console: Console) -> None:
    with closing(sqlite3.connect(":memory:")) as fresh:
        known = {name.lower() for (name,) in fresh.execute("select name from pragma_function_list")}
        pragmas = {name for (name,) in fresh.execute("select name from pragma_pragma_list")}
    assert known > FUNCTIONS & known > {"sum", "count", "substr"}
    for name in known - FUNCTIONS:
        with pytest.raises(UsageError):
            console.run(f'select "{name}"(1, 2)')
    for name in pragmas - PRAGMAS:
        with pytest.raises(UsageError):
            console.run(f"pragma {name}")


ENDLESS = (
    "with recursive a(x) as (select 1 union all select x + 1 from a) select max(x) from a",
    "with recursive a(x) as (select 1 union all select x + 1 from a) select * from a where x < 0",
    "select count(*) from json_each('[' || substr(replace(hex(zeroblob(99999)), '0', '1,'), 1,"
    " 200001) || ']') a, json_each('[1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9]') b, json_each('[1,2,3,4,"
    "5,6,7,8,9,1,2,3,4,5,6,7,8,9]') c, json_each('[1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9]') d",
    "with recursive a(x) as (select 1 union all select x + 1 from a limit 100000)"
    " select count(*) from a p, a q where p.x * q.x = -1",
    "with recursive a(x) as (values(1) union all select x + 1 from a)"
    " select x from a order by random() limit 1",
)


@pytest.mark.parametrize("query", ENDLESS)
def test_what_never_ends_is_stopped(console: Console, query: str) -> None:
    began = time.monotonic()
    with pytest.raises(TimeLimitError, match="--timeout"):
        console.run(query, timeout_s=0.2)
    assert time.monotonic() - began < 10


def test_one_call_that_sqlite_cannot_leave_ends_the_verb(path: Path) -> None:
    command = [sys.executable, "-m", "nsys_tui", "sql", str(path), UNSTOPPABLE, "--timeout=100ms"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 130
    assert "longer than 0.1 s" in done.stderr
    assert not done.stdout


def test_calls_that_cannot_be_stopped_are_left_between_two_of_them(path: Path) -> None:
    console = Console(open_report(path, use_cache=False))
    with pytest.raises(TimeLimitError):
        console.run(UNSTOPPABLE, timeout_s=0.1)
    assert not console.stuck
    assert console.run("select 1").table.data == ([1],)
    console.close()


class Deaf:
    """A connection that is interrupted before its statement takes its first step."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection, self.heard = connection, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def interrupt(self) -> None:
        self.heard += 1
        if self.heard > 1:
            self._connection.interrupt()


def test_rows_that_take_long_are_left_though_an_interrupt_is_lost(path: Path) -> None:
    with closing(Console(open_report(path, use_cache=False))) as console:
        console._db._connection = deaf = Deaf(console._db.connection)  # type: ignore[assignment]
        with pytest.raises(TimeLimitError):
            console.run(
                "with recursive r(x) as (values(1) union all select randomblob(7000000) from r)"
                " select max(x) from r",
                timeout_s=0.2,
            )
        assert deaf.heard > 1
        assert not console.stuck


@pytest.mark.parametrize(("query", "most"), [
    ("instr(hex(zeroblob(300000)), 'x')", "512 KiB"),
    ("hex(zeroblob(600000)) like '%' || substr(hex(zeroblob(99)), 9) || '1%'", "1024 KiB"),
    ("hex(zeroblob(600000)) glob '*' || substr(hex(zeroblob(99)), 9) || '[2-9]*'", "1024 KiB"),
    ("replace(hex(zeroblob(300000)), 'x', '')", "512 KiB"),
    ("rtrim(hex(zeroblob(70000)), '0')", "128 KiB"),
    ("instr(hex(zeroblob(200000)), 'a') + instr('b', 'b') + instr('c', 'c') + instr('d', 'd')",
     "256 KiB"),
])  # fmt: skip
def test_calls_that_cannot_be_stopped_get_short_values(
    console: Console, query: str, most: str
) -> None:
    with pytest.raises(UsageError, match=f"larger than {most}"):
        console.run(f"select {query}")
    assert console.run("select length(hex(zeroblob(3000000)))").table.data == ([6_000_000],)


def test_filling_a_view_counts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FIGURES["launches"]

    def endless(report: Report) -> Iterable[Sequence[Any]]:
        return cycle(whole(report))

    with closing(Console(open_report(path, use_cache=False))) as console:
        monkeypatch.setitem(FIGURES, "launches", endless)
        with pytest.raises(TimeLimitError, match="--timeout"):
            console.run("select count(*) from launches", timeout_s=0.2)
        monkeypatch.setitem(FIGURES, "launches", whole)
        assert console.run("select count(*) from launches").table.data[0] == [1]


def test_a_query_that_only_compiles_forever_is_stopped(console: Console) -> None:
    doubled = ", ".join(f"t{n} as (select * from t{n - 1} a, t{n - 1} b)" for n in range(1, 40))
    with pytest.raises(NsysTuiError):
        console.run(f"with t0 as (select 1), {doubled} select * from t39", timeout_s=0.3)
    with contextlib.suppress(NsysTuiError):  # SQLite 3.46 answers it
        console.run("select " + "(" * 5_000 + "1" + ")" * 5_000, timeout_s=0.3)
    with pytest.raises(NsysTuiError):
        console.run("select 1" + " union select 1" * 10_000, timeout_s=0.3)
    with pytest.raises(NsysTuiError):
        console.run("select " + "1," * 100_000 + "1", timeout_s=0.3)


@pytest.mark.parametrize("query", [
    "select zeroblob(2000000000)",
    "select randomblob(1000000000)",
    "select replace(hex(zeroblob(4000000)), '0', hex(zeroblob(4000000)))",
    "select hex(hex(hex(zeroblob(4000000))))",
    "with recursive a(x) as (select 1 union all select x + 1 from a limit 1000000)"
    " select group_concat(hex(zeroblob(1000))) from a",
    "with recursive a(x) as (select 1 union all select x + 1 from a limit 1000000)"
    " select json_group_array(hex(zeroblob(1000))) from a",
    "with recursive a(s) as (select 'x' union all select s || s from a) select length(s) from a",
])  # fmt: skip
def test_a_huge_value_is_refused(console: Console, query: str) -> None:
    with pytest.raises(UsageError, match=r"larger than (8 M|512 K)iB|more than 2048 MiB"):
        console.run(query)


def test_a_huge_answer_is_refused(console: Console) -> None:
    query = (
        "with recursive a(x) as (select 1 union all select x + 1 from a limit 1000000)"
        " select zeroblob(1000000) from a"
    )
    with pytest.raises(UsageError, match="larger than 256 MiB"):
        console.run(query)
    assert len(console.run(query, limit=3).table) == 3


MEMORY = """
import nsys_tui.sql.console as c, nsys_tui.sql.guard as g, sys
g.MEMORY = 96 << 20
g.DISK = 64 << 20
from nsys_tui.reader import open_report
console = c.Console(open_report(sys.argv[1], use_cache=False))
for query in sys.argv[2:]:
    try:
        console.run(query, timeout_s=30)
        print("answered")
    except Exception as error:
        print(type(error).__name__, error.title)
assert console.run("select 1").table.rows() == [(1,)]
status = open("/proc/self/status").read()
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_sorting_and_recursion_cannot_eat_memory(path: Path) -> None:
    much = (
        "with recursive a(x, y) as (select 1, zeroblob(100000) union all"
        " select x + 1, zeroblob(100000) from a limit 100000)"
    )
    queries = [
        f"{much} select count(distinct hex(y) || x) from a",
        f"{much} select x from (select * from a order by y, x desc) limit 1 offset 90000",
        f"{much} select x, row_number() over (order by y, x) from a limit 1",
    ]
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(path), *queries], capture_output=True, text=True
    )
    *told, peak = done.stdout.splitlines()
    assert len(told) == 3, done.stderr
    assert {line.partition(" than ")[0] for line in told} == {"UsageError the query needs more"}
    assert int(peak) < 400


def test_a_query_is_cancelled_from_outside(console: Console) -> None:
    asked = iter(range(100))

    def progress(*_: object) -> None:
        if next(asked) > 5:
            raise CancelledError("enough")

    with pytest.raises(CancelledError, match="enough"):
        console.run(ENDLESS[0], progress=progress)
    assert console.run("select 1").table.rows() == [(1,)]


WORDS = st.sampled_from(
    [*"(),;*.'\"-/+=<>|?`[]%", "select", "from", "where", "kernels", "stalls", "StringIds", "1",
     "name", "pragma", "attach", "drop", "with", "recursive", "as", "union", "join", "group by",
     "order by", "x'00'", "'", "--", "/*", "insert into", "values", "explain", "\0", "\ud800",
     "load_extension", "order", "limit", "\x1b[31m", "é", "return", "begin", "vacuum into"]
)  # fmt: skip


@given(st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=14).map(" ".join)))
@settings(max_examples=400)
def test_text_of_any_kind_ends_in_an_answer_or_in_words(path: Path, query: str) -> None:
    global _KEPT
    if _KEPT is None:
        _KEPT = Console(open_report(path, use_cache=False))
    before = path.read_bytes()
    said = "an answer"
    try:
        _KEPT.run(query, limit=10, timeout_s=2)
    except NsysTuiError as error:
        said = str(error)
    assert said
    assert not any(ord(char) < 32 and char != "\n" for char in said)
    assert path.read_bytes() == before


_KEPT: Console | None = None


@pytest.mark.parametrize(
    ("query", "offset", "said"),
    [
        ("selec 1", 0, "near 'selec' in line 1, column 1"),
        ("select name\nfrom kernel", 17, "did you mean kernels"),
        ("select nam from kernels", 7, "no such column: nam in line 1, column 8"),
        ("select start from kernels", 7, "did you mean start_ns"),
        ("select 'from', from kernels", 15, "near 'from' in line 1, column 16"),
        ("select (1", 9, "not finished"),
        ("select nosuch(1)", 7, "no such function: nosuch"),
        ("select 1 from main.kernels", 19, "it is called kernels"),
        ("select '\ud800'", -1, "no UTF-8"),
        ("select json('[')", -1, "malformed JSON"),
    ],
)
def test_an_error_tells_its_place(console: Console, query: str, offset: int, said: str) -> None:
    with pytest.raises(QueryError) as caught:
        console.run(query)
    assert caught.value.offset == offset
    assert said in str(caught.value)
