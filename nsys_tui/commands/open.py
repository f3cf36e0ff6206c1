"""``nsys-tui REPORT``: the app on one or several reports; without a terminal, the text overview."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsys_tui.commands.options import add, add_reading
from nsys_tui.errors import OK, NsysTuiError, UsageError
from nsys_tui.paths import given_path, is_there

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsys_tui.analysis.links import Place
    from nsys_tui.config import Config
    from nsys_tui.model.progress import Progress
    from nsys_tui.model.report import Report
    from nsys_tui.ui.app import NsysTuiApp
    from nsys_tui.ui.screens.home.app import Choice
    from nsys_tui.ui.terminal import Terminal

PATIENCE: Final = 0.2
"""Seconds that leaving waits for work in the background."""


START: Final = """\
nsys-tui reads NVIDIA Nsight Systems reports in the terminal. To begin with:

  nsys-tui report.sqlite              open a report in a terminal
  nsys-tui overview report.sqlite     what it says, and what is worth fixing
  nsys-tui compare a.sqlite b.sqlite  is b slower, and where
  nsys-tui capture -- python app.py   profile a program
  nsys-tui demo                       write a report to try all this on

nsys-tui --help lists every verb."""
SMALLEST: Final = (80, 24)
"""Columns and lines that the app needs."""


DESCRIPTION = "Opens reports in the terminal; without one it prints the text overview."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    parser.add_argument(
        "reports",
        nargs="*",
        metavar="REPORT",
        help=".sqlite, .nsys-rep or .qdrep file; none, or a folder: choose from what is there"
        " (with --resume, none: those that were open last)",
    )
    add(parser, "--print SCREEN", "print a screen (overview, timeline, …) as text and leave")
    add(parser, "--window START/END", "of --print, such as 1.2s/1.5s")
    add(parser, "--size COLUMNSxLINES", "of --print (default 120x40)", default="120x40")
    add_opening(parser)


def add_opening(parser: argparse.ArgumentParser) -> None:
    """Adds everything that ``run_app`` looks at."""
    add_looks(parser)
    add(parser, "--resume", "window, filter, pins and screen as they were left")
    add(parser, "--keys PRESET", "keyboard preset: default, vim, azerty, …")
    add_reading(parser)


def add_looks(parser: argparse._ActionsContainer) -> None:
    """Adds the flags that override what the terminal was found to be."""
    add(parser, "--theme NAME", "dark, light, mono, … or one of your own")
    charset = parser.add_mutually_exclusive_group()
    add(charset, "--ascii", "send only ASCII", action="store_true", default=None)
    add(charset, "--unicode", "send box lines and blocks", action="store_false", dest="ascii")
    add(parser, "--no-color", "no colours: glyphs and emphasis")
    add(parser, "--no-mouse", "leave the mouse to the terminal")
    add(parser, "--text", "print the text overview instead")


def settings(arguments: argparse.Namespace) -> tuple[Config, Terminal]:
    """Config and terminal of this run, flags over everything else."""
    from nsys_tui.config import load_config
    from nsys_tui.ui.terminal import probe

    config = load_config(
        flags={
            "display.theme": arguments.theme,
            "display.ascii": arguments.ascii,
            "display.mouse": False if arguments.no_mouse else None,
            "keys.preset": getattr(arguments, "keys", None),
            "capture.default_target": getattr(arguments, "target", None),
        }
    )
    terminal = probe(
        is_tty=all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)),
        ascii_only=config.display.ascii,
        no_color=arguments.no_color,
        text=arguments.text,
    )
    return config, terminal


def run(arguments: argparse.Namespace) -> int:
    """Runs the app until the user leaves it."""
    from nsys_tui.analysis.links import split_link
    from nsys_tui.commands.remote import local_path
    from nsys_tui.config import load_config
    from nsys_tui.reader.filecheck import is_report, start_of
    from nsys_tui.ui.links import first_screen
    from nsys_tui.ui.recent import LOGS

    gone = _take_up_session(arguments)
    folder = Path(*arguments.reports[:1])
    if len(arguments.reports) < 2 and arguments.print is None and os.path.isdir(folder):
        config, terminal = settings(arguments)
        if terminal.app:
            return _at_home(arguments, folder, config, terminal, gone)
        if not arguments.reports:
            print(START)
            return UsageError.exit_code
    config = load_config()
    given = [split_link(name, os.path.exists) for name in arguments.reports]
    paths = [local_path(name, config) for name, _ in given]
    _check_links(paths)
    arguments.reports = [str(path) for path in paths]
    if arguments.print is not None:
        return _print_screen(arguments, paths)
    places = [place for _, place in given]
    start = first_screen(places[0]) if places and places[0] else "overview"

    def without() -> int:
        return _text_overviews(arguments, places)

    is_foreign = bool(paths) and not is_report(paths[0], start_of(paths[0]))
    if is_foreign and all(path.suffix in LOGS for path in paths):
        return run_app(arguments, (), without, "logs", logs=paths)

    return run_app(arguments, paths, without, start, places=places, gone=gone)


def _take_up_session(arguments: argparse.Namespace) -> str:
    """Has ``--resume`` without names mean the reports that were open last.

    Returns:
        What is to be told of those that cannot be.
    """
    if not arguments.resume or arguments.reports:
        return ""
    from nsys_tui.ui.resume import last_session

    left = last_session()
    arguments.reports = [str(path) for path in left if is_there(path)]
    gone = ", ".join(str(path) for path in left if not is_there(path))
    if not left:
        return "there is no session to take up: no report was open before"
    return gone and f"open last, and not there any more: {gone}"


def _check_links(paths: Sequence[Path]) -> None:
    """Tells a link that cannot be read from a file that is not there.

    Raises:
        UsageError: what stands after a ``#`` looks like a place and is none.
    """
    from nsys_tui.analysis.links import looks_like_link

    for path in paths:
        if looks_like_link(str(path)) and not is_there(path):
            raise UsageError(
                f"not a place in a report: {path.name.rpartition('#')[2]!r}",
                hint="write it as report.sqlite#2.1s-2.3s/GPU0/2: window, GPU, screen",
            )


def _print_screen(arguments: argparse.Namespace, paths: Sequence[Path]) -> int:
    """Prints what a screen of the app shows of the reports.

    Raises:
        UsageError: there is no such screen or size, or the window is not one.
    """
    from nsys_tui.commands.printing import write
    from nsys_tui.ui.keymap import SCREENS
    from nsys_tui.units import parse_window

    names = [spec.name for spec in SCREENS]
    if arguments.print not in names:
        raise UsageError(f"no screen {arguments.print!r}", hint=f"one of {', '.join(names)}")
    size = re.fullmatch(r"(\d{2,3})x(\d{2,3})", arguments.size)
    if size is None or int(size[1]) < SMALLEST[0] or int(size[2]) < SMALLEST[1]:
        raise UsageError(f"no size {arguments.size!r}", hint="such as 120x40; 80x24 at least")
    asked = parse_window(arguments.window or "/")
    config, terminal = settings(arguments)
    app = _app(arguments, paths, config, terminal, arguments.print, remembers=False)
    from nsys_tui.ui.printed import printed_screen

    lines = printed_screen(app, (int(size[1]), int(size[2])), asked)
    if (ended_by := app.fatal or app.crash) is not None:
        raise ended_by
    write(sys.stdout, (line.rstrip() + "\n" for line in lines))
    return OK


def _at_home(
    arguments: argparse.Namespace, folder: Path, config: Config, terminal: Terminal, refused: str
) -> int:
    """Lets the user choose from what can be opened, and opens that; again where it cannot be."""
    from nsys_tui.ui.screens.home.app import HomeApp

    while True:
        app = HomeApp(config, terminal, folder, refused)
        app.run(mouse=config.display.mouse)
        if app.crash is not None:
            raise app.crash
        if app.choice is None:
            return OK
        try:
            return _open_choice(arguments, app.choice, config)
        except NsysTuiError as error:
            refused = str(error)


def _open_choice(arguments: argparse.Namespace, choice: Choice, config: Config) -> int:
    from nsys_tui.commands.demo import cached_demo
    from nsys_tui.commands.remote import local_path

    paths = list(choice.paths)
    if choice.name:
        paths = [local_path(choice.name, config) if ":" in choice.name else given_path(choice.name)]
    if choice.demo:
        paths = [cached_demo()]
    arguments.target = choice.target or None
    arguments.resume |= choice.resume
    return run_app(arguments, paths, lambda: OK, choice.screen, logs=choice.logs)


def run_app(
    arguments: argparse.Namespace,
    paths: Sequence[Path],
    without: Callable[[], int],
    start: str = "overview",
    kind: Callable[[], type[NsysTuiApp]] | None = None,
    places: Sequence[Place | None] = (),
    logs: Sequence[Path] = (),
    gone: str = "",
) -> int:
    """Runs the app on some reports until the user leaves it.

    Args:
        arguments: with the options of ``add_looks``, ``nsys``, ``no_cache`` and ``log``.
        paths: the reports; the first is in front.
        without: what is done where there is no terminal for an app.
        start: name of the first screen.
        kind: gives another class of app than the usual one, whose reports are not remembered.
        places: where links lead, as far as reports were given as links.
        logs: what the Logs screen reads at once.
        gone: what is told of reports that could not be opened.
    """
    config, terminal = settings(arguments)
    if not terminal.app:
        return without()
    if arguments.log:
        from nsys_tui.commands.options import log_to

        log_to(arguments.log)
    from nsys_tui.ui.host import HINT
    from nsys_tui.ui.links import look_at
    from nsys_tui.ui.recent import is_first
    from nsys_tui.ui.runtime import garbage_collection
    from nsys_tui.ui.runtime.threads import take_turns

    garbage_collection.hold()
    take_turns()
    app = _app(arguments, paths, config, terminal, start, kind, remembers=kind is None)
    app.logs = logs
    if gone:
        app.error = NsysTuiError(gone)
    if start == "overview" and kind is None and is_first():
        app.hint = HINT
    for session, place in zip(app.sessions, places, strict=False):
        if place is not None:
            look_at(session, place)
    status = asyncio.run(_until_left(app, mouse=config.display.mouse))
    ended_by = app.fatal or app.crash
    if ended_by is not None:
        raise ended_by
    return status


def _app(
    arguments: argparse.Namespace,
    paths: Sequence[Path],
    config: Config,
    terminal: Terminal,
    start: str,
    kind: Callable[[], type[NsysTuiApp]] | None = None,
    *,
    remembers: bool = True,
) -> NsysTuiApp:
    from nsys_tui.ui.app import NsysTuiApp

    def opener(path: Path, progress: Progress) -> Report:
        from nsys_tui.reader import open_configured

        cached = not arguments.no_cache
        return open_configured(path, config, arguments.nsys, use_cache=cached, progress=progress)

    return (kind() if kind else NsysTuiApp)(
        paths,
        opener,
        config=config,
        terminal=terminal,
        start=start,
        resume=getattr(arguments, "resume", False),
        use_cache=not arguments.no_cache,
        remembers=remembers,
    )


async def _until_left(app: NsysTuiApp, *, mouse: bool) -> int:
    """Runs the app; does not wait for threads that are still reading when the user leaves.

    They stop at their next step, which may be seconds away in a large report. All they write is
    cache files that appear whole or not at all.
    """
    await app.run_async(mouse=mouse)
    status = app.return_code or 0
    end = time.monotonic() + PATIENCE
    while app.jobs and time.monotonic() < end:  # noqa: ASYNC110  threads, no tasks
        await asyncio.sleep(0.01)
    if app.jobs and app.fatal is None and app.crash is None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


def _text_overviews(arguments: argparse.Namespace, places: Sequence[Place | None]) -> int:
    """The text overview of each report, or of what a link names, as ``nsys-tui overview``."""
    from nsys_tui.commands import overview

    parser = argparse.ArgumentParser()
    overview.add_arguments(parser)
    given = argparse.Namespace(**{name: vars(arguments)[name] for name in ("nsys", "no_cache")})
    status = OK
    for report, place in zip(arguments.reports, places, strict=True):
        words = [] if place is None else place.options()
        status = max(status, overview.run(parser.parse_args([*words, "--", report], given)))
    return status
