"""What the capture tests share: a target on this machine with the stand-in nsys, and a recorder."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_tui.capture.capture import Capture
from nsys_tui.capture.events import Event, LogChanged, Progress, Remark, StateChanged
from nsys_tui.capture.launchers import Target
from nsys_tui.capture.plan import Plan, make_plan
from nsys_tui.capture.record import State, Store
from nsys_tui.capture.supervisor import shell_text
from nsys_tui.config import CaptureConfig, Config, TargetConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

FAKE_NSYS = Path(__file__).resolve().parent / "fake_nsys"


def stand_in(folder: Path) -> Path:
    """An ``nsys`` in a folder of its own that starts the stand-in with this very Python.

    A third of a second faster than ``/usr/bin/env python3`` where that is a version manager.
    """
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / "nsys"
    words = shlex.join([sys.executable, "-S", "-E", str(FAKE_NSYS / "nsys")])
    place.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    place.chmod(0o755)
    return place


def looking_often(name: str) -> str:
    """A shell program of ours that looks for a hanging nsys many times a second."""
    text = shell_text(name).replace("$nt_look -ge 45", "$nt_look -ge 3")
    return text.replace("sleep 5", "sleep 1")


@dataclass
class Recorder:
    """Keeps every event, and shows them in the forms that tests ask for."""

    events: list[Event] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    @property
    def states(self) -> list[State]:
        """States in order, without repeats."""
        found = [event.state for event in self.events if isinstance(event, StateChanged)]
        return [state for n, state in enumerate(found) if n == 0 or found[n - 1] is not state]

    @property
    def log(self) -> list[str]:
        """The log as a screen would show it at the end."""
        lines: list[str] = []
        for event in self.events:
            for update in event.updates if isinstance(event, LogChanged) else ():
                if update.replaces and lines:
                    lines.pop()
                lines.append(update.text)
        return lines

    def all(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def remarks(self) -> str:
        return "\n".join(event.text for event in self.all(Remark))

    @property
    def fetched(self) -> int:
        return max((event.done for event in self.all(Progress)), default=0)


@dataclass
class Place:
    """A target whose nsys is the stand-in, in a folder of the test."""

    folder: Path
    target: Target
    config: Config
    store: Store

    def fake(self, **variables: str) -> Place:
        """The same place with variables for the stand-in, such as ``FAULTS="import"``."""
        env = dict(self.target.settings.env) | {f"FAKE_NSYS_{k}": v for k, v in variables.items()}
        return self.setting(env=env)

    def setting(self, **changes: Any) -> Place:
        target = Target(self.target.name, replace(self.target.settings, **changes))
        return replace(self, target=target)

    def plan(self, *program: str, **how: Any) -> Plan:
        return make_plan(self.target, program, config=self.config, **how)

    def capture(self, *program: str, recorder: Recorder | None = None, **how: Any) -> Capture:
        plan = self.plan(*program, **how)
        return Capture.create(plan, self.config, on_event=recorder, store=self.store)

    def attach(self, capture: str, recorder: Recorder | None = None) -> Capture:
        return Capture.attach(capture, self.config, on_event=recorder, store=self.store)

    @property
    def cwd(self) -> Path:
        return self.folder / "cwd"

    @property
    def jobs(self) -> Path:
        return self.folder / "jobs"

    @property
    def dump(self) -> Path:
        return self.folder / "dump"

    @property
    def running(self) -> bool:
        """Whether the stand-in has started its program."""
        return self.dump.with_suffix(".started").exists()

    def seen(self) -> list[list[str]]:
        """What each call of the stand-in saw: argv, an empty field, ``cwd``, the folder, …"""
        records = self.dump.read_bytes().split(b"\0\n")[:-1]
        return [[os.fsdecode(part) for part in record.split(b"\0")] for record in records]


def make_place(folder: Path, *, ssh: Sequence[str] = ("ssh",), **settings: Any) -> Place:
    """A place in a fresh folder; ``settings`` are those of the target."""
    for name in ("cwd", "jobs", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    env = {
        "FAKE_NSYS_SECONDS": "0.05",
        "FAKE_NSYS_DUMP": str(folder / "dump"),
        "TMPDIR": str(folder / "tmp"),
    }
    chosen = {
        "cwd": str(folder / "cwd"),
        "jobs_dir": str(folder / "jobs"),
        "nsys": str(stand_in(folder / "bin")),
        "env": env,
        "export": "none",
        **settings,
    }
    config = Config(capture=CaptureConfig(ssh=tuple(ssh), grace=3 * 10**9))
    target = Target("here", TargetConfig(**chosen))
    return Place(folder, target, config, Store(folder / "captures"))
