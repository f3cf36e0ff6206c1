"""``nsys-tui collectives``: which collective was which kernel, and how fast it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_tui.commands import options
from nsys_tui.commands.printing import DATA_FORMATS, print_document, print_tables
from nsys_tui.errors import NoDataError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from nsys_tui.analysis.nccl.calls import Calls
    from nsys_tui.analysis.nccl.rank_matching import Traced
    from nsys_tui.analysis.nccl.result import Collectives
    from nsys_tui.analysis.window import Lacking, Scope

_SECTIONS = ("operations", "ranks", "collectives")
_ROWS_OF_TEXT = 20
"""Collectives listed in a table for people; all in the other formats."""

EPILOG = """\
time = last end - last start over the ranks; where a rank is alone, its kernel, which includes
waiting (≈). alg = buffer / time, bus = bytes per rank on the wire / time, as nccl-tests has them.
Several reports of one job are put on one clock by the UTC start of their sessions.
"""


DESCRIPTION = (
    "Joins collectives with their kernels: sizes come from NCCL's NVTX payloads "
    "in the report, or from an NCCL log."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    parser.add_argument(
        "reports",
        nargs="+",
        metavar="REPORT[:RANK]",
        help="report, or one per rank; the rank is needed where log and report number processes "
        "differently, as in containers",
    )
    options.add(
        parser,
        "--nccl-log FILE",
        "NCCL_DEBUG logs that tell the sizes",
        nargs="+",
        action="extend",
        default=[],
    )
    options.add_scope(parser)
    options.add_format(parser, "analysis.nccl.tables")
    options.add_sections(
        parser,
        _SECTIONS,
        f"print only this part (repeatable): {', '.join(_SECTIONS)}; csv prints one, by default"
        " collectives, and json everything",
    )
    text = f"collectives to list, 0 for all (default {_ROWS_OF_TEXT} in tables, else all)"
    options.add_rows(parser, "--top", text)
    options.add_reading(parser)


def run(arguments: argparse.Namespace) -> int:
    """Joins and prints."""
    if arguments.log:
        options.log_to(arguments.log)
    if arguments.format in ("csv", "tsv"):
        options.csv_section(arguments.section, "collectives")
    logged = None
    if arguments.nccl_log:
        from nsys_tui.logs import read_logs
        from nsys_tui.logs.report_join import join_calls

        logged = join_calls(read_logs(arguments.nccl_log))
    traced = open_traced(arguments.reports, arguments.nsys, use_cache=not arguments.no_cache)
    calls = chosen(join(traced, logged), traced, _scopes(arguments, traced))
    print_collectives(calls, traced, arguments.format, arguments.section, arguments.top)
    return 0


def _scopes(arguments: argparse.Namespace, traced: Sequence[Traced]) -> list[Scope | None]:
    """What is asked for of each report; a GPU, process or stream need not be in all of them.

    Raises:
        UsageError: it is in none of them, or there is no readable window.
    """
    from nsys_tui.commands.options import choice_from, window_from

    choice, window = choice_from(arguments), window_from(arguments, traced[0].report)
    scopes: list[Scope | None] = []
    missing: list[Lacking] = []
    for one in traced:
        lacking = [kind for kind in choice.lacking(one.report) if kind.all]
        missing += lacking
        scopes.append(None if lacking else choice.scope(one.report, window))
    if not any(scopes):
        raise UsageError(missing[0].text, hint=missing[0].hint)
    return scopes


def chosen(
    calls: Collectives, traced: Sequence[Traced], scopes: Sequence[Scope | None]
) -> Collectives:
    """The collectives that the options ask for.

    Raises:
        NoDataError: there are none.
    """
    from nsys_tui.analysis.nccl.tables import restrict

    kept = restrict(calls, traced, scopes)
    if not len(kept):
        raise NoDataError(
            f"none of the {len(calls):,} collectives is in what was asked for",
            hint="widen the window, steps, rank or GPU",
        )
    return kept


def open_traced(
    texts: Sequence[str], nsys: str | None = None, *, use_cache: bool = True
) -> list[Traced]:
    """Opens reports given as ``REPORT`` or ``REPORT:RANK``.

    Raises:
        UnreadableReportError: a file is no usable report.
    """
    from nsys_tui.analysis.nccl.rank_matching import Traced
    from nsys_tui.commands.options import tell_notes
    from nsys_tui.config import load_config
    from nsys_tui.fleet.mapping import told_rank
    from nsys_tui.reader import open_configured

    config = load_config()
    reports = []
    for text in texts:
        path, rank = _place(text)
        report = open_configured(path, config, nsys, use_cache=use_cache)
        tell_notes(report, report.name)
        reports.append(Traced(report, rank, told_rank(report, path)))
    return reports


def _place(text: str) -> tuple[Path, int]:
    path, colon, rank = text.rpartition(":")
    if colon and rank.isdecimal() and len(rank) < 10 and not Path(text).exists():
        return Path(path), int(rank)
    return Path(text), -1


def join(traced: Sequence[Traced], logged: Calls | None) -> Collectives:
    """Finds the collectives.

    Raises:
        NoDataError: there are none; the message says why and what would record them.
        UsageError: a rank was given for a report of several.
    """
    from nsys_tui.analysis.nccl.collectives import collectives
    from nsys_tui.analysis.nccl.kernel_matching import nccl_kernels
    from nsys_tui.model.capabilities import Capability

    for one in traced:
        if one.rank >= 0 and len(set(nccl_kernels(one.report).pid.tolist())) > 1:
            raise UsageError(
                f"{one.report.name} holds several ranks, so it has no rank {one.rank} of its own",
                hint="give the report without :RANK",
            )
    calls = collectives(traced, logged)
    if len(calls):
        return calls
    if not any(len(nccl_kernels(one.report)) for one in traced):
        lacking = [one.report.lacks(Capability.KERNELS) for one in traced]
        why = next((text for text in lacking if text), "no NCCL kernel in the report")
        raise NoDataError(why, hint="collectives run as kernels named nccl*")
    raise NoDataError(
        "no collective could be joined with a kernel: "
        + ("; ".join(calls.notes) or "the report names no calls"),
        hint="record with nsys profile --trace=nvtx,cuda, or give --nccl-log FILE, written with"
        " NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL",
    )


def print_collectives(
    calls: Collectives,
    traced: Sequence[Traced],
    fmt: str,
    sections: Sequence[str] | None,
    top: int | None,
) -> None:
    """Prints tables, or everything as JSON."""
    from nsys_tui.analysis.nccl.tables import DOCUMENT, TABLES

    if fmt == "json":
        print_document(DOCUMENT, calls, calls, calls.notes, *(one.report.notes for one in traced))
        return
    if fmt in DATA_FORMATS:
        name = options.csv_section(sections, "collectives")
        print_tables([TABLES[name](calls, options.rows_shown(top, None))], fmt)
        return
    rows = options.rows_shown(top, _ROWS_OF_TEXT if fmt == "table" else None)
    tables = [TABLES[name](calls, rows) for name in sections or _SECTIONS]
    if "collectives" not in (sections or _SECTIONS):
        tables[-1] = replace(tables[-1], notes=(*tables[-1].notes, *calls.notes))
    print_tables(tables, fmt)
