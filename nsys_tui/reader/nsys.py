"""From nsys's own report format to SQLite: decide whether to export, and run nsys.

Nothing is written beside the report; exports go into the cache folder. What the export holds is
no business of this module, but for this: whether a ``.sqlite`` beside a report is its export. nsys
itself reuses any file of the right name, and shows old figures after a second capture so named.
"""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from nsys_tui.errors import NsysMissingError, UnreadableReportError, UsageError
from nsys_tui.model.progress import Progress, silent
from nsys_tui.reader.cache import Cache, CacheFolder, cache_at, evict
from nsys_tui.reader.filecheck import (
    SQLITE_MAGIC,
    is_nsys_report,
    not_sqlite,
    report_id,
    start_of,
    unreadable,
)
from nsys_tui.reader.find_nsys import all_nsys
from nsys_tui.reader.schema import METADATA_TABLES
from nsys_tui.reader.sqlite import Database

_INPUT_KEYS: Final = ("EXPORT_PARAM_INPUT_FILE", "EXPORT_INPUT_FILE")
_NS: Final = 1_000_000_000
_COPY_SECONDS: Final = 10


def doubt_about(sqlite: Path, report: Path, scratch: Path | None = None) -> str | None:
    """Finds a reason not to trust an export.

    It is trusted if it names the report as its input and was made after the session it holds
    began. A report that was written well after its export is in doubt as well, unless the time
    of the export is later still: somebody captured again under the same name.

    Args:
        sqlite: the ``.sqlite`` beside the report.
        report: the ``.nsys-rep`` or ``.qdrep``.
        scratch: folder for a copy of an export that a writer left unfinished; by default in the
            user's cache folder.

    Returns:
        The reason in a few words, or None.
    """
    try:
        with Database.open(sqlite, scratch) as db:
            metadata = export_metadata(db)
            starts = db.select("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))
    except UnreadableReportError as error:
        return f"{sqlite.name} is unreadable: {error.message}"
    source = next((metadata[key] for key in _INPUT_KEYS if key in metadata), None)
    if source is None:
        return f"{sqlite.name} does not say which report it was exported from"
    if re.split(r"[/\\]", source)[-1] != report.name:
        return f"{sqlite.name} was exported from another report"
    exported = _seconds_utc(metadata.get("EXPORT_TIME_UTC", ""))
    if exported is None:
        return f"{sqlite.name} does not say when it was exported"
    if any(type(start) is int and exported < start // _NS for (start,) in starts):
        return f"{sqlite.name} was exported before the session began"
    written, beside = report.stat().st_mtime, sqlite.stat().st_mtime
    if written > max(exported, beside) + _COPY_SECONDS:
        return f"{report.name} was written after {sqlite.name} was exported"
    return None


def export_metadata(db: Database) -> dict[str, str]:
    """Reads what the exporter noted about itself; empty for exports before 2022."""
    rows = [row for table in METADATA_TABLES for row in db.select(table, ("name", "value"))]
    return {str(name): str(value) for name, value in rows if name is not None}


def _seconds_utc(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


_PAYLOADS: Final = ("--include-json", "true", "--include-blobs", "true")
_PERCENT: Final = re.compile(rb"(\d{1,3})\s*%")
_TICK_SECONDS: Final = 0.2
_GRACE_SECONDS: Final = 5.0
_KEPT_OUTPUT: Final = 4000


@dataclass(frozen=True)
class Exported:
    """A SQLite file to open in place of what the user named."""

    path: Path
    stale_reason: str | None = None
    """Why it may not be the export of that report; None if it is."""
    folder: CacheFolder | None = field(default=None, repr=False, compare=False)
    """Keeps an export in the cache from being evicted while this object lives."""


def ensure_sqlite(
    path: Path,
    nsys: str | None = None,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> Exported:
    """Finds or makes the SQLite export of what the user named.

    A SQLite file is returned as it is. For an nsys report, in this order: a trusted ``.sqlite``
    beside it, an earlier export in the cache, a fresh export into the cache, and without nsys a
    doubtful ``.sqlite`` beside it with the reason for the doubt.

    Args:
        path: a ``.sqlite``, ``.nsys-rep`` or ``.qdrep`` file.
        nsys: the user's nsys, see ``find_nsys``.
        progress: told percents; ``CancelledError`` raised in it ends nsys and leaves nothing.
        cache: where exports are kept; by default the user's cache folder.

    Raises:
        UnreadableReportError: the file is none of these, or nsys cannot export it.
        NsysMissingError: an export is needed and there is no nsys that runs.
        CancelledError: raised by ``progress``.
    """
    path = Path(path)
    start = start_of(path)
    if start.startswith(SQLITE_MAGIC):
        return Exported(path)
    if not is_nsys_report(path, start):
        raise not_sqlite(path, start)
    cache = cache or cache_at()
    beside = path.with_suffix(".sqlite")
    doubt: str | None = "there is no .sqlite beside it"
    if beside.is_file():
        doubt = doubt_about(beside, path, cache.copies)
    if doubt is None:
        return Exported(beside)
    folder = _cached(path, cache)
    cached = folder.path / f"{path.stem}.sqlite"
    if cached.is_file():
        return Exported(cached, folder=folder)
    if export_newest(path, cached, nsys, progress):
        evict(*cache)
        return Exported(cached, folder=folder)
    if _opens(beside, cache.copies):
        return Exported(beside, doubt)
    raise _nsys_missing(path, nsys)


def export_at(
    path: Path, target: Path | None, nsys: str | None, cache: Cache, *, anew: bool
) -> Path:
    """Where the export of a report is, made there if it is missing or to be made anew.

    Raises:
        UsageError: a file beside a SQLite file was asked for.
        UnreadableReportError: the file is no report, or nsys cannot export it.
        NsysMissingError: there is no nsys that runs.
    """
    start = start_of(path)
    if start.startswith(SQLITE_MAGIC):
        if target is not None:
            raise UsageError(
                f"{path} is an export already", hint="name its .nsys-rep, or leave --sqlite out"
            )
        return path
    if not is_nsys_report(path, start):
        raise not_sqlite(path, start)
    output = target or _cached(path, cache).path / f"{path.stem}.sqlite"
    if (anew or not output.is_file()) and not export_newest(path, output, nsys):
        raise _nsys_missing(path, nsys)
    return output


def _cached(path: Path, cache: Cache) -> CacheFolder:
    return CacheFolder(cache.root, "exports", report_id(path), cache.limit)


def export_newest(
    report: Path, target: Path, nsys: str | None = None, progress: Progress | None = None
) -> bool:
    """Exports a report with the newest nsys that can read it.

    Args:
        report: a ``.nsys-rep`` or ``.qdrep`` file.
        target: the file to make.
        nsys: the user's choice, see :func:`all_nsys`.
        progress: told percents; may raise ``CancelledError``.

    Returns:
        Whether there is an nsys here at all.

    Raises:
        UnreadableReportError: none can read it; what the newest said.
        NsysMissingError: none can be run.
    """
    failed: UnreadableReportError | NsysMissingError | None = None
    for executable in all_nsys(nsys):
        try:
            export(executable, report, target, progress or silent)
            return True
        except (UnreadableReportError, NsysMissingError) as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return False


def export(nsys: Path, report: Path, target: Path, progress: Progress) -> None:
    """Exports a report to SQLite, whole or not at all.

    Args:
        nsys: the executable.
        report: a ``.nsys-rep`` or ``.qdrep`` file.
        target: the file to make.
        progress: told percents; may raise ``CancelledError``.

    Raises:
        UnreadableReportError: nsys failed, with its last words, or there is no room.
        NsysMissingError: nsys cannot be run.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
    except OSError as error:
        raise _no_room(report, target, error) from error
    try:
        made = folder / target.name
        status, output = _run(_command(nsys, report, made, _PAYLOADS), report.name, progress)
        if status != 0 and "include-" in output:
            status, output = _run(_command(nsys, report, made), report.name, progress)
        if "disk is full" in output:  # of which nsys exports nothing, and ends with 0
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if status != 0 or not made.is_file():
            raise _export_failed(report, f"{nsys} export ended with status {status}", output)
        if not _opens(made):
            raise _export_failed(report, f"{nsys} export made no usable database", output)
        os.replace(made, target)
    except OSError as error:
        raise _no_room(report, target, error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _command(nsys: Path, report: Path, made: Path, options: Sequence[str] = ()) -> list[str]:
    to = ["--type", "sqlite", "--force-overwrite", "true", "--output", str(made)]
    return [str(nsys), "export", *to, *options, str(report.absolute())]


def _run(command: Sequence[str], name: str, progress: Progress) -> tuple[int, str]:
    """Runs nsys, reporting its percents at least every tick.

    Returns:
        Exit status and the end of its output.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        cause = f"it cannot be run: {error.strerror or error}"
        hint = "name a working nsys with --nsys PATH"
        raise NsysMissingError(f"cannot export with {command[0]}", cause, hint) from error
    output, percent = b"", 0
    try:
        for piece in _pieces(process):
            output = (output + piece)[-_KEPT_OUTPUT:]
            shown = _PERCENT.findall(output)
            percent = min(100, int(shown[-1])) if shown else percent
            progress(f"exporting {name}", percent, 100)
        return process.wait(), output.decode("utf-8", "replace")
    finally:
        _end(process)


def _pieces(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """Yields output as it comes, and nothing (``b""``) whenever a tick passes in silence."""
    stream = process.stdout
    if stream is None:
        return
    pieces: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def pump() -> None:
        with contextlib.suppress(OSError, ValueError):
            while piece := os.read(stream.fileno(), 4096):
                pieces.put(piece)

    threading.Thread(target=pump, name="nsys-output", daemon=True).start()
    while True:
        try:
            yield pieces.get(timeout=_TICK_SECONDS)
        except queue.Empty:
            if process.poll() is not None:
                return
            yield b""


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends nsys and what it started, gently first."""
    for strength in ("SIGTERM", "SIGKILL"):
        if process.poll() is not None:
            break
        _signal(process, strength)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
    if process.stdout is not None:
        process.stdout.close()


def _signal(process: subprocess.Popen[bytes], name: str) -> None:
    if sys.platform == "win32":
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, getattr(signal, name))


def _opens(path: Path, scratch: Path | None = None) -> bool:
    try:
        Database.open(path, scratch).close()
    except UnreadableReportError:
        return False
    return True


def _nsys_missing(path: Path, explicit: str | None) -> NsysMissingError:
    named = explicit and explicit != "auto"
    cause = f"no nsys at {explicit}" if named else "no nsys on PATH or in the install folders"
    hint = (
        "on a machine with Nsight Systems, at least as new as the one that recorded the report:\n"
        f"  nsys export --type sqlite --output {shlex.join([f'{path.stem}.sqlite', path.name])}\n"
        "then open the .sqlite, or name an nsys here with --nsys PATH"
    )
    return NsysMissingError(f"{path} must be exported to SQLite first", cause, hint)


def _export_failed(report: Path, what: str, output: str) -> UnreadableReportError:
    words = [line.strip() for line in re.split(r"[\r\n]+", output) if line.strip()]
    hint = "if the report was recorded by a newer nsys, export it with that one or a newer one"
    return unreadable(report, "\n".join([what, *words[-4:]]), hint)


def _no_room(report: Path, target: Path, error: OSError) -> UnreadableReportError:
    cause = f"its export cannot be written into {target.parent}: {error.strerror or error}"
    return unreadable(report, cause, "make room there, or set NSYS_TUI_CACHE to another folder")
