"""What a file is before anyone trusts it: its kind, its SQLite header, whether it is whole.

Everything here reads a few bytes through one descriptor and explains in plain words why a file
cannot be opened as a report. Tables and rows are no business of this module.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nsys_tui.errors import UnreadableReportError

SQLITE_MAGIC: Final = b"SQLite format 3\0"
HEADER_SIZE: Final = 100
WAL_MODE: Final = 2

_FOREIGN_STARTS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"\xfd7zXZ\0", "xz-compressed data"),
    (b"BZh", "bzip2-compressed data"),
    (b"\x89PNG", "a PNG picture"),
    (b"\x89HDF", "an HDF5 file"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"\x7fELF", "a program"),
    (b"QDSTRM", "a raw nsys stream"),
)
_REPORT_MAGIC: Final = b"NVIDIA Tegra Profiler Report"
_MIB: Final = 1 << 20
_NAMED: Final = 5
"""Reports of a folder that a hint names."""
_REPORT_SUFFIXES: Final = frozenset({".nsys-rep", ".qdrep"})
_EXPORT_HINT: Final = (
    "open the .nsys-rep itself, or export it: nsys export --type sqlite REPORT.nsys-rep"
)


@dataclass(frozen=True)
class Header:
    """The fields of SQLite's 100-byte file header that a reader needs."""

    page_size: int
    """Bytes in a page, a power of two from 512 to 65536."""
    reserved: int
    """Bytes at the end of each page that hold no content."""
    mode: int
    """``WAL_MODE``, or 1 for a rollback journal."""
    page_count: int
    """Pages in the file by the header, or 0 where the header cannot be relied on."""
    utf8: bool
    """Whether texts are stored as UTF-8."""

    @property
    def usable(self) -> int:
        """Bytes of a page that can hold content."""
        return self.page_size - self.reserved


@dataclass(frozen=True)
class Stamp:
    """What is compared before and after reading, to notice that somebody wrote meanwhile."""

    size: int
    mtime_ns: int
    change_counter: bytes
    """Header bytes 24-27; they change when a writer commits."""


def unreadable(path: Path, cause: str, hint: str = "") -> UnreadableReportError:
    """Makes the error for a file that is no usable report; the title names the file."""
    return UnreadableReportError(f"cannot read {path}", cause, hint)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Explains what a disk or a network that fails says about a file that is open already.

    Raises:
        UnreadableReportError: instead of ``OSError``.
    """
    try:
        yield
    except OSError as error:
        hint = "check the disk or the network it lies on, or copy the report elsewhere"
        raise unreadable(path, error.strerror or str(error), hint) from error


def _reports_in(folder: Path) -> str:
    """The hint for a folder: its first reports, or that there is none."""
    suffixes = (".sqlite", *_REPORT_SUFFIXES)
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(suffixes))
    except OSError as error:
        return f"what is in it cannot be seen: {error.strerror}"
    if not names:
        return "there is no report in it: name a .sqlite or .nsys-rep file"
    more = ", …" if len(names) > _NAMED else ""
    return f"name a report file in it: {', '.join(names[:_NAMED])}{more}"


def open_descriptor(path: Path) -> int:
    """Opens a regular file for reading, without following it into a device or a pipe.

    Returns:
        A descriptor that the caller closes.

    Raises:
        UnreadableReportError: missing, a folder, no regular file, no permission.
    """
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise unreadable(path, "it is a folder", _reports_in(path))
        if not stat.S_ISREG(mode):
            raise unreadable(path, "it is no regular file", "copy the report into a file first")
        return os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError as error:
        raise unreadable(path, "there is no such file", "check the path") from error
    except PermissionError as error:
        hint = "ask its owner for read permission, or copy it to a place of your own"
        raise unreadable(path, "permission denied", hint) from error
    except (OSError, ValueError) as error:
        raise unreadable(
            path, getattr(error, "strerror", None) or str(error), "check the path"
        ) from error


def read_at(descriptor: int, count: int, offset: int) -> bytes:
    """Reads up to ``count`` bytes at ``offset`` without moving a shared file position."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, count, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, count)


def start_of(path: Path) -> bytes:
    """Reads the first bytes of a file.

    Raises:
        UnreadableReportError: there is no such readable file, or nothing in it.
    """
    descriptor = open_descriptor(path)
    try:
        with reading(path):
            start = read_at(descriptor, HEADER_SIZE, 0)
    finally:
        os.close(descriptor)
    if not start:
        raise _empty(path)
    return start


def is_nsys_report(path: Path, start: bytes) -> bool:
    """Tells whether a file that is not SQLite should be given to nsys, by name or by content."""
    return path.suffix.lower() in _REPORT_SUFFIXES or start.startswith(_REPORT_MAGIC)


def is_report(path: Path, start: bytes) -> bool:
    """Tells whether a file is a SQLite database or an nsys report, whole or not."""
    return start.startswith(SQLITE_MAGIC) or is_nsys_report(path, start)


