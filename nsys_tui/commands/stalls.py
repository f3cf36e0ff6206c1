"""``nsys-tui stalls``: when each GPU stood idle, and why."""

from __future__ import annotations

import argparse

from nsys_tui import units
from nsys_tui.commands.options import add, add_question, add_rows, part_from, rows_shown
from nsys_tui.commands.printing import DATA_FORMATS, print_document, print_tables
from nsys_tui.errors import EmptyAnswerError

SHOWN = 40
"""Rows of a table unless ``--limit`` says otherwise; JSON and csv hold all."""
GROUPINGS = ("cause", "range", "pair", "thread", "device")


DESCRIPTION = (
    "Idle gaps of each GPU with their cause: what the thread that launched the "
    "next operation did meanwhile. Runs of short gaps between tiny kernels count as one."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    add_question(parser, "analysis.stalls.answer")
    add(
        parser,
        "--threshold TIME",
        "list gaps from this length on (default 10us); shorter ones are counted",
        default="10us",
    )
    add(parser, "--group-by", "print groups instead of gaps (json has both)", choices=GROUPINGS)
    text = f"rows to print, 0 for all (default {SHOWN}; all in csv and json)"
    add_rows(parser, "--limit", text)
    add(parser, "--each-gap", "list the gaps inside launch-bound runs one by one")


def run(arguments: argparse.Namespace) -> int:
    """Prints the stalls of one report."""
    from nsys_tui.analysis.stalls.answer import DOCUMENT, StallAnswer
    from nsys_tui.analysis.stalls.gaps import stalls
    from nsys_tui.model.capabilities import Capability

    threshold = units.parse_length(arguments.threshold, "--threshold")
    report, scope = part_from(arguments)
    result = stalls(report, scope, threshold_ns=threshold, merge_runs=not arguments.each_gap)
    every = arguments.format in DATA_FORMATS
    limit = rows_shown(arguments.limit, None if every else SHOWN)
    by = arguments.group_by
    answer = StallAnswer(report, result, limit, by or "cause")
    if arguments.format == "json":
        print_document(DOCUMENT, answer, report, answer.notes, report.notes)
    elif by:
        print_tables([answer.groups(by, limit)], arguments.format)
    elif every:
        print_tables([answer.gaps()], arguments.format)
    else:
        print_tables([answer.groups("cause"), answer.gaps()], arguments.format)
    if not len(report.operations):
        why = "GPU work is not known" if report.gpu_doubt else "no GPU work"
        raise EmptyAnswerError(
            f"{report.name}: {why}, so no idle time of a GPU either",
            hint=report.lacks(Capability.KERNELS),
        )
    return 0
