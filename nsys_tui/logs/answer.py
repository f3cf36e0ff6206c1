"""The result as one document for programs: integers are exact, names are as logged, -1 is null."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.logs.advice import Advice, advise
from nsys_tui.logs.communicator_purpose import purposes
from nsys_tui.logs.decimals import decimals, known, seconds
from nsys_tui.logs.grammar import opcount_text
from nsys_tui.logs.mpi import MpiRow
from nsys_tui.logs.participants import Gpu, Group
from nsys_tui.logs.result import InitTiming, KernelRow, LogFile, TuningRow
from nsys_tui.logs.select import job_ranks
from nsys_tui.logs.statistics import (
    DEFAULT_BOUNDS,
    BucketRow,
    aggregate,
    histogram,
    per_op,
    per_owner,
    rate,
    traffic,
)
from nsys_tui.logs.step_averages import all_averages, average_of
from nsys_tui.logs.topology import Edge, Ring, TreeNode
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_tui.logs.calls import Calls
    from nsys_tui.logs.hangs import HangReport
    from nsys_tui.logs.result import LogResult


@dataclass(frozen=True, eq=False)
class LogAnswer:
    """What was read, and what is asked of it."""

    result: LogResult
    hangs: HangReport
    bounds: Sequence[int] = DEFAULT_BOUNDS
    """Bucket bounds of the histogram in bytes."""
    lists: frozenset[str] = frozenset()
    """Call lists that are wanted: ``calls``, ``api_calls``."""

    @property
    def calls(self) -> Calls:
        """The calls that count."""
        return self.result.calls


@dataclass(frozen=True, eq=False)
class _File:
    """One file with its own calls."""

    file: LogFile
    calls: Calls
    bounds: Sequence[int]


def _files(answer: LogAnswer, _: Any) -> Iterator[_File]:
    files, calls = answer.result.files, answer.calls
    for place, file in enumerate(files):
        own = calls if len(files) == 1 else calls.take(calls.file == place)
        yield _File(file, own, answer.bounds)


def _known(key: str, name: str = "") -> Column:
    """A whole number in which -1 means that it is not known."""
    return number(key, lambda row, _: known(getattr(row, name or key)))


def _counts(keys: str) -> tuple[Column, ...]:
    return columns(keys, Unit.COUNT)


def _text(key: str, name: str = "") -> Column:
    """A text that is null where it is empty."""
    return data(key, lambda row, _: getattr(row, name or key) or None)


def _pairs(*names: str) -> tuple[Column, ...]:
    """Columns of tuples: texts, and lines counted last."""
    return tuple(
        data(name, _item(place), Unit.COUNT if name == "lines" else Unit.TEXT)
        for place, name in enumerate(names)
    )


def _item(place: int) -> Any:
    return lambda row, _: row[place]


def _through(part: str, one: Column) -> Column:
    """A column read off a part of the row."""
    return replace(one, read=lambda row, shared: one.of(getattr(row, part), shared))


def _process(key: str, of: Any, unit: Unit) -> Column:
    """Host or pid of a row's process, null where it is not known."""

    def read(row: Any, result: LogResult) -> Any:
        place = of(row, result)
        return getattr(result.processes[place], key) if place >= 0 else None

    return data(key, read, unit)


def _host_pid(of: Any) -> tuple[Column, Column]:
    return _process("host", of, Unit.TEXT), _process("pid", of, Unit.COUNT)


