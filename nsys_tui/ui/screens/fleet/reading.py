"""Reading a fleet: which part of it, the ranks known so far, and the columns they stand in."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from nsys_tui.analysis.window import Choice
from nsys_tui.errors import UsageError
from nsys_tui.fleet.collective_tables import NOTHING, Told
from nsys_tui.fleet.reduction import reduce
from nsys_tui.fleet.steps import fleet_steps
from nsys_tui.fleet.summary import SPLIT, Options, ReportSummary
from nsys_tui.model.table import Unit
from nsys_tui.ui.widgets.table.columns import TableColumn, durations, numbers, strings
from nsys_tui.units import Edges, format_duration, format_percentage, parse_window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsys_tui.fleet.engine import Result
    from nsys_tui.fleet.fleet import Fleet, Member
    from nsys_tui.model.arrays import Float64, Int64

BUSY: Final = SPLIT.index("busy")


@dataclass(frozen=True)
class RankRow:
    """One row of the table."""

    member: int
    """Place in ``Fleet.members``."""
    device: int | None
    """Place among its devices; None for a rank without GPU work."""


def rank_rows(fleet: Fleet) -> list[RankRow]:
    """A row per rank and GPU, in rank order; ranks without GPU work have one too."""
    rows = []
    for number, member in enumerate(fleet.members):
        devices = range(len(member.process.devices))
        rows += [RankRow(number, device) for device in devices] or [RankRow(number, None)]
    return rows


def rank_columns(fleet: Fleet, rows: list[RankRow]) -> tuple[TableColumn, ...]:
    """Who it is, where its time went, its steps, and its part in collectives."""
    members = [fleet.members[row.member] for row in rows]
    late = fleet.collectives.by_rank()
    places = np.array([row.member for row in rows], np.int64)
    steps = fleet_steps(fleet)
    wins: dict[int, float] = {}
    if steps is not None:
        wins = dict(zip(steps.ranks, steps.times_slowest.tolist(), strict=True))

    def of_calls(values: Int64) -> Float64:
        return np.where(late.calls[places] > 0, values[places], np.nan)

    def whole(header: str, width: int, values: Float64) -> TableColumn:
        return numbers(header, width, values, "{:,.0f}".format, unit=Unit.COUNT)

    def share(header: str, figure: str, *, extra: bool = False) -> TableColumn:
        values = _shares(fleet, rows, figure)
        return numbers(header, 5, values, format_percentage, decimals=1, extra=extra)

    return (
        numbers("rank", 5, np.array([m.rank for m in members], np.int64), str),
        strings("host", 8, [m.report.host or "-" for m in members]),
        strings("GPU", 5, [gpu_of(m, r) for m, r in zip(members, rows, strict=True)]),
        share("busy%", "busy"),
        share("comp%", "compute", extra=True),
        share("comm%", "comm"),
        share("expo%", "exposed_comm"),
        share("over%", "compute_comm_overlap", extra=True),
        share("mem%", "memory", extra=True),
        durations("step med", 8, np.array([_median_step(m) for m in members]), format_duration),
        whole("slowest", 7, np.array([wins.get(m.rank, np.nan) for m in members])),
        whole("last", 6, of_calls(late.last)),
        durations("held up", 8, of_calls(late.held_up), format_duration),
        durations("waited", 8, of_calls(late.waited), format_duration),
        strings("rank from", 12, [m.source for m in members], extra=True),
        strings("report", 12, [m.file for m in members], grow=True),
    )


def gpu_of(member: Member, row: RankRow) -> str:
    """Number of the GPU of a row, ``-`` without one."""
    return "-" if row.device is None else member.process.devices[row.device].removeprefix("GPU ")


def _shares(fleet: Fleet, rows: list[RankRow], figure: str) -> Float64:
    figure_at = SPLIT.index(figure)
    shares = np.full(len(rows), np.nan)
    for number, row in enumerate(rows):
        member = fleet.members[row.member]
        if row.device is not None and member.lasted:
            shares[number] = 100.0 * member.process.splits[row.device, figure_at] / member.lasted
    return shares


def _median_step(member: Member) -> float:
    steps = member.process.steps
    return float(np.median(steps.steady)) if len(steps.labels) else np.nan


def typical(fleet: Fleet) -> int | None:
    """The member whose median step, else whose busy time, is nearest to the median of all."""
    members = [index for index, member in enumerate(fleet.members) if member.process.devices]
    steps = [_median_step(fleet.members[index]) for index in members]
    busy = [float(fleet.members[index].process.splits[:, BUSY].sum()) for index in members]
    values = np.array(steps if np.isfinite(steps).all() else busy)
    if not len(values):
        return None
    return members[int(np.argmin(np.abs(values - np.median(values))))]


PAUSE: Final = 0.5
"""Least seconds between two partial results."""
SHARE: Final = 4
"""A partial result comes after so many times the time that the one before took, at least."""


class Shown(NamedTuple):
    """A fleet with its table."""

    fleet: Fleet
    rows: list[RankRow]
    columns: tuple[TableColumn, ...]
    verdict: Told = NOTHING
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
        results = [(name, self._results[name]) for name in self.names if name in self._results]
        if any(isinstance(result, ReportSummary) for _, result in results):
            self.show(shown(reduce(results, self.options)), done)
        now = time.monotonic()
        self._due = now + max(PAUSE, SHARE * (now - begun))


@dataclass(frozen=True)
class Cut:
    """Which part of the fleet counts, as it was asked for."""

    text: str = ""
    window: Edges | None = None
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
        if numbers_of := _NUMBERED.fullmatch(piece):
            kind = _KINDS[numbers_of[1].lower()]
            numbers.setdefault(kind, set()).update(
                map(int, numbers_of[2].replace(",", " ").split())
            )
        else:
            others.append(piece)
    cut = _parse_span(";".join(others).strip())
    if not numbers:
        return cut
    choice = Choice(**{kind: tuple(sorted(numbers_of)) for kind, numbers_of in numbers.items()})
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
