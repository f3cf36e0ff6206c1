"""A capture on a plain terminal: narration on stderr, questions on the terminal, results on stdout.

Shared by the verbs ``capture`` and ``captures``; what happens is decided in ``nsys_tui.capture``.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from nsys_tui.capture.quoting import printable
from nsys_tui.errors import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from nsys_tui.capture.capture import Capture
    from nsys_tui.capture.events import Event, Listener
    from nsys_tui.capture.record import Record
    from nsys_tui.capture.transport.askpass import Prompt, PromptHandler


class Narrator:
    """Tells events as lines on stderr; progress rides in one line when that is a terminal."""

    def __init__(self, told: Collection[str] = ()) -> None:
        self._told = told
        self._tty = sys.stderr.isatty()
        self._last = ""
        self._riding = False

    def __call__(self, event: Event) -> None:
        """Prints one event."""
        from nsys_tui.capture import events

        match event:
            case events.StateChanged(state):
                self._state(event.line(), str(state))
            case events.LogChanged(updates):
                for update in updates:
                    self._log(update.text, update.replaces)
            case events.Progress():
                self._ride(event.line())
            case events.Checked(checks):
                for check in checks:  # errors are what the capture fails with
                    if check.severity not in ("ok", "error") and check.text not in self._told:
                        self._line(f"{check.severity}: {check.name}: {check.text}")
            case events.Remark() | events.Reconnecting():
                self._line(event.line())
            case events.StopStuck(waited_s):
                self._line(
                    f"still running {waited_s:.0f} s after INT and TERM; "
                    "`nsys-tui captures stop ID --kill` ends it and loses the report"
                )

    def _state(self, line: str, state: str) -> None:
        if self._tty and self._last.startswith(state) and line != self._last:
            self._ride(line)
        elif line.partition(":")[0] != self._last.partition(":")[0] or not self._last:
            self._line(line)
        self._last = line

    def _log(self, text: str, replaces: bool) -> None:
        if not replaces:
            self._line(f"| {text}")
        elif self._tty:
            self._ride(f"| {text}")

    def _ride(self, line: str) -> None:
        if self._tty:
            print(f"\r\x1b[K{printable(line)}", end="", file=sys.stderr, flush=True)
            self._riding = True

    def _line(self, line: str) -> None:
        if self._riding:
            print(file=sys.stderr)
            self._riding = False
        print(printable(line, 10_000), file=sys.stderr, flush=True)


def json_events(event: Event) -> None:
    """Prints one event as a line of JSON on stdout."""
    plain = {"event": type(event).__name__, **asdict(event)}
    print(json.dumps(plain, default=str), flush=True)


def listener(arguments: Any) -> Listener:
    """The listener that the flags ask for."""
    return json_events if arguments.json else Narrator(getattr(arguments, "told", ()))


def prompt_handler(arguments: Any) -> PromptHandler | None:
    """Asks on the terminal; ``None`` without one or with ``--batch``."""
    if arguments.batch or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return ask_on_terminal


async def ask_on_terminal(prompt: Prompt) -> str | None:
    """Shows one question of ssh's on the terminal and reads the answer."""
    return await asyncio.to_thread(_ask_here, prompt)


def _ask_here(prompt: Prompt) -> str | None:
    import getpass

    from nsys_tui.capture.transport.askpass import PromptKind

    print(f"\n[{prompt.target}] {prompt.text}", file=sys.stderr)
    try:
        if prompt.kind is PromptKind.NOTICE:
            return ""
        if prompt.masked:
            return getpass.getpass("answer: ")
        print("answer (yes or no): ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip() or "no"
    except (EOFError, KeyboardInterrupt):
        return None


@dataclass(frozen=True)
class Manner:
    """How to drive a capture.

    Attributes:
        anyway: start beside another capture on the target; queue: wait for that one.
        detach: leave as soon as the job has started.
        stops: Ctrl-C asks the job to end and keeps what it collected, a second one leaves it
            running; otherwise the first one leaves it running.
    """

    anyway: bool = False
    queue: bool = False
    detach: bool = False
    stops: bool = True


def drive(make: Callable[[], Capture], manner: Manner) -> Record:
    """Runs a capture to its end, or as far as the manner says."""
    return asyncio.run(_drive(make, manner))


async def _drive(make: Callable[[], Capture], manner: Manner) -> Record:
    capture = make()
    task = asyncio.create_task(capture.run(anyway=manner.anyway, wait=manner.queue))
    loop = asyncio.get_running_loop()
    interrupted = _Interrupts(capture, task, stops=manner.stops)
    loop.add_signal_handler(signal.SIGINT, interrupted)
    loop.add_signal_handler(signal.SIGTERM, interrupted.leave)
    loop.add_signal_handler(signal.SIGHUP, interrupted.leave)
    watcher = asyncio.create_task(_leave_when_started(capture, task)) if manner.detach else None
    try:
        return await task
    except asyncio.CancelledError:
        return capture.record
    finally:
        if watcher is not None:
            watcher.cancel()


class _Interrupts:
    """What Ctrl-C means: first stop and keep, then leave."""

    def __init__(self, capture: Capture, task: asyncio.Task[Record], *, stops: bool) -> None:
        self._capture = capture
        self._task = task
        self._count = 0 if stops else 1
        self._stopping: asyncio.Task[None] | None = None

    def __call__(self) -> None:
        self._count += 1
        if self._count > 1 or not self._capture.record.state.started:
            self.leave()
            return
        said = "stopping, keeping what was collected; Ctrl-C again leaves it running"
        if not self._capture.record.state.at_work:
            said = "it has ended, and its reports come home; Ctrl-C again leaves them there"
        print(f"\n{said}", file=sys.stderr)
        self._stopping = asyncio.create_task(self._capture.stop(keep=True))

    def leave(self) -> None:
        """Ends this process's part; the job goes on."""
        self._task.cancel()


async def _leave_when_started(capture: Capture, task: asyncio.Task[Record]) -> None:
    from nsys_tui.capture.record import State

    waiting = (State.PREPARED, State.CONNECTING, State.CHECKING, State.SUBMITTING)
    while capture.record.state in waiting:  # noqa: ASYNC110 - a record tells no event
        await asyncio.sleep(0.05)
    task.cancel()


def finish(record: Record, arguments: Any) -> int:
    """Prints the result of a capture on stdout and returns the exit status."""
    if not record.state.over:
        now = "it was asked to stop" if record.stop else record.state.meanwhile
        print(f"left: {now}; follow it with: nsys-tui captures attach {record.id}", file=sys.stderr)
        if not arguments.json:
            print(record.id)
        return 0 if getattr(arguments, "detach", False) else INTERRUPTED
    home = [report.local for report in record.reports if report.local]
    if not arguments.json:
        for path in home:
            print(printable(path, 10_000) if sys.stdout.isatty() else path)
    if record.program_exit:
        exited = f"report complete; the program exited {record.program_exit}"
        print(exited if home else "no report", file=sys.stderr)  # or nsys itself was killed
    if getattr(arguments, "propagate", False) and record.program_exit is not None:
        return record.program_exit
    if home and record.failure is None:
        return 0
    return record.failure.exit_code if record.failure is not None else INTERRUPTED
