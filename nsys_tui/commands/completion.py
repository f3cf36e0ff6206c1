"""``nsys-tui completion SHELL``: what makes a shell ask this program itself for what comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.errors import OK

if TYPE_CHECKING:
    import argparse

DESCRIPTION = 'Prints completion code: eval "$(nsys-tui completion bash)".'
SUFFIXES = ("sqlite", "nsys-rep", "qdrep")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(arguments: argparse.Namespace) -> int:
    """Prints the code for one shell."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["nsys-tui"], shell=arguments.shell))
    return OK


def complete(parser: argparse.ArgumentParser) -> None:
    """Answers a shell that asks for completions, and ends; verbs and reports may come first."""
    from argcomplete import autocomplete
    from argcomplete.completers import FilesCompleter

    reports = FilesCompleter(SUFFIXES)
    first = next(action for action in parser._actions if not action.option_strings)
    first.completer = reports  # type: ignore[attr-defined]
    autocomplete(parser, always_complete_options=False, default_completer=reports)
