"""Reports on another machine: listed to choose from, fetched, and opened."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_tui.capture.events import Progress, Remark
from nsys_tui.capture.remote import RemoteName, fetch_report, list_reports, parse_remote
from nsys_tui.ui.dialogs.picker import Picker
from nsys_tui.ui.dialogs.secret import ask
from nsys_tui.ui.matching import Entry
from nsys_tui.ui.messages import ProgressMoved, WorkEnded, failures_shown
from nsys_tui.units import format_bytes

if TYPE_CHECKING:
    from nsys_tui.ui.host import Host


async def fetch_and_open(app: Host, name: str) -> None:
    """Opens a report on another machine; of a folder, the one that the user chooses."""
    try:
        with failures_shown(app):
            remote = parse_remote(name)
            while remote is not None and remote.is_folder:
                chosen = await _chosen(app, name, remote)
                if chosen is None:
                    return
                name, remote = chosen, parse_remote(chosen)
            app.open_path(Path(name) if remote is None else await _fetched(app, name, remote))
    except asyncio.CancelledError:
        app.say("what has arrived is kept; opening it again goes on from there")
        raise
    finally:
        app.post_message(WorkEnded())


async def _chosen(app: Host, name: str, folder: RemoteName) -> str | None:
    """The report or folder in a folder that the user chooses; None for neither."""
    listing = await list_reports(folder, app.config, partial(ask, app))
    entries = []
    for entry in listing.entries:
        path = f"{name}{entry.name}{'/' if entry.is_folder else ''}"
        kind = "folder" if entry.is_folder else format_bytes(entry.size)
        entries.append(Entry(path, kind, path))
    return await app.push_screen_wait(Picker(f"Reports in {name}", entries))


async def _fetched(app: Host, name: str, remote: RemoteName) -> Path:
    def told(moved: Progress | Remark) -> None:
        if isinstance(moved, Remark):
            app.say(moved.text)
            return
        if app.session.cancel.is_set():
            app.workers.cancel_group(app, "fetch")
        megabytes = (moved.done // 10**6, moved.total // 10**6)
        app.post_message(ProgressMoved(f"fetching {moved.name}, MB", *megabytes))

    app.say(f"fetching {name}")
    if app.session.finished:
        app.session.cancel.clear()
    return await fetch_report(remote, app.config, partial(ask, app), told)
