"""Closing a report: nothing in the app shows it any more, then its memory and files are free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.freed_memory import give_back_freed_memory
from nsys_tui.ui.memo import Memo
from nsys_tui.ui.open_reports import keep_seen
from nsys_tui.ui.runtime.responsive_app import QUIET
from nsys_tui.ui.runtime.threads import once

if TYPE_CHECKING:
    from nsys_tui.ui.host import Host
    from nsys_tui.ui.session import Session


async def close_report(app: Host) -> None:
    """Closes the report in front; the next one takes its place. The last one stays."""
    gone = app.session
    if gone not in app.sessions:
        app.say("no report is open: o opens one")
        return
    if len(app.sessions) == 1:
        app.say("this is the only report: o opens another, q quits")
        return
    if app.front is not None:
        keep_seen([gone], gone, app.front.SCREEN)
    await take_out(app, gone)
    app.say(f"closed {gone.name}: {app.session.name} is in front")


async def take_out(app: Host, gone: Session) -> None:
    """One of several reports is not open any more; if it was in front, the next one is."""
    place = app.sessions.index(gone)
    app.sessions.remove(gone)
    app.name_sessions()
    for session in app.sessions:
        session.beside = [guest for guest in session.beside if guest is not gone]
    for screen in app.report_screens:
        screen.report_closed(gone)
    hidden = (screen for screen in app.report_screens if screen is not app.front)
    outdated = [screen.SCREEN for screen in hidden if screen.OF_ONE_REPORT]
    if app.session is gone:
        app.bring_to_front(app.sessions[min(place, len(app.sessions) - 1)])
    let_go(app, gone)
    await app.renew_screens(outdated)


def let_go(app: Host, session: Session) -> None:
    """Stops what reads a report that is not open any more, and closes its file after that."""
    session.cancel.set()
    _close_calmly(app, session)


def _close_calmly(app: Host, session: Session) -> None:
    loading = session.started and not session.finished
    if loading or app.jobs:  # one of them may still read from the file
        app.set_timer(QUIET, lambda: _close_calmly(app, session))
        return
    report = session.report
    session.report, session.sample, session.results = None, None, Memo()
    session.beside = []
    app.thaw()

    def job() -> None:
        if report is not None:
            report.close()
        give_back_freed_memory()

    app.run_worker(once(job), thread=True, group="close", exit_on_error=False)
