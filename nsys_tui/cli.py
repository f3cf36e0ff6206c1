"""The command line: one verb per file of ``commands/``; an argument that is no verb is a report.

Only the verb that runs is imported, so that ``--version`` and ``--help`` stay instant.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    contextmanager,
    nullcontext,
    redirect_stdout,
    suppress,
)
from typing import Any, Final

from nsys_tui import __version__, errors

VERBS: Final[dict[str, str]] = {
    "open": "open a report in the terminal (the default)",
    "overview": "what was captured, busy split per GPU, top kernels and ranges",
    "stats": "statistical reports under nsys's own names",
    "analyze": "expert rules and findings",
    "stalls": "why the GPU stood idle",
    "iterations": "time of each training step by phase, and outliers",
    "sql": "questions of your own, in SQL over the report",
    "stacks": "GPU time, CPU samples or backtraces as folded stacks",
    "compare": "two reports side by side, with a verdict",
    "baseline": "save, list and remove named baselines for compare",
    "fleet": "many reports: ranks, stragglers, heat map",
    "logs": "NCCL and trainer logs",
    "collectives": "NCCL collectives: which kernel, bandwidth, who comes late",
    "capture": "profile a program here, over SSH, in Slurm or in a container",
    "targets": "list, check and edit the places to capture on",
    "captures": "list, open, attach to, stop and remove captures",
    "report": "one HTML page or Markdown text about reports, to be sent to others",
    "export": "write a table or a window in another format",
    "demo": "write the demo report",
    "tour": "watch the app hunt the demo's planted stall",
    "explain": "what a term, column, cause, rule, report or exit code means",
    "serve": "the app in a browser on this machine",
    "mcp": "answer an agent's questions (Model Context Protocol over stdio)",
    "keys": "every key of the app, also as a card to print",
    "doctor": "what terminal, clipboard, nsys and cache were found",
    "completion": "print shell completion",
}
LISTED_ALONE: Final = (["captures"], ["targets"], ["baseline"])
"""Verbs with actions that list what there is where none is named."""


class _Parser(argparse.ArgumentParser):
    """Reports usage errors with the documented exit code instead of argparse's 2."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Times may be negative: argparse would take -1ms/5ms for an option.
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def error(self, message: str) -> None:  # type: ignore[override]
        raise errors.UsageError(message, hint=f"see {self.prog} --help")


def build_parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """The parser with one verb in full and the others by name only."""
    from nsys_tui.commands.examples import with_examples
    from nsys_tui.commands.options import Prose

    parser = _Parser(
        prog="nsys-tui",
        description="Read, explain and repeat NVIDIA Nsight Systems profiles in the terminal.",
        epilog="nsys-tui REPORT opens a report; nsys-tui VERB --help explains a verb.",
    )
    parser.add_argument("--version", action="version", version=f"nsys-tui {__version__}")
    subparsers = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=_Parser)
    for verb, text in VERBS.items():
        if verb == chosen:
            module = importlib.import_module(f"nsys_tui.commands.{verb}")
            epilog = getattr(module, "EPILOG", None)
            verb_parser = subparsers.add_parser(
                verb, description=module.DESCRIPTION, epilog=epilog, formatter_class=Prose
            )
            verb_parser.set_defaults(run=module.run)
            module.add_arguments(verb_parser)
            verb_parser.epilog = with_examples(verb, verb_parser.epilog)
        else:
            subparsers.add_parser(verb, help=text, add_help=False)
    return parser


class _Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, so that whatever tidies up after Ctrl-C tidies up after them too."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit status (definitions in ``errors``)."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not os.environ.get("NSYS_TUI_DEBUG"):
        # numpy's word on absurd times; standard error is for what a user can act on.
        warnings.simplefilter("ignore", RuntimeWarning)
    _prepare_streams()
    try:
        if "_ARGCOMPLETE" in os.environ:
            line = os.environ.get("COMP_LINE", "")
            _complete(line, int(os.environ.get("COMP_POINT") or len(line)))
        with _screened(), _ending_like_an_interrupt():
            status = _run(words)
        sys.stdout.flush()
        return status
    except errors.NsysTuiError as error:
        _tell(f"nsys-tui: {error}")
        return error.exit_code
    except _Terminated as error:
        return error.exit_code
    except KeyboardInterrupt:
        _tell("nsys-tui: interrupted")
        return errors.CancelledError.exit_code
    except BrokenPipeError:
        # The reader of our output left (| head -1): not an error, and nothing more may be written.
        return errors.OK
    except OSError as error:
        if os.environ.get("NSYS_TUI_DEBUG"):
            raise
        refused = f"cannot use {error.filename}" if error.filename else "cannot write the output"
        _tell(f"nsys-tui: {refused}: {error.strerror or error}")
        return errors.UsageError.exit_code
    except Exception as error:
        if os.environ.get("NSYS_TUI_DEBUG"):
            raise
        import logging

        logging.getLogger(__name__).debug("unexpected fault", exc_info=error)
        kind = type(error).__name__
        _tell(f"nsys-tui: unexpected fault: {kind}: {error}")
        _tell("set NSYS_TUI_DEBUG=1 to see where, and please report it")
        return errors.UNEXPECTED
    finally:
        _settle_output()


