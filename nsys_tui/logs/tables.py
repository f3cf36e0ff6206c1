"""Every section of what logs say, for text output and for a screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.logs import api_tables, hang_tables, section_names, size_tables, structure_tables
from nsys_tui.logs.decimals import decimals, seconds
from nsys_tui.logs.sections import LogAnswer, Section, count, item, shown
from nsys_tui.logs.step_averages import all_averages, average_range
from nsys_tui.model.table import Unit, column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.logs.trainers import RunTotal

KERNELS: Final = (
    column("kernel", "Kernel"),
    count("count", "Count"),
    column("min_ns", "Min"),
    column("mean_ns", "Mean"),
    column("max_ns", "Max"),
    count("unfinished", "Unfinished"),
)
MPI: Final = (
    column("name", "Call"),
    count("calls", "Calls"),
    count("min_bytes", "Min bytes"),
    count("max_bytes", "Max bytes"),
    count("total_bytes", "Total bytes"),
)
ENVIRONMENT: Final = (
    column("name", "Variable", item(0)),
    column("value", "Value", item(1)),
    count("lines", read=item(2)),
)
WARNINGS: Final = (count("lines", "Lines", item(1)), column("text", "Text", item(0)))


def _folder(answer: LogAnswer) -> str:
    """The folder that all files are in, empty for none."""
    folders = {str(Path(file.path).parent) for file in answer.result.files}
    return folders.pop() if len(folders) == 1 and folders != {"."} else ""


def _files(answer: LogAnswer) -> list[Any]:
    """Names of the files in their folder, with the files."""
    folder = _folder(answer)
    return [(Path(one.path).name if folder else one.path, one) for one in answer.result.files]


def _of_files(answer: LogAnswer, _: Sequence[Any]) -> list[str]:
    folder, window = _folder(answer), answer.result.window
    notes = [f"in {folder}"] * bool(folder)
    notes += [f"skipped {path}: {why}" for path, why in answer.result.skipped]
    if window is not None:
        kind = "legacy window" if window.legacy else "window"
        held = ", ".join(map(str, window.steps)) or "none"
        notes.append(
            f"{kind}: steps {window.first} to {window.last}, {window.lines} lines; "
            f"collectives of steps {held}"
        )
    return notes


def _of_steps(answer: LogAnswer, rows: Sequence[Any]) -> list[str]:
    result, notes = answer.result, []
    first, last = average_range(result)
    if not rows and result.step_lines:
        notes = [f"no matching iterations found in range {first}-{last}"]
    if any(row.estimated for row in rows):
        notes.append("≈ TFLOPs worked out by us, the trainer prints none")
    return notes + [_total(total) for total in result.run_totals]


def _total(total: RunTotal) -> str:
    """What a trainer says of the whole run, in words."""
    said = []
    if total.step_ns is not None:
        said.append(f"average step {seconds(total.step_ns)} s")
    if total.tflops is not None:
        said.append(f"average TFLOPs per GPU ≈ {decimals(total.tflops)}")
    said += [f"{name} {value}" for name, value in total.values if name != "ms"]
    return f"{total.format} at the end: {', '.join(said)}"


def _file(header: str, name: str) -> Any:
    return shown(header, lambda row, _: getattr(row[1], name), Unit.COUNT)


_ALL: Final = (
    Section(
        "files",
        "Logs",
        (
            shown("File", item(0)),
            _file("Lines", "lines"),
            _file("NCCL lines", "header_lines"),
            _file("Collectives", "collective_lines"),
            _file("Torn", "torn_lines"),
            _file("Cut", "cut_lines"),
            shown("NCCL version", lambda row, _: ", ".join(row[1].versions) or None),
        ),
        _files,
        _of_files,
    ),
    Section(
        "steps",
        "Training steps",
        (
            column("format", "Trainer"),
            count("steps", "Steps"),
            count("first", "From"),
            count("last", "To"),
            shown("Average step (s)", lambda row, _: seconds(row.step_ns)),
            shown(
                "Average TFLOPs per GPU",
                lambda row, _: "≈ " * row.estimated + (decimals(row.tflops) or "-"),
            ),
        ),
        lambda answer: all_averages(answer.result),
        _of_steps,
        "no step lines",
        lambda answer: len(answer.result.step_lines) + len(answer.result.run_totals),
    ),
    Section(
        "kernels",
        "Collective kernels by RCCL's trace",
        KERNELS,
        lambda answer: answer.result.kernels,
    ),
    Section(
        "mpi",
        "MPI calls",
        MPI,
        lambda answer: answer.result.mpi.per_call(),
        none="no lines of the MPI logger",
    ),
    Section(
        "environment", "NCCL variables set", ENVIRONMENT, lambda answer: answer.result.environment
    ),
    Section("warnings", "NCCL warnings", WARNINGS, lambda answer: answer.result.warnings),
    *size_tables.SECTIONS,
    *structure_tables.SECTIONS,
    *hang_tables.SECTIONS,
    *api_tables.SECTIONS,
)
_BY_NAME: Final = {section.name: section for section in _ALL}
SECTIONS: Final = {name: _BY_NAME[name] for name in section_names.SECTIONS}
"""All sections by name, in reading order."""