_SIZE: Final = (
    *_counts("calls"),
    *columns("min_bytes max_bytes total_bytes"),
    data("avg_bytes", lambda row, _: row.mean_bytes),
    data("calls_of_unknown_size", lambda row, _: row.unsized or None, Unit.COUNT, optional=True),
)
_SIZES: Final = (
    number("collective_lines", lambda a, _: len(a.calls)),
    records("per_op", _SIZE, lambda a, _: {row.op: row for row in per_op(a.calls)}, Form.MAP),
    records("histogram", columns_of(BucketRow), lambda a, _: histogram(a.calls, a.bounds)),
    records(
        "aggregate",
        (
            *_counts("calls"),
            column("op"),
            *_counts("count"),
            column("dtype"),
            _known("bytes_per_call", "bytes"),
        ),
        lambda a, _: aggregate(a.calls),
    ),
)
_FILE: Final = (
    *(_through("file", one) for one in columns_of(LogFile) if one.name != "collective_lines"),
    *_SIZES,
)
_AVERAGE: Final = (
    column("format"),
    *_counts("steps"),
    data("iterations", lambda one, _: (one.first, one.last), Unit.COUNT, form=Form.LIST),
    data("average_train_step_timing_s", lambda one, _: seconds(one.step_ns)),
    data("average_tflops_per_gpu", lambda one, _: decimals(one.tflops)),
    number("timed_lines", lambda one, _: one.timed),
    number("rated_lines", lambda one, _: one.rated),
    data("tflops_estimated", lambda one, _: one.estimated, Unit.FLAG),
)
_RUN_TOTAL: Final = (
    column("format"),
    data("file", lambda total, result: result.files[total.file].path),
    *_counts("line"),
    data("step_s", lambda total, _: seconds(total.step_ns)),
    data("tflops_per_gpu", lambda total, _: decimals(total.tflops)),
    data("values", lambda total, _: dict(total.values), form=Form.MAP),
)
_COMMUNICATOR: Final = (
    _text("comm", "pointer"),
    *map(_known, ("rank", "nranks", "cuda_device")),
    *map(_text, ("bus_id", "comm_id")),
    number("collective_lines", lambda one, _: one.calls),
    *_host_pid(lambda one, _: one.process),
    _known("gpu"),
    *_counts("group"),
    *map(_known, ("nodes", "local_ranks", "local_rank")),
    *map(_text, ("parent", "ended")),
    data("file", lambda one, result: result.files[one.first[0]].path),
    number("first_line", lambda one, _: one.first[1]),
)


def _owned(owner: str) -> tuple[Column, ...]:
    return _known(owner, "owner"), column("op"), *_SIZE


_WINDOW: Final = (
    *_counts("first last"),
    *columns("legacy", Unit.FLAG),
    *_counts("lines"),
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
    _known("group"),
    data("channels", lambda one, _: dict(one.channels), Unit.COUNT, form=Form.MAP),
    records("rings", columns_of(Ring)),
    records("trees", columns_of(TreeNode)),
    records("edges", (*columns_of(Edge), column("kind"), column("gpu_direct", unit=Unit.FLAG))),
    data("transports", lambda one, _: one.transports(), Unit.COUNT, form=Form.MAP),
    *_counts("nvls_heads"),
    records(
        "nvls_head_ranks",
        (number("head", _item(0)), data("ranks", _item(1), Unit.COUNT, form=Form.LIST)),
    ),
    records("facts", _pairs("text", "lines")),
)
_TOPOLOGY: Final = (
    records("groups", _GROUP_TOPOLOGY),
    records("network", _pairs("subject", "text", "lines")),
    number("unattributed_lines", lambda topology, _: topology.unattributed),
)
_API: Final = (
    column("function"),
    *_counts("calls"),
    _known("count"),
    *columns("dtype reduction"),
    _known("bytes"),
    *_counts("processes"),
)


def _known_item(key: str, name: str = "") -> Column:
    """The same of a row that is a mapping."""
    return number(key, lambda row, _: known(row[name or key]))


def _called(row: Any, result: LogResult) -> Any:
    return result.communicators[row["communicator"]]


def _place(member: Any, result: LogResult) -> Any:
    return result.communicators[member.communicator]


_MEMBER: Final = (
    *_counts("communicator"),
    *_host_pid(lambda member, result: _place(member, result).process),
    number("rank", lambda member, result: known(_place(member, result).rank)),
    column("calls", form=Form.LIST),
    data("file", lambda member, result: result.files[member.file].path),
    *_counts("line"),
)


