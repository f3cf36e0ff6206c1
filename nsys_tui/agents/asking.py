"""Asks the verbs of this program: a tool's answer is what the command line prints as JSON.

Each question is a process of its own, so that one can be cancelled, takes no longer than it may,
and cannot end the server. Nothing goes through a shell, and values never stand alone as words.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.errors import GATE_HIT, INCONCLUSIVE, NOT_COMPARABLE, OK, NsysTuiError

if TYPE_CHECKING:
    from collections.abc import Sequence

PATIENCE: Final = 180.0
"""Seconds that a question may take."""
MOST_BYTES: Final = 64_000_000
"""Output of a question that is read; more would not fit in memory many times over."""
AT_ONCE: Final = 2
_ANSWERED: Final = (OK, GATE_HIT, NOT_COMPARABLE, INCONCLUSIVE)


class QuestionError(NsysTuiError):
    """A verb had no answer; says what it said."""


class Verbs:
    """Runs verbs, a few at a time."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(AT_ONCE)

    async def json(self, *words: str) -> Any:
        """The JSON that a verb prints.

        Raises:
            QuestionError: it failed, took too long or printed too much.
        """
        return json.loads(await self.text(*words, "--format=json"))

    async def text(self, *words: str) -> str:
        """What a verb prints.

        Raises:
            QuestionError: it failed, took too long or printed too much.
        """
        async with self._places:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "nsys_tui", *words),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                async with asyncio.timeout(PATIENCE):
                    out, told = await _output(process)
            except TimeoutError as error:
                raise QuestionError(
                    f"no answer within {PATIENCE:.0f} s", hint="ask for a window or a device"
                ) from error
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        if process.returncode not in _ANSWERED:
            said = told.decode("utf-8", "replace").strip().removeprefix("nsys-tui: ")
            raise QuestionError(said, f"exit code {process.returncode}")
        return out.decode("utf-8", "replace")


async def _output(process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    assert process.stdout is not None
    assert process.stderr is not None
    out, told = await asyncio.gather(_read(process.stdout), _read(process.stderr))
    await process.wait()
    return out, told


async def _read(stream: asyncio.StreamReader) -> bytes:
    parts, size = [], 0
    while part := await stream.read(1 << 16):
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise QuestionError("the answer is too large", hint="ask for a window or a device")
    return b"".join(parts)


def options(**given: Any) -> Sequence[str]:
    """Options as single words, such as ``--window=1s/2s``; those without a value are left out."""
    return [
        f"--{name.replace('_', '-')}={one}"
        for name, value in given.items()
        for one in (value if isinstance(value, list) else [value])
        if one not in (None, "")
    ]
