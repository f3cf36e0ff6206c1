"""Following logs that grow: what they say, once more whenever one of them has changed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

from nsys_tui.errors import NoDataError
from nsys_tui.text.console import Painted

POLL_S: Final = 1.0
"""Time between two looks at the files."""
_REST: Final = 4
"""Reading takes at most one part in this many of the time and one."""
_CLEAR: Final = Painted("\x1b[2J\x1b[H")


def follow(
    paths: Sequence[str],
    read: Callable[[], int],
    wait: Callable[[float], None] = time.sleep,
) -> int:
    """Reads until Ctrl-C, at once and whenever a file has grown or was written anew.

    Args:
        paths: the files; one that does not exist yet is waited for.
        read: reads and prints; returns an exit status.
        wait: waits for some seconds.

    Returns:
        The status of the last reading; 0 where there was none.
    """
    seen: list[tuple[int, int] | None] = []
    status = 0
    try:
        while True:
            now = [_state(path) for path in paths]
            rest = POLL_S
            if now != seen and any(now):
                seen, begin = now, time.monotonic()
                if sys.stdout.isatty():
                    sys.stdout.write(_CLEAR)
                try:
                    status = read()
                except NoDataError as error:
                    print(f"nsys-tui: {error.title}, so far", file=sys.stderr)
                sys.stdout.flush()
                rest = max(rest, _REST * (time.monotonic() - begin))
            wait(rest)
    except KeyboardInterrupt:
        return status


def _state(path: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns
