"""Ending a running job without losing what it collected, unless that is what the user wants.

Closing a connection ends nothing over there; only a second command does, to the job's process group
or through scancel. INT lets nsys write its report; TERM, which its program gets too, is for one
that does not listen; KILL is sent only when the user says so, because it loses the report, or where
a scheduler's TERM has taken it already. A program that outlives nsys after a stop is killed: a
report that nsys could write is written then.
"""

from __future__ import annotations

import asyncio
import time

from nsys_tui.capture.events import StateChanged, StopStuck
from nsys_tui.capture.job import Job
from nsys_tui.capture.quoting import printable
from nsys_tui.capture.record import State, now
from nsys_tui.capture.supervisor import Answer, last

DISCARD_GRACE_S = 10.0
_LOOK_S = 0.5
_LAST_S = 1.0
"""What nsys's own processes need at most to end by themselves, and what is killed to be gone."""
PROGRAM_S = 30.0
"""What a program may take to end after a stop, as with Slurm; nsys sent it TERM at its start."""
_FIRST_STEP = {"keep": 0, "discard": 1, "kill": 2}
_IMPORTER = "Qdstrm"
_OF_NSYS = ("nsys", _IMPORTER)


async def send(job: Job, name: str, *, note: bool = True, force: bool = False) -> list[Answer]:
    """Sends one signal to the job.

    Args:
        job: the job.
        name: INT, TERM or KILL.
        note: write it into the record first; not done while another process drives the capture.
        force: INT also while nsys is there without its program: after that it makes its report,
            and INT has it throw everything away.
    """
    if note:
        job.update(signals=(*job.record.signals, f"{name} {now()}"))
    return await job.ask("signal", SIG=name, FORCE="yes" if force else "no")


async def stop(job: Job, ended: asyncio.Event, *, keep: bool) -> None:
    """Ends a job step by step; returns when it has ended or only KILL is left.

    Args:
        job: the job.
        ended: set by whoever follows the job, at its end.
        keep: INT first and patience while it makes its report, or TERM and KILL at once; KILL
            alone where the record says so.
    """
    if job.record.stop == "kill":
        keep = False
    else:
        job.update(stop="keep" if keep else "discard")
    job.emit(StateChanged(job.record.state, "stopping" if keep else "stopping, to be discarded"))
    began = time.monotonic()
    scheduled = bool(job.plan.target.launcher.scheduler)
    patience_s = job.settings.grace / 1e9 if keep else DISCARD_GRACE_S
    if keep and job.record.state is State.IMPORTING and await _ends(job, ended, patience_s):
        return  # INT would lose what is just being imported
    steps = [("INT", "TERM"), ("TERM", "KILL"), ("KILL", "")]
    for name, following in steps[_FIRST_STEP[job.record.stop] :]:
        if name == "KILL" and keep and not (scheduled or job.hangs):
            break
        if not await _send_until_heard(job, ended, name, patience_s) and keep:
            break  # a graver one would be taken first, and lose the report
        if await _ends(job, ended, patience_s):
            return
        if following:
            waited = f"no end {time.monotonic() - began:.0f} s after the stop, {name} was sent"
            job.remark("warning", waited, f"{following} is next")
    if scheduled:
        runs = f"{_job_there(job)} still runs {time.monotonic() - began:.0f} s after the stop"
        job.remark("warning", runs, "it is followed on; captures stop asks again")
    elif keep:
        job.emit(StopStuck(time.monotonic() - began))


def _job_there(job: Job) -> str:
    return f"{job.plan.target.launcher.title} job {job.record.slurm_job}".rstrip()


