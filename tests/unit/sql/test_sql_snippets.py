"""Every snippet answers on the demo, and on real reports as far as these hold what it asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from demo_making import make_report
from paths import needs_reports, report_paths

from nsys_tui.errors import NoDataError
from nsys_tui.reader import open_report
from nsys_tui.sql.completion import completions
from nsys_tui.sql.console import Console
from nsys_tui.sql.snippets import SNIPPETS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOT_IN_THE_DEMO = {"CUDA calls that failed"}


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    path: Path = tmp_path_factory.mktemp("snippets") / "demo.sqlite"
    made = Console(open_report(make_report(path).report, use_cache=False))
    yield made
    made.close()


def test_there_are_some_twenty_with_titles_of_their_own() -> None:
    assert 20 <= len(SNIPPETS) == len({snippet.title for snippet in SNIPPETS})


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.title)
def test_a_snippet_answers_on_the_demo(console: Console, snippet: object) -> None:
    answer = console.run(snippet.sql)  # type: ignore[attr-defined]
    title = snippet.title  # type: ignore[attr-defined]
    assert bool(len(answer.table)) == (title not in NOT_IN_THE_DEMO)
    assert not answer.notes


@needs_reports
@pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
def test_snippets_answer_on_real_reports_or_say_what_is_missing(path: Path) -> None:
    console = Console(open_report(path, use_cache=False))
    told, lacking = 0, []
    for snippet in SNIPPETS:
        try:
            told += len(console.run(snippet.sql).table) > 0
        except NoDataError as error:
            lacking.append(str(error))
    console.close()
    assert all(why.partition(": ")[2].startswith("no ") or "joined" in why for why in lacking)
    assert told >= (0 if path.stem == "no-events" else 1)


def test_the_kernels_of_a_range_are_those_launched_inside_it(console: Console) -> None:
    """Against the same counted kernel by kernel."""
    [snippet] = [s for s in SNIPPETS if s.title.startswith("kernels launched inside")]
    rows = console.run(snippet.sql).table.rows()
    steps = [row for row in rows if row[2].startswith("Train step")]
    assert len(steps) == 20
    [[launched]] = console.run(
        "select count(*) from launches l join api a on a.id = l.api_id"
        " where l.kind = 'kernel'"
        " and exists (select 1 from ranges r where r.name like 'Train step%'"
        " and r.global_tid = a.global_tid and r.start_ns <= a.start_ns and a.start_ns < r.end_ns)"
    ).table.rows()
    assert sum(row[3] for row in steps) == launched


@pytest.mark.parametrize(
    ("before", "after", "word", "first"),
    [
        ("select * from ker", "", "ker", "kernels"),
        ("select dur", " from kernels", "dur", "duration_ns"),
        ("select k.dev", " from kernels k", "dev", "device"),
        ("select caus", " from stalls s join kernels k", "caus", "cause"),
        ("select * from kernels k join ap", "", "ap", "api"),
        ("sel", "", "sel", "SELECT"),
        ("select start_ns, dur", "", "dur", "duration_ns"),
        ("select K.dev", " from Kernels K", "dev", "device"),
        ("select KERNELS.dev", "", "dev", "device"),
        (
            "with busiest as (select 1), last (a, b) as (select 2) select * from bu",
            "",
            "bu",
            "busiest",
        ),
        (
            "with busiest as (select 1), last (a, b) as (select 2) select * from las",
            "",
            "las",
            "last",
        ),
    ],
)
def test_completion_knows_tables_and_their_columns(
    console: Console, before: str, after: str, word: str, first: str
) -> None:
    typed, words = completions(before, before + after, console.tables)
    assert (typed, words[0]) == (word, first)


def test_completion_of_nothing_known_is_nothing(console: Console) -> None:
    assert completions("select zzz", "select zzz", console.tables) == ("zzz", [])
    assert completions("select count(*) as zab from za", "", console.tables) == ("za", [])
