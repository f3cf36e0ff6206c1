"""The result as titled tables, for text output and for a screen; one small function per table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsys_tui.logs import api_tables, hang_tables, size_tables, structure_tables
from nsys_tui.logs.decimals import decimals, seconds
from nsys_tui.logs.statistics import DEFAULT_BOUNDS
from nsys_tui.logs.step_averages import all_averages, average_range
from nsys_tui.logs.table_parts import count, make, text
from nsys_tui.model.table import Table, Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsys_tui.logs.hangs import HangReport
    from nsys_tui.logs.result import LogResult
    from nsys_tui.logs.trainers import RunTotal


def files_table(result: LogResult) -> Table:
    """Files and what their lines were."""
    files = result.files
    folder, names = _short([file.path for file in files])
    return make(
        "files",
        "Logs",
        {
            "File": text(names),
            "Lines": count([file.lines for file in files]),
            "NCCL lines": count([file.header_lines for file in files]),
            "Collectives": count([file.collective_lines for file in files]),
            "Torn": count([file.torn_lines for file in files]),
            "Cut": count([file.cut_lines for file in files]),
            "NCCL version": text([", ".join(file.versions) or "-" for file in files]),
        },
        [
            *([f"in {folder}"] if folder else []),
            *(f"skipped {path}: {why}" for path, why in result.skipped),
            *_window_notes(result),
        ],
    )


def _short(paths: Sequence[str]) -> tuple[str, list[str]]:
    """The folder that all files are in, empty for none, and their names in it."""
    folders = {str(Path(path).parent) for path in paths}
    if len(folders) != 1 or folders == {"."}:
        return "", list(paths)
    return folders.pop(), [Path(path).name for path in paths]


def _window_notes(result: LogResult) -> list[str]:
    window = result.window
    if window is None:
        return []
    kind = "legacy window" if window.legacy else "window"
    held = ", ".join(map(str, window.steps)) or "none"
    return [
        f"{kind}: steps {window.first} to {window.last}, {window.lines} lines; "
        f"collectives of steps {held}"
    ]


def steps_table(result: LogResult) -> Table:
    """Averages of each trainer's step lines."""
    rows = all_averages(result)
    first, last = average_range(result)
    notes = []
    if not rows and result.step_lines:
        notes = [f"no matching iterations found in range {first}-{last}"]
    if any(row.estimated for row in rows):
        notes.append("≈ TFLOPs worked out by us, the trainer prints none")
    totals = [_total(total) for total in result.run_totals]
    return make(
        "steps",
        "Training steps",
        {
            "Trainer": text([row.format for row in rows]),
            "Steps": count([row.steps for row in rows]),
            "From": count([row.first for row in rows]),
            "To": count([row.last for row in rows]),
            "Average step (s)": text([seconds(row.step_ns) or "-" for row in rows]),
            "Average TFLOPs per GPU": text(
                [("≈ " if row.estimated else "") + (decimals(row.tflops) or "-") for row in rows]
            ),
        },
        notes + totals,
        none="no step lines",
    )


def _total(total: RunTotal) -> str:
    """What a trainer says of the whole run, in words."""
    said = []
    if total.step_ns is not None:
        said.append(f"average step {seconds(total.step_ns)} s")
    if total.tflops is not None:
        said.append(f"average TFLOPs per GPU ≈ {decimals(total.tflops)}")
    said += [f"{name} {value}" for name, value in total.values if name != "ms"]
    return f"{total.format} at the end: {', '.join(said)}"


def kernels_table(result: LogResult) -> Table:
    """Durations by RCCL's kernel trace."""
    rows = result.kernels
    return make(
        "kernels",
        "Collective kernels by RCCL's trace",
        {
            "Kernel": text([row.kernel for row in rows]),
            "Count": count([row.count for row in rows]),
            "Min": (Unit.NS, [row.min_ns for row in rows]),
            "Mean": (Unit.NS, [float(row.mean_ns) for row in rows]),
            "Max": (Unit.NS, [row.max_ns for row in rows]),
            "Unfinished": count([row.unfinished for row in rows]),
        },
    )


def mpi_table(result: LogResult) -> Table:
    """MPI calls of the logger."""
    rows = result.mpi.per_call()
    return make(
        "mpi",
        "MPI calls",
        {
            "Call": text([row.name for row in rows]),
            "Calls": count([row.calls for row in rows]),
            "Min bytes": count([row.min_bytes for row in rows]),
            "Max bytes": count([row.max_bytes for row in rows]),
            "Total bytes": count([row.total_bytes for row in rows]),
        },
        none="no lines of the MPI logger",
    )


