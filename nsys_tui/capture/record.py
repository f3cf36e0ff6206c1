"""What is remembered of a capture, on disk, before and after everything that is done for it.

One folder per capture under the user's state folder: ``record.json`` (0600, replaced as a whole),
``log`` (the bytes that were followed) and the fetched reports. Values of secrets are never here.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from nsys_tui.capture.failures import KeepError, LockedError
from nsys_tui.capture.supervisor import ID
from nsys_tui.errors import UsageError
from nsys_tui.paths import state_folder
from nsys_tui.plain_data import restored
from nsys_tui.writing import write_whole

VERSION: Final = 1


class State(StrEnum):
    """Where a capture is; the order is the order in which it passes through."""

    PREPARED = "prepared"
    CONNECTING = "connecting"
    CHECKING = "checking"
    SUBMITTING = "submitting"
    QUEUED = "queued"
    RUNNING = "running"
    IMPORTING = "importing"
    EXPORTING = "exporting"
    FETCHING = "fetching"
    VERIFYING = "verifying"
    DONE = "done"
    ELSEWHERE = "elsewhere"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"

    @property
    def over(self) -> bool:
        """Whether nothing more will happen by itself."""
        return self in _OVER

    @property
    def at_work(self) -> bool:
        """Whether the job waits or runs, so that there is something to stop."""
        return self in (State.SUBMITTING, State.QUEUED, State.RUNNING, State.IMPORTING)

    @property
    def meanwhile(self) -> str:
        """What becomes of it while nobody here looks after it."""
        if self.at_work:
            return "the job goes on"
        return "the export goes on" if self is State.EXPORTING else "what has arrived is kept"

    @property
    def started(self) -> bool:
        """Whether the program may be running over there, or has run."""
        return not self.over and self not in (State.PREPARED, State.CONNECTING, State.CHECKING)


_OVER: Final = (State.DONE, State.ELSEWHERE, State.FAILED, State.CANCELLED, State.LOST)


@dataclass(frozen=True)
class ReportFile:
    """One file that a capture made.

    Attributes:
        path: where nsys wrote it.
        size: bytes; mtime: seconds since the epoch, by that machine's clock.
        sha256: hash there (or ``cksum:…`` where the machine has nothing better); empty = unknown.
        export: an export of it over there; empty = none (yet).
        local: where it is on this machine; empty = not here (yet).
        sqlite: the export of it on this machine; empty = none.
        report_id: identity of the local file, as the reader computes it; sqlite_id: of its export.
    """

    path: str
    size: int
    mtime: int = 0
    sha256: str = ""
    export: str = ""
    local: str = ""
    sqlite: str = ""
    report_id: str = ""
    sqlite_id: str = ""


@dataclass(frozen=True)
class Failure:
    """Why a capture ended other than was wanted: in which state, why, and the next step."""

    where: str
    title: str
    message: str
    hint: str
    exit_code: int


@dataclass(frozen=True)
class Record:
    """Everything known about one capture; replaced, never changed.

    Attributes:
        plan: the plan as plain data.
        argv: the exact command as it was started.
        log_gap: bytes that the far side dropped because nobody fetched them in time.
        program_exit: the program's own exit status (128 + signal), ``None`` = not known.
        reports: results; raw: ``.qdstrm`` files lying over there.
        stop: ``keep``, ``discard`` or ``kill`` once the user asked for the end.
        signals: signals sent, with the time.
        kept: for a cancelled capture, ``kept``, ``discarded`` or ``killed``.
        times: state to the time (UTC) when it was first reached.
    """

    id: str
    plan: Mapping[str, Any]
    state: State = State.PREPARED
    argv: tuple[str, ...] = ()
    where: str = ""
    jobs_dir: str = ""
    job_dir: str = ""
    cwd: str = ""
    nsys_path: str = ""
    nsys_version: str = ""
    git_commit: str = ""
    git_dirty: bool = False
    pid: int = 0
    slurm_job: str = ""
    log_gap: int = 0
    program_exit: int | None = None
    reports: tuple[ReportFile, ...] = ()
    raw: tuple[ReportFile, ...] = ()
    stop: str = ""
    signals: tuple[str, ...] = ()
    kept: str = ""
    failure: Failure | None = None
    notes: tuple[str, ...] = ()
    times: Mapping[str, str] = field(default_factory=dict)
    opened: bool = False
    repeats: str = ""

    def reached(self, state: State) -> Record:
        """The record in another state, with the time when it got there."""
        return replace(self, state=state, times={**self.times, state.value: now()})

    def noted(self, text: str) -> Record:
        """The record with one more remark, unless it has it."""
        return self if text in self.notes else replace(self, notes=(*self.notes, text))

    @property
    def program(self) -> tuple[str, ...]:
        """The program and its arguments."""
        return tuple(self.plan.get("program", ()))

    @property
    def target_name(self) -> str:
        """The target's name when the capture was made."""
        return str(self.plan.get("target", {}).get("name", ""))

    @property
    def at_home(self) -> list[Path]:
        """What of the capture can be opened on this machine: the export where there is one."""
        paths = [Path(file.sqlite or file.local) for file in self.reports if file.local]
        return [path for path in paths if path.exists()]

    def to_json(self) -> dict[str, Any]:
        """The record as plain data."""
        return {"version": VERSION, **asdict(self)}


