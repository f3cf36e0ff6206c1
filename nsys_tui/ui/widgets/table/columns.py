"""Columns of virtual tables and trees: values behind functions, so that only visible rows cost.

No row is ever made into text or Python objects unless it is drawn; sorting, searching and counting
go over whole arrays. Nothing here knows Textual, so all of it is tested without a terminal.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from nsys_tui.model.arrays import Array, Bool, Integers
from nsys_tui.model.table import Coded, Column, Table, Unit, Values
from nsys_tui.names import cell_len
from nsys_tui.units import format_count

MOST_TALLIES: Final = 1_000
"""Values listed by a frequency count."""
BINS: Final = 20
FEW: Final = 50
"""Up to so many distinct numbers are listed one by one, more in bins."""

_WIDEST: Final = 44
"""Cells of a text column that it wants at most."""
_MEASURED: Final = 500
"""Texts that tell how many."""
_DIGITS: Final = re.compile(r"(\d+)")


class Lazy(Sequence[Any]):
    """Values that are made when they are looked at: a million names never stand in memory.

    Args:
        size: how many.
        make: the value at a place.
    """

    def __init__(self, size: int, make: Callable[[int], Any]) -> None:
        self._places, self._make = range(size), make

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: Any) -> Any:
        places = self._places[place]
        return [*map(self._make, places)] if isinstance(places, range) else self._make(places)


class Tally(NamedTuple):
    """How often something stands in a column: a value, or a range of numbers."""

    text: str
    rows: int
    low: float
    """The code or number, or the lower edge of a bin."""
    high: float
    """Equal to ``low``, or the upper edge of a bin, which belongs to it."""


class Source(NamedTuple):
    """Where the values of a column come from."""

    all: Callable[[], Array]
    """All of them; may be costly: it is called in a worker."""
    at: Callable[[int], Any]
    """One of them."""


def _plain(_: int) -> int:
    return 0


@dataclass(frozen=True, eq=False, kw_only=True)
class TableColumn(ABC):
    """One column; ``Numbers``, ``Texts`` and ``Drawn`` say what is in it."""

    descending_first: ClassVar[bool] = False
    """Whether the first sort puts the largest on top."""
    is_text: ClassVar[bool] = False
    """Whether a search looks here."""

    header: str
    width: int
    """Cells; the least where ``grow`` is set."""
    right: bool = False
    """Aligned right."""
    extra: bool = False
    """Stands behind the others where not all columns have room."""
    grow: bool = False
    """Takes the cells that are left over."""
    wanted: int = 0
    """Cells that it gets before columns are shown that are ``extra``."""
    names: bool = False
    """Holds names, which lose template arguments and their middle before what tells them apart."""
    ink: Callable[[int], int] = _plain
    """Style code of a row's cell."""
    also: Sequence[TableColumn] = ()
    """What a file has in columns of their own and the screen in this one."""

    @abstractmethod
    def text(self, row: int) -> str:
        """What the cell of a row says; untrusted."""

    @abstractmethod
    def keys(self) -> Array:
        """Numbers that sort the rows, one a row."""

    def tally(self, rows: Integers | None) -> tuple[list[Tally], int]:
        """Counts the values of some rows (None: of all); most frequent first.

        Returns:
            the tallies, at most ``MOST_TALLIES``, and how many there are in all.
        """
        del rows
        return [], 0

    def stored(self, rows: Integers) -> tuple[Column, Values]:
        """What a file holds of some rows; texts as they are, made when a writer comes to them."""
        return Column(self.header), Lazy(
            len(rows), lambda place: self.text(int(rows[place])).strip()
        )

    def within(self, low: float, high: float) -> Bool:
        """Rows whose key lies in [low, high]."""
        keys = self.keys()
        return np.ma.filled((keys >= low) & (keys <= high), False)