def environment_table(result: LogResult) -> Table:
    """NCCL variables that were set."""
    rows = result.environment
    return make(
        "environment",
        "NCCL variables set",
        {"Variable": text([row[0] for row in rows]), "Value": text([row[1] for row in rows])},
    )


def warnings_table(result: LogResult) -> Table:
    """NCCL's own warnings."""
    rows = result.warnings
    return make(
        "warnings",
        "NCCL warnings",
        {"Lines": count([n for _, n in rows]), "Text": text([text for text, _ in rows])},
    )


SECTIONS: Final[dict[str, Callable[[LogResult, HangReport, Sequence[int], int | None], Table]]] = {
    "files": lambda r, _h, _b, _t: files_table(r),
    "per-op": lambda r, _h, _b, _t: size_tables.per_op_table(r),
    "histogram": lambda r, _h, b, _t: size_tables.histogram_table(r, b),
    "aggregate": lambda r, _h, _b, t: size_tables.aggregate_table(r, t),
    "traffic": lambda r, _h, _b, _t: size_tables.traffic_table(r),
    "steps": lambda r, _h, _b, _t: steps_table(r),
    "ranks": lambda r, _h, _b, _t: size_tables.ranks_table(r),
    "gpus": lambda r, _h, _b, _t: size_tables.gpus_table(r),
    "communicators": lambda r, _h, _b, _t: structure_tables.communicators_table(r),
    "tuning": lambda r, _h, _b, _t: structure_tables.tuning_table(r),
    "topology": lambda r, _h, _b, _t: structure_tables.topology_table(r),
    "rings": lambda r, _h, _b, _t: structure_tables.rings_table(r),
    "trees": lambda r, _h, _b, _t: structure_tables.trees_table(r),
    "edges": lambda r, _h, _b, _t: structure_tables.edges_table(r),
    "hangs": lambda r, h, _b, _t: hang_tables.hangs_table(r, h),
    "progress": lambda r, h, _b, _t: hang_tables.progress_table(r, h),
    "kernels": lambda r, _h, _b, _t: kernels_table(r),
    "mpi": lambda r, _h, _b, _t: mpi_table(r),
    "environment": lambda r, _h, _b, _t: environment_table(r),
    "warnings": lambda r, _h, _b, _t: warnings_table(r),
    "calls": lambda r, _h, _b, t: size_tables.calls_table(r, t),
    "api": lambda r, _h, _b, _t: api_tables.api_table(r),
    "api-calls": lambda r, _h, _b, t: api_tables.api_calls_table(r, t),
}
"""All tables by name, in reading order."""


def has_rows(name: str, result: LogResult, hangs: HangReport) -> bool:
    """Whether the logs have anything for a table; cheap, since no table is made."""
    groups = result.topology.groups
    found = {
        "files": True,
        "steps": result.step_lines or result.run_totals,
        "tuning": result.tuning,
        "topology": groups or result.topology.network,
        "rings": any(one.rings for one in groups),
        "trees": any(one.trees for one in groups),
        "edges": any(one.edges for one in groups),
        "communicators": result.communicators,
        "hangs": hangs.mismatches or hangs.drifts,
        "progress": hangs.progress,
        "kernels": result.kernels,
        "mpi": result.mpi.calls,
        "environment": result.environment,
        "warnings": result.warnings,
        "api": len(result.api),
        "api-calls": len(result.api),
    }
    return bool(found.get(name, len(result.calls)))


SUMMARY: Final = (
    "files",
    "steps",
    "per-op",
    "histogram",
    "aggregate",
    "gpus",
    "tuning",
    "topology",
    "hangs",
    "warnings",
    "kernels",
    "mpi",
    "api",
)
"""Tables that are printed when none is named."""


def make_table(
    name: str,
    result: LogResult,
    hangs: HangReport,
    bounds: Sequence[int] = DEFAULT_BOUNDS,
    top: int | None = None,
) -> Table:
    """The table of that name.

    Args:
        name: one of ``SECTIONS``.
        result: what was read.
        hangs: what ``find_hangs`` says of it.
        bounds: bucket bounds in bytes.
        top: rows of the long lists; all without it.
    """
    return SECTIONS[name](result, hangs, bounds, top)
