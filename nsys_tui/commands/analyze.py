"""``nsys-tui analyze``: expert rules, and what they find ranked by the time it could save."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nsys_tui.commands.options import TABLE_FORMATS, add_report, add_scope, open_from, scope_from
from nsys_tui.commands.printing import print_tables
from nsys_tui.errors import GATE_HIT, OK, UsageError
from nsys_tui.model.table import Column, Table, Unit

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from nsys_tui.analysis.rules.finding import Finding
    from nsys_tui.analysis.rules.register import Case, Outcome
    from nsys_tui.model.report import Report

SEVERITIES = ("high", "medium", "low")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers the verb."""
    parser = subparsers.add_parser(
        "analyze",
        help="expert rules and findings",
        description="Runs expert rules and prints what they find, the gravest first: severity is"
        " the share of the time looked at that could be saved. With -r the tables of the rules.",
        epilog="nsys-tui analyze --help-rules lists the rules with their parameters.",
    )
    add_report(parser, optional=True)
    add_scope(parser)
    parser.add_argument(
        "-r",
        "--rule",
        dest="rules",
        action="append",
        default=[],
        metavar="NAME[:PARAMETER=VALUE...][,NAME...]",
        help="print the table of this rule; repeatable; all for every one",
    )
    parser.add_argument("--format", choices=TABLE_FORMATS, default="table")
    parser.add_argument(
        "--fail-on",
        type=_severity,
        choices=SEVERITIES,
        metavar="SEVERITY",
        help="exit with 1 if a finding is this grave or graver: high, medium or low, or its letter",
    )
    parser.add_argument("--help-rules", action="store_true", help="list the rules")
    parser.set_defaults(run=run)


def _severity(text: str) -> str:
    """A severity by its word or its letter in the table."""
    word = text.lower()
    return next((name for name in SEVERITIES if word == name[0]), word)


def run(arguments: argparse.Namespace) -> int:
    """Prints findings, or the tables of rules."""
    from nsys_tui.analysis.rules.findings import RULES, gravest, ranked
    from nsys_tui.analysis.rules.register import Case, parse_rule
    from nsys_tui.analysis.rules.severity import Severity
    from nsys_tui.commands.destinations import room
    from nsys_tui.text.folding import fitted

    if arguments.help_rules:
        sys.stdout.write(fitted(rules_help(), room(sys.stdout)))
        return OK
    if arguments.report is None:
        raise UsageError("which report file?", hint="nsys-tui analyze REPORT; see --help")
    names = [name for value in arguments.rules for name in value.split(",") if name.strip()]
    wanted = [parse_rule(name) for name in names if name != "all"]
    if not names or "all" in names:
        wanted += [(name, {}) for name in RULES if name not in dict(wanted)]
    if names and arguments.format == "csv" and len(wanted) > 1:
        raise UsageError("a csv file holds one table", hint="give one rule with -r, or use json")
    report = open_from(arguments)
    case = Case(report, scope_from(arguments, report))
    outcomes = [RULES[name].run(case, values) for name, values in wanted]
    findings = ranked(finding for outcome in outcomes for finding in outcome.findings)
    if arguments.format == "json":
        print(json.dumps(as_json(case, outcomes if names else [], findings), indent=1))
    elif names:
        print_tables([_advised(o) for o in outcomes], arguments.format)
    else:
        print_tables([_findings_table(findings)], arguments.format)
    worst = gravest(findings)
    if arguments.fail_on and worst and worst.rank >= Severity(arguments.fail_on).rank:
        return GATE_HIT
    return OK


def as_json(case: Case, outcomes: Sequence[Outcome], findings: list[Finding]) -> dict[str, Any]:
    """Findings, and the rows of the rules asked for, as JSON values; times in ns."""
    return {
        "report": case.report.name,
        "window_ns": case.scope.window,
        "base_ns": case.base_ns,
        "findings": [finding_json(case.report, finding) for finding in findings],
        **({"rules": {o.rule.name: _outcome_json(o) for o in outcomes}} if outcomes else {}),
    }


def finding_json(report: Report, finding: Finding) -> dict[str, Any]:
    """One finding as JSON values."""
    device = None if finding.place is None else report.devices[finding.place].number
    return {
        "severity": str(finding.severity),
        "rule": finding.rule,
        "title": finding.title,
        "advice": finding.advice,
        "saved_ns": finding.saved_ns,
        "window_ns": finding.window,
        "device": device,
        "screen": finding.screen,
        "command": finding.command.replace("REPORT", report.name),
    }


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    from nsys_tui.text.tables import render

    return {
        "title": outcome.rule.title,
        "advice": outcome.advice,
        "rows": json.loads(render(outcome.table, "json")),
        "notes": list(outcome.table.notes),
    }


def _findings_table(findings: list[Finding]) -> Table:
    return Table(
        "findings",
        f"Findings ({len(findings)}), the gravest first",
        (
            Column("Sev"),
            Column("Could Save", Unit.NS),
            Column("At", Unit.NS),
            Column("Finding"),
            Column("Advice"),
            Column("Rule"),
        ),
        (
            [finding.severity.letter for finding in findings],
            [finding.saved_ns or None for finding in findings],
            [finding.window[0] if finding.window else None for finding in findings],
            [finding.title for finding in findings],
            [finding.advice for finding in findings],
            [finding.rule for finding in findings],
        ),
        ()
        if findings
        else ("nothing found; nsys-tui analyze --help-rules says what was looked for",),
    )


def _advised(outcome: Outcome) -> Table:
    """A rule's table with its advice under it."""
    return replace(outcome.table, notes=(outcome.advice, *outcome.table.notes))


def rules_help() -> str:
    """Every rule with what it looks for and its parameters."""
    from nsys_tui.analysis.rules.findings import RULES
    from nsys_tui.analysis.rules.register import COMMON

    lines: list[str] = []
    for rule in RULES.values():
        lines += [f"{rule.name} -- {rule.title}{' (nsys)' if rule.of_nsys else ''}"]
        lines += [f"    {line}" for line in rule.help.splitlines()]
        lines += [
            f"      {parameter.name}={parameter.default}: {parameter.help}"
            for parameter in rule.parameters
            if parameter not in COMMON
        ]
    lines += ["", "every rule takes"]
    lines += [
        f"      {p.name}{f'={p.default}' if p.default != '' else ''}: {p.help}" for p in COMMON
    ]
    return "\n".join(lines) + "\n"
