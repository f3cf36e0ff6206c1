"""Reading a fleet: which part of it, and the ranks known so far while the others are read."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from nsys_tui.analysis.window import Choice
from nsys_tui.errors import UsageError
from nsys_tui.fleet.reduction import reduce
from nsys_tui.fleet.summary import Bounds, Options, ReportSummary
from nsys_tui.ui.screens.fleet.columns import RankRow, rank_columns, rank_rows
from nsys_tui.units import parse_window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsys_tui.fleet.engine import Result
    from nsys_tui.fleet.fleet import Fleet
    from nsys_tui.ui.widgets.table.columns import TableColumn

PAUSE: Final = 0.5
"""Least seconds between two partial results."""
SHARE: Final = 4
"""A partial result comes after so many times the time that the one before took, at least."""


class Shown(NamedTuple):
    """A fleet with its table."""

    fleet: Fleet
    rows: list[RankRow]
    columns: tuple[TableColumn, ...]
    verdict: str = ""
    """Empty while reports are still read."""


def shown(fleet: Fleet) -> Shown:
    """Everything that the screen shows of a fleet; takes a while for a thousand ranks."""
    rows = rank_rows(fleet)
    return Shown(fleet, rows, rank_columns(fleet, rows))


@dataclass
class Partial:
    """Collects results, and hands on now and then what there is so far."""

    names: Sequence[str]
    """Paths in the order of the files."""
    options: Options
    show: Callable[[Shown, int], None]
    """Called with the ranks so far, and the number of reports they come from."""
    _results: dict[str, Result] = field(default_factory=dict)
    _due: float = field(default_factory=lambda: time.monotonic() + PAUSE)

    def take(self, path: str, result: Result) -> None:
        """One report more."""
        self._results[path] = result
        begun, done = time.monotonic(), len(self._results)
        if begun < self._due or done == len(self.names):
            return
        found = [(name, self._results[name]) for name in self.names if name in self._results]
        if any(isinstance(result, ReportSummary) for _, result in found):
            self.show(shown(reduce(found, self.options)), done)
        now = time.monotonic()
        self._due = now + max(PAUSE, SHARE * (now - begun))


@dataclass(frozen=True)
class Cut:
    """Which part of the fleet counts, as it was asked for."""

    text: str = ""
    window: Bounds | None = None
    step: str | None = None
    nvtx: str | None = None
    choice: Choice = field(default_factory=Choice)

    def of(self, options: Options) -> Options:
        """Options with the part in them."""
        return replace(options, step=self.step, nvtx=self.nvtx, choice=self.choice)


def parse_cut(text: str) -> Cut:
    """Reads one of ``1.2s/1.5s``, ``step 5``, ``range NAME/2``, and ``gpu 0,1``, ``process 4411``.

    Args:
        text: the parts, with semicolons between them; ``all`` for everything.

    Raises:
        UsageError: something is none of them.
    """
    numbers: dict[str, set[int]] = {}
    others = []
    for piece in text.split(";"):
        if found := _NUMBERED.fullmatch(piece):
            kind = _KINDS[found[1].lower()]
            numbers.setdefault(kind, set()).update(map(int, found[2].replace(",", " ").split()))
        else:
            others.append(piece)
    cut = _parse_span(";".join(others).strip())
    if not numbers:
        return cut
    choice = Choice(**{kind: tuple(sorted(found)) for kind, found in numbers.items()})
    return replace(cut, text=text.strip(), choice=choice)


def _parse_span(text: str) -> Cut:
    word, _, rest = text.partition(" ")
    if word in ("", "all"):
        return Cut()
    if word == "step" and rest:
        return Cut(text, step=rest.strip())
    if word == "range" and rest:
        return Cut(text, nvtx=rest.strip())
    try:
        return Cut(text, window=parse_window(text))
    except UsageError as error:
        raise UsageError(f"not a part: {text!r}", hint=EXAMPLES) from error


_NUMBERED: Final = re.compile(
    r"\s*(gpu|device|process|stream)s?\s+(\d{1,18}(?:[\s,]+\d{1,18})*)\s*", re.IGNORECASE
)
_KINDS: Final = {
    "gpu": "devices",
    "device": "devices",
    "process": "processes",
    "stream": "streams",
}

EXAMPLES: Final = (
    "1.2s/1.5s, step 5, range forward/2, gpu 0,1, process 4411, stream 7, all; "
    "several with ; between them: step 5; gpu 0"
)
