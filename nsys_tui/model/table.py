"""Table: the one result type that the screen, the pipe, a file and a DataFrame share.

A column has a stable key for programs and a header for people; what has several tables and single
figures beside them is a ``Document``, whose columns say what each of its parts holds. Values are
read off plain objects by the columns themselves, so that a result is declared once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum, StrEnum, auto
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, TypeAlias

import numpy as np

from nsys_tui.model.arrays import Array, Integers

Values: TypeAlias = "Sequence[Any] | Array"
"""The values of one column."""
Read: TypeAlias = "Callable[[Any, Any], Any]"
"""Takes a column's value from a row and from what all rows share, such as the report."""


class Unit(StrEnum):
    """What a column's numbers are; decides key and header suffix, formatting and JSON type."""

    NONE = ""
    NS = "ns"
    PERCENT = "%"
    """Values from 0 to 100; programs get them from 0 to 1."""
    SHARE = "share"
    """Values from 0 to 1."""
    BYTES = "B"
    MB = "MB"
    """Values are bytes; text shows them in 10**6 bytes, as nsys prints them."""
    MB_PER_S = "MB/s"
    """Values are bytes per second; text shows them in 10**6 bytes per second."""
    COUNT = "count"
    TEXT = "text"
    FLAG = "flag"
    """True or False."""
    ANY = "any"


UNNAMED: Final = (Unit.NONE, Unit.COUNT, Unit.TEXT, Unit.SHARE, Unit.FLAG, Unit.ANY)
"""Units that no header tells."""


class Form(Enum):
    """How many values stand in one cell."""

    ONE = auto()
    LIST = auto()
    MAP = auto()
    """Values by name."""


_SUFFIX: Final = {
    Unit.NS: "_ns",
    Unit.PERCENT: "_share",
    Unit.SHARE: "_share",
    Unit.BYTES: "_bytes",
    Unit.MB: "_bytes",
    Unit.MB_PER_S: "_bytes_per_s",
}
_ENDINGS: Final = {
    "_ns": Unit.NS,
    "_share": Unit.SHARE,
    "_bytes": Unit.BYTES,
    "_bytes_per_s": Unit.NONE,
}
_WHOLE: Final = (Unit.NS, Unit.BYTES, Unit.MB, Unit.COUNT)
_STATISTIC: Final = re.compile(r"(^|_)(avg|mean|median|med|stddev|q1|q3|drift)(_|$)")
_SIGNS: Final = {"≈": "approximate", "%": " percent", "/": " per "}


@dataclass(frozen=True)
class Column:
    """One column: header without unit, unit, and how many decimals a real number shows.

    Without a header it is for programs alone (JSON, Parquet, DataFrame), with an empty key for
    people alone.
    """

    header: str = ""
    unit: Unit = Unit.TEXT
    decimals: int = 0
    key: str | None = None
    """Stable name for programs, in snake_case with the unit; made from the header where None."""
    read: Read | None = field(default=None, compare=False)
    inner: tuple[Column, ...] = ()
    """Columns of the records that stand in a cell, for what is nested."""
    form: Form = Form.ONE
    optional: bool = False
    """Left out where there is no value, rather than null."""
    prose: bool = False
    """A sentence, which has lines of its own where people read it."""

    def __post_init__(self) -> None:
        if self.key is None:
            object.__setattr__(self, "key", key_of(self.header, self.unit))

    @property
    def is_text(self) -> bool:
        """Whether values are aligned left."""
        return self.unit in (Unit.TEXT, Unit.FLAG)

    @property
    def name(self) -> str:
        """The key, empty where the column is for people alone."""
        return self.key or ""

    @cached_property
    def is_whole(self) -> bool:
        """Whether its numbers are whole: a mean or the like has parts of a nanosecond."""
        return self.unit in _WHOLE and not _STATISTIC.search(self.name)

    @cached_property
    def _attribute(self) -> Callable[[Any], Any]:
        return attrgetter(self.name)

    def of(self, row: Any, shared: Any = None) -> Any:
        """The value that a row has."""
        return self._attribute(row) if self.read is None else self.read(row, shared)


def key_of(header: str, unit: Unit) -> str:
    """``Held up`` in ns becomes ``held_up_ns``, ``≈ Q1`` becomes ``approximate_q1_ns``."""
    text = "".join(_SIGNS.get(char, char) for char in header.lower())
    words = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    suffix = _SUFFIX.get(unit, "")
    return words if f"_{words}".endswith(suffix) else words + suffix


def column(
    key: str,
    header: str = "",
    read: Read | None = None,
    unit: Unit | None = None,
    decimals: int = 0,
    **options: Any,
) -> Column:
    """A column by its key, whose ending tells the unit: ``busy_ns``, ``busy_share``, ``bytes``.

    Args:
        key: stable name for programs; also the attribute that is read without ``read``.
        header: what people see, empty where only programs do.
        read: takes the value from a row and from what all rows share.
        unit: where the key does not tell it.
        decimals: of real numbers in text.
        options: further fields of ``Column``.
    """
    if unit is None:
        told = (unit for ending, unit in _ENDINGS.items() if f"_{key}".endswith(ending))
        unit = next(told, Unit.TEXT)
    return Column(header, unit, decimals, key, read, **options)


def data(key: str, read: Read, unit: Unit | None = None, **options: Any) -> Column:
    """A column for programs alone; see ``column``."""
    return column(key, "", read, unit, **options)


def number(key: str, read: Read, **options: Any) -> Column:
    """A column of whole numbers for programs alone."""
    return data(key, read, Unit.COUNT, **options)


