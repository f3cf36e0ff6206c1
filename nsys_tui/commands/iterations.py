"""``nsys-tui iterations``: time of each training step, by phase, and which ones are outliers."""

from __future__ import annotations

import argparse
from dataclasses import replace
from math import inf
from typing import Final

from nsys_tui.commands.options import add, add_question, add_rows, part_from, rows_shown
from nsys_tui.commands.printing import DATA_FORMATS, print_document, print_tables

SHOWN: Final = 100
"""Iterations printed unless ``--limit`` says otherwise; JSON and csv hold all."""


DESCRIPTION = (
    "Iterations, found from NVTX names or from a repeating pattern of kernels: "
    "time of each, mean, median and deviation of its phases, what no range covers, outliers. "
    "A first one that is warm-up stays out of the statistics."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    add_question(parser, "analysis.iterations.answer")
    add(parser, "--iteration REGEX", "NVTX ranges that are iterations, by their names")
    add(
        parser,
        "--critical-path STEP",
        "what the end of a step waited for, back to its start: a label, a number from 0,"
        " slowest or typical",
    )
    add(
        parser,
        "--flops N",
        "FLOPs of one step on all GPUs of its process, such as 1.2e15: tells how much of their"
        " peak it uses",
        type=_positive,
    )
    add(parser, "--peak N", "FLOP/s of one GPU at most; by its name otherwise", type=_positive)
    text = f"iterations to print, 0 for all (default {SHOWN}; all in csv and json)"
    add_rows(parser, "--limit", text)


def _positive(text: str) -> float:
    """A number above 0, such as 1.2e15."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < inf:
        raise argparse.ArgumentTypeError(f"not a number above 0: {text!r}")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Prints the iterations of one report."""
    from nsys_tui.analysis.iterations.answer import DOCUMENT, answer_of
    from nsys_tui.analysis.iterations.flops import step_flops
    from nsys_tui.analysis.iterations.path_answer import step_of, step_path

    report, scope = part_from(arguments)
    answer = answer_of(report, arguments.iteration, scope)
    if arguments.flops is not None:
        found_flops = step_flops(report, answer.table, arguments.flops, arguments.peak)
        answer = replace(answer, flops=found_flops)
    if arguments.critical_path is not None:
        iterations = answer.table.iterations
        step = step_of(iterations, arguments.critical_path, answer.typical)
        answer = replace(answer, path=step_path(report, iterations, step))
    if arguments.format == "json":
        print_document(DOCUMENT, answer, answer, answer.phases().notes, report.notes)
        return 0
    exact = arguments.format in DATA_FORMATS
    rows = rows_shown(arguments.limit, None if exact else SHOWN)
    if answer.path is not None:
        tables = answer.path.tables(rows)
        print_tables(tables[1:] if exact else tables, arguments.format)
        return 0
    each = answer.each(rows, exact=exact)
    tables = [answer.phases(), each, *([answer.where(rows)] if answer.table.gpus else [])]
    print_tables([each] if exact else tables, arguments.format)
    return 0
