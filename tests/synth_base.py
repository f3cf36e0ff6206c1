"""Underneath ``synth``: collects rows by table and writes them as one export of a generation."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from nsys_tui.demo import schema
from nsys_tui.demo.write import ENUM_COLUMNS, enum_tables
from nsys_tui.reader.schema import BESIDE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HW_VM = 0x0001
_ALWAYS = ("StringIds", *BESIDE)


def global_tid(pid: int, tid: int = 0, hw_vm: int = HW_VM) -> int:
    """Packs HW:8 | VM:8 | PID:24 | TID:24 into the signed 64 bits SQLite stores."""
    value = hw_vm << 48 | (pid & 0xFFFFFF) << 24 | tid & 0xFFFFFF
    return value - 2**64 if value >= 2**63 else value


def global_pid(pid: int, hw_vm: int = HW_VM) -> int:
    """The process key: a global thread id with thread 0."""
    return global_tid(pid, 0, hw_vm)


class Base(ABC):
    """Rows by table, strings and ids; says nothing about what kinds of events there are."""

    def __init__(
        self,
        path: Path | str,
        schema: str = schema.CURRENT,
        *,
        omit_tables: Iterable[str] = (),
        omit_columns: dict[str, Iterable[str]] | None = None,
        empty_tables: Iterable[str] = (),
        enums: bool = True,
        metadata: bool = True,
        page_size: int = 4096,
        hw_vm: int = HW_VM,
    ) -> None:
        self.path = Path(path)
        self.generation = schema
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.raw_tables: list[tuple[str, Sequence[str], list[Sequence[Any]]]] = []
        self.statements: list[str] = []
        self.strings: dict[str, int] = {}
        self.pid = 1000
        self._omit_tables = set(omit_tables)
        self._omit_columns = {k: set(v) for k, v in (omit_columns or {}).items()}
        self._empty_tables = set(empty_tables)
        self._enums, self._metadata, self._page_size = enums, metadata, page_size
        self.hw_vm = hw_vm
        self._correlation = 1_000_000
        self.chains = {"SAMPLING_CALLCHAINS": 0, "OSRT_CALLCHAINS": 0, "CUDA_CALLCHAINS": -1}

    def process(self, pid: int = 1000, name: str | None = None) -> Self:
        """Makes ``pid`` the process of the events that follow; a name adds its PROCESSES row."""
        self.pid = pid
        if name is not None:
            self.add("PROCESSES", globalPid=self.gpid(), pid=pid, name=name)
        return self

    def string(self, value: str) -> int:
        """The StringIds id of a string, added when new."""
        return self.strings.setdefault(value, len(self.strings) + 1)

    def chain(self, table: str, frames: Sequence[str], module: str = "libcudart.so") -> int:
        """Adds a call chain, leaf first, and returns its id."""
        self.chains[table] += 1
        self.chain_rows(table, self.chains[table], frames, module)
        return self.chains[table]

    def gtid(self, tid: int | None = None) -> int:
        """The global id of a thread of the current process."""
        return global_tid(self.pid, self.pid if tid is None else tid, self.hw_vm)

    def gpid(self) -> int:
        """The global id of the current process."""
        return global_pid(self.pid, self.hw_vm)

    def add(self, table: str, **columns: Any) -> Self:
        """Adds a row by column names of any generation."""
        unknown = set(columns) - _known_columns(table)
        if unknown:
            raise ValueError(
                f"{table} has no column {sorted(unknown)} in any generation; use raw()"
            )
        self.rows.setdefault(table, []).append(columns)
        return self

    def raw(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]] = ()) -> Self:
        """Writes a table exactly so (columns may carry types, ``"a INTEGER"``), beside or instead
        of the known one."""
        self.raw_tables.append((table, columns, list(rows)))
        return self

    def sql(self, statement: str) -> Self:
        """Runs a statement on the finished file: views, indexes, damage."""
        self.statements.append(statement)
        return self

    def write(self) -> Path:
        """Writes the file (an existing one is replaced) and returns its path."""
        self.path.unlink(missing_ok=True)
        connection = sqlite3.connect(self.path)
        try:
            connection.execute(f"PRAGMA page_size = {self._page_size}")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA journal_mode = OFF")
            self._write_tables(connection)
            connection.commit()
        finally:
            connection.close()
        return self.path

    def next_correlation(self) -> int:
        self._correlation += 1
        return self._correlation

    def place(
        self,
        start: int,
        end: int,
        device: int,
        stream: int,
        context: int,
        corr: int | None,
    ) -> dict[str, Any]:
        """The columns that every row of GPU work has."""
        return {
            "start": start, "end": end, "deviceId": device, "contextId": context,
            "greenContextId": 0, "streamId": stream,
            "correlationId": self.next_correlation() if corr is None else corr,
            "globalPid": self.gpid(),
        }  # fmt: skip

    def chain_rows(self, table: str, id_: int, frames: Sequence[str], module: str) -> None:
        extra = (
            {}
            if table == "CUDA_CALLCHAINS"
            else {"kernelMode": 0, "thumbCode": 0, "unwindMethod": 6}
        )
        for depth, frame in enumerate(frames):
            self.add(
                table, id=id_, symbol=self.string(frame), module=self.string(module), unresolved=0,
                originalIP=0x55000000 + self.string(frame), stackDepth=depth, **extra,
            )  # fmt: skip

    @abstractmethod
    def meta(self, name: str, value: str, *, capture: bool = False) -> Self:
        """A metadata row."""

    def _write_tables(self, connection: sqlite3.Connection) -> None:
        product, version = schema.GENERATIONS[self.generation]
        if self._metadata and version:
            self.meta("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems")
            self.meta("EXPORT_PRODUCT_VERSION", product).meta("EXPORT_SCHEMA_VERSION", version)
        rows = self.rows | {"StringIds": [{"id": i, "value": s} for s, i in self.strings.items()]}
        replaced = {table for table, _, _ in self.raw_tables}
        for name, table in schema.tables(self.generation).items():
            wanted = rows.get(name) or name in _ALWAYS or name in self._empty_tables
            if wanted and name not in self._omit_tables | replaced:
                hidden = self._omit_columns.get(name, set())
                _insert(connection, _without(table, hidden), rows.get(name, []))
        if self._enums:
            for name, labels in enum_tables(schema.product_of(self.generation)).items():
                if name not in self._omit_tables:
                    connection.execute(f'CREATE TABLE "{name}" ({ENUM_COLUMNS})')
                    connection.executemany(f'INSERT INTO "{name}" VALUES (?, ?, ?)', labels)
        for name, columns, values in self.raw_tables:
            declared = ", ".join(_quoted(column) for column in columns)
            connection.execute(f'CREATE TABLE "{name}" ({declared})')
            marks = ", ".join("?" * len(columns))
            connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', values)
        for statement in self.statements:
            connection.execute(statement)


def _quoted(declaration: str) -> str:
    name, _, rest = declaration.partition(" ")
    return f'"{name}" {rest}'


@cache
def _known_columns(table: str) -> frozenset[str]:
    """The columns that a table has in any generation.

    Raises:
        KeyError: no generation has the table.
    """
    made = [tables[table] for tables in map(schema.tables, schema.GENERATIONS) if table in tables]
    if not made:
        raise KeyError(table)
    return frozenset(column.name for one in made for column in one.columns)


def _without(table: schema.Table, hidden: set[str]) -> schema.Table:
    kept = tuple(column for column in table.columns if column.name not in hidden)
    return schema.Table(table.name, kept, table.key)


def _insert(
    connection: sqlite3.Connection, table: schema.Table, rows: list[dict[str, Any]]
) -> None:
    connection.execute(table.sql)
    blank = {
        c.name: ("" if c.affinity == "TEXT" else 0) if c.not_null else None for c in table.columns
    }
    marks = ", ".join("?" * len(blank))
    connection.executemany(
        f'INSERT INTO "{table.name}" VALUES ({marks})',
        ([row.get(name, default) for name, default in blank.items()] for row in rows),
    )
