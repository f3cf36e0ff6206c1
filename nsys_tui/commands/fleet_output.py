"""Output of ``nsys-tui fleet``: tables and maps on stdout, or files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from nsys_tui.commands import printing
from nsys_tui.errors import UsageError
from nsys_tui.fleet.answer import DOCUMENT, FleetAnswer, verdict
from nsys_tui.fleet.collective_tables import NOTHING
from nsys_tui.fleet.fleet import Fleet
from nsys_tui.fleet.heat_maps import heat_text
from nsys_tui.fleet.table_parts import ALL_ROWS, Ask
from nsys_tui.fleet.tables import SECTIONS, summary_sections
from nsys_tui.model.table import FACTS, Table, table_of
from nsys_tui.units import plural

_READ = ("table", "markdown", "html")
"""Formats for people."""


def prints_notes(arguments: argparse.Namespace) -> bool:
    """Whether the notes of a fleet stand in what is printed, below its section of reports."""
    sections = arguments.section
    return arguments.format in _READ and (not sections or "reports" in sections)


def print_fleet(arguments: argparse.Namespace, fleet: Fleet, top: int | None) -> None:
    """Prints the sections that the arguments of ``nsys-tui fleet`` ask for, or writes files.

    Args:
        arguments: of the verb.
        fleet: what was read.
        top: rows of each section; None for all.

    Raises:
        UsageError: a file is there already, or there are sections that do not fit into one.
    """
    fmt = arguments.format
    ask = Ask(top, arguments.by == "rank", arguments.bins, fmt in _READ)
    wanted = list(dict.fromkeys(arguments.section or summary_sections(fleet)))
    if fmt == "json":
        # A row for every rank and bin: half a million of them for a thousand ranks.
        chosen = wanted if arguments.section else [name for name in wanted if name != "heat"]
        told = NOTHING if arguments.section else verdict(fleet)
        printing.print_document(DOCUMENT, FleetAnswer(fleet, ask, chosen, told), None, fleet.notes)
    elif fmt in _READ:
        _print_text(arguments, fleet, wanted, ask)
    else:
        _write(arguments, fleet, ask)


def _print_text(arguments: argparse.Namespace, fleet: Fleet, wanted: list[str], ask: Ask) -> None:
    unicode, cells = printing.speaks_unicode(sys.stdout), printing.room(sys.stdout)
    tables = [
        heat_text(fleet, arguments.map, arguments.bins, unicode=unicode, room=cells)
        if name == "heat"
        else SECTIONS[name](fleet, ask)
        for name in wanted
    ]
    told = ""
    if not arguments.section:
        told, title = verdict(fleet).text, f"Fleet of {plural(len(fleet.members), 'rank')}"
        tables.insert(0, table_of("verdict", title, FACTS, [("verdict", told)]))
    printing.print_tables([*_said_once(tables, told)], arguments.format)


def _said_once(tables: Iterable[Table], told: str) -> Iterator[Table]:
    """Tables without notes that stand above already; an empty one without a new note is left out.

    What counts the rows that a table leaves out belongs to that table.

    Args:
        tables: in their order.
        told: what stands above them.
    """
    said: set[str] = set()
    for table in tables:
        new = (note for note in table.notes if note not in said and note not in told)
        notes = tuple(new) + tuple(n for n in table.notes if n in said and n.endswith(ALL_ROWS))
        said.update(table.notes)
        if notes or len(table) or not table.notes:
            yield replace(table, notes=notes)


def _write(arguments: argparse.Namespace, fleet: Fleet, ask: Ask) -> None:
    """One section to stdout or a file, or one file per section into a folder."""
    fmt = arguments.format
    target = Path(arguments.output) if arguments.output else None
    folder = target is not None and (target.is_dir() or arguments.output.endswith("/"))
    asked = list(dict.fromkeys(arguments.section or ()))
    if target is None or not folder:
        if len(asked) > 1 and target is not None:
            raise UsageError(
                f"{len(asked)} sections do not fit into one file", hint="name a folder: -o DIR/"
            )
        table = SECTIONS[(asked or ["ranks"])[0]](fleet, ask)
        printing.write_table(
            table, fmt, arguments.output or printing.CONSOLE, overwrite=arguments.force_overwrite
        )
        return
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write into {target}: {error.strerror}") from error
    for name in asked or summary_sections(fleet):
        table = SECTIONS[name](fleet, ask)
        if table.columns:
            path = target / f"{name}.{fmt}"
            printing.write_table(table, fmt, str(path), overwrite=arguments.force_overwrite)
            printing.say(f"nsys-tui: wrote {path}")
