"""``nsys-tui baseline``: saves, lists and removes what ``compare --baseline`` compares with."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.commands import options
from nsys_tui.commands.printing import say, write
from nsys_tui.errors import OK, UsageError
from nsys_tui.export import baselines
from nsys_tui.model.table import Column, Table, Unit, column, number, table_of
from nsys_tui.names import NameStyle
from nsys_tui.reader.filecheck import report_id
from nsys_tui.text.documents import list_schema, row_schema, table_rows
from nsys_tui.units import format_duration, plural

if TYPE_CHECKING:
    import argparse

    from nsys_tui.analysis.compare.side import Side
    from nsys_tui.analysis.window import Scope
    from nsys_tui.export.baselines import Baseline, Run
    from nsys_tui.model.report import Report


DESCRIPTION = (
    "A baseline holds the figures of a report that compare needs, so that it serves"
    " when the report is gone: nsys-tui compare REPORT --baseline NAME."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    save = actions.add_parser("save", help="measure a report and keep its figures under a name")
    save.add_argument("name", metavar="NAME")
    added = actions.add_parser(
        "add", help="measure reports and add each as a run to a file, for compare --baseline-file"
    )
    options.add_report(save)
    added.add_argument("reports", metavar="REPORT", nargs="+", help="one run each")
    options.add_reading(added)
    for measuring in (save, added):
        options.add_scope(measuring)
        options.add(measuring, "--iteration REGEX", "NVTX names that are steps")
        options.add_names(measuring, "of kernels (default: short, or as in FILE)", None)
    options.add(added, "--file", "made if it is not there", type=Path, required=True)
    options.add(added, "--label TEXT", "what the run is called (default: its file)")
    runs = actions.add_parser("runs", help="the runs of a file, and where they jumped or drift")
    runs.add_argument("file", metavar="FILE", type=Path)
    options.add_format(runs, "commands.baseline:runs_schema", ("text", "json"))
    listed = actions.add_parser("list", help="all baselines (the default)")
    options.add_format(listed, "commands.baseline:schema", ("text", "json"))
    remove = actions.add_parser("rm", help="remove a baseline; the report is left alone")
    remove.add_argument("name", metavar="NAME")


def run(arguments: argparse.Namespace) -> int:
    """Runs the action."""
    actions = {"save": _save, "add": _add, "runs": _runs, "list": _list, "rm": _remove}
    return actions[arguments.action](arguments)


def _add(arguments: argparse.Namespace) -> int:
    from nsys_tui.analysis.compare.pooling import runs_of

    if arguments.label and len(arguments.reports) > 1:
        raise UsageError("--label names one run", hint="add the reports one after the other")
    if arguments.names is None and arguments.file.exists():
        arguments.names = baselines.load_runs(arguments.file).runs[0].side.style
    runs = []
    for path in arguments.reports:
        arguments.report = path
        report, scope = options.part_from(arguments)
        side = _measured(arguments, report, scope)
        label = arguments.label or report.path.stem
        data = report.metadata
        runs.append(baselines.run_of(side, label, data.host, data.session_start_utc_ns))
    told = []
    for run in runs:
        added = baselines.add_run(arguments.file, run)
        others = [each.side for each in added.runs if each.id != run.id]
        why = _unlike(others[-1], run.side) if others else ""
        told += [f"{others[-1].label} and {run.side.label} are not alike: {why}"] if why else []
    print(arguments.file)
    there = plural(len(runs_of([run.side for run in added.runs])), "run")
    for sentence in (*told, f"{plural(len(added.runs), 'report')} of {there} in {arguments.file}"):
        say(f"nsys-tui: {sentence}")
    return OK


def _unlike(before: Side, side: Side) -> str:
    """Of another kind is what compare would not compare, or only under protest; else empty."""
    from nsys_tui.analysis.compare.comparability import differences, different_work

    unfair = [f"{d.what} {d.a} | {d.b}" for d in differences(before, side) if d.unfair]
    return different_work(before, side) or "; ".join(unfair)


def _measured(arguments: argparse.Namespace, report: Report, scope: Scope) -> Side:
    from nsys_tui.analysis.compare.measure import measure
    from nsys_tui.analysis.compare.plan import identity_of, plan

    style = arguments.names or NameStyle.SHORT
    made = plan(report, scope, pattern=arguments.iteration, style=style)
    known = report_id(report.path)
    return measure(made, identity=identity_of(known, scope, arguments.iteration, style))


def _save(arguments: argparse.Namespace) -> int:
    from nsys_tui.analysis.compare.side import Found
    from nsys_tui.analysis.rules.ranking import find

    report, scope = options.part_from(arguments)
    side = _measured(arguments, report, scope)
    side = replace(side, findings=tuple(map(Found.of, find(report, scope))))
    path = baselines.save(arguments.name, side, report.path, report_id(report.path))
    print(path)
    steps = f"{len(side.steps)} steady steps {side.steps.rule}" if side.by_step else "no steps"
    size = path.stat().st_size
    say(f"nsys-tui: baseline {arguments.name}: {steps}, {size:,} bytes")
    return OK


def _list(arguments: argparse.Namespace) -> int:
    listed: list[Baseline] = []
    for name in baselines.names():
        try:
            listed.append(baselines.load(name))
        except UsageError as error:
            say(f"nsys-tui: {error}")
    table = table_of("baselines", "Baselines", _COLUMNS, listed)
    if listed or arguments.format == "json":
        _print(table, arguments.format)
    else:
        print("no baselines yet: nsys-tui baseline save NAME REPORT")
    return OK


def _runs(arguments: argparse.Namespace) -> int:
    """The runs of a file in their order, and what changed in their course."""
    from nsys_tui.analysis.compare.history import sentences, shifts
    from nsys_tui.analysis.compare.pooling import runs_of

    runs = baselines.load_runs(arguments.file).runs
    table = table_of("runs", "Runs", _RUN_COLUMNS, runs)
    sides = runs_of([run.side for run in runs])
    told = sentences(shifts(sides), [side.label for side in sides])
    _print(table, arguments.format)
    for sentence in told:
        say(f"nsys-tui: {sentence}")
    return OK


def _print(table: Table, fmt: str) -> None:
    from nsys_tui.text.tables import chunks

    if fmt == "json":
        print(json.dumps([*table_rows(table)], indent=1))
    else:
        write(sys.stdout, chunks(table, "column:nolimit"))


def _mean_wall(run: Run, _: object) -> int | None:
    return round(run.side.metrics["wall"].mean) if run.side.by_step else None


def _shown_wall(run: Run, _: object) -> str:
    wall = _mean_wall(run, _)
    return "-" if wall is None else format_duration(wall)


_RUN_COLUMNS: Final = (
    Column("Taken"),
    Column("Run", read=lambda run, _: run.side.label),
    number("steady_steps", lambda run, _: len(run.side.steps) if run.side.by_step else 0),
    Column("Mean wall", key="", read=_shown_wall),
    number("mean_wall_ns", _mean_wall),
    column("id"),
)


def _steps(baseline: Baseline, _: object) -> int:
    return len(baseline.side.steps) if baseline.side.by_step else 0


_COLUMNS: Final = (
    column("name", "Name"),
    column("saved", "Saved"),
    Column("Steps", key="", read=lambda baseline, _: str(_steps(baseline, _) or "-")),
    number("steady_steps", _steps),
    column("report", "Report"),
    column("report_id"),
    column("there", unit=Unit.FLAG),
    Column("Note", key="", read=lambda b, _: "" if b.there else "gone: only its figures are kept"),
)


def runs_schema() -> dict[str, Any]:
    """The schema of what ``runs`` prints as JSON."""
    return list_schema("runs", row_schema(_RUN_COLUMNS))


def schema() -> dict[str, Any]:
    """The schema of what ``list`` prints as JSON."""
    return list_schema("baselines", row_schema(_COLUMNS))


def _remove(arguments: argparse.Namespace) -> int:
    baselines.remove(arguments.name)
    return OK
