"""What nsys itself said about the capture: each message once, those that matter here first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsys_tui.model.target import pid_of
from nsys_tui.units import format_count

if TYPE_CHECKING:
    from nsys_tui.model.report import Report
    from nsys_tui.model.target import Diagnostic

_SEVERITIES: Final = ("error", "warning")


@dataclass(frozen=True)
class Message:
    """One text, however often it was said."""

    first: Diagnostic
    count: int
    elsewhere: bool
    """Whether only processes without GPU work said it, though others have some."""

    @property
    def serious(self) -> bool:
        """Whether it is an error or a warning."""
        return self.first.severity.lower() in _SEVERITIES

    @property
    def text(self) -> str:
        """What was said, how often, and whether it is about the work that is looked at."""
        times = f" ({format_count(self.count)} times)" if self.count > 1 else ""
        where = " (in a process without GPU work)" if self.elsewhere else ""
        return " ".join(self.first.text.split()) + times + where


def messages(report: Report) -> list[Message]:
    """All messages: errors, then warnings; about the GPU work first, CUDA before the rest."""
    said: dict[tuple[str, str], list[Diagnostic]] = {}
    for diagnostic in report.metadata.diagnostics:
        said.setdefault((diagnostic.severity, diagnostic.text), []).append(diagnostic)
    working = {pid_of(process) for process in report.operations.processes.tolist()}
    found = [
        Message(same[0], len(same), bool(working) and not _concerns(same, working))
        for same in said.values()
    ]
    return sorted(found, key=_order)


def _concerns(same: list[Diagnostic], working: set[int]) -> bool:
    """Whether a process with GPU work said it, or the profiler, which has no process of its own."""
    pids = {0 if one.process < 0 else pid_of(one.process) for one in same}
    return 0 in pids or not pids.isdisjoint(working)


def _order(message: Message) -> tuple[int, bool, bool]:
    severity = message.first.severity.lower()
    rank = _SEVERITIES.index(severity) if message.serious else len(_SEVERITIES)
    return rank, message.elsewhere, "cuda" not in message.first.text.lower()
