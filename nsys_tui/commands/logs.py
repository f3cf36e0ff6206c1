"""``nsys-tui logs``: NCCL, RCCL, trainer and MPI logs as tables or JSON."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from nsys_tui.commands import options
from nsys_tui.commands.printing import DATA_FORMATS, print_document, print_tables
from nsys_tui.errors import GATE_HIT, NoDataError, UsageError
from nsys_tui.logs import read_logs
from nsys_tui.logs.nccl.hangs import find_hangs
from nsys_tui.logs.nccl.statistics import DEFAULT_BOUNDS, parse_bounds
from nsys_tui.logs.result import restrict
from nsys_tui.logs.sections.advice import DEBUG_TIME, advise
from nsys_tui.logs.sections.section import LogAnswer
from nsys_tui.logs.sections.tables import SECTIONS, SUMMARY, in_short
from nsys_tui.logs.trainers.trainer_table import NAMES, own_trainer

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from nsys_tui.logs.nccl.hang_report import HangReport
    from nsys_tui.logs.result import LogResult

EPILOG = """\
What to record:  NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL,NET,NVLS,GRAPH,TUNING,ENV
                 NCCL_DEBUG_FILE=nccl.%h.%p.log      one file per process, or lines tear
                 NCCL_DEBUG_TIMESTAMP_LEVELS=INFO    times, with NCCL 2.26 or newer
                 (NCCL_DEBUG_TIME is no variable of NCCL and does nothing)
"""
_JOINED = ("operations", "ranks", "collectives")
"""Sections of the join with a report."""
_STEPS = re.compile(r"(\d{1,18})(?:\s*(?:-|:|\.\.)\s*(\d{1,18}))?")
_ROWS_OF_TEXT = 20
"""Rows of the long lists in a table for people; all in the other formats."""


DESCRIPTION = (
    "Reads NCCL_DEBUG logs (2.4 to 2.30), RCCL logs, step lines of trainers, MLPerf's, throughput "
    "of vLLM, SGLang, TensorRT-LLM, llama.cpp and Ollama, tables of nccl-tests, MSCCL++, "
    "DeepSpeed's collectives, TransferBench, OSU, IMB, perftest, UCC, nvbandwidth and HPL, mpiP "
    "and MPI logger files, NCCL's plugins, "
    "PyTorch's watchdog and flight recorder (JSON); plain or packed with gzip, xz or zstd."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="log, or one per rank; - is standard input"
    )
    _add_choosing(parser)
    _add_printing(parser)


def _add_choosing(parser: argparse.ArgumentParser) -> None:
    option = partial(options.add, parser)
    option(
        "--steps, --iterations A-B",
        "keep the collectives of these steps, both included; a step line closes its step",
    )
    option(
        "--legacy-window",
        "window as the AWK kit takes it: lines after step line A until the next one after B "
        "(default 45-50, averages 45-49), which are the collectives of A+1 to B+1",
    )
    option("--trainer", "whose step lines count", choices=NAMES)
    option(
        "--epoch E",
        "only the steps of this epoch, where a trainer numbers them anew in each",
        type=int,
    )
    option(
        "--warmup N",
        "first step lines to leave out of means, 0 for none (default: the first of a run, "
        "and those after it that are far from the median)",
        type=int,
    )
    option(
        "--pattern REGEX",
        "a trainer of your own: a regular expression with a group step and any of s, ms, "
        "tflops, tokens, samples (per s), loss, epoch, such as "
        r"'it (?P<step>\d+) .* (?P<ms>[0-9.]+)ms'",
    )
    option(
        "--ranks N",
        "size of the communicators whose size no line tells, for wire bytes and bandwidth",
        type=options.positive,
    )
    option("--follow", "print the tables again whenever a log has grown, until Ctrl-C")
    option(
        "--flops-per-token N",
        "for TFLOPs of trainers that print tokens/s only, such as llm.c",
        type=options.positive,
    )
    option(
        "--buckets SIZES",
        "lower bounds of the size buckets (powers of 1024; default 64KB,1MB,16MB)",
    )
    option("--rank R", "only the calls of this rank", type=int)
    option("--gpu N", "only the calls of GPUs of this number", type=int)
    option(
        "--report REPORT[:RANK]",
        "join the collectives with the kernels of this report (repeatable) and print them "
        "instead, as nsys-tui collectives REPORT --nccl-log FILE does; --steps, --rank and --gpu "
        "choose among them",
        action="append",
    )


def _add_printing(parser: argparse.ArgumentParser) -> None:
    options.add_format(parser, "logs.answer")
    options.add_sections(
        parser,
        tuple(dict.fromkeys((*SECTIONS, *_JOINED))),
        f"print only this part (repeatable): {', '.join(SECTIONS)}; csv prints one, by default"
        f" per-op; with --report {', '.join(_JOINED)}",
    )
    options.add(parser, "--calls", "add the call list to json")
    text = f"rows of the long lists, 0 for all (default {_ROWS_OF_TEXT} in tables, else all)"
    options.add_rows(parser, "--top", text)
    options.add(
        parser,
        "--fail-on",
        "exit with status 1 if there is one (repeatable)",
        choices=("mismatch", "behind", "torn", "timeout"),
        action="append",
        default=[],
    )


def run(arguments: argparse.Namespace) -> int:
    """Reads the logs and prints what they say, again and again if asked to follow them."""
    if not arguments.follow:
        return _once(arguments)
    if arguments.format not in ("table", "markdown") or "-" in arguments.files:
        raise UsageError("--follow prints tables of files", hint="leave out --format, name files")
    from nsys_tui.commands.following import follow

    return follow(arguments.files, lambda: _once(arguments))


def _once(arguments: argparse.Namespace) -> int:
    """Reads the logs and prints what they say."""
    _check(arguments)
    bounds = parse_bounds(arguments.buckets) if arguments.buckets else DEFAULT_BOUNDS
    result = read_logs(
        arguments.files,
        steps=_parse_steps(arguments.steps),
        legacy_window=arguments.legacy_window,
        trainer=arguments.trainer,
        flops_per_token=arguments.flops_per_token,
        epoch=arguments.epoch,
        warmup=arguments.warmup,
        pattern=own_trainer(arguments.pattern) if arguments.pattern else None,
        ranks=arguments.ranks,
        progress=_progress if sys.stderr.isatty() and len(arguments.files) > 1 else None,
    )
    hangs = find_hangs(result)
    result = restrict(result, rank=arguments.rank, gpu=arguments.gpu)
    _narrate(result, with_notes=arguments.format in ("table", "markdown"))
    if not result.has_content:
        raise NoDataError(
            "no line of NCCL, of a known trainer, server or benchmark, or of MPI",
            hint="step lines of another trainer: --pattern REGEX; of NCCL: set NCCL_DEBUG=INFO and "
            "NCCL_DEBUG_SUBSYS=INIT,COLL,NET,NVLS,GRAPH,TUNING,ENV",
        )
    if arguments.report:
        _print_joined(arguments, result)
    else:
        _print(arguments, LogAnswer(result, hangs, bounds))
    return GATE_HIT if _gate(arguments.fail_on, result, hangs) else 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuses options that have nothing to act on, rather than to pass over them.

    Raises:
        UsageError: an option of the logs' own tables beside ``--report``, or the reverse.
    """
    sections = set(arguments.section or ())
    if arguments.format in ("csv", "tsv"):
        options.csv_section(arguments.section, "")
    if not arguments.report:
        if wrong := sorted(sections - set(SECTIONS)):
            raise UsageError(
                f"--section {wrong[0]} needs a report",
                hint="add --report run.nsys-rep, or choose one of " + ", ".join(SECTIONS),
            )
        return
    if wrong := sorted(sections - set(_JOINED)):
        raise UsageError(
            f"--report prints collectives with their kernels, and no section {wrong[0]}",
            hint=f"choose one of {', '.join(_JOINED)}, or leave --report out",
        )
    for name, given in (("--buckets", arguments.buckets), ("--calls", arguments.calls)):
        if given:
            raise UsageError(
                f"{name} is about the log's own calls and --report prints their join",
                hint=f"leave out {name} or --report",
            )


