"""Tables of sizes: per operation, bucket, distinct size, rank and GPU, and the call list."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.logs.grammar import datatype_name, opcount_text, reduction_name
from nsys_tui.logs.select import job_ranks
from nsys_tui.logs.statistics import (
    SizeRow,
    aggregate,
    bucket_labels,
    histogram,
    per_op,
    per_owner,
    traffic,
)
from nsys_tui.logs.table_parts import Columns, count, known, make, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.logs.result import LogResult
    from nsys_tui.model.table import Table


def _size_columns(rows: Sequence[SizeRow]) -> Columns:
    return {
        "Operation": text([row.op for row in rows]),
        "Calls": count([row.calls for row in rows]),
        "Min bytes": count([row.min_bytes for row in rows]),
        "Avg bytes": count([_rounded(row.mean_bytes) for row in rows]),
        "Max bytes": count([row.max_bytes for row in rows]),
        "Total bytes": count([row.total_bytes for row in rows]),
    }


def _rounded(value: Fraction) -> int:
    """The nearest integer, halves up; a float would lose digits beyond 2**53."""
    return math.floor(value + Fraction(1, 2))


def per_op_table(result: LogResult) -> Table:
    """Calls and bytes per operation."""
    notes = ["bytes are count × element size of one call, summed over all ranks in the logs"]
    rows = per_op(result.calls)
    return make("per-op", "Collectives per operation", _size_columns(rows), notes if rows else ())


def histogram_table(result: LogResult, bounds: Sequence[int]) -> Table:
    """Calls per operation and size bucket."""
    order = {label: index for index, label in enumerate(bucket_labels(bounds))}
    rows = sorted(histogram(result.calls, bounds), key=lambda row: (row.op, order[row.bucket]))
    return make(
        "histogram",
        "Sizes of one call",
        {
            "Operation": text([row.op for row in rows]),
            "Bucket": text([row.bucket for row in rows]),
            "Calls": count([row.calls for row in rows]),
        },
    )


def aggregate_table(result: LogResult, top: int | None) -> Table:
    """Distinct sizes."""
    rows = sorted(aggregate(result.calls), key=lambda row: -row.calls * max(row.bytes, 0))
    shown = rows[:top] if top else rows
    notes = [f"{len(rows) - len(shown)} more sizes (--top)"] if len(shown) < len(rows) else []
    return make(
        "aggregate",
        "Distinct sizes, by total bytes",
        {
            "Calls": count([row.calls for row in shown]),
            "Operation": text([row.op for row in shown]),
            "Count": count([row.count for row in shown]),
            "Type": text([row.dtype for row in shown]),
            "Bytes per call": known([row.bytes for row in shown]),
        },
        notes,
    )


def traffic_table(result: LogResult) -> Table:
    """Buffer and wire bytes."""
    rows = traffic(result.calls)
    return make(
        "traffic",
        "Buffer and wire bytes (ring)",
        {
            "Operation": text([row.op for row in rows]),
            "Ranks": count([row.nranks for row in rows]),
            "Calls": count([row.calls for row in rows]),
            "Buffer bytes": count([row.buffer_bytes for row in rows]),
            "Wire bytes": count(
                [None if row.wire_bytes is None else _rounded(row.wire_bytes) for row in rows]
            ),
        },
    )


def ranks_table(result: LogResult) -> Table:
    """Calls and bytes per rank of the job."""
    rows = per_owner(result.calls, job_ranks(result))
    columns = {"Rank": known([row.owner for row in rows]), **_size_columns(rows)}
    unknown = ["rows without a rank: no line tells it"] if any(r.owner < 0 for r in rows) else []
    return make("ranks", "Collectives per rank", columns, unknown)


def gpus_table(result: LogResult) -> Table:
    """Calls and bytes per GPU."""
    rows = per_owner(result.calls, result.calls.gpu)
    labels = [result.gpus[row.owner].label if row.owner >= 0 else "-" for row in rows]
    guess = any(row.owner >= 0 and not result.gpus[row.owner].certain for row in rows)
    notes = ["≈ by the calling thread's device, for want of Init lines"] if guess else []
    return make("gpus", "Collectives per GPU", {"GPU": text(labels), **_size_columns(rows)}, notes)


def calls_table(result: LogResult, limit: int | None) -> Table:
    """The call list."""
    calls = result.calls
    shown = calls.take(np.arange(min(limit, len(calls)))) if limit is not None else calls
    more = len(calls) - len(shown)
    kinds = {code: datatype_name(code) for code in np.unique(shown.datatype).tolist()}
    who = [result.communicators[i] for i in shown.communicator.tolist()]
    names = [shown.ops[op] for op in shown.op.tolist()]
    return make(
        "calls",
        "Calls",
        {
            "Line": count(shown.line.tolist()),
            "Step": known(shown.step.tolist()),
            "GPU": text([result.gpus[g].label if g >= 0 else "-" for g in shown.gpu.tolist()]),
            "Rank": known(shown.rank.tolist()),
            "Communicator": text([one.pointer for one in who]),
            "opCount": text([opcount_text(n) for n in shown.op_count.tolist()]),
            "Operation": text(names),
            "Count": count(shown.count.tolist()),
            "Type": text([kinds[code] for code in shown.datatype.tolist()]),
            "Bytes": known(shown.bytes.tolist()),
            "Reduction": text(
                [
                    reduction_name(code, op) or "-"
                    for code, op in zip(shown.reduction.tolist(), names, strict=True)
                ]
            ),
            "Root": count(shown.root.tolist()),
            "Ranks": known(shown.nranks.tolist()),
            "File": text([result.files[i].path for i in shown.file.tolist()]),
        },
        [f"{more} more calls (--top)"] if more else [],
    )
