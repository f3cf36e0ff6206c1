"""Derived data in the user's cache folder; losing it costs time and nothing else.

Each report has a folder of its own with flat column files, memory-mapped when read. What is
stored there is decided elsewhere. Nothing here raises because a disk is full or read-only.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import platformdirs

from nsys_tui.reader.column_files import Arrays, mapped, verify, whole, write_part
from nsys_tui.reader.filecheck import hash_of_ends

READER_VERSION: Final = 25
"""Raised whenever the meaning of stored parts changes; older parts are then never found."""

SIZE_LIMIT: Final = 10 * 10**9
"""Bytes that all cached reports together may take, unless ``NSYS_TUI_CACHE_LIMIT`` says more."""

SLACK: Final = 20
"""The cache may pass its limit by one part in so many before it is looked through again."""

_ENDS: Final = 64 << 10
_MIB: Final = 1 << 20
_LOCK_NAME: Final = "in-use"
_GROWN: Final[dict[tuple[str, int], int]] = {}
"""Bytes that this process added to a cache with a limit since it last looked through it."""
_PART_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
_KINDS: Final = frozenset({"reports", "exports"})


def cache_root() -> Path:
    """The folder for everything that can be made again; ``NSYS_TUI_CACHE`` overrides it."""
    return Path(os.environ.get("NSYS_TUI_CACHE") or platformdirs.user_cache_dir("nsys-tui"))


def size_limit() -> int:
    """Bytes that the cache may take; a bad value in the environment means the default."""
    given = os.environ.get("NSYS_TUI_CACHE_LIMIT", "")
    return int(given) if given.isdigit() else SIZE_LIMIT


class Cache(NamedTuple):
    """Where everything that can be made again is kept, and how many bytes it may take."""

    root: Path
    limit: int

    @property
    def copies(self) -> Path:
        """Where reports that a writer left unfinished are recovered."""
        return self.root / "copies"


def cache_at(folder: str = "", limit: int | None = None) -> Cache:
    """The cache in a folder of the user's choice; what is not chosen is as usual."""
    root = Path(folder).expanduser() if folder else cache_root()
    return Cache(root, size_limit() if limit is None else limit)


class CacheFolder:
    """A folder of the cache that is in use, and so not evicted, as long as this object lives."""

    def __init__(self, root: Path, kind: str, key: str, limit: int | None = None) -> None:
        """Claims the folder, creating it if that is possible.

        Args:
            root: the cache folder.
            kind: ``reports`` or ``exports``.
            key: the folder's name.
            limit: bytes that the cache may take, by default the user's setting.
        """
        self.root = root
        self._limit = limit
        self.path = root / kind / key
        with contextlib.suppress(OSError):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / _LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
            self._release = weakref.finalize(self, os.close, lock)
            os.utime(self.path / _LOCK_NAME)
            _lock(lock, exclusive=False)

    def grew(self, size: int) -> None:
        """Keeps the cache to its limit after some bytes were written.

        All its folders are looked through when this process first adds to it, later only after
        many bytes, of whatever reports: at a thousand of them that takes 70 ms, and as often as
        there are reports it makes a fleet's time grow with their square.
        """
        limit = size_limit() if self._limit is None else self._limit
        key = os.fspath(self.root), limit
        grown = _GROWN.get(key, limit) + size
        if grown > limit // SLACK:
            evict(self.root, limit)
            grown = 0
        _GROWN[key] = grown

    def close(self) -> None:
        """Gives the folder free for eviction; arrays mapped from it stay valid."""
        release = getattr(self, "_release", None)
        if release is not None:
            release()


