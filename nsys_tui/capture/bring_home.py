"""Bringing the reports of a finished job to this machine, with an export beside each.

The ``.nsys-rep`` always comes home; the ``.sqlite`` is made where an nsys is, and a capture without
one is still a success: opening it later finds or asks for an nsys.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import posixpath
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from nsys_tui.capture import scripts
from nsys_tui.capture.failures import CaptureError, FetchError
from nsys_tui.capture.follow import run_own
from nsys_tui.capture.job import Job
from nsys_tui.capture.record import ReportFile, State
from nsys_tui.capture.transport.fetch import Fetch, RemoteFile, files_in

_UNSAFE = re.compile(r"[^A-Za-z0-9._+=,@-]+")
_SQLITE = b"SQLite format 3\0"


async def export_there(job: Job) -> dict[str, RemoteFile]:
    """Exports each report where it lies, if an nsys is there and the target wants it.

    Returns:
        What was made, by path.
    """
    there: dict[str, RemoteFile] = {}
    if job.plan.target.settings.export not in ("auto", "remote") or not job.record.nsys_path:
        return there
    for number, report in enumerate(job.record.reports):
        if report.export:
            continue
        job.reach(State.EXPORTING)
        try:
            made: RemoteFile | None = await export_one(job, report, number)
        except FetchError:
            made = await _lying_beside(job, report)
        if made:
            there[made.path] = made
            _replace(job, replace(report, export=made.path))
    return there


def _name_beside(report: ReportFile) -> str:
    return posixpath.splitext(report.path)[0] + ".sqlite"


async def _lying_beside(job: Job, report: ReportFile) -> RemoteFile | None:
    """A ``.sqlite`` of the report's name that is no older; whether it is its export shows here."""
    if not job.plan.target.remote:
        return None
    answers = await job.ask("files", PATHS=_name_beside(report))
    return next((file for file in files_in(answers) if file.mtime >= report.mtime), None)


def export_name(capture: str, number: int) -> str:
    """The name of the job that exports one of the reports of a capture."""
    return f"{capture}-export{number or ''}"


async def export_one(job: Job, report: ReportFile, number: int) -> RemoteFile:
    """Runs ``nsys export`` as a job of its own, which survives a cut as the capture does.

    Returns:
        The export over there.

    Raises:
        FetchError: nsys could not export it; a remark says so.
    """
    name = export_name(job.record.id, number)
    folder = f"{job.record.jobs_dir}/{name}"
    output = f"{folder}/{posixpath.splitext(posixpath.basename(report.path))[0]}.sqlite"
    script = scripts.export_script(job.plan, name, job.record.nsys_path, report.path, output)
    made, said = await run_own(job, name, script, output)
    if made is None:
        job.remark(
            "warning", f"nsys could not export the report there{': ' * bool(said)}{said}",
            "an nsys here does it on opening; --export=sqlite has nsys write it with the report",
        )  # fmt: skip
        await job.link.ask("clean", job.values(name))
        raise FetchError("no export")
    return made


async def fetch_all(job: Job, exports: Mapping[str, RemoteFile]) -> None:
    """Fetches every report and its export; what is here already is only looked at.

    Args:
        job: the job.
        exports: those that this process has just seen over there, by path.

    Raises:
        FetchError: a report does not come home whole; what has arrived stays.
    """
    folder = job.store.path(job.record.id)
    names = _local_names([report.path for report in job.record.reports])
    for report, name in zip(job.record.reports, names, strict=True):
        target = folder / name
        if report.local and _is_here(report):
            continue
        if not job.plan.target.remote:
            await _adopt(job, report)
            continue
        job.reach(State.FETCHING)
        file = RemoteFile(report.path, report.size, report.mtime)
        digest = await Fetch(job.link, job.values(), file, target, job.emit).run()
        job.reach(State.VERIFYING)
        if not digest or digest.startswith("cksum"):
            job.remark("warning", "that machine has no sha256: files were compared by size only")
        home = replace(report, local=str(target), sha256=digest, report_id=_identity(target))
        _replace(job, home)
    for number, report in enumerate(job.record.reports):
        await _fetch_export(job, report, folder, exports.get(report.export))
        await _clean_export(job, number)
    wanted = job.plan.target.remote and job.plan.target.settings.export in ("auto", "local")
    if wanted and not all(report.sqlite for report in job.record.reports):
        await asyncio.to_thread(_export_here, job)


