"""``nsys-tui fleet``: many reports as one run of many ranks."""

from __future__ import annotations

import logging
import sys
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from nsys_tui.commands import options
from nsys_tui.commands.printing import say
from nsys_tui.errors import (
    UNREADABLE,
    EmptyAnswerError,
    NoDataError,
    UnreadableReportError,
    UsageError,
)

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from nsys_tui.fleet.cluster import Cluster
    from nsys_tui.fleet.engine import Result
    from nsys_tui.fleet.fleet import Fleet
    from nsys_tui.fleet.summary import Options

FORMATS = (*options.TABLE_FORMATS, "parquet")
SECTIONS = (
    "reports",
    "ranks",
    "total",
    "steps",
    "step-ranks",
    "collectives",
    "stragglers",
    "calls",
    "heat",
    "memory",
    "metrics",
    "pace",
    "pace-ranks",
    "kernels",
    "copies",
    "ranges",
    "api",
    "osrt",
    "mpi",
    "skipped",
)
SHOWN = 20
"""Rows of long lists in a table for people; all in the other formats."""
_MOST_BINS = 1024
_OF_COMMAND = (
    "process",
    "device",
    "stream",
    "window",
    "step",
    "nvtx",
    "iteration",
    "pace",
    "scheduler",
    "slurm",
    "ranks",
)
EPILOG = """\
Ranks come from MPI and NCCL records, the launcher's environment (Open MPI, PMI, Slurm, ...),
process names and file names, in this order; the section "reports" says which. Times are put on
one clock by the UTC start of each session, or by the ends of collectives where these disagree.
Each GPU of a process that communicates on several is a rank. Copies of a report, and ranks captured
in another run, are left out and named; --ranks FILE decides otherwise.
A report that cannot be read is named on stderr and left out: the exit status stays 0, or is 65
with --strict, if no report can be read, or if a cluster lost some. What was computed for a report
is kept in the cache folder: a run that was interrupted goes on where it stopped.
"""


