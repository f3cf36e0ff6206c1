"""``nsys-tui tour``: the app hunts the demo's planted stall by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.commands.open import add_opening, run_app
from nsys_tui.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from nsys_tui.ui.app import NsysTuiApp

DESCRIPTION = (
    "Opens the demo report and walks through it by itself, with a caption for every screen. Esc"
    " ends the tour and leaves you in the app, Space goes on at once, q leaves."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    add_opening(parser)


def run(arguments: argparse.Namespace) -> int:
    """Plays the tour.

    Raises:
        UsageError: there is no terminal to play it in.
    """
    from nsys_tui.commands.demo import cached_demo

    return run_app(arguments, [cached_demo()], _no_terminal, kind=_kind)


def _kind() -> type[NsysTuiApp]:
    from nsys_tui.ui.tour import TourApp

    return TourApp


def _no_terminal() -> int:
    raise UsageError(
        "the tour needs a terminal", hint="nsys-tui demo writes the report it is about"
    )