def _export_here(job: Job) -> None:
    """Exports with an nsys of this machine what could not be exported over there."""
    from nsys_tui.errors import NsysTuiError
    from nsys_tui.reader.nsys import export_newest

    for report in job.record.reports:
        if report.sqlite:
            continue
        target = Path(report.local).with_suffix(".sqlite")
        try:
            if not export_newest(Path(report.local), target, job.nsys_here):
                return
        except NsysTuiError:
            continue
        _replace(job, replace(report, sqlite=str(target), sqlite_id=_identity(target)))


async def _adopt(job: Job, report: ReportFile) -> None:
    """A report on this machine stays where nsys wrote it."""
    job.reach(State.VERIFYING)
    path = Path(report.path)
    digest = await asyncio.to_thread(sha256, path)
    _replace(job, replace(report, local=report.path, sha256=digest, report_id=_identity(path)))


def sha256(path: Path) -> str:
    """The hash of a file on this machine."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_here(report: ReportFile) -> bool:
    return Path(report.local).is_file() and Path(report.local).stat().st_size == report.size


async def _fetch_export(
    job: Job, report: ReportFile, folder: Path, there: RemoteFile | None
) -> None:
    if not report.export or report.sqlite:
        return
    if not job.plan.target.remote:
        home = Path(report.export)
    else:
        home = folder / (Path(report.local).stem + ".sqlite")
        job.reach(State.FETCHING)
        if there is None:
            there = next(iter(files_in(await job.ask("files", PATHS=report.export))), None)
        if there is None:
            job.remark("warning", "the export vanished over there")
            return
        try:
            await Fetch(job.link, job.values(), there, home, job.emit).run()
        except FetchError as error:
            job.remark("warning", f"the export did not come home: {error.title}")
            return
    if not is_sqlite(home):
        job.remark("warning", f"{home.name} is no SQLite file; the report is exported on opening")
        return
    if not job.plan.target.remote:
        home = _beside(job, report, home)
        if home.parent != Path(report.local).parent:
            _tell_reader(report, home)
    elif report.export == _name_beside(report) and not job.plan.options.get("export"):
        from nsys_tui.reader.nsys import doubt_about

        if doubt := doubt_about(home, Path(report.local)):
            job.remark("warning", "nobody asked for the .sqlite beside the report", doubt)
            return  # the reader takes it where there is no nsys, and names the doubt
    _replace(job, replace(report, sqlite=str(home), sqlite_id=_identity(home)))


async def _clean_export(job: Job, number: int) -> None:
    """Removes the folder of an export that has come home."""
    report, name = job.record.reports[number], export_name(job.record.id, number)
    if report.sqlite and posixpath.basename(posixpath.dirname(report.export)) == name:
        await job.link.ask("clean", job.values(name))


def _beside(job: Job, report: ReportFile, made: Path) -> Path:
    """Puts a local export beside its report if that folder is ours, else into the record's."""
    ours = Path(report.path).parent == Path(job.record.job_dir)
    folder = Path(job.record.job_dir) if ours else job.store.path(job.record.id)
    target = folder / made.name
    if made.parent == target.parent:
        return made
    import shutil

    shutil.move(made, target)
    return target


def _tell_reader(report: ReportFile, export: Path) -> None:
    """Lets the report be opened by its name without another export, where a link can be made."""
    from nsys_tui.reader.cache import CacheFolder, cache_at

    folder = CacheFolder(cache_at().root, "exports", report.report_id)
    with contextlib.suppress(OSError):
        os.link(export, folder.path / f"{Path(report.local).stem}.sqlite")
    folder.close()


def _replace(job: Job, report: ReportFile) -> None:
    job.update(
        reports=tuple(report if old.path == report.path else old for old in job.record.reports)
    )


def _identity(path: Path) -> str:
    from nsys_tui.reader.filecheck import report_id

    return report_id(path)


def is_sqlite(path: Path) -> bool:
    """Whether a file begins as SQLite files do."""
    try:
        with path.open("rb") as file:
            return file.read(16) == _SQLITE
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read", error.strerror or "") from error


def safe_name(path: str) -> str:
    """The last part of a remote path as a name for a file of ours."""
    return _UNSAFE.sub("_", posixpath.basename(path))[-150:].lstrip(".-") or "report.nsys-rep"


def _local_names(paths: list[str]) -> list[str]:
    """Safe names for fetched files: the remote base name where it is one, made unique."""
    names: list[str] = []
    for path in paths:
        name = safe_name(path)
        stem, ending = posixpath.splitext(name)
        number = 1
        while name in names or name in ("log", "lock", "record.json"):
            number += 1
            name = f"{stem}-{number}{ending}"
        names.append(name)
    return names
