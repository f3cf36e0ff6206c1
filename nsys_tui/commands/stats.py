"""``nsys-tui stats``: statistical reports under nsys's own names, options and formats."""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.commands import options
from nsys_tui.commands.printing import CONSOLE, opened, room, say, speaks_unicode, write
from nsys_tui.errors import NO_DATA, OK, NoDataError, UsageError
from nsys_tui.text.formats import KINDS, Format, parse_format, time_unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import IO

    from nsys_tui.analysis.stats.query import Query
    from nsys_tui.analysis.stats.reports import Wanted
    from nsys_tui.model.report import Report
    from nsys_tui.model.table import Table


DESCRIPTION = (
    "Statistical reports as nsys stats prints them, with its names, columns and"
    " rounding. Notices stand on stdout as nsys's do, but on stderr beside csv, tsv and json:"
    " what a pipe reads is data."
)
EPILOG = (
    "Lists of reports, formats and outputs are combined element by element; a shorter"
    " list repeats its last element. nsys-tui stats --help-reports lists the reports."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    options.add_report(parser, optional=True)
    option = partial(options.add, parser)
    option(
        "-r, --report NAME[:ARG...][,NAME...]",
        "report to print; repeatable",
        dest="reports",
        action="append",
        default=[],
    )
    option(
        "-f, --format FORMAT[:OPTION...]",
        f"{', '.join(KINDS)}, or . for the default: column on the console, csv elsewhere;"
        f" {options.SCHEMA} describes what json prints, of a report with all its columns",
        dest="formats",
        action="append",
        default=[],
    )
    option(
        "-o, --output WHERE",
        "- for stdout, . for the report's name, '@program arguments', or a base name of files",
        dest="outputs",
        action="append",
        default=[],
    )
    option("--timeunit UNIT", "nsec, usec, msec or seconds", type=time_unit)
    option("--filter-time START/END", "rows that touch the window, counted whole")
    option(
        "--filter-nvtx RANGE[@DOMAIN][/INDEX]",
        "rows that touch an instance of the range, on its thread or in its process",
    )
    option(
        "--nvtx-scope",
        "whom --filter-nvtx keeps; by default the thread of a push/pop range, the process of"
        " a start/end range",
        choices=("thread", "process", "all"),
    )
    option(
        "--clip", "cut time to the window and count events where they start (--window always does)"
    )
    split = parser.add_mutually_exclusive_group()
    options.add(split, "--by-device", "each GPU on its own")
    options.add(split, "--by-rank", "each MPI rank or process on its own")
    options.add_scope(parser)
    options.add_overwriting(parser)
    option("-q, --quiet", "no notices")
    options.add_exporting(parser)
    option("--report-dir FOLDER", argparse.SUPPRESS)
    option("--help-reports NAME|ALL", "describe the reports", nargs="?", const="")
    option("--help-formats NAME|ALL", "describe the formats", nargs="?", const="")


@dataclass(frozen=True)
class Job:
    """One report in one format to one place."""

    wanted: Wanted
    format: Format
    output: str

    def path(self, report: Report) -> Path:
        """The file that the job writes: ``<base>_<report>[_<argument>].<extension>``."""
        base = report.path.stem if self.output == "." else self.output
        name = self.wanted.name.replace(":", "_").replace("/", "_")
        return Path(f"{base}_{name}.{self.format.extension}")


_ALONE: Final = ("csv", "tsv", "json", "markdown", "html")
"""Formats that stand on stdout without notices."""
_DONE: Final = "PROCESSED"
_BESIDE_COMMAND: Final = re.compile(r",(?=[-.]?(?:,|$)|@)")


def run(arguments: argparse.Namespace) -> int:
    """Prints the reports."""
    from nsys_tui.commands.stats_help import formats_help, reports_help
    from nsys_tui.text.folding import fitted

    if arguments.help_formats is not None:
        sys.stdout.write(formats_help(arguments.help_formats))
        return OK
    if arguments.help_reports is not None:
        sys.stdout.write(fitted(reports_help(arguments.help_reports), room(sys.stdout)))
        return OK
    wants_schema = options.SCHEMA in arguments.formats
    if wants_schema and arguments.report is None:
        options.print_schema("text.documents:ROWS")
        return OK
    if wants_schema:
        arguments.formats = ["json"]
    if arguments.report_dir is not None:
        raise UsageError(
            "--report-dir: scripts of nsys's are not run",
            hint="nsys-tui sql REPORT 'select …' answers questions of your own",
        )
    jobs = _jobs(arguments)
    report = options.open_from(arguments)
    printer = _Printer(arguments, report, _query(arguments, report))
    if wants_schema:
        print(json.dumps(printer.schema(jobs), indent=1))
        return OK if printer.printed else NO_DATA
    console = [job for job in jobs if job.output == CONSOLE]
    if any(job.format.kind in _ALONE for job in console):
        printer.notices = sys.stderr
    together = len(console) > 1 and all(job.format.kind == "json" for job in console)
    if together:
        write(sys.stdout, printer.together(console))
    for job in jobs:
        if job.output != CONSOLE or not together:
            printer.print(job)
    return OK if printer.printed else NO_DATA


def _jobs(arguments: argparse.Namespace) -> list[Job]:
    from nsys_tui.analysis.stats.reports import DEFAULT, parse

    reports = [parse(name) for name in _listed(arguments.reports) or DEFAULT]
    outputs = _listed(arguments.outputs) or [CONSOLE]
    formats = _listed(arguments.formats) or ["."]
    count = max(len(reports), len(outputs), len(formats))
    jobs = []
    for number in range(count):
        wanted = reports[min(number, len(reports) - 1)]
        output = outputs[min(number, len(outputs) - 1)]
        fmt = formats[min(number, len(formats) - 1)]
        if fmt == ".":
            fmt = "column" if output == CONSOLE else "csv"
        chosen = parse_format(fmt)
        if arguments.timeunit and "noconv" not in fmt.split(":"):
            units = chosen.units.with_unit("time", arguments.timeunit)
            chosen = replace(chosen, units=units)
        jobs.append(Job(wanted, chosen, output))
    return jobs


def _listed(values: Sequence[str]) -> list[str]:
    """Elements of a repeatable, comma-separated option.

    A piped command keeps its commas, but before what is no part of one: ``-``, ``.``, a command.
    """
    parts: list[str] = []
    for part in chain.from_iterable(map(_BESIDE_COMMAND.split, values)):
        parts += [part] if part.startswith("@") else part.split(",")
    return [part.strip() for part in parts if part.strip()]


def _query(arguments: argparse.Namespace, report: Report) -> Query:
    from nsys_tui.analysis.stats.query import Query, find_instance
    from nsys_tui.model.target import pid_of
    from nsys_tui.units import closed, parse_window

    windows = ("window", "filter_time", "filter_nvtx")
    given = [name for name in windows if getattr(arguments, name) is not None]
    if len(given) > 1:
        names = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"{names} exclude each other")
    scope = options.scope_from(arguments, report)
    query = Query(report, scope, clip=arguments.clip or arguments.window is not None)
    if arguments.filter_time is not None:
        lo, hi = report.extent
        # The last event may be a point, which an end at its time would leave out.
        window = closed(parse_window(arguments.filter_time), (lo, hi + 1))
        return replace(query, scope=replace(scope, window=window))
    if arguments.filter_nvtx is None:
        return query
    instance = find_instance(report, arguments.filter_nvtx)
    kept = arguments.nvtx_scope or ("thread" if instance.push_pop else "process")
    processes = scope.processes
    if kept == "process":
        own = frozenset((pid_of(instance.process),))
        processes = own if processes is None else processes & own
    return replace(
        query,
        scope=replace(scope, window=instance.window, processes=processes),
        thread=instance.thread if kept == "thread" else None,
    )


