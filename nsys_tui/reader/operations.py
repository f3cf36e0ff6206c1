"""GPU work: kernels, copies, memsets, graph launches and rendering become one set of operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final, TypeAlias

import numpy as np

from nsys_tui.model.arrays import Array, Int16, Int32, Int64, UInt8
from nsys_tui.model.categories import Category, OpKind, is_communication
from nsys_tui.model.events import Operations, OpName
from nsys_tui.model.groups import factorise_rows, regroup
from nsys_tui.model.notes import Note
from nsys_tui.model.progress import Progress
from nsys_tui.model.target import PROCESS_MASK, Device, Stream, pid_of
from nsys_tui.reader.encode import (
    NO_ID,
    Strings,
    column,
    ends,
    instants,
    is_null,
    iter_columns,
    sample_columns,
)
from nsys_tui.reader.filecheck import unreadable
from nsys_tui.reader.gather import (
    NOTHING,
    Arrays,
    Codebook,
    Convert,
    Tuples,
    asked_by,
    gather,
    merge,
)
from nsys_tui.reader.raw_columns import RawColumns
from nsys_tui.reader.schema import COPY_KINDS
from nsys_tui.reader.sqlite import Database
from nsys_tui.reader.target import Devices, read_stream_facts

TABLES: Final = {
    OpKind.KERNEL: "CUPTI_ACTIVITY_KIND_KERNEL",
    OpKind.MEMCPY: "CUPTI_ACTIVITY_KIND_MEMCPY",
    OpKind.MEMSET: "CUPTI_ACTIVITY_KIND_MEMSET",
    OpKind.GRAPH: "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    OpKind.OPENGL: "OPENGL_WORKLOAD",
    OpKind.VULKAN: "VULKAN_WORKLOAD",
    OpKind.DX12: "DX12_WORKLOAD",
}
_RENDERING: Final = {OpKind.OPENGL: "OpenGL", OpKind.VULKAN: "Vulkan", OpKind.DX12: "Direct3D 12"}
_CATEGORIES: Final = {
    OpKind.MEMCPY: Category.MEMORY,
    OpKind.MEMSET: Category.MEMORY,
    OpKind.GRAPH: Category.GRAPH,
    **dict.fromkeys(_RENDERING, Category.COMPUTE),
}
"""Of all but kernels, whose names decide."""
UVM_KINDS: Final = (11, 12, 13)
_UNKNOWN_MEMORY: Final = 255
_SAMPLED: Final = 10_000
_MOST_DEVICES: Final = np.iinfo(np.int16).max


def build_operations(
    db: Database,
    strings: Strings,
    progress: Progress | None = None,
    patterns: tuple[str, ...] = (),
) -> Operations:
    """Reads the four tables of GPU work in full.

    Communication is told by the built-in patterns and the user's own ``patterns``.
    """
    rows = sum(map(db.row_count, TABLES.values()))

    def read(table: str, convert: Convert) -> Arrays:
        return gather(db, table, convert, progress, rows - db.row_count(table))

    ops = _build(db, strings, read, patterns)
    _note_doubles(db, ops)
    return ops


@dataclass(frozen=True)
class KernelNames:
    """Names of kernels, as the cache keeps them."""

    names: tuple[OpName, ...]


def kernel_names(db: Database, strings: Strings) -> KernelNames:
    """The names of all kernels, in the order in which ``build_operations`` has them."""
    namer = _KernelNames()
    gather(db, TABLES[OpKind.KERNEL], lambda raw: {"name": namer.encode(raw)}, None)
    return KernelNames(tuple(dict.fromkeys(namer.names(strings))))


def some_kernel_names(db: Database, strings: Strings) -> tuple[OpName, ...]:
    """Names of the first kernels, and of a sample of the others."""
    namer, table = _KernelNames(), TABLES[OpKind.KERNEL]
    columns, _ = asked_by(lambda raw: {"name": namer.encode(raw)})
    for first in islice(iter_columns(db, table, columns), 1):
        namer.encode(first)
        namer.encode(sample_columns(db, table, columns, _SAMPLED))
    return tuple(dict.fromkeys(namer.names(strings)))


def sample_operations(
    db: Database, strings: Strings, rows: int, patterns: tuple[str, ...] = ()
) -> Operations:
    """Reads an evenly spaced sample of about ``rows`` operations per table."""

    def read(table: str, convert: Convert) -> Arrays:
        return convert(sample_columns(db, table, asked_by(convert)[0], rows))

    return _build(db, strings, read, patterns)


def _build(
    db: Database,
    strings: Strings,
    read: Callable[[str, Convert], Arrays],
    patterns: tuple[str, ...],
) -> Operations:
    places = Tuples(4)
    names: list[OpName] = []
    categories: list[UInt8] = []
    parts: list[Arrays] = []
    for kind, table in TABLES.items():
        if not db.has_rows(table):
            continue
        namer = _NAMERS[kind]()
        part = read(table, _converter(kind, places, namer))
        part["kind"] = np.full(len(part["start"]), kind, np.uint8)
        part["name"][:], distinct = regroup(part["name"], namer.names(strings))
        part["name"] += np.int32(len(names))
        parts.append(part)
        names += distinct
        categories.append(_category(kind, distinct, patterns))
    arrays: Arrays = merge(parts) if parts else {"kind": np.empty(0, np.uint8)}
    _fill_missing(arrays)
    category = np.concatenate([np.empty(0, np.uint8), *categories])
    processes, devices, streams, of_place = _places(db, places.values)
    place = arrays.pop("place")
    process = of_place[0][place]
    marker = arrays.pop("marker", np.zeros(len(process), bool))
    return Operations(
        **arrays,
        category=category[arrays["name"]],
        process=process,
        device=of_place[1][place],
        stream=of_place[2][place],
        counted=_counted(arrays, process) & ~marker,
        names=tuple(names),
        processes=processes,
        devices=devices,
        streams=streams,
    )


def _converter(kind: OpKind, places: Tuples, namer: _Namer) -> Convert:
    """Makes the kept columns of one piece of a table; a column absent here is zero."""
    if kind in _RENDERING:
        return partial(_rendering, kind, places, namer)

    def convert(raw: RawColumns) -> Arrays:
        where = [column(raw, name) for name in ("globalPid", "deviceId", "contextId")]
        stream, correlation = column(raw, "streamId", 0), column(raw, "correlationId")
        kept: Arrays = {}
        if kind is OpKind.MEMCPY:
            kept["copy_kind"] = column(raw, "copyKind", 0).astype(np.uint8)
            unified = np.isin(kept["copy_kind"], UVM_KINDS)
            correlation = np.where(unified, -1, correlation)
            kept["migration"] = column(raw, "migrationCause", 0).astype(np.uint8)
            kept["src_kind"] = column(raw, "srcKind", _UNKNOWN_MEMORY).astype(np.uint8)
            kept["dst_kind"] = column(raw, "dstKind", _UNKNOWN_MEMORY).astype(np.uint8)
        if kind is OpKind.MEMSET:
            kept["src_kind"] = column(raw, "memKind", _UNKNOWN_MEMORY).astype(np.uint8)
        if kind in (OpKind.MEMCPY, OpKind.MEMSET):
            kept["bytes"] = column(raw, "bytes", 0)
        if kind is not OpKind.GRAPH:
            kept["graph_node"] = column(raw, "graphNodeId", 0)
        return kept | {
            "start": instants(raw, "start"),
            "end": ends(raw),
            "rowid": raw.rowid,
            "correlation": correlation,
            "name": namer.encode(raw),
            "place": places.encode([*where, stream]),
        }

    return convert


def _rendering(kind: OpKind, places: Tuples, namer: _Namer, raw: RawColumns) -> Arrays:
    """The same for graphics: a context of the library has one stream, known by a negative id."""
    process = column(raw, "globalTid") & PROCESS_MASK
    context = "shortContextId" if kind is OpKind.DX12 else "contextId"
    stream = np.full(len(raw.rowid), -int(kind), np.int64)
    return {
        "start": instants(raw, "start"),
        "end": ends(raw),
        "rowid": raw.rowid,
        "correlation": np.full(len(raw.rowid), NO_ID, np.int64),
        "name": namer.encode(raw),
        "place": places.encode([process, column(raw, "gpu"), column(raw, context), stream]),
        "marker": ~is_null(raw, "textId"),
    }


def _fill_missing(arrays: Arrays) -> None:
    """Columns that no table of the report has; unknown memory kinds of kernels and graphs."""
    rows, copies = len(arrays["kind"]), arrays["kind"] == OpKind.MEMCPY
    for kind in (OpKind.KERNEL, OpKind.MEMCPY):
        for name, values in _converter(kind, Tuples(4), _NAMERS[kind]())(NOTHING).items():
            arrays.setdefault(name, np.zeros(rows, values.dtype))
    arrays["src_kind"][~(copies | (arrays["kind"] == OpKind.MEMSET))] = _UNKNOWN_MEMORY
    arrays["dst_kind"][~copies] = _UNKNOWN_MEMORY


_SAME: Final = ("start", "end", "correlation", "graph_node", "kind", "name", "stream", "bytes")


def _note_doubles(db: Database, ops: Operations) -> None:
    """Says how many rows stand twice; migrations may be alike: no call tells them apart."""
    ties = np.flatnonzero(ops.start[1:] == ops.start[:-1])
    rows = np.union1d(ties, ties + 1)
    rows = rows[ops.correlation[rows] != NO_ID]
    code, _ = factorise_rows([getattr(ops, name)[rows] for name in _SAME])
    again = np.delete(ops.kind[rows], np.unique(code, return_index=True)[1])
    for kind, count in Counter(again.tolist()).items():
        table, alone = TABLES[OpKind(kind)], count == 1
        rows_of = f"{count:,} {'row' if alone else 'rows'} of {table}"
        then = f"repeat{'s' * alone} another in everything: counted all the same"
        db.notes.add(Note(f"{rows_of} {then}", table))


class _RenderingNames:
    """Work of OpenGL, Vulkan and Direct3D: the call that gave it, or the text of a marker."""

    def __init__(self, library: str) -> None:
        self._codes = Codebook()
        self._library = library

    def encode(self, raw: RawColumns) -> Int32:
        text = column(raw, "textId")
        return self._codes.encode(np.where(text == NO_ID, column(raw, "nameId"), text))

    def names(self, strings: Strings) -> list[OpName]:
        labels = [f"[{self._library} {strings.get(name)}]" for name in self._codes.values]
        return [OpName(label, label, label) for label in labels]


class _KernelNames:
    """Kernels: distinct (demangled, short, mangled) names."""

    def __init__(self) -> None:
        self._ids = Tuples(3)

    def encode(self, raw: RawColumns) -> Int32:
        demangled = column(raw, "demangledName")
        short = column(raw, "shortName") if "shortName" in raw.values else demangled
        mangled = column(raw, "mangledName") if "mangledName" in raw.values else demangled
        return self._ids.encode([demangled, short, np.where(mangled == -1, demangled, mangled)])

    def names(self, strings: Strings) -> list[OpName]:
        return [
            OpName(strings.get(short), strings.get(demangled), strings.get(mangled))
            for demangled, short, mangled in self._ids.values
        ]


class _LabelledNames:
    """Operations named by one number of theirs."""

    def __init__(self, source: str, label: Callable[[int], str]) -> None:
        self._codes = Codebook()
        self._source, self._label = source, label

    def encode(self, raw: RawColumns) -> Int32:
        return self._codes.encode(column(raw, self._source, 0))

    def names(self, _: Strings) -> list[OpName]:
        labels = [self._label(value) for value in self._codes.values]
        return [OpName(label, label, label) for label in labels]


def _copy_names() -> _LabelledNames:
    return _LabelledNames("copyKind", lambda kind: f"[CUDA memcpy {_copy_label(kind)}]")


def _copy_label(kind: int) -> str:
    return COPY_KINDS[kind] if 0 <= kind < len(COPY_KINDS) else f"kind {kind}"


_Namer: TypeAlias = _KernelNames | _LabelledNames | _RenderingNames
_NAMERS: Final[dict[OpKind, Callable[[], _Namer]]] = {
    OpKind.KERNEL: _KernelNames,
    OpKind.MEMCPY: _copy_names,
    OpKind.MEMSET: lambda: _LabelledNames("memset", lambda _: "[CUDA memset]"),
    OpKind.GRAPH: lambda: _LabelledNames("graphId", lambda graph: f"[CUDA graph {graph}]"),
    **{kind: partial(_RenderingNames, library) for kind, library in _RENDERING.items()},
}


def _category(kind: OpKind, names: list[OpName], patterns: tuple[str, ...]) -> UInt8:
    """Category of each name code."""
    if kind is OpKind.KERNEL:
        flags = [
            Category.COMM
            if is_communication((name.short, name.demangled), patterns)
            else Category.COMPUTE
            for name in names
        ]
        return np.array(flags, np.uint8)
    return np.full(len(names), _CATEGORIES[kind], np.uint8)


def _places(
    db: Database, keys: list[tuple[int, ...]]
) -> tuple[Int64, tuple[Device, ...], tuple[Stream, ...], tuple[Int32, Int16, Int32]]:
    """Processes, devices and streams, and for each place code its index into each of them.

    Args:
        db: the open report.
        keys: (globalPid, deviceId, contextId, streamId) of each place code.
    """
    keys = [(_own_process(db, process), *rest) for process, *rest in keys]
    processes = sorted({process for process, *_ in keys})
    pairs = sorted({(process, ordinal) for process, ordinal, _, _ in keys})
    devices, of_pair = Devices(db).assign(pairs)
    if len(devices) > _MOST_DEVICES:
        cause = f"its GPU operations name {len(devices):,} different GPUs"
        raise unreadable(db.path, cause, "export or copy the report again")
    device = dict(zip(pairs, of_pair, strict=True))
    identities = [(p, device[p, o], c, s) for p, o, c, s in keys]
    distinct = sorted(set(identities))
    facts = read_stream_facts(db)
    streams = tuple(
        Stream(p, d, c, s, *facts.get((pid_of(p), c, s), (_rendering_name(s), 0, None)))
        for p, d, c, s in distinct
    )
    of_process = {process: number for number, process in enumerate(processes)}
    of_stream = {identity: number for number, identity in enumerate(distinct)}
    of_place = (
        np.array([of_process[key[0]] for key in keys], np.int32),
        np.array([identity[1] for identity in identities], np.int16),
        np.array([of_stream[identity] for identity in identities], np.int32),
    )
    return np.array(processes, np.int64), devices, streams, of_place


def _rendering_name(stream: int) -> str:
    """The library that a stream of graphics stands for; empty for CUDA's."""
    return next((name for kind, name in _RENDERING.items() if stream == -kind), "")


def _own_process(db: Database, process: int) -> int:
    """Exports of 2018-2019 lack globalPid: with one process in the API table it is that one."""
    known = db.only_process() if process == -1 else None
    return process if known is None else known


def _counted(arrays: dict[str, Array], process: Int32) -> Array:
    """False for graph launches whose nodes were traced too (definitions: "GPU operation")."""
    counted = np.ones(len(process), bool)
    graphs = np.flatnonzero(arrays["kind"] == OpKind.GRAPH)
    nodes = np.flatnonzero(arrays["graph_node"] != 0) if len(graphs) else graphs
    if not len(graphs) or not len(nodes):
        return counted
    correlation = arrays["correlation"]
    traced = set(zip(process[nodes].tolist(), correlation[nodes].tolist(), strict=True))
    launches = zip(process[graphs].tolist(), correlation[graphs].tolist(), strict=True)
    counted[graphs] = [launch not in traced for launch in launches]
    return counted
