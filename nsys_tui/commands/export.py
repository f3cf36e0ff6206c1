"""``nsys-tui export``: any table as a file, or a window as a trace for Perfetto."""

from __future__ import annotations

import argparse

from nsys_tui.analysis.window import Scope
from nsys_tui.commands import options
from nsys_tui.commands.printing import CONSOLE, opened, say, write, write_table
from nsys_tui.errors import OK, UsageError
from nsys_tui.export.events import TABLES
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.report import Report
from nsys_tui.model.table import Table

FORMATS = ("csv", "tsv", "json", "markdown", "html", "parquet")


DESCRIPTION = (
    "Writes a table of events or of a statistical report, or a window as a trace"
    " that ui.perfetto.dev opens."
)
EPILOG = (
    "Tables: "
    + ", ".join(f"{name} ({text})" for name, text in TABLES.items())
    + ", and every report of nsys-tui stats --help-reports."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    options.add_report(parser, optional=True)
    what = parser.add_mutually_exclusive_group()
    options.add(what, "--table NAME", "table of events or statistical report")
    options.add(what, "--perfetto FILE", "trace to write, - for stdout")
    options.add_format(parser, "", FORMATS)
    options.add_rows(parser, "--limit", "rows of the table, the first ones (default: all)")
    options.add_output(parser)
    options.add_scope(parser)


def run(arguments: argparse.Namespace) -> int:
    """Writes the table or the trace."""
    if options.rows_told(arguments):
        return OK
    if not (arguments.table or arguments.perfetto):
        raise UsageError("which table?", hint="--table kernels, or a trace: --perfetto FILE")
    if arguments.format == "parquet" and arguments.output == CONSOLE and not arguments.perfetto:
        raise UsageError("Parquet is no text", hint="name a file with -o FILE")
    if arguments.limit and arguments.perfetto:
        raise UsageError("--limit is for tables", hint="of a trace, --window chooses a part")
    report, scope = options.part_from(arguments)
    if arguments.perfetto:
        from nsys_tui.export.perfetto import trace

        target = arguments.perfetto
        with opened(target, overwrite=arguments.force_overwrite) as stream:
            write(stream, trace(report, scope))
        for lacking in filter(None, map(report.lacks, (Capability.OSRT, Capability.NVTX))):
            say(f"note: {lacking}")
        _told(target)
        return OK
    table = _table(report, arguments.table, scope, arguments.window is not None)
    if arguments.limit:
        table = table.first(arguments.limit)
    if arguments.format == options.SCHEMA:
        options.print_rows_schema(table)
    else:
        overwrite = arguments.force_overwrite
        write_table(table, arguments.format, arguments.output, overwrite=overwrite)
        _told(arguments.output)
    return OK


def _told(output: str) -> None:
    if output != CONSOLE and not output.startswith("@"):
        say(f"nsys-tui: wrote {output}")


def _table(report: Report, name: str, scope: Scope, clip: bool) -> Table:
    if name in TABLES:
        from nsys_tui.export.events import event_table

        return event_table(report, name, scope)
    from nsys_tui.analysis.stats.query import Query
    from nsys_tui.analysis.stats.reports import run_report

    return run_report(report, name, Query(report, scope, clip=clip))
