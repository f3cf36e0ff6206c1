"""After the end: which reports there are, and what to say when there is none.

Success is a report that nsys named and that exists, never an exit status; the program's own status
is kept beside it.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from nsys_tui.capture.failures import CaptureError, LostError, NoReportError
from nsys_tui.capture.fetch import RemoteFile, read_file_answer
from nsys_tui.capture.output import RAW_ENDING, REPORT_ENDINGS, OutputParser
from nsys_tui.capture.quoting import printable
from nsys_tui.capture.record import ReportFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsys_tui.capture.follow import Outcome
    from nsys_tui.capture.job import Job

_RANK = re.compile(r"\.(\d+)\.nsys-rep$")
_ENDED = {
    71: "the preamble failed",
    72: "the working directory vanished",
    74: "the job's folder is not visible where the job ran",
    126: "nsys could not be executed",
    127: "a command was not found",
}


async def collect(job: Job, outcome: Outcome, parser: OutputParser) -> None:
    """Finds the reports of a job that has ended and writes them into the record.

    Raises:
        NoReportError: there is none; says why as far as the log tells.
        LostError: the job vanished and left no report.
    """
    job.update(program_exit=outcome.status)
    if outcome.slurm is not None and outcome.slurm.over and outcome.slurm.state != "COMPLETED":
        job.remark("warning", f"Slurm: {outcome.slurm.words()}")
    named = await _look(job, [*parser.generated, *parser.raw])
    found = [file for file in named if file.path.endswith((*REPORT_ENDINGS, ".sqlite"))]
    raw = [file for file in named if file.path.endswith(RAW_ENDING)]
    if not any(file.path.endswith(REPORT_ENDINGS) for file in found):
        lying = await _scan(job)
        mine = [file for file in lying if file.path.startswith(job.record.job_dir + "/")]
        found += [file for file in mine if file.path.endswith(REPORT_ENDINGS) and file.size]
        raw += [file for file in lying if file.path.endswith(RAW_ENDING) and file not in raw]
        if found:
            job.remark("warning", "nsys did not name a report; this one lay in the job's folder")
    sqlites = {file.path.removesuffix(".sqlite") for file in found if file.path.endswith(".sqlite")}
    reports = [file for file in found if file.path.endswith(REPORT_ENDINGS) and file.size]
    job.update(
        reports=tuple(_report(file, sqlites) for file in reports),
        raw=tuple(ReportFile(file.path, file.size, file.mtime) for file in raw),
    )
    if outcome.word != "exit":
        job.remark("warning", "the job vanished without an exit status")
    if not reports:
        raise _nothing(job, outcome, parser)
    _missing_ranks(job, [file.path for file in reports])


def _report(file: RemoteFile, sqlites: set[str]) -> ReportFile:
    """A report; an export that nsys made by itself is remembered by a name to be fetched."""
    stem = posixpath.splitext(file.path)[0]
    made = f"{stem}.sqlite" if stem in sqlites else ""
    return ReportFile(file.path, file.size, file.mtime, export=made)


async def _look(job: Job, paths: Iterable[str]) -> list[RemoteFile]:
    wanted = [path for path in paths if "\n" not in path]
    if not wanted:
        return []
    answers = await job.ask("files", PATHS="\n".join(wanted))
    for answer in answers:
        if answer.key == "missing" and not answer.value.endswith(RAW_ENDING):
            job.remark("warning", f"named by nsys and not there: {printable(answer.value)}")
    return [file for file in map(read_file_answer, answers) if file is not None]


async def _scan(job: Job) -> list[RemoteFile]:
    answers = await job.ask("scan")
    files = [file for file in map(read_file_answer, answers) if file is not None]
    return [RemoteFile(posixpath.normpath(file.path), file.size, file.mtime) for file in files]


def _missing_ranks(job: Job, paths: list[str]) -> None:
    expected = job.plan.processes
    if expected < 2:
        return
    ranks = {int(match[1]) for path in paths if (match := _RANK.search(path))}
    missing = sorted(set(range(expected)) - ranks) if ranks else []
    if missing:
        job.remark("warning", "no report of rank " + ", ".join(map(str, missing)))
    elif len(paths) < expected:
        job.remark("warning", f"{len(paths)} reports of {expected} processes")


def _nothing(job: Job, outcome: Outcome, parser: OutputParser) -> CaptureError:
    where = job.plan.target.describe()
    lying = printable(", ".join(file.path for file in job.record.raw))
    why = "\n".join(f"{note.text}" for note in parser.notes if note.severity == "error")
    remedy = next((note.remedy for note in parser.notes if note.severity == "error"), "")
    if outcome.word != "exit" and job.plan.target.slurm and not parser.collecting:
        remedy = remedy or "jobs_dir must be a folder that the compute nodes see"
    if outcome.word != "exit":
        return LostError(
            f"{where}: the job vanished and left no report",
            "\n".join(filter(None, [why, f"lying there: {lying}" if lying else ""])),
            remedy or "rebooted, out of memory, or killed; the log says how far it came",
        )
    if lying:
        return NoReportError(
            f"{where}: collected, and not imported",
            "\n".join(filter(None, [why, f"kept there: {lying}"])),
            "import it with the same or a newer nsys: nsys import FILE",
        )  # fmt: skip
    status = outcome.status if outcome.status is not None else 0
    meaning = _ENDED.get(status) or (f"killed by signal {status - 128}" if status > 128 else "")
    what = f"nsys ended with status {status}" + (f": {meaning}" if meaning else "")
    return NoReportError(
        f"{where}: no report", "\n".join(filter(None, [what, why])), remedy or "the log says more"
    )
