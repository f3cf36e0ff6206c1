"""The rules of nsys beside ours of the same names with ``compat``, row by row."""

from __future__ import annotations

import csv
import io
import shutil
from contextlib import closing
from typing import TYPE_CHECKING

from demo_making import make_report
from oracle.altered import altered
from oracle.completing import complete
from oracle.differences import RULES
from oracle.real_nsys import Rows, laid_out, names, rows, run
from oracle.test_stats import OLDER, VERSION, Found, signs, unnamed
from paths import needs_reports, report_paths
from synth import Synth

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import RULES as OURS
from nsys_tui.analysis.rules.register import parse_rule
from nsys_tui.analysis.stats.reports import named
from nsys_tui.demo.schema import GENERATIONS
from nsys_tui.reader import open_report
from nsys_tui.text.formats import Format
from nsys_tui.text.tables import chunks

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.model.report import Report

MS = 1_000_000


def our_rows(report: Report, name: str) -> Rows:
    """The table of a rule as csv, with all rows; empty where it finds nothing."""
    rule = OURS[name]
    arguments = {"rows": -1, "compat": True, "gap": 1.0}
    known = {parameter.name for parameter in rule.parameters}
    table = rule.run(Case(report), {k: v for k, v in arguments.items() if k in known}).table
    text = "".join(chunks(table, Format("csv")))
    return [row for row in csv.reader(io.StringIO(text)) if row] if len(table) else []


def test_older_names_of_reports_and_rules_are_known() -> None:
    older = laid_out("2022.4")
    reports, rules = (
        names(older, "stats", "--help-reports"),
        names(older, "analyze", "--help-rules"),
    )
    assert len(reports) > 30
    assert len(rules) == 7
    assert [name for name in reports if named(name) is None] == []
    assert {OURS[parse_rule(name)[0]].of_nsys for name in rules} == {True}


def compared(version: str, path: Path, folder: Path) -> tuple[list[Found], int]:
    """The differences of one report, and how many tables are the same to the byte."""
    nsys = laid_out(version)
    rules = {parse_rule(name)[0]: name for name in names(nsys, "analyze", "--help-rules")}
    assert len(rules) == 7
    asked = ",".join(f"{old}:rows=-1{':gap=1' * (new == 'gpu_gaps')}" for new, old in rules.items())
    folder.mkdir()
    copy = folder / path.name
    shutil.copyfile(path, copy)
    complete(copy, version)
    run(nsys, "analyze", "-r", asked, "-f", "csv", "-o", str(folder / "theirs"), str(copy))
    found: list[Found] = []
    equal = 0
    with closing(open_report(path, use_cache=False)) as report:
        for rule, name in rules.items():
            theirs = rows(next(folder.glob(f"theirs_{name}*.csv"), folder / "none"))
            ours = our_rows(report, rule)
            of = path.stem.partition("@")[0]
            found += [(of, rule, sign) for sign in signs(theirs, ours)]
            equal += bool(theirs) and theirs == ours
    return found, equal


@needs_reports
def test_every_rule_has_nsys_s_rows_or_a_named_difference(tmp_path: Path) -> None:
    demos = [tmp_path / f"demo@{generation}.sqlite" for generation in GENERATIONS]
    for path in demos:
        make_report(path, steps=4, generation=path.stem.partition("@")[2])
    found: list[Found] = []
    same = 0
    for version in (VERSION, OLDER):
        for path in [*report_paths(), *demos, *altered(tmp_path)]:
            lost, equal = compared(version, path, tmp_path / f"{version} {path.stem}")
            found, same = found + lost, same + equal
    assert same > 70
    assert unnamed(found, RULES) == []


def test_graphics_on_the_gpu_has_nsys_s_gaps(tmp_path: Path) -> None:
    """Work of three libraries and of CUDA, on two GPUs: nsys takes each library by itself."""
    nsys = laid_out(VERSION)
    synth = Synth(tmp_path / "r.sqlite").process(100).gpu().gpu(1, cu_device=1)
    for place, library in enumerate(("OPENGL", "VULKAN", "DX12"), start=1):
        base = place * 1_000 * MS
        synth.render(library, base, base + 5 * MS, call="draw")
        synth.render(library, base + (10 + place) * MS, base + 30 * MS, call="draw", context=None)
        synth.render(library, base, base + 2 * MS, gpu=1, call="draw")
        synth.render(library, base + 40 * MS, base + (50 + place) * MS, gpu=1, call="draw")
    synth.kernel("k", 500 * MS, 510 * MS).kernel("k", 540 * MS, 550 * MS)
    path = synth.write()
    copy = tmp_path / "copy.sqlite"
    shutil.copyfile(path, copy)
    complete(copy, VERSION)
    asked = "gpu_gaps:rows=-1:gap=1,gpu_time_util:rows=-1"
    run(nsys, "analyze", "-r", asked, "-f", "csv", "-o", str(tmp_path / "theirs"), str(copy))
    with closing(open_report(path, use_cache=False)) as report:
        for rule in ("gpu_gaps", "gpu_time_util"):
            theirs = rows(next(tmp_path.glob(f"theirs_{rule}*.csv"), tmp_path / "none"))
            assert len(theirs) > 7
            assert our_rows(report, rule) == theirs
