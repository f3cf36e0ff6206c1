"""Permalinks in the app: where one leads, and the one to what is looked at."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.links import Place, link
from nsys_tui.analysis.timeline.tracks import gpu_key
from nsys_tui.state import Cursor, Window
from nsys_tui.ui.keymap import SCREENS

if TYPE_CHECKING:
    from nsys_tui.ui.front import Evidence
    from nsys_tui.ui.session import Session

TIMELINE: Final = 2


def first_screen(place: Place) -> str:
    """The screen that a place opens on: its own, the timeline for a window, else Overview."""
    number = int(place.screen or (TIMELINE if place.window or place.device is not None else 1))
    return next((spec.name for spec in SCREENS if spec.number == number != 0), "overview")


def look_at(session: Session, place: Place) -> None:
    """Has a session show a place; its GPU is found when the operations are there."""
    session.place = place
    if place.window is not None:
        window = Window(*place.window)
        session.state = replace(session.state, window=window, cursor=Cursor(window.start))
    settle(session)


def settle(session: Session) -> None:
    """Puts the cursor on the GPU that a link names, once GPUs are known."""
    place, report = session.place, session.report
    if place is None or place.device is None or report is None or not session.exact:
        return
    session.place = None
    numbers = [device.number for device in report.devices]
    if place.device in numbers:
        cursor = replace(session.state.cursor, lane=gpu_key(numbers.index(place.device)))
        session.state = replace(session.state, cursor=cursor)


def link_to(session: Session, shown: Evidence) -> str:
    """The link to what a screen shows of a report, as ``nsys-tui`` opens it."""
    number = None
    if session.report is not None and session.exact and shown.device is not None:
        devices = session.report.devices
        number = devices[shown.device].number if 0 <= shown.device < len(devices) else None
    window = shown.window
    wide = (window[0], max(window[1], window[0] + 1)) if window is not None else None
    return link(str(session.path), Place(wide, number, shown.screen))
