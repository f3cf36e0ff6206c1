"""Reports that a writer left unfinished: copied away, recovered there, and never touched in place.

SQLite's own recovery writes into the database and creates files beside it. A report is the
user's, so the database and its log are copied into the cache and recovered in the copy.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import sys
import tempfile
from pathlib import Path
from typing import Final

from nsys_tui.errors import UnreadableReportError
from nsys_tui.names import visible
from nsys_tui.reader.filecheck import WAL_MODE, Header, unreadable

_JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
_WAL_HEADER_SIZE: Final = 32
_PENDING_BYTE: Final = 0x40000000
_RESERVED_BYTE: Final = _PENDING_BYTE + 1
_SHARED_FIRST: Final = _PENDING_BYTE + 2
_SHARED_SIZE: Final = 510
_ATTEMPTS: Final = 3


def left_over(path: Path, descriptor: int, header: Header) -> Path | None:
    """Finds the log that must be applied before the database is consistent.

    Args:
        path: the database with symlinks resolved, as SQLite names logs by it.
        descriptor: an open descriptor of it.
        header: its header.

    Returns:
        The path of a non-empty write-ahead log or of a hot rollback journal, else None.

    Raises:
        UnreadableReportError: another program is writing into the database at this moment.
    """
    if _locked(descriptor, _SHARED_FIRST, _SHARED_SIZE) or _locked(descriptor, _PENDING_BYTE, 1):
        hint = (
            "wait until it has finished (a running nsys export, for instance), then open it again"
        )
        raise unreadable(path, "another program is writing into it", hint)
    wal = path.with_name(path.name + "-wal")
    if header.mode == WAL_MODE and _size(wal) > _WAL_HEADER_SIZE:
        return wal
    journal = path.with_name(path.name + "-journal")
    if _size(journal) and _is_hot(path, journal) and not _locked(descriptor, _RESERVED_BYTE, 1):
        return journal
    return None


def has_log(path: Path) -> bool:
    """Whether a log lies beside a database: then its own content is not all that it holds."""
    actual = Path(os.path.realpath(path))  # Path.resolve raises over links in a circle
    return any(_size(actual.with_name(actual.name + end)) > 0 for end in ("-wal", "-journal"))


def recovered_copy(path: Path, log: Path, scratch: Path) -> Path:
    """Copies a database with its log and applies the log to the copy.

    Args:
        path: the database.
        log: its ``-wal`` or ``-journal`` file.
        scratch: an existing or new folder for the copy.

    Returns:
        The recovered database, in a new folder below ``scratch`` that the caller removes.

    Raises:
        UnreadableReportError: no room or permission, or the files keep changing.
    """
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="recovered-", dir=scratch))
    except OSError as error:
        raise _copy_failed(path, log, scratch, error) from error
    try:
        copy = folder / "report.sqlite"
        _copy_consistently(path, log, copy)
        _apply_log(copy)
    except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise _copy_failed(path, log, scratch, error) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return copy


def _copy_consistently(path: Path, log: Path, copy: Path) -> None:
    log_copy = copy.with_name(copy.name + log.name[len(path.name) :])
    for _ in range(_ATTEMPTS):
        before = _marks(path, log)
        shutil.copyfile(path, copy)
        shutil.copyfile(log, log_copy)
        if _marks(path, log) == before:
            return
    raise unreadable(
        path, "another program keeps writing into it", "open it when that has finished"
    )


def _apply_log(copy: Path) -> None:
    """Opens the copy for writing, which makes SQLite recover it, and ends its log mode."""
    connection = sqlite3.connect(copy)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    finally:
        connection.close()


def _copy_failed(path: Path, log: Path, scratch: Path, error: Exception) -> UnreadableReportError:
    reason = getattr(error, "strerror", None) or visible(str(error))
    cause = f"{log.name} beside it holds unfinished changes, and recovering a copy failed: {reason}"
    hint = f"make room or check permissions in {scratch}, or let the program that wrote it finish"
    return unreadable(path, cause, hint)


def _marks(*paths: Path) -> list[tuple[int, int]]:
    return [(status.st_size, status.st_mtime_ns) for status in map(os.stat, paths)]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _is_hot(path: Path, journal: Path) -> bool:
    try:
        with journal.open("rb") as file:
            return file.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC
    except OSError as error:
        cause = f"{journal.name} beside it may hold unfinished changes and cannot be read: {error}"
        raise unreadable(path, cause, "ask its owner for read permission on both files") from error


def _locked(descriptor: int, start: int, length: int) -> bool:
    """Asks, without taking a lock, whether another process holds a write lock on these bytes."""
    if not sys.platform.startswith("linux"):
        return False
    import fcntl

    request = struct.pack("hhqqi", fcntl.F_RDLCK, os.SEEK_SET, start, length, 0)
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, request)
    except OSError:
        return False
    return bool(struct.unpack("hhqqi", answer)[0] != fcntl.F_UNLCK)
