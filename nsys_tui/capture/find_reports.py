"""After the end: which reports there are, and what to say when there is none.

Success is a report that nsys named and that exists, never an exit status; the program's own status
is kept beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import posixpath
import re
import shlex
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from nsys_tui.capture import scripts
from nsys_tui.capture.failures import CaptureError, LostError, NoReportError
from nsys_tui.capture.follow import Outcome, run_own
from nsys_tui.capture.job import Job
from nsys_tui.capture.options.clashes import REGISTER_ONLY
from nsys_tui.capture.output import RAW_ENDING, REPORT_ENDINGS, OutputParser, output_stem
from nsys_tui.capture.preflight import TEMPORARY
from nsys_tui.capture.quoting import printable
from nsys_tui.capture.record import Failure, Record, ReportFile, State
from nsys_tui.capture.transport.fetch import RemoteFile, files_in
from nsys_tui.errors import ELSEWHERE, NsysTuiError

_PACKAGES: Final = ("/opt/nvidia/nsight-systems", "/opt/nvidia/nsight-systems-cli")
_IMPORTER: Final = "host-linux-x64/QdstrmImporter"
_LACKS: Final = re.compile(r"error while loading shared libraries: (\S+):")
_LIBSSH: Final = {"libssh.so": " (Debian: libssh-4)"}
_RANK = re.compile(r"\.(\d+)\.nsys-rep$")
_SHOWN: Final = 8
_LIKELY: Final = ("nsys hangs", TEMPORARY)
"""Begins remarks that may be why there is no report."""
LATE_TRIES: Final = 10
LATE_S: Final = 0.5
_ENDED = {
    71: "the preamble failed",
    72: "the working directory vanished",
    73: "the file for the program's stdin cannot be read there",
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
    if outcome.queue is not None and outcome.queue.failed:
        job.remark("warning", f"{job.plan.target.launcher.title}: {outcome.queue.words}")
    files, raw = await _results(job, outcome, parser)
    sqlites = {file.path.removesuffix(".sqlite") for file in files if file.path.endswith(".sqlite")}
    lacks = importer = ""
    if raw and not any(map(_is_report, files)):
        lacks, importer = await _importer(job)
        if importer:
            made, lacks = await _imported(job, importer, raw[0].path)
            files += made
    reports = sorted((file for file in files if _is_report(file)), key=_rank)
    job.update(
        reports=tuple(_report(file, sqlites) for file in reports),
        raw=tuple(ReportFile(file.path, file.size, file.mtime) for file in raw),
    )
    if outcome.word != "exit":
        job.remark("warning", "the job vanished without an exit status")
    if not reports:
        raise _nothing(job, outcome, parser, lacks, importer)
    if stray := gone_astray(job.record, job.plan.output):
        job.remark("error", stray.title, stray.hint)
    _missing_ranks(job, [file.path for file in reports])


def gone_astray(record: Record, output: str) -> Failure | None:
    """What is to be said of reports that lie elsewhere than ``--output`` asked for."""
    asked = output_pattern(output)[1]
    paths = [
        report.path
        for report in record.reports
        if asked and not fnmatchcase(posixpath.basename(report.path), asked + ".*")
    ]
    if not paths:
        return None
    title = f"not where it was asked for: {', '.join(map(printable, paths))}"
    hint = (
        f"copy it before it is cleaned up there, or look at it: nsys-tui captures open {record.id}"
    )
    return Failure(State.ELSEWHERE, title, "", hint, ELSEWHERE)


async def _results(
    job: Job, outcome: Outcome, parser: OutputParser
) -> tuple[list[RemoteFile], list[RemoteFile]]:
    """Reports with exports, and raw files; a report may show up a little after its announcement."""
    failed = any(note.severity == "error" for note in parser.notes)
    coming = not failed and outcome.word == "exit" and (parser.generated or outcome.status == 0)
    for left in reversed(range(LATE_TRIES if coming else 1)):
        files, raw, missing = await _look(job, parser)
        if any(_is_report(file) for file in files) and not (missing and left):
            break
        if left:
            await asyncio.sleep(LATE_S)
    for path in missing:
        job.remark("warning", f"named by nsys and not there: {printable(path)}")
    reports = sum(map(_is_report, files))
    if reports < job.plan.processes:
        lying = await _scan(job)
        new = [file for file in lying if _is_ours(job, file.path)]
        known = {file.path for file in (*files, *raw)}
        files += [file for file in new if _is_report(file) and file.path not in known]
        raw += [f for f in new if f.path.endswith(RAW_ENDING) and f.path not in known]
        if len(files) > reports == 0:
            job.remark("warning", "nsys did not name its report; this is the one it wrote")
    return files, raw


def _is_report(file: RemoteFile) -> bool:
    return file.path.endswith(REPORT_ENDINGS) and file.size > 0


def _is_ours(job: Job, path: str) -> bool:
    """Whether a report lies where this capture was to write one."""
    folder, name = posixpath.split(path)
    inside, pattern = output_pattern(job.plan.output)
    there = posixpath.normpath(posixpath.join(job.record.cwd, inside))
    named = bool(pattern) and folder == there and fnmatchcase(name, pattern + ".*")
    return named or path.startswith(job.record.job_dir + "/")


def output_pattern(output: str) -> tuple[str, str]:
    """Folder and shell pattern (without ending) of the names that an ``--output`` may become.

    Both are empty when there is no name, or when the folder's name is only known to nsys.
    """
    folder, name = posixpath.split(output)
    if not name or "%" in folder:
        return "", ""
    parts = re.split(r"%q\{\w*\}|%[hpn]", output_stem(name))
    escaped = [re.sub(r"([\[\]*?\\])", r"[\1]", part.replace("%%", "%")) for part in parts]
    return folder, "*".join(escaped)


def _report(file: RemoteFile, sqlites: set[str]) -> ReportFile:
    """A report; an export that nsys made by itself is remembered by a name to be fetched."""
    stem = posixpath.splitext(file.path)[0]
    made = f"{stem}.sqlite" if stem in sqlites else ""
    return ReportFile(file.path, file.size, file.mtime, export=made)


async def _look(
    job: Job, parser: OutputParser
) -> tuple[list[RemoteFile], list[RemoteFile], list[str]]:
    """What nsys named: files that are there, raw ones, and names of reports that are not."""
    wanted = [posixpath.join(job.record.cwd, name) for name in (*parser.generated, *parser.raw)]
    wanted = [posixpath.normpath(path) for path in wanted if "\n" not in path]
    if "sqlite" in str(job.plan.options.get("export", "")):
        stems = [posixpath.splitext(path) for path in wanted]
        wanted += [f"{stem}.sqlite" for stem, ending in stems if ending in REPORT_ENDINGS]
    if not wanted:
        return [], [], []
    answers = await job.ask("files", PATHS="\n".join(dict.fromkeys(wanted)))
    files = files_in(answers)
    gone = [answer.value for answer in answers if answer.key == "missing"]
    gone += [file.path for file in files if not file.size]
    return (
        [file for file in files if file.path.endswith((*REPORT_ENDINGS, ".sqlite"))],
        [file for file in files if file.path.endswith(RAW_ENDING)],
        [path for path in gone if path.endswith(REPORT_ENDINGS)],
    )


async def _scan(job: Job) -> list[RemoteFile]:
    folder, pattern = output_pattern(job.plan.output)
    answers = await job.ask("scan", OUT_DIR=folder, OUT_NAME=pattern)
    return [replace(file, path=posixpath.normpath(file.path)) for file in files_in(answers)]


def _rank(file: RemoteFile) -> int:
    match = _RANK.search(file.path)
    return int(match[1]) if match else -1


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


def _nothing(
    job: Job, outcome: Outcome, parser: OutputParser, lacks: str, importer: str
) -> CaptureError:
    where = job.plan.target.describe()
    lying = printable(", ".join(file.path for file in job.record.raw))
    why = "\n".join(f"{note.text}" for note in parser.notes if note.severity == "error")
    errors = (note for note in parser.notes if note.severity == "error")
    remedy = next((note.remedy for note in errors if note.remedy), "")
    remedy = remedy.replace("capture again", job.again)
    if outcome.word != "exit" and job.plan.target.launcher.scheduler and not parser.collecting:
        remedy = remedy or "jobs_dir must be a folder that the compute nodes see"
    if outcome.word != "exit":
        return LostError(
            f"{where}: the job vanished and left no report",
            "\n".join(filter(None, [why, f"lying there: {lying}" if lying else ""])),
            remedy or "rebooted, out of memory, or killed; the log says how far it came",
        )
    told = [note.partition(": ")[2] for note in job.record.notes]
    hung = "\n".join(note.rpartition(" (")[0] for note in told if note.startswith(_LIKELY))
    kept = f"kept there: {lying}" if lying else ""
    if lying and (lacks or not importer):
        command = shlex.quote(importer or "QdstrmImporter")
        return NoReportError(
            f"{where}: collected, and not imported",
            "\n".join(filter(None, [lacks, why, kept])),
            f"make a report of it: {command} -i {shlex.quote(job.record.raw[0].path)}",
        )
    if outcome.status == 0 and not why and (unopened := _unopened(job)):
        return NoReportError(f"{where}: no report", *unopened)
    status = outcome.status if outcome.status is not None else 0
    meaning = _ENDED.get(status) or (f"killed by signal {status - 128}" if status > 128 else "")
    what = f"nsys ended with status {status}" + (f": {meaning}" if meaning else "")
    unsaid = parser.last and not (meaning or why or hung or kept)
    said = f"the log ends: {printable(parser.last, 200)}" if unsaid else ""
    return NoReportError(
        f"{where}: no report",
        "\n".join(filter(None, [what, why, hung, kept, said])),
        remedy or (job.again if hung or kept or status > 128 else "the log says more"),
    )


async def _importer(job: Job) -> tuple[str, str]:
    """That it is not there, as far as looking tells, or its path; both are empty for unknown."""
    release, _, last = posixpath.dirname(job.record.nsys_path).rpartition("/")
    number = job.record.nsys_version
    places = [release, f"{release}/nsight-systems-{number}", *(f"{p}/{number}" for p in _PACKAGES)]
    looked = [f"{folder}/{_IMPORTER}" for folder in places]
    there = files_in(await job.ask("files", PATHS="\n".join(looked)))
    if there:
        return "", there[0].path
    gone = f"the importer is not there: {looked[0]}"
    return gone if last == "target-linux-x64" else "", ""


async def _imported(job: Job, importer: str, path: str) -> tuple[list[RemoteFile], str]:
    """The report of what nsys collected and did not import, or the library that is missing."""
    name = f"{job.record.id}-import"
    output = path.removesuffix(RAW_ENDING) + REPORT_ENDINGS[0]
    script = scripts.import_script(job.plan, name, importer, path, output)
    made, said = await run_own(job, name, script, output)
    lost = _LACKS.search(said)
    if made:
        job.remark("note", "the importer made the report when it was started once more")
    elif not lost:
        job.remark("warning", f"the importer can make no report of it: {said}")
    await job.link.ask("clean", job.values(name))
    if made or not lost:
        return [made] if made else [], ""
    return [], f"{lost[1]} is missing there: install it{_LIBSSH.get(lost[1], '')}"


def _ranges_before(job: Job) -> str:
    """The ranges of the program in the latest report of it that is here; empty = none is."""
    for record in job.store.all():
        path = next((report.sqlite for report in record.reports if report.sqlite), "")
        if path and record.program == job.record.program and Path(path).is_file():
            with contextlib.suppress(NsysTuiError):
                names = _range_names(Path(path))
                shown = ", ".join(printable(name, 60) for name in names[:_SHOWN])
                more = ", …" if len(names) > _SHOWN else ""
                return f"; ranges seen in {Path(path).name}: {shown or 'none'}{more}"
    return ""


def _range_names(path: Path) -> list[str]:
    """Names of the NVTX ranges of a report, in the order in which they first open."""
    import numpy as np

    from nsys_tui.reader import open_report

    report = open_report(path)
    try:
        ranges = report.ranges
        codes, first = np.unique(ranges.name, return_index=True)
        return [ranges.names[code] for code in codes[np.argsort(first)]]
    finally:
        report.close()


def _unopened(job: Job) -> tuple[str, str] | None:
    """Why nsys ended well and wrote nothing: what was to begin the collection never came."""
    options = job.plan.options
    if delay := options.get("delay"):
        return f"the program ended before the delay of {delay} s was over", "shorten the delay"
    name = str(options.get("nvtx-capture", ""))
    match options.get("capture-range", "none"):
        case "nvtx":
            return (
                f"the range {name} never opened{_ranges_before(job)}",
                f"nsys compares the whole name; strings may need {REGISTER_ONLY}=0",
            )
        case "cudaProfilerApi":
            return "the program never called cudaProfilerStart", "call it, or leave the range out"
    return None
