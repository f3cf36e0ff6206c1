"""Every section of what logs say, for text output and for a screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from nsys_tui.logs.figures import decimals, seconds
from nsys_tui.logs.others.servers import throughput
from nsys_tui.logs.sections import hang_tables, other_tables, size_tables, structure_tables
from nsys_tui.logs.sections.headline import headline
from nsys_tui.logs.sections.section import LogAnswer, Section, count, item, known, shown, text
from nsys_tui.logs.steps import Average, all_averages, average_range, epoch_averages
from nsys_tui.model.table import Column, Table, Unit, column

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


def in_short(answer: LogAnswer) -> list[Table]:
    """The headline, to stand before all sections; nothing where there is none."""
    said = headline(answer)
    return [Table("headline", "In short", (Column("Finding"),), ([],), tuple(said))] if said else []


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
    if any(row.approximate and row.step for row in rows):
        notes.append(
            "≈ times are not printed: they are those between stamps, clocks or whole seconds"
        )
    for row in rows:
        if row.warmup and row.epoch < 0:
            mean = seconds(row.step_ns) or "-"
            notes.append(f"{row.format}: {_warm(row.warmup)} the mean is {mean} s")
        if row.lines > row.steps:
            notes.append(
                f"{row.format}: {row.lines} lines of {row.steps} step{'s' * (row.steps != 1)}:"
                " each step counts once"
            )
    return notes + [one.words() for one in result.run_totals if not one.of_benchmark]


def _warm(steps: Sequence[int]) -> str:
    if len(steps) == 1:
        return f"step {steps[0]} is warm-up; with it"
    return f"steps {', '.join(map(str, steps))} are warm-up; with them"


def _spread(name: str, part: str, places: int = 0) -> Any:
    """Reads one figure of a spread, as text."""

    def read(row: Average, _: Any) -> str | None:
        spread = getattr(row, name)
        if spread is None:
            return None
        value = getattr(spread, part)
        return seconds(value) if name == "step" else decimals(value, places)

    return read


def _approximate(read: Any, flag: str) -> Any:
    def marked(row: Average, result: Any) -> str | None:
        value = read(row, result)
        return None if value is None else "≈ " * getattr(row, flag) + value

    return marked


def _rate(name: str, places: int) -> Any:
    """Reads the mean of a rate, and whose it is where that is one GPU."""
    read = _spread(name, "mean", places)

    def named(row: Average, result: Any) -> str | None:
        value = read(row, result)
        return None if value is None else value + " per GPU" * (name in row.per_gpu)

    return named


def _every_average(answer: LogAnswer) -> list[Average]:
    """Each trainer, then its epochs."""
    epochs = epoch_averages(answer.result)
    return [
        row
        for whole in all_averages(answer.result)
        for row in (whole, *(one for one in epochs if one.format == whole.format))
    ]


def _file(header: str, name: str) -> Any:
    return shown(header, lambda row, _: getattr(row[1], name), Unit.COUNT)


_EVERY: Final = (
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
    *size_tables.OF_ALL,
    Section(
        "steps",
        "Training steps",
        (
            column("format", "Trainer"),
            shown("Epoch", lambda row, _: None if row.epoch < 0 else row.epoch),
            shown("Median step (s)", _approximate(_spread("step", "median"), "approximate")),
            shown("p95 (s)", _spread("step", "p95")),
            shown("Average (s)", _spread("step", "mean")),
            shown("Tokens/s", _rate("tokens", 1)),
            shown("Samples/s", _rate("samples", 3)),
            shown("Average TFLOPs per GPU", _approximate(_spread("flops", "mean", 6), "estimated")),
            count("steps", "Step lines"),
            known("first", "From"),
            known("last", "To"),
            shown("Warm-up", lambda row, _: len(row.warmup) or None),
        ),
        _every_average,
        _of_steps,
        "no step lines",
        lambda answer: (
            len(answer.result.step_lines)
            + sum(not one.of_benchmark for one in answer.result.run_totals)
        ),
    ),
    Section(
        "throughput",
        "Throughput of inference servers (tokens/s)",
        (
            column("format", "Server"),
            text("engine", "Engine"),
            shown("Run", lambda row, _: row.run or "all"),
            count("lines", "Lines"),
            shown("Warm-up", lambda row, _: row.warmup or None),
            shown("Generation", _spread("generation", "mean", 1)),
            shown("Median", _spread("generation", "median", 1)),
            shown("p95", _spread("generation", "p95", 1)),
            shown("Max", _spread("generation", "max", 1)),
            shown("Prompt", _spread("prompt", "mean", 1)),
            shown("Most running", lambda row, _: row.most_running),
            shown("Most waiting", lambda row, _: row.most_waiting),
        ),
        lambda answer: throughput(answer.result.servers),
        none="no line of vLLM, SGLang, llama.cpp or Ollama",
        count=lambda answer: len(answer.result.servers),
    ),
    *size_tables.OF_OWNERS,
    *structure_tables.SECTIONS,
    *hang_tables.SECTIONS,
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
    *size_tables.CALL_BY_CALL,
    *other_tables.SECTIONS,
)
SECTIONS: Final = {section.name: section for section in _EVERY}
"""All sections by name, in reading order."""
SUMMARY: Final = (
    "files",
    "timeouts",
    "recorder",
    "steps",
    "throughput",
    "per-op",
    "histogram",
    "aggregate",
    "exchanges",
    "gpus",
    "tuning",
    "topology",
    "hangs",
    "warnings",
    "kernels",
    "mpi",
    "api",
    "benchmarks",
    "measured",
    "mpip",
    "mpip-sites",
)
"""Those that are printed when none is named."""
