"""``nsys-tui analyze``: expert rules, and what they find ranked by the time it could save."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

from nsys_tui.commands import options
from nsys_tui.commands.printing import DATA_FORMATS, print_document, print_tables, room
from nsys_tui.errors import GATE_HIT, OK, UsageError

if TYPE_CHECKING:
    from nsys_tui.analysis.rules.register import Rule

SEVERITIES = ("high", "medium", "low")
OF_NSYS: Final = {
    ("-o", "--output"): "it prints on stdout: nsys-tui analyze REPORT -r RULE -f csv > FILE",
    ("--filter-time",): "--window START/END",
    ("--filter-nvtx",): "nsys-tui stats has it; here --window START/END",
    ("--timeunit",): "times have their units in a table, and ns in json; csv: --format csv:time=ms",
    ("--help-formats",): "nsys-tui analyze --help",
}
"""What ``nsys analyze`` takes and this verb does not, and what does the same here."""
_SAME_AS: Final = {".": "table", "column": "table", "hdoc": "html"}
"""Formats of nsys's by what they are here."""


DESCRIPTION = (
    "Runs expert rules and prints what they find, the gravest first: severity is"
    " the share of the time looked at that could be saved. With -r the tables of the rules."
)
EPILOG = "nsys-tui analyze --help-rules lists the rules with their parameters."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    options.add_report(parser, optional=True)
    options.add_scope(parser)
    options.add_format(parser, "analysis.rules.answer", checked=_format)
    option = partial(options.add, parser)
    option(
        "-r, --rule NAME[:PARAMETER=VALUE...][,NAME...]",
        "print the table of this rule; repeatable; all for every one",
        dest="rules",
        action="append",
        default=[],
    )
    option(
        "--fail-on SEVERITY",
        "exit with 1 if a finding is this grave or graver: high, medium or low, or its letter",
        type=_severity,
        choices=SEVERITIES,
    )
    option("--help-rules NAME|ALL", "describe the rules", nargs="?", const="ALL")
    options.add_exporting(parser)
    # nsys's, of which there is nothing to do here: no notices and no files
    option("-q, --quiet", argparse.SUPPRESS)
    option("--force-overwrite", argparse.SUPPRESS)
    for flags in OF_NSYS:
        parser.add_argument(*flags, nargs="?", action=_Refused, help=argparse.SUPPRESS)


class _Refused(argparse.Action):
    """An option of nsys's, answered by what does the same here."""

    def __call__(self, *called: object) -> NoReturn:
        flag = called[-1]
        hint = next(hint for flags, hint in OF_NSYS.items() if flag in flags)
        raise UsageError(f"{flag} is an option of nsys analyze, not of this", hint=hint)


def _format(text: str) -> str:
    """A format by its name here or at nsys's; csv and tsv take the options of ``stats``.

    Raises:
        UsageError: there is no such format, or it has no such option.
    """
    from nsys_tui.text.formats import parse_format

    kind, colon, _ = text.partition(":")
    known = (*options.TABLE_FORMATS, options.SCHEMA)
    if "," in text or _SAME_AS.get(kind, kind) not in known:
        raise UsageError(f"not a format of analyze: {text!r}", hint=f"one of {', '.join(known)}")
    if not colon:
        return _SAME_AS.get(kind, kind)
    if kind not in ("csv", "tsv"):
        raise UsageError(f"{text}: only csv and tsv take options here", hint=f"--format {kind}")
    parse_format(text)
    return text


def _severity(text: str) -> str:
    """A severity by its word or its letter in the table."""
    word = text.lower()
    return next((name for name in SEVERITIES if word == name[0]), word)


def run(arguments: argparse.Namespace) -> int:
    """Prints findings, or the tables of rules."""
    from nsys_tui.analysis.rules.answer import DOCUMENT, RuleAnswer
    from nsys_tui.analysis.rules.case import Case
    from nsys_tui.analysis.rules.finding import Severity
    from nsys_tui.analysis.rules.ranking import RULES, find_in, gravest, ranked
    from nsys_tui.analysis.rules.register import parse_rule
    from nsys_tui.text.folding import fitted

    if arguments.help_rules is not None:
        sys.stdout.write(fitted(rules_help(arguments.help_rules), room(sys.stdout)))
        return OK
    if arguments.report is None:
        raise UsageError("which report file?", hint="nsys-tui analyze REPORT; see --help")
    names = [name for value in arguments.rules for name in value.split(",") if name.strip()]
    wanted = [parse_rule(name) for name in names if name != "all"]
    if "all" in names:
        wanted += [(name, {}) for name in RULES if name not in dict(wanted)]
    kind = arguments.format.partition(":")[0]
    if names and kind in ("csv", "tsv") and len(wanted) > 1:
        raise UsageError("a csv file holds one table", hint="give one rule with -r, or use json")
    report, scope = options.part_from(arguments)
    case = Case(report, scope)
    outcomes = [RULES[name].run(case, values) for name, values in wanted]
    found = (one for outcome in outcomes for one in outcome.findings)
    findings = ranked(case, found) if names else find_in(case)
    answer = RuleAnswer(case, findings, outcomes)
    if kind == "json":
        print_document(DOCUMENT, answer, report, report.notes)
    else:
        head = [] if kind in DATA_FORMATS else [answer.head()]
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
