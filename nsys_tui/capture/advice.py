"""Why a set of nsys options will not do what its user hopes: all rules, asked at once."""

from __future__ import annotations

from typing import Final

from nsys_tui.capture import rules_clashes, rules_options  # noqa: F401 - they register
from nsys_tui.capture.draft import ERROR, NOTE, RULES, WARNING, Check, Draft

_ORDER: Final = (ERROR, WARNING, NOTE)


def advise(draft: Draft) -> list[Check]:
    """All remarks on a draft, errors first.

    An error is a command that nsys would refuse or that would collect nothing; the rest is for
    the user to judge.
    """
    remarks = [advice for rule in RULES for advice in rule(draft)]
    return sorted(remarks, key=lambda advice: _ORDER.index(advice.severity))
