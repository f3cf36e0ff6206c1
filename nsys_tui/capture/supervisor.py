"""The near side of the supervisor: scripts to send, and answers to read.

``supervisor.sh`` is the far side. Every value travels as a quoted assignment on stdin, so the only
string that a remote shell ever gets as a command is the constant ``exec sh -s``.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from nsys_tui.capture import quoting
from nsys_tui.errors import UsageError

PROTOCOL: Final = "1"
PREFIX: Final = b"@@nt "
ID: Final = re.compile(r"\d{8}-\d{6}-[a-z0-9]{4,12}(-export\d*|-import)?")
_LOCK_NAME: Final = re.compile(r"[^A-Za-z0-9._-]")

VALUES: Final[Mapping[str, str]] = {
    "J": "", "B": "", "T": "local", "SCHEDULER": "", "SCHEDULERS": "",
    "CWD": "", "LOGIN": "no", "TAKEN": "", "FORCE": "no", "ANYWAY": "no",
    "RUN": "", "WRAP": "", "OWNER": "", "SECRETS": "",
    "FUNCTIONS": "", "BATCH": "", "BATCH_ARGS": "", "LOG_LIMIT": "64000000", "OFF": "0",
    "POLL": "25", "SIG": "", "ONLY": "", "ONCE": "", "PATHS": "", "FIND": "", "SUM": "no",
    "OUT_DIR": "", "OUT_NAME": "", "PREAMBLE": "",
}  # fmt: skip
"""What a script may be told, with what it takes otherwise; over there each has ``NT_`` in front."""


@cache
def shell_text(name: str) -> str:
    """One of the shell programs that lie beside this module."""
    return files("nsys_tui.capture").joinpath(name).read_text("utf-8")


def keeper() -> str:
    """The program that lies in the folder of a job and keeps it."""
    return shell_text("still.sh") + shell_text("wrap.sh")


@dataclass(frozen=True)
class Answer:
    """One line of an answer: its first word and the rest."""

    key: str
    value: str


@dataclass(frozen=True)
class Request:
    """A verb with its values, as one script; the nonce tells our answer from banners."""

    nonce: str
    script: str


def request(verb: str, **values: str) -> Request:
    """Builds the script for one verb.

    Args:
        verb: one of the verbs of ``supervisor.sh``.
        values: its values by the names that the shell program uses, see :data:`VALUES`.

    Raises:
        UsageError: a job id that is not ours, or a value with NUL.
    """
    unknown = set(values) - set(VALUES)
    if unknown:
        raise ValueError(f"the supervisor knows no {sorted(unknown)}")
    job = values.get("J", "")
    if job and not ID.fullmatch(job):
        raise UsageError(f"{job!r} is no id of a capture")
    nonce = secrets.token_hex(8)
    chosen = dict(VALUES) | values | {"NONCE": nonce, "MODE": verb}
    chosen["T"] = _LOCK_NAME.sub("_", chosen["T"]) or "local"
    named = {f"NT_{name}": value for name, value in chosen.items()}
    text = shell_text("still.sh") + shell_text("supervisor.sh")
    return Request(nonce, quoting.assignments(named) + text)


def parse_answer(line: bytes) -> Answer | None:
    """One line of output as an answer; ``None`` if it is none of ours."""
    if not line.startswith(PREFIX):
        return None
    text = line[len(PREFIX) :].rstrip(b"\n").decode("utf-8", "surrogateescape")
    key, _, value = text.partition(" ")
    return Answer(key, value)


def is_hello(line: bytes, nonce: str) -> bool:
    """Whether a line is the first of our answers, perhaps glued to a banner without line end."""
    return line.rstrip(b"\n").endswith(PREFIX + f"hello {PROTOCOL} {nonce}".encode())


def last(answers: list[Answer], key: str) -> str | None:
    """The value of the last answer with that key, or ``None``."""
    return next((answer.value for answer in reversed(answers) if answer.key == key), None)
