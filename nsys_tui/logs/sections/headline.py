"""What a reader of logs wants first: who hangs, what is slow or wrong; else the main figures."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from nsys_tui.logs.figures import decimals, seconds
from nsys_tui.logs.nccl.plugins import measured_rows
from nsys_tui.logs.nccl.statistics import per_op
from nsys_tui.logs.others.benchmark_tables import Series
from nsys_tui.logs.others.mpi import MpipReport
from nsys_tui.logs.others.pytorch import dump_verdicts, timeout_verdicts
from nsys_tui.logs.others.servers import throughput
from nsys_tui.logs.result import LogResult
from nsys_tui.logs.sections.hang_tables import findings
from nsys_tui.logs.sections.section import LogAnswer
from nsys_tui.logs.steps import Average, average_of
from nsys_tui.logs.trainers.step_lines import RunTotal, StepLine, distinct

_SLOW: Final = Fraction(3, 2)
"""Times the median, from which a step is told as slow."""
_ENOUGH: Final = 8
"""Timed lines from which on one of them can be called slow."""
_FALLEN: Final = Fraction(4, 5)
"""Of the best bus bandwidth: a larger size that reaches less has lost some."""
_MOST: Final = 3
"""Sentences of one kind."""


def headline(answer: LogAnswer) -> list[str]:
    """Sentences, what is wrong before what is merely so; none for logs that tell no figure."""
    result = answer.result
    said = [*timeout_verdicts(result.timeouts), *dump_verdicts(result.dumps)][:_MOST]
    said += _hangs(answer)
    if result.warnings:
        text, lines = result.warnings[0]
        others = len(result.warnings) - 1
        more = f", and {others} other{'s' * (others > 1)}" if others else ""
        said.append(f"NCCL warns: {text} ({lines} line{'s' * (lines != 1)}){more}")
    said += _steps(result)
    said += [one for total in result.run_totals for one in _total(total, result)][:_MOST]
    for told in (_wrong, _alone, _benchmark):
        every = dict.fromkeys(one for series in result.benchmarks for one in told(series))
        said += [*every][: 2 * _MOST]
    for row in throughput(result.servers):
        if row.run == 0 and row.generation:
            mean, median = (
                decimals(value, 1) for value in (row.generation.mean, row.generation.median)
            )
            said.append(
                f"{row.format} {row.engine}".rstrip()
                + f": {mean} tokens/s generated (median {median})"
                f" over {row.generation.count:,} line{'s' * (row.generation.count > 1)}"
            )
    if operations := per_op(answer.calls):
        most = max(operations, key=lambda row: row.total_bytes)
        said.append(
            f"{answer.calls.total():,} collective call{'s' * (answer.calls.total() > 1)} logged;"
            f" most bytes in {most.op}: {most.calls:,} calls, {most.total_bytes:,} bytes"
        )
    said += [
        f"group {result.group_label(one.group)}: {one.number:,} all-to-all"
        f"{'s' * (one.number > 1)} of {one.nranks} ranks by sends and receives,"
        f" {one.least_bytes:,} to {one.most_bytes:,} bytes to a rank"
        + (f"; imbalance {decimals(one.imbalance, 2)}" if one.imbalance else "")
        for one in answer.exchanges[:_MOST]
    ]
    said += [_mpi(report) for report in result.mpip if report.tasks]
    rows = [row for row in measured_rows(result.measured) if row.busbw]
    said += [
        f"{row.op} of {row.bytes:,} bytes on {row.nranks} ranks: {decimals(row.busbw.mean, 2)} GB/s"
        f" bus bandwidth, mean of {row.calls:,}"
        for row in rows[:_MOST]
        if row.busbw
    ]
    return said


_TOLD: Final = (
    *("Output token throughput (tok/s)", "Median TTFT (ms)", "Median TPOT (ms)"),
    *("Total Output Throughput (tokens/sec)", "Request Throughput (req/sec)", "Total Latency (ms)"),
    *("N", "seconds", "Gflops", "check", "Gflops_per_GPU", "LU_Gflops", "LU_Gflops_per_GPU"),
)
"""Of what benchmarks say at their end."""


def _total(total: RunTotal, result: LogResult) -> Iterator[str]:
    values = dict(total.values)
    if total.of_benchmark:
        figures = ", ".join(f"{name} {values[name]}" for name in _TOLD if name in values)
        yield f"{total.format}: {figures}"
    elif not result.step_lines and (step := total.mean_step()):
        yield f"{total.format}: {step}"


def _mpi(report: MpipReport) -> str:
    whole = next((one for one in report.tasks if one.task == "*"), report.tasks[0])
    said = f"mpiP: MPI takes {decimals(whole.mpi_percent, 2)}% of the time"
    if report.sites:
        most = max(report.sites, key=lambda site: site.mpi_percent or 0)
        said += f", {decimals(most.mpi_percent, 2)}% of that in {most.call} at site {most.site}"
    return said


def _hangs(answer: LogAnswer) -> list[str]:
    rows = [f"group {group}: {what}: {did}" for what, group, _, did in findings(answer)]
    more = len(rows) - 1 + answer.hangs.more_mismatches
    return [rows[0] + f"; {more} more such findings" * (more > 0)] if rows else []


def _steps(result: LogResult) -> Iterator[str]:
    average = average_of(result)
    if average is None:
        return
    mine = distinct([one for one in result.step_lines if one.format == result.trainer])
    figures = []
    if average.step is not None:
        median, mark = average.step.median, "≈ " * average.approximate
        kept = [one for one in mine if average.first <= one.step <= average.last]
        yield from _slow(average, [one for one in kept if one.step not in average.warmup], median)
        figures = [f"step {mark}{seconds(median)} s"]
        if average.step.count > 1:
            figures = [f"median {figures[0]}, p95 {seconds(average.step.p95)} s"]
    figures += [
        f"{decimals(spread.mean, 1)} {name}/s{' per GPU' * (name in average.per_gpu)}"
        for name, spread in (("tokens", average.tokens), ("samples", average.samples))
        if spread
    ]
    if figures:
        steps = f"steps {average.first} to {average.last}"
        if average.first == average.last:
            steps = f"step {average.first}" if average.first >= 0 else "steps without number"
        yield f"{average.format}: {', '.join(figures)}, {steps}"


def _slow(average: Average, kept: list[StepLine], median: Fraction) -> Iterator[str]:
    """The slowest step, if it is far from the others."""
    timed = [one for one in kept if one.step_ns is not None]
    slow = [one for one in timed if _time(one) > _SLOW * median]
    if not slow or len(timed) < _ENOUGH:
        return
    worst = max(slow, key=_time)
    what = f"each of the {worst.over} steps up to" if worst.over > 1 else "step"
    yield (
        f"{average.format}: {what} {worst.step} took {seconds(worst.step_ns)} s,"
        f" {decimals(_time(worst) / median, 1)} times the median; {len(slow)} of {len(timed)} timed"
        " lines after warm-up are above 1.5 times"
    )


def _time(step: StepLine) -> Fraction:
    return Fraction(step.step_ns or 0)


def _wrong(series: Series) -> Iterator[str]:
    if series.wrong_rows:
        name = f"{series.test or series.kind} {series.column}"
        yield f"{name}: rows with wrong results: {series.wrong_rows} of {len(series.points)}"


def _alone(series: Series) -> Iterator[str]:
    if series.runs > 1:
        name = series.test or series.kind
        yield f"{name}: {series.runs} runs, each alone, print into one another (MPI=1 missing?)"


def _benchmark(series: Series) -> Iterator[str]:
    if series.of_bandwidth:
        yield from _bandwidth(series)
    elif most := max(series.points, key=lambda point: point.value or 0).value:
        where = ", ".join(
            f"{point.size:,}"
            for point in series.points
            if point.value == most and point.size is not None
        )
        least = min(series.numbers())
        named = " ".join(filter(None, (series.kind, series.test)))
        where *= len({point.size for point in series.points}) > 1
        yield (
            f"{named}, {series.column}: "
            + f"{decimals(least, 2)} to " * (least < most)
            + f"{decimals(most, 2)}"
            + f", most at {where} bytes" * bool(where and least < most)
        )


def _bandwidth(series: Series) -> Iterator[str]:
    best = series.best
    name = f"{series.test or series.kind} {series.column}"
    if best is None or not best.busbw:
        return
    size = best.size or 0
    larger = [one for one in series.points if (one.size or 0) > size and one.busbw is not None]
    fallen = min(larger, key=lambda point: point.busbw or 0, default=None)
    yield (
        f"{name}: at most {decimals(best.busbw, 2)} GB/s bus bandwidth, at {size:,} bytes"
        + (
            f"; only {decimals(fallen.busbw, 2)} at {fallen.size:,}"
            if fallen and (fallen.busbw or 0) < _FALLEN * best.busbw
            else ""
        )
    )
