"""Captures of the past: open their reports again, repeat, attach, delete."""

from __future__ import annotations

import contextlib
import shlex
from abc import abstractmethod
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

from nsys_tui.capture.capture import Capture
from nsys_tui.capture.failures import KeepError
from nsys_tui.capture.output import KNOWN_ENDINGS
from nsys_tui.capture.quoting import printable
from nsys_tui.capture.record import Record, State, Store
from nsys_tui.capture.transport.askpass import Prompt as Question
from nsys_tui.capture.transport.fetch import RemoteFile
from nsys_tui.errors import NsysTuiError
from nsys_tui.ui.dialogs.picker import Answer, Confirm, Picker, choose, nothing
from nsys_tui.ui.dialogs.secret import ask
from nsys_tui.ui.matching import Entry
from nsys_tui.ui.messages import Failed, failures_shown
from nsys_tui.ui.screens.base import ReportScreen
from nsys_tui.ui.session import Session
from nsys_tui.units import format_bytes

LISTED: Final = 6
"""Names of files in a question, reports first."""


class PastCaptures(ReportScreen):
    """What a screen does with records; the screen itself attaches and repeats."""

    @abstractmethod
    def attach_to(self, record: Record) -> None:
        """Follows a capture that was left running."""

    @abstractmethod
    def repeat(self, record: Record) -> None:
        """Fills the form in as it was."""

    async def asked(self, question: Question) -> str | None:
        """A question of ssh's: a dialog shows its own words."""
        return await ask(self.app, question)

    def action_capture_past(self) -> None:
        """Lists past captures."""
        self._pick("Past captures", Store().all(), "no captures yet", self._chosen)

    def action_capture_attach(self) -> None:
        """Follows what an earlier run left running; with several of them, asks which."""
        left = Store().unfinished()
        if len(left) == 1:
            self.attach_to(left[0])
        else:
            self._pick("Attach to", left, "no capture was left running", self.attach_to)

    def _pick(
        self, title: str, records: list[Record], nothing: str, done: Callable[[Record], None]
    ) -> None:
        entries = [Entry(past_line(record), result_word(record), record) for record in records]
        if entries:
            self.app.ask(Picker(title, entries), done)
        else:
            self.app.say(nothing)

    def _chosen(self, record: Record) -> None:
        answers = {
            "o": ("open", partial(self.open_reports, record)),
            "a": ("attach", partial(self.attach_to, record)),
            "r": ("repeat", partial(self.repeat, record)),
            "d": ("delete", partial(self._delete, record)),
        }
        if not record.at_home:
            del answers["o"]
        if record.state.over:
            del answers["a"]
        failed = f"\n{record.failure.title}" if record.failure else ""
        choose(self.app, past_line(record) + failed, answers)

    def open_reports(self, record: Record) -> None:
        """Opens what came home; the reports of several ranks together, as one fleet."""
        home = record.at_home
        with contextlib.suppress(KeepError):  # a full disk is no reason not to look at a report
            Store().mark_opened(record.id)
        if len(home) == 1:
            self.app.open_path(home[0])
            self.app.show("overview")
            return
        known = {session.path.absolute(): session for session in self.app.sessions}
        fresh = [path for path in home if path.absolute() not in known]
        self.app.sessions += [Session(path, state=self.app.first_state) for path in fresh]
        self.app.open_path(home[0])
        self.app.show("fleet")

    def _delete(self, record: Record) -> None:
        folder = Store().path(record.id)
        home = [Path(report.local) for report in record.reports if report.local]
        goes = [path.name for path in home if folder in path.parents]
        stays = [str(path) for path in home if folder not in path.parents]
        text = f"Delete the record and log of {record.id}" + (
            f" with the fetched {', '.join(goes)}?" if goes else "?"
        )
        text += f" {', '.join(stays)} stays." if stays else ""
        if record.state.started:
            text += " It may still run there, and nobody will know of it any more."
        answers: dict[str, Answer] = {"y": ("delete", partial(self._forget, record))}
        if record.job_dir:
            there = partial(self.remove_there, record, here=True)
            answers["b"] = ("its folder over there as well", there)
        choose(self.app, text, {**answers, "n": ("no", nothing)})

    def _forget(self, record: Record) -> None:
        try:
            Store().remove(record.id)
        except OSError as error:
            self.app.say(f"{record.id} cannot be removed: {error.strerror}")
            return
        self.app.say(f"removed {record.id}")

    def remove_there(self, record: Record, *, here: bool) -> None:
        """Lists what lies in the job's own folder over there, and removes it on yes.

        Args:
            record: of a capture that has ended.
            here: remove the record afterwards, too.
        """

        async def look() -> None:
            capture = Capture.attach(record.id, self.app.config, on_prompt=self.asked)
            try:
                there = await capture.leftovers()
            except NsysTuiError as error:
                await capture.close()
                self.app.post_message(Failed(error))
                return

            if not there:
                await self._remove_listed(capture, sure=True, here=here)
                return

            def answered(answer: str | None) -> None:
                sure = answer == "y"
                self.app.run_worker(
                    self._remove_listed(capture, sure=sure, here=here), group="remove"
                )

            question = Confirm(_listed(record, there), {"y": "remove", "n": "no"})
            self.app.push_screen(question, answered)

        self.app.run_worker(look(), group="remove", exit_on_error=False)

    async def _remove_listed(self, capture: Capture, *, sure: bool, here: bool) -> None:
        """Removes what was listed, if the user is sure, and gives the connection back."""
        with failures_shown(self.app):
            try:
                removed = await capture.remove_remote() if sure else []
            finally:
                await capture.close()
            for folder in removed:
                self.app.say(f"removed {printable(folder)}")
            if sure and here:
                self._forget(capture.record)


def _listed(record: Record, files: list[RemoteFile]) -> str:
    size = format_bytes(sum(file.size for file in files))
    reports = [PurePosixPath(file.path).name for file in files]
    names = sorted(reports, key=lambda name: (not name.endswith(KNOWN_ENDINGS), name))
    shown = printable(", ".join(names[:LISTED])) + (" …" if len(names) > LISTED else "")
    where = printable(f"{record.job_dir} on {record.where}")
    return f"{where}: {len(files)} files, {size}: {shown}. Remove them?"


def result_word(record: Record) -> str:
    """How it ended, in a word or two."""
    if record.state is State.DONE and not record.opened:
        return "new"
    return str(record.state)


def past_line(record: Record) -> str:
    """When, where, what, from which commit, and how many reports of it are here."""
    began = next(iter(record.times.values()), "")
    when = f"{datetime.fromisoformat(began).astimezone():%Y-%m-%d %H:%M}" if began else ""
    dirty = "+" if record.git_dirty else ""
    commit = f" @{record.git_commit[:8]}{dirty}" if record.git_commit else ""
    made, home = len(record.reports), len(record.at_home)
    here = f" {home} of {made} reports" if made != 1 or not home else " 1 report"
    return (
        f"{when}  {record.target_name}{here if made else ''}{commit}  {shlex.join(record.program)}"
    )
