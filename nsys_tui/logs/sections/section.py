"""A section of what logs say: columns declared once, read off plain rows for people and programs.

In text, what is not known or empty is ``-``; in JSON it is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, TypeAlias

from nsys_tui.logs.figures import known as known_value
from nsys_tui.logs.nccl.calls import Calls
from nsys_tui.logs.nccl.exchanges import Exchange, exchanges
from nsys_tui.logs.nccl.hang_report import HangReport
from nsys_tui.logs.nccl.statistics import DEFAULT_BOUNDS
from nsys_tui.logs.result import LogResult
from nsys_tui.model.table import Column, Read, Table, Unit, column, data


@dataclass(frozen=True, eq=False)
class LogAnswer:
    """What was read, and what is asked of it."""

    result: LogResult
    hangs: HangReport
    bounds: Sequence[int] = DEFAULT_BOUNDS
    """Bucket bounds of the histogram in bytes."""
    top: int | None = None
    """Rows of the long lists in text; all without it."""
    lists: frozenset[str] = frozenset()
    """Call lists that JSON is to hold: ``calls``, ``api_calls``."""

    @cached_property
    def exchanges(self) -> list[Exchange]:
        """The all-to-alls that are made of sends and receives."""
        return exchanges(self.result.calls, self.result.communicators, self.result.groups)

    @property
    def calls(self) -> Calls:
        """The calls that count, as sums."""
        return self.result.calls.sums


Rows: TypeAlias = Callable[[LogAnswer], Iterable[Any]]
Notes: TypeAlias = "Callable[[LogAnswer, Sequence[Any]], Iterable[str]]"


def _no_notes(_: LogAnswer, __: Sequence[Any]) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class Section:
    """One section."""

    name: str
    title: str
    columns: tuple[Column, ...]
    """Those with a header are for people; each reads a row, with the result beside it."""
    rows: Rows
    notes: Notes = _no_notes
    """Made of the answer and the rows that are shown."""
    none: str = "none"
    """What is said where there are neither rows nor notes."""
    count: Callable[[LogAnswer], int] | None = None
    """Tells how much there is without making the rows."""
    longest: str = ""
    """What its rows are, if only as many are shown as were asked for."""

    def has_rows(self, answer: LogAnswer) -> bool:
        """Whether there is anything to show."""
        if self.count is not None:
            return self.count(answer) > 0
        return any(True for _ in self.rows(answer))

    def table(self, answer: LogAnswer) -> Table:
        """What people see."""
        every = self.rows(answer)
        rows = islice(every, answer.top) if self.longest else every
        if self.notes is not _no_notes:
            rows = list(rows)
        columns = tuple(column for column in self.columns if column.header)
        values = _columns(columns, rows, answer.result)
        size = len(values[0])
        shown = rows if isinstance(rows, list) else ()
        notes = [*self.notes(answer, shown), *self._more(answer, every, size)]
        said = notes if size or notes else [self.none]
        return Table(self.name, self.title, columns, values, tuple(said))

    def _more(self, answer: LogAnswer, every: Iterable[Any], shown: int) -> list[str]:
        if not self.longest:
            return []
        total = len(every) if isinstance(every, list) else self.count(answer) if self.count else 0
        return [f"{total - shown:,} more {self.longest} (--top)"] * (total > shown)


def _columns(
    columns: Sequence[Column], rows: Iterable[Any], result: LogResult
) -> tuple[list[Any], ...]:
    """Columns of rows that are made one after another; equal values once."""
    columns_of: tuple[list[Any], ...] = tuple([] for _ in columns)
    known: dict[Any, Any] = {}
    for row in rows:
        for one, values in zip(columns, columns_of, strict=True):
            value = _shown(one, row, result)
            values.append(known.setdefault(value, value) if type(value) in (int, str) else value)
    return columns_of


def _shown(one: Column, row: Any, result: LogResult) -> Any:
    value = one.of(row, result)
    if one.unit is not Unit.TEXT:
        return value
    return "-" if value is None else str(value) or "-"


def shown(header: str, read: Read, unit: Unit = Unit.TEXT) -> Column:
    """A column for people alone."""
    return Column(header, unit, key="", read=read)


def count(key: str, header: str = "", read: Read | None = None) -> Column:
    """A column of whole numbers."""
    return column(key, header, read, Unit.COUNT)


def whole_numbers(keys: str) -> tuple[Column, ...]:
    """Columns of whole numbers for programs."""
    return tuple(map(count, keys.split()))


def known(key: str, header: str = "", name: str = "") -> Column:
    """A whole number in which -1 means that it is not known."""
    return count(key, header, lambda row, _: known_value(getattr(row, name or key)))


def text(key: str, header: str = "", name: str = "") -> Column:
    """A text that is not known where it is empty."""
    return column(key, header, lambda row, _: getattr(row, name or key) or None)


def item(place: int) -> Read:
    """Reads one value off a row that is a tuple."""
    return lambda row, _: row[place]


def through(part: str, one: Column) -> Column:
    """A column read off a part of the row."""
    return replace(one, read=lambda row, shared: one.of(getattr(row, part), shared))


def host_pid(process: Read) -> tuple[Column, Column]:
    """Host and pid of a row's process, for programs; null where it is not known."""

    def of(key: str, unit: Unit) -> Column:
        def read(row: Any, result: LogResult) -> Any:
            place = process(row, result)
            return getattr(result.processes[place], key) if place >= 0 else None

        return data(key, read, unit)

    return of("host", Unit.TEXT), of("pid", Unit.COUNT)


def file_path(file: Callable[[Any], int], header: str = "") -> Column:
    """The path of a row's file."""
    return column("file", header, lambda row, result: result.files[file(row)].path)
