"""``nsys-tui iterations``: time of each training step, by phase, and which ones are outliers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.commands.options import (
    add_format,
    add_report,
    add_scope,
    count,
    open_from,
    rows_shown,
    scope_from,
)
from nsys_tui.commands.printing import DATA_FORMATS, print_document, print_tables

if TYPE_CHECKING:
    import argparse

SHOWN: Final = 100
"""Iterations printed unless ``--limit`` says otherwise; JSON and csv hold all."""


DESCRIPTION = (
    "Iterations, found from NVTX names or from a repeating pattern of kernels: "
    "time of each, mean, median and deviation of its phases, what no range covers, outliers. "
    "The first one is warm-up and stays out of the statistics."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    add_report(parser)
    add_scope(parser)
    add_format(parser, "analysis.iterations.answer")
    parser.add_argument(
        "--iteration", metavar="REGEX", help="NVTX ranges that are iterations, by their names"
    )
    parser.add_argument(
        "--limit",
        type=count,
        metavar="N",
        help=f"iterations to print, 0 for all (default {SHOWN}; all in csv and json)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the iterations of one report."""
    from nsys_tui.analysis.iterations.answer import DOCUMENT, IterationAnswer
    from nsys_tui.analysis.iterations.table import iteration_table

    report = open_from(arguments)
    table = iteration_table(report, arguments.iteration, scope_from(arguments, report))
    answer = IterationAnswer(report.name, table)
    if arguments.format == "json":
        print_document(DOCUMENT, answer, answer, answer.phases().notes, report.notes)
        return 0
    exact = arguments.format in DATA_FORMATS
    each = answer.each(rows_shown(arguments.limit, None if exact else SHOWN), exact=exact)
    print_tables([each] if exact else [answer.phases(), each], arguments.format)
    return 0
