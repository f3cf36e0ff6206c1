"""The door to the statistical reports: find one by name, compute it, or stack its parts."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nsys_tui.analysis.stats import (  # noqa: F401
    gpu,
    graphics,
    host,
    kernels,
    nvtx,
    nvtx_gpu,
    um,
)
from nsys_tui.analysis.stats.query import REPORTS, Query, StatReport
from nsys_tui.analysis.stats.summary import rank_label
from nsys_tui.errors import NoDataError, UsageError
from nsys_tui.model.report import Report
from nsys_tui.model.table import Column, Table, plain
from nsys_tui.model.target import pid_of

DEFAULT: Final = (
    "nvtx_sum",
    "osrt_sum",
    "cuda_api_sum",
    "cuda_gpu_kern_sum",
    "cuda_gpu_mem_time_sum",
    "cuda_gpu_mem_size_sum",
    "openmp_sum",
    "opengl_khr_range_sum",
    "opengl_khr_gpu_range_sum",
    "vulkan_marker_sum",
    "vulkan_gpu_marker_sum",
    "dx11_pix_sum",
    "dx12_gpu_marker_sum",
    "dx12_pix_sum",
    "wddm_queue_sum",
    "um_sum",
    "um_total_sum",
    "um_cpu_page_faults_sum",
    "openacc_sum",
    "syscall_sum",
)
"""Reports of ``stats`` without ``--report``, in nsys's order."""


@dataclass(frozen=True)
class Wanted:
    """A report asked for with its arguments, by its name or an old one."""

    report: StatReport
    arguments: dict[str, str]
    called: str

    @property
    def name(self) -> str:
        """What was asked for, as a key and in file names, where scripts look for it."""
        given = (key + (f"={value}" if value else "") for key, value in self.arguments.items())
        return ":".join((self.called, *given))


def named(name: str) -> StatReport | None:
    """A report by its name or an old name."""
    same = (report for report in REPORTS.values() if name in (report.name, *report.old_names))
    return next(same, None)


def find(name: str) -> StatReport:
    """A report by its name or an old name.

    Raises:
        UsageError: no report is called so; the hint names similar ones.
    """
    if (report := named(name)) is not None:
        return report
    known = [*REPORTS, *(old for listed in REPORTS.values() for old in listed.old_names)]
    similar = ", ".join(difflib.get_close_matches(name, known, 3))
    hint = f"did you mean {similar}?" if similar else "nsys-tui stats --help-reports lists them"
    raise UsageError(f"unknown report: {name!r}", hint=hint)


def parse(text: str) -> Wanted:
    """Parses ``name[:argument[=value]]…``.

    Raises:
        UsageError: unknown report or argument.
    """
    name, *arguments = text.split(":")
    called = name.strip().removesuffix(".py")
    report = find(called)
    given: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if key + equals not in report.arguments:
            listed = ", ".join(report.arguments) or "none"
            raise UsageError(
                f"unknown argument {argument!r} of {report.name}", hint=f"it takes {listed}"
            )
        given[key] = value
    if "base" in given and "mangled" in given:
        raise UsageError(f"{text}: base and mangled exclude each other")
    return Wanted(report, given, called)


def compute(wanted: Wanted, query: Query) -> Table:
    """Computes a report.

    Args:
        wanted: the report and its arguments.
        query: the report file and the restrictions; its arguments are replaced.

    Raises:
        NoDataError: the file has no such data (the message says what would record it), or none of
            it lies within the restrictions.
    """
    asked = replace(query, arguments=wanted.arguments)
    try:
        columns = wanted.report.build(asked)
    except NoDataError as missing:
        raise _no_data(wanted.report, query) from missing
    return Table.of(wanted.name, wanted.report.title, columns, wanted.report.needs.notes(asked))


def run_report(report: Report, text: str, query: Query | None = None) -> Table:
    """Parses and computes a report in one go: ``run_report(report, "cuda_gpu_kern_sum:base")``."""
    return compute(parse(text), query or Query(report))


def _no_data(wanted: StatReport, query: Query) -> NoDataError:
    name, needs = query.report.name, wanted.needs
    doubts = (query.report.doubt(kind) for kind in needs.kinds)
    if doubt := next(filter(None, doubts), ""):
        return NoDataError(f"{name}: {doubt}")
    if query.restricted and _has_data(wanted, query):
        return NoDataError(
            f"{name} does not contain {needs.data} data in the part that was asked for",
            hint="leave out --filter-time, --filter-nvtx, --process, --device, --stream, --window",
        )
    return NoDataError(
        f"{name} does not contain {needs.data} data",
        hint=next(
            filter(None, map(query.report.lacks, needs.kinds)),
            f"nsys profile {needs.option} records it",
        ),
    )


def _has_data(wanted: StatReport, query: Query) -> bool:
    try:
        wanted.build(Query(query.report))
    except NoDataError:
        return False
    return True


def by_device(query: Query) -> list[tuple[str, Query]]:
    """A query for each GPU in scope, with its label."""
    devices = query.report.devices
    return [
        (
            devices[device].label,
            replace(query, scope=replace(query.scope, devices=frozenset((device,)))),
        )
        for device in query.scope.device_rows(query.report)
    ]


def by_rank(query: Query) -> list[tuple[str, Query]]:
    """A query for each process with events in scope, labelled by its MPI rank or its pid."""
    report = query.report
    sets = (report.operations.processes, report.api.thread_process)
    pids = {int(pid) for processes in sets for pid in processes if pid != -1}
    for events in (report.ranges, report.osrt, report.host_events):
        pids.update(int(pid) for pid in events.thread_process if pid != -1)
    ranks = report.ranks
    every = np.array(sorted(pids), np.int64)
    chosen = every[query.scope.has_process(every)].tolist()
    chosen.sort(key=lambda pid: (ranks.get(pid, 1 << 62), pid_of(pid)))
    return [
        (
            rank_label(ranks, pid),
            replace(query, scope=replace(query.scope, processes=frozenset((pid_of(pid),)))),
        )
        for pid in chosen
    ]


def compute_parts(wanted: Wanted, parts: list[tuple[str, Query]], header: str) -> Table:
    """Computes a report for each part and stacks the tables; shares are of each part's total.

    Raises:
        NoDataError: no part has such data.
    """
    tables: list[tuple[str, Table]] = []
    missing = NoDataError("there is nothing to tell apart")
    for label, query in parts:
        try:
            tables.append((label, compute(wanted, query)))
        except NoDataError as reason:
            missing = reason
    if not tables:
        raise missing
    first = tables[0][1]
    labels = [label for label, table in tables for _ in range(len(table))]
    data = [
        [value for _, table in tables for value in plain(table.data[place])]
        for place in range(len(first.columns))
    ]
    return replace(first, columns=(Column(header), *first.columns), data=(labels, *data))