_PROGRESS: Final = (
    *(_through("last", one) for one in _MEMBER),
    number("call_count", lambda one, _: one.calls),
    data("last_opcount", lambda one, _: opcount_text(one.last_op_count) if one.calls else None),
)
_CERTAIN: Final = (
    *_counts("group"),
    data("certain", lambda one, result: result.groups[one.group].certain, Unit.FLAG),
    *columns("by_order", Unit.FLAG),
)
_MISMATCH: Final = (
    *_CERTAIN,
    data("opcount", lambda one, _: None if one.by_order else opcount_text(one.op_count)),
    column("what"),
    column("ops", form=Form.LIST),
    records("members", _MEMBER),
)
_DRIFT: Final = (
    *_CERTAIN,
    records("behind", _PROGRESS),
    records("ahead", _PROGRESS),
    column("missing_ranks", unit=Unit.COUNT),
    column("next_calls", form=Form.LIST),
)
_CALL: Final = (
    data("file", lambda row, result: result.files[row["file"]].path),
    *_counts("line"),
    column("op"),
    *_counts("count"),
    column("dtype"),
    _known_item("bytes"),
    data("reduction", lambda row, _: row["reduction"] or None),
    *_counts("root"),
    data("opcount", lambda row, _: opcount_text(row["op_count"])),
    data("comm", lambda row, result: _called(row, result).pointer),
    data("comm_id", lambda row, result: _called(row, result).comm_id or None),
    *_counts("communicator"),
    *_host_pid(lambda row, _: row["process"]),
    _known_item("tid", "thread"),
    *map(_known_item, ("rank", "nranks", "gpu")),
    column("stream"),
    *columns("in_place", Unit.FLAG),
    _known_item("step"),
    *columns("torn", Unit.FLAG),
)
_API_CALL: Final = (
    data("file", lambda row, result: result.files[row.file].path),
    *_counts("line"),
    *_host_pid(lambda row, _: row.call.process),
    *(
        _through("call", one)
        for one in (
            column("function"),
            _known("count"),
            _text("dtype"),
            data("bytes", lambda call, _: known(call.bytes)),
            _text("reduction", "reduction_name"),
            number("root", lambda call, _: call.root if call.count >= 0 else None),
            _text("comm", "pointer"),
            _text("stream"),
        )
    ),
    *columns("in_place", Unit.FLAG),
    _through("call", _text("arguments")),
)


def _sum(name: str) -> Column:
    return data(name, lambda a, _: sum(getattr(file, name) for file in a.result.files), Unit.COUNT)


def _of_result(key: str, name: str = "") -> Any:
    return lambda answer, _: getattr(answer.result, name or key)


def _versions(answer: LogAnswer) -> list[str]:
    return list(dict.fromkeys(v for file in answer.result.files for v in file.versions))


def _line_count(answer: LogAnswer, _: Any) -> int:
    window = answer.result.window
    return window.lines if window else sum(file.lines for file in answer.result.files)


def _step_lines(_: LogAnswer, result: LogResult) -> list[int]:
    return [s.step for s in result.step_lines if s.format == result.trainer]


def _groups(_: LogAnswer, result: LogResult) -> Any:
    return zip(result.groups, purposes(result), strict=True)


def _group_column(one: Column) -> Column:
    return replace(one, read=lambda pair, _: getattr(pair[0], one.name))


def _list(key: str, inner: tuple[Column, ...], rows: Any) -> Column:
    """A call list: millions of rows, so only where it is asked for."""

    def read(answer: LogAnswer, result: LogResult) -> Any:
        return rows(result) if key in answer.lists else None

    return Column(key=key, read=read, inner=inner, form=Form.LIST, optional=True)