async def _send_until_heard(job: Job, ended: asyncio.Event, name: str, patience_s: float) -> bool:
    """Sends a signal; again while the job is not ready for it, or its scheduler is deaf.

    Returns:
        Whether it was taken, or is not needed any more.
    """
    answers = await send(job, name)
    began = time.monotonic()
    while last(answers, "signalled") is None and not await _ends_within(ended, _LOOK_S):
        if deaf := last(answers, "unheard"):
            kind = job.plan.target.launcher.title
            job.remark(
                "warning", f"{kind} did not take the stop, and the program runs on", printable(deaf)
            )
            if time.monotonic() - began > patience_s:
                break
        answers = await send(job, name, note=False, force=_is_overdue(job, began, patience_s))
    heard = last(answers, "signalled") is not None
    if not heard:  # it was not needed, or not taken
        job.update(signals=job.record.signals[:-1])
    return heard or ended.is_set()


async def _ends(job: Job, ended: asyncio.Event, patience_s: float) -> bool:
    """Waits for the end; longer as long as a report is made and the log tells of it."""
    began = time.monotonic()
    while not await _ends_within(ended, _LOOK_S):
        if _is_overdue(job, began, patience_s):
            return False
    return True


def _is_overdue(job: Job, began: float, patience_s: float) -> bool:
    heard = job.growth if job.record.state is State.IMPORTING else began
    patience_s = min(patience_s, DISCARD_GRACE_S) if job.hangs else patience_s
    return time.monotonic() - max(began, heard) > patience_s


async def _ends_within(ended: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await ended.wait()
    except TimeoutError:
        return False
    return True


async def end_left_over(job: Job, name: str = "") -> None:
    """Ends what still carries the job's mark after its end; its program only after a stop.

    An agent of nsys stays as long as the program that it watches, and no longer.

    Args:
        job: the job.
        name: of another job of the same capture.
    """
    left = await _left(job, name)
    patience_s = _LAST_S
    stays = not job.record.stop or job.plan.options.get("kill") == "none"
    if stays and not all(map(_is_nsys, left)):
        await asyncio.sleep(_LAST_S)
        left = await _left(job, name)
    if program := ", ".join(process for process in left if not _is_nsys(process)):
        if stays:
            remedy = f"nsys-tui captures stop {job.record.id} --kill ends it"
            job.remark("note", f"still running after the end: {', '.join(left)}", remedy)
            return
        patience_s = PROGRAM_S if job.record.stop == "keep" else DISCARD_GRACE_S
        wait = f"KILL follows in {patience_s:.0f} s"
        job.remark("note", f"still running after the stop: {program}", wait)
    end = time.monotonic() + patience_s
    while left and time.monotonic() < end:
        await asyncio.sleep(_LOOK_S)
        left = await _left(job, name)
    if left and (killed := await end_all(job, name)):
        job.remark("note", f"left behind, and killed: {', '.join(killed)}")


def _is_nsys(process: str) -> bool:
    return process.partition(" ")[2].startswith(_OF_NSYS)


async def clear(job: Job, name: str = "") -> None:
    """Removes what a hanging nsys that was ended left, so that it can be started again."""
    await end_left_over(job, name)
    await job.link.ask("clean", job.values(name))


async def end_importer(job: Job) -> bool:
    """Ends what makes the report of a collection, which nsys then keeps; false = none is there."""
    left = await _left(job, "", "KILL", only=_IMPORTER)
    return any(process.partition(" ")[2].startswith(_IMPORTER) for process in left)


async def end_all(job: Job, name: str = "") -> list[str]:
    """Kills all that carries the job's mark; returns what it was, as number and name.

    Looks until nothing is left: what was killed takes a moment to go, and a program that starts
    others may have started one between the look and the signal.
    """
    killed: dict[str, None] = {}
    end = time.monotonic() + _LAST_S
    while left := await _left(job, name, "KILL"):
        killed |= dict.fromkeys(left)
        if time.monotonic() > end:
            break
    return [*killed]


async def _left(job: Job, name: str, signal_name: str = "", only: str = "") -> list[str]:
    answers = await job.link.ask("left", job.values(name) | {"SIG": signal_name, "ONLY": only})
    return [printable(answer.value) for answer in answers if answer.key == "left"]
