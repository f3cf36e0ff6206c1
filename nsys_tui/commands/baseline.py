"""``nsys-tui baseline``: saves, lists and removes what ``compare --baseline`` compares with."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from nsys_tui.commands.destinations import say
from nsys_tui.commands.options import add_report, add_scope, open_from, scope_from
from nsys_tui.errors import OK, UsageError

if TYPE_CHECKING:
    import argparse

    from nsys_tui.export.baselines import Baseline


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers the verb."""
    parser = subparsers.add_parser(
        "baseline",
        help="save, list and remove named baselines for compare",
        description="A baseline holds the figures of a report that compare needs, so that it serves"
        " when the report is gone: nsys-tui compare REPORT --baseline NAME.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    save = actions.add_parser("save", help="measure a report and keep its figures under a name")
    save.add_argument("name", metavar="NAME")
    add_report(save)
    add_scope(save)
    save.add_argument("--iteration", metavar="REGEX", help="NVTX names that are steps")
    save.add_argument(
        "--names", choices=("short", "normalised", "full"), default="normalised", help="of kernels"
    )
    listed = actions.add_parser("list", help="all baselines")
    listed.add_argument("--format", choices=("text", "json"), default="text")
    remove = actions.add_parser("rm", help="remove a baseline; the report is left alone")
    remove.add_argument("name", metavar="NAME")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Runs the action."""
    return {"save": _save, "list": _list, "rm": _remove}[arguments.action](arguments)


def _save(arguments: argparse.Namespace) -> int:
    from nsys_tui.analysis.compare.measure import identity_of, measure, plan
    from nsys_tui.export import baselines
    from nsys_tui.reader.cache import report_id

    report = open_from(arguments)
    scope = scope_from(arguments, report)
    made = plan(report, scope, pattern=arguments.iteration, style=arguments.names)
    known = report_id(report.path)
    identity = identity_of(known, scope, arguments.iteration, arguments.names)
    side = measure(made, identity=identity)
    path = baselines.save(arguments.name, side, report.path, known)
    print(path)
    steps = f"{len(side.steps)} steady steps {side.steps.rule}" if side.by_step else "no steps"
    size = path.stat().st_size
    say(f"nsys-tui: baseline {arguments.name}: {steps}, {size:,} bytes")
    return OK


def _list(arguments: argparse.Namespace) -> int:
    from nsys_tui.export import baselines

    found: list[Baseline] = []
    for name in baselines.names():
        try:
            found.append(baselines.load(name))
        except UsageError as error:
            say(f"nsys-tui: {error}")
    if arguments.format == "json":
        print(json.dumps([_as_json(baseline) for baseline in found], indent=1))
    else:
        sys.stdout.write(_as_text(found))
    return OK


def _as_json(baseline: Baseline) -> dict[str, object]:
    return {
        "name": baseline.name,
        "report": str(baseline.report),
        "report_id": baseline.report_id,
        "saved": baseline.saved,
        "there": baseline.there,
        "steady_steps": len(baseline.side.steps) if baseline.side.by_step else 0,
    }


def _as_text(found: list[Baseline]) -> str:
    from nsys_tui.model.table import Column, Table
    from nsys_tui.text.tables import render

    if not found:
        return "no baselines yet: nsys-tui baseline save NAME REPORT\n"
    table = Table(
        "baselines",
        "Baselines",
        (Column("Name"), Column("Saved"), Column("Steps"), Column("Report"), Column("Note")),
        (
            [baseline.name for baseline in found],
            [baseline.saved for baseline in found],
            [str(len(b.side.steps)) if b.side.by_step else "-" for b in found],
            [str(baseline.report) for baseline in found],
            ["" if baseline.there else "gone: only its figures are kept" for baseline in found],
        ),
    )
    return render(table, "column:nolimit")


def _remove(arguments: argparse.Namespace) -> int:
    from nsys_tui.export import baselines

    baselines.remove(arguments.name)
    return OK
