"""Reports for scripts and notebooks: events and analyses as pandas DataFrames.

``nsys_tui.open(path)`` gives a ``Profile``. Its figures are those of the command line.
Columns are called by the keys of the JSON output, times are int64 ns since the start of
the session, shares lie between 0 and 1. What cannot be believed of a report, or is an estimate,
stands in ``Profile.notes`` and in ``attrs["notes"]`` of each DataFrame.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Self, SupportsIndex, TypeAlias, TypedDict, Unpack

from nsys_tui.errors import UsageError
from nsys_tui.units import parse_duration, parse_window

if TYPE_CHECKING:
    import pandas as pd

    from nsys_tui.analysis.window import Scope
    from nsys_tui.model.report import Report
    from nsys_tui.model.table import Table

Time: TypeAlias = "int | str | None"
"""ns since the start of the session, a text such as ``"1.2s"``, or None for the report's edge."""


class Part(TypedDict, total=False):
    """Which part of a report is asked for; all of it without these."""

    window: tuple[Time, Time] | str
    """Start and end, or both as ``"1.2s/1.5s"``; events that straddle an edge count as on the
    command line."""
    device: int
    """Number of a GPU as the overview shows it."""
    process: int
    stream: int


def open_profile(path: str | Path, *, nsys: str | None = None, use_cache: bool = True) -> Profile:
    """Opens a report with the user's settings; see ``nsys_tui.open``."""
    from nsys_tui.config import load_config
    from nsys_tui.reader import open_configured

    return Profile(open_configured(Path(path), load_config(), nsys, use_cache=use_cache))


