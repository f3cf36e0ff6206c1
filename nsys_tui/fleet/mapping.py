"""The map step: one report in, its summary out. Runs in worker processes, here or on a cluster."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from nsys_tui.analysis.breakdown import Coverage, coverages, split_of
from nsys_tui.analysis.identity import environment_of, from_name, merged
from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.analysis.window import Scope, row_numbers
from nsys_tui.errors import CancelledError, NoDataError, NsysTuiError
from nsys_tui.fleet import summary_parts
from nsys_tui.fleet.ranks import evidence
from nsys_tui.fleet.summary import (
    MAPPED,
    OF_GPU,
    SPLIT,
    Failure,
    Options,
    ProcessSummary,
    ReportSummary,
)
from nsys_tui.fleet.times import Grid, grid_over
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.target import pid_of
from nsys_tui.names import normalise_nvtx
from nsys_tui.reader import open_report
from nsys_tui.reader.ahead import read_ahead
from nsys_tui.reader.filecheck import report_id
from nsys_tui.units import closed

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.model.arrays import Int64
    from nsys_tui.model.events import Operations
    from nsys_tui.model.report import Report
    from nsys_tui.reader.cache import Cache


MOST_BINS: Final = 1024
"""Bins of a heat map at most; half as many at least, for spans that long in ns."""


class Unit(NamedTuple):
    """What may be a rank: a process, or one of several GPUs of it that communicate."""

    process: int
    """globalPid."""
    devices: frozenset[int] | None = None
    """Places in ``Report.devices``; None for all."""
    number: int = 0
    """Place among the units of its process."""


class Task(NamedTuple):
    """A report, and what is computed of it."""

    path: str
    options: Options


@dataclass(frozen=True)
class Opening:
    """How reports are opened; has no influence on the result."""

    nsys: str | None = None
    use_cache: bool = True
    cache: Cache | None = None


def map_report(
    path: str, options: Options, opening: Opening | None = None
) -> ReportSummary | Failure:
    """Summarises one report on one processor; whatever is wrong with it becomes a ``Failure``."""
    before = read_ahead.set(False)
    try:
        return summarise(Path(path), options, opening or Opening())
    except CancelledError:
        raise
    except NsysTuiError as error:
        return Failure(path, str(error), error.exit_code)
    except Exception as error:
        logging.getLogger(__name__).debug("cannot summarise %r", path, exc_info=True)
        return Failure(path, f"internal error: {type(error).__name__}: {error}")
    finally:
        read_ahead.reset(before)


def summarise(path: Path, options: Options, opening: Opening) -> ReportSummary:
    """Opens a report and computes its summary.

    Raises:
        UnreadableReportError: the file is no usable report.
        NsysMissingError: it must be exported first and no nsys was found.
        UsageError: the options hold a pattern that is no regular expression.
    """
    report = open_report(
        path,
        nsys=opening.nsys,
        use_cache=opening.use_cache,
        patterns=options.patterns,
        cache=opening.cache,
    )
    try:
        return _summary(report, path, options)
    finally:
        report.close()


def _summary(report: Report, path: Path, options: Options) -> ReportSummary:
    data = report.metadata
    units = report_units(report)
    environment = environment_of(report)
    name = from_name(path.stem, data.host, {pid_of(unit.process) for unit in units})
    said = merged(environment, name)
    anchor = data.session_start_utc_ns or 0
    alone = len({unit.process for unit in units}) == 1
    owners = [unit.process for unit in units]
    ranks = dict(zip(units, evidence(report, owners, environment, name), strict=True))
    scope, units = _asked(report, units, options)
    scopes = [_own(report, unit, scope, alone, options) for unit in units]
    windows = [scope.window for scope in scopes if scope.window is not None]
    lo, hi = _hull(windows) or report.span or report.ranges.bounds() or (0, 1)
    grid = grid_over(lo + anchor, hi + anchor, MOST_BINS)
    ops = report.operations
    return ReportSummary(
        report_id=report_id(path),
        host=data.host or name.host,
        job=name.job,
        node=said.node,
        local=said.local,
        world=said.world,
        start_utc=data.session_start_utc_ns,
        session_ns=data.session_duration_ns,
        base=Scope().base(report),
        grid_shape=(grid.shift, grid.first, grid.count),
        hidden_graphs=bool(((ops.kind == OpKind.GRAPH) & ops.counted).any()),
        processes=tuple(
            _process(report, unit, unit_scope, ranks[unit], grid, options)
            for unit, unit_scope in zip(units, scopes, strict=True)
        ),
        **summary_parts.metric_maps(report, scope, grid, anchor, _hull(windows)),
        gpu_doubt=report.gpu_doubt,
        jobs=environment.jobs,
        node_name=environment.node_name,
        notes=(*data.notes, *report.notes.texts),  # at last: they grow while parts are read
    )


def _asked(report: Report, units: list[Unit], options: Options) -> tuple[Scope, list[Unit]]:
    """The part of a report that counts, and what of its ranks is in it.

    Raises:
        NoDataError: it has nothing of what was asked for.
    """
    choice = options.choice
    for lacking in choice.lacking(report):
        if lacking.all:
            raise NoDataError(lacking.text, hint=lacking.hint)
    scope = choice.scope(report)
    if scope.processes is not None:
        units = [unit for unit in units if pid_of(unit.process) in scope.processes]
    if scope.devices is not None or scope.streams is not None:
        ops = report.operations
        rows = scope.operations(ops)
        working = set(zip(ops.process[rows].tolist(), ops.device[rows].tolist(), strict=True))
        there = {(int(ops.processes[process]), device) for process, device in working}
        units = [unit for unit in units if any(_has(unit, *pair) for pair in there)]
    if not units:
        raise NoDataError("no GPU work of what was asked for in this report")
    return scope, units


def _has(unit: Unit, process: int, device: int) -> bool:
    return unit.process == process and (unit.devices is None or device in unit.devices)


def _own(report: Report, unit: Unit, scope: Scope, alone: bool, options: Options) -> Scope:
    """The part of a report that is a rank, cut to what counts of it."""
    unit_scope = scope if alone else replace(scope, processes=frozenset((pid_of(unit.process),)))
    if unit.devices is not None:
        asked = unit.devices if unit_scope.devices is None else unit_scope.devices & unit.devices
        unit_scope = replace(unit_scope, devices=asked)
    return replace(unit_scope, window=own_window(report, unit_scope, options))


def _hull(windows: list[tuple[int, int]]) -> tuple[int, int] | None:
    """From the first start to the last end; None where everything counts."""
    return (min(lo for lo, _ in windows), max(hi for _, hi in windows)) if windows else None


def told_rank(report: Report, path: Path) -> int:
    """Rank that a report of one GPU process tells, or else its file name; -1 where nothing does."""
    processes = report_processes(report)
    if len(processes) != 1:
        return -1
    pids = {pid_of(process) for process in processes}
    name = from_name(path.stem, report.metadata.host, pids)
    said = evidence(report, processes, environment_of(report), name)[0]
    return said[0][0] if said else -1


def report_processes(report: Report) -> list[int]:
    """globalPid of processes with GPU work, by GPU and process id; else with ranges or MPI."""
    ops = report.operations
    if len(ops):
        width = max(len(ops.devices), 1)
        counts = np.bincount(ops.process.astype(np.int64) * width + ops.device)
        first: dict[int, int] = {}
        for pair in np.flatnonzero(counts).tolist():
            first.setdefault(pair // width, pair % width)
        return sorted((int(ops.processes[code]) for code in first), key=_by_gpu(ops, first))
    ranges, others = report.ranges, report.host_events
    pids = set(ranges.thread_process[np.unique(ranges.thread)].tolist())
    pids |= set(others.thread_process[np.unique(others.thread[others.of_mpi])].tolist())
    return sorted(pids) or [-1]


def report_units(report: Report) -> list[Unit]:
    """The ranks that a report may hold, by process and then by GPU.

    Each GPU of a process that runs communication kernels on several is a rank of its own: NCCL
    numbers GPUs. What the process does on others besides stays with its first one.
    """
    ops = report.operations
    comm = np.flatnonzero((ops.category == Category.COMM) & (ops.kind == OpKind.KERNEL))
    width = max(len(ops.devices), 1)
    pairs = np.unique(ops.process[comm].astype(np.int64) * width + ops.device[comm]).tolist()
    places: dict[int, list[int]] = {}
    for pair in pairs:
        places.setdefault(int(ops.processes[pair // width]), []).append(pair % width)
    units = []
    for process in report_processes(report):
        several = places.get(process, [])
        if len(several) < 2:
            units.append(Unit(process))
            continue
        rest = frozenset(range(width)).difference(several)
        for number, place in enumerate(several):
            devices = frozenset((place,)) | (rest if number == 0 else frozenset())
            units.append(Unit(process, devices, number))
    return units


def _by_gpu(ops: Operations, first: dict[int, int]) -> Callable[[int], tuple[int, int]]:
    gpu = {int(ops.processes[code]): device for code, device in first.items()}
    return lambda process: (gpu[process], pid_of(process))


def _process(
    report: Report,
    unit: Unit,
    scope: Scope,
    ranks: tuple[tuple[int, str], ...],
    grid: Grid,
    options: Options,
) -> ProcessSummary:
    process = unit.process
    pid = pid_of(process) if process >= 0 else -1
    covered = [coverage for coverage in coverages(report, scope) if len(coverage.stretches.first)]
    memory_peak, memory = summary_parts.memory_maps(
        report, [c.device for c in covered], grid, scope.window
    )
    of_host = replace(scope, processes=frozenset()) if unit.number else scope
    return ProcessSummary(
        process=process,
        unit=unit.number,
        pid=pid,
        name=report.process_name(process) if process >= 0 else "",
        evidence=ranks,
        devices=tuple(report.devices[coverage.device].label for coverage in covered),
        splits=_splits(report, covered, scope),
        heat=_heat(covered, grid, report.metadata.session_start_utc_ns or 0),
        memory_peak=memory_peak,
        memory=memory,
        steps=summary_parts.steps(report, scope, covered, options.iteration),
        collectives=summary_parts.collectives(report, process, scope, covered),
        pace=summary_parts.pace(report, process, scope, options.pace),
        stats=tuple(
            summary_parts.statistics(report, family, scope if family in OF_GPU else of_host)
            for family in options.families
        ),
        window=scope.window,
    )


def _splits(report: Report, covered: list[Coverage], scope: Scope) -> Int64:
    table = np.zeros((len(covered), len(SPLIT)), np.int64)
    for row, coverage in enumerate(covered):
        split = split_of(report, coverage, scope)
        figures = {name: getattr(split, f"{name}_ns") for name in SPLIT[:-2]}
        figures |= {"kernels": split.kernel_count, "operations": split.operation_count}
        table[row] = [figures[name] for name in SPLIT]
    return table


def _heat(covered: list[Coverage], grid: Grid, anchor: int) -> Int64:
    edges = grid.edges(anchor)
    maps = np.zeros((len(covered), len(MAPPED), grid.count), np.int64)
    for row, coverage in enumerate(covered):
        for place, name in enumerate(MAPPED):
            maps[row, place] = coverage.sets[name].within(edges[:-1], edges[1:])
    return maps


def own_window(report: Report, scope: Scope, options: Options) -> tuple[int, int] | None:
    """What counts of a process; None for everything.

    Args:
        report: the report.
        scope: restricts it to the process.
        options: ``window``, ``step`` or ``nvtx`` say what.

    Raises:
        NoDataError: the process has no such step or range.
    """
    if options.step is not None:
        return _of_step(report, scope, options.step, options.iteration)
    if options.nvtx is not None:
        return _of_range(report, scope, options.nvtx)
    return None if options.window is None else closed(options.window, report.extent)


def _of_step(report: Report, scope: Scope, step: str, pattern: str | None) -> tuple[int, int]:
    iterations = find_iterations(report, pattern, scope)
    if (number := iterations.number_of(step)) is None:
        there = f"steps 0 to {len(iterations) - 1}" if len(iterations) else "no steps"
        raise NoDataError(f"no step {step!r}: it has {there}")
    return int(iterations.start[number]), int(iterations.end[number])


def _of_range(report: Report, scope: Scope, text: str) -> tuple[int, int]:
    name, slash, number = text.rpartition("/")
    if not slash or not number.isdecimal():
        name, number = text, "0"
    ranges = report.ranges
    named = np.array([name in (own, normalise_nvtx(own)) for own in ranges.names], bool)
    rows = row_numbers(ranges, scope.threads(ranges))
    rows = rows[named[ranges.name[rows]] & ~ranges.open[rows]] if len(named) else rows[:0]
    if int(number) >= len(rows):
        there = f"{len(rows)} such range{'s' * (len(rows) != 1)}"
        raise NoDataError(f"no NVTX range {name!r} of number {number}: it has {there}")
    row = int(rows[int(number)])
    return int(ranges.start[row]), int(ranges.end[row])
