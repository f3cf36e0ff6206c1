"""What the actions of every screen do; ``app.handler`` finds it by the action's id."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nsys_tui.paths import given_path
from nsys_tui.state import Place, ViewState, cycled, displayed, gone_back, gone_forward, here
from nsys_tui.ui.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.ui.host import Host


Command: TypeAlias = "Callable[[Host], Any]"
Travel: TypeAlias = "Callable[[ViewState, Place], tuple[ViewState, Place | None]]"


def pane_maximise(app: Host) -> None:
    """Gives the focused pane the whole screen, or back."""
    if app.screen.maximized is not None:
        app.screen.minimize()
    elif app.screen.focused is not None:
        app.screen.maximize(app.screen.focused)


def nav_escape(app: Host) -> None:
    """Dismisses an error, restores a pane, cancels loading, or goes back, in this order."""
    if app.error is not None or (app.hint and app.progress is None):
        app.error, app.hint = None, ""
        app.sync()
    elif app.screen.maximized is not None:
        app.screen.minimize()
    elif app.progress is not None:
        for session in (app.session, *app.session.beside):
            session.cancel.set()
    else:
        _travel(app, gone_back)


def display_names(app: Host) -> None:
    """Next name style."""
    style = cycled(app.state.display.names)
    app.set_state(displayed(app.state, names=style))
    app.say(f"names: {style}")


def display_time(app: Host) -> None:
    """Next time format."""
    style = cycled(app.state.display.time)
    app.set_state(displayed(app.state, time=style))
    app.say(f"times: {style}")


def report_reload(app: Host) -> None:
    """Reads the report again; the view state stays."""
    from nsys_tui.ui.closing import let_go

    old = app.session
    if old not in app.sessions:
        return
    fresh = Session(old.path, state=old.state, beside=old.beside, label=old.label)
    app.sessions[app.sessions.index(old)] = fresh
    for session in app.sessions:
        session.beside = [fresh if guest is old else guest for guest in session.beside]
    app.session = fresh
    app.begin_load(fresh)
    app.sync()
    let_go(app, old)


def _step(by: int, app: Host) -> None:
    """Shows the next (1) or previous (-1) of the open reports."""
    if len(app.sessions) < 2:
        app.say("no other report is open: o opens one")
        return
    place = app.sessions.index(app.session)
    app.bring_to_front(app.sessions[(place + by) % len(app.sessions)])


def display_panel(app: Host) -> None:
    """Shows the display panel."""
    from nsys_tui.ui.dialogs.panel import DisplayPanel

    app.push_screen(DisplayPanel())


def report_open(app: Host) -> None:
    """Asks for another report: one that is open, recent, in this folder, or any path."""
    from nsys_tui.analysis.links import split_link
    from nsys_tui.ui.dialogs.picker import Picker
    from nsys_tui.ui.links import first_screen, look_at
    from nsys_tui.ui.matching import Entry
    from nsys_tui.ui.recent import distinct, nearby, recent

    known = {session.path.absolute(): "open" for session in app.sessions}
    for kind, paths in (("recent", recent()), ("here", nearby(Path.cwd()))):
        known = {path: known.get(path, kind) for path in distinct([*known, *paths])}
    entries = [Entry(str(path), kind, str(path)) for path, kind in known.items()]

    def opened(path: str) -> None:
        path, place = split_link(path, lambda name: given_path(name).exists())
        local = given_path(path)
        if ":" in path and not path.startswith("file:") and not local.exists():
            from nsys_tui.ui.remote import fetch_and_open

            app.run_worker(fetch_and_open(app, path), group="fetch", exit_on_error=False)
        else:
            app.open_path(local)
            if place is not None:
                look_at(app.session, place)
                app.show(first_screen(place))

    app.ask(Picker("Open a report: choose, or type a path", entries, free=True), opened)


def copy_link(app: Host) -> None:
    """Copies the link to the row under the cursor, or to the window."""
    from nsys_tui.ui.links import link_to

    if app.front is not None:
        app.copy(link_to(app.session, app.front.evidence), "1 link")


def capture_again(app: Host) -> None:
    """Profile again: the capture screen, filled in with how the report in front was made.

    What would settle the finding under the cursor is recorded, too.
    """
    options = app.front.to_record if app.front is not None else ""
    app.show("capture")
    if (screen := app.front) is not None and hasattr(screen, "fill_from_report"):
        screen.call_after_refresh(screen.fill_from_report, options)


def app_redraw(app: Host) -> None:
    """Sends the whole screen again, after something else wrote to the terminal."""
    app.forget_screen()
    app.screen.refresh(layout=True)


def _travel(app: Host, go: Travel) -> None:
    front = app.front
    if front is None:
        return
    origin = here(app.state, front.SCREEN, front.view())
    state, place = go(app.state, origin)
    _arrive(app, state, place)


def _arrive(app: Host, state: ViewState, place: Place | None) -> None:
    if place is None:
        return
    app.session.state = state
    app.switch_mode(place.screen)
    app.sync()
    front = app.front
    if front is not None and front.is_mounted:
        front.restore(place.view)
    elif front is not None:
        front.call_later(front.restore, place.view)  # it was renewed and has no panes yet


def _late(target: str) -> Command:
    """What is imported when it is first asked for: ``module:function`` of this package."""
    module, _, name = target.partition(":")
    return lambda app: getattr(import_module(f"nsys_tui.ui.{module}"), name)(app)


COMMANDS: Final[dict[str, Command]] = {
    "pane.next": lambda app: app.screen.focus_next(),
    "pane.previous": lambda app: app.screen.focus_previous(),
    "pane.maximise": pane_maximise,
    "nav.back": lambda app: _travel(app, gone_back),
    "nav.forward": lambda app: _travel(app, gone_forward),
    "nav.escape": nav_escape,
    "display.names": display_names,
    "display.time": display_time,
    "display.panel": display_panel,
    "report.open": report_open,
    "report.close": _late("closing:close_report"),
    "report.reload": report_reload,
    "report.next": partial(_step, 1),
    "report.previous": partial(_step, -1),
    "report.page": _late("saving:save_page"),
    "app.help": _late("dialogs.help:open_help"),
    "app.palette": _late("dialogs.palette:open_palette"),
    "app.command": _late("dialogs.command_line:open_command_line"),
    "app.jump": _late("dialogs.jump:open_jump"),
    "app.redraw": app_redraw,
    "app.quit": lambda app: app.leave(),
    "copy.link": copy_link,
    "mark.list": _late("dialogs.marks:open_marks"),
    "capture.again": capture_again,
}
"""Action id to what it does, for the actions that every screen has."""
