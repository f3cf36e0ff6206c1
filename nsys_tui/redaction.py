"""Secrets: how they are told, and texts without them, for what leaves the machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

HIDDEN: Final = "[redacted]"
_SECRET_NAME: Final = re.compile(r"TOKEN|SECRET|PASSW|KEY|CREDENTIAL", re.IGNORECASE)
_KNOWN_FORMS: Final = (
    r"hf_\w{20,}|sk-[\w-]{20,}|gh[posur]_\w{30,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|nvapi-[\w-]{20,}|npm_\w{30,}|AIza[\w-]{30,}|A[KS]IA[0-9A-Z]{16}|xox[abps]-[\w-]{10,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"
)
"""Tokens that their own form tells."""
_TOLD_BY_NAME: Final = (
    r"(?i:[\w-]*(?:(?:api|access|auth|account|private)[-_]?key|token(?!iz|s\b)|secret|passw(?:or)?d"
    r"|credentials?)[\w-]*)"
)
_FLAG: Final = re.compile(rf"-{{1,2}}{_TOLD_BY_NAME}")
_ASSIGNED: Final = re.compile(
    rf"(?P<name>{_TOLD_BY_NAME}\s?[=:]\s?|{_FLAG.pattern}\s+(?!-))(?P<value>[^\s'\",;]{{6,}})"
)
_WORD: Final = re.compile(rf"\b(?:{_KNOWN_FORMS})")
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [^-]*-----|\Z)", re.S
)
_IN_ADDRESS: Final = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)[^\s/@]*:[^\s/@]+@", re.I)
_BEARER: Final = re.compile(r"(?P<name>\b(?:Bearer|Basic)\s+)[\w.~+/=-]{12,}")


def looks_secret(name: str) -> bool:
    """Whether an environment variable's name says that its value is a secret."""
    return bool(_SECRET_NAME.search(name))


def holds_secret(word: str) -> bool:
    """Whether an argument of a command line holds a token, a password or the like."""
    return redacted(word) != word


def redacted(text: str) -> str:
    """A text without the tokens and passwords that are told by their form or by a name before."""
    text = _WORD.sub(HIDDEN, _PRIVATE_KEY.sub(HIDDEN, text))
    text = _IN_ADDRESS.sub(rf"\g<scheme>{HIDDEN}@", text)
    text = _BEARER.sub(rf"\g<name>{HIDDEN}", text)
    return _ASSIGNED.sub(rf"\g<name>{HIDDEN}", text)


def redacted_command(words: Sequence[str]) -> list[str]:
    """A command line without secrets: also the word after ``--token``, and ``NAME_KEY=value``."""
    shown: list[str] = []
    hides_next = False
    for word in words:
        name, equals, _ = word.partition("=")
        if hides_next and not word.startswith("-"):
            shown.append(HIDDEN)
        elif equals and name.isidentifier() and looks_secret(name):
            shown.append(f"{name}={HIDDEN}")
        else:
            shown.append(redacted(word))
        hides_next = bool(_FLAG.fullmatch(word))
    return shown
