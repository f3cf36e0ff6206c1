"""The command palette: actions, kernels, ranges, marks, themes, open reports, verbs and words."""

from __future__ import annotations

import asyncio
import shlex
from functools import partial
from typing import TYPE_CHECKING, Final

from nsys_tui.names import normalise_nvtx, visible
from nsys_tui.render.palette import theme_names
from nsys_tui.state import Selection, at_mark
from nsys_tui.text.definitions import definitions
from nsys_tui.ui.dialogs.help import open_help
from nsys_tui.ui.dialogs.picker import Picker
from nsys_tui.ui.keymap import GLOBAL, SCREENS, Action, effective_keys, shown_key
from nsys_tui.ui.matching import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nsys_tui.ui.host import Host

VERBS: Final = {
    "overview": "what was captured, busy split per GPU, top kernels and ranges",
    "analyze": "expert rules and findings",
    "stalls": "why the GPU stood idle",
    "iterations": "time of each training step by phase, and outliers",
    "stacks": "GPU time as folded stacks",
    "stats": "statistical reports under nsys's own names",
}
"""Verbs that answer from the report and the window in front."""
ALSO: Final = {
    "copy.cell": "clipboard yank",
    "copy.link": "share url bookmark",
    "display.panel": "settings options preferences configuration",
    "export.view": "save picture image screenshot download",
    "find.open": "find filter grep",
    "mark.set": "annotate remember",
    "nav.back": "undo return",
    "pane.maximise": "fullscreen enlarge",
    "report.open": "load file",
    "report.page": "report share print picture screenshot export save",
    "report.reload": "refresh",
    "app.quit": "exit",
}
"""Other words that users type for an action."""
LOOKS: Final = 200
"""Looks, 50 ms apart, whether a screen has computed what an action there is for."""
MOST_NAMES = 20_000
"""Names of one kind offered: filtering more would stall the keyboard."""


def open_palette(app: Host) -> None:
    """Shows the palette; choosing an entry runs it."""
    entries = [
        *_actions(app),
        *_reports(app),
        *_marks(app),
        *_themes(app),
        *_verbs(app),
        *_actions_elsewhere(app),
        *_terms(app),
        *_names(app),
    ]
    app.ask(Picker("Palette", entries), app.call_later)


def _actions(app: Host) -> Iterator[Entry]:
    actions = app.front.ACTIONS if app.front is not None else ()
    for action in (*actions, *GLOBAL):
        if action.id != "app.palette" and app.handler(action.id) is not None:
            yield _action(app, action, "", partial(app.action_do, action.id))


def _actions_elsewhere(app: Host) -> Iterator[Entry]:
    """Actions of the other screens: choosing one goes there first. Those imported by now."""
    known = {action.id for action in (*(app.front.ACTIONS if app.front else ()), *GLOBAL)}
    for spec in (spec for spec in SCREENS if spec.loaded):
        for action in (action for action in spec.actions() if action.id not in known):
            run = partial(_begin_elsewhere, app, spec.name, action)
            yield _action(app, action, f"{spec.long}: ", run)


def _action(app: Host, action: Action, where: str, run: Callable[[], object]) -> Entry:
    keys = effective_keys(action, app.keymap)
    text = action.help
    if action.label.lower() not in text.lower():
        text = f"{action.label}: {text}"
    return Entry(
        where + text, shown_key(keys[0]) if keys else "", run, True, ALSO.get(action.id, "")
    )


def _begin_elsewhere(app: Host, screen: str, action: Action) -> None:
    app.run_worker(_do_elsewhere(app, screen, action), exit_on_error=False)


async def _do_elsewhere(app: Host, screen: str, action: Action) -> None:
    """Goes to a screen and runs an action there, once what it works on is computed."""
    await app.visit(screen)
    for _ in range(LOOKS):
        await asyncio.sleep(0.05)
        if not app.jobs:
            break
    if app.handler(action.id) is None:
        app.say(f"nothing for {action.label!r} here")
    await app.action_do(action.id)


def _reports(app: Host) -> Iterator[Entry]:
    for session in app.sessions:
        if session is not app.session:
            yield Entry(str(session.path), "report", partial(app.bring_to_front, session))


def _marks(app: Host) -> Iterator[Entry]:
    for mark in app.state.marks.values():
        changes = at_mark(app.state, mark)
        text = " ".join(part for part in (mark.letter, mark.label, mark.note) if part)
        yield Entry(visible(text), "mark", partial(app.show, mark.screen, **changes))


def _themes(app: Host) -> Iterator[Entry]:
    for name in theme_names(app.theme_folder):
        yield Entry(f"theme {name}", "theme", partial(app.use_theme, name), loose=True)


def _verbs(app: Host) -> Iterator[Entry]:
    """The figures of a screen as a command for a pipe: choosing one copies it."""
    report = app.session.report
    for verb, text in () if report is None else VERBS.items():
        words = ["nsys-tui", verb, str(app.session.path)]
        if app.state.window is not None:
            words.append("--window={}ns/{}ns".format(*app.state.window))
        line = shlex.join(words)
        yield Entry(f"copy nsys-tui {verb}: {text}", "verb", partial(app.copy, line, line), True)


def _terms(app: Host) -> Iterator[Entry]:
    """Words on screens: choosing one shows what it means."""
    for term in definitions():
        yield Entry(term.name, "word", partial(open_help, app, term.name), loose=True)


def _names(app: Host) -> Iterator[Entry]:
    """Kernels and ranges by name, from the parts that are there."""
    report = app.session.report
    if report is None:
        return
    if app.session.exact:
        texts = report.operations.texts(app.state.display.names)
        for name in dict.fromkeys(texts[:MOST_NAMES]):
            selection = Selection("kernel_name", (name,), label=name)
            yield Entry(visible(name), "kernel", partial(app.show, "kernels", selection=selection))
    if "ranges" in app.session.loaded:
        for name in dict.fromkeys(map(normalise_nvtx, report.ranges.names[:MOST_NAMES])):
            selection = Selection("range_name", (name,), label=name)
            yield Entry(visible(name), "range", partial(app.show, "nvtx", selection=selection))
