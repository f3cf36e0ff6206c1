"""Facts: everything that is known about one event, as pairs of name and text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from nsys_tui.analysis.timeline.events import SYNC_TYPES, EventKey, codes_of, key_of, naming
from nsys_tui.analysis.timeline.host import caller_words, thread_words
from nsys_tui.analysis.timeline.launch_links import call_of, launched_by
from nsys_tui.analysis.timeline.work_facts import collective_facts, resident_facts, transfer_facts
from nsys_tui.errors import NsysTuiError
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.events import (
    ApiCalls,
    EventSet,
    HostEvents,
    Marks,
    Operations,
    OsrtCalls,
    Ranges,
    Syncs,
    ThreadEvents,
    told,
)
from nsys_tui.model.kinds import Kind
from nsys_tui.model.report import Report
from nsys_tui.model.source import RawRow
from nsys_tui.units import format_bytes, format_count, format_duration, plural

Fact: TypeAlias = tuple[str, str]

SPREAD: Final = "p50/p99"
"""Name of the fact that tells how long others of the same name take."""
FRAMES: Final = 24
"""Most frames of a call stack that are listed."""
NEAR: Final = 65_536
SAMPLED: Final = 200_000
"""Namesakes of which quantiles are taken; of more, an even sample stands in."""
PAYLOADS: Final = (
    "int32_value",
    "uint32_value",
    "int64_value",
    "uint64_value",
    "float_value",
    "double_value",
    "json_text",
    "binary_data",
)
"""Fields of an NVTX event of which one holds its payload."""


@dataclass(frozen=True)
class Facts:
    """What a detail pane shows of an event."""

    title: str
    """Its name, and which one of that name it is."""
    facts: tuple[tuple[str, str], ...]
    """Name and text; both untrusted."""
    stack: tuple[str, ...] = ()
    """Frames of the launching call, leaf first, where call stacks were recorded."""
    raw: Mapping[str, Any] = field(default_factory=dict)
    """Every column of its row, as the file has them."""
    table: str = ""


def facts_of(
    report: Report, events: EventSet, row: int, style: str, moment: Callable[[int], str]
) -> Facts:
    """Collects what is known about one event; may read one row of the file.

    Args:
        report: its report.
        events: the event set it is in.
        row: its row there.
        style: name style.
        moment: writes a time.
    """
    name = naming(events, style)(row)
    key = key_of(events, row)
    raw = _raw(report, key)
    number, of, spread = _among_namesakes(events, row)
    start, end = int(events.start[row]), max(int(events.end[row]), int(events.start[row]))
    facts: list[Fact] = [("start", moment(start))]
    if end > start or isinstance(events, (Operations, ThreadEvents, Syncs)):
        facts.append(("dur", format_duration(end - start)))
    if spread:
        facts.append((SPREAD, spread))
    facts += _own_facts(report, events, row, raw.fields)
    title = f"{name}, {format_count(number)} of {format_count(of)}" if of > 1 else name
    stack, table = tuple(_stack(report, events, row)), report.table_of(key.rows)
    return Facts(title, tuple(facts), stack, raw.columns, table)


def _raw(report: Report, key: EventKey) -> RawRow:
    try:
        return report.row(key.rows, key.rowid)
    except NsysTuiError:
        return RawRow({}, {})


def _among_namesakes(events: EventSet, row: int) -> tuple[int, int, str]:
    """Which of how many events of its name it is, and their median and 99th percentile."""
    codes = codes_of(events)
    if codes is None:
        return 1, 1, ""
    same = np.flatnonzero(codes == codes[row])
    number = int(np.searchsorted(same, row)) + 1
    if len(same) < 3 or isinstance(events, Marks):
        return number, len(same), ""
    step = -(-len(same) // SAMPLED)
    part = same[::step]
    lengths = np.maximum(events.end[part] - events.start[part], 0)
    half, late = np.percentile(lengths, (50, 99)).tolist()
    texts = (format_duration(round(value)) for value in (half, late))
    return number, len(same), ("≈ " if step > 1 else "") + " / ".join(texts)


def _own_facts(
    report: Report, events: EventSet, row: int, raw: Mapping[str, Any]
) -> Iterator[Fact]:
    if isinstance(events, Operations):
        yield from _operation(report, events, row, raw)
    elif isinstance(events, ApiCalls):
        yield from _api(report, events, row)
    elif isinstance(events, (Ranges, Marks)):
        yield from _range(report, events, row, raw)
    elif isinstance(events, Syncs):
        yield from _sync(report, events, row)
    elif isinstance(events, ThreadEvents):
        yield ("thread", thread_words(report, int(events.threads[events.thread[row]])))
        if isinstance(events, OsrtCalls):
            result = events.return_value[row]
            yield ("returned", str(result) if told(result) else "-")
        if isinstance(events, HostEvents):
            yield ("table", report.table_of(Kind(events.kinds[int(events.kind[row])])))
        yield from _path_facts(report, events, row)


def _operation(report: Report, ops: Operations, row: int, raw: Mapping[str, Any]) -> Iterator[Fact]:
    device, stream = ops.devices[int(ops.device[row])], ops.streams[int(ops.stream[row])]
    number, _, stream_name = stream.label.removeprefix("str ").partition(" ")
    yield ("stream", f"{number} ({stream_name})" if stream_name else number)
    yield ("", device.label)
    if (correlation := int(ops.correlation[row])) >= 0:
        yield ("corr", str(correlation))
    kind = int(ops.kind[row])
    if kind == OpKind.KERNEL:
        if report.can(Capability.LAUNCH_SHAPES):
            yield from _launch_shape(ops, row, raw)
        if ops.category[row] == Category.COMM:
            yield from collective_facts(report, row)
    elif kind in (OpKind.MEMCPY, OpKind.MEMSET):
        yield from transfer_facts(ops, row)
    elif kind == OpKind.GRAPH:
        yield ("note", "launched as a whole graph: no figures of its kernels")
    if node := int(ops.graph_node[row]):
        yield ("graph node", str(node))
    yield from _origin(report, ops, row)


def _launch_shape(ops: Operations, row: int, raw: Mapping[str, Any]) -> Iterator[Fact]:
    def triple(name: str) -> str:
        return ",".join(str(raw.get(f"{name}_{axis}", "-")) for axis in "xyz")

    if not raw:
        return
    static, dynamic = (_whole(raw.get(f"{n}_shared_memory")) for n in ("static", "dynamic"))
    registers = _whole(raw.get("registers_per_thread"))
    yield ("grid", triple("grid"))
    yield ("block", triple("block"))
    yield ("regs", str(registers))
    yield ("smem", format_bytes(static + dynamic))
    blocks, threads = (
        prod(max(_whole(raw.get(f"{name}_{axis}")), 1) for axis in "xyz")
        for name in ("grid", "block")
    )
    yield from resident_facts(ops, row, threads, blocks, registers, static + dynamic)
    if local := _whole(raw.get("local_memory_per_thread")):
        yield ("local", f"{format_bytes(local)} a thread")


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) else 0


def _origin(report: Report, ops: Operations, row: int) -> Iterator[Fact]:
    """Who launched an operation, how long before, and in which ranges."""
    if not report.loaded("api"):
        return
    call = call_of(report, ops, row)
    if call is None:
        if ops.kind[row] <= OpKind.GRAPH:
            yield ("launch", "- (no API call with its correlation id)")
        return
    api, start = report.api, int(ops.start[row])
    thread = caller_words(report, int(api.threads[api.thread[call]]), api.threads.tolist())
    latency = format_duration(start - int(api.start[call]))
    yield ("launch", f"{thread} +{latency} (call to start)")
    yield ("call", naming(api)(call))
    yield ("queue", format_duration(max(0, start - int(api.end[call]))))
    idle = _idle_before(ops, row)
    if idle is not None:
        yield ("stream idle before", format_duration(idle))
    yield from _path_facts(report, api, call)


def _idle_before(ops: Operations, row: int) -> int | None:
    """Idle time of the operation's stream before it; None for the first of its stream.

    Looks back over ``NEAR`` operations, and over all of them only if none is of the stream.
    """
    stream, start = int(ops.stream[row]), int(ops.start[row])
    for first in (max(0, row - NEAR), 0):
        earlier = first + np.flatnonzero(ops.stream[first:row] == stream)
        if len(earlier):
            return max(0, start - int(ops.end[earlier].max()))
    return None


def _api(report: Report, api: ApiCalls, row: int) -> Iterator[Fact]:
    yield ("thread", thread_words(report, int(api.threads[api.thread[row]])))
    if (correlation := int(api.correlation[row])) >= 0:
        yield ("corr", str(correlation))
    value = api.return_value[row]
    if told(value):
        yield ("returned", "0 (success)" if value == 0 else f"{value} (error)")
    launched = launched_by(report, row)
    if launched:
        events, first = launched[0]
        latency = format_duration(int(events.start[first]) - int(api.start[row]))
        more = f" and {len(launched) - 1} more" if len(launched) > 1 else ""
        yield ("launched", f"{naming(events)(first)} +{latency}{more}")
    yield from _path_facts(report, api, row)


def _range(
    report: Report, ranges: Ranges | Marks, row: int, raw: Mapping[str, Any]
) -> Iterator[Fact]:
    yield ("thread", thread_words(report, int(ranges.threads[ranges.thread[row]])))
    if domain := ranges.domains[int(ranges.domain[row])].name:
        yield ("domain", domain)
    if isinstance(ranges, Ranges):
        yield from _launched_in(report, ranges, row)
        if ranges.open[row]:
            yield ("open", "never closed: counted to the end of the capture")
        if category := int(ranges.nvtx_category[row]):
            yield ("category", str(category))
    for name in PAYLOADS:
        if (value := raw.get(name)) is not None:
            yield ("payload", value.hex(" ")[:120] if isinstance(value, bytes) else str(value))
    yield from _path_facts(report, ranges, row)


def _launched_in(report: Report, ranges: Ranges, row: int) -> Iterator[Fact]:
    """The GPU work that the range's thread launched in it, wherever that ran later."""
    if not report.loaded("api"):
        return
    api, ops = report.api, report.operations
    inside = slice(*np.searchsorted(api.start, (ranges.start[row], ranges.end[row])))
    of_thread = api.threads[api.thread[inside]] == ranges.threads[ranges.thread[row]]
    calls = inside.start + np.flatnonzero(of_thread & (api.correlation[inside] >= 0))
    if not len(calls):
        return
    work = np.flatnonzero(np.isin(ops.correlation, api.correlation[calls]))
    process = api.thread_process[api.thread[calls[0]]]
    work = work[ops.processes[ops.process[work]] == process]
    if len(work):
        start, end = ops.start[work], ops.end[work]
        total, spread = (end - start).sum(), end.max() - start.min()
        yield (
            "GPU work",
            f"{format_duration(int(total))} in {plural(len(work), 'operation')}, within"
            f" {format_duration(int(spread))}",
        )