class _Printer:
    """Computes and writes jobs, and remembers whether any had data."""

    def __init__(self, arguments: argparse.Namespace, report: Report, query: Query) -> None:
        self.arguments = arguments
        self.report = report
        self.query = query
        self.notices = sys.stdout
        self.printed = 0

    def print(self, job: Job) -> None:
        """Writes one job; one without data leaves an empty array in json and nothing elsewhere."""
        if job.output == CONSOLE:
            write(sys.stdout, self._on_console(job))
            return
        piped = job.output.startswith("@")
        place = job.output if piped else str(job.path(self.report))
        self._say(f"{self._processing(job)} to {'process ' * piped}[{place}]... ")
        try:
            said = self._into(place, job)
        except NoDataError as reason:
            said = _skipped(reason)
        self._say("\n" if piped and said == _DONE else f"{said}\n\n")

    def _into(self, place: str, job: Job) -> str:
        overwrite = self.arguments.force_overwrite
        if Path(place).exists() and not overwrite:
            self.printed += 1
            return f"SKIPPED: {place} exists already (--force-overwrite replaces it)"
        table = self._table(job)
        with opened(place, overwrite=overwrite) as stream:
            write(stream, self._text(job, table, stream))
        return "\n".join([_DONE, *(f"NOTE: {note}" for note in table.notes)])

    def schema(self, jobs: Sequence[Job]) -> dict[str, Any]:
        """The JSON Schema of what json prints of these jobs, every column by its header."""
        from nsys_tui.text.tables import rows_schema

        schemas: dict[str, Any] = {}
        for name, job in {job.wanted.name: job for job in jobs}.items():
            try:
                schemas[name] = rows_schema(self._table(job), job.format.units)
            except NoDataError:
                schemas[name] = {"type": "array", "maxItems": 0}
        if len(jobs) == 1:
            return next(iter(schemas.values()))
        return {
            "type": "object",
            "properties": schemas,
            "required": [*schemas],
            "additionalProperties": False,
        }

    def together(self, jobs: Sequence[Job]) -> Iterator[str]:
        """Several json reports as one object of arrays by report name."""
        opening = "{\n"
        for name, job in {job.wanted.name: job for job in jobs}.items():
            yield f"{opening}{json.dumps(name)}: " + "".join(self._on_console(job)).rstrip("\n")
            opening = ",\n"
        yield "\n}\n"

    def _on_console(self, job: Job) -> Iterator[str]:
        kind = job.format.kind
        self._say(f"{self._processing(job)}...\n")
        try:
            table = self._table(job)
        except NoDataError as reason:
            self._say(f"{_skipped(reason)}\n\n")
            yield "[]\n" if kind == "json" else ""
            return
        self._say("".join(f"NOTE: {note}\n" for note in table.notes))
        if kind == "markdown":
            yield f"## {table.title} ({table.name})\n\n"
        yield from self._text(job, table, sys.stdout)
        yield "\n"

    def _text(self, job: Job, table: Table, stream: IO[str]) -> Iterator[str]:
        from nsys_tui.text.tables import chunks

        chosen = job.format
        if chosen.limit is not None and not chosen.widths:
            chosen = replace(chosen, room=room(stream))
        if chosen.is_human:
            yield f"\n ** {table.title} ({job.wanted.called}):\n\n"
        yield from chunks(table, chosen, ascii_only=not speaks_unicode(stream))

    def _table(self, job: Job) -> Table:
        from nsys_tui.analysis.stats.reports import by_device, by_rank, compute, compute_parts

        wanted = job.wanted
        by_gpu = self.arguments.by_device
        if self.arguments.by_rank:
            table = compute_parts(wanted, by_rank(self.query), "Rank")
        elif by_gpu and wanted.report.needs.by_device:
            table = compute_parts(wanted, by_device(self.query), "Device")
        else:
            table = compute(wanted, self.query)
            if by_gpu:
                note = f"rows of {wanted.report.name} belong to no GPU: not told apart"
                table = replace(table, notes=(*table.notes, note))
        self.printed += 1
        return table

    def _processing(self, job: Job) -> str:
        name, _, arguments = job.wanted.name.partition(":")
        return f"Processing [{self.report.name}] with [{name}]" + (
            f"({arguments})" if arguments else ""
        )

    def _say(self, text: str) -> None:
        if not self.arguments.quiet:
            say(text, self.notices, end="")


def _skipped(reason: NoDataError) -> str:
    return f"SKIPPED: {reason.title}" + (f" ({reason.hint})" if reason.hint else "")
