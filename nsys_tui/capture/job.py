"""One capture in the making: its record, its line to the target, and whoever watches.

Every change of the record goes to disk before the next outward act; the steps themselves stand in
``submit``, ``follow``, ``find_reports`` and ``fetch``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

from nsys_tui.capture.events import Event, Listener, Reconnecting, Remark, StateChanged
from nsys_tui.capture.launchers import scheduler_functions
from nsys_tui.capture.output import ROOM
from nsys_tui.capture.plan import Plan
from nsys_tui.capture.preflight import TEMPORARY, Preflight
from nsys_tui.capture.record import Record, State, Store
from nsys_tui.capture.scripts import in_preamble
from nsys_tui.capture.supervisor import Answer
from nsys_tui.capture.transport.channel import Connector
from nsys_tui.capture.transport.reconnecting import Link
from nsys_tui.config import CaptureConfig


@dataclass(eq=False)
class Job:
    """What the steps of a capture share.

    Attributes:
        plan: what to run; with the values of its environment.
        listener: told everything that happens.
        preflight: what was found there, once it was made in this process.
        secrets: values that are handed over at the start and kept nowhere.
        growth: when the log last grew, by the monotonic clock.
        hangs: whether nsys seems to hang at present.
        nsys_here: the nsys of this machine that exports what comes home; ``auto`` = look for it.
    """

    record: Record
    plan: Plan
    store: Store
    connector: InitVar[Connector]
    settings: CaptureConfig
    listener: Listener | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)
    nsys_here: str = "auto"
    preflight: Preflight | None = None
    growth: float = field(default_factory=time.monotonic)
    hangs: bool = False

    def __post_init__(self, connector: Connector) -> None:
        self.link = Link(connector, self._retrying)

    def emit(self, event: Event) -> None:
        """Tells the watcher."""
        if self.listener is not None:
            self.listener(event)

    def update(self, **changes: Any) -> None:
        """Changes the record, on disk first."""
        self.record = self.store.save(replace(self.record, **changes))

    def reach(self, state: State, detail: str = "") -> None:
        """Goes to another state, on disk first; the same state only tells the detail."""
        if self.record.state is not state:
            self.record = self.store.save(self.record.reached(state))
        self.emit(StateChanged(state, detail))

    def remark(self, severity: str, text: str, remedy: str = "") -> None:
        """Keeps a remark in the record and tells it, once."""
        remark = Remark(severity, text, remedy)
        if remark.line() not in self.record.notes:
            self.record = self.store.save(self.record.noted(remark.line()))
            self.emit(remark)

    @property
    def again(self) -> str:
        """What to do once nsys broke off: if its temporary folder was full, take another first."""
        full = any(f"{TEMPORARY}: " in note for note in self.record.notes)
        return f"{ROOM}, and capture again" if full else "capture again"

    async def ask(self, verb: str, *, timeout_s: float = 60, **values: str) -> list[Answer]:
        """Asks the supervisor about this job."""
        return await self.link.ask(verb, self.values() | values, timeout_s)

    def values(self, job: str = "") -> dict[str, str]:
        """The values that every verb about this job needs.

        Args:
            job: id of another job of the same capture (its export).
        """
        settings = self.plan.target.settings
        scheduler = "" if job else self.plan.target.launcher.scheduler
        return {
            "J": job or self.record.id,
            "B": self.record.jobs_dir or self.plan.target.jobs_dir,
            "T": self.plan.target.name,
            "SCHEDULER": scheduler,
            "SCHEDULERS": scheduler_functions(),
            "PREAMBLE": in_preamble(self.plan) if scheduler else "",
            "CWD": self.record.cwd or self.plan.cwd,
            "LOGIN": "yes" if settings.preamble else "no",
            "LOG_LIMIT": str(self.settings.log_limit),
        }

    def _retrying(self, attempt: int, wait_s: float, reason: str) -> None:
        self.emit(Reconnecting(attempt, wait_s, reason, self.record.state.meanwhile))
