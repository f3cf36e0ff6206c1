"""The views hold what the verbs and plain SQL over nsys's tables say, in every generation."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make_report
from paths import needs_reports, report_paths
from synth import Synth

from nsys_tui import cli
from nsys_tui.demo.schema import GENERATIONS
from nsys_tui.errors import NoDataError
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import OpName, called
from nsys_tui.names import NameStyle
from nsys_tui.reader import open_report
from nsys_tui.reader.cache import cache_at
from nsys_tui.sql.console import Console
from nsys_tui.sql.faults import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAIRS = {
    "select count(*), sum(duration_ns), min(start_ns), max(end_ns) from kernels":
    'select count(*), sum("end" - start), min(start), max("end") from CUPTI_ACTIVITY_KIND_KERNEL',
    "select name, pid, stream, count(*) from kernels group by 1, 2, 3 order by 1, 2, 3":
    "select s.value, (k.globalPid >> 24) & 16777215, streamId, count(*) from"
    " CUPTI_ACTIVITY_KIND_KERNEL k join StringIds s on s.id = k.shortName"
    " group by 1, 2, 3 order by 1, 2, 3",
    "select kind = 'Host-to-Device', sum(bytes), count(*) from copies group by 1 order by 1":
    "select copyKind = 1, sum(bytes), count(*) from CUPTI_ACTIVITY_KIND_MEMCPY"
    " group by 1 order by 1",
    "select sum(bytes), sum(duration_ns) from memsets":
    'select sum(bytes), sum("end" - start) from CUPTI_ACTIVITY_KIND_MEMSET',
    "select name, count(*), sum(duration_ns) from ranges group by 1 order by 1":
    'select coalesce(n.text, s.value), count(*), sum("end" - start) from NVTX_EVENTS n'
    " left join StringIds s on s.id = n.textId where eventType in (59, 60, 70, 71)"
    " group by 1 order by 1",
    "select full_name, count(*), sum(duration_ns) from api group by 1 order by 1":
    'select s.value, count(*), sum("end" - start) from CUPTI_ACTIVITY_KIND_RUNTIME r'
    " join StringIds s on s.id = r.nameId where eventClass <> 67 group by 1 order by 1",
    "select count(*), sum(a.duration_ns) from kernels k join api a"
    " on a.global_pid = k.global_pid and a.correlation = k.correlation":
    'select count(*), sum(r."end" - r.start) from CUPTI_ACTIVITY_KIND_KERNEL k'
    " join CUPTI_ACTIVITY_KIND_RUNTIME r on r.correlationId = k.correlationId"
    " and (r.globalTid & ~16777215) = k.globalPid and r.eventClass <> 67",
}  # fmt: skip

KINDS = ("int", "float", "4", "at::Sum<float>", "lambda#1")


@pytest.fixture(scope="module", params=GENERATIONS)
def demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("sql") / "demo.sqlite"
    return make_report(path, generation=request.param).report


def asked(path: Path, *queries: str) -> Iterator[list[tuple[Any, ...]] | None]:
    report = open_report(path, use_cache=False)
    console = Console(report)
    for query in queries:
        try:
            yield console.run(query).table.rows()
        except NoDataError:
            yield None
    console.close()
    report.close()


def plain(path: Path, *queries: str) -> Iterator[list[tuple[Any, ...]] | None]:
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
        for query in queries:
            try:
                yield connection.execute(query).fetchall()
            except sqlite3.OperationalError:  # no such table
                yield None


def test_views_hold_what_plain_sql_over_the_tables_of_the_demo_says(demo: Path) -> None:
    for query, own, other in zip(PAIRS, asked(demo, *PAIRS), plain(demo, *PAIRS.values()),
                                 strict=True):  # fmt: skip
        assert own, query
        assert own == other, query


@needs_reports
@pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
def test_views_hold_what_plain_sql_over_the_tables_of_real_reports_says(path: Path) -> None:
    for query, own, other in zip(PAIRS, asked(path, *PAIRS), plain(path, *PAIRS.values()),
                                 strict=True):  # fmt: skip
        if own is not None and other is not None:
            assert own == other, query
        else:  # a table without rows is there, but nothing of it can be asked
            assert other is None or sum(row[-1] or 0 for row in other) == 0 or own == [], query


VERBS = {
    "stalls": (["stalls", "--limit", "0"], "gaps"),
    "steps": (["iterations", "--limit", "0"], "iterations"),
    "collectives": (["collectives", "--top", "0"], "collectives"),
}


@pytest.mark.parametrize("view", VERBS)
def test_figures_are_those_of_the_verbs(
    demo: Path, view: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words, key = VERBS[view]
    assert cli.main([words[0], str(demo), *words[1:], "--format", "json", "--no-cache"]) == 0
    told = json.loads(capsys.readouterr().out)[key]
    assert cli.main(["sql", str(demo), f"select * from {view}", "--format", "json",
                     "--no-cache"]) == 0  # fmt: skip
    own = json.loads(capsys.readouterr().out)
    assert len(own) == len(told) > 0
    for row, verb in zip(own, told, strict=True):
        for name, value in row.items():
            known = int(verb[name]) if isinstance(verb[name], bool) else verb[name]
            assert value == (known if known is None else pytest.approx(known))


def test_launches_join_work_with_its_call_as_the_verbs_do(demo: Path) -> None:
    query = (
        "select count(*), sum(l.latency_ns = k.start_ns - a.start_ns),"
        " sum(l.queue_ns = max(k.start_ns - a.end_ns, 0)), sum(k.global_pid = a.global_pid),"
        " sum(k.correlation = a.correlation)"
        " from launches l join kernels k on l.kind = 'kernel' and k.id = l.id"
        " join api a on a.id = l.api_id"
    )
    [rows] = asked(demo, query)
    assert rows is not None
    [counts] = rows
    assert counts[0] > 5_000
    assert set(counts) == {counts[0]}


def test_devices_threads_domains_and_ranks_have_the_names_that_the_app_shows(
    tmp_path: Path,
) -> None:
    made = Synth(tmp_path / "r.sqlite").gpu(4, "H100").cuda_device(1000, 0, 4).mpi_rank(3)
    made.thread(7, "worker").domain(5, "NCCL").nvtx("send", 1, 9, domain=5, tid=7)
    made.launch("ncclDevKernel_X()", (10, 20), (30, 40)).launch("gemm()", (50, 60), (70, 80))
    path = made.write()
    kernels, ranges, calls = asked(
        path,
        "select name, category, device, pid, rank, start_ns, duration_ns from kernels order by id",
        "select name, domain, thread, tid, style from ranges",
        "select distinct name from api",
    )
    assert kernels == [
        ("ncclDevKernel_X", "comm", 4, 1000, 3, 30, 10),
        ("gemm", "compute", 4, 1000, 3, 70, 10),
    ]
    assert ranges == [("send", "NCCL", "worker", 7, "push/pop")]
    assert calls == [("cudaLaunchKernel",)]


def test_kernels_have_the_short_names_of_the_screens(tmp_path: Path) -> None:
    made = Synth(tmp_path / "r.sqlite")
    for place, name in enumerate(
        ("void k<int>(int)", "void k<float>(float)", "other()", "other()")
    ):
        made.launch(name, (place, place + 1), (100 * place + 10, 100 * place + 20))
    path = made.write()
    shown = [*called(open_report(path, use_cache=False).operations.names, NameStyle.SHORT)]
    (found,) = asked(path, "select short_name, count(*) from kernels group by 1 order by min(id)")
    assert [name for name, _ in found or ()] == shown
    assert [count for _, count in found or ()] == [1, 1, 2]


def test_names_of_kernels_are_found_without_reading_all_of_the_work(demo: Path) -> None:
    report = open_report(demo, use_cache=False)
    found = Console(report).run("select distinct short_name from kernels").table.rows()
    assert not report.loaded("operations")
    named = [name for name in report.operations.names if not name.short.startswith("[CUDA ")]
    assert {name for (name,) in found} == {*called(tuple(named), NameStyle.SHORT)}
    assert [*open_report(demo, use_cache=False).kernel_names] == named


def test_names_of_kernels_come_from_work_that_was_read_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Synth(tmp_path / "r.sqlite").launch("k()", (1, 2), (3, 4)).write()
    cache = cache_at(str(tmp_path / "cache"))
    names = open_report(path, cache=cache).operations.names
    monkeypatch.setattr("nsys_tui.reader.source.kernel_names", None)
    assert open_report(path, cache=cache).kernel_names == names


def test_names_of_kernels_are_kept_for_the_next_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Synth(tmp_path / "r.sqlite").launch("void k<int>(int)", (1, 2), (3, 4))
    made.string("void k<float>(float)")  # of no kernel, which only reading all of them shows
    path, cache = made.write(), cache_at(str(tmp_path / "cache"))
    asked = "select short_name from kernels"
    first = Console(open_report(path, cache=cache)).run(asked).table.rows()
    monkeypatch.setattr("nsys_tui.reader.source.kernel_names", None)
    assert Console(open_report(path, cache=cache)).run(asked).table.rows() == first == [("k",)]


@pytest.mark.parametrize("demo", ["2026.2"], indirect=True)
def test_the_first_page_waits_for_no_reading_of_all_kernels(
    demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ops = open_report(demo, use_cache=False).operations
    kernels = ops.of_kind(OpKind.KERNEL)
    shown = [ops.shown[name] for name in ops.name[kernels[ops.rowid[kernels].argsort()]]]
    monkeypatch.setattr("nsys_tui.reader.source.kernel_names", None)
    console = Console(open_report(demo, use_cache=False))
    page = console.run("select short_name from kernels", limit=1_000).table.rows()
    assert [name for (name,) in page] == shown[:1_000]


@pytest.mark.parametrize("seen", [0, 1, 2, 3])
def test_kernels_that_come_late_are_called_as_on_the_screens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: int
) -> None:
    made = Synth(tmp_path / "r.sqlite")
    names = ("void k<int>(int)", "void k<float>(float)", "void cub::CUB_200_NS::f<1>(int)")
    for place, name in enumerate(names):
        made.launch(name, (place, place + 1), (100 * place + 10, 100 * place + 20))
    report = open_report(made.write(), use_cache=False)
    early = report.kernel_names[:seen]
    monkeypatch.setattr("nsys_tui.reader.short_names.some_kernel_names", lambda *_: early)
    found = Console(report).run("select short_name from kernels order by id").table.rows()
    assert [name for (name,) in found] == [*called(report.kernel_names, NameStyle.SHORT)]


def test_what_is_called_the_same_beside_none_and_all_is_so_beside_some() -> None:
    chance, told = Random(17), 0
    for _ in range(2_000):
        texts = [
            f"void {chance.choice('fgh')}<{', '.join(chance.choices(KINDS, k=2))}>({part})"
            for part in chance.choices(("int", "float*"), k=chance.randrange(2, 9))
        ]
        names = [OpName("", text, text) for text in dict.fromkeys(texts)]
        some, half = len(names) // 3, 2 * len(names) // 3
        few, more, every = (
            called(tuple(names[:count]), NameStyle.SHORT) for count in (some, half, len(names))
        )
        pairs = zip(few, more, every, strict=False)
        known = [(mine, theirs) for mine, theirs, alone in pairs if mine == alone]
        assert all(mine == theirs for mine, theirs in known)
        told += len(known)
    assert told > 500


def test_a_question_without_them_waits_for_no_analysis(demo: Path) -> None:
    script = (
        "import sys; from nsys_tui.reader import open_report; from nsys_tui.sql.console import *;"
        f"c = Console(open_report({str(demo)!r}, use_cache=False));"
        "c.run('select name from kernels limit 1');"
        "print([n for n in sys.modules if n.startswith('nsys_tui.analysis')]);"
        "print(c.run(\"select name from pragma_table_list where name = 'Steps' collate nocase\")"
        ".table.rows(), c.run('select count(*) from \"StePs\"').table.rows() != [(0,)])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["[]", "[('steps',)] True"]


def test_users_patterns_make_kernels_communication(tmp_path: Path) -> None:
    path = Synth(tmp_path / "r.sqlite").launch("mine()", (10, 20), (30, 40)).write()
    console = Console(open_report(path, use_cache=False), ("^mine",))
    assert console.run("select category from kernels").table.rows() == [("comm",)]


def test_a_missing_string_and_an_open_range_are_told(tmp_path: Path) -> None:
    made = Synth(tmp_path / "r.sqlite").launch("k()", (1, 2), (3, 4)).nvtx("open", 1, None)
    made.sql("DELETE FROM StringIds")
    names, ranges = asked(
        made.write(), "select name from kernels", "select name, end_ns, duration_ns from ranges"
    )
    assert names is not None
    assert str(names[0][0]).startswith("[string ")
    assert ranges == [("open", None, None)]


def test_what_is_not_there_says_what_would_record_it(tmp_path: Path) -> None:
    report = open_report(Synth(tmp_path / "r.sqlite").nvtx("a", 1, 2).write(), use_cache=False)
    console = Console(report)
    for query in ("select * from kernels", "select count(*) from OSRT_API",
                  "select * from stalls"):  # fmt: skip
        with pytest.raises(NoDataError, match="nsys profile"):
            console.run(query)
    answer = console.run("select name from ranges union all select name from kernels")
    assert answer.table.rows() == [("a",)]
    assert "kernels is empty" in answer.notes[0]


def test_values_of_other_kinds_behind_the_answer_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_report(tmp_path / "strange.sqlite").report
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        calls = "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET globalTid = 'x' WHERE rowid IN (3, 5)"
        db.execute(calls)
        db.execute(
            "UPDATE StringIds SET value = x'00ff' WHERE id = (SELECT max(id) FROM StringIds)"
        )
        db.execute("CREATE TABLE loose AS SELECT * FROM CUPTI_ACTIVITY_KIND_MEMSET")
        db.execute("DROP TABLE CUPTI_ACTIVITY_KIND_MEMSET")
        db.execute("ALTER TABLE loose RENAME TO CUPTI_ACTIVITY_KIND_MEMSET")
        db.execute("UPDATE CUPTI_ACTIVITY_KIND_MEMSET SET start = NULL, graphNodeId = NULL")
        (sets,) = db.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMSET").fetchone()
        db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = start - 1 WHERE rowid = 2")
    none = (
        f"note: {sets} rows with NULL in `start` of CUPTI_ACTIVITY_KIND_MEMSET: taken as they are"
    )
    told = "note: 2 rows with text in `globalTid` of CUPTI_ACTIVITY_KIND_RUNTIME: taken as they are"
    name = "note: 1 row with a blob in `value` of StringIds: taken as they are"
    early = "note: 1 row with a time before its start in `end` of CUPTI_ACTIVITY_KIND_KERNEL: taken"
    early += " as they are"
    for query, notes in (
        ("select count(*) from api where pid = 1", [told, name]),
        ("select start from CUPTI_ACTIVITY_KIND_RUNTIME limit 1", []),
        ("select globalTid from CUPTI_ACTIVITY_KIND_RUNTIME limit 1", [told]),
        ("select start_ns from memsets limit 1", [none]),
        ("select graphNodeId from CUPTI_ACTIVITY_KIND_MEMSET", []),
        ("select min(duration_ns) from kernels", [early, name]),
        ("select count(start) from CUPTI_ACTIVITY_KIND_KERNEL", []),
    ):
        assert cli.main(["sql", str(path), query]) == 0
        assert set(capsys.readouterr().err.splitlines()) == set(notes)


def test_an_end_before_its_start_is_told_wherever_a_query_meets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_tui.sql.strange.FIRST", 1)
    made = Synth(tmp_path / "r.sqlite")
    for start in (0, 10, 20, 30):
        made.kernel("k", start, start + 5)
    made.sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = start - 1 WHERE rowid IN (2, 4)")
    with closing(open_report(made.write(), use_cache=False)) as report:
        console = Console(report)
        for query, rows in (
            ("select sum(duration_ns) from kernels", "2 rows"),
            ("select duration_ns from kernels where start_ns = 10 order by duration_ns", "1 row"),
            ("select duration_ns from kernels where start_ns = 20", ""),
            ("select count(*) from kernels", ""),
        ):
            told = [note for note in console.run(query).notes if "before its start" in note]
            assert [note.partition(" with ")[0] for note in told] == [rows] * bool(rows)
        with pytest.raises(QueryError, match="_early"):
            console.run("select _early('kernels', 1)")


@pytest.mark.parametrize(("first", "told"), [(3, True), (4, False)])
def test_rows_that_are_not_looked_at_are_logged_and_no_answer_bears_them(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    first: int,
    told: bool,
) -> None:
    caplog.set_level("DEBUG", "nsys_tui.sql.strange")
    made = Synth(tmp_path / "r.sqlite")
    for start in (0, 10, 20, 30):
        made.kernel("k", start, start + 5)
    monkeypatch.setattr("nsys_tui.sql.strange.FIRST", first)
    with closing(open_report(made.write(), use_cache=False)) as report:
        notes = Console(report).run("select sum(stream) from kernels").notes
    assert not notes
    rows = "only the first 3 rows of CUPTI_ACTIVITY_KIND_KERNEL were searched"
    assert [m.partition(" for ")[0] for m in caplog.messages] == [rows] * told


def test_a_count_of_other_kinds_says_how_many_rows_were_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Synth(tmp_path / "r.sqlite")
    for start in (0, 10, 20, 30):
        made.kernel("k", start, start + 5)
    made.sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'x' WHERE rowid IN (1, 3)")
    with closing(open_report(made.write(), use_cache=False)) as report:
        console = Console(report)
        for first, told in (
            (2, "1 row with text in `start` of {}, of the first 2 that were looked at: taken"),
            (4, "2 rows with text in `start` of {}: taken"),
        ):
            monkeypatch.setattr("nsys_tui.sql.strange.FIRST", first)
            (note,) = console.run("select sum(start_ns) from kernels").notes
            assert note == told.format("CUPTI_ACTIVITY_KIND_KERNEL") + " as they are"