DESCRIPTION = (
    "Many reports of one parallel run: the breakdown of every rank, steps, "
    "collectives and who comes late to them, heat maps over time, statistics per name."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    from nsys_tui.commands.open import add_looks

    parser.add_argument(
        "reports", nargs="+", metavar="REPORT|DIR", help="reports, or folders to search for them"
    )
    options.add(parser, "--open", "open the fleet screen of the app")
    _add_computing(parser)
    _add_printing(parser)
    looks = parser.add_argument_group("with --open")
    add_looks(looks)


def _add_computing(parser: argparse.ArgumentParser) -> None:
    option = partial(options.add, parser)
    option(
        "--workers N",
        "processes here (default: one per processor), or jobs with --slurm (default 4)",
        type=options.positive,
    )
    engine = parser.add_mutually_exclusive_group()
    options.add(
        engine,
        "--scheduler ADDRESS",
        "Dask scheduler whose workers read the reports; what none of them finds under the "
        "same name is read here (needs the extra cluster)",
    )
    options.add(
        engine,
        "--slurm",
        "jobs of Slurm read the reports, which the nodes must see under the same name "
        "(needs the extra slurm)",
        action="store_const",
        const=True,
    )
    option(
        "--sbatch OPTION",
        "with --slurm: option of its jobs, such as --sbatch=--partition=cpu (repeatable)",
        action="append",
    )
    option(
        "--per-node",
        "with --scheduler or --slurm: REPORT and DIR are on the disks of the nodes, each of "
        "which reads its own",
    )
    option(
        "--clock",
        "put clocks together by UTC session start, by the ends of collectives, or not at "
        "all (default: utc where every report tells it and the ends agree, else ends)",
        choices=("auto", "utc", "ends", "session"),
        default="auto",
    )
    option(
        "--ranks FILE",
        "ranks by line: the name of a report and its ranks in the order of GPUs, such as "
        "node1.nsys-rep 8-15; overrides what the report tells",
    )
    options.add_choice(parser)
    part = parser.add_mutually_exclusive_group()
    options.add(
        part,
        "--window START/END",
        "only this part, such as 1.2s/1.5s, on the common clock; with --clock session, of "
        "each session's own",
    )
    options.add(part, "--step N", "only this step of each rank: its number from 0, or its name")
    options.add(
        part,
        "--nvtx NAME[/N]",
        "only this NVTX range of each rank, the first or the one of number N from 0",
    )
    option("--iteration REGEX", "NVTX ranges that are steps")
    option("--pace NAME", "kernel or NVTX range to follow over ranks")
    options.add_reading(parser)
    option("--strict", "exit with status 65 if any report was skipped")


def _add_printing(parser: argparse.ArgumentParser) -> None:
    options.add_format(parser, "fleet.answer", FORMATS)
    options.add_sections(
        parser,
        SECTIONS,
        f"print only this part (repeatable): {', '.join(SECTIONS)}; csv prints one, by default"
        " ranks; api and osrt are computed only when asked for; calls, pace and, in json,"
        " heat are printed only then",
    )
    options.add(
        parser, "--by", "names over all ranks, or per rank", choices=("all", "rank"), default="all"
    )
    options.add(parser, "--bins N", "columns of heat maps (at most)", type=int, default=500)
    options.add(
        parser,
        "--map NAME",
        "heat map of the printed section heat: busy, compute, comm, overlap, exposed, "
        "memory, 'GPU memory', or a GPU metric",
        default="busy",
    )
    text = f"rows of each section, 0 for all (default {SHOWN} in tables, else all)"
    options.add_rows(parser, "--top", text)
    options.add(
        parser, "-o, --output PATH", "file for csv or parquet; a folder gets one file per section"
    )
    options.add_overwriting(parser)


def run(arguments: argparse.Namespace) -> int:
    """Summarises the reports and prints or opens the fleet."""
    from nsys_tui.fleet.files import find_reports

    _check(arguments)
    paths = [] if arguments.per_node else find_reports(arguments.reports)
    if arguments.open:
        from nsys_tui.commands.open import run_app

        return run_app(arguments, paths, lambda: _report(arguments, paths), start="fleet")
    return _report(arguments, paths)


def _report(arguments: argparse.Namespace, paths: list[Path]) -> int:
    """Prints the fleet."""
    if arguments.log:
        options.log_to(arguments.log)
    from nsys_tui.commands.fleet_output import print_fleet, prints_notes

    fleet = read_fleet(arguments, paths)
    if not prints_notes(arguments):
        for note in fleet.notes:
            say(f"nsys-tui: {note}")
    shown = options.rows_shown(arguments.top, SHOWN if arguments.format == "table" else None)
    print_fleet(arguments, fleet, shown)
    seen = [len(m.process.devices) or len(m.process.steps.labels) for m in fleet.members]
    if not (any(seen) or fleet.mpi_shares()):
        raise EmptyAnswerError(
            "no GPU work and no steps in any report", hint="record with --trace=cuda,nvtx"
        )
    lost = any(failure.lost for failure in fleet.failures)
    return UNREADABLE if lost or (arguments.strict and fleet.failures) else 0


def _check(arguments: argparse.Namespace) -> None:
    if not 1 <= arguments.bins <= _MOST_BINS:
        raise UsageError(f"--bins {arguments.bins}: from 1 to {_MOST_BINS}")
    of_command = [name for name in _OF_COMMAND if getattr(arguments, name) is not None]
    if arguments.open and (of_command or arguments.clock != "auto"):
        name = (of_command or ["clock"])[0]
        raise UsageError(
            f"--{name} is for the printed fleet, not for --open",
            hint="w on the fleet screen asks for a window, step, range, GPU, process or stream",
        )
    if arguments.per_node and arguments.scheduler is None and not arguments.slurm:
        raise UsageError("--per-node is for --scheduler", hint="name the scheduler of the nodes")
    if arguments.workers and arguments.scheduler is not None:
        raise UsageError("--workers: not allowed with --scheduler, which has its own")
    if arguments.sbatch and not arguments.slurm:
        raise UsageError("--sbatch is for --slurm")
    if arguments.format == "parquet" and not arguments.output:
        raise UsageError("Parquet is no text", hint="name a file or a folder with -o PATH")
    if arguments.format in ("csv", "tsv") and not arguments.output:
        options.csv_section(arguments.section, "ranks")
    if arguments.output and arguments.format not in ("csv", "tsv", "parquet"):
        raise UsageError(
            f"-o writes csv and parquet, not {arguments.format}", hint="redirect stdout instead"
        )


def read_fleet(arguments: argparse.Namespace, paths: list[Path]) -> Fleet:
    """Reads the reports that the arguments of the verb ask for."""
    from nsys_tui.config import load_config
    from nsys_tui.fleet.engine import default_workers
    from nsys_tui.fleet.fleet import Clock
    from nsys_tui.fleet.loading import run_fleet
    from nsys_tui.fleet.mapping import Opening
    from nsys_tui.reader import check_patterns
    from nsys_tui.reader.cache import cache_at
    from nsys_tui.units import parse_window

    config = load_config()
    check_patterns(config)
    nsys = arguments.nsys or config.nsys.path
    done = 0

    def told(path: str, result: Result, count: int, total: int) -> None:
        nonlocal done
        done = count
        _tell(path, result, count, total)

    asked = _options(arguments, config.analysis.communication)
    names: list[Path | str] = [*paths]
    try:
        with _engine(arguments) as engine:
            if engine is not None and arguments.per_node:
                names = [*engine.per_node(arguments.reports)]
            return run_fleet(
                names,
                asked,
                engine=engine,
                workers=arguments.workers or default_workers(),
                opening=Opening(
                    nsys, not arguments.no_cache, cache_at(config.cache.dir, config.cache.limit)
                ),
                clock=Clock(arguments.clock),
                window=None if arguments.window is None else parse_window(arguments.window),
                given=_given(arguments, names),
                told=told,
            )
    except (UnreadableReportError, NoDataError) as error:
        if len(names) > 1:
            error.message = ""  # each reason was told
        raise
    except KeyboardInterrupt:
        kept = "" if arguments.no_cache else ": the same command goes on from there"
        print(f"\nnsys-tui: {done} of {len(names)} reports done{kept}", file=sys.stderr)
        raise


def _given(
    arguments: argparse.Namespace, names: list[Path | str]
) -> dict[str, tuple[int, ...]] | None:
    if arguments.ranks is None:
        return None
    from nsys_tui.fleet.ranks import read_ranks

    return read_ranks(
        arguments.ranks, [n if isinstance(n, str) else str(n.absolute()) for n in names]
    )


def _engine(arguments: argparse.Namespace) -> AbstractContextManager[Cluster | None]:
    if logging.lastResort is not None:  # warnings of workers and jobs, on standard error
        logging.lastResort.setFormatter(logging.Formatter("nsys-tui: %(message)s"))
    if arguments.slurm:
        from nsys_tui.fleet.slurm import JOBS, slurm_cluster

        return slurm_cluster(arguments.workers or JOBS, arguments.sbatch or ())
    if arguments.scheduler is None:
        return nullcontext()
    from nsys_tui.fleet.cluster import dask_cluster

    return nullcontext(dask_cluster(arguments.scheduler))


def _options(arguments: argparse.Namespace, patterns: tuple[str, ...]) -> Options:
    from nsys_tui.fleet.summary import FAMILIES, USUAL, Options
    from nsys_tui.patterns import compiled

    compiled(arguments.iteration or "")
    asked = arguments.section or ()
    families = tuple(name for name in FAMILIES if name in USUAL or name in asked)
    return Options(
        iteration=arguments.iteration,
        pace=arguments.pace,
        families=families,
        patterns=patterns,
        step=arguments.step,
        nvtx=arguments.nvtx,
        choice=options.choice_from(arguments),
    )


def _tell(path: str, result: Result, done: int, total: int) -> None:
    """Progress in a terminal, and every failure."""
    from nsys_tui.fleet.summary import Failure
    from nsys_tui.names import visible

    terminal = sys.stderr.isatty()
    if isinstance(result, Failure) and total > 1:  # one alone is the error itself
        start = "\r\x1b[K" if terminal else ""
        reason = "; ".join(line.strip() for line in result.reason.splitlines())
        named = "" if path in reason else f"{path}: "
        print(f"{start}nsys-tui: skipped: {visible(named + reason)}", file=sys.stderr)
    if terminal:
        end = "\r\x1b[K" if done == total else ""
        print(f"\r{done:,} of {total:,} reports{end}", end="", file=sys.stderr, flush=True)
