"""Everything that a page tells of a report, gathered from the analyses; no figure is made here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nsys_tui import __version__, units
from nsys_tui.analysis.iterations.answer import IterationAnswer, answer_of
from nsys_tui.analysis.memory import recorded_memory
from nsys_tui.analysis.nvtx.paths import Paths, nvtx_paths
from nsys_tui.analysis.overview import overview
from nsys_tui.analysis.overview_answer import OverviewAnswer
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Finding
from nsys_tui.analysis.rules.not_looked_at import NotLookedAt, not_looked_at
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.rules.verdict import Part, parts, verdict
from nsys_tui.analysis.stacks.folding import Stacks, StackSource, gpu_stacks
from nsys_tui.analysis.stacks.sources import host_stacks, sources
from nsys_tui.analysis.stalls.answer import StallAnswer
from nsys_tui.analysis.stats.query import Query
from nsys_tui.analysis.stats.reports import run_report
from nsys_tui.analysis.window import Scope
from nsys_tui.errors import NoDataError
from nsys_tui.model.progress import Progress, silent
from nsys_tui.model.report import Report
from nsys_tui.model.table import FACTS, Table, table_of
from nsys_tui.redaction import redacted, redacted_command

_STATISTICS: Final = {
    "Kernels": "cuda_gpu_kern_sum",
    "Copies and memsets": "cuda_gpu_mem_time_sum",
    "NVTX ranges": "nvtx_sum",
    "CUDA API calls": "cuda_api_sum",
}
"""Headings and the statistical reports that stand under them."""
GAPS: Final = 200
"""Idle gaps looked up at most."""
_COMMAND: Final = ("PROCESS_", ":COMMAND", ":ARGUMENT_")


@dataclass(frozen=True, eq=False)
class Shared:
    """What is told about one report."""

    report: Report
    scope: Scope
    case: Case
    verdict: str
    findings: Sequence[Finding]
    bound: Sequence[Part]
    overview: dict[str, Table]
    """Sections of the overview by name: those without lists by name."""
    steps: IterationAnswer | None
    """None where no steps were found."""
    source: StackSource
    """What the stacks are of: GPU time, or what was recorded where there is no GPU work."""
    stacks: Stacks | None
    """None where there are none."""
    tables: dict[str, Table]
    """Tables by heading, each whole."""
    lacking: dict[str, str]
    """Headings without a table, and why."""
    not_looked_at: Sequence[NotLookedAt]

    @property
    def title(self) -> str:
        """Name of the report, with the window where it is a part."""
        if self.scope.window is None:
            return self.report.name
        start, end = map(units.format_duration, self.scope.window)
        return f"{self.report.name}, {start} to {end}"

    @property
    def notes(self) -> list[str]:
        """What is odd about the report or not believed."""
        return list(dict.fromkeys([*self.report.metadata.notes, *map(str, self.report.notes)]))


def shared(report: Report, scope: Scope, progress: Progress = silent) -> Shared:
    """Asks all analyses about a report or a part of it.

    Args:
        report: the open report.
        scope: window, devices, processes and streams.
        progress: told after each rule.
    """
    result = overview(report, scope, named=False)
    case = Case(report, scope, splits=result.devices)
    findings = find_in(case, progress)
    told, bound = verdict(case, findings), parts(case, findings)
    tables, lacking = _tables(report, scope, case)
    paths = nvtx_paths(report)
    source = next(iter(sources(report)), StackSource.GPU)
    return Shared(
        report=report,
        scope=scope,
        case=case,
        verdict=told,
        findings=findings,
        bound=bound,
        overview=OverviewAnswer(report, result, recorded_memory(report)).tables(printed=True),
        steps=_steps(report, scope, paths),
        source=source,
        stacks=_stacks(report, source, scope, paths),
        tables=tables,
        lacking=lacking,
        not_looked_at=not_looked_at(case),
    )


def _steps(report: Report, scope: Scope, paths: Paths) -> IterationAnswer | None:
    try:
        return answer_of(report, None, scope, paths)
    except NoDataError:
        return None


def _stacks(report: Report, source: StackSource, scope: Scope, paths: Paths) -> Stacks | None:
    try:
        folded = (
            gpu_stacks(report, scope, names="short", paths=paths)
            if source is StackSource.GPU
            else host_stacks(report, source, scope)
        )
    except NoDataError:
        return None
    return folded if int(folded.tree.weight[0]) > 0 else None


def _tables(report: Report, scope: Scope, case: Case) -> tuple[dict[str, Table], dict[str, str]]:
    tables: dict[str, Table] = {}
    lacking: dict[str, str] = {}
    query = Query(report, scope, clip=scope.window is not None)
    for heading, name in _STATISTICS.items():
        try:
            tables[heading] = run_report(report, name, query)
        except NoDataError as error:
            told = () if error.hint.startswith("no ") else (error.title,)
            lacking[heading] = ". ".join(filter(None, (*told, error.hint)))
    if len(report.operations):
        tables["Idle gaps"] = StallAnswer(report, case.stalls, GAPS).gaps()
    return tables, lacking


def captured(of: Shared) -> Table:
    """How the report was made: versions, hardware, command and nsys's own settings."""
    data, report = of.report.metadata, of.report
    length = data.session_duration_ns
    rows = {
        "report": report.name,
        "command": " ".join(redacted_command(data.command)),
        "host": data.machine,
        **_gpus(report),
        "driver": data.driver,
        "nsys": data.product_version or "not known (export of 2021 or older)",
        "export schema": data.schema_version,
        "session": "" if length is None else units.format_duration(length),
        **_settings(report),
        "told by": f"nsys-tui {__version__}",
    }
    known = [(name, redacted(value)) for name, value in rows.items() if value]
    return table_of("capture", "How it was captured", FACTS, known)


def _gpus(report: Report) -> dict[str, str]:
    listed = {}
    for gpu in report.metadata.gpus:
        facts = [gpu.name, gpu.bus, f"{gpu.sm_count} SMs" if gpu.sm_count else ""]
        listed[f"GPU {gpu.id}"] = ", ".join(filter(None, facts))
    return listed


def _settings(report: Report) -> dict[str, str]:
    """Options of nsys as it stored them; the command stands above already."""
    by_value: dict[str, list[str]] = {}
    for name, value in report.metadata.capture_settings:
        if not (name.startswith(_COMMAND[0]) and any(end in name for end in _COMMAND[1:])):
            by_value.setdefault(name, []).append(value)
    return {f"nsys: {name}": ", ".join(values) for name, values in by_value.items()}
