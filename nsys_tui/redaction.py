"""Secrets: how they are told, and texts without them, for what leaves the machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

HIDDEN: Final = "[redacted]"
_SECRET_NAME: Final = re.compile(r"TOKEN|SECRET|PASSW|KEY|CREDENTIAL", re.IGNORECASE)
_KNOWN_FORMS: Final = (
    r"hf_\w{20,}|sk-[\w-]{20,}|[sr]k_live_\w{16,}|gh[posur]_\w{30,}|github_pat_\w{20,}"
    r"|gl[a-z]{2,5}-[\w-]{16,}|nvapi-[\w-]{20,}|npm_\w{30,}|pypi-[\w-]{30,}|dckr_pat_[\w-]{20,}"
    r"|AIza[\w-]{30,}|A[KS]IA[0-9A-Z]{16}|xox[abeprs]-[\w-]{10,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"
)
"""Tokens that their own form tells."""
_TOLD_BY_NAME: Final = (
    r"(?i:(?:api|access|auth|account|private)[-_]?key|token(?!iz|s(?:\b|_))|secret"
    r"|passw(?:or)?d|passphrase|credentials?)[\w-]{0,200}+"
)
"""The end of a name from the word on that tells it; bounded, so that time stays linear."""
_FLAG: Final = re.compile(rf"-{{1,2}}[\w-]{{0,40}}?{_TOLD_BY_NAME}")
_QUOTE: Final = r"\\*[\"']"
_ASSIGNED: Final = (
    rf"(?P<name>{_TOLD_BY_NAME}(?:{_QUOTE})?\s?[=:]\s?(?P<quote>{_QUOTE})?"
    rf"|(?<!-){_FLAG.pattern}\s+(?!-))"
    rf"(?(quote)(?:(?!(?P=quote))[^\n]){{6,}}|[^\s'\",;]{{6,}})"
)
_PRIVATE_KEY: Final = (
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [^-]*-----|\Z)"
)
_IN_ADDRESS: Final = (
    r"(?P<name>\b[A-Za-z][A-Za-z0-9+.-]{0,30}+://)[^\s/@]{0,400}:[^\s/@]{1,400}(?=@)"
)
_RULES: Final = tuple(
    (words, re.compile(pattern), rf"\g<name>{HIDDEN}" if "<name>" in pattern else HIDDEN)
    for words, pattern in {
        ("private key",): _PRIVATE_KEY,
        ("",): rf"(?<![A-Za-z0-9])(?:{_KNOWN_FORMS})",
        ("://",): _IN_ADDRESS,
        ("bearer", "basic"): r"(?P<name>\b(?:Bearer|Basic)\s+)[\w.~+/=-]{12,}",
        ("sig",): r"(?P<name>[?&](?i:sig|X-Amz-Signature)=)[^&\s]{16,}",
        ("key", "token", "secret", "passw", "passphrase", "credential"): _ASSIGNED,
    }.items()
)
"""Words, one of which stands in every text that the pattern beside them finds something in."""


def looks_secret(name: str) -> bool:
    """Whether an environment variable's name says that its value is a secret."""
    return bool(_SECRET_NAME.search(name))


def holds_secret(word: str) -> bool:
    """Whether an argument of a command line holds a token, a password or the like."""
    return redacted(word) != word


def redacted(text: str) -> str:
    """A text without the tokens and passwords that are told by their form or by a name before."""
    small = text.lower()
    for words, pattern, shown in _RULES:
        if any(word in small for word in words):
            text = pattern.sub(shown, text)
    return text


def redacted_lines(text: str) -> str:
    """The same line by line: what is cut off in one cannot take the next ones with it."""
    return "\n".join(map(redacted, text.split("\n")))


@lru_cache(maxsize=4096)
def may_hold_secret(numbered: str) -> bool:
    """Whether a text with its digits as ``#`` may have held one; many names share such a text."""
    return holds_secret(numbered.replace("#", "0" * 20))


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
