"""Which of the tables and columns that the schema names one file has, and what is lost without.

Resolved once when a file is opened; everything that reads it asks here for names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from nsys_tui.model.capabilities import Capability
from nsys_tui.model.kinds import Kind
from nsys_tui.model.notes import Note
from nsys_tui.reader.lookalikes import has_name_like_nsys, tables_like
from nsys_tui.reader.schema import (
    BESIDE,
    NEWEST,
    STRINGS,
    TABLES,
    Column,
    Table,
    Version,
    declared,
    is_known,
    version,
)

_MOST_NAMED: Final = 8
"""Unknown tables and columns that a note lists by name."""
_WHOLE: Final = frozenset({"INTEGER", "NUMERIC", ""})
_BELIEVED: Final[Mapping[str, frozenset[str]]] = {
    "i": _WHOLE,
    "s": _WHOLE,
    "p": _WHOLE,
    "r": _WHOLE | {"REAL"},
    "t": frozenset({"TEXT", ""}),
    "b": _WHOLE | {"REAL", "TEXT"},
}
"""Affinities of declared types whose values SQLite keeps as they were."""
_GPU_WORK: Final = (
    Capability.KERNELS,
    Capability.COPIES,
    Capability.MEMSETS,
    Capability.GRAPHS,
    Capability.RENDERING,
)
"""Without one of them no GPU is known to be idle."""
_TYPES: Final = {"i": "whole numbers", "s": "whole numbers", "p": "whole numbers", "t": "text",
                 "r": "numbers"}  # fmt: skip


@dataclass(frozen=True)
class Export:
    """What the exporter says about itself."""

    product: str = ""
    """nsys version; empty where it is not told."""
    schema: str = ""

    @property
    def label(self) -> str:
        """``nsys 2025.5.1``, for sentences."""
        return f"nsys {self.product}" if self.product else "nsys of unknown version"


@dataclass(frozen=True)
class Resolved:
    """The schema of one file."""

    export: Export = field(default_factory=Export)
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Table -> name of a column as the reader calls it -> its name in the file; only those that
    are declared and can be believed."""
    off: frozenset[str] = frozenset()
    """Tables of which nothing is believed."""
    lost: frozenset[Capability] = frozenset()
    """Capabilities that are off although the tables of their data are believed."""
    doubts: Mapping[Capability, str] = field(default_factory=dict)
    """Why a capability is off, wholly or for one of its tables."""
    notes: tuple[Note, ...] = ()

    def names(self, table: str, columns: tuple[str, ...]) -> dict[str, str]:
        """Those of some columns that are there, each with its name in the file."""
        known = self.columns.get(table, {})
        return {name: known[name] for name in columns if name in known}

    def tables(self, what: Kind | Capability) -> tuple[str, ...]:
        """The file's tables of a kind, or that give a capability, in order of their names."""
        return tuple(
            name
            for name in sorted(self.columns)
            if (table := declared(name)) is not None and what in (table.kind, table.gives)
        )


def affinity(kind: str) -> str:
    """How SQLite keeps values of a declared type (its documented rules, in their order)."""
    upper = kind.upper()
    for word, name in (
        ("INT", "INTEGER"), ("CHAR", "TEXT"), ("CLOB", "TEXT"), ("TEXT", "TEXT"), ("BLOB", ""),
        ("REAL", "REAL"), ("FLOA", "REAL"), ("DOUB", "REAL"),
    ):  # fmt: skip
        if word in upper:
            return name
    return "NUMERIC" if upper else ""


def resolve(
    tables: Mapping[str, Mapping[str, str]],
    export: Export,
    has_rows: Callable[[str], bool],
    one_process: Callable[[], bool],
) -> Resolved:
    """Finds the tables and columns of the schema in a file.

    Args:
        tables: the file's tables, each with the declared type of each column.
        export: what the exporter says about itself.
        has_rows: tells whether a table of the file has a row; what is empty loses nothing.
        one_process: tells whether all CUDA calls are of one process.
    """
    known = {name: table for name in tables if (table := declared(name)) is not None}
    return _Resolving(tables, export, has_rows, one_process, known).run()