def _sync(report: Report, syncs: Syncs, row: int) -> Iterator[Fact]:
    yield ("waits for", SYNC_TYPES.get(int(syncs.sync_type[row]), "unknown"))
    if (stream := int(syncs.stream[row])) >= 0:
        yield ("stream", str(stream))
    call = call_of(report, syncs, row)
    if call is not None:
        yield ("call", naming(report.api)(call))
        yield from _path_facts(report, report.api, call)


def _path_facts(report: Report, events: ThreadEvents, row: int) -> Iterator[Fact]:
    if not report.loaded("ranges") or not len(report.ranges):
        return
    path = path_at(report, int(events.threads[events.thread[row]]), int(events.start[row]))
    itself = [events.names[events.name[row]]] if isinstance(events, Ranges) else []
    shown = path[:-1] if itself and path[-1:] == itself else path
    if shown:
        yield ("nvtx", " > ".join(shown))
    elif not isinstance(events, Ranges):
        yield ("nvtx", "- (no range open)")


def path_at(report: Report, tid: int, time: int) -> list[str]:
    """Names of the ranges open on a thread at a time, outermost first (definitions: "Path")."""
    ranges = report.ranges
    return [ranges.names[ranges.name[row]] for row in path_ranges(report, tid, time)]


def ranges_around(report: Report, events: EventSet, row: int) -> list[int]:
    """Rows of the ranges around an event, outermost first; GPU work counts where its call is."""
    if isinstance(events, (Operations, Syncs)):
        call = call_of(report, events, row)
        if call is None:
            return []
        events, row = report.api, call
    if not isinstance(events, ThreadEvents) or not report.loaded("ranges"):
        return []
    tid, time = int(events.threads[events.thread[row]]), int(events.start[row])
    itself = row if events is report.ranges else -1
    return [each for each in path_ranges(report, tid, time) if each != itself]