def _parse_steps(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = _STEPS.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"not a range of steps: {text!r}", hint="write it as 45-49 or 45")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise UsageError(f"empty range of steps: {text!r}", hint="the first comes first")
    return first, last


def _progress(path: str, done: int, total: int) -> None:
    print(f"nsys-tui: {done + 1} of {total}: {path!r}", file=sys.stderr)


def _narrate(result: LogResult, *, with_notes: bool) -> None:
    said = [
        f"{one.severity}: {one.text}"
        for one in advise(result)
        if with_notes or one.severity == "warning"
    ]
    said += [f"warning: skipped: {why}" for _, why in result.skipped]
    if "NCCL_DEBUG_TIME" in os.environ and not result.mentions_debug_time:
        said.insert(0, f"warning: {DEBUG_TIME}")
    for text in said:
        print(f"nsys-tui: {text}", file=sys.stderr)


def _print(arguments: argparse.Namespace, answer: LogAnswer) -> None:
    """Prints tables, or everything as JSON."""
    fmt, sections = arguments.format, arguments.section
    if fmt == "json":
        from nsys_tui.logs.answer import DOCUMENT

        named = {name.replace("-", "_") for name in sections or ()}
        every = {"calls", "api_calls"}
        lists = every if arguments.calls else every & named
        answer = replace(answer, lists=frozenset(lists))
        print_document(DOCUMENT, answer, answer.result, only=DOCUMENT.keys_of(sections))
        return
    top = options.rows_shown(arguments.top, _ROWS_OF_TEXT if fmt == "table" else None)
    answer = replace(answer, top=top)
    if fmt in DATA_FORMATS:
        sections = [options.csv_section(sections, "per-op")]
    # That all ranks agree is worth a line too.
    said = {"hangs"} if len(answer.result.calls) else set()
    some = [name for name in SUMMARY if name in said or SECTIONS[name].has_rows(answer)]
    first = [] if sections else in_short(answer)
    print_tables([*first, *(SECTIONS[name].table(answer) for name in sections or some)], fmt)


def _print_joined(arguments: argparse.Namespace, result: LogResult) -> None:
    from nsys_tui.analysis.window import Scope
    from nsys_tui.commands import collectives
    from nsys_tui.logs.report_join import join_calls

    traced = collectives.open_traced(arguments.report)
    calls = collectives.join(traced, join_calls(result))
    calls = collectives.chosen(calls, traced, [Scope()] * len(traced))
    collectives.print_collectives(calls, traced, arguments.format, arguments.section, arguments.top)


def _gate(fail_on: Sequence[str], result: LogResult, hangs: HangReport) -> bool:
    hit = {
        "mismatch": bool(hangs.mismatches),
        "behind": bool(hangs.drifts),
        "timeout": bool(result.timeouts),
        "torn": any(file.torn_lines for file in result.files),
    }
    return any(hit[name] for name in fail_on)
