"""CALL lines: the functions of NCCL's API as a program called them, with their arguments.

``ncclAllReduce(sendbuff,recvbuff,count,dtype,op,root,comm,stream)``; other functions have arguments
of their own, which are kept as text. A CALL line repeats what a COLL line says of the same call, so
it is counted beside the COLL lines and never with them.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from nsys_tui.logs.nccl.calls import Block
from nsys_tui.logs.nccl.coll_bodies import Codes
from nsys_tui.logs.nccl.grammar import OPERATIONS, datatype_name, element_bytes, reduction_name

_COLLECTIVE: Final = re.compile(
    rb"(\d{1,18}),(\d{1,9}),(\d{1,9}),(-?\d{1,9}),((?:0x)?[0-9a-f]+|\(nil\)),"
    rb"((?:0x)?[0-9a-f]+|\(nil\))\)"
)
_COLLECTIVES: Final = frozenset(f"nccl{op}".encode() for op in (*OPERATIONS, "Bcast"))
_ALIASES: Final = {"Bcast": "Broadcast"}


@dataclass(slots=True)
class ApiLines:
    """The CALL lines of one file, those that differ in their buffers only with one code."""

    texts: Codes[tuple[int, bytes, bytes]] = field(default_factory=Codes)
    """(process, function, arguments from ``(`` on), of a collective without its two buffers."""
    line: array[int] = field(default_factory=lambda: array("q"))
    code: array[int] = field(default_factory=lambda: array("i"))
    in_place: bytearray = field(default_factory=bytearray)
    blocks: list[Block] = field(default_factory=list)
    """Lines before those, packed."""

    def add(self, process: int, message: bytes, line: int) -> None:
        """Takes in the message of a CALL line."""
        name, _, arguments = message.partition(b"(")
        same = False
        if name in _COLLECTIVES:
            send, _, arguments = arguments.partition(b",")
            receive, _, arguments = arguments.partition(b",")
            same = send == receive
        self.line.append(line)
        self.code.append(self.texts[process, name, arguments])
        self.in_place.append(same)

    def pack(self) -> None:
        """Packs the lines of a block that has been read."""
        columns = {"kind": self.code, "line": self.line, "in_place": self.in_place}
        if self.line:
            self.blocks.append(Block.of({k: np.array(v, np.int64) for k, v in columns.items()}))
        for column in columns.values():
            del column[:]


@dataclass(frozen=True)
class ApiCall:
    """One call as written, whatever its buffers; -1 for what a function has not."""

    process: int
    """Index into ``LogResult.processes``."""
    function: str
    count: int
    datatype: int
    reduction: int
    root: int
    """Root rank; for ncclSend and ncclRecv the peer."""
    pointer: str
    """The communicator."""
    stream: str
    arguments: str
    """Of a function that is no collective, or of a torn line, as printed."""

    @property
    def op(self) -> str:
        """The operation as COLL lines name it."""
        name = self.function.removeprefix("nccl")
        return _ALIASES.get(name, name)

    @property
    def bytes(self) -> int:
        """count × element size; -1 where there is none."""
        size = element_bytes(self.datatype)
        return -1 if size is None or self.count < 0 else self.count * size

    @property
    def dtype(self) -> str:
        """Name of the data type, empty without one."""
        return "" if self.datatype < 0 else datatype_name(self.datatype)

    @property
    def reduction_name(self) -> str:
        """Name of the reduction, empty without one."""
        return "" if self.reduction < 0 else reduction_name(self.reduction, self.op)


@dataclass(frozen=True)
class ApiRow:
    """CALL lines of one function that agree in count, type and reduction."""

    function: str
    calls: int
    count: int
    dtype: str
    reduction: str
    bytes: int
    """Of one call; -1 where there is none."""
    processes: int


class LoggedCall(NamedTuple):
    """One CALL line."""

    file: int
    """Index into ``LogResult.files``."""
    line: int
    call: ApiCall
    in_place: bool


@dataclass(frozen=True, eq=False)
class ApiLog:
    """All CALL lines."""

    calls: tuple[ApiCall, ...]
    blocks: tuple[tuple[int, int, Block], ...]
    """Lines with their file, and with the place in ``calls`` that their first kind has."""

    def __len__(self) -> int:
        return sum(block.size for _, _, block in self.blocks)

    def per_function(self) -> tuple[ApiRow, ...]:
        """Lines by function, count, type and reduction; most bytes first, then most lines."""
        lines: Counter[tuple[str, int, str, str, int]] = Counter()
        processes: dict[tuple[str, int, str, str, int], set[int]] = {}
        counts = np.zeros(len(self.calls), np.int64)
        for _, first, block in self.blocks:
            counts += np.bincount(block.column("kind") + first, minlength=len(counts))
        for one, number in zip(self.calls, counts.tolist(), strict=True):
            key = (one.function, one.count, one.dtype, one.reduction_name, one.bytes)
            lines[key] += number
            processes.setdefault(key, set()).add(one.process)
        rows = [
            ApiRow(key[0], number, *key[1:], len(processes[key])) for key, number in lines.items()
        ]
        return tuple(sorted(rows, key=lambda row: (-row.calls * max(row.bytes, 0), -row.calls)))

    def rows(self) -> Iterator[LoggedCall]:
        """Each line in order."""
        for file, first, block in self.blocks:
            columns = (block.column(name).tolist() for name in ("kind", "line", "in_place"))
            for kind, line, in_place in zip(*columns, strict=True):
                yield LoggedCall(file, line, self.calls[first + kind], bool(in_place))


def join_api(parts: Sequence[ApiLines], processes: Sequence[int]) -> ApiLog:
    """The CALL lines of all files.

    Args:
        parts: those of each file.
        processes: index in the result of each process that the parts name.
    """
    calls: list[ApiCall] = []
    blocks: list[tuple[int, int, Block]] = []
    for file, part in enumerate(parts):
        blocks += [(file, len(calls), block) for block in part.blocks]
        calls += [
            _decode(processes[process] if process >= 0 else -1, name, arguments)
            for process, name, arguments in part.texts
        ]
    return ApiLog(tuple(calls), tuple(blocks))


def _decode(process: int, name: bytes, printed: bytes) -> ApiCall:
    function, arguments = name.strip().decode("utf-8", "replace"), printed.strip()
    match = _COLLECTIVE.fullmatch(arguments)
    if match is None:
        text = arguments.removesuffix(b")").decode("utf-8", "replace")
        return ApiCall(process, function, -1, -1, -1, -1, "", "", text)
    count, datatype, reduction, root = (int(word) for word in match.groups()[:4])
    pointer, stream = (_pointer(word.decode()) for word in match.groups()[4:])
    return ApiCall(process, function, count, datatype, reduction, root, pointer, stream, "")


def _pointer(text: str) -> str:
    return text if text.startswith(("0x", "(")) else f"0x{text}"