def path_ranges(report: Report, tid: int, time: int) -> list[int]:
    """Rows of the ranges open on a thread at a time, outermost first."""
    ranges = report.ranges
    code = np.flatnonzero(ranges.threads == tid)
    begun = slice(0, int(np.searchsorted(ranges.start, time, side="right")))
    rows = np.flatnonzero((ranges.end[begun] > time) & np.isin(ranges.thread[begun], code))
    rows = rows[ranges.nests[rows]] if len(rows) else rows
    order = np.lexsort((ranges.rowid[rows], -ranges.end[rows], ranges.start[rows]))
    open_ranges: list[int] = rows[order].tolist()
    return open_ranges


def _stack(report: Report, events: EventSet, row: int) -> list[str]:
    """Frames of the call behind an event, leaf first; empty without recorded call stacks."""
    kind, chain = Kind.CUDA_CHAIN, -1
    if isinstance(events, OsrtCalls):
        kind, chain = Kind.OSRT_CHAIN, int(events.callchain[row])
    elif isinstance(events, (ApiCalls, Operations)) and report.loaded("api"):
        call = row if isinstance(events, ApiCalls) else call_of(report, events, row)
        chain = -1 if call is None else _chain_of(report, call)
    if chain < 0 or not report.has(kind):
        return []
    frames = report.chains(kind).frames(chain)
    return [f"{symbol}  {module}" for symbol, module in frames[:FRAMES]]


def _chain_of(report: Report, call: int) -> int:
    """Call chain of an API call, or of the enclosing duplicate that carries it."""
    api = report.api
    if int(api.callchain[call]) >= 0:
        return int(api.callchain[call])
    twins = np.flatnonzero(api.correlation == api.correlation[call])
    twins = twins[(api.callchain[twins] >= 0) & (api.thread[twins] == api.thread[call])]
    return int(api.callchain[twins[0]]) if len(twins) else -1
