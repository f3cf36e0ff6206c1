"""What the host did: API and OS calls, MPI and overhead ranges, waits, samples, memory, metrics."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from nsys_tui.model.arrays import Array, Int32, Int64, UInt8
from nsys_tui.model.events import (
    ApiCalls,
    CallChains,
    GpuMetrics,
    HostEvents,
    MemoryUsage,
    OsrtCalls,
    Samples,
    Syncs,
)
from nsys_tui.model.kinds import MPI, OPENACC, Kind
from nsys_tui.model.progress import Progress
from nsys_tui.reader.encode import (
    Strings,
    codes,
    column,
    combine,
    ends,
    in_start_order,
    instants,
    note_unknown,
    read_columns,
)
from nsys_tui.reader.gather import Arrays, Codebook, Tuples, gather, merge
from nsys_tui.reader.raw_columns import RawColumns
from nsys_tui.reader.schema import TABLES
from nsys_tui.reader.sqlite import Database
from nsys_tui.reader.target import Devices

_NO_STREAM: Final = 4294967295
"""How the export writes "the whole context" in SYNCHRONIZATION.streamId."""

_API: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
_API_CLASSES: Final = (0, 1, 67)
"""CUDA runtime, CUDA driver, a backtrace of a call."""
_NO_CLASS: Final = 255
_NO_RESULT: Final = -(2**31)

_HOST_KINDS: Final = (
    *MPI,
    Kind.UCX_SUBMIT,
    Kind.UCX_PROGRESS,
    Kind.UCX,
    Kind.PROFILER_OVERHEAD,
    Kind.CUDA_OVERHEAD,
    Kind.SYSCALL,
    Kind.CUDNN,
    Kind.CUBLAS,
    *OPENACC,
)
"""Kinds of host ranges with a thread and a name."""


def _thread_events(raw: RawColumns) -> dict[str, Array]:
    return {"start": instants(raw, "start"), "end": ends(raw), "rowid": raw.rowid}


def build_api(db: Database, strings: Strings, progress: Progress | None) -> ApiCalls:
    """Reads CUDA API calls; exports without eventClass count as runtime calls."""
    threads, names = Codebook(), Codebook()

    def convert(raw: RawColumns) -> Arrays:
        return _thread_events(raw) | {
            "thread": threads.encode(column(raw, "globalTid")),
            "name": names.encode(column(raw, "nameId")),
            "correlation": column(raw, "correlationId"),
            "event_class": _call_class(column(raw, "eventClass", 0)),
            "return_value": column(raw, "returnValue", _NO_RESULT).astype(np.int32),
            "callchain": column(raw, "callchainId"),
        }

    arrays = merge([gather(db, _API, convert, progress)])
    note_unknown(
        db, _API, "eventClass", arrays["event_class"], _API_CLASSES, ": taken for no launch"
    )
    return ApiCalls(**arrays | _dictionaries(arrays, threads, names, strings))


def _call_class(values: Int64) -> UInt8:
    return np.where((values < 0) | (values > _NO_CLASS), _NO_CLASS, values).astype(np.uint8)


def build_osrt(db: Database, strings: Strings, progress: Progress | None) -> OsrtCalls:
    """Reads OS runtime calls."""
    threads, names = Codebook(), Codebook()

    def convert(raw: RawColumns) -> Arrays:
        chain = column(raw, "callchainId")
        return _thread_events(raw) | {
            "thread": threads.encode(column(raw, "globalTid")),
            "name": names.encode(column(raw, "nameId")),
            "nesting": column(raw, "nestingLevel", 0).astype(np.int32),
            "callchain": np.where(chain == 0, -1, chain),
            "return_value": column(raw, "returnValue", np.iinfo(np.int64).min),
            "event_class": column(raw, "eventClass", 27).astype(np.uint8),
        }

    arrays = merge([gather(db, "OSRT_API", convert, progress)])
    return OsrtCalls(**arrays | _dictionaries(arrays, threads, names, strings))


def _dictionaries(
    arrays: Arrays, threads: Codebook, names: Codebook, strings: Strings
) -> dict[str, Any]:
    """Threads and names in ascending order of their ids, with codes to match."""
    thread_ids, thread = threads.ascending(arrays["thread"])
    name_ids, name = names.ascending(arrays["name"])
    texts, name = strings.named(name_ids.tolist(), name)
    return {"thread": thread, "threads": thread_ids, "name": name, "names": texts}


def build_host_events(db: Database, strings: Strings, progress: Progress | None) -> HostEvents:
    """Reads MPI, UCX, overhead, syscall and library ranges into one set."""
    parts: list[dict[str, Array]] = []
    kinds: list[str] = []
    for kind, table in ((k, table) for k in _HOST_KINDS for table in db.schema.tables(k)):
        if not db.has_rows(table):
            continue
        name_column = _name_column(table)
        columns = ("start", "end", "globalTid", name_column, "overheadType")
        raw = read_columns(db, table, columns, progress)
        parts.append(
            _thread_events(raw)
            | {
                "globalTid": column(raw, "globalTid"),
                "nameId": column(raw, name_column),
                "kind": np.full(len(raw.rowid), len(kinds), np.uint8),
                "overhead": column(raw, "overheadType", 0).astype(np.uint8),
            }
        )
        kinds.append(kind)
    if not parts:
        nothing = np.empty(0, np.int64)
        parts = [dict.fromkeys(("start", "end", "rowid", "globalTid", "nameId"), nothing)]
        parts[0] |= dict.fromkeys(("kind", "overhead"), np.empty(0, np.uint8))
    arrays = in_start_order({key: np.concatenate([p[key] for p in parts]) for key in parts[0]})
    names, name = strings.encode(arrays.pop("nameId"))
    threads, thread = codes(arrays.pop("globalTid"))
    return HostEvents(
        **arrays, thread=thread, name=name, names=names, threads=threads, kinds=tuple(kinds)
    )


def _name_column(table: str) -> str:
    """The column that names each range of a table."""
    columns = TABLES[table].columns.values()
    return next(column.name for column in columns if column.type == "s" and column.required)


def build_syncs(db: Database, progress: Progress | None) -> Syncs:
    """Reads host-side waits."""
    processes = Codebook()

    def convert(raw: RawColumns) -> Arrays:
        stream = column(raw, "streamId")
        return _thread_events(raw) | {
            "sync_type": column(raw, "syncType", 0).astype(np.uint8),
            "process": processes.encode(column(raw, "globalPid")),
            "correlation": column(raw, "correlationId"),
            "device": column(raw, "deviceId").astype(np.int32),
            "stream": np.where(stream == _NO_STREAM, -1, stream),
        }

    arrays = merge([gather(db, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", convert, progress)])
    known, arrays["process"] = processes.ascending(arrays["process"])
    return Syncs(**arrays, processes=known)


def _instants(raw: RawColumns) -> dict[str, Array]:
    start = instants(raw, "start")
    return {"start": start, "end": start, "rowid": raw.rowid}


def build_samples(db: Database, progress: Progress | None) -> Samples:
    """Reads CPU samples; ``chain`` is the sample's id in SAMPLING_CALLCHAINS."""
    threads = Codebook()

    def convert(raw: RawColumns) -> Arrays:
        return _instants(raw) | {
            "thread": threads.encode(column(raw, "globalTid")),
            "cpu": column(raw, "cpu").astype(np.int32),
            "chain": column(raw, "id"),
            "state": column(raw, "threadState", 0).astype(np.uint8),
        }

    arrays = merge([gather(db, "COMPOSITE_EVENTS", convert, progress)])
    known, arrays["thread"] = threads.ascending(arrays["thread"])
    return Samples(**arrays, threads=known)


