"""The result as one document for programs: integers are exact, names are as logged, -1 is null."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from nsys_tui.logs.figures import decimals, seconds
from nsys_tui.logs.figures import known as known_value
from nsys_tui.logs.nccl.calls import Calls
from nsys_tui.logs.nccl.grammar import opcount_text
from nsys_tui.logs.nccl.participants import Gpu, Group
from nsys_tui.logs.nccl.statistics import aggregate, histogram, per_op, per_owner, rate
from nsys_tui.logs.nccl.topology import Edge, Ring, TreeNode
from nsys_tui.logs.others.pytorch import dump_verdicts, timeout_verdicts
from nsys_tui.logs.others.servers import throughput
from nsys_tui.logs.result import LogFile, LogResult, TuningRow
from nsys_tui.logs.sections.advice import Advice, advise
from nsys_tui.logs.sections.headline import headline
from nsys_tui.logs.sections.other_tables import BENCHMARKS, ENTRIES, MPIP, TIMEOUTS
from nsys_tui.logs.sections.section import (
    LogAnswer,
    file_path,
    host_pid,
    item,
    known,
    through,
    whole_numbers,
)
from nsys_tui.logs.sections.size_tables import API_CALLS, BUCKETS, CALLS, DISTINCT, SIZES, owned
from nsys_tui.logs.sections.tables import MPI, SECTIONS
from nsys_tui.logs.steps import all_averages, average_of, epoch_averages
from nsys_tui.logs.trainers.step_lines import distinct
from nsys_tui.model.table import (
    Column,
    Document,
    Form,
    Unit,
    column,
    columns,
    columns_of,
    data,
    number,
    record,
    records,
)


@dataclass(frozen=True, eq=False)
class _File:
    """One file with its own calls."""

    file: LogFile
    calls: Calls
    bounds: Sequence[int]


def _files(answer: LogAnswer, _: Any) -> Iterator[_File]:
    files, calls = answer.result.files, answer.calls
    for place, file in enumerate(files):
        of_file = calls if len(files) == 1 else calls.take(calls.file == place)
        yield _File(file, of_file, answer.bounds)


def _pairs(*names: str) -> tuple[Column, ...]:
    """Columns of tuples: texts, and lines counted last."""
    return tuple(
        data(name, item(place), Unit.COUNT if name == "lines" else Unit.TEXT)
        for place, name in enumerate(names)
    )


_SIZES: Final = (
    number("collective_lines", lambda a, _: a.calls.total()),
    records("per_op", SIZES, lambda a, _: {row.op: row for row in per_op(a.calls)}, Form.MAP),
    records("histogram", BUCKETS, lambda a, _: histogram(a.calls, a.bounds)),
    records("aggregate", DISTINCT, lambda a, _: aggregate(a.calls)),
)
_FILE: Final = (
    *(through("file", one) for one in columns_of(LogFile) if one.name != "collective_lines"),
    *_SIZES,
)


def _spread(written: Callable[[Fraction | None], str | None]) -> tuple[Column, ...]:
    def figure(name: str) -> Column:
        return data(name, lambda one, _: written(getattr(one, name)))

    return *whole_numbers("count"), *map(figure, ("mean", "median", "p95", "min", "max"))


_SPREAD: Final = _spread(decimals)
_AVERAGE: Final = (
    column("format"),
    known("epoch"),
    *whole_numbers("steps lines"),
    column("warmup", unit=Unit.COUNT, form=Form.LIST),
    record("step_s", _spread(seconds), lambda one, _: one.step),
    record("tflops_per_gpu", _SPREAD, lambda one, _: one.flops),
    record("tokens_per_s", _SPREAD, lambda one, _: one.tokens),
    record("samples_per_s", _SPREAD, lambda one, _: one.samples),
    column("per_gpu", form=Form.LIST),
    column("approximate", unit=Unit.FLAG),
    data("iterations", lambda one, _: (one.first, one.last), Unit.COUNT, form=Form.LIST),
    data("average_train_step_timing_s", lambda one, _: seconds(one.step_ns)),
    data("average_tflops_per_gpu", lambda one, _: decimals(one.tflops)),
    number("timed_lines", lambda one, _: one.timed),
    number("rated_lines", lambda one, _: one.rated),
    data("tflops_estimated", lambda one, _: one.estimated, Unit.FLAG),
)
_RUN_TOTAL: Final = (
    column("format"),
    file_path(lambda total: total.file),
    *whole_numbers("line"),
    data("step_s", lambda total, _: seconds(total.step_ns)),
    data("tflops_per_gpu", lambda total, _: decimals(total.tflops)),
    data("values", lambda total, _: dict(total.values), form=Form.MAP),
    *whole_numbers("steps copies"),
    data(
        "step_range_s",
        lambda total, _: [seconds(ns) for ns in total.step_range_ns or ()] or None,
        form=Form.LIST,
    ),
)
_THROUGHPUT: Final = (
    *columns("format engine"),
    *whole_numbers("run lines warmup"),
    record("prompt", _SPREAD),
    record("generation", _SPREAD),
    *whole_numbers("most_running most_waiting"),
)
_WINDOW: Final = (
    *whole_numbers("first last"),
    *columns("legacy", Unit.FLAG),
    *whole_numbers("lines"),
    number("steps", lambda window, _: len(window.steps)),
    data("step_lines_inside", lambda window, _: window.step_lines, Unit.COUNT, form=Form.LIST),
    data(
        "steps_whose_collectives_it_really_holds",
        lambda window, _: window.steps,
        Unit.COUNT,
        form=Form.LIST,
    ),
)
_GROUP_TOPOLOGY: Final = (
    known("group"),
    data("channels", lambda one, _: dict(one.channels), Unit.COUNT, form=Form.MAP),
    records("rings", columns_of(Ring)),
    records("trees", columns_of(TreeNode)),
    records("edges", (*columns_of(Edge), column("kind"), column("gpu_direct", unit=Unit.FLAG))),
    data("transports", lambda one, _: one.transports(), Unit.COUNT, form=Form.MAP),
    *whole_numbers("nvls_heads"),
    records(
        "nvls_head_ranks",
        (number("head", item(0)), data("ranks", item(1), Unit.COUNT, form=Form.LIST)),
    ),
    records("facts", _pairs("text", "lines")),
)
_TOPOLOGY: Final = (
    records("groups", _GROUP_TOPOLOGY),
    records("network", _pairs("subject", "text", "lines")),
    number("unattributed_lines", lambda topology, _: topology.unattributed),
)


def _place(member: Any, result: LogResult) -> Any:
    return result.communicators[member.communicator]


_MEMBER: Final = (
    *whole_numbers("communicator"),
    *host_pid(lambda member, result: _place(member, result).process),
    number("rank", lambda member, result: known_value(_place(member, result).rank)),
    column("calls", form=Form.LIST),
    file_path(lambda member: member.file),
    *whole_numbers("line"),
    number("call_number", lambda member, _: member.number or None),
    data("last_good", lambda member, _: member.last_good or None),
)


_PROGRESS: Final = (
    *(through("last", one) for one in _MEMBER),
    number("call_count", lambda one, _: one.calls),
    data("last_opcount", lambda one, _: opcount_text(one.last_op_count) if one.calls else None),
)
_CERTAIN: Final = (
    *whole_numbers("group"),
    data("certain", lambda one, result: result.groups[one.group].certain, Unit.FLAG),
    *columns("by_order", Unit.FLAG),
)
_MISMATCH: Final = (
    *_CERTAIN,
    data("opcount", lambda one, _: None if one.by_order else opcount_text(one.op_count)),
    column("what"),
    column("ops", form=Form.LIST),
    records("members", _MEMBER),
    *columns("point_to_point", Unit.FLAG),
    records("waiting", _MEMBER),
)
_DRIFT: Final = (
    *_CERTAIN,
    records("behind", _PROGRESS),
    records("ahead", _PROGRESS),
    column("missing_ranks", unit=Unit.COUNT),
    column("next_calls", form=Form.LIST),
)


def _sum(name: str) -> Column:
    return data(name, lambda a, _: sum(getattr(file, name) for file in a.result.files), Unit.COUNT)


def _of_result(key: str) -> Any:
    return lambda answer, _: getattr(answer.result, key)


def _section(key: str, name: str = "") -> Column:
    """The rows that people see in a section."""
    section = SECTIONS[name or key]
    return records(key, section.columns, lambda answer, _: section.rows(answer))


def _versions(answer: LogAnswer) -> list[str]:
    return list(dict.fromkeys(v for file in answer.result.files for v in file.versions))


def _line_count(answer: LogAnswer, _: Any) -> int:
    window = answer.result.window
    return window.lines if window else sum(file.lines for file in answer.result.files)


def _step_lines(_: LogAnswer, result: LogResult) -> list[int]:
    mine = [one for one in result.step_lines if one.format == result.trainer]
    return [one.step for one in distinct(mine) if one.step >= 0]


def _group_column(one: Column) -> Column:
    return replace(one, read=lambda pair, _: getattr(pair[0], one.name))


def _list(key: str, inner: tuple[Column, ...], rows: Any) -> Column:
    """A call list: millions of rows, so only where it is asked for."""

    def read(answer: LogAnswer, result: LogResult) -> Any:
        return rows(result) if key in answer.lists else None

    return Column(key=key, read=read, inner=inner, form=Form.LIST, optional=True)


_KEYS: Final = {
    "files": ("files", "skipped"),
    "per-op": ("collective_lines", "per_op"),
    "steps": ("trainer", "step_lines", "average", "averages", "epochs", "run_totals"),
    "ranks": ("per_rank",),
    "gpus": ("gpus", "per_gpu"),
    "communicators": ("communicators", "groups", "per_communicator"),
    "rings": ("topology",),
    "trees": ("topology",),
    "edges": ("topology",),
    "hangs": (
        "mismatches",
        "more_mismatches",
        "drifts",
        "unchecked_groups",
        "unchecked_peers",
        "partly_checked_peers",
    ),
    "kernels": ("rccl_kernels",),
    "warnings": ("nccl_warnings",),
    "api-calls": (),
    "benchmark-rows": ("benchmarks",),
    "mpip-sites": ("mpip",),
    "timeouts": ("timeouts", "verdicts"),
    "recorder": ("recorder", "verdicts"),
    "recorder-entries": ("recorder_entries",),
}
DOCUMENT: Final = Document(
    "logs",
    (
        data("in_short", lambda a, _: headline(a), form=Form.LIST),
        *_SIZES,
        number("lines", _line_count),
        *map(
            _sum,
            (
                "header_lines",
                "header_not_at_column_0",
                "torn_lines",
                "cut_lines",
                "tuning_lines",
                "call_lines",
            ),
        ),
        data(
            "all_opcount_zero",
            lambda _, result: bool(result.calls) and result.calls.counter_stands_still,
            Unit.FLAG,
        ),
        data("nccl_version", lambda a, _: next(iter(_versions(a)), None)),
        data("nccl_versions", lambda a, _: _versions(a), form=Form.LIST),
        record("window", _WINDOW, _of_result("window")),
        data("trainer", lambda a, _: a.result.trainer or None),
        data("step_lines", _step_lines, Unit.COUNT, form=Form.LIST),
        record("average", _AVERAGE, lambda a, _: average_of(a.result)),
        records("averages", _AVERAGE, lambda a, _: all_averages(a.result)),
        records("epochs", _AVERAGE, lambda a, _: epoch_averages(a.result)),
        records("run_totals", _RUN_TOTAL, _of_result("run_totals")),
        records("throughput", _THROUGHPUT, lambda a, _: throughput(a.result.servers)),
        records(
            "processes",
            (column("host"), *whole_numbers("pid"), known("rank")),
            _of_result("processes"),
        ),
        records("gpus", (*columns_of(Gpu), column("label")), _of_result("gpus")),
        _section("communicators"),
        records(
            "groups",
            (*map(_group_column, columns_of(Group)), data("purpose", lambda pair, _: pair[1])),
            lambda _, result: zip(result.groups, result.purposes, strict=True),
        ),
        _section("per_rank", "ranks"),
        _section("per_gpu", "gpus"),
        records(
            "per_communicator",
            owned("communicator"),
            lambda a, _: per_owner(a.calls, a.calls.communicator),
        ),
        _section("exchanges"),
        _section("traffic"),
        record(
            "rate",
            (*columns("first_ns last_ns"), *columns("calls_per_s bytes_per_s", Unit.NONE)),
            lambda a, _: rate(a.result.calls),
        ),
        records("tuning", columns_of(TuningRow), _of_result("tuning")),
        record("topology", _TOPOLOGY, _of_result("topology")),
        _section("api"),
        records(
            "init_timings",
            (
                number("process", lambda one, _: one.place.process),
                *whole_numbers("rank nranks"),
                column("parts", form=Form.MAP),
            ),
            _of_result("timings"),
        ),
        records("benchmarks", BENCHMARKS, _of_result("benchmarks")),
        _section("measured"),
        records("mpip", MPIP, _of_result("mpip")),
        records("timeouts", TIMEOUTS, _of_result("timeouts")),
        data(
            "verdicts",
            lambda a, _: timeout_verdicts(a.result.timeouts) + dump_verdicts(a.result.dumps),
            form=Form.LIST,
        ),
        _section("recorder"),
        records(
            "recorder_entries", ENTRIES, lambda a, _: [e for d in a.result.dumps for e in d.entries]
        ),
        _section("rccl_kernels", "kernels"),
        _section("environment"),
        _section("nccl_warnings", "warnings"),
        records("mismatches", _MISMATCH, lambda a, _: a.hangs.mismatches),
        number("more_mismatches", lambda a, _: a.hangs.more_mismatches),
        records("drifts", _DRIFT, lambda a, _: a.hangs.drifts),
        records("progress", _PROGRESS, lambda a, _: a.hangs.progress),
        number("unchecked_groups", lambda a, _: a.hangs.unchecked_groups),
        number("unchecked_peers", lambda a, _: a.hangs.unchecked_peers),
        number("partly_checked_peers", lambda a, _: a.hangs.partly_checked_peers),
        record(
            "mpi",
            (
                *whole_numbers("calls torn_lines"),
                column("world_ranks", unit=Unit.COUNT, form=Form.LIST),
                records("per_call", MPI, lambda mpi, _: mpi.per_call()),
            ),
            _of_result("mpi"),
        ),
        records("advice", columns_of(Advice), lambda a, _: advise(a.result)),
        records("skipped", _pairs("file", "why"), _of_result("skipped")),
        records("files", _FILE, _files),
        _list("calls", CALLS, lambda result: result.calls.rows()),
        _list("api_calls", API_CALLS, lambda result: result.api.rows()),
    ),
    sections=_KEYS,
    shared=("window", "calls", "api_calls"),
)
"""Logs as JSON."""
