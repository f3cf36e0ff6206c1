"""The reports that are open side by side: what each is called, and how it was left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nsys_tui.names import cell_len, visible
from nsys_tui.ui import resume
from nsys_tui.units import out_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.ui.session import Session


def tabs(sessions: Sequence[Session], front: Session, room: int) -> str:
    """The open reports in a line, the one in front in brackets; only it where they need more room.

    Args:
        sessions: all that are open.
        front: the one that is shown.
        room: cells there are.
    """
    if len(sessions) < 2 or front not in sessions:
        return front.name
    names = (f"[{s.name}]" if s is front else s.name for s in sessions)
    text = " ".join(names)
    if cell_len(text) <= room:
        return text
    return f"{front.name} ({out_of(sessions.index(front) + 1, len(sessions))})"


def tab_at(sessions: Sequence[Session], front: Session, title: str, cell: int) -> Session | None:
    """The report whose name stands at a cell of the title; the next one, where only one is named.

    Args:
        sessions: all that are open.
        front: the one that is shown.
        title: what ``tabs`` gave, with whatever stands around it.
        cell: counted from the beginning of the title.
    """
    names = [visible(f"[{s.name}]" if s is front else s.name) for s in sessions]
    shown = list(zip(names, sessions, strict=True))
    if front in sessions and visible(f"[{front.name}]") not in title:
        following = sessions[(sessions.index(front) + 1) % len(sessions)]
        shown = [(visible(front.name), following)]
    at = 0
    for name, session in shown:
        at = title.find(name, at)
        if at >= 0 and cell_len(title[:at]) <= cell < cell_len(title[: at + len(name)]):
            return session
        at += len(name)
    return None


def keep_seen(sessions: Sequence[Session], front: Session, screen: str) -> None:
    """Writes down how reports are looked at, for ``--resume``.

    One that stood in a report's timeline and is not open now still belongs there.

    Args:
        sessions: the reports.
        front: the one in front.
        screen: where the user is.
    """
    opened = {str(session.path.absolute()) for session in sessions}
    for session in sessions:
        if session.report_id:
            left = "" if session is front else session.screen
            last = resume.seen(session.report_id)
            missing = [Path(file) for file in last.beside if file not in opened] if last else []
            beside = [*(guest.path for guest in session.beside), *missing]
            resume.keep(session.report_id, left or screen, session.state, beside)


def keep_session(sessions: Sequence[Session], front: Session, screen: str) -> None:
    """Writes down which reports are open and how each is looked at; see ``keep_seen``."""
    keep_seen(sessions, front, screen)
    if front in sessions:
        at = sessions.index(front)
        from_front = [*sessions[at:], *sessions[:at]]
        resume.keep_session([session.path for session in from_front])


def take_up(session: Session, sessions: Sequence[Session]) -> str:
    """Has a report, just opened, be looked at as it was last; returns the screen, if known.

    Args:
        session: the report.
        sessions: all that are open; those that stood in its timeline do so again.
    """
    seen = resume.seen(session.report_id)
    if seen is None:
        return ""
    session.state, session.screen = seen.on(session.state), seen.screen
    others = {str(other.path.absolute()): other for other in sessions if other is not session}
    session.beside = [others[file] for file in seen.beside if file in others]
    return seen.screen
