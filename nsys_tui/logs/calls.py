"""Calls: logged collectives as columns, a row for each COLL line or for some that are alike."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.logs.grammar import DATATYPES, datatype_name, reduction_name
from nsys_tui.model.groups import by_code, factorise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

NO_STEP: Final = -1
UNKNOWN_BYTES: Final = -1


@dataclass(frozen=True, eq=False)
class Calls:
    """Collective calls as columns of equal length; -1 stands for "not known".

    The columns of a long list hold the smallest integers that fit (``narrow``): reckon with them
    in int64.
    """

    file: NDArray[np.int32]
    """Index into ``LogResult.files``."""
    line: NDArray[np.int64]
    """Line number in the file, from 1."""
    op: NDArray[np.int32]
    """Index into ``ops``."""
    count: NDArray[np.int64]
    """Elements, as logged."""
    bytes: NDArray[np.int64]
    """count × element size of one call; -1 for an unknown data type."""
    datatype: NDArray[np.int32]
    """ncclDataType_t as logged."""
    reduction: NDArray[np.int32]
    """ncclRedOp_t as logged; means nothing where the operation does not reduce."""
    root: NDArray[np.int32]
    """Root rank; for Send and Recv the peer."""
    op_count: NDArray[np.int64]
    """NCCL's launch counter of the communicator; calls of one group share it."""
    communicator: NDArray[np.int32]
    """Index into ``LogResult.communicators``."""
    process: NDArray[np.int32]
    """Index into ``LogResult.processes``; -1 where a torn line kept no header."""
    thread: NDArray[np.int64]
    device: NDArray[np.int32]
    """Current CUDA device of the calling thread: not the communicator's."""
    rank: NDArray[np.int32]
    """Rank in the communicator."""
    gpu: NDArray[np.int32]
    """Index into ``LogResult.gpus``."""
    nranks: NDArray[np.int32]
    stream: NDArray[np.int32]
    """Index into ``streams``."""
    in_place: NDArray[np.bool_]
    """Whether send and receive buffer are one."""
    step: NDArray[np.int64]
    """Step that the call belongs to by the trainer's own step lines."""
    time_ns: NDArray[np.int64]
    """Wall clock of the line; ``heads.NO_TIME`` without one."""
    torn: NDArray[np.bool_]
    """Whether the line was torn, so that process or communicator may be wrong or missing."""
    number: NDArray[np.int64]
    """Calls that the row stands for: 1 in a list of calls, more in sums."""
    ops: tuple[str, ...]
    streams: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.line)

    def total(self, rows: NDArray[Any] | slice = slice(None)) -> int:
        """Calls that some of the rows stand for."""
        return int(self.number[rows].sum(dtype=np.int64))

    def take(self, which: NDArray[Any]) -> Calls:
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


def narrow(values: NDArray[Any]) -> NDArray[Any]:
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


def rows_by(values: NDArray[np.integer]) -> list[tuple[int, NDArray[np.integer]]]:
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


def call_bytes(count: NDArray[np.int64], datatype: NDArray[Any]) -> NDArray[np.int64]:
    """Bytes of calls; ``UNKNOWN_BYTES`` for an unknown data type."""
    known = (datatype >= 0) & (datatype < len(_SIZES))
    return np.where(known, count * _SIZES[np.where(known, datatype, 0)], UNKNOWN_BYTES)
