"""The result as JSON values. Integers are exact, names are as logged, -1 and empty become null."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.logs.advice import advise
from nsys_tui.logs.averages import all_averages, average_of
from nsys_tui.logs.exact import decimals, known, number, seconds
from nsys_tui.logs.payload_hangs import hangs_json, process_json
from nsys_tui.logs.purpose import purposes
from nsys_tui.logs.select import job_ranks
from nsys_tui.logs.statistics import (
    DEFAULT_BOUNDS,
    SizeRow,
    aggregate,
    histogram,
    per_op,
    per_owner,
    rate,
    traffic,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_tui.logs.calls import Calls
    from nsys_tui.logs.hangs import HangReport
    from nsys_tui.logs.participants import Communicator
    from nsys_tui.logs.result import LogResult
    from nsys_tui.logs.topology import GroupTopology
    from nsys_tui.logs.trainers import Average


def as_json(
    result: LogResult, hangs: HangReport, bounds: Sequence[int] = DEFAULT_BOUNDS
) -> dict[str, Any]:
    """Everything but the call list; ``call_rows`` yields that.

    Args:
        result: what was read.
        hangs: what ``find_hangs`` says of it.
        bounds: bucket bounds of the histogram in bytes.
    """
    sizes = _sizes(result.calls, bounds)
    return {
        **sizes,
        **_lines(result),
        **_steps(result),
        **_members(result),
        "traffic": _traffic(result.calls),
        "rate": _rate(result.calls),
        "tuning": [dict(vars(row)) for row in result.tuning],
        "topology": _topology(result),
        "api": [
            asdict(row) | {"count": known(row.count), "bytes": known(row.bytes)}
            for row in result.api.per_function()
        ],
        "init_timings": [asdict(one) | {"parts": dict(one.parts)} for one in result.timings],
        "rccl_kernels": [asdict(row) | {"mean_ns": number(row.mean_ns)} for row in result.kernels],
        "environment": [
            {"name": name, "value": value, "lines": n} for name, value, n in result.environment
        ],
        "nccl_warnings": [{"text": text, "lines": n} for text, n in result.warnings],
        **hangs_json(result, hangs),
        "mpi": _mpi(result),
        "advice": [asdict(one) for one in advise(result)],
        "skipped": [{"file": path, "why": why} for path, why in result.skipped],
        "files": _files(result, bounds, sizes),
    }


SECTION_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "files": ("files", "skipped"),
    "per-op": ("collective_lines", "per_op"),
    "steps": ("trainer", "step_lines", "average", "averages", "run_totals"),
    "ranks": ("per_rank",),
    "gpus": ("gpus", "per_gpu"),
    "communicators": ("communicators", "groups", "per_communicator"),
    "rings": ("topology",),
    "trees": ("topology",),
    "edges": ("topology",),
    "hangs": ("mismatches", "more_mismatches", "drifts", "unchecked_groups"),
    "kernels": ("rccl_kernels",),
    "warnings": ("nccl_warnings",),
    "calls": (),
    "api-calls": (),
}
"""Keys that hold a section; a section of another name has one key of its name."""


def only(found: dict[str, Any], sections: Sequence[str]) -> dict[str, Any]:
    """The keys of some sections, with the window that they are of."""
    keys = {key for name in sections for key in SECTION_KEYS.get(name, (name,))}
    return {key: value for key, value in found.items() if key in keys or key == "window"}


_COUNTS = (
    "header_lines",
    "header_not_at_column_0",
    "torn_lines",
    "cut_lines",
    "tuning_lines",
    "call_lines",
)


def _lines(result: LogResult) -> dict[str, Any]:
    """How much was read, and by which NCCL it was written."""
    files, window = result.files, result.window
    versions = list(dict.fromkeys(v for file in files for v in file.versions))
    return {
        "lines": window.lines if window else sum(file.lines for file in files),
        **{name: sum(getattr(file, name) for file in files) for name in _COUNTS},
        "all_opcount_zero": bool(len(result.calls)) and not result.calls.op_count.any(),
        "nccl_version": versions[0] if versions else None,
        "nccl_versions": versions,
        "window": _window(result),
    }


def _steps(result: LogResult) -> dict[str, Any]:
    found = average_of(result)
    return {
        "trainer": result.trainer or None,
        "step_lines": [s.step for s in result.step_lines if s.format == result.trainer],
        "average": _average(found) if found else None,
        "averages": [_average(one) for one in all_averages(result)],
        "run_totals": [
            {
                "format": total.format,
                "file": result.files[total.file].path,
                "line": total.line,
                "step_s": seconds(total.step_ns),
                "tflops_per_gpu": decimals(total.tflops),
                "values": dict(total.values),
            }
            for total in result.run_totals
        ],
    }


def _members(result: LogResult) -> dict[str, Any]:
    """Who took part, and the calls of each."""
    calls = result.calls
    return {
        "processes": [
            {"host": p.host, "pid": p.pid, "rank": known(p.rank)} for p in result.processes
        ],
        "gpus": [asdict(gpu) | {"label": gpu.label} for gpu in result.gpus],
        "communicators": [_communicator(result, one) for one in result.communicators],
        "groups": [
            asdict(group) | {"purpose": purpose}
            for group, purpose in zip(result.groups, purposes(result), strict=True)
        ],
        "per_rank": _owned(per_owner(calls, job_ranks(result)), "rank"),
        "per_gpu": _owned(per_owner(calls, calls.gpu), "gpu"),
        "per_communicator": _owned(per_owner(calls, calls.communicator), "communicator"),
    }


def _files(result: LogResult, bounds: Sequence[int], sizes: dict[str, Any]) -> list[dict[str, Any]]:
    """Each file with its own sizes; ``sizes`` are those of all."""
    files, calls = result.files, result.calls
    own = (
        [sizes]
        if len(files) == 1
        else [_sizes(calls.take(calls.file == place), bounds) for place in range(len(files))]
    )
    return [
        asdict(file) | {"versions": list(file.versions)} | mine
        for file, mine in zip(files, own, strict=True)
    ]


def _traffic(calls: Calls) -> list[dict[str, Any]]:
    return [
        {
            "op": row.op,
            "nranks": row.nranks,
            "calls": row.calls,
            "buffer_bytes": row.buffer_bytes,
            "wire_bytes": None if row.wire_bytes is None else number(row.wire_bytes),
        }
        for row in traffic(calls)
    ]


def _average(one: Average) -> dict[str, Any]:
    """An average with its figures as exact decimals."""
    return {
        "format": one.format,
        "steps": one.steps,
        "iterations": [one.first, one.last],
        "average_train_step_timing_s": seconds(one.step_ns),
        "average_tflops_per_gpu": decimals(one.tflops),
        "timed_lines": one.timed,
        "rated_lines": one.rated,
        "tflops_estimated": one.estimated,
    }


def _sizes(calls: Calls, bounds: Sequence[int]) -> dict[str, Any]:
    return {
        "collective_lines": len(calls),
        "per_op": {row.op: _size_json(row) for row in per_op(calls)},
        "histogram": [asdict(row) for row in histogram(calls, bounds)],
        "aggregate": [
            {
                "calls": row.calls,
                "op": row.op,
                "count": row.count,
                "dtype": row.dtype,
                "bytes_per_call": known(row.bytes),
            }
            for row in aggregate(calls)
        ],
    }


def _size_json(row: SizeRow) -> dict[str, Any]:
    sizes = {
        "calls": row.calls,
        "min_bytes": row.min_bytes,
        "max_bytes": row.max_bytes,
        "total_bytes": row.total_bytes,
        "avg_bytes": number(row.mean_bytes),
    }
    return sizes | ({"calls_of_unknown_size": row.unsized} if row.unsized else {})


def _owned(rows: Sequence[SizeRow], name: str) -> list[dict[str, Any]]:
    return [{name: known(row.owner), "op": row.op, **_size_json(row)} for row in rows]


def _rate(calls: Calls) -> dict[str, Any] | None:
    found = rate(calls)
    if found is None:
        return None
    return {
        "first_ns": found.first_ns,
        "last_ns": found.last_ns,
        "calls_per_s": number(found.calls_per_s),
        "bytes_per_s": number(found.bytes_per_s),
    }


def _window(result: LogResult) -> dict[str, Any] | None:
    window = result.window
    if window is None:
        return None
    return {
        "first": window.first,
        "last": window.last,
        "legacy": window.legacy,
        "lines": window.lines,
        "steps": len(window.steps),
        "step_lines_inside": list(window.step_lines),
        "steps_whose_collectives_it_really_holds": list(window.steps),
    }


def _communicator(result: LogResult, one: Communicator) -> dict[str, Any]:
    return {
        "comm": one.pointer,
        "rank": known(one.rank),
        "nranks": known(one.nranks),
        "cuda_device": known(one.cuda_device),
        "bus_id": one.bus_id or None,
        "comm_id": one.comm_id or None,
        "collective_lines": one.calls,
        **process_json(result, one.process),
        "gpu": known(one.gpu),
        "group": one.group,
        "nodes": known(one.nodes),
        "local_ranks": known(one.local_ranks),
        "local_rank": known(one.local_rank),
        "parent": one.parent or None,
        "ended": one.ended or None,
        "file": result.files[one.first[0]].path,
        "first_line": one.first[1],
    }


def _topology(result: LogResult) -> dict[str, Any]:
    found = result.topology
    return {
        "groups": [_group_topology(one) for one in found.groups],
        "network": [
            {"subject": subject, "text": text, "lines": n} for subject, text, n in found.network
        ],
        "unattributed_lines": found.unattributed,
    }


def _group_topology(one: GroupTopology) -> dict[str, Any]:
    return {
        "group": known(one.group),
        "channels": dict(one.channels),
        "rings": [asdict(ring) for ring in one.rings],
        "trees": [asdict(node) for node in one.trees],
        "edges": [
            asdict(edge) | {"kind": edge.kind, "gpu_direct": edge.gpu_direct} for edge in one.edges
        ],
        "transports": one.transports(),
        "nvls_heads": one.nvls_heads,
        "nvls_head_ranks": [{"head": head, "ranks": r} for head, r in one.nvls_head_ranks],
        "facts": [{"text": text, "lines": n} for text, n in one.facts],
    }


def _mpi(result: LogResult) -> dict[str, Any]:
    return {
        "calls": len(result.mpi.calls),
        "torn_lines": result.mpi.torn_lines,
        "world_ranks": list(result.mpi.world_ranks),
        "per_call": [asdict(row) for row in result.mpi.per_call()],
    }


def call_rows(result: LogResult) -> Iterator[dict[str, Any]]:
    """The call list, one object per call, in file and line order."""
    for row in result.calls.rows():
        pointer = result.communicators[row["communicator"]]
        yield {
            "file": result.files[row["file"]].path,
            "line": row["line"],
            "op": row["op"],
            "count": row["count"],
            "dtype": row["dtype"],
            "bytes": known(row["bytes"]),
            "reduction": row["reduction"] or None,
            "root": row["root"],
            "opcount": f"{row['op_count'] & (2**64 - 1):x}",
            "comm": pointer.pointer,
            "comm_id": pointer.comm_id or None,
            "communicator": row["communicator"],
            **process_json(result, row["process"]),
            "tid": known(row["thread"]),
            "rank": known(row["rank"]),
            "nranks": known(row["nranks"]),
            "gpu": known(row["gpu"]),
            "stream": row["stream"],
            "in_place": row["in_place"],
            "step": known(row["step"]),
            "torn": row["torn"],
        }