@dataclass(frozen=True)
class Sidecar:
    """What was derived from one report: named parts of arrays and JSON metadata."""

    folder: CacheFolder

    @classmethod
    def for_report(
        cls, descriptor: int, root: Path | None = None, limit: int | None = None
    ) -> Sidecar:
        """Finds the folder of a report, present or not.

        A report that was changed, replaced or copied has another key, and so has another
        version of the reader.

        Args:
            descriptor: the open ``.sqlite`` file; its name may mean another file by now.
            root: cache folder instead of the user's.
            limit: bytes that it may take, by default the user's setting.
        """
        status = os.fstat(descriptor)
        marks = (status.st_size, status.st_mtime_ns, status.st_ino, READER_VERSION)
        key = hash_of_ends(descriptor, status.st_size, _ENDS, repr(marks).encode())
        return cls(CacheFolder(root or cache_root(), "reports", key, limit))

    def has(self, part: str) -> bool:
        """Whether a part is stored, be it damaged."""
        return self._file(part).exists()

    def load(self, part: str) -> tuple[Arrays, dict[str, Any]] | None:
        """Maps a stored part.

        Returns:
            Read-only arrays and their metadata; None if absent, damaged in any bit, of another
            version, or stored for another report or as another part.
        """
        path, name = self._file(part), self._name(part)
        try:
            arrays, header = mapped(path, name)
            verify(arrays, header)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return whole(arrays, header), header["meta"]

    def store(
        self, part: str, arrays: Arrays, meta: Mapping[str, Any]
    ) -> tuple[Arrays, dict[str, Any]] | None:
        """Stores a part, whole or not at all, and trims the cache to its limit.

        Args:
            part: a plain file name.
            arrays: arrays of numbers of any shape. Each is taken out of the dictionary once it is
                written, so that its memory serves the file's pages: held twice, 5 M operations
                cost 350 MB more and, where memory is new to the machine, a second.
            meta: what JSON can hold.

        Returns:
            The stored part, mapped. What was given where there is no room for it or no folder;
            None where the disk failed meanwhile, and the part has to be made again.
        """
        path, name = self._file(part), self._name(part)
        size = sum(array.nbytes for array in arrays.values())
        if not _room_for(path.parent, size):
            return arrays, dict(meta)
        try:
            with _replacing(path) as file:
                write_part(file, name, arrays, meta)
            stored, header = mapped(path, name)
        except (OSError, ValueError):
            return None
        self.folder.grew(size)
        return whole(stored, header), header["meta"]

    def close(self) -> None:
        """Gives the report's folder free for eviction; mapped arrays stay valid."""
        self.folder.close()

    def _name(self, part: str) -> str:
        return f"{self.folder.path.name}/{part}"

    def _file(self, part: str) -> Path:
        if not _PART_NAME.fullmatch(part):
            raise ValueError(f"not a plain name for a part: {part!r}")
        return self.folder.path / f"{part}.columns"


def evict(root: Path, limit: int | None = None) -> list[Path]:
    """Removes the least recently opened folders until the cache fits its limit.

    Args:
        root: the cache folder.
        limit: bytes that may stay, by default the user's setting.

    Returns:
        The removed folders; those in use by any process are never among them.
    """
    folders = [path for kind in sorted(_KINDS) for path in _subfolders(root / kind)]
    sizes = {path: _folder_size(path) for path in folders}
    excess = sum(sizes.values()) - (size_limit() if limit is None else limit)
    removed = []
    for path in sorted(folders, key=_last_use):
        if excess <= 0:
            break
        if _remove_unused(path):
            excess -= sizes[path]
            removed.append(path)
    return removed


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """Opens a temporary file that takes ``path``'s place once it is safely on disk."""
    descriptor, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _room_for(folder: Path, size: int) -> bool:
    """Whether a folder is there, or can be, on a disk with so many bytes free."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return shutil.disk_usage(folder).free > size + _MIB and os.access(folder, os.W_OK)
    except OSError:
        return False


def _subfolders(path: Path) -> list[Path]:
    try:
        return [entry for entry in path.iterdir() if entry.is_dir() and not entry.is_symlink()]
    except OSError:
        return []


def _folder_size(path: Path) -> int:
    total = 0
    for file in path.rglob("*"):
        with contextlib.suppress(OSError):
            total += file.lstat().st_size
    return total


def _last_use(path: Path) -> int:
    for candidate in (path / _LOCK_NAME, path):
        with contextlib.suppress(OSError):
            return candidate.stat().st_mtime_ns
    return 0


def _remove_unused(path: Path) -> bool:
    """Removes a folder unless some process has claimed it."""
    try:
        descriptor = os.open(path / _LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return False
    try:
        _lock(descriptor, exclusive=True)
        shutil.rmtree(path)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _lock(descriptor: int, exclusive: bool) -> None:
    """Locks without waiting; a lock that is taken raises ``OSError``.

    Where ``flock`` does not exist (Windows), an open file cannot be removed anyway.
    """
    if sys.platform == "win32":
        return
    import fcntl

    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
