"""``nsys-tui sql``: questions of one's own, as SQL over the report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsys_tui.commands import options
from nsys_tui.commands.printing import DATA_FORMATS, room, say, speaks_unicode, write
from nsys_tui.errors import OK, UsageError

if TYPE_CHECKING:
    import argparse

    from nsys_tui.model.table import Table
    from nsys_tui.sql.console import Console

SHOWN: Final = 1_000
"""Rows unless ``--limit`` says otherwise; json, csv and tsv hold all."""
_LONGEST: Final = 100_000

DESCRIPTION = (
    "Answers a question asked in SQL over the report: its own tables, and the views kernels,"
    " copies, memsets, api, ranges, launches, stalls, steps and collectives, which are the same in"
    " every generation of nsys. The report is only read; a query can change nothing."
)
EPILOG = (
    "Times are ns since the session began, utc_ns is ns since 1970; --tables lists columns. Values"
    " that nsys would not write, as text for a number, are looked for in a table's first 100,000"
    " rows."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    options.add_report(parser, optional=True)
    parser.add_argument(
        "query", nargs="?", metavar="QUERY", help="one SELECT; - for standard input"
    )
    options.add(parser, "--file FILE", "read the query from FILE; - for standard input", type=Path)
    options.add(parser, "--tables", "list views and tables with their columns instead")
    options.add(
        parser,
        "--redacted",
        "let the query see texts without tokens and passwords, as nsys-tui mcp does",
    )
    options.add_format(parser, "")
    options.add_rows(
        parser, "--limit", f"rows to print, 0 for all (default {SHOWN}; all in csv, tsv and json)"
    )
    options.add(
        parser,
        "--timeout TIME",
        "how long the query may take, as 90 or 500ms (default 60s); then it ends with 130",
        default="60s",
    )


def run(arguments: argparse.Namespace) -> int:
    """Asks, and prints the answer."""
    from nsys_tui.config import load_config
    from nsys_tui.sql.console import Answer, Console
    from nsys_tui.text.formats import whole
    from nsys_tui.text.tables import chunks
    from nsys_tui.units import format_count, parse_duration

    if options.rows_told(arguments):
        return OK
    timeout = parse_duration(arguments.timeout, "s")
    if timeout <= 0:
        raise UsageError(f"--timeout {arguments.timeout}: no query is answered in no time")
    query = "" if arguments.tables else _query(arguments)
    console = Console(
        options.open_from(arguments),
        load_config().analysis.communication,
        redacts=arguments.redacted,
    )
    every = arguments.format in (*DATA_FORMATS, options.SCHEMA)
    limit = options.rows_shown(arguments.limit, None if every else SHOWN)
    if arguments.tables:
        answer = Answer(_tables(console), more=False)
    else:
        answer = console.run(query, limit=limit, timeout_s=timeout / 1e9)
    if arguments.format == options.SCHEMA:
        options.print_rows_schema(answer.table)
        return OK
    chosen = whole(arguments.format, room(sys.stdout))
    write(sys.stdout, chunks(answer.table, chosen, ascii_only=not speaks_unicode(sys.stdout)))
    for note in answer.notes:
        say(f"note: {note}")
    if answer.more:
        say(f"note: the first {format_count(len(answer.table))} rows; --limit 0 prints all")
    return OK


def _tables(console: Console) -> Table:
    """Views and tables with their columns."""
    from nsys_tui.model.table import Column, Table

    names = console.tables
    kinds = ["view" if name in console.views else "table" for name in names]
    columns = [" ".join(each) for each in names.values()]
    heads = tuple(map(Column, ("name", "kind", "columns")))
    return Table("tables", "Views and tables", heads, ([*names], kinds, columns))


def _query(arguments: argparse.Namespace) -> str:
    """The query, wherever it stands.

    Raises:
        UsageError: there is none, or more than one place for it, or it cannot be read.
    """
    if arguments.query is not None and arguments.file is not None:
        raise UsageError("a query and --file exclude each other")
    if "-" in (arguments.query, str(arguments.file)):
        text = sys.stdin.read(_LONGEST + 1)
    elif arguments.file is not None:
        try:
            text = arguments.file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no UTF-8 text"
            raise UsageError(f"cannot read {arguments.file}: {why}") from error
    else:
        text = arguments.query or ""
    if not text.strip():
        raise UsageError(
            "which query?", hint='nsys-tui sql REPORT "select * from kernels limit 10"'
        )
    return str(text)
