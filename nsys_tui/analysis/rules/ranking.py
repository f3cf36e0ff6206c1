"""All rules at once, and what they found ranked by the time it could save."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.rules import (
    gpu,
    gpu_work,
    host,
    nsys,
    register,
    report_quality,
    utilisation,
)
from nsys_tui.analysis.rules.case import Case

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsys_tui.analysis.rules.finding import Finding
    from nsys_tui.analysis.rules.severity import Severity
    from nsys_tui.analysis.window import Scope
    from nsys_tui.model.progress import Progress
    from nsys_tui.model.report import Report

FAMILIES: Final = (nsys, utilisation, report_quality, gpu_work, gpu, host)
"""Importing a family registers its rules."""

RULES: Final = dict(sorted(register.RULES.items(), key=lambda item: not item[1].of_nsys))
"""All rules by name, those of nsys first."""


def find(
    report: Report, scope: Scope | None = None, progress: Progress | None = None
) -> list[Finding]:
    """Runs every rule with its defaults.

    Args:
        report: the report; all event sets are loaded.
        scope: window, devices, processes and streams.
        progress: told after each rule.

    Returns:
        Findings, the gravest first; of equal severity the one that could save most.
    """
    return find_in(Case(report, scope), progress)


def find_in(case: Case, progress: Progress | None = None) -> list[Finding]:
    """The same on a case of which analyses may be there already."""
    found: list[Finding] = []
    for done, rule in enumerate(RULES.values()):
        found += rule.run(case).findings
        if progress is not None:
            progress(rule.name, done + 1, len(RULES))
    return ranked(found)


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """The gravest first, then by the time that they are about, then by rule."""
    return sorted(findings, key=lambda f: (-f.severity.rank, -f.weight_ns, f.rule, f.title))


def gravest(findings: Iterable[Finding]) -> Severity | None:
    """The highest severity among findings, None for none."""
    return max((f.severity for f in findings), key=lambda s: s.rank, default=None)