class Profile:
    """An open report. Events load when they are first asked for; ``close`` lets them go.

    DataFrames share the memory of the report where they can: such columns can be replaced, not
    written into; ``frame.copy()`` is free of that.

    Args:
        report: the open report.
    """

    def __init__(self, report: Report) -> None:
        self.report = report

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<nsys_tui.Profile {self.report.name}>"

    def close(self) -> None:
        """Closes the file."""
        self.report.close()

    @property
    def notes(self) -> list[str]:
        """What is odd about the report or not believed; grows while parts of it are read."""
        return [*self.report.metadata.notes, *self.report.notes.texts]

    @property
    def kernels(self) -> pd.DataFrame:
        """One row per kernel, in start order."""
        return self.events("kernels")

    @property
    def copies(self) -> pd.DataFrame:
        """One row per copy and memset."""
        return self.events("copies")

    @property
    def api(self) -> pd.DataFrame:
        """One row per CUDA API call."""
        return self.events("api")

    @property
    def ranges(self) -> pd.DataFrame:
        """One row per NVTX range."""
        return self.events("ranges")

    @property
    def osrt(self) -> pd.DataFrame:
        """One row per call of the OS runtime library."""
        return self.events("osrt")

    def events(self, table: str, **part: Unpack[Part]) -> pd.DataFrame:
        """Events one by one, those that touch the window whole.

        Args:
            table: ``kernels``, ``copies``, ``operations``, ``api``, ``ranges``, ``marks``,
                ``osrt``, ``host_events``, ``syncs``, ``samples``, ``memory_usage`` or
                ``gpu_metrics``.
            part: window, device, process, stream.

        Raises:
            NoDataError: there are none; the hint says what would record them.
        """
        from nsys_tui.export.events import event_table

        return self._frame(event_table(self.report, table, self._scope(part)))

    def stats(self, name: str, **part: Unpack[Part]) -> pd.DataFrame:
        """A statistical report under nsys's own name, with arguments as in ``kern_sum:base``.

        Args:
            name: such as ``cuda_gpu_kern_sum``.
            part: window, to which times are cut; device, process, stream.

        Raises:
            NoDataError: the report has no such data.
        """
        from nsys_tui.analysis.stats.query import Query
        from nsys_tui.analysis.stats.reports import run_report

        query = Query(self.report, self._scope(part), clip=part.get("window") is not None)
        return self._frame(run_report(self.report, name, query))

    def overview(self, section: str = "devices", **part: Unpack[Part]) -> pd.DataFrame:
        """A section of the overview.

        Args:
            section: ``devices``, ``kernels``, ``ranges``, ``memory``, ``breakdown``, ``report`` or
                ``missing``.
            part: window, device, process, stream.
        """
        from nsys_tui.analysis.memory import recorded_memory
        from nsys_tui.analysis.overview import overview
        from nsys_tui.analysis.overview_answer import OverviewAnswer

        result = overview(self.report, self._scope(part), top=None)
        tables = OverviewAnswer(self.report, result, recorded_memory(self.report)).tables()
        if section not in tables:
            raise UsageError(f"no section {section!r}", hint=f"one of {', '.join(tables)}")
        return self._frame(tables[section])

    def stalls(
        self, by: str | None = None, threshold: Time = "10us", **part: Unpack[Part]
    ) -> pd.DataFrame:
        """Idle gaps of each GPU and why; launch-bound runs are one row each.

        Args:
            by: groups in place of gaps: ``cause``, ``range``, ``pair``, ``thread``, ``device``.
            threshold: shorter gaps are counted and not listed.
            part: window, device, process, stream.
        """
        from nsys_tui.analysis.stalls.answer import GROUPINGS, StallAnswer
        from nsys_tui.analysis.stalls.gaps import stalls

        shortest = _time(threshold, 0)
        if by not in (None, *GROUPINGS):
            raise UsageError(f"no grouping {by!r}", hint=f"one of {', '.join(GROUPINGS)}")
        result = stalls(self.report, self._scope(part), threshold_ns=shortest)
        answer = StallAnswer(self.report, result)
        return self._frame(answer.gaps() if by is None else answer.groups(by))

    def iterations(self, pattern: str | None = None, **part: Unpack[Part]) -> pd.DataFrame:
        """Training steps, found by their NVTX names or a repeating pattern of kernels.

        Args:
            pattern: a regular expression for the ranges that are steps.
            part: window, device, process, stream.

        Raises:
            NoDataError: no iterations were found.
        """
        from nsys_tui.analysis.iterations.answer import answer_of

        return self._frame(answer_of(self.report, pattern, self._scope(part)).each())

    def findings(self, **part: Unpack[Part]) -> pd.DataFrame:
        """What the expert rules find, the gravest first."""
        from nsys_tui.analysis.rules.answer import RuleAnswer
        from nsys_tui.analysis.rules.case import Case
        from nsys_tui.analysis.rules.ranking import find_in

        case = Case(self.report, self._scope(part))
        return self._frame(RuleAnswer(case, find_in(case)).table())

    def compare(
        self,
        other: Profile,
        threshold: float = 0.01,
        run_noise: float = 0.02,
        **part: Unpack[Part],
    ) -> pd.DataFrame:
        """This report (before) beside another one (after), a row for each figure and name.

        ``attrs`` hold the ``verdict`` and its ``reason``.

        Args:
            other: the report after.
            threshold: smaller relative changes count as none, from 0 to below 1.
            run_noise: assumed standard deviation from one run to the next, relative.
            part: window, device, process, stream, of both.
        """
        from nsys_tui.analysis.compare.answer import rows_table
        from nsys_tui.analysis.compare.comparison import compare
        from nsys_tui.analysis.compare.measure import measure
        from nsys_tui.analysis.compare.plan import plan

        if not isinstance(other, Profile):
            raise TypeError(f"compare with what nsys_tui.open gives, not with {other!r}")
        if not 0 <= threshold < 1:
            raise UsageError(f"no threshold: {threshold}", hint="0.03 is 3%")
        sides = (
            measure(plan(one.report, one._scope(part)), one.report.name) for one in (self, other)
        )
        comparison = compare(*sides, threshold=threshold, noise=run_noise)
        frame = self._frame(rows_table(comparison))
        frame.attrs |= {"verdict": str(comparison.verdict), "reason": comparison.judgement.reason}
        return frame

    def _frame(self, table: Table) -> pd.DataFrame:
        from nsys_tui.export.dataframes import frame_of

        frame = frame_of(table)
        frame.attrs["notes"] += self.notes
        return frame

    def _scope(self, part: Part) -> Scope:
        from nsys_tui.analysis.window import Choice

        if unknown := part.keys() - Part.__annotations__:
            raise TypeError(f"no argument {min(unknown)!r}: window, device, process or stream")
        numbers = [_number(kind, part.get(kind)) for kind in ("process", "device", "stream")]
        choice = Choice(*(None if number is None else (number,) for number in numbers))
        for lacking in choice.lacking(self.report):
            raise UsageError(lacking.text, hint=lacking.hint)
        return choice.scope(self.report, self._window(part))

    def _window(self, part: Part) -> tuple[int, int] | None:
        edges, asked = self.report.extent, part.get("window")
        if asked is None:
            return None
        times = parse_window(asked) if isinstance(asked, str) else asked
        if not isinstance(times, Sequence) or len(times) != 2:
            hint = "(start, end) in ns, or such as '1.2s/1.5s'"
            raise UsageError(f"not a time window: {asked!r}", hint=hint)
        start, end = (_time(time, edge) for time, edge in zip(times, edges, strict=True))
        if end <= start:
            raise UsageError(f"empty time window: {asked}", hint=f"the trace is {edges}")
        return start, end


def _number(kind: str, asked: object) -> int | None:
    if asked is None:
        return None
    if not isinstance(asked, SupportsIndex):
        raise TypeError(f"{kind} is a whole number, not {asked!r}")
    return index(asked)


def _time(asked: Time, otherwise: int) -> int:
    if asked is None:
        return otherwise
    if isinstance(asked, float):
        raise UsageError(f"a time without its unit: {asked}", hint="whole ns, or such as '1.5s'")
    return parse_duration(asked) if isinstance(asked, str) else int(asked)
