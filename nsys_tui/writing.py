"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from nsys_tui.errors import UsageError


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Says of a file that cannot be written which it is, why, and what to do."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"cannot write {path}: {why}", hint="name another place") from error


@contextmanager
def whole_file(
    path: Path, mode: str, *, taken: str = "--force-overwrite replaces it", **options: str
) -> Iterator[Any]:
    """A file to write; one that cannot be finished does not stay.

    Raises:
        UsageError: it is there where the mode is for a new one, for which ``taken`` is the hint,
            or it cannot be written.
    """
    with refusals(path):
        try:
            file: IO[Any] = path.open(mode, **options)  # type: ignore[call-overload]
        except FileExistsError as error:
            raise UsageError(f"{path} exists already", hint=taken) from error
        try:
            with file:
                yield file
        except BaseException:
            with suppress(OSError):
                if path.is_file():
                    path.unlink()
            raise


def write_whole(path: Path, text: str, mode: int = 0o600) -> None:
    """Puts a new file in place of the old one, and has the disk keep it; its folder is made.

    Args:
        path: of the file; a link is followed by whoever calls.
        text: what it is to hold.
        mode: its rights.
    """
    path.parent.mkdir(mode=0o700 if mode == 0o600 else 0o777, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.chmod(mode)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
