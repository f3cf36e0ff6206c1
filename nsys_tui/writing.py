"""Files of ours that are replaced at one stroke: a crash leaves the old one or the new one."""

from __future__ import annotations

import os
from pathlib import Path


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