def now() -> str:
    """The present time as the records write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def new_id() -> str:
    """A fresh id: sortable by time to a millisecond, and random."""
    digits = "23456789abcdefghijkmnpqrstuvwxyz"
    moment = datetime.now(UTC)
    part = moment.microsecond * len(digits) ** 2 // 1_000_000
    fraction = digits[part // len(digits)] + digits[part % len(digits)]
    tail = "".join(secrets.choice(digits) for _ in range(4))
    return f"{moment:%Y%m%d-%H%M%S}-{fraction}{tail}"


class Store:
    """The folder of all captures of this user."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = state_folder() / "captures" if folder is None else folder

    def path(self, capture: str) -> Path:
        """The folder of one capture.

        Raises:
            UsageError: that is no id of a capture.
        """
        if not ID.fullmatch(capture):
            raise UsageError(f"{capture!r} is no id of a capture", hint="nsys-tui captures list")
        return self.folder / capture

    def log_path(self, capture: str) -> Path:
        """The followed log of a capture."""
        return self.path(capture) / "log"

    def save(self, record: Record) -> Record:
        """Writes a record so that a crash leaves the old one or the new one, never half of one.

        Raises:
            KeepError: it cannot be written; the old one is still there.
        """
        folder = self.path(record.id)
        text = json.dumps(record.to_json(), indent=1, ensure_ascii=True)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            write_whole(folder / "record.json", text)
        except OSError as error:
            raise KeepError(
                f"{folder}: cannot be written",
                error.strerror or str(error),
                "make room there; a job that was started goes on, and can be attached to",
            ) from error
        return record

    def load(self, capture: str) -> Record:
        """Reads one record; ``latest`` and unique parts of ids are understood.

        Raises:
            UsageError: there is none, several match, or it cannot be read.
        """
        capture = self._resolve(capture)
        path = self.path(capture) / "record.json"
        try:
            return restored(Record, json.loads(path.read_bytes()))
        except FileNotFoundError as error:
            raise UsageError(
                f"no capture is called {capture}", hint="nsys-tui captures list"
            ) from error
        except (OSError, TypeError, ValueError) as error:
            raise UsageError(f"{path}: cannot be read as a record", str(error)) from error

    def _resolve(self, capture: str) -> str:
        if ID.fullmatch(capture):
            return capture
        ids = self.ids()
        if capture == "latest" and ids:
            return ids[0]
        matching = [name for name in ids if capture and capture in name]
        if len(matching) == 1:
            return matching[0]
        what = "several captures match" if matching else "no capture is called"
        raise UsageError(f"{what} {capture!r}", ", ".join(matching[:5]), "nsys-tui captures list")

    def ids(self) -> list[str]:
        """All ids, newest first."""
        if not self.folder.is_dir():
            return []
        return sorted((p.name for p in self.folder.iterdir() if ID.fullmatch(p.name)), reverse=True)

    def all(self) -> list[Record]:
        """All records that can be read, newest first."""
        records = []
        for capture in self.ids():
            with contextlib.suppress(UsageError):
                records.append(self.load(capture))
        return records

    def left_running(self) -> str:
        """How many captures an earlier run left behind, and where; empty for none."""
        left = self.unfinished()
        where = ", ".join(sorted({record.target_name for record in left}))
        return f"{len(left)} capture{'s' * (len(left) > 1)} not finished on {where}" if left else ""

    def unfinished(self) -> list[Record]:
        """Captures that may still run, or whose reports are still over there."""
        return [record for record in self.all() if record.state.started]

    def find_report(self, report_id: str) -> Record | None:
        """The capture that made a report, by the report's identity."""
        for record in self.all():
            known = {identity for r in record.reports for identity in (r.report_id, r.sqlite_id)}
            if report_id and report_id in known:
                return record
        return None

    def mark_opened(self, capture: str) -> Record:
        """Notes that the user has seen the result."""
        return self.save(replace(self.load(capture), opened=True))

    def wish(self, capture: str, what: str) -> None:
        """Leaves a word for the process that drives a capture: ``keep``, ``discard``, ``kill``."""
        path = self.path(capture) / "wish"
        write_whole(path, what)

    def take_wish(self, capture: str) -> str:
        """The word that another process left, once; empty = none."""
        path = self.path(capture) / "wish"
        try:
            what = path.read_text("ascii")
            path.unlink()
        except OSError:
            return ""
        return what

    def is_held(self, capture: str) -> bool:
        """Whether a process drives the capture at present."""
        try:
            with self.hold(capture):
                return False
        except LockedError:
            return True

    def remove(self, capture: str) -> None:
        """Removes the folder of a capture with the reports fetched into it."""
        shutil.rmtree(self.path(capture))

    @contextlib.contextmanager
    def hold(self, capture: str) -> Iterator[None]:
        """Keeps other processes from driving the same capture.

        Raises:
            LockedError: another process of this user does.
        """
        import fcntl  # absent on Windows, where nothing is captured yet

        folder = self.path(capture)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "lock").touch(mode=0o600)
        with open(folder / "lock", "a+", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                file.seek(0)
                raise LockedError(
                    f"capture {capture} is being followed by process {file.read().strip() or '?'}",
                    hint="look there, or end that process, which ends no job",
                ) from error
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield
