"""``nsys-tui overview``: what was captured and where the GPU time went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.commands.options import add, add_names, add_question, add_rows, csv_section, part_from
from nsys_tui.commands.printing import DATA_FORMATS, print_document, print_tables

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from nsys_tui.analysis.pieces import Pieces
    from nsys_tui.analysis.rules.verdict import Part
    from nsys_tui.analysis.window import Scope
    from nsys_tui.model.report import Report

SECTIONS = ("report", "devices", "memory", "kernels", "ranges", "breakdown", "missing")
"""What is printed unless ``--section`` chooses; ``each`` comes with ``--each`` beside them."""
HOST = ("threads", "mpi", "osrt")
"""Printed in place of what is about GPUs where there is no GPU work."""
WITHOUT_GPU = ("report", *HOST, "ranges", "missing")


DESCRIPTION = "What was captured, where the time of each GPU went, top kernels and ranges."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    add_question(parser, "analysis.overview_answer")
    add(
        parser,
        "--section",
        "print only this part (repeatable); csv prints one, by default the devices",
        choices=(*SECTIONS, *HOST, "each"),
        action="append",
    )
    add_rows(parser, "--top", "kernels and ranges listed, 0 for all (default 10)", 10)
    add_names(parser, "how kernels are named and so grouped", "short")
    add(
        parser,
        "--each WHAT",
        "also the split of each iteration, or of each instance of the NVTX range WHAT",
    )
    add(parser, "--iteration REGEX", "NVTX ranges that are iterations; implies --each")


def run(arguments: argparse.Namespace) -> int:
    """Prints the overview of one report."""
    from nsys_tui.analysis.memory import recorded_memory
    from nsys_tui.analysis.overview import overview
    from nsys_tui.analysis.overview_answer import DOCUMENT, OverviewAnswer
    from nsys_tui.analysis.rules.verdict import judged
    from nsys_tui.errors import NoDataError
    from nsys_tui.model.capabilities import Capability
    from nsys_tui.names import NameStyle

    report, scope = part_from(arguments)
    host = not set(HOST).isdisjoint(arguments.section or ())
    style, top = NameStyle(arguments.names), arguments.top or None
    result = overview(report, scope, style=style, top=top, host=host)
    pieces = _pieces(arguments, report, scope)
    told = ""
    bound: Sequence[Part] = ()
    if not arguments.section or "report" in arguments.section:
        told, bound = judged(report, scope, result.devices)
    answer = OverviewAnswer(report, result, recorded_memory(report), pieces, told, bound)
    if arguments.format == "json":
        only = DOCUMENT.keys_of(arguments.section)
        print_document(DOCUMENT, answer, answer, result.notes, report.notes, only=only)
        return 0
    sections = answer.tables(printed=True)
    usual = SECTIONS if result.host is None or result.devices else WITHOUT_GPU
    wanted = arguments.section or [*usual, "each"]
    if arguments.format in DATA_FORMATS:
        wanted = [csv_section(arguments.section, "devices" if pieces is None else "each")]
    tables = [table for name, table in sections.items() if name in wanted]
    if not arguments.section:
        tables = [table for table in tables if len(table) or table.notes != ("none",)]
    if not tables:  # all others are always there
        kind = Capability.MPI if "mpi" in wanted else Capability.GPU_MEMORY
        raise NoDataError(f"{report.name}: {report.lacks(kind) or f'no {kind}'}")
    print_tables(tables, arguments.format)
    return 0


def _pieces(arguments: argparse.Namespace, report: Report, scope: Scope) -> Pieces | None:
    from nsys_tui.analysis.pieces import iteration_pieces, range_pieces

    wanted = arguments.each or ("iteration" if "each" in (arguments.section or ()) else None)
    if arguments.iteration is not None or wanted == "iteration":
        return iteration_pieces(report, arguments.iteration, scope)
    return None if wanted is None else range_pieces(report, wanted, scope)
