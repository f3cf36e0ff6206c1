"""Logs packed with xz or zstd, as they are read; of one that was cut, what there is of it."""

from __future__ import annotations

import lzma
import shutil
import subprocess
from typing import IO, TYPE_CHECKING, Final

from nsys_tui.errors import UnreadableReportError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

XZ: Final = b"\xfd7zXZ\0"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
"""How the files begin."""


class Unxz:
    """An xz file as a stream of what is in it."""

    def __init__(self, raw: IO[bytes], cut_short: Callable[[], None]) -> None:
        self._raw = raw
        self._stream = lzma.LZMAFile(raw)  # noqa: SIM115
        self._cut_short = cut_short

    def __enter__(self) -> Unxz:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes, none at the end.

        Raises:
            OSError: what it holds is damaged.
        """
        try:
            return self._stream.read1(size)
        except (EOFError, lzma.LZMAError) as error:
            if isinstance(error, lzma.LZMAError) and not self._stream.tell():
                raise OSError(f"damaged xz data: {error}") from error
            self._cut_short()
            return b""


class Unzstd:
    """A zstd file, unpacked by the program ``zstd``."""

    def __init__(self, path: Path, cut_short: Callable[[], None]) -> None:
        """Starts the program.

        Raises:
            UnreadableReportError: there is no such program.
        """
        program = shutil.which("zstd")
        if program is None or str(path) == "-":
            raise UnreadableReportError(
                "a log packed with zstd needs the program zstd, and a file",
                hint="install zstd, or unpack the log: zstd -d FILE",
            )
        command = [program, "-dcq", "--", str(path)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        self._cut_short = cut_short
        self._read = 0

    def __enter__(self) -> Unzstd:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes, none at the end.

        Raises:
            OSError: what it holds is damaged.
        """
        assert self._process.stdout is not None
        piece = self._process.stdout.read(size)
        self._read += len(piece)
        if not piece and self._process.wait():
            if not self._read:
                raise OSError("damaged zstd data")
            self._cut_short()
        return piece
