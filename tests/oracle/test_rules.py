"""The rules of nsys beside ours of the same names with ``compat``, row by row."""

from __future__ import annotations

import csv
import io
import shutil
from typing import TYPE_CHECKING

from oracle.completing import complete
from oracle.differences import RULES
from oracle.real_nsys import Rows, laid_out, names, rows, run
from oracle.test_stats import VERSION, signs, unnamed
from paths import needs_reports, report_paths

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import RULES as OURS
from nsys_tui.analysis.rules.register import parse_rule
from nsys_tui.analysis.stats.reports import named
from nsys_tui.reader import open_report
from nsys_tui.text.formats import Format
from nsys_tui.text.tables import chunks

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.model.report import Report


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


@needs_reports
def test_every_rule_has_nsys_s_rows_or_a_named_difference(tmp_path: Path) -> None:
    nsys = laid_out(VERSION)
    listed = names(nsys, "analyze", "--help-rules")
    assert len(listed) == 7
    asked = ",".join(f"{rule}:rows=-1{':gap=1' * (rule == 'gpu_gaps')}" for rule in listed)
    found = []
    equal = 0
    for path in report_paths():
        folder = tmp_path / path.stem
        folder.mkdir()
        copy = folder / path.name
        shutil.copyfile(path, copy)
        complete(copy, VERSION)
        run(nsys, "analyze", "-r", asked, "-f", "csv", "-o", str(folder / "theirs"), str(copy))
        report = open_report(path, use_cache=False)
        for rule in listed:
            theirs = rows(next(folder.glob(f"theirs_{rule}*.csv"), folder / "none"))
            ours = our_rows(report, rule)
            found += [(path.stem, rule, sign) for sign in signs(theirs, ours)]
            equal += bool(theirs) and theirs == ours
        report.close()
    assert equal > 10
    assert unnamed(found, RULES) == []
