"""``nsys-tui analyze``: expert rules, and what they find ranked by the time it could save."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final, NoReturn

from nsys_tui.commands.options import add_question, part_from
from nsys_tui.commands.printing import DATA_FORMATS, print_document, print_tables, room
from nsys_tui.errors import GATE_HIT, OK, UsageError

if TYPE_CHECKING:
    from nsys_tui.analysis.rules.register import Rule

SEVERITIES = ("high", "medium", "low")
OF_NSYS: Final = {
    ("-f",): "--format prints table, json, csv, tsv, markdown or html",
    ("-o", "--output"): "it prints on stdout: nsys-tui analyze … > FILE",
    ("--filter-time",): "--window START/END",
    ("--filter-nvtx",): "nsys-tui stats has it; here --window START/END",
    ("--timeunit",): "each time is printed with its unit; json has nanoseconds",
    ("--sqlite", "--force-export", "--force-overwrite"): "nothing is written beside a report",
    ("--help-formats",): "nsys-tui analyze --help",
}
"""What ``nsys analyze`` takes and this verb does not, and what does the same here."""


DESCRIPTION = (
    "Runs expert rules and prints what they find, the gravest first: severity is"
    " the share of the time looked at that could be saved. With -r the tables of the rules."
)
EPILOG = "nsys-tui analyze --help-rules lists the rules with their parameters."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    add_question(parser, "analysis.rules.answer", optional=True)
    parser.add_argument(
        "-r",
        "--rule",
        dest="rules",
        action="append",
        default=[],
        metavar="NAME[:PARAMETER=VALUE...][,NAME...]",
        help="print the table of this rule; repeatable; all for every one",
    )
    parser.add_argument(
        "--fail-on",
        type=_severity,
        choices=SEVERITIES,
        metavar="SEVERITY",
        help="exit with 1 if a finding is this grave or graver: high, medium or low, or its letter",
    )
    parser.add_argument(
        "--help-rules", nargs="?", const="ALL", metavar="NAME|ALL", help="describe the rules"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help=argparse.SUPPRESS)
    for flags in OF_NSYS:
        parser.add_argument(*flags, nargs="?", action=_Refused, help=argparse.SUPPRESS)


class _Refused(argparse.Action):
    """An option of nsys's, answered by what does the same here."""

    def __call__(self, *called: object) -> NoReturn:
        flag = called[-1]
        hint = next(hint for flags, hint in OF_NSYS.items() if flag in flags)
        raise UsageError(f"{flag} is an option of nsys analyze, not of this", hint=hint)


def _severity(text: str) -> str:
    """A severity by its word or its letter in the table."""
    word = text.lower()
    return next((name for name in SEVERITIES if word == name[0]), word)


def run(arguments: argparse.Namespace) -> int:
    """Prints findings, or the tables of rules."""
    from nsys_tui.analysis.rules.answer import DOCUMENT, RuleAnswer
    from nsys_tui.analysis.rules.case import Case
    from nsys_tui.analysis.rules.finding import Severity
    from nsys_tui.analysis.rules.ranking import RULES, gravest, ranked
    from nsys_tui.analysis.rules.register import parse_rule
    from nsys_tui.text.folding import fitted

    if arguments.help_rules is not None:
        sys.stdout.write(fitted(rules_help(arguments.help_rules), room(sys.stdout)))
        return OK
    if arguments.report is None:
        raise UsageError("which report file?", hint="nsys-tui analyze REPORT; see --help")
    names = [name for value in arguments.rules for name in value.split(",") if name.strip()]
    wanted = [parse_rule(name) for name in names if name != "all"]
    if not names or "all" in names:
        wanted += [(name, {}) for name in RULES if name not in dict(wanted)]
    if names and arguments.format in ("csv", "tsv") and len(wanted) > 1:
        raise UsageError("a csv file holds one table", hint="give one rule with -r, or use json")
    report, scope = part_from(arguments)
    case = Case(report, scope)
    outcomes = [RULES[name].run(case, values) for name, values in wanted]
    findings = ranked(case, (one for outcome in outcomes for one in outcome.findings))
    answer = RuleAnswer(case, findings, outcomes if names else ())
    if arguments.format == "json":
        print_document(DOCUMENT, answer, report, report.notes)
    else:
        head = [] if arguments.format in DATA_FORMATS else [answer.head()]
        print_tables(answer.rules() if names else [*head, answer.table()], arguments.format)
    worst = gravest(findings)
    if arguments.fail_on and worst and worst.rank >= Severity(arguments.fail_on).rank:
        return GATE_HIT
    return OK


def rule_help(rule: Rule) -> list[str]:
    """What a rule looks for and its own parameters."""
    from nsys_tui.analysis.rules.register import COMMON

    return [
        f"{rule.name} -- {rule.title}{' (nsys)' if rule.of_nsys else ''}",
        *(f"    {line}" for line in rule.help.splitlines()),
        *(
            f"      {parameter.name}={parameter.default}: {parameter.help}"
            for parameter in rule.parameters
            if parameter not in COMMON
        ),
    ]


def rules_help(which: str = "ALL") -> str:
    """Every rule, or one, with what it looks for and its parameters."""
    from nsys_tui.analysis.rules.ranking import RULES
    from nsys_tui.analysis.rules.register import COMMON, parse_rule

    rules = [*RULES.values()] if which == "ALL" else [RULES[parse_rule(which)[0]]]
    lines = [line for rule in rules for line in rule_help(rule)]
    lines += ["", "every rule takes"]
    lines += [
        f"      {p.name}{f'={p.default}' if p.default != '' else ''}: {p.help}" for p in COMMON
    ]
    return "\n".join(lines) + "\n"