class _Resolving:
    """One run of ``resolve``."""

    def __init__(
        self,
        tables: Mapping[str, Mapping[str, str]],
        export: Export,
        has_rows: Callable[[str], bool],
        one_process: Callable[[], bool],
        known: Mapping[str, Table],
    ) -> None:
        self._found, self._export, self._known = tables, export, known
        self._has_rows, self._one_process = has_rows, one_process
        self._version = version(export.product) or _generation(tables, known)
        self._notes: list[Note] = []
        self._lost: set[Capability] = set()
        self._doubts: dict[Capability, str] = {}
        self._off: set[str] = set()
        self._instead: dict[str, str] = {}
        """Table -> what was said of another that looks like it."""

    def run(self) -> Resolved:
        columns = {name: self._columns(name, table) for name, table in self._known.items()}
        self._not_understood()
        if STRINGS in self._off or STRINGS not in self._known:
            self._without_strings()
        for name, others in BESIDE.items():
            if name not in self._found and any(map(self._has_rows, self._found.keys() & {*others})):
                self._absent(name)
        self._without_gpu_work()
        self._newer()
        return Resolved(
            self._export,
            {name: each for name, each in columns.items() if name not in self._off},
            frozenset(self._off),
            frozenset(self._lost),
            self._doubts,
            tuple(self._notes),
        )

    def _columns(self, name: str, table: Table) -> dict[str, str]:
        """The believed columns of one table; says what is missing."""
        columns: dict[str, str] = {}
        missing: list[Column] = []
        for column in table.columns.values():
            actual = self._actual(name, column)
            if actual is None:
                missing.append(column)
                continue
            columns[column.name] = actual
            if actual != column.name and actual in table.columns and self._wanted(name, column):
                self._say(name, column, f"{actual} stands in its place")
        for column in missing:
            if self._wanted(name, column):
                self._missing(name, table, column)
        return columns

    def _actual(self, name: str, column: Column) -> str | None:
        """The file's name of a column, if its declared type can be believed."""
        types = self._found[name]
        for actual in (column.name, *column.aliases):
            if actual in types and affinity(types[actual]) in _BELIEVED[column.type]:
                return actual
        return None

    def _wanted(self, name: str, column: Column) -> bool:
        """Whether the absence of a column is a loss: this generation has it, and there are rows."""
        lost = self._known[name].lost
        matters = column.required or column.aliases or column.name in lost
        there = column.name in self._found[name]
        return bool(matters) and (there or column.expected(self._version)) and self._has_rows(name)

    def _missing(self, name: str, table: Table, column: Column) -> None:
        if column.type == "p" and self._one_process():
            self._say(name, column, "its rows are taken for those of the only process")
        elif column.required and (not column.beside or self._has_rows(column.beside)):
            self._off.add(name)
            self._doubt(table.gives, self._say(name, column, _unknown(table.gives)))
        elif column.name in table.lost:
            what = table.lost[column.name]
            self._doubt(what, self._say(name, column, f"{what} cannot be known"))
            if isinstance(what, Capability):
                self._lost.add(what)

    def _doubt(self, what: Capability | str, why: str) -> None:
        if isinstance(what, Capability):
            self._doubts.setdefault(what, why)

    def _say(self, name: str, column: Column, then: str) -> str:
        kind = self._found[name].get(column.name)
        if kind is None:
            strange = ", ".join(self._unknown_columns(name))
            also = f", but unknown ones ({strange})" if strange else ""
            what = f"{name} has no column {column.name}{also}"
        else:
            what = f"{name}.{column.name} is declared {kind}, not as {_TYPES[column.type]}"
        text = f"{what} ({self._export.label}): {then}"
        self._notes.append(Note(text, name, column.name))
        return text

    def _not_understood(self) -> None:
        """Says which tables look like nsys's and are not read, and what is lost by that."""
        for name in sorted(self._found.keys() - self._known.keys()):
            fitting = tables_like(name, self._found[name])
            like = next((table for table in fitting if not self._has_rows(table.name)), None)
            if like is not None and self._has_rows(name):
                seems = f"it looks like {like.name}, of which there are no rows"
                text = self._unread(name, f"{seems}: {_unknown(like.gives)}")
                self._instead[like.name] = text
                self._doubt(like.gives, text)
            elif (
                not (self._is_newer or is_known(name))
                and has_name_like_nsys(name)
                and self._has_rows(name)
            ):
                self._unread(name, "what it holds is not shown")

    def _unread(self, name: str, then: str) -> str:
        text = f"{name} is not understood ({self._export.label}): {then}"
        self._notes.append(Note(text, name))
        return text

    def _without_gpu_work(self) -> None:
        """Switches off all GPU work where a part is not believed: that time would be idle."""
        why = next((self._doubts[what] for what in _GPU_WORK if what in self._doubts), None)
        if why is None:
            return
        for name, table in self._known.items():
            if table.gives in _GPU_WORK:
                self._off.add(name)
        self._doubts |= {what: self._doubts.get(what, why) for what in _GPU_WORK}

    def _without_strings(self) -> None:
        """Switches off what cannot be named: sums by name would be sums of everything."""
        named = {name for name in self._known if self._is_named(name)}
        if STRINGS not in self._known:
            if not any(map(self._has_rows, named)):
                return
            text = self._absent(STRINGS)
        else:
            text = next(note.text for note in self._notes if note.table == STRINGS)
        for name in named:
            self._off.add(name)
            if isinstance(what := self._known[name].gives, Capability):
                self._doubts.setdefault(what, text)

    def _absent(self, name: str) -> str:
        """Says that a table is missing, unless one was named that looks like it."""
        if name in self._instead:
            return self._instead[name]
        text = f"{name} is missing ({self._export.label}): {_unknown(TABLES[name].gives)}"
        self._notes.append(Note(text, name))
        return text

    def _is_named(self, name: str) -> bool:
        columns = self._known[name].columns.values()
        return any(column.type == "s" and column.required for column in columns)

    @property
    def _is_newer(self) -> bool:
        return version(self._export.schema) > NEWEST

    def _newer(self) -> None:
        """Says what of an export newer than any that was looked at is not understood."""
        if not self._is_newer:
            return
        strange = list(self._strange())
        listed = ", ".join(strange[:_MOST_NAMED]) or "no table or column"
        if len(strange) > _MOST_NAMED:
            listed += f" and {len(strange) - _MOST_NAMED} more"
        newest = ".".join(map(str, NEWEST))
        text = (
            f"{self._export.label} is newer than what this version knows: schema"
            f" {self._export.schema}, not {newest}; checked: the columns of {len(self._known)}"
            f" tables; not understood: {listed}"
        )
        self._notes.append(Note(text))

    def _strange(self) -> Iterator[str]:
        """Tables and columns that the schema does not name."""
        for name in sorted(self._found):
            if name in self._known:
                yield from (f"{name}.{column}" for column in self._unknown_columns(name))
            elif not is_known(name):
                yield name

    def _unknown_columns(self, name: str) -> list[str]:
        columns = self._known[name].columns.values()
        names = set(chain.from_iterable((column.name, *column.aliases) for column in columns))
        return [column for column in self._found[name] if column not in names]


