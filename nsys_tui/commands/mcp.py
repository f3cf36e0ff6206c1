"""``nsys-tui mcp``: a server over stdio whose tools answer an agent's questions about reports."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

from nsys_tui.errors import OK, UsageError
from nsys_tui.extras import adding

DESCRIPTION = (
    "Answers the questions of an agent (Model Context Protocol over stdio) by read-only tools."
    " Needs the extra mcp."
)
EPILOG = """\
Only the reports and folders named here are read, and without any the present folder.
Examples:
  nsys-tui mcp runs/
  nsys-tui mcp before.sqlite after.sqlite
Agents that run commands themselves read nsys-tui explain agents."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    parser.add_argument(
        "reports",
        nargs="*",
        type=Path,
        metavar="REPORT",
        help="report, or folder of reports, that tools may read (default: the present folder)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serves until the client leaves.

    Raises:
        UsageError: the extra is not installed, or a path is not there.
    """
    if find_spec("mcp") is None:
        raise UsageError("nsys-tui mcp needs its extra mcp", hint=adding("mcp"))
    from nsys_tui.agents.roots import Roots
    from nsys_tui.agents.server import server

    server(Roots(arguments.reports)).run("stdio")
    return OK