def build_memory_usage(db: Database, progress: Progress | None) -> MemoryUsage:
    """Reads allocations and frees of GPU memory."""
    processes, places = Codebook(), Tuples(2)

    def convert(raw: RawColumns) -> Arrays:
        process = column(raw, "globalPid")
        return _instants(raw) | {
            "operation": column(raw, "memoryOperationType", 0).astype(np.uint8),
            "process": processes.encode(process),
            "device": places.encode([process, column(raw, "deviceId")]),
            "address": column(raw, "address"),
            "bytes": column(raw, "bytes", 0),
            "memory_kind": column(raw, "memKind", 7).astype(np.uint8),
            "correlation": column(raw, "correlationId"),
        }

    arrays = merge([gather(db, "CUDA_GPU_MEMORY_USAGE_EVENTS", convert, progress)])
    known, arrays["process"] = processes.ascending(arrays["process"])
    devices, of_place = Devices(db).assign([(process, gpu) for process, gpu in places.values])
    arrays["device"] = np.array(of_place, np.int16)[arrays["device"]]
    return MemoryUsage(**arrays, processes=known, devices=devices)


def build_gpu_metrics(db: Database, progress: Progress | None) -> GpuMetrics:
    """Reads sampled GPU counters; the GPU is the low byte of typeId."""
    raw = read_columns(db, "GPU_METRICS", ("timestamp", "typeId", "metricId", "value"), progress)
    time = instants(raw, "timestamp")
    labels = {
        (source, metric): name
        for source, metric, name in db.select(
            "TARGET_INFO_GPU_METRICS", ("typeId", "metricId", "metricName")
        )
    }
    (sources, numbers), code = combine([column(raw, "typeId"), column(raw, "metricId")])
    texts = [
        str(labels.get((int(s), int(m))) or f"metric {m}")
        for s, m in zip(sources, numbers, strict=True)
    ]
    metrics = tuple(dict.fromkeys(texts))
    of_code = np.array([metrics.index(text) for text in texts], np.int32)
    arrays = in_start_order(
        {
            "start": time,
            "end": time,
            "rowid": raw.rowid,
            "gpu": (column(raw, "typeId", 0) & 0xFF).astype(np.int32),
            "metric": of_code[code] if len(texts) else np.empty(0, np.int32),
            "value": column(raw, "value", 0),
        }
    )
    return GpuMetrics(**arrays, metrics=metrics)


