"""One capture from plan to report: the interface that the app and the command line use.

    capture = Capture.create(plan, config, on_event=show, on_prompt=ask)
    record = await capture.run()        # drives it to its end, through any number of cuts
    await capture.stop(keep=True)       # from elsewhere in the same loop

Ending the task of ``run`` leaves the job alone: a later ``Capture.attach`` goes on from the record.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping

from nsys_tui.capture import bring_home, stop, submit
from nsys_tui.capture.events import Finished, Listener
from nsys_tui.capture.failures import (
    AuthenticationError,
    CaptureError,
    HostKeyError,
    KeepError,
    LockedError,
    LostError,
    NoReportError,
    UnreachableError,
)
from nsys_tui.capture.find_reports import collect, gone_astray
from nsys_tui.capture.follow import Follower, Outcome
from nsys_tui.capture.job import Job
from nsys_tui.capture.plan import Plan, plan_from_json
from nsys_tui.capture.preflight import Preflight
from nsys_tui.capture.record import Failure, Record, State, Store, new_id
from nsys_tui.capture.supervisor import last
from nsys_tui.capture.transport.askpass import PromptHandler
from nsys_tui.capture.transport.fetch import RemoteFile, files_in
from nsys_tui.capture.transport.ssh import connector_for
from nsys_tui.config import Config
from nsys_tui.errors import NsysTuiError, UsageError

LOCK_WAIT_S = 5.0
WISH_S = 0.5


class Capture:
    """A capture that is driven by this process; at most one process drives each."""

    def __init__(self, job: Job, *, resumed: bool, exporter: str = "") -> None:
        self.job = job
        self._exporter = exporter
        self._resumed = resumed
        self._ended = asyncio.Event()
        self._stopper: asyncio.Task[None] | None = None
        self._task: asyncio.Task[object] | None = None
        self._given_up = ""
        """How the capture ends by the user's own will: ``cancelled`` or ``discarded``."""
        self._held = asyncio.Event()
        self._tidying: asyncio.Task[None] | None = None
        """Looks after the end of the job for what it left, while its reports come home."""

    @classmethod
    def create(
        cls,
        plan: Plan,
        config: Config,
        *,
        on_event: Listener | None = None,
        on_prompt: PromptHandler | None = None,
        secrets: Mapping[str, str] | None = None,
        store: Store | None = None,
        repeats: str = "",
    ) -> Capture:
        """A new capture, written down and not started.

        Args:
            plan: what to run and where.
            config: grace time, log limit, the ssh command.
            on_event: told everything that happens, in this process's event loop.
            on_prompt: answers ssh's questions; without it a target that asks is an error.
            secrets: values for ``plan.replayed``; those of ``plan.env_from`` are read from the
                environment of this process.
            store: where records are kept; by default the user's state folder.
            repeats: id of the capture or report that this one repeats.

        Raises:
            UsageError: a name of ``env_from`` is not set here.
        """
        handed = dict(secrets or {})
        for name in plan.env_from:
            if name not in os.environ and name not in handed:
                raise UsageError(
                    f"{name} is not set here", "env_from takes its value from this environment",
                    f"export {name}, or leave it out",
                )  # fmt: skip
            handed.setdefault(name, os.environ.get(name, ""))
        store = store or Store()
        record = store.save(Record(id=new_id(), plan=plan.to_json(), repeats=repeats))
        return cls(_job(record, plan, store, config, on_event, on_prompt, handed), resumed=False)

    @classmethod
    def attach(
        cls,
        capture: str,
        config: Config,
        *,
        on_event: Listener | None = None,
        on_prompt: PromptHandler | None = None,
        store: Store | None = None,
        nsys: str = "",
    ) -> Capture:
        """A capture of an earlier process, to be followed from where that one left off.

        Args:
            capture: its id, a part of it, or ``latest``.
            config: grace time, log limit, the ssh command.
            on_event: told everything that happens, in this process's event loop.
            on_prompt: answers ssh's questions.
            store: where records are kept.
            nsys: the executable over there that exports the reports, in place of the one that
                made them.

        Raises:
            UsageError: there is no such capture.
        """
        store = store or Store()
        record = store.load(capture)
        plan = plan_from_json(record.plan)
        job = _job(record, plan, store, config, on_event, on_prompt, {})
        return cls(job, resumed=True, exporter=nsys)

    @property
    def record(self) -> Record:
        """The record as it is on disk."""
        return self.job.record

    async def run(self, *, anyway: bool = False, wait: bool = False) -> Record:
        """Drives the capture to its end and returns the record.

        Args:
            anyway: start although another capture runs on the target.
            wait: wait for that one instead.

        Raises:
            CaptureError: it failed; the record says the same. After the start, a connection that
                cannot be made for a reason that waiting does not mend raises too, and the record
                stays as it is, since the job goes on.
        """
        self._task = asyncio.current_task()
        with self.job.store.hold(self.record.id):
            if self._resumed:  # another process may have gone on since it was loaded
                self.job.record = self.job.store.load(self.record.id)
            if self._exporter:
                self.job.update(nsys_path=self._exporter)
            self._held.set()
            obeying = asyncio.create_task(self._obey())
            try:
                await self._drive(anyway=anyway, wait=wait)
            except NsysTuiError as error:
                self._failed(error)
                raise
            except asyncio.CancelledError:
                if self._given_up == "discarded":
                    self._discard()
                elif not self._was_submitted():
                    self.job.reach(State.CANCELLED)
                if not self._given_up or self._task is None:
                    raise
                self._task.uncancel()
            finally:
                obeying.cancel()
                await self._leave_stopper()
                if self._tidying is not None:
                    with contextlib.suppress(CaptureError):
                        await self._tidying
                await self.job.link.close()
        self.job.emit(Finished(self.record))
        return self.record

    async def held(self) -> None:
        """Waits until ``run`` has the capture to itself; from then on nobody else writes it."""
        await self._held.wait()

    async def _leave_stopper(self) -> None:
        if self._stopper is not None:
            self._stopper.cancel()
            await asyncio.wait({self._stopper})

    async def _drive(self, *, anyway: bool, wait: bool) -> None:
        state = self.record.state
        if state.over and not self._worth_another_try():
            return
        if self._resumed and not self._was_submitted():
            raise self._never_started()
        if not self._was_submitted():
            await self._begin(anyway=anyway, wait=wait)
        elif state is State.SUBMITTING:
            await self._find_again()
        self.job.link.patient = True
        if not self.record.reports:
            await self._follow()
        self._ended.set()
        if self.record.state.over:
            return
        exports = await bring_home.export_there(self.job)
        await bring_home.fetch_all(self.job, exports)
        if self.record.stop:
            self.job.update(kept="kept")
        stray = gone_astray(self.record, self.job.plan.output)
        self.job.update(failure=stray)
        end = State.ELSEWHERE if stray else State.DONE
        self.job.reach(State.CANCELLED if self.record.stop else end)

    def _worth_another_try(self) -> bool:
        """Whether the reports of a failed capture may still come home."""
        where = self.record.failure.where if self.record.failure else ""
        return bool(self.record.reports) and where in (State.FETCHING, State.VERIFYING)

    def _never_started(self) -> CaptureError:
        again = f"start it again with: nsys-tui capture --repeat {self.record.id}"
        return CaptureError(f"capture {self.record.id} was never started", "", again)

    def _was_submitted(self) -> bool:
        return State.SUBMITTING.value in self.record.times

    async def _begin(self, *, anyway: bool, wait: bool) -> None:
        self.job.reach(State.CONNECTING)
        await self.job.link.channel()
        await submit.check(self.job)
        while True:
            try:
                return await submit.submit(self.job, anyway=anyway)
            except LockedError as error:
                if not wait:
                    raise
                self.job.reach(State.CHECKING, f"waiting: {error.message}")
                await asyncio.sleep(LOCK_WAIT_S)

    async def _find_again(self) -> None:
        """After a crash between sending the start and its answer: started, or not?"""
        answers = await self.job.ask("status")
        if (last(answers, "state") or "absent") in ("absent", "stillborn"):
            raise self._never_started()
        pid = last(answers, "pid") or ""
        self.job.update(pid=int(pid) if pid.isdigit() else 0)

    async def _follow(self) -> None:
        if self.record.state is State.SUBMITTING:
            self.job.reach(State.RUNNING)
        if self.record.stop and self._stopper is None:
            self._ask_to_stop(keep=self.record.stop == "keep")
        try:
            follower, outcome = await self._to_the_end()
            self._tidying = asyncio.create_task(stop.end_left_over(self.job))
        finally:
            self._ended.set()
        if outcome.queue is not None and outcome.queue.running:
            kind = self.job.plan.target.launcher.title
            self.job.remark("warning", f"{kind} says that job {outcome.queue.job} runs on")
        if self.record.stop == "discard":
            self.job.update(program_exit=outcome.status, kept="discarded")
            self.job.reach(State.CANCELLED)
            return
        try:
            await collect(self.job, outcome, follower.parser)
        except (NoReportError, LostError):
            if self.record.stop != "kill":
                raise
            self.job.update(kept="killed")
            self.job.reach(State.CANCELLED)

    async def _to_the_end(self) -> tuple[Follower, Outcome]:
        """Follows the job; one whose nsys hung before its program ran is started once more."""
        follower = Follower(self.job, once_more=self._may_start_again())
        outcome = await follower.run()
        if follower.gave_up and not self.record.stop:
            await stop.clear(self.job)
            self.job.store.log_path(self.record.id).unlink(missing_ok=True)
            self.job.update(log_gap=0)
            await submit.submit(self.job, anyway=True)
            follower = Follower(self.job)
            outcome = await follower.run()
        return follower, outcome

    def _may_start_again(self) -> bool:
        """Whether all that a start needs is at hand, and nobody queues for it again."""
        return not (self._resumed or self.job.plan.target.launcher.scheduler)

    def _failed(self, error: NsysTuiError) -> None:
        """Writes the end into the record, unless the job goes on without us."""
        blind = UnreachableError | AuthenticationError | HostKeyError | KeepError
        if isinstance(error, blind) and self._was_submitted():
            return
        failure = Failure(
            self.record.state.value, error.title, error.message, error.hint, error.exit_code
        )
        with contextlib.suppress(KeepError):
            self.job.update(failure=failure)
            self.job.reach(State.LOST if isinstance(error, LostError) else State.FAILED)
        self.job.emit(Finished(self.record))

    async def stop(self, *, keep: bool = True) -> None:
        """Asks the job to end; ``run`` then goes on to bring home what there is.

        Before the start there is nothing to end: ``run`` then returns a cancelled record. After the
        end of the job what is left is the way home, which is given up only to discard it all.
        """
        if self._was_submitted() and not self._ended.is_set():
            self._ask_to_stop(keep=keep)
        elif self._task is not None and not (self._was_submitted() and keep):
            self._given_up = "discarded" if self._was_submitted() else "cancelled"
            self._task.cancel()

    def _discard(self) -> None:
        """Ends on the way home: what has arrived of it goes."""
        self.job.update(stop="discard", kept="discarded")
        self.job.reach(State.CANCELLED)
        for part in self.job.store.path(self.record.id).glob("*.part*"):
            part.unlink(missing_ok=True)

    async def _obey(self) -> None:
        """Does what another process asks for, as ``nsys-tui captures stop`` does."""
        while True:
            await asyncio.sleep(WISH_S)
            wish = self.job.store.take_wish(self.record.id)
            if wish == "kill":
                await self.kill()
            elif wish:
                await self.stop(keep=wish == "keep")

    def _ask_to_stop(self, *, keep: bool) -> None:
        if self._stopper is not None:
            self._stopper.cancel()
        self._stopper = asyncio.create_task(stop.stop(self.job, self._ended, keep=keep))

    async def signal(self, name: str) -> None:
        """Sends one signal and writes nothing down: another process follows the capture."""
        await stop.send(self.job, name, note=False)

    async def kill(self) -> None:
        """Sends KILL, which loses a report that is not written yet."""
        if self.record.state.at_work:
            self.job.update(stop="kill")
        await stop.send(self.job, "KILL")

    async def kill_left(self) -> list[str]:
        """Kills what outlived a capture that is over; returns what it was."""
        return await stop.end_all(self.job)

    async def leftovers(self) -> list[RemoteFile]:
        """Files in the job's own folders over there, to be shown before they are removed."""
        files = []
        for name in self._job_names():
            answers = await self.job.link.ask("contents", self.job.values(name))
            files += files_in(answers)
        return files

    async def remove_remote(self) -> list[str]:
        """Removes the job's own folders over there; reports elsewhere are not touched."""
        removed = []
        for name in self._job_names():
            answers = await self.job.link.ask("clean", self.job.values(name))
            if last(answers, "state") is not None:
                raise CaptureError(
                    f"capture {self.record.id} still runs", hint="stop it before removing it"
                )
            if cleaned := last(answers, "cleaned"):
                removed.append(cleaned)
        return removed

    def _job_names(self) -> list[str]:
        most = max(1, len(self.record.reports))
        return ["", *(bring_home.export_name(self.record.id, n) for n in range(most))]

    async def close(self) -> None:
        """Gives the connection back, when ``run`` was not used."""
        await self.job.link.close()


def _job(
    record: Record,
    plan: Plan,
    store: Store,
    config: Config,
    on_event: Listener | None,
    on_prompt: PromptHandler | None,
    secrets: Mapping[str, str],
) -> Job:
    connector = connector_for(plan.target, config.capture, on_prompt)
    here = config.nsys.path
    return Job(record, plan, store, connector, config.capture, on_event, secrets, here)


async def preflight(
    plan: Plan, config: Config, on_prompt: PromptHandler | None = None
) -> Preflight:
    """Looks at a target without starting anything, for ``targets check`` and for the form.

    Raises:
        CaptureError: it does not answer.
    """
    job = _job(Record(id=new_id(), plan={}), plan, Store(), config, None, on_prompt, {})
    try:
        return await submit.probe(job, thorough=True)
    finally:
        await job.link.close()
