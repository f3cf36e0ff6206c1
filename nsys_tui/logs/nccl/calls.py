"""Calls: logged collectives as columns, a row for each COLL line or for some that are alike."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import islice
from types import SimpleNamespace
from typing import Any, Final, TypeAlias

import numpy as np

from nsys_tui.logs.nccl.grammar import DATATYPES, datatype_name, reduction_name
from nsys_tui.model.arrays import Array, Bool, Int32, Int64, Integers
from nsys_tui.model.groups import by_code, factorise, factorise_rows

NO_STEP: Final = -1
UNKNOWN_BYTES: Final = -1


@dataclass(frozen=True, eq=False)
class Calls:
    """Collective calls as columns of equal length; -1 stands for "not known".

    The columns of a long list hold the smallest integers that fit (``narrow``): reckon with them
    in int64.
    """

    file: Int32
    """Index into ``LogResult.files``."""
    line: Int64
    """Line number in the file, from 1."""
    op: Int32
    """Index into ``ops``."""
    count: Int64
    """Elements, as logged."""
    bytes: Int64
    """count × element size of one call; -1 for an unknown data type."""
    datatype: Int32
    """ncclDataType_t as logged."""
    reduction: Int32
    """ncclRedOp_t as logged; means nothing where the operation does not reduce."""
    root: Int32
    """Root rank; for Send and Recv the peer."""
    op_count: Int64
    """NCCL's launch counter of the communicator; calls of one group share it."""
    communicator: Int32
    """Index into ``LogResult.communicators``."""
    process: Int32
    """Index into ``LogResult.processes``; -1 where a torn line kept no header."""
    thread: Int64
    device: Int32
    """Current CUDA device of the calling thread: not the communicator's."""
    rank: Int32
    """Rank in the communicator."""
    gpu: Int32
    """Index into ``LogResult.gpus``."""
    nranks: Int32
    stream: Int32
    """Index into ``streams``."""
    in_place: Bool
    """Whether send and receive buffer are one."""
    step: Int64
    """Step that the call belongs to by the trainer's own step lines."""
    time_ns: Int64
    """Wall clock of the line; ``heads.NO_TIME`` without one."""
    torn: Bool
    """Whether the line was torn, so that process or communicator may be wrong or missing."""
    number: Int64
    """Calls that the row stands for: 1 in a list of calls, more in sums."""
    ops: tuple[str, ...]
    streams: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.line)

    def total(self, rows: Array | slice = slice(None)) -> int:
        """Calls that some of the rows stand for."""
        return int(self.number[rows].sum(dtype=np.int64))

    def are(self, ops: Container[str]) -> Bool:
        """Which calls are of these operations."""
        return np.isin(self.op, [code for code, op in enumerate(self.ops) if op in ops])

    def take(self, which: Array) -> Calls:
        """The calls of a mask or an index array."""
        taken: dict[str, Any] = {name: getattr(self, name)[which] for name in COLUMNS}
        return replace(self, **taken)

    def rows(self) -> Iterator[SimpleNamespace]:
        """Plain rows with names instead of codes; indices of tables are left as they are."""
        part = [getattr(self, name).tolist() for name in COLUMNS]
        for values in zip(*part, strict=True):
            row = SimpleNamespace(**dict(zip(COLUMNS, values, strict=True)))
            row.op = self.ops[row.op]
            row.dtype = datatype_name(row.datatype)
            row.reduction = reduction_name(row.reduction, row.op)
            row.stream = self.streams[row.stream]
            yield row


def narrow(values: Array) -> Array:
    """The same values in as few bytes as hold them: equal ones once, others in small integers."""
    if not len(values):
        return values
    low, high = values.min(), values.max()
    kinds = (np.int8, np.int16, np.int32) if values.dtype.kind == "i" else ()
    fits = (k for k in kinds if np.iinfo(k).min <= int(low) and int(high) <= np.iinfo(k).max)
    kind = next(fits, values.dtype)
    if low == high:
        return np.broadcast_to(values[:1].astype(kind), len(values))
    return values.astype(kind, copy=False)


def rows_by(values: Integers) -> list[tuple[int, Integers]]:
    """Distinct values, ascending, each with its rows in their order."""
    codes, distinct = factorise(values)
    order, edges = by_code(codes, len(distinct))
    parts = np.split(order, edges[1:-1])
    return list(zip(distinct.tolist(), parts, strict=True)) if len(distinct) else []


COLUMNS: Final = tuple(f.name for f in fields(Calls) if f.name not in ("ops", "streams"))
OF_CALLS: Final = ("line", "op_count", "count", "time_ns", "step")
"""Columns that differ from call to call; ``bytes`` follows from ``count``."""
OF_KINDS: Final = tuple(n for n in COLUMNS if n not in (*OF_CALLS, "bytes", "number"))
"""Columns that repeat."""