def build_chains(
    db: Database, strings: Strings, table: str, progress: Progress | None
) -> CallChains:
    """Reads a call-chain table; unresolved frames show their address as the symbol."""
    raw = read_columns(db, table, ("id", "symbol", "module", "stackDepth"), progress)
    symbols, symbol = strings.encode(column(raw, "symbol"))
    modules, module = strings.encode(column(raw, "module"))
    chain, depth = column(raw, "id"), column(raw, "stackDepth", 0).astype(np.int32)
    order = np.lexsort((depth, chain))
    return CallChains(
        id=chain[order],
        depth=depth[order],
        symbol=symbol[order],
        module=module[order],
        symbols=symbols,
        modules=modules,
    )


def join_calls(
    process: Int32,
    processes: Int64,
    correlation: Int64,
    api: ApiCalls,
) -> Int32:
    """Finds the API row that launched each operation.

    The join is on (process, correlation id) over calls of eventClass 0 and 1; of several rows the
    earliest start wins (definitions: "Call of an operation").

    Args:
        process: process code of each operation, int32 (n,).
        processes: globalPid of each code.
        correlation: correlation id of each operation, -1 for none.
        api: API calls in start order.

    Returns:
        row in ``api`` of each operation's call, int32 (n,); -1 where there is none.
    """
    calls = np.full(len(process), -1, np.int32)
    if not len(process) or not len(api):
        return calls
    launches = np.flatnonzero(api.event_class <= 1).astype(np.int32)
    for code, owner in enumerate(processes):
        mine = slice(None) if len(processes) == 1 else np.flatnonzero(process == code)
        called = (api.thread_process == owner)[api.thread[launches]]
        candidates = launches if called.all() else launches[called]
        if len(candidates):
            calls[mine] = _first_match(correlation[mine], api.correlation[candidates], candidates)
    return calls


def _first_match(wanted: Int64, keys: Int64, rows: Int32) -> Int32:
    """Row of the first key that equals each wanted id, -1 for none."""
    low, high = int(keys.min()), int(keys.max())
    if high - low < 4 * len(keys) + (1 << 20):
        table = np.full(high - low + 2, -1, np.int32)
        table[keys[::-1] - low] = rows[::-1]
        position = wanted - low
        position[(wanted < max(low, 0)) | (wanted > high)] = high - low + 1
        return table[position]
    order = np.argsort(keys, kind="stable")
    position = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
    row = order[position]
    return np.where((keys[row] == wanted) & (wanted >= 0), rows[row], -1).astype(np.int32)
