"""Findings of the expert rules on two sides: which are solved, which are new."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nsys_tui.analysis.compare.side import Found

STATUSES: Final = ("solved", "new", "in both")
_THEME: Final = re.compile(r"\bgaps?, ([^:]+?)(?: in .+)?(?::|$)")
"""A rule may give a finding for each cause of idle time; the cause tells them apart, not the range
in which it was seen."""


@dataclass(frozen=True)
class FindingChange:
    """A finding on one side or on both."""

    rule: str
    a: Found | None
    b: Found | None

    @property
    def status(self) -> str:
        """One of ``STATUSES``."""
        if self.b is None:
            return "solved"
        return "new" if self.a is None else "in both"

    @property
    def known(self) -> Found:
        """The finding as the later side has it, else as the earlier one."""
        found = self.b or self.a
        assert found is not None
        return found


def paired(
    a: tuple[Found, ...] | None, b: tuple[Found, ...] | None
) -> tuple[FindingChange, ...] | None:
    """Pairs the findings of one rule, and of one cause where a rule gives several.

    Returns:
        Solved ones first, then new ones, then those on both sides; None where the rules were not
        run on both sides.
    """
    if a is None or b is None:
        return None
    mine, theirs = _by_theme(a), _by_theme(b)
    themes = dict.fromkeys((*mine, *theirs))
    changes = [FindingChange(theme[0], mine.get(theme), theirs.get(theme)) for theme in themes]
    return tuple(sorted(changes, key=_order))


def _by_theme(findings: tuple[Found, ...]) -> dict[tuple[str, str], Found]:
    """The gravest finding of each rule and cause."""
    return {_theme(found): found for found in reversed(findings)}


def _theme(found: Found) -> tuple[str, str]:
    match = _THEME.search(found.title)
    return found.rule, match.group(1) if match else ""


def _order(change: FindingChange) -> tuple[int, int, str]:
    saved = max(found.saved_ns for found in (change.a, change.b) if found is not None)
    return STATUSES.index(change.status), -saved, change.rule