_SIZES: Final = np.array([size for _, size in DATATYPES])


def call_bytes(count: Int64, datatype: Array) -> Int64:
    """Bytes of calls; ``UNKNOWN_BYTES`` for an unknown data type."""
    known = (datatype >= 0) & (datatype < len(_SIZES))
    return np.where(known, count * _SIZES[np.where(known, datatype, 0)], UNKNOWN_BYTES)


Rows: TypeAlias = "dict[str, Array]"


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Calls that follow one another in one file, packed: of each column first value and steps."""

    size: int
    _columns: dict[str, tuple[int, str, bytes]]

    @classmethod
    def of(cls, rows: Rows) -> Block:
        """Packs columns of equal length, which is not 0."""
        packed = {}
        for name, values in rows.items():
            steps = narrow(np.diff(values.astype(np.int64)))
            packed[name] = (int(values[0]), steps.dtype.str, zlib.compress(steps.tobytes(), 1))
        return cls(len(rows["kind"]), packed)

    def column(self, name: str) -> Int64:
        """One column: of ``OF_CALLS``, or ``kind``."""
        first, kind, packed = self._columns[name]
        values = np.empty(self.size, np.int64)
        values[0] = first
        values[1:] = np.frombuffer(zlib.decompress(packed), kind)
        np.cumsum(values, out=values)
        return values

    def rows(self) -> Rows:
        """All columns."""
        return {name: self.column(name) for name in self._columns}


class KindBook(dict[tuple[int, ...], int]):
    """Kinds of calls by their values, with codes in the order in which a log first shows them."""

    def __init__(self) -> None:
        super().__init__()
        self.first: list[int] = []
        """Line of each one's first call."""
        self.number: list[int] = []
        """Calls of each."""

    def codes(self, columns: Sequence[Array], line: Array) -> Int64:
        """Code of each call of a block, in which new kinds are entered."""
        codes, distinct = factorise_rows(columns)
        _, first, number = np.unique(codes, return_index=True, return_counts=True)
        known = np.empty(len(distinct), np.int64)
        for row in np.argsort(first).tolist():
            code = known[row] = self.setdefault(tuple(distinct[row].tolist()), len(self))
            if code == len(self.first):
                self.first.append(int(line[first[row]]))
                self.number.append(0)
            self.number[code] += int(number[row])
        return known[codes]

    def cut(self, size: int) -> None:
        """Forgets all but the first kinds: those of a file that cannot be read to its end."""
        for key in [*self][size:]:
            del self[key]
        del self.first[size:], self.number[size:]

    def columns(self, names: Sequence[str]) -> Rows:
        """The values of all kinds by name, with ``first`` and ``number``."""
        table = np.array([*self], np.int64).reshape(len(self), len(names)).T
        values = dict(zip(names, table, strict=True))
        return values | {"first": np.array(self.first), "number": np.array(self.number)}