DOCUMENT: Final = Document(
    "logs",
    (
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
            lambda a, _: bool(len(a.calls)) and not a.calls.op_count.any(),
            Unit.FLAG,
        ),
        data("nccl_version", lambda a, _: next(iter(_versions(a)), None)),
        data("nccl_versions", lambda a, _: _versions(a), form=Form.LIST),
        record("window", _WINDOW, _of_result("window")),
        data("trainer", lambda a, _: a.result.trainer or None),
        data("step_lines", _step_lines, Unit.COUNT, form=Form.LIST),
        record("average", _AVERAGE, lambda a, _: average_of(a.result)),
        records("averages", _AVERAGE, lambda a, _: all_averages(a.result)),
        records("run_totals", _RUN_TOTAL, _of_result("run_totals")),
        records(
            "processes", (column("host"), *_counts("pid"), _known("rank")), _of_result("processes")
        ),
        records("gpus", (*columns_of(Gpu), column("label")), _of_result("gpus")),
        records("communicators", _COMMUNICATOR, _of_result("communicators")),
        records(
            "groups",
            (*map(_group_column, columns_of(Group)), data("purpose", lambda pair, _: pair[1])),
            _groups,
        ),
        records("per_rank", _owned("rank"), lambda a, r: per_owner(a.calls, job_ranks(r))),
        records("per_gpu", _owned("gpu"), lambda a, _: per_owner(a.calls, a.calls.gpu)),
        records(
            "per_communicator",
            _owned("communicator"),
            lambda a, _: per_owner(a.calls, a.calls.communicator),
        ),
        records(
            "traffic",
            (
                column("op"),
                *_counts("nranks calls"),
                *columns("buffer_bytes"),
                column("wire_bytes", unit=Unit.NONE),
            ),
            lambda a, _: traffic(a.calls),
        ),
        record(
            "rate",
            (*columns("first_ns last_ns"), *columns("calls_per_s bytes_per_s", Unit.NONE)),
            lambda a, _: rate(a.calls),
        ),
        records("tuning", columns_of(TuningRow), _of_result("tuning")),
        record("topology", _TOPOLOGY, _of_result("topology")),
        records("api", _API, lambda a, _: a.result.api.per_function()),
        records(
            "init_timings",
            (
                *(one for one in columns_of(InitTiming) if one.name != "parts"),
                data("parts", lambda one, _: dict(one.parts), form=Form.MAP),
            ),
            _of_result("timings"),
        ),
        records("rccl_kernels", columns_of(KernelRow), _of_result("kernels")),
        records("environment", _pairs("name", "value", "lines"), _of_result("environment")),
        records("nccl_warnings", _pairs("text", "lines"), _of_result("warnings")),
        records("mismatches", _MISMATCH, lambda a, _: a.hangs.mismatches),
        number("more_mismatches", lambda a, _: a.hangs.more_mismatches),
        records("drifts", _DRIFT, lambda a, _: a.hangs.drifts),
        records("progress", _PROGRESS, lambda a, _: a.hangs.progress),
        number("unchecked_groups", lambda a, _: a.hangs.unchecked_groups),
        record(
            "mpi",
            (
                number("calls", lambda mpi, _: len(mpi.calls)),
                *_counts("torn_lines"),
                column("world_ranks", unit=Unit.COUNT, form=Form.LIST),
                records("per_call", columns_of(MpiRow), lambda mpi, _: mpi.per_call()),
            ),
            _of_result("mpi"),
        ),
        records("advice", columns_of(Advice), lambda a, _: advise(a.result)),
        records("skipped", _pairs("file", "why"), _of_result("skipped")),
        records("files", _FILE, _files),
        _list("calls", _CALL, lambda result: result.calls.rows()),
        _list("api_calls", _API_CALL, lambda result: result.api.rows()),
    ),
)
"""Logs as JSON."""
_SECTION: Final[dict[str, tuple[str, ...]]] = {
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
    "api-calls": (),
}
"""Keys that hold a section; a section of another name has one key of its name."""


def keys_of(sections: Sequence[str]) -> list[str] | None:
    """The keys of some sections, with the window that they are of and the call lists."""
    if not sections:
        return None
    keys = [key for name in sections for key in _SECTION.get(name, (name,))]
    return ["window", "calls", "api_calls", *keys]
