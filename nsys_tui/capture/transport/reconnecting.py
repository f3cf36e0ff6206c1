"""The line to one target: how it is connected when first needed, and again whenever it was cut.

Two manners: before a job runs, a failure is the user's to see at once; afterwards the job goes on
without us, so we try again for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

from nsys_tui.capture.failures import CaptureError, ConnectionLostError, LostError, UnreachableError
from nsys_tui.capture.launchers import Target
from nsys_tui.capture.quoting import printable
from nsys_tui.capture.supervisor import Answer, request
from nsys_tui.capture.transport.channel import Channel, Connector, Stream, inner, local_channel

_GONE: Final = re.compile(
    r"no such container|no container with name|is not running|container state improper"
    r"|pods? \S+ not found|container not found",
    re.IGNORECASE,
)
BACKOFF_S: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
Retry = Callable[[int, float, str], None]


class LocalConnector:
    """This machine, or a container or pod reached from it."""

    def __init__(self, target: Target) -> None:
        self._target = target

    async def connect(self) -> Channel:
        """See :class:`~nsys_tui.capture.transport.channel.Connector`."""
        argv = self._target.launcher.shell_argv(self._target)
        return Channel(argv, standing=True) if argv else local_channel()

    def explain(self, error: ConnectionLostError) -> CaptureError:
        """See :class:`~nsys_tui.capture.transport.channel.Connector`."""
        return explain_container(self._target, error)

    async def close(self) -> None:
        """See :class:`~nsys_tui.capture.transport.channel.Connector`."""


def explain_container(target: Target, error: ConnectionLostError) -> CaptureError:
    """Why a container, a pod or a shell did not answer."""
    said = [printable(line) for line in error.stderr.strip().splitlines()]
    last_words = said[-1] if said else error.message or error.title
    if _GONE.search(error.stderr):
        return LostError(
            f"{target.describe()} is gone",
            last_words,
            "what lay in it is gone too, unless it was on a volume; start it and capture again",
        )
    return UnreachableError(
        f"{target.describe()} does not answer",
        last_words,
        "check that it runs and that the name is right",
    )


def through(outer: Channel, target: Target) -> Channel:
    """The channel one step further: into the target's container, if it has one."""
    argv = target.launcher.shell_argv(target)
    if argv:
        outer.wrap = inner(argv, outer.wrap)
    return outer


class Link:
    """Asks and follows over a connector, and keeps at it once ``patient`` is set."""

    def __init__(self, connector: Connector, on_retry: Retry) -> None:
        self.connector = connector
        self.patient = False
        self._on_retry = on_retry
        self._channel: Channel | None = None
        self._attempt = 0

    async def channel(self) -> Channel:
        """The present channel, or a new one; when patient, after as many tries as it takes.

        Raises:
            CaptureError: no connection, and not patient; or a refusal that no new try can mend.
        """
        while self._channel is None:
            try:
                self._channel = await self.connector.connect()
            except UnreachableError as error:
                await self.lost(error)
        return self._channel

    def expect_files(self) -> None:
        """Logs in for the files that are to come while something else goes on."""
        if self._channel is not None:
            self._channel.expect_files()

    async def ask(
        self, verb: str, values: Mapping[str, str], timeout_s: float = 60
    ) -> list[Answer]:
        """Asks one verb; when patient, again and again until the answer is whole.

        Raises:
            CaptureError: no answer, and not patient; or a refusal that trying again cannot mend.
        """
        while True:
            try:
                channel = await self.channel()
                answers = await channel.ask(request(verb, **values), timeout_s)
            except ConnectionLostError as error:
                await self.lost(error)
            else:
                self._attempt = 0
                return answers

    @contextlib.asynccontextmanager
    async def open(self, verb: str, values: Mapping[str, str]) -> AsyncIterator[Stream]:
        """Opens one verb whose answers come over time; never tries again by itself."""
        channel = await self.channel()
        async with channel.open(request(verb, **values)) as stream:
            yield stream

    def answered(self) -> None:
        """Notes that the far side answers, so that the next wait is short again."""
        self._attempt = 0

    async def lost(self, error: ConnectionLostError | UnreachableError) -> None:
        """Waits before the next try, or raises in the words of the target."""
        await self._drop_channel()
        told = self.connector.explain(error) if isinstance(error, ConnectionLostError) else error
        if not self.patient or not isinstance(told, UnreachableError):
            raise told from error
        wait_s = BACKOFF_S[min(self._attempt, len(BACKOFF_S) - 1)]
        self._attempt += 1
        self._on_retry(self._attempt, wait_s, told.message or told.title)
        await asyncio.sleep(wait_s)

    async def close(self) -> None:
        """Gives the connection back."""
        await self._drop_channel()
        await self.connector.close()

    async def _drop_channel(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()