@dataclass(frozen=True, eq=False)
class CallLog:
    """Calls in file and line order."""

    kinds: Rows
    """Columns of ``Calls`` that repeat, by kind; while a log is read, ``KindBook.columns``."""
    blocks: tuple[Block, ...]
    ops: tuple[str, ...]
    streams: tuple[str, ...]

    def __len__(self) -> int:
        return sum(block.size for block in self.blocks)

    def calls(self, rows: Rows) -> Calls:
        """Rows of a block, or sums of kinds, with their names."""
        given = {"number": np.broadcast_to(np.int8(1), len(rows["kind"])), **rows}
        kind = given.pop("kind")
        given |= {name: self.kinds[name][kind] for name in OF_KINDS}
        size = call_bytes(given["count"], given["datatype"])
        return Calls(**given, bytes=size, ops=self.ops, streams=self.streams)

    def _rows(self, kinds: Bool | None) -> Iterator[Rows]:
        for block in self.blocks:
            rows = block.rows()
            yield rows if kinds is None else take(rows, kinds[rows["kind"]])

    def parts(self, kinds: Bool | None = None) -> Iterator[Calls]:
        """The calls block by block, or those of some kinds."""
        return map(self.calls, self._rows(kinds))

    def select(self, kinds: Bool | None = None) -> Calls:
        """All calls, or those of some kinds, as one list."""
        chosen = self.calls(joined([*map(narrowed, self._rows(kinds))] or [no_rows()]))
        return replace(chosen, bytes=narrow(chosen.bytes))

    def mapped(self, change: Callable[[Rows], Rows]) -> CallLog:
        """The same calls with the rows of each block changed, or fewer of them."""
        changed = (change(block.rows()) for block in self.blocks)
        return replace(self, blocks=tuple(Block.of(rows) for rows in changed if len(rows["kind"])))

    def where(self, test: Callable[[Rows], Bool]) -> CallLog:
        """The calls that fulfil a test."""
        return self.mapped(lambda rows: take(rows, test(rows)))

    @cached_property
    def sums(self) -> Calls:
        """Calls that differ in line, counter, time and step at most, as one row: the first first.

        Its ``number`` says how many they are.
        """
        parts = [np.empty((0, 3), np.int64)]
        for block in self.blocks:
            codes, pairs = factorise_rows([block.column("kind"), block.column("count")])
            _, first, number = np.unique(codes, return_index=True, return_counts=True)
            parts.append(np.column_stack((pairs, number))[np.argsort(first)])
        every = np.concatenate(parts)
        if not len(every):
            return self.calls(no_rows())
        codes, pairs = factorise_rows([every[:, 0], every[:, 1]])
        number = np.zeros(len(pairs), np.int64)
        np.add.at(number, codes, every[:, 2])
        order = np.argsort(np.unique(codes, return_index=True)[1])
        rows = {"kind": pairs[order, 0], "count": pairs[order, 1], "number": number[order]}
        unknown = np.broadcast_to(np.int64(-1), len(order))
        return self.calls(rows | {name: unknown for name in OF_CALLS if name != "count"})

    @cached_property
    def by_kind(self) -> Calls:
        """Each kind once, for what does not differ from call to call."""
        unknown = np.broadcast_to(np.int64(-1), len(self.kinds["op"]))
        return self.calls({"kind": np.arange(len(unknown)), **dict.fromkeys(OF_CALLS, unknown)})

    @property
    def counter_stands_still(self) -> bool:
        """Whether opCount is 0 on all lines."""
        return not any(block.column("op_count").any() for block in self.blocks)

    def rows(self, stop: int | None = None) -> Iterator[SimpleNamespace]:
        """Plain rows with names instead of codes; indices of tables are left as they are."""
        return islice((row for part in self.parts() for row in part.rows()), stop)


def no_rows() -> Rows:
    """A block without calls."""
    return {name: np.empty(0, np.int64) for name in ("kind", *OF_CALLS)}


def joined(parts: Sequence[Rows]) -> Rows:
    """The rows of some blocks as one list."""
    return {name: narrow(np.concatenate([one[name] for one in parts])) for name in parts[0]}


def narrowed(rows: Rows) -> Rows:
    """The same rows in as few bytes as hold them."""
    return {name: narrow(values) for name, values in rows.items()}


def take(rows: Rows, which: Array) -> Rows:
    """Some of the rows of a block."""
    return {name: values[which] for name, values in rows.items()}


@dataclass(frozen=True, slots=True)
class Reach:
    """Calls of one communicator."""

    before: int
    """Calls before these: in a block, those of the blocks before it."""
    number: int
    first: int
    """opCount of the first one."""
    last: int
    low: int
    """Least opCount."""
    high: int
    end: tuple[int, int]
    """Block and row of the last one."""

    def keys(self, by_order: bool) -> tuple[int, int]:
        """The least and the greatest opCount, or the places of the first and the last call."""
        return (self.before, self.before + self.number - 1) if by_order else (self.low, self.high)

    def ends(self, by_order: bool) -> tuple[int, int]:
        """opCount of the first and of the last call, or their places."""
        return self.keys(True) if by_order else (self.first, self.last)


def reaches(log: CallLog, kinds: Bool) -> tuple[dict[int, Reach], list[dict[int, Reach]]]:
    """Reach of each communicator with calls of some kinds: over the log, and in each block."""
    whole: dict[int, Reach] = {}
    parts = []
    for place, block in enumerate(log.blocks):
        kind, op_count = block.column("kind"), block.column("op_count")
        mine = np.flatnonzero(kinds[kind])
        part = {}
        for one, at in rows_by(log.by_kind.communicator[kind[mine]]):
            counts, known = op_count[mine[at]], whole.get(one)
            first, last, low, high = map(int, (counts[0], counts[-1], counts.min(), counts.max()))
            before, end = known.number if known else 0, (place, int(mine[at[-1]]))
            own = part[one] = Reach(before, len(at), first, last, low, high, end)
            whole[one] = own
            if known:
                number, low, high = before + len(at), min(low, known.low), max(high, known.high)
                whole[one] = Reach(0, number, known.first, last, low, high, end)
        parts.append(part)
    return whole, parts


def begun_late(log: CallLog) -> set[int]:
    """Communicators whose first call in the logs is not their first one: NCCL counts from 0."""
    whole, _ = reaches(log, np.ones(len(log.by_kind), np.bool_))
    return {one for one, reach in whole.items() if reach.first > 0}