def _unknown(what: Capability | str) -> str:
    return f"{what} cannot be known{', and so no GPU work is shown' if what in _GPU_WORK else ''}"


def _generation(tables: Mapping[str, Mapping[str, str]], known: Mapping[str, Table]) -> Version:
    """The oldest version that has all the columns that are there; empty for any."""
    since = (
        column.since
        for name, table in known.items()
        for column in table.columns.values()
        if column.since and column.name in tables[name]
    )
    return max(since, default=())


def as_declared(kind: str, values: Sequence[Any]) -> Sequence[Any]:
    """The values as their column's type (``schema.Column.type``); None for those of another."""
    convert = _CONVERTERS[kind]
    if convert is None or set(map(type, values)) <= _PLAIN[kind]:
        return values
    return [convert(value) for value in values]


def decoded(text: bytes) -> str:
    """Decodes text of any quality: real reports hold Latin-1 user names, for instance."""
    return text.decode("utf-8", "replace")


def _whole(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    return value if isinstance(value, int) else None


def _number(value: object) -> int | float | None:
    return value if isinstance(value, (int, float)) else None


def _text(value: object) -> str | None:
    if isinstance(value, bytes):
        return decoded(value)
    return None if value is None else str(value)


_EXACT: Final = 2.0**53
_CONVERTERS: Final[Mapping[str, Callable[[object], Any] | None]] = {
    "i": _whole, "s": _whole, "p": _whole, "r": _number, "t": _text, "b": None,
}  # fmt: skip
_NOTHING: Final = frozenset({type(None)})
_PLAIN: Final[Mapping[str, frozenset[type]]] = {
    "i": _NOTHING | {int}, "s": _NOTHING | {int}, "p": _NOTHING | {int},
    "r": _NOTHING | {int, float}, "t": _NOTHING | {str},
}  # fmt: skip
"""Types of values that need no conversion, by type of the schema."""
