"""What a running capture tells, as a log and one line of state."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rich.cells import chop_cells

from nsys_tui.capture import events
from nsys_tui.names import visible

if TYPE_CHECKING:
    from nsys_tui.ui.widgets.lines import Line

LOG_LINES: Final = 2000


@dataclass
class Live:
    """The log as it grows, and where the capture is.

    Attributes:
        state: state and detail, such as ``fetching a.nsys-rep: 43 %, 21.0 MB/s, 12.0 s left``.
        began: monotonic time of the start; ``None`` while nothing runs.
    """

    lines: list[str] = field(default_factory=list)
    state: str = "idle"
    began: float | None = None

    def start(self) -> None:
        """A capture begins."""
        self.lines, self.state, self.began = [], "starting", time.monotonic()

    def say(self, line: str) -> None:
        """Adds a line."""
        self.lines = [*self.lines, visible(line)][-LOG_LINES:]

    def heading(self) -> str:
        """The line of state with the time since the start."""
        if self.began is None:
            return self.state
        seconds = int(time.monotonic() - self.began)
        return f"{self.state}, {seconds // 60}:{seconds % 60:02d}"

    def shown(self, width: int) -> list[Line]:
        """The log for a pane; long lines go on below, as in a terminal."""
        return [[(part, 0)] for line in self.lines for part in chop_cells(line, width) or [""]]

    def take(self, event: events.Event) -> None:
        """Notes one event."""
        match event:
            case events.StateChanged(state, detail):
                self.state = f"{state}{': ' if detail else ''}{detail}"
            case events.LogChanged(updates):
                for update in updates:
                    if update.replaces and self.lines:
                        self.lines.pop()
                    self.lines.append(visible(update.text.expandtabs(4)))
                del self.lines[:-LOG_LINES]
            case events.Progress():
                self.state = event.line()
            case events.Checked(checks):
                for check in checks:
                    if check.severity != "ok":
                        self.say(f"{check.severity}: {check.name}: {check.text}")
            case events.Remark(severity, text, remedy):
                self.say(f"{severity}: {text}" + (f" ({remedy})" if remedy else ""))
            case events.Reconnecting(attempt, wait_s, reason):
                wait = f"try {attempt} in {wait_s:.0f} s"
                self.state = f"reconnecting ({wait}; the job goes on): {visible(reason)}"
            case events.Finished(record):
                self.state, self.began = str(record.state), None
