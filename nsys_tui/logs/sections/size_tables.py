"""Sections of calls: sizes by operation, bucket, rank and GPU, the call list, and CALL lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from nsys_tui.logs.figures import decimals
from nsys_tui.logs.nccl.grammar import opcount_text
from nsys_tui.logs.nccl.participants import Communicator
from nsys_tui.logs.nccl.statistics import (
    BucketRow,
    SizeRow,
    TrafficRow,
    aggregate,
    bucket_labels,
    histogram,
    per_op,
    per_owner,
    traffic,
)
from nsys_tui.logs.result import LogResult, job_ranks
from nsys_tui.logs.sections.section import (
    LogAnswer,
    Section,
    count,
    file_path,
    host_pid,
    known,
    shown,
    text,
    through,
)
from nsys_tui.model.table import Column, Unit, column, columns, data


def _rounded(value: Fraction | None) -> int | None:
    """The nearest integer, halves up; a float would lose digits beyond 2**53."""
    return None if value is None else math.floor(value + Fraction(1, 2))


_OP: Final = column("op", "Operation")
SIZES: Final = (
    count("calls", "Calls"),
    count("min_bytes", "Min bytes"),
    shown("Avg bytes", lambda row, _: _rounded(row.mean_bytes), Unit.COUNT),
    count("max_bytes", "Max bytes"),
    count("total_bytes", "Total bytes"),
    data("avg_bytes", lambda row, _: row.mean_bytes),
    data("calls_of_unknown_size", lambda row, _: row.unsized or None, Unit.COUNT, optional=True),
)
BUCKETS: Final = (_OP, column("bucket", "Bucket"), count("calls", "Calls"))
DISTINCT: Final = (
    count("calls", "Calls"),
    _OP,
    count("count", "Count"),
    column("dtype", "Type"),
    known("bytes_per_call", "Bytes per call", "bytes"),
)
TRAFFIC: Final = (
    _OP,
    known("nranks", "Ranks"),
    count("calls", "Calls"),
    count("buffer_bytes", "Buffer bytes"),
    shown("Wire bytes", lambda row, _: _rounded(row.wire_bytes), Unit.COUNT),
    column("wire_bytes", unit=Unit.NONE),
)

EXCHANGES: Final = (
    column("group", "Group", lambda row, result: result.group_label(row.group)),
    count("nranks", "Ranks"),
    count("number", "All-to-alls"),
    count("least_bytes", "Min bytes to a rank"),
    shown("Avg bytes to a rank", lambda row, _: _rounded(row.mean_bytes), Unit.COUNT),
    count("most_bytes", "Max bytes to a rank"),
    shown("Imbalance", lambda row, _: decimals(row.imbalance, 2)),
    count("busiest", "Busiest rank"),
    data("avg_bytes", lambda row, _: row.mean_bytes),
    data("imbalance", lambda row, _: row.imbalance),
)


def owned(owner: str, header: str = "") -> tuple[Column, ...]:
    """Sizes of every owner and operation."""
    return known(owner, header, "owner"), _OP, *SIZES


_GPU: Final = shown(
    "GPU", lambda row, result: result.gpus[row.owner].label if row.owner >= 0 else None
)


def _communicator(row: Any, result: LogResult) -> Communicator:
    place: int = row.communicator
    return result.communicators[place]


CALLS: Final = (
    count("line", "Line"),
    known("step", "Step"),
    shown("GPU", lambda row, result: result.gpus[row.gpu].label if row.gpu >= 0 else None),
    known("rank", "Rank"),
    column("comm", "Communicator", lambda row, result: _communicator(row, result).pointer),
    column("opcount", "opCount", lambda row, _: opcount_text(row.op_count)),
    _OP,
    count("count", "Count"),
    column("dtype", "Type"),
    known("bytes", "Bytes"),
    text("reduction", "Reduction"),
    count("root", "Root"),
    known("nranks", "Ranks"),
    file_path(lambda row: row.file, "File"),
    data("comm_id", lambda row, result: _communicator(row, result).comm_id or None),
    count("communicator"),
    *host_pid(lambda row, _: row.process),
    known("tid", name="thread"),
    known("gpu"),
    column("stream"),
    *columns("in_place torn", Unit.FLAG),
)


def _in_buckets(answer: LogAnswer) -> list[BucketRow]:
    order = {label: index for index, label in enumerate(bucket_labels(answer.bounds))}
    rows = histogram(answer.calls, answer.bounds)
    return sorted(rows, key=lambda row: (row.op, order[row.bucket]))


def _meaning(_: LogAnswer, rows: Sequence[SizeRow]) -> list[str]:
    note = "bytes are count × element size of one call, summed over all ranks in the logs"
    return [note] if rows else []


def _without_rank(_: LogAnswer, rows: Sequence[SizeRow]) -> list[str]:
    return ["rows without a rank: no line tells it"] * any(row.owner < 0 for row in rows)


def _without_size(_: LogAnswer, rows: Sequence[TrafficRow]) -> list[str]:
    note = "rows without ranks: no line tells their communicator's size (--ranks N gives it)"
    return [note] if any(row.nranks < 1 for row in rows) else []


def _guessed_gpus(answer: LogAnswer, rows: Sequence[SizeRow]) -> list[str]:
    gpus = answer.result.gpus
    guess = any(row.owner >= 0 and not gpus[row.owner].certain for row in rows)
    return ["≈ by the calling thread's device, for want of Init lines"] * guess


def _calls(answer: LogAnswer) -> int:
    return len(answer.result.calls)


_NONE: Final = "no CALL lines (NCCL_DEBUG=TRACE with CALL in NCCL_DEBUG_SUBSYS records them)"
API: Final = (
    column("function", "Function"),
    count("calls", "Lines"),
    known("count", "Count"),
    column("dtype", "Type"),
    column("reduction", "Reduction"),
    known("bytes", "Bytes per call"),
    count("processes", "Processes"),
)
_CALL: Final = (
    shown("Process", lambda call, result: result.process_label(call.process)),
    column("function", "Function"),
    known("count", "Count"),
    text("dtype", "Type"),
    known("bytes", "Bytes"),
    text("reduction", "Reduction", "reduction_name"),
    shown("Root", lambda call, _: None if call.root < 0 else call.root, Unit.COUNT),
    count("root", read=lambda call, _: call.root if call.count >= 0 else None),
    text("comm", "Communicator", "pointer"),
    text("stream"),
)
API_CALLS: Final = (
    file_path(lambda row: row.file),
    count("line", "Line"),
    *host_pid(lambda row, _: row.call.process),
    *(through("call", one) for one in _CALL),
    shown("In place", lambda row, _: "yes" if row.in_place else None),
    column("in_place", unit=Unit.FLAG),
    through("call", text("arguments", "Arguments")),
)


def _lines(answer: LogAnswer) -> int:
    return len(answer.result.api)


def _same_calls(_: LogAnswer, rows: Sequence[Any]) -> list[str]:
    return ["the same calls as in COLL lines, seen where the program made them"] * bool(rows)


OF_ALL: Final = (
    Section(
        "per-op",
        "Collectives per operation",
        (_OP, *SIZES),
        lambda answer: per_op(answer.calls),
        _meaning,
        count=_calls,
    ),
    Section("histogram", "Sizes of one call", BUCKETS, _in_buckets, count=_calls),
    Section(
        "aggregate",
        "Distinct sizes, by total bytes",
        DISTINCT,
        lambda answer: sorted(
            aggregate(answer.calls), key=lambda row: -row.calls * max(row.bytes, 0)
        ),
        count=_calls,
        longest="sizes",
    ),
    Section(
        "traffic",
        "Buffer and wire bytes (ring)",
        TRAFFIC,
        lambda answer: traffic(answer.calls),
        _without_size,
        count=_calls,
    ),
    Section(
        "exchanges",
        "All-to-alls of grouped sends and receives",
        EXCHANGES,
        lambda answer: answer.exchanges,
        none="none: no launch sends to all other ranks and receives from them",
    ),
)
OF_OWNERS: Final = (
    Section(
        "ranks",
        "Collectives per rank",
        owned("rank", "Rank"),
        lambda answer: per_owner(answer.calls, job_ranks(answer.result, answer.calls)),
        _without_rank,
        count=_calls,
    ),
    Section(
        "gpus",
        "Collectives per GPU",
        (_GPU, *owned("gpu")),
        lambda a: per_owner(a.calls, a.calls.gpu),
        _guessed_gpus,
        count=_calls,
    ),
)
CALL_BY_CALL: Final = (
    Section(
        "calls",
        "Calls",
        CALLS,
        lambda answer: answer.result.calls.rows(answer.top),
        count=_calls,
        longest="calls",
    ),
    Section(
        "api",
        "API calls (CALL lines)",
        API,
        lambda answer: answer.result.api.per_function(),
        _same_calls,
        _NONE,
        _lines,
    ),
    Section(
        "api-calls",
        "API calls one by one",
        API_CALLS,
        lambda answer: answer.result.api.rows(),
        none=_NONE,
        count=_lines,
        longest="calls",
    ),
)