def columns(keys: str, unit: Unit | None = None, **options: Any) -> tuple[Column, ...]:
    """Columns for programs by their keys, each read from the attribute of that name."""
    return tuple(column(key, unit=unit, **options) for key in keys.split())


_ANNOTATED: Final = {"int": Unit.COUNT, "bool": Unit.FLAG, "str": Unit.TEXT}


def columns_of(kind: type[Any]) -> tuple[Column, ...]:
    """Columns of a dataclass whose fields are numbers, texts, flags or tuples of those."""
    return tuple(_column_of(one.name, str(one.type)) for one in fields(kind))


def _column_of(key: str, annotation: str) -> Column:
    many = annotation.startswith("tuple[")
    told = annotation.removeprefix("tuple[").partition(",")[0].partition(" |")[0]
    ended = column(key).unit
    unit = _ANNOTATED.get(told, Unit.NONE) if ended is Unit.TEXT else ended
    return column(key, unit=unit, form=Form.LIST if many else Form.ONE)


def records(
    key: str, inner: Sequence[Column], read: Read | None = None, form: Form = Form.LIST
) -> Column:
    """A column whose cells hold rows of their own."""
    return Column(key=key, read=read, inner=tuple(inner), form=form)


def record(key: str, inner: Sequence[Column], read: Read | None = None) -> Column:
    """A column whose cells hold one record."""
    return records(key, inner, read, Form.ONE)


OPEN: Final = (Column(key="*", unit=Unit.ANY),)
"""Inner columns of tables whose columns depend on what was asked for."""


class Coded(Sequence[Any]):
    """A column of texts that repeat, as codes: a million names never stand in memory.

    Args:
        codes: of each row, -1 for none.
        labels: text of each code.
    """

    def __init__(self, codes: Integers, labels: Sequence[str]) -> None:
        self.codes, self.labels = codes, labels

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, place: Any) -> Any:
        codes = self.codes[place]
        if not isinstance(codes, np.ndarray):
            return self.labels[codes] if codes >= 0 else None
        labels = self.labels
        return [labels[code] if code >= 0 else None for code in codes.tolist()]


@dataclass(frozen=True, eq=False)
class Table:
    """A result table: columns of equal length, NumPy arrays or lists.

    None, NaN and masked entries are no values; whole numbers are masked, which keeps them exact.
    """

    name: str
    """Machine name, such as ``cuda_gpu_kern_sum``."""
    title: str
    columns: tuple[Column, ...]
    data: tuple[Values, ...]
    notes: tuple[str, ...] = ()
    """Sentences that belong under the table: what is left out, what is an estimate."""

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        pairs: Iterable[tuple[Column, Values]],
        notes: Iterable[str] = (),
    ) -> Table:
        """A table of columns with their values."""
        listed = [*pairs]
        columns, data = tuple(c for c, _ in listed), tuple(values for _, values in listed)
        return cls(name, title, columns, data, tuple(notes))

    def __post_init__(self) -> None:
        if len(self.columns) != len(self.data):
            raise ValueError(f"{self.name}: {len(self.columns)} columns, {len(self.data)} arrays")
        if len({len(values) for values in self.data}) > 1:
            raise ValueError(f"{self.name}: columns of unequal length")

    def __len__(self) -> int:
        return len(self.data[0]) if self.data else 0

    def __getitem__(self, header: str) -> Values:
        return self.data[[column.header for column in self.columns].index(header)]

    def first(self, count: int) -> Table:
        """The table with its first rows alone."""
        return replace(self, data=tuple(values[:count] for values in self.data))

    def rows(self) -> list[tuple[Any, ...]]:
        """Rows of plain Python values."""
        return list(zip(*map(plain, self.data), strict=True))

    def printed(self) -> list[tuple[Column, Values]]:
        """The columns that people see."""
        return [pair for pair in zip(self.columns, self.data, strict=True) if pair[0].header]

    def keyed(self) -> list[tuple[Column, Values]]:
        """The columns that programs see."""
        return [pair for pair in zip(self.columns, self.data, strict=True) if pair[0].key]


def table_of(
    name: str,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Any],
    shared: Any = None,
    notes: Iterable[str] = (),
) -> Table:
    """A table that the columns read off rows of any kind."""
    data = tuple([column.of(row, shared) for row in rows] for column in columns)
    return Table(name, title, tuple(columns), data, tuple(notes))


FACTS: Final = (
    Column("Fact", read=lambda fact, _: fact[0]),
    Column("Value", read=lambda fact, _: fact[1]),
)
"""Columns of named facts, pairs of texts, which people read as lines rather than as a table."""


@dataclass(frozen=True)
class Document:
    """What a verb gives to programs: a name, a version, and what its parts are."""

    name: str
    columns: tuple[Column, ...]
    """Its figures and tables, read off whatever the analysis gives."""
    version: int = 1
    sections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Keys that hold a section; a section of another name has one key of its name."""
    shared: tuple[str, ...] = ()
    """Keys of what every section is of."""

    def keys_of(self, sections: Sequence[str] | None) -> list[str] | None:
        """The keys of some sections; None for everything."""
        if not sections:
            return None
        keys = [key for name in sections for key in self.sections.get(name, (name,))]
        return [*self.shared, *keys]


def plain(values: Values) -> list[Any]:
    """The values of a column as plain Python ones; None where they are masked."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return list(values.tolist())
    return [value.item() if isinstance(value, np.generic) else value for value in values]