def _prepare_streams() -> None:
    """Makes standard streams that were closed (``>&-``) lead nowhere, and none refuse a letter.

    Their numbers are taken as well: a report opened as number 1 would be printed into.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR if number else os.O_RDONLY)
            os.set_inheritable(descriptor, True)
            setattr(sys, name, open(descriptor, "w" if number else "r"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _settle_output() -> None:
    """Writes what is left of the output; where that fails, Python must not fail over it again."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _ending_like_an_interrupt() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP end this process, not a child of it, as Ctrl-C does."""
    owner = os.getpid()

    def ended(number: int, _: object) -> None:
        if os.getpid() == owner:
            raise _Terminated(number)
        os._exit(128 + number)

    handled = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is threading.main_thread():
        handled = [number for number in handled if signal.getsignal(number) is signal.SIG_DFL]
    else:
        handled = []
    for number in handled:
        signal.signal(number, ended)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


def _screened() -> AbstractContextManager[object]:
    """Standard output as verbs see it: on a terminal, without the escape sequences of names."""
    if not sys.stdout.isatty():
        return nullcontext()
    from nsys_tui.text.console import Console

    return redirect_stdout(Console(sys.stdout))


def _tell(text: str) -> None:
    from nsys_tui.commands.printing import say

    with suppress(OSError):  # where stderr is full too, the exit code has to do
        say(text)


def _complete(line: str, point: int) -> None:
    """Ends with what may come next on a command line, which a shell asks for."""
    from nsys_tui.commands.completion import complete, with_open

    line, point = with_open(line, point, VERBS)
    os.environ["COMP_LINE"], os.environ["COMP_POINT"] = line, str(point)
    words = line.split()[1:]
    verb = words[0] if words and words[0] in VERBS else ""
    complete(build_parser(verb or None), verb)


def _check_verb(word: str) -> None:
    """Tells a misspelt verb from a report.

    Raises:
        UsageError: there is no file of that name, and a verb is nearly called so, or it is a word.
    """
    if os.path.exists(word):
        return
    import difflib

    near = difflib.get_close_matches(word, VERBS, 1, 0.75)
    if near or word.isalpha():
        hint = f"did you mean nsys-tui {near[0]}?" if near else "nsys-tui --help lists the verbs"
        raise errors.UsageError(f"{word!r} is neither a verb nor a file", hint=hint)


def _run(words: list[str]) -> int:
    if words[:1] == ["help"] and not os.path.exists("help"):
        words = [*words[1:2], "--help"]
    if not words or words[0] not in (*VERBS, "-h", "--help", "--version"):
        if words:
            _check_verb(words[0])
        words = ["open", *words]
    if words in LISTED_ALONE:
        words = [*words, "list"]
    verb = words[0] if words and words[0] in VERBS else None
    if verb in ("stats", "analyze", "export"):
        from nsys_tui.commands.options import with_plain_flags

        words = with_plain_flags(words)
    parser = build_parser(verb)
    try:
        arguments, unknown = parser.parse_known_args(words)
    except SystemExit as done:  # --help and --version
        return int(done.code or 0)
    if unknown:
        program = f"nsys-tui {verb}" if verb else "nsys-tui"
        raise errors.UsageError(
            f"unrecognized arguments: {' '.join(unknown)}", hint=f"see {program} --help"
        )
    try:
        status: int = arguments.run(arguments)
    except errors.EmptyAnswerError:
        raise
    except errors.NoDataError as error:
        if getattr(arguments, "format", None) == "json":
            print(json.dumps({"no_data": error.title, "hint": error.hint or None}))
        raise
    return status