def read_into(descriptor: int, target: memoryview, offset: int) -> bool:
    """Fills ``target`` from ``offset``, likewise; False where the file ends before that."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [target], offset) == len(target)
    size = read_at(descriptor, len(target), offset)
    target[: len(size)] = size
    return len(size) == len(target)


def read_header(path: Path, descriptor: int) -> Header:
    """Reads and checks the header of a SQLite file.

    Args:
        path: the file's name, for messages.
        descriptor: an open descriptor of it.

    Raises:
        UnreadableReportError: empty, not SQLite, or cut off within the header; says which,
            and what to do.
    """
    start = read_at(descriptor, HEADER_SIZE, 0)
    if not start:
        raise _empty(path)
    if not start.startswith(SQLITE_MAGIC):
        raise not_sqlite(path, start)
    if len(start) < HEADER_SIZE:
        raise _cut_off(path, f"it ends after {len(start)} bytes, inside the file header")
    header = _parse(start)
    if header.page_size < 512 or header.page_size & (header.page_size - 1):
        raise unreadable(path, "its SQLite header is damaged", "export or copy the report again")
    return header


def require_whole(path: Path, descriptor: int, header: Header) -> None:
    """Compares a database's size with what its header promises.

    Raises:
        UnreadableReportError: the file is cut off.
    """
    size = os.fstat(descriptor).st_size
    expected = header.page_count * header.page_size
    if size < expected:
        raise _cut_off(path, f"it has {size:,} of {expected:,} bytes")
    if not expected and size % header.page_size:
        raise _cut_off(path, f"its size of {size:,} bytes is no whole number of pages")


def stamp(descriptor: int) -> Stamp:
    """Takes the marks by which a later look tells whether the file changed."""
    status = os.fstat(descriptor)
    return Stamp(status.st_size, status.st_mtime_ns, read_at(descriptor, 4, 24))


def not_sqlite(path: Path, start: bytes) -> UnreadableReportError:
    """Explains what a file that is not SQLite seems to be.

    Args:
        path: the file.
        start: its first bytes.
    """
    suffix = path.suffix.lower()
    if suffix == ".qdstrm":
        cause = "it is a raw stream that nsys has not turned into a report yet"
        hint = (
            "run QdstrmImporter (it comes with the nsys that recorded it) on the machine of the "
            "capture, then open the .nsys-rep"
        )
        return unreadable(path, cause, hint)
    if is_nsys_report(path, start):
        return unreadable(path, "it is an nsys report in NVIDIA's own format", _EXPORT_HINT)
    kind = kind_of(start)
    hint = f"{_EXPORT_HINT}; nsys-tui logs reads logs" if kind == "text" else _EXPORT_HINT
    return unreadable(path, f"it is {kind}, not a SQLite export of nsys", hint)


def kind_of(start: bytes) -> str:
    """Names what a file's first bytes look like, such as ``a PNG picture`` or ``text``."""
    for magic, name in _FOREIGN_STARTS:
        if start.startswith(magic):
            return name
    if not any(start):
        return "filled with zeros"
    if all(byte in b"\t\n\r\f\x1b" or byte >= 32 for byte in start):
        return "text"
    return "of an unknown or encrypted format"


def _parse(start: bytes) -> Header:
    stored_size = int(struct.unpack_from(">H", start, 16)[0])
    pages, valid_for = struct.unpack_from(">I", start, 28)[0], start[92:96]
    return Header(
        page_size=65536 if stored_size == 1 else stored_size,
        reserved=start[20],
        mode=max(start[18], start[19]),
        page_count=int(pages) if valid_for == start[24:28] else 0,
        utf8=struct.unpack_from(">I", start, 56)[0] in (0, 1),
    )


def _empty(path: Path) -> UnreadableReportError:
    return unreadable(path, "the file is empty (0 bytes)", "export or copy the report again")


def _cut_off(path: Path, cause: str) -> UnreadableReportError:
    return unreadable(path, f"the file is cut off: {cause}", "copy or export the report again")


def report_id(path: Path) -> str:
    """Identifies a report by content: blake2b of its size, first MiB and last MiB, in hex.

    Raises:
        UnreadableReportError: the file cannot be read.
    """
    descriptor = open_descriptor(path)
    try:
        size = os.fstat(descriptor).st_size
        return hash_of_ends(descriptor, size, _MIB, size.to_bytes(8, "little"))
    finally:
        os.close(descriptor)


def hash_of_ends(descriptor: int, size: int, end_size: int, seed: bytes) -> str:
    """Blake2b of a file's first and last bytes, after a seed, in hex."""
    digest = hashlib.blake2b(seed, digest_size=16)
    digest.update(read_at(descriptor, end_size, 0))
    digest.update(read_at(descriptor, end_size, max(0, size - end_size)))
    return digest.hexdigest()
