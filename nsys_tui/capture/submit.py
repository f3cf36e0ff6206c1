"""The first steps: look whether the capture can work there, then start it exactly once."""

from __future__ import annotations

import getpass
import socket
import time
from typing import Final

from nsys_tui.capture import quoting, scripts
from nsys_tui.capture.events import Checked
from nsys_tui.capture.failures import CaptureError, LockedError, OutputTakenError, PreflightError
from nsys_tui.capture.find_reports import output_pattern
from nsys_tui.capture.job import Job
from nsys_tui.capture.options.draft import ERROR
from nsys_tui.capture.output import output_stem
from nsys_tui.capture.preflight import TEMPORARY, Preflight, checks, exit_code, read_probe
from nsys_tui.capture.quoting import printable
from nsys_tui.capture.record import State, now
from nsys_tui.capture.supervisor import Answer, keeper, last

_FRESH_S: Final = 60.0
_seen: dict[tuple[str, ...], tuple[float, Preflight]] = {}


async def probe(job: Job, *, thorough: bool = False) -> Preflight:
    """Asks the far side what is there; changes nothing but the folder of jobs."""
    script = scripts.find_script(job.plan, thorough=thorough)
    began = time.time()
    answers = await job.ask("probe", timeout_s=90, FIND=script)
    preflight = read_probe(answers, began)
    _seen[_place(job)] = (time.monotonic(), preflight)
    return preflight


def probed(job: Job) -> Preflight | None:
    """What the far side said in the last minute, if it was asked the same and could work."""
    when, preflight = _seen.get(_place(job), (0.0, None))
    if preflight is None or time.monotonic() - when > _FRESH_S:
        return None
    usable = preflight.nsys and {"jobs", "cwd"} <= set(preflight.values)
    return preflight if usable else None


def _place(job: Job) -> tuple[str, ...]:
    """Everything that decides what a probe finds."""
    target = job.plan.target
    script = scripts.find_script(job.plan, thorough=True)
    return (script, repr(target), job.plan.cwd, *job.settings.ssh)


async def check(job: Job) -> None:
    """Refuses a capture that cannot work, before anything is started.

    Raises:
        PreflightError: with all that is wrong, and exit status 69 when nsys is missing.
    """
    job.reach(State.CHECKING)
    job.preflight = preflight = probed(job) or await probe(job)
    lines = checks(preflight, job.plan.target, job.plan)
    full = [line for line in lines if line.name == TEMPORARY]
    job.emit(Checked(tuple(line for line in lines if line not in full)))
    for line in full:  # kept in the record: it may be why no report comes
        job.remark(line.severity, f"{line.name}: {line.text}", line.remedy)
    for fault in job.plan.launcher_faults(job.settings.grace / 1e9):
        job.remark("warning", fault)
    errors = [line for line in lines if line.severity == ERROR]
    if errors:
        failure = PreflightError(
            f"{job.plan.target.describe()}: {errors[0].text}",
            "\n".join(line.text for line in errors[1:]),
            errors[0].remedy,
        )
        failure.exit_code = exit_code(lines)
        raise failure
    version = preflight.facts.nsys_version
    job.update(
        where=preflight.get("host"),
        jobs_dir=preflight.get("jobs"),
        job_dir=f"{preflight.get('jobs')}/{job.record.id}",
        cwd=preflight.get("cwd"),
        nsys_path=preflight.nsys,
        nsys_version=".".join(map(str, version)) if version else "",
        git_commit=preflight.get("git"),
        git_dirty=bool(preflight.get("git_dirty")),
    )


async def submit(job: Job, *, anyway: bool = False) -> None:
    """Starts the job, or finds that it was started already.

    Raises:
        LockedError: another capture runs on this target, and ``anyway`` is not set.
        OutputTakenError: the report's name is taken.
        CaptureError: the far side could not take the job.
    """
    record, plan = job.record, job.plan
    known = job.preflight.facts.options if job.preflight else ()
    argv = plan.argv(record.nsys_path or "nsys", record.job_dir, known)
    job.update(argv=tuple(argv))
    job.reach(State.SUBMITTING)
    job.link.patient = True
    lock = f"{record.jobs_dir}/lock.{plan.target.name}"
    batch, batch_args = scripts.batch_script(plan, record.job_dir, lock, job.settings.log_limit)
    answers = await job.ask(
        "start",
        timeout_s=120,
        RUN=scripts.run_script(plan, record.id, record.job_dir, record.cwd, argv),
        WRAP=keeper(),
        OWNER=_owner(job),
        SECRETS=scripts.secrets_script(job.secrets),
        FUNCTIONS=plan.functions_json,
        BATCH=batch,
        BATCH_ARGS=quoting.words(batch_args),
        TAKEN=_report_name(plan.output),
        OUT_DIR=output_pattern(plan.output)[0],
        FORCE="yes" if plan.options.get("force-overwrite") == "true" else "no",
        ANYWAY="yes" if anyway else "no",
    )
    _understand(job, answers)


def _report_name(output: str) -> str:
    """The report that nsys will write, where that can be told and has been chosen."""
    return f"{output_stem(output)}.nsys-rep" if output and "%" not in output else ""


def _owner(job: Job) -> str:
    who = f"{getpass.getuser()} from {socket.gethostname()}"
    return printable(f"{who} on target {job.plan.target.name} since {now()}", 300)


def _understand(job: Job, answers: list[Answer]) -> None:
    for answer in answers:
        text = printable(answer.value)
        if answer.key == "locked":
            raise LockedError(
                f"{job.plan.target.describe()}: another capture runs there",
                text,
                "wait for it (--queue), start anyway (--anyway), or attach to it",
            )
        if answer.key == "taken":
            raise OutputTakenError(
                f"{text} exists already", "", "choose another --output, or --force-overwrite=true"
            )
        if answer.key == "no_folder":
            raise PreflightError(
                f"{job.plan.target.describe()}: {text} is no folder that can be written",
                "nsys would write its report elsewhere", "make it, or choose another --output",
            )  # fmt: skip
        if answer.key == "rejected":
            kind = job.plan.target.launcher
            keys = ", ".join(field.key for field in kind.fields)
            raise CaptureError(f"{kind.title} did not take the job", text, f"correct {keys}")
        if answer.key == "error":
            raise CaptureError(f"{job.plan.target.describe()}: {text}", "", "nothing was started")
        if answer.key == "note":
            job.remark("note", text)
    state = last(answers, "state") or "absent"
    if state in ("absent", "stillborn"):
        raise CaptureError("the job was not started", f"its state is {state}", "start it again")
    pid = last(answers, "pid") or ""
    job.update(
        pid=int(pid) if pid.isdigit() else 0,
        slurm_job=last(answers, "job") or "",
        git_commit=last(answers, "git") or job.record.git_commit,
        git_dirty=bool(last(answers, "git_dirty")),
    )
