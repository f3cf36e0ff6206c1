"""The page about what is looked at, written from the app."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nsys_tui.ui.saving import Saving, save
from nsys_tui.ui.scoping import report_scope

if TYPE_CHECKING:
    from typing import BinaryIO

    from nsys_tui.model.progress import Progress
    from nsys_tui.ui.host import Host


def save_page(app: Host) -> None:
    """Asks for a file name and writes the page about the window; a toast says where it is."""
    session, report = app.session, app.session.report
    if report is None or not session.finished:
        app.say("the report is still being read")
        return
    scope = report_scope(report, app.state)

    def write(file: BinaryIO, progress: Progress) -> None:
        from nsys_tui.sharing.answer import shared
        from nsys_tui.sharing.page import page

        found = shared(report, scope, progress)
        progress("writing the page", 0, 0)
        file.write(page([found]).encode("utf-8", "backslashreplace"))

    what = "the window" if scope.window is not None else "the report"
    name = f"{Path(session.name).stem}.html"
    save(app, Saving(f"Write a page about {what}", name, {".html": write}))
