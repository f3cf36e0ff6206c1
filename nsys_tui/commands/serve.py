"""``nsys-tui serve``: the app in a browser on this machine, or on one that tunnels to it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from nsys_tui.errors import OK, UsageError
from nsys_tui.extras import adding

DESCRIPTION = (
    "Serves the app to a browser on this machine (127.0.0.1 alone) and prints the address, which"
    " holds a random token. Needs the extra web."
)
EPILOG = """\
It ends a few seconds after its last tab is closed, when it was not used for the time of
--idle, and at Ctrl+C.
Examples:
  nsys-tui serve report.sqlite
  nsys-tui serve --theme light --idle 8h report.sqlite
  ssh -L 8888:127.0.0.1:8888 gpu-box nsys-tui serve --port 8888 runs/report.sqlite"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    from nsys_tui.commands.open import add_opening
    from nsys_tui.commands.options import add, whole

    parser.add_argument(
        "reports",
        nargs="+",
        metavar="REPORT",
        help=".sqlite, .nsys-rep or .qdrep file, or a folder",
    )
    add(parser, "--port N", "default: one that is free", type=whole(0, 65_535), default=0)
    add(parser, "--idle TIME", "ends when unused for so long (default 30min)", default="30min")
    add_opening(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serves until the last tab is closed.

    Raises:
        UsageError: the extra is not installed, or the port is taken.
        UnreadableReportError: a report cannot be read; better said here than in a tab.
    """
    if find_spec("textual_serve") is None:
        raise UsageError("nsys-tui serve needs its extra web", hint=adding("web"))
    import asyncio

    from nsys_tui.analysis.links import Place, link, split_link
    from nsys_tui.commands.printing import say
    from nsys_tui.commands.remote import local_path
    from nsys_tui.config import load_config
    from nsys_tui.reader import open_configured
    from nsys_tui.web.server import Server

    idle = _seconds(arguments.idle)
    config = load_config()
    given = [split_link(name, os.path.exists) for name in arguments.reports]
    paths = [local_path(name, config).resolve() for name, _ in given]
    for path in paths:
        if len(paths) > 1 or not path.is_dir():
            open_configured(path, config, arguments.nsys, use_cache=not arguments.no_cache).close()
    names = [link(str(p), place or Place()) for p, (_, place) in zip(paths, given, strict=True)]
    server = Server(_command(arguments, names), ", ".join(path.name for path in paths), idle)

    def tell(address: str) -> None:
        print(address, flush=True)
        say("open it in a browser here; the token in it is as good as a password")

    asyncio.run(server.run(arguments.port, tell))
    say(f"nsys-tui serve has ended: {server.ended_by}")
    return OK


def _seconds(text: str) -> float:
    from nsys_tui.units import parse_duration

    seconds = parse_duration(text, "s") / 1e9
    if seconds <= 0:
        raise UsageError(f"--idle {text}: not a time", hint="such as 30min or 8h")
    return seconds


def _command(arguments: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """The app's own command line, without a shell."""
    words = [sys.executable, "-m", "nsys_tui", "open"]
    given = {name: vars(arguments)[name] for name in ("theme", "keys", "nsys", "log")}
    words += [f"--{name}={value}" for name, value in given.items() if value is not None]
    words += ["--ascii"] if arguments.ascii else []
    words += [
        f"--{n.replace('_', '-')}" for n in ("no_color", "no_cache", "resume") if vars(arguments)[n]
    ]
    return [*words, "--", *names]
