from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from demo_making import make_report
from paths import REPORTS, needs_reports, report_paths
from synth import Synth

from nsys_tui.analysis.stalls.answer import GROUPINGS
from nsys_tui.analysis.stalls.gaps import stalls
from nsys_tui.analysis.stalls.rows import (
    StallTable,
    group_codes,
    stall_groups,
    stall_rows,
    stall_table,
)
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.model.report import Report

US = 1_000


def table_of(report: Report) -> StallTable:
    return stall_table(report, stalls(report))


def assert_same_as_rows(report: Report) -> None:
    result = stalls(report)
    table, rows = stall_table(report, result), stall_rows(report, result)
    assert [table.row(report, place) for place in range(len(table))] == rows
    for column, wanted in (
        (table.cause, [row.label for row in rows]),
        (table.next, [row.next for row in rows]),
        (table.range, [row.range for row in rows]),
        (
            table.thread,
            [report.thread_name(row.thread) if row.thread >= 0 else "" for row in rows],
        ),
    ):
        assert [column.labels[code] for code in column.codes(table.numbers).tolist()] == wanted
    graded = [row.severity.rank + 1 if row.severity else 0 for row in rows]
    assert table.severity(table.numbers).tolist() == graded


def assert_groups_hold_their_rows(report: Report) -> None:
    result = stalls(report)
    gaps = result.gaps
    for by in GROUPINGS:
        keys, codes = group_codes(report, result, by)
        for group in stall_groups(report, result, by):
            if group.key != "below threshold":
                mine = result.longest_first(codes == keys.index(group.key))
                assert int(gaps.idle[mine].sum()) == group.idle_ns
                assert int(gaps.count[mine].sum()) == group.count
                assert (group.longest, group.longest_ns) == (mine[0], gaps.idle[mine[0]])


def test_longest_idle_first_and_the_edges_of_the_trace_last(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10, "train").session(duration=1_000 * US)
    for start, end in ((500, 510), (530, 540), (590, 600)):
        synth.launch("k", call=(start * US - 5, start * US), gpu=(start * US, end * US))
    report = open_report(synth.write())
    table = table_of(report)
    gaps, severity = table.result.gaps, table.severity(table.numbers)
    # 20 us and 50 us between kernels; 500 us before the first and 400 us after the last.
    assert gaps.idle[table.numbers].tolist() == [50 * US, 20 * US, 500 * US, 400 * US]
    assert gaps.start[table.numbers].tolist() == [540 * US, 510 * US, 0, 600 * US]
    assert severity[:2].all()
    assert not severity[2:].any()


def test_demo_with_runs_gives_what_the_rows_give(tmp_path: Path) -> None:
    report = open_report(make_report(tmp_path / "d.sqlite", steps=7).report)
    assert any(row.kind == "run" for row in stall_rows(report, stalls(report)))
    assert_same_as_rows(report)
    assert_groups_hold_their_rows(report)


@needs_reports
@pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
def test_real_reports_give_what_the_rows_give(path: Path) -> None:
    report = open_report(path, use_cache=False)
    assert_same_as_rows(report)
    assert_groups_hold_their_rows(report)


@needs_reports
def test_a_table_of_some_gaps_keeps_their_texts() -> None:
    report = open_report(REPORTS / "cloverleaf-a100-2024.5.sqlite", use_cache=False)
    table = table_of(report)
    part = stall_table(report, table.result, numbers=table.numbers[[3, 1]])
    assert len(part) == 2
    assert part.row(report, 1) == table.row(report, 1)
    assert part.cause.labels[part.cause.codes(part.numbers)[0]] == table.row(report, 3).label
