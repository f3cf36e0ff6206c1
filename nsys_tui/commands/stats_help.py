"""``--help-reports`` and ``--help-formats``: what ``stats`` can print, from the registers."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from nsys_tui.text.formats import KINDS, options_of, parse_format, units_help

if TYPE_CHECKING:
    from nsys_tui.analysis.stats.query import StatReport


def reports_help(which: str) -> str:
    """All reports in one line each; one of them, or all with ``ALL``, in full."""
    from nsys_tui.analysis.stats.query import REPORTS
    from nsys_tui.analysis.stats.reports import DEFAULT, find

    if which and which != "ALL":
        return report_help(find(which))
    if which == "ALL":
        return "\n".join(report_help(REPORTS[name]) for name in sorted(REPORTS))
    width = max(map(len, REPORTS))
    lines = [
        f"{'*' if name in DEFAULT else ' '} {name:{width}}  {REPORTS[name].title}"
        for name in sorted(REPORTS)
    ]
    return "\n".join([*lines, "", "* printed when no --report is given", ""])


def report_help(report: StatReport) -> str:
    """One report in full."""
    arguments = "".join(f"[:{name}]" for name in report.arguments)
    lines = [f"{report.name}{arguments} -- {report.title}", ""]
    lines += [f"    {line}" for line in inspect.cleandoc(report.help).splitlines()]
    for name, text in report.arguments.items():
        lines.append(f"      {name}: {text}")
    if report.old_names:
        lines.append(f"    also called {', '.join(report.old_names)}")
    lines.append(f"    recorded by nsys profile {report.needs.option}")
    return "\n".join(lines) + "\n"


def formats_help(which: str = "") -> str:
    """The formats with their options and the units of each kind of figure.

    Raises:
        UsageError: there is no such format.
    """
    names = [parse_format(which).kind] if which not in ("", "ALL") else [*KINDS]
    lines = [f"{name:10}{KINDS[name].text} [{', '.join(options_of(name))}]" for name in names]
    return "\n".join([*lines, "", "kinds of figures and their units", *units_help(), ""])
