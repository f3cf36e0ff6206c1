"""A trainer of the user's own: a regular expression whose named groups are the figures.

An expression can take longer than the age of the universe on one line. So a line is cut, and the
time of each search is bounded: what runs past it is the user's to mend, and said so.
"""

from __future__ import annotations

import re
from typing import Any, Final

from nsys_tui.errors import UsageError
from nsys_tui.logs.trainer_table import FIGURES, Trainer
from nsys_tui.patterns import time_limit

LONGEST: Final = 4096
"""Characters of a line that the expression is given."""
SECONDS: Final = 1.0
"""Time that one search may take."""
_GROUPS: Final = ("step", "epoch", *FIGURES)


class _Bounded:
    """A compiled expression whose searches end in time."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern

    def search(self, text: str) -> re.Match[str] | None:
        """As ``re.Pattern.search``, on the start of a line.

        Raises:
            UsageError: it takes too long.
        """
        with time_limit(SECONDS, f"--pattern takes more than {SECONDS:g} s on one line"):
            return self._pattern.search(text[:LONGEST])


def own_trainer(pattern: str) -> Trainer:
    """The trainer that an expression is.

    Raises:
        UsageError: it is no expression, or its groups are none of the figures.
    """
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"--pattern is no regular expression: {error}") from error
    groups = set(compiled.groupindex)
    if "step" not in groups or groups - set(_GROUPS):
        wrong = ", ".join(sorted(groups - set(_GROUPS))) or "none named step"
        raise UsageError(
            f"groups of --pattern: {wrong}",
            hint=f"(?P<step>\\d+) and any of {', '.join(_GROUPS[1:])}",
        )
    bounded: Any = _Bounded(compiled)
    return Trainer("own", b"", bounded)
