"""``nsys-tui baseline``: saves, lists and removes what ``compare --baseline`` compares with."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.commands.destinations import say, write
from nsys_tui.commands.options import add_format, add_names, add_report, add_scope, part_from
from nsys_tui.errors import OK, UsageError
from nsys_tui.model.table import (
    Column,
    Unit,
    column,
    number,
    table_of,
)

if TYPE_CHECKING:
    import argparse

    from nsys_tui.export.baselines import Baseline


DESCRIPTION = (
    "A baseline holds the figures of a report that compare needs, so that it serves"
    " when the report is gone: nsys-tui compare REPORT --baseline NAME."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    save = actions.add_parser("save", help="measure a report and keep its figures under a name")
    save.add_argument("name", metavar="NAME")
    add_report(save)
    add_scope(save)
    save.add_argument("--iteration", metavar="REGEX", help="NVTX names that are steps")
    add_names(save, "of kernels", "normalised")
    listed = actions.add_parser("list", help="all baselines")
    add_format(listed, "commands.baseline:schema", ("text", "json"))
    remove = actions.add_parser("rm", help="remove a baseline; the report is left alone")
    remove.add_argument("name", metavar="NAME")


def run(arguments: argparse.Namespace) -> int:
    """Runs the action."""
    return {"save": _save, "list": _list, "rm": _remove}[arguments.action](arguments)


def _save(arguments: argparse.Namespace) -> int:
    from nsys_tui.analysis.compare.measure import identity_of, measure, plan
    from nsys_tui.export import baselines
    from nsys_tui.reader.cache import report_id

    report, scope = part_from(arguments)
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
    from nsys_tui.text.documents import table_rows
    from nsys_tui.text.tables import chunks

    found: list[Baseline] = []
    for name in baselines.names():
        try:
            found.append(baselines.load(name))
        except UsageError as error:
            say(f"nsys-tui: {error}")
    table = table_of("baselines", "Baselines", _COLUMNS, found)
    if arguments.format == "json":
        print(json.dumps([*table_rows(table)], indent=1))
    elif found:
        write(sys.stdout, chunks(table, "column:nolimit"))
    else:
        print("no baselines yet: nsys-tui baseline save NAME REPORT")
    return OK


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


def schema() -> dict[str, Any]:
    """The schema of what ``list`` prints as JSON."""
    from nsys_tui.text.documents import list_schema, row_schema

    return list_schema("baselines", row_schema(_COLUMNS))


def _remove(arguments: argparse.Namespace) -> int:
    from nsys_tui.export import baselines

    baselines.remove(arguments.name)
    return OK
