"""Sections of what others than NCCL and trainers wrote: benchmarks, mpiP, plugins, PyTorch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

from nsys_tui.logs.figures import decimals
from nsys_tui.logs.nccl.plugins import ENQUEUE, measured_rows
from nsys_tui.logs.others.benchmark_tables import Point, Series
from nsys_tui.logs.others.pytorch import dump_verdicts, timeout_verdicts
from nsys_tui.logs.sections.section import LogAnswer, Section, count, file_path, known, shown, text
from nsys_tui.model.table import Column, Unit, column, data, records


def _plain(value: Fraction | None, digits: int = 2) -> str | None:
    return decimals(value, digits)


def _figure(key: str, header: str, read: Any, digits: int = 2) -> Column:
    """An exact figure: with fixed decimals for people, with six for programs."""
    return column(key, header, lambda row, _: _plain(read(row), digits))


def _end(series: Series, last: bool) -> Fraction | None:
    numbers = series.numbers()
    return numbers[-1 if last else 0] if numbers else None


def _best(series: Series) -> Fraction | None:
    return series.best.busbw if series.best else None


_POINT: Final = (
    count("size_bytes", read=lambda point, _: point.size),
    _figure("value", "", lambda point: point.value, 6),
    _figure("algbw_gb_per_s", "", lambda point: point.algbw, 6),
    _figure("busbw_gb_per_s", "", lambda point: point.busbw, 6),
    _figure("our_algbw_gb_per_s", "", lambda point: point.our_algbw, 6),
    _figure("our_busbw_gb_per_s", "", lambda point: point.our_busbw, 6),
    data("wrong", lambda point, _: point.wrong or None),
)
BENCHMARKS: Final = (
    column("kind", "Benchmark"),
    text("test", "Test"),
    column("column", "Column"),
    _figure("max_busbw_gb_per_s", "Max busbw", _best),
    count("at_bytes", "At bytes", lambda series, _: series.best.size if series.best else None),
    _figure("min_value", "Min", lambda series: min(series.numbers(), default=None)),
    _figure("max_value", "Max", lambda series: max(series.numbers(), default=None)),
    _figure("first_value", "First", lambda series: _end(series, False)),
    _figure("last_value", "Last", lambda series: _end(series, True)),
    count("first_size_bytes", "From", lambda s, _: s.points[0].size if s.points else None),
    count("last_size_bytes", "To", lambda s, _: s.points[-1].size if s.points else None),
    count("rows", "Rows", lambda series, _: len(series.points)),
    known("nranks", "Ranks"),
    _figure("printed_mean_busbw_gb_per_s", "", lambda series: series.printed_mean_busbw, 6),
    count("out_of_bounds"),
    file_path(lambda series: series.file),
    count("line"),
    records("points", _POINT),
)


def _remarks(answer: LogAnswer, rows: Sequence[Series]) -> Iterator[str]:
    yield from (one.words() for one in answer.result.run_totals if one.of_benchmark)
    tests = [series for series in rows if series.of_bandwidth]
    for series in tests:
        if wrong := series.wrong_rows:
            yield f"line {series.line}, {series.column}: rows with wrong results: {wrong}"
    for series in {(one.file, one.line): one for one in tests}.values():
        if series.runs > 1:
            yield (
                f"line {series.line}: {series.runs} runs list the same ranks and print into one"
                " another: each is alone, as nccl-tests built without MPI=1 is under mpirun"
            )
        told = []
        if mean := _plain(series.printed_mean_busbw, 4):
            told.append(f"average bus bandwidth {mean} GB/s")
        if series.out_of_bounds is not None:
            told.append(f"out of bounds {series.out_of_bounds}")
        if told:
            yield f"line {series.line}: {', '.join(told)}"
    if tests:
        names = " and ".join(dict.fromkeys(series.kind for series in tests))
        yield f"{names}: values are µs, bandwidths GB/s (10^9 bytes); rows in benchmark-rows"
    if any(not series.test and series.nranks > 1 for series in tests):
        yield "the file names no test: our bus bandwidth takes the factor that the rows show"


class _Row(NamedTuple):
    series: Series
    point: Point


def _rows(answer: LogAnswer) -> list[_Row]:
    return [_Row(one, point) for one in answer.result.benchmarks for point in one.points]


def _of_point(header: str, name: str) -> Column:
    return shown(header, lambda row, _: _plain(getattr(row.point, name)))


_BENCHMARK_ROWS: Final = (
    shown("Test", lambda row, _: row.series.test or row.series.kind),
    shown("Column", lambda row, _: row.series.column),
    shown("Size", lambda row, _: row.point.size, Unit.COUNT),
    _of_point("Value", "value"),
    _of_point("algbw", "algbw"),
    _of_point("Our algbw", "our_algbw"),
    _of_point("busbw", "busbw"),
    _of_point("Our busbw", "our_busbw"),
    shown("Wrong", lambda row, _: row.point.wrong or None),
)
TASKS: Final = (
    column("task", "Task"),
    _figure("app_s", "App time (s)", lambda task: task.app_s, 3),
    _figure("mpi_s", "MPI time (s)", lambda task: task.mpi_s, 3),
    _figure("mpi_percent", "MPI %", lambda task: task.mpi_percent),
)
SITES: Final = (
    column("call", "Call"),
    count("site", "Site"),
    _figure("time_ms", "Time (ms)", lambda site: site.time_ms),
    _figure("app_percent", "App %", lambda site: site.app_percent),
    _figure("mpi_percent", "MPI %", lambda site: site.mpi_percent),
    count("calls", "Calls"),
)
MPIP: Final = (
    text("version"),
    count("callsites"),
    records("tasks", TASKS),
    records("sites", SITES),
)


def _of_mpip(answer: LogAnswer, _: Sequence[Any]) -> Iterator[str]:
    for report in answer.result.mpip:
        alone = [task for task in report.tasks if task.task != "*" and task.mpi_percent is not None]
        if alone:
            most = max(alone, key=lambda task: task.mpi_percent or 0)
            least = min(alone, key=lambda task: task.mpi_percent or 0)
            yield (
                f"mpiP {report.version}: {len(alone)} tasks, {report.callsites} call sites; most"
                f" MPI: task {most.task} {_plain(most.mpi_percent)}%, least: task {least.task}"
                f" {_plain(least.mpi_percent)}%"
            )


def _mean(key: str, header: str, name: str) -> Column:
    def read(row: Any) -> Fraction | None:
        spread = getattr(row, name)
        return spread.mean if spread else None

    return _figure(key, header, read, 6)


MEASURED: Final = (
    column("op", "Operation"),
    known("size_bytes", "Bytes", "bytes"),
    known("nranks", "Ranks"),
    count("calls", "Calls"),
    _mean("mean_us", "Mean (us)", "time_us"),
    _mean("algbw_gb_per_s", "algbw", "algbw"),
    _figure("our_algbw_gb_per_s", "Our algbw", lambda row: row.our_algbw, 6),
    _mean("busbw_gb_per_s", "busbw", "busbw"),
    _figure("our_busbw_gb_per_s", "Our busbw", lambda row: row.our_busbw, 6),
    text("source", "Timed by"),
)
TIMEOUTS: Final = (
    count("rank", "Rank"),
    text("process_group", "Group", "group"),
    known("seq", "Number"),
    text("op", "Collective"),
    known("elements", "Elements", "sent"),
    known("limit_ms", "Limit (ms)"),
    known("ran_ms", "Ran (ms)"),
    known("last_enqueued", "Last enqueued", "enqueued"),
    known("last_completed", "Last completed", "completed"),
    file_path(lambda one: one.file),
    count("line", "Line"),
)
STATUSES: Final = (
    known("rank", "Rank"),
    column("process_group", "Group", lambda row, _: row.group),
    text("name", "Name"),
    text("members", "Ranks"),
    known("last_enqueued", "Last enqueued", "enqueued"),
    known("last_started", "Last started", "started"),
    known("last_completed", "Last completed", "completed"),
)
ENTRIES: Final = (
    known("rank", "Rank"),
    column("process_group", "Group", lambda row, _: row.group),
    known("seq", "Number"),
    column("op", "Collective"),
    column("state", "State"),
    text("sizes", "Sizes"),
    known("duration_ns", "Created to completed", "duration_ns"),
)


def _entries(answer: LogAnswer) -> list[Any]:
    """What did not complete first."""
    entries = [one for dump in answer.result.dumps for one in dump.entries]
    return sorted(entries, key=lambda one: one.state == "completed")


def _by_rank(answer: LogAnswer) -> list[Any]:
    return sorted(answer.result.timeouts, key=lambda one: (one.rank, one.seq))


SECTIONS: Final = (
    Section(
        "benchmarks",
        "Benchmark tables",
        tuple(one for one in BENCHMARKS if one.name not in ("file", "line")),
        lambda answer: list(answer.result.benchmarks),
        _remarks,
        "no table of a known benchmark",
        longest="series",
        count=lambda answer: (
            len(answer.result.benchmarks)
            + sum(one.of_benchmark for one in answer.result.run_totals)
        ),
    ),
    Section(
        "benchmark-rows",
        "Rows of benchmark tables",
        _BENCHMARK_ROWS,
        _rows,
        longest="rows",
        none="no table of a known benchmark",
    ),
    Section(
        "measured",
        "Collectives measured by NCCL's plugins",
        MEASURED,
        lambda answer: measured_rows(answer.result.measured),
        lambda _, rows: (
            ["host enqueue: the time in which the host enqueued them, no duration"]
            * any(row.source == ENQUEUE for row in rows)
        ),
        "no event of the inspector or profiler plugin",
    ),
    Section(
        "timeouts",
        "Collectives that ran out of time",
        tuple(one for one in TIMEOUTS if one.name != "file"),
        _by_rank,
        lambda answer, _: timeout_verdicts(answer.result.timeouts),
        "no time-out of PyTorch's watchdog",
    ),
    Section(
        "recorder",
        "PyTorch's flight recorder",
        STATUSES,
        lambda answer: [one for dump in answer.result.dumps for one in dump.statuses],
        lambda answer, _: dump_verdicts(answer.result.dumps),
        "no dump of the flight recorder in JSON",
        lambda answer: len(answer.result.dumps),
    ),
    Section(
        "recorder-entries",
        "Collectives that the flight recorder holds",
        ENTRIES,
        _entries,
        longest="entries",
        none="no dump of the flight recorder in JSON",
    ),
    Section(
        "mpip",
        "MPI time by mpiP",
        TASKS,
        lambda answer: [task for report in answer.result.mpip for task in report.tasks],
        _of_mpip,
        "no report of mpiP",
        lambda answer: len(answer.result.mpip),
    ),
    Section(
        "mpip-sites",
        "Call sites by mpiP",
        SITES,
        lambda answer: [site for report in answer.result.mpip for site in report.sites],
        none="no report of mpiP",
    ),
)
