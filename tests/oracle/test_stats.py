"""Our statistical reports beside those of NVIDIA's nsys, row by row, on every real report."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Final, TypeAlias

import pytest
from demo_making import make_report
from oracle.altered import altered
from oracle.completing import complete
from oracle.differences import STATS, Named
from oracle.real_nsys import Rows, laid_out, names, rows, run
from paths import needs_reports, report_paths

from nsys_tui.analysis.stats.reports import parse
from nsys_tui.cli import main
from nsys_tui.demo.schema import GENERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Found: TypeAlias = tuple[str, str, str]
"""File, report and sign of a difference."""

VERSION: Final = "2023.4"
OLDER: Final = "2022.4"
"""It prints None in cells without a value."""
TAKES_MINUTES: Final = ("pytorch-nccl-2gpu-2026.2", "nvtxgpuproj")
"""Projections of its 19,118 nested ranges, by the older one; those of a window take seconds."""
NAMING: Final = ("base", "mangled", "nvtx-name", "nvtx-name:base")
NAMED: Final = (
    "cuda_api_gpu_sum",
    "cuda_gpu_kern_gb_sum",
    "cuda_gpu_kern_sum",
    "cuda_gpu_sum",
    "cuda_gpu_trace",
    "cuda_kern_exec_sum",
    "cuda_kern_exec_trace",
)
"""Reports that name kernels as they are told to."""
ARGUMENTS: Final = (
    "um_sum:rows=3",
    "nvtx_kern_sum:base",
    "nvtx_kern_sum:mangled",
    *(f"{report}:{argument}" for report in NAMED for argument in NAMING),
)
"""Reports with the arguments that both know."""


def signs(theirs: Rows, ours: Rows) -> Iterator[str]:
    """How two tables differ; nothing where they are the same."""
    if theirs == ours:
        return
    if not theirs or not ours:
        yield "theirs alone" if theirs else "ours alone"
        return
    for header in {*theirs[0]} ^ {*ours[0]}:
        yield f"header {header}"
    shared = [header for header in theirs[0] if header in ours[0]]
    mine, other = _columns(ours, shared), _columns(theirs, shared)
    if mine == other:
        return
    if len(mine) != len(other):
        yield "rows"
    elif Counter(mine) == Counter(other):
        sorted_by = [[row[:2] for row in side] for side in (mine, other)]
        yield "ties" if sorted_by[0] == sorted_by[1] else "order"
    else:
        for place, header in enumerate(shared):
            if [row[place] for row in mine] != [row[place] for row in other]:
                yield f"column {header}"


def _columns(table: Rows, headers: list[str]) -> list[tuple[str, ...]]:
    places = [table[0].index(header) for header in headers]
    return [tuple(row[place] for place in places) for row in table[1:]]


def unnamed(found: list[Found], named: Mapping[str, Named]) -> list[str]:
    """The differences without a name, and the names without a difference."""
    lost = [" ".join(one) for one in found if not any(n.tells(*one) for n in named.values())]
    idle = [key for key, one in named.items() if not any(one.tells(*each) for each in found)]
    return [*lost, *(f"no difference is called {key!r} any more" for key in idle)]


def compared(
    version: str, path: Path, folder: Path, listed: tuple[str, ...]
) -> tuple[list[Found], int]:
    """The differences of one report, and how many tables are the same to the byte."""
    nsys = laid_out(version)
    folder.mkdir()
    copy = folder / path.name
    shutil.copyfile(path, copy)
    complete(copy, version)
    wanted = ("-r", ",".join(listed), "-f", "csv", "-o")
    run(nsys, "stats", *wanted, str(folder / "theirs"), str(copy))
    main(["stats", *wanted, str(folder / "ours"), "--no-cache", "--quiet", str(path)])
    found: list[Found] = []
    equal = 0
    for name in listed:
        wanted_here = parse(name)
        report, of = wanted_here.report.name, path.stem.partition("@")[0]
        theirs = rows(folder / f"theirs_{name.replace(':', '_')}.csv")
        ours = rows(folder / f"ours_{wanted_here.name.replace(':', '_')}.csv")
        if version == OLDER:
            theirs = [["" if cell == "None" else cell for cell in row] for row in theirs]
        found += [(of, report, sign) for sign in signs(theirs, ours)]
        equal += bool(theirs) and theirs == ours
    return found, equal


def window(report: Path, folder: Path) -> Path:
    """A copy of a report with the ranges around every twentieth part of its kernels' launches."""
    copy = folder / f"{report.stem}@window.sqlite"
    shutil.copyfile(report, copy)
    with closing(sqlite3.connect(copy)) as db:
        launches = db.execute(
            "SELECT r.start FROM CUPTI_ACTIVITY_KIND_KERNEL k CROSS JOIN"
            " CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId) ORDER BY r.start"
        ).fetchall()
        (first,), (last,) = (launches[len(launches) * share // 20] for share in (10, 11))
        db.execute("DELETE FROM NVTX_EVENTS WHERE start > ? OR end < ?", (last, first))
        db.commit()
    return copy


@needs_reports
def test_every_report_has_nsys_s_rows_or_a_named_difference(tmp_path: Path) -> None:
    nsys = laid_out(VERSION)
    reports = names(nsys, "stats", "--help-reports")
    assert len(reports) > 30
    found: list[Found] = []
    same = 0
    for path in report_paths():
        lost, equal = compared(VERSION, path, tmp_path / path.stem, (*reports, *ARGUMENTS))
        found, same = found + lost, same + equal
    assert same > 200
    for generation in GENERATIONS:
        path = tmp_path / f"demo@{generation}.sqlite"
        make_report(path, steps=4, generation=generation)
        lost, equal = compared(VERSION, path, tmp_path / path.stem, reports)
        assert equal >= 14
        found += lost
    older = names(laid_out(OLDER), "stats", "--help-reports")
    for path in [*report_paths(), *tmp_path.glob("demo@*.sqlite")]:
        listed = tuple(name for name in older if (path.stem, name) != TAKES_MINUTES)
        found += compared(OLDER, path, tmp_path / f"older {path.stem}", listed)[0]
    for path in altered(tmp_path):
        found += compared(VERSION, path, tmp_path / path.stem, reports)[0]
        found += compared(OLDER, path, tmp_path / f"older {path.stem}", older)[0]
    path = window(next(p for p in report_paths() if p.stem == TAKES_MINUTES[0]), tmp_path)
    lost, equal = compared(OLDER, path, tmp_path / path.stem, TAKES_MINUTES[1:])
    found, same = found + lost, same + equal
    assert unnamed(found, STATS) == []


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        ([["A", "B"], ["1", "2"]], [["A", "B"], ["1", "2"]], []),
        ([["A"], ["1"], ["2"]], [["A"], ["2"], ["1"]], ["order"]),
        ([["A", "B", "C"], [*"123"], [*"124"]], [["A", "B", "C"], [*"124"], [*"123"]], ["ties"]),
        ([["A", "B"], ["1", "2"]], [["A", "B"], ["1", "3"]], ["column B"]),
        ([["A"], ["1"]], [["A"], ["1"], ["1"]], ["rows"]),
        ([["A", "B"], ["1", "2"]], [["A"], ["1"]], ["header B"]),
        ([["A"], ["1"]], [], ["theirs alone"]),
        ([], [["A"], ["1"]], ["ours alone"]),
    ],
)
def test_a_difference_has_its_sign(theirs: Rows, ours: Rows, expected: list[str]) -> None:
    assert [*signs(theirs, ours)] == expected


def test_names_and_differences_are_held_against_each_other() -> None:
    named = {"known": Named("", frozenset({"rows"}), frozenset({"a"}))}
    assert unnamed([("file", "a", "rows")], named) == []
    assert unnamed([("file", "b", "rows"), ("file", "a", "rows")], named) == ["file b rows"]
    assert unnamed([], named) == ["no difference is called 'known' any more"]
