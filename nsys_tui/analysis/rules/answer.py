"""Findings as a table, and findings with the tables of rules as one document for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from nsys_tui.analysis.links import finding_link
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Finding, command_of
from nsys_tui.analysis.rules.not_looked_at import NOT_LOOKED_AT, NotLookedAt, not_looked_at
from nsys_tui.analysis.rules.register import Outcome
from nsys_tui.analysis.rules.verdict import PART, Part, parts, verdict, verdict_facts
from nsys_tui.model.report import Report
from nsys_tui.model.table import (
    FACTS,
    OPEN,
    Column,
    Document,
    Form,
    Table,
    Unit,
    column,
    data,
    number,
    records,
    table_of,
)
from nsys_tui.units import plural


@dataclass(frozen=True)
class RuleAnswer:
    """What rules found in a report."""

    case: Case
    findings: Sequence[Finding]
    """The gravest first."""
    outcomes: Sequence[Outcome] = ()
    """Of the rules whose tables were asked for."""

    @property
    def verdict(self) -> str:
        """How busy the GPUs were and what is worth fixing."""
        return verdict(self.case, self.findings)

    @cached_property
    def bound(self) -> Sequence[Part]:
        """The classes of time, the largest first."""
        return parts(self.case, self.findings)

    @property
    def not_looked_at(self) -> Sequence[NotLookedAt]:
        """What no rule could look at."""
        return not_looked_at(self.case)

    def head(self) -> Table:
        """What the whole comes to, in two lines."""
        report = self.case.report
        return table_of("verdict", report.name, FACTS, verdict_facts(self.verdict, self.bound))

    def table(self) -> Table:
        """The findings."""
        told = "nsys-tui analyze --help-rules says what was looked for"
        notes = [] if self.findings else [f"{none_found(self.case.report)}; {told}"]
        notes += [f"not looked at: {one.what} ({one.reason})" for one in self.not_looked_at]
        title = f"{plural(len(self.findings), 'finding')}, the gravest first"
        return table_of("findings", title, _FINDING, self.findings, self.case.report, notes)

    def rules(self) -> list[Table]:
        """The tables of the rules, each with its advice under it."""
        return [replace(one.table, notes=(one.advice, *one.table.notes)) for one in self.outcomes]


def none_found(report: Report) -> str:
    """What stands in place of findings: that there are none, or that none can be found."""
    return f"nothing {'can be found: GPU work is not known' if report.gpu_doubt else 'found'}"


_FINDING: Final = (
    data("id", lambda finding, _: finding.id),
    Column("Sev", key="", read=lambda finding, _: finding.severity.letter),
    column("severity"),
    Column("Could Save", Unit.NS, key="", read=lambda finding, _: finding.saved_ns or None),
    column("saved_ns"),
    Column("At", Unit.NS, key="", read=lambda f, _: f.window[0] if f.window else None),
    data("window_ns", lambda finding, _: finding.window, form=Form.LIST),
    column("title", "Finding", prose=True),
    data("subject", lambda finding, _: finding.subject),
    column("advice", "Advice", prose=True),
    column("rule", "Rule"),
    number(
        "device", lambda f, report: None if f.device is None else report.devices[f.device].number
    ),
    column("screen"),
    data("command", lambda finding, report: command_of(finding.command, report.name)),
    column("confidence", "Known"),
    Column("Part Of", key="", read=lambda f, _: f.same_as and f"part of: {f.same_as}"),
    data("doubt", lambda finding, _: finding.doubt),
    data("settle", lambda finding, report: command_of(finding.settle, report.name)),
    data("link", lambda finding, report: finding_link(report, finding)),
    data("metrics", lambda finding, _: finding.metrics),
    data("same_as", lambda finding, _: finding.same_as),
    data("stake_ns", lambda finding, _: finding.stake_ns or None),
    data("of_ns", lambda finding, _: finding.of_ns or None),
)
_OUTCOME: Final = (
    data("title", lambda outcome, _: outcome.rule.title),
    column("advice"),
    records("rows", OPEN, lambda outcome, _: outcome.table),
    data("notes", lambda outcome, _: outcome.table.notes, form=Form.LIST),
)
DOCUMENT: Final = Document(
    "analyze",
    (
        data("report", lambda _, report: report.name),
        data("window_ns", lambda answer, _: answer.case.scope.window, form=Form.LIST),
        data("base_ns", lambda answer, _: answer.case.base_ns),
        data("verdict", lambda answer, _: answer.verdict),
        records("bound", PART, lambda answer, _: answer.bound),
        records("not_looked_at", NOT_LOOKED_AT, lambda answer, _: answer.not_looked_at),
        records("findings", _FINDING),
        Column(
            key="rules",
            read=lambda answer, _: {one.rule.name: one for one in answer.outcomes} or None,
            inner=_OUTCOME,
            form=Form.MAP,
            optional=True,
        ),
    ),
)
"""Findings as JSON."""