@dataclass(frozen=True, eq=False, kw_only=True)
class Numbers(TableColumn):
    """A column of numbers."""

    descending_first = True
    source: Source
    """Values, NaN or masked where there is none."""
    write: Callable[[Any], str]
    right: bool = True
    unit: Unit = Unit.NONE
    """Of the values as a file holds them; ``TEXT`` for numbers that stand for words."""
    decimals: int = 0
    """Of real numbers in a file."""
    absent: int | None = None
    """The value that stands for none."""

    def text(self, row: int) -> str:
        """The written number; ``-`` where there is none."""
        value = self.source.at(row)
        none = value is None or value != value or value == self.absent
        return "-" if none else self.write(value)

    def keys(self) -> Array:
        """The values themselves, masked where there is none."""
        # As floats with NaN, integers beyond 2**53 would lose their last digits.
        values = self.source.all()
        return values if self.absent is None else np.ma.masked_equal(values, self.absent)

    def stored(self, rows: Integers) -> tuple[Column, Values]:
        """Exact values, whatever the screen rounds them to."""
        if self.unit is Unit.TEXT:
            return super().stored(rows)
        return Column(self.header, self.unit, self.decimals), self.keys()[rows]

    def tally(self, rows: Integers | None) -> tuple[list[Tally], int]:
        """Counts distinct values where they are few, else bins of equal factors or steps."""
        values = self.keys() if rows is None else self.keys()[rows]
        if np.ma.isMaskedArray(values):
            values = values.compressed()
        if values.dtype.kind == "f":
            values = values[~np.isnan(values)]
        if not len(values):
            return [], 0
        low, high = values.min(), values.max()
        # A cheap look first: the first thousands mostly tell that there are many.
        few = len(np.unique(values[:10_000])) <= FEW
        distinct, counts = np.unique(values, return_counts=True) if few else (values[:0], values)
        if few and len(distinct) <= min(FEW, max(BINS, len(values) // 2)):
            pairs = zip(distinct.tolist(), counts.tolist(), strict=True)
            tallies = [Tally(self.write(v), n, v, v) for v, n in pairs]
            return sorted(tallies, key=lambda t: -t.rows), len(tallies)
        return self._bins(values, low, high)

    def _bins(self, values: Array, low: Any, high: Any) -> tuple[list[Tally], int]:
        whole = values.dtype.kind in "iu"
        spread = low > 0 and high / low > BINS
        edges = np.geomspace(low, high, BINS + 1) if spread else np.linspace(low, high, BINS + 1)
        if whole:
            edges = np.unique(np.round(edges).astype(np.int64))
        edges[0], edges[-1] = low, high
        counts = np.histogram(values, edges)[0]
        bins = []
        for place, count in enumerate(counts.tolist()):
            if not count:
                continue
            start, end = edges[place].item(), edges[place + 1].item()
            last = place == len(counts) - 1
            top = end if last else (end - 1 if whole else float(np.nextafter(end, start)))
            bins.append(Tally(f"{self.write(start)} to {self.write(end)}", count, start, top))
        return bins, len(bins)


@dataclass(frozen=True, eq=False, kw_only=True)
class Texts(TableColumn):
    """A column of texts, each written when it is seen."""

    is_text = True
    write: Callable[[int], str]
    """The text of a row."""
    load: Callable[[], tuple[Integers, Sequence[str]]]
    """A code a row and a text a code, for sorting, searching and counting; may be costly."""

    def text(self, row: int) -> str:
        """What the row says."""
        return self.write(row)

    def keys(self) -> Array:
        """Place of each row's label in the order of people: case aside, ``9`` before ``10``."""
        codes, labels = self.load()
        order = sorted(range(len(labels)), key=lambda code: natural(labels[code]))
        rank = np.empty(max(len(order), 1), np.int64)
        rank[order] = np.arange(len(order))
        return rank[codes]

    def hits(self, test: Callable[[str], bool]) -> Bool:
        """The test runs once a label, never once a row."""
        codes, labels = self.load()
        passed = np.fromiter(map(test, labels), bool, len(labels))
        return passed[codes] if len(passed) else np.zeros(len(codes), bool)

    def stored(self, rows: Integers) -> tuple[Column, Values]:
        """The labels, looked up when a writer comes to them."""
        codes, labels = self.load()
        return Column(self.header), Coded(codes[rows], labels)

    def tally(self, rows: Integers | None) -> tuple[list[Tally], int]:
        """Counts labels; equal texts of several codes stay apart only if their codes do."""
        codes, labels = self.load()
        counts = np.bincount(codes if rows is None else codes[rows], minlength=len(labels))
        order = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
        most = order[:MOST_TALLIES].tolist()
        return [Tally(labels[code], int(counts[code]), code, code) for code in most], len(order)

    def within(self, low: float, high: float) -> Bool:
        """Rows whose code lies in [low, high]."""
        codes = self.load()[0]
        return (codes >= low) & (codes <= high)


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawn(TableColumn):
    """A column that is drawn, such as a sparkline."""

    draw: Callable[[int], str]
    order: Callable[[], Array]

    def text(self, row: int) -> str:
        """What is drawn."""
        return self.draw(row)

    def keys(self) -> Array:
        """The order that was given."""
        return self.order()


def table_of(name: str, title: str, columns: Sequence[TableColumn], rows: Integers) -> Table:
    """Some rows as the table that a file is written from."""
    every = [each for column in columns for each in (column, *column.also)]
    return Table.of(name, title, (column.stored(rows) for column in every))


def numbers(
    header: str,
    width: int,
    values: Array | Source,
    write: Callable[[Any], str],
    **options: Any,
) -> Numbers:
    """A column of numbers."""
    return Numbers(header=header, width=width, source=source(values), write=write, **options)


def source(values: Array | Source) -> Source:
    """An array that is at hand as what a column is made of."""
    if not isinstance(values, np.ndarray):
        return values
    if np.ma.isMaskedArray(values):
        known, masked = values.data, np.ma.getmaskarray(values)
        return Source(lambda: values, lambda row: None if masked[row] else known.item(row))
    return Source(lambda: values, values.item)


def taken(rows: Integers, values: Array | Callable[[Integers], Array]) -> Source:
    """The values of some rows: of an array, or made for those that are looked at."""
    if isinstance(values, np.ndarray):
        return Source(lambda: values[rows], lambda place: values.item(rows[place]))
    return Source(lambda: values(rows), lambda place: values(rows[place : place + 1]).tolist()[0])


def texts(
    header: str,
    width: int,
    codes: Integers | Source,
    labels: Sequence[str],
    **options: Any,
) -> Texts:
    """A column of texts that repeat: a code a row, and a text a code."""
    of = source(codes)
    longest = max(map(cell_len, labels[:_MEASURED]), default=0)
    return Texts(
        header=header,
        width=width,
        wanted=min(longest, _WIDEST),
        write=lambda row: labels[of.at(row)],
        load=lambda: (of.all(), labels),
        **options,
    )


def written(
    header: str,
    width: int,
    write: Callable[[int], str],
    load: Callable[[], tuple[Integers, Sequence[str]]],
    **options: Any,
) -> Texts:
    """A column of texts whose codes are made once, and only when all rows are needed."""
    return Texts(header=header, width=width, write=write, load=cache(load), **options)


def strings(header: str, width: int, values: Sequence[str], **options: Any) -> Texts:
    """A column of one text a row; equal ones share a code."""
    distinct = {text: code for code, text in enumerate(dict.fromkeys(values))}
    codes = np.array([distinct[text] for text in values], np.int32)
    return texts(header, width, codes, tuple(distinct), **options)


def counts(header: str, width: int, values: Integers | Source, **options: Any) -> Numbers:
    """A column of counts."""
    return numbers(header, width, values, format_count, unit=Unit.COUNT, **options)


def durations(
    header: str,
    width: int,
    values: Array | Source,
    write: Callable[[Any], str],
    **options: Any,
) -> Numbers:
    """A column of durations or moments in ns."""
    return numbers(header, width, values, write, unit=Unit.NS, **options)


def natural(text: str) -> list[tuple[int, int | str]]:
    """Sort key by which ``step 9`` comes before ``step 10``, case aside."""
    parts = _DIGITS.split(text.casefold())
    return [
        (0, int(part)) if place % 2 and len(part) < 4_000 else (1, part)
        for place, part in enumerate(parts)
    ]
