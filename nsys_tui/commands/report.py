"""``nsys-tui report``: one page about a report to send to a colleague, or Markdown for a ticket."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nsys_tui.commands.destinations import CONSOLE, opened, say, write
from nsys_tui.commands.options import add_overwriting, add_report, add_scope, part_from
from nsys_tui.errors import OK

if TYPE_CHECKING:
    import argparse

DESCRIPTION = (
    "Writes what a report says into one file that opens anywhere without a network: verdict,"
    " findings with pictures of their evidence, steps, tables that sort, a flame graph."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    add_report(parser)
    add_scope(parser)
    parser.add_argument("-o", "--output", default=CONSOLE, metavar="FILE", help="- for stdout")
    add_overwriting(parser)


def run(arguments: argparse.Namespace) -> int:
    """Writes the page."""
    from nsys_tui.sharing.answer import shared
    from nsys_tui.sharing.page import page

    report, scope = part_from(arguments)
    text = page([shared(report, scope)])
    path = Path(arguments.output)
    with opened(arguments.output, path, overwrite=arguments.force_overwrite) as stream:
        write(stream, [text])
    if arguments.output != CONSOLE:
        say(f"nsys-tui: wrote {path} ({len(text.encode('utf-8', 'replace')):,} bytes)")
    return OK
