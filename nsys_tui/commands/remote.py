"""Reports named on another machine (``gpu-box:runs/report7.nsys-rep``): fetched, then local."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsys_tui.commands.printing import say
from nsys_tui.errors import UsageError
from nsys_tui.paths import existing_path, given_path, is_there
from nsys_tui.units import format_bytes

if TYPE_CHECKING:
    from nsys_tui.capture.remote import Listing, RemoteName
    from nsys_tui.config import Config


_CAPTURE: Final = re.compile(r"\d{8}-\d{6}(-\w+)?")
"""How the ids of captures look, also without their ends."""


def local_path(name: str, config: Config) -> Path:
    """The file on this machine that a name stands for; a remote report is fetched first.

    A remote name that ends in ``/`` lists the folder; on a terminal one of its reports is chosen.

    Raises:
        UsageError: a folder was named and there is no terminal to choose on.
        CaptureError: the machine or the file cannot be reached.
    """
    path = existing_path(name)
    if is_there(path) or name.startswith("file://"):
        return path if is_there(path) else given_path(name)
    if _CAPTURE.fullmatch(name):
        return _of_capture(name)
    if ":" not in name:
        return path
    import asyncio

    from nsys_tui.capture.remote import fetch_report, list_reports, parse_remote
    from nsys_tui.commands.capture_console import Narrator, ask_on_terminal

    remote = parse_remote(name)
    if remote is None:
        return Path(name)
    ask = ask_on_terminal if sys.stdin.isatty() and sys.stderr.isatty() else None
    while remote.is_folder:
        remote = _chosen(remote, asyncio.run(list_reports(remote, config, ask)))
    return asyncio.run(fetch_report(remote, config, ask, Narrator()))


def _of_capture(name: str) -> Path:
    """The report of a capture.

    Raises:
        UsageError: it has none here, or several.
    """
    from nsys_tui.capture.record import Store

    record = Store().load(name)
    there = record.at_home
    if len(there) == 1:
        return there[0]
    hint = f"nsys-tui captures {'open' if there else 'attach'} {record.id}"
    what = f"{len(there)} reports" if there else "no report here"
    raise UsageError(f"{name} is a capture with {what}", hint=hint)


def _chosen(remote: RemoteName, listing: Listing) -> RemoteName:
    """The entry of a listing that the user types the number of."""
    from dataclasses import replace

    for number, entry in enumerate(listing.entries, 1):
        kind = "/" if entry.is_folder else f"  {format_bytes(entry.size)}"
        say(f"{number:>4}  {entry.name}{kind}")
    if listing.more:
        say("      … and more that are not listed")
    if not listing.entries or not sys.stdin.isatty():
        raise UsageError(
            f"{remote.host}:{remote.path} is a folder, not a report",
            f"it holds {len(listing.entries)} entries",
            "name one of the reports",
        )
    print("number: ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip()
    if not answer.isdigit() or not 1 <= int(answer) <= len(listing.entries):
        raise UsageError(f"{answer!r}: not a number of the list")
    entry = listing.entries[int(answer) - 1]
    return replace(remote, path=f"{remote.path}{entry.name}{'/' if entry.is_folder else ''}")
