"""Questions of ssh (host keys, passwords, codes) brought to whoever watches the capture.

ssh runs a helper instead of asking on a terminal; the helper talks to this server over a socket in
a private folder, with a token. Answers live in memory until they are sent and are never kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import os
import re
import secrets
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from importlib.resources import files
from pathlib import Path
from typing import Final

from nsys_tui.capture import quoting

_QUESTION_LIMIT: Final = 16_384


class PromptKind(Enum):
    """What ssh wants to know."""

    HOST_KEY = "host key"
    PASSWORD = "password"
    PASSPHRASE = "passphrase"
    CODE = "verification code"
    CONFIRM = "confirmation"
    NOTICE = "notice"
    QUESTION = "question"


@dataclass(frozen=True)
class Prompt:
    """One question.

    Attributes:
        kind: by its text, since ssh's own hint is mostly empty.
        text: ssh's words, with control characters escaped.
        target: the target whose connection asks; the text names the host that asks.
    """

    kind: PromptKind
    text: str
    target: str

    @property
    def masked(self) -> bool:
        """Whether the answer must not be shown while it is typed."""
        return self.kind not in (PromptKind.HOST_KEY, PromptKind.CONFIRM, PromptKind.NOTICE)

    @property
    def fingerprint(self) -> str:
        """The fingerprint in a host key question; empty if there is none."""
        match = re.search(r"(SHA256:[A-Za-z0-9+/=]+|MD5:[0-9a-f:]+)", self.text)
        return match[1] if match else ""


PromptHandler = Callable[[Prompt], Awaitable[str | None]]
"""Answers a question; ``None`` cancels. For a host key only ``yes`` accepts."""

_KINDS: Final = (
    (re.compile(r"continue connecting|yes/no", re.IGNORECASE), PromptKind.HOST_KEY),
    (re.compile(r"passphrase", re.IGNORECASE), PromptKind.PASSPHRASE),
    (re.compile(r"verification|one-time|\botp\b|\bcode\b|token|\bpin\b", re.I), PromptKind.CODE),
    (re.compile(r"password", re.IGNORECASE), PromptKind.PASSWORD),
)


def classify(text: str, hint: str) -> PromptKind:
    """The kind of a question; an unknown one is a masked question."""
    if hint == "none":
        return PromptKind.NOTICE
    if hint == "confirm":
        return PromptKind.CONFIRM
    return next((kind for pattern, kind in _KINDS if pattern.search(text)), PromptKind.QUESTION)


class AskpassServer:
    """Listens for the helper in one private folder."""

    def __init__(self, folder: Path, target: str, handler: PromptHandler) -> None:
        self._folder = folder
        self._target = target
        self._handler = handler
        self._token = secrets.token_hex(16)
        self._one_at_a_time = asyncio.Lock()
        self._server: asyncio.Server | None = None
        self.asked: list[PromptKind] = []
        """Kinds of the questions that came, for messages about a refusal."""

    async def start(self) -> dict[str, str]:
        """Starts to listen; returns the environment that makes ssh use the helper."""
        socket = self._folder / "ask"
        helper = self._folder / "askpass"
        program = files("nsys_tui.capture.transport").joinpath("askpass_helper.py")
        words = quoting.words([sys.executable, "-I", "-S", str(program)])
        helper.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        helper.chmod(0o700)
        self._server = await asyncio.start_unix_server(self._serve, socket)
        return {
            "SSH_ASKPASS": str(helper),
            "SSH_ASKPASS_REQUIRE": "force",
            "DISPLAY": os.environ.get("DISPLAY", ":0"),  # ssh before 8.4 asks for one
            "NSYS_TUI_ASKPASS_SOCKET": str(socket),
            "NSYS_TUI_ASKPASS_TOKEN": self._token,
        }

    async def close(self) -> None:
        """Stops to listen; a question that is open is cancelled."""
        if self._server is not None:
            self._server.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answer = await self._answer(await reader.readline())
            writer.write(json.dumps({} if answer is None else {"answer": answer}).encode() + b"\n")
            await writer.drain()
        except (OSError, ValueError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> str | None:
        question = json.loads(line[:_QUESTION_LIMIT])
        if not hmac.compare_digest(str(question.get("token", "")), self._token):
            return None
        text = str(question.get("prompt", ""))
        kind = classify(text, str(question.get("hint", "")))
        shown = "\n".join(quoting.printable(part) for part in text.splitlines())
        async with self._one_at_a_time:
            self.asked.append(kind)
            return await self._handler(Prompt(kind, shown, self._target))
