"""One open file as the ``Source`` behind a ``Report``: builds parts, keeps them in the sidecar."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from nsys_tui.errors import NoDataError
from nsys_tui.model.arrays import Indices, Int32, Int64
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import (
    ApiCalls,
    CallChains,
    EventSet,
    GpuMetrics,
    HostEvents,
    LaunchAttributes,
    Marks,
    MemoryUsage,
    Operations,
    OpName,
    OsrtCalls,
    Payloads,
    Ranges,
    Samples,
    Syncs,
)
from nsys_tui.model.kinds import Kind
from nsys_tui.model.notes import Note
from nsys_tui.model.packed import pack, unpack
from nsys_tui.model.progress import Progress
from nsys_tui.model.source import RawRow, RawTable
from nsys_tui.reader import host
from nsys_tui.reader.cache import Sidecar
from nsys_tui.reader.encode import Strings, column, read_columns
from nsys_tui.reader.gather import Arrays, Tuples, gather, insert
from nsys_tui.reader.nvtx import NvtxTable, read_payloads
from nsys_tui.reader.operations import (
    TABLES,
    KernelNames,
    build_operations,
    kernel_names,
    sample_operations,
)
from nsys_tui.reader.raw_columns import RawColumns
from nsys_tui.reader.schema import Column, declared
from nsys_tui.reader.sqlite import Database, quoted
from nsys_tui.reader.target import read_metadata, read_process_names, read_ranks, read_thread_names

log = logging.getLogger(__name__)
Part = TypeVar("Part")

_GIVEN_BY: Final = {
    Capability.LAUNCH_SHAPES: Capability.KERNELS,
    Capability.LAUNCH_CALLS: Capability.API,
}
"""Capabilities whose data is in the tables of others."""
_NOTES = " notes"
"""Key of a stored part under which stands what was found wrong while it was read."""
_LAUNCH_COLUMNS = (
    "gridX",
    "gridY",
    "gridZ",
    "blockX",
    "blockY",
    "blockZ",
    "registersPerThread",
    "staticSharedMemory",
    "dynamicSharedMemory",
)


_Build: TypeAlias = "Callable[[Database, Strings, Progress | None], EventSet]"


def _log_part(what: str, name: str, began: float) -> None:
    log.debug("%s: %s, %.3f s", name, what, time.perf_counter() - began)


def _places_in_table(rowid: Int64) -> Indices | None:
    """Where each row of a table stands among all of them; None where they stand as in the file."""
    if bool((rowid[1:] > rowid[:-1]).all()):
        return None
    return np.argsort(np.argsort(rowid))


_PARTS: Final[dict[str, tuple[type[EventSet], _Build]]] = {
    "api": (ApiCalls, host.build_api),
    "osrt": (OsrtCalls, host.build_osrt),
    "host_events": (HostEvents, host.build_host_events),
    "syncs": (Syncs, lambda db, _, progress: host.build_syncs(db, progress)),
    "samples": (Samples, lambda db, _, progress: host.build_samples(db, progress)),
    "memory_usage": (MemoryUsage, lambda db, _, progress: host.build_memory_usage(db, progress)),
    "gpu_metrics": (GpuMetrics, lambda db, _, progress: host.build_gpu_metrics(db, progress)),
}
"""Event sets that are made of tables of their own, and how."""


class FileSource:
    """The reader's side of one open report.

    Args:
        db: the open file; closed with this source.
        sidecar: where decoded parts are kept, or None for no cache.
        patterns: the user's own regular expressions for communication kernels.
    """

    def __init__(
        self, db: Database, sidecar: Sidecar | None = None, patterns: tuple[str, ...] = ()
    ) -> None:
        self._db = db
        self._sidecar = sidecar
        log.debug("opened %s, cache %s", db.path, "unused" if sidecar is None else "in use")
        self._patterns = patterns
        self._strings = Strings(db)
        self._nvtx: NvtxTable | None = None
        self._nvtx_lock = threading.Lock()
        self.path: Path = db.path
        self.notes = db.notes
        self.metadata = read_metadata(db)
        doubts = db.schema.doubts
        given = {what: doubts[of] for what, of in _GIVEN_BY.items() if of in doubts}
        self.doubts: Mapping[Capability, str] = given | dict(doubts)
        self.capabilities = frozenset(self._capabilities())

    def _capabilities(self) -> Iterator[Capability]:
        """What the believed tables with rows give, but for what a lost column takes away."""
        schema = self._db.schema
        for capability in Capability:
            tables = schema.tables(_GIVEN_BY.get(capability, capability))
            if capability not in schema.lost and any(map(self._db.has_rows, tables)):
                yield capability

    @cached_property
    def thread_names(self) -> Mapping[int, str]:
        """globalTid -> name."""
        return read_thread_names(self._db, self._strings)

    @cached_property
    def process_names(self) -> Mapping[int, str]:
        """globalPid -> name."""
        return read_process_names(self._db)

    def _kept(self, name: str, cls: type[Part], build: Callable[[], Part]) -> Part:
        """A part from the sidecar; else built and stored there, then mapped from it."""
        began, sidecar = time.perf_counter(), self._sidecar
        if sidecar is None:
            part = build()
            _log_part("built", name, began)
            return part
        kept = sidecar.load(name)
        if kept is not None:
            # A part that an unreleased version stored may have other fields: it is built anew.
            with contextlib.suppress(KeyError, TypeError, ValueError):
                loaded = self._unpacked(cls, *kept)
                _log_part("from the cache", name, began)
                return loaded
        _log_part("not in the cache", name, began)
        part = build()
        self._db.check_unchanged()
        arrays, meta = pack(part)
        del part  # storing lets go of one column after the other
        notes = [[note.text, note.table, note.column] for note in self.notes]
        kept = sidecar.store(name, arrays, meta | {_NOTES: notes})
        if kept is None:
            self._sidecar = None  # every further part would have to be read twice
            kept = pack(build())
        _log_part("built and stored", name, began)
        return self._unpacked(cls, *kept)

    def _unpacked(self, cls: type[Part], arrays: Arrays, meta: dict[str, Any]) -> Part:
        part = unpack(cls, arrays, meta)
        self.notes.add(*(Note(*parts) for parts in meta.get(_NOTES, ())))
        return part

    def part(self, name: str, progress: Progress | None) -> EventSet:
        """An event set by its name among ``report.PARTS``."""
        if name == "operations":
            return self._operations(progress)
        if name in ("ranges", "marks"):
            return self._nvtx_part(name, progress)
        cls, build = _PARTS[name]
        return self._kept(name, cls, lambda: build(self._db, self._strings, progress))

    def _operations(self, progress: Progress | None) -> Operations:
        patterns = self._patterns
        if patterns:
            return build_operations(self._db, self._strings, progress, patterns)
        return self._kept(
            "operations", Operations, lambda: build_operations(self._db, self._strings, progress)
        )

    def sampled_operations(self, rows: int) -> Operations:
        """An evenly spaced sample of the GPU operations."""
        return sample_operations(self._db, self._strings, rows, self._patterns)

    def kernel_names(self) -> tuple[OpName, ...]:
        """The names of all kernels, from the sidecar if they or the operations are there."""
        cached = self._sidecar is not None and self._sidecar.has("operations")
        if cached and not self._patterns:
            return self._operations(None).names
        return self._kept(
            "kernel_names", KernelNames, lambda: kernel_names(self._db, self._strings)
        ).names

    def _nvtx_table(self, progress: Progress | None) -> NvtxTable:
        with self._nvtx_lock:
            if self._nvtx is None:
                self._nvtx = NvtxTable(self._db, self._strings, progress)
            return self._nvtx

    def _nvtx_part(self, name: str, progress: Progress | None) -> Ranges | Marks:
        if name == "ranges":
            return self._kept(name, Ranges, lambda: self._nvtx_table(progress).ranges())
        marks = self._kept(name, Marks, lambda: self._nvtx_table(progress).marks())
        self._nvtx = None  # the decoded table is let go
        return marks

    def payloads(self) -> Payloads:
        """NVTX payloads as JSON text."""
        return self._kept("payloads", Payloads, lambda: read_payloads(self._db, self._strings))

    def chains(self, kind: Kind, progress: Progress | None) -> CallChains:
        """Stack frames of one call-chain table."""
        table = self.table_of(kind)
        return self._kept(
            f"chains-{kind}",
            CallChains,
            lambda: host.build_chains(self._db, self._strings, table, progress),
        )

    def calls(self, ops: Operations, api: ApiCalls) -> Int32:
        """Row in ``api`` of each operation's launching call."""
        arrays = self.derived(
            "calls",
            lambda: {"calls": host.join_calls(ops.process, ops.processes, ops.correlation, api)},
        )
        return arrays["calls"]

    def derived(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Arrays that follow from the parts, from the sidecar or made and stored there."""
        arrays = self.stored(name)
        if arrays is None:
            arrays = make()
            if self._sidecar is not None:
                kept = self._sidecar.store(name, arrays, {})
                return make() if kept is None else kept[0]
        return arrays

    def stored(self, name: str) -> Arrays | None:
        """The same, if it is in the sidecar."""
        arrays = None if self._sidecar is None else self._sidecar.load(name)
        return None if arrays is None else arrays[0]

    def launch_attributes(self, ops: Operations) -> LaunchAttributes:
        """Launch configuration, aligned with the operations through their rowids."""
        return self._kept(
            "launch_attributes", LaunchAttributes, lambda: self._launch_attributes(ops)
        )

    def _launch_attributes(self, ops: Operations) -> LaunchAttributes:
        is_kernel = ops.kind == OpKind.KERNEL
        kernels, others = ops.rowid[is_kernel], np.flatnonzero(~is_kernel)
        places, table = _places_in_table(kernels), TABLES[OpKind.KERNEL]
        book = Tuples(len(_LAUNCH_COLUMNS))

        def coded(raw: RawColumns) -> Arrays:
            return {"code": book.encode([column(raw, name, 0) for name in _LAUNCH_COLUMNS])}

        code = gather(self._db, table, coded, None, len(others))["code"]
        if len(code) > len(kernels):  # some rows are no operations: left out there
            rows = np.flatnonzero(np.isin(read_columns(self._db, table, ()).rowid, kernels))
            places = rows if places is None else rows[places]
        distinct = np.array([*book.values, (0,) * len(_LAUNCH_COLUMNS)], np.int64)
        code = insert(code if places is None else code[places], others, len(distinct) - 1)
        return LaunchAttributes(code, distinct.astype(np.int32))

    @cached_property
    def ranks(self) -> Mapping[int, int]:
        """globalPid -> MPI rank."""
        return read_ranks(self._db)

    def has(self, kind: Kind, fields: tuple[str, ...]) -> bool:
        """Whether the file has a table of a kind with all these fields."""
        return any(
            set(fields) <= self._fields(table).keys() for table in self._db.schema.tables(kind)
        )

    def table_of(self, kind: Kind) -> str:
        """What the file calls the table of a kind."""
        return next(iter(self._db.schema.tables(kind)), str(kind))

    def _fields(self, table: str) -> dict[str, Column]:
        """The believed columns of a table by the names that they have outside the reader."""
        known, present = declared(table), self._db.schema.columns.get(table, {})
        columns = known.columns.values() if known else ()
        return {column.field: column for column in columns if column.name in present}

    def row(self, kind: Kind, rowid: int) -> RawRow:
        """Every column of one row.

        Raises:
            NoDataError: the table or the row does not exist.
        """
        table = self.table_of(kind)
        names = self._db.tables.get(table, ())
        key = self._db.rowid_name(table) if names else None
        listed = ", ".join(map(quoted, names))
        values = (
            self._db.query(f"SELECT {listed} FROM {quoted(table)} WHERE {key} = ?", (int(rowid),))
            if key
            else []
        )
        if not values:
            raise NoDataError(f"{self.path.name}: no row {rowid} in {table}")
        columns = dict(zip(names, values[0], strict=True))
        actual = self._db.schema.columns[table]
        fields = {f: columns[actual[c.name]] for f, c in self._fields(table).items()}
        return RawRow(columns, fields)

    def rows(self, kind: Kind, fields: tuple[str, ...]) -> RawTable:
        """All rows of a rarely used kind; fields that its table lacks hold None."""
        lists: dict[str, list[Any]] = {name: [] for name in fields}
        count = 0
        for table in self._db.schema.tables(kind):
            known = self._fields(table)
            wanted = [known[name].name if name in known else name for name in fields]
            rows = self._db.select(table, wanted)
            count += len(rows)
            for name, values in zip(fields, zip(*rows, strict=True), strict=False):
                is_name = name in known and known[name].type == "s"
                lists[name] += map(self._named, values) if is_name else values
        return RawTable(lists, count)

    def _named(self, string_id: int | None) -> str | None:
        return None if string_id is None else self._strings.get(string_id)

    def numbers(self, kind: Kind, names: tuple[str, ...]) -> tuple[Int64, ...]:
        """Rowids and values of fields of numbers, -1 where a row, or its table, has none."""
        table = self.table_of(kind)
        fields = self._fields(table)
        raw = read_columns(self._db, table, tuple(fields[n].name for n in names if n in fields))
        none = np.full(len(raw.rowid), -1, np.int64)
        return raw.rowid, *(column(raw, fields[n].name) if n in fields else none for n in names)

    def close(self) -> None:
        """Closes the file; mapped parts stay usable."""
        self._db.close()
