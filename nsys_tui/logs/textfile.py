"""A log file as blocks of whole lines: bounded memory; packed and UTF-16 ones as they come.

The only place of this room that opens files; what is no text log is refused here, by name.
"""

from __future__ import annotations

import os
import stat
import sys
import zlib
from typing import IO, TYPE_CHECKING, Final, cast

from nsys_tui.errors import UnreadableReportError
from nsys_tui.logs.grammar import ANSI
from nsys_tui.logs.unpacking import XZ, ZSTD, Unxz, Unzstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedReader
    from pathlib import Path

BLOCK_BYTES: Final = 8 << 20
LONGEST_LINE: Final = 4 << 20
"""A longer line is handed on in pieces, so that a file without line ends stays in bounds."""

_GZIP: Final = 31
"""zlib's window bits for a stream with a gzip header."""
_SAMPLE: Final = 1 << 16
_HINT: Final = "give NCCL_DEBUG output, a trainer's log or an MPI logger file as plain text"


def blocks(path: Path, cut_short: Callable[[], None] = lambda: None) -> Iterator[bytes]:
    """Yields the file as blocks that end at a line end, free of ANSI sequences.

    Args:
        path: the file; ``-`` is standard input.
        cut_short: called if it is compressed and its end is missing.

    Raises:
        UnreadableReportError: missing, no regular text, or the disk failed.
    """
    shown = repr(str(path)) if str(path) != "-" else "standard input"
    try:
        with _opened(path, shown, cut_short) as stream:
            for block in _whole_lines(stream):
                yield ANSI.sub(b"", block) if b"\x1b" in block else block
    except FileNotFoundError as error:
        raise UnreadableReportError(f"no such log: {shown}", hint="check the path") from error
    except IsADirectoryError as error:
        raise UnreadableReportError(
            f"{shown} is a folder", hint=f"name the files in it: nsys-tui logs {path}/*"
        ) from error
    except OSError as error:
        raise UnreadableReportError(
            f"cannot read {shown}", str(error), "check the file and its permissions"
        ) from error


def _opened(path: Path, shown: str, cut_short: Callable[[], None]) -> IO[bytes]:
    opened = sys.stdin.buffer if str(path) == "-" else path.open("rb", _SAMPLE)
    raw = cast("BufferedReader", opened)
    head = raw.peek(_SAMPLE)[:_SAMPLE]
    if head.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", _Inflated(raw, cut_short))
    if head.startswith(XZ):
        return cast("IO[bytes]", Unxz(raw, cut_short))
    if head.startswith(ZSTD):
        raw.close()
        return cast("IO[bytes]", Unzstd(path, cut_short))
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return cast("IO[bytes]", _Recoded(raw))
    # A log that was truncated under a writer starts with NUL where its old text was.
    if not head.strip(b"\0") and stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        return raw
    _refuse_binary(head, shown)
    return raw


def _refuse_binary(head: bytes, shown: str) -> None:
    if head.startswith(b"SQLite format 3\0"):
        raise UnreadableReportError(
            f"{shown} is a database, not a log", hint=f"open a report with: nsys-tui open {shown}"
        )
    if head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5"):
        raise UnreadableReportError(
            f"{shown} is a pickle, which would run what is in it: it is not opened",
            hint="dump PyTorch's flight recorder as JSON (_dump_nccl_trace_json)",
        )
    text = head.replace(b"\0", b"")
    if not text:
        if head:
            raise UnreadableReportError(f"{shown} holds only NUL bytes", hint=_HINT)
        return
    decoded = text.decode("utf-8", "replace")
    odd = sum(char == "�" or (char < " " and char not in "\t\n\r\x1b") for char in decoded)
    if odd > len(decoded) // 8:
        raise UnreadableReportError(f"{shown} is a binary file, not a log", hint=_HINT)


def _whole_lines(stream: IO[bytes]) -> Iterator[bytes]:
    carry = b""
    while piece := stream.read(BLOCK_BYTES):
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield carry + piece[:cut]
            carry = piece[cut:]
        else:
            carry += piece
        if len(carry) > LONGEST_LINE:
            yield carry
            carry = b""
    if carry:
        yield carry


class _Inflated:
    """A gzip file; of one that is still being written, or was cut, what there is of it."""

    def __init__(self, raw: IO[bytes], cut_short: Callable[[], None]) -> None:
        self._raw = raw
        self._cut_short = cut_short
        self._left = b""
        self._stream = zlib.decompressobj(_GZIP)

    def __enter__(self) -> _Inflated:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes, none at the end.

        Raises:
            OSError: what it holds is no gzip stream.
        """
        piece = b""
        while not piece:
            packed = self._left or self._raw.read(_SAMPLE)
            if not packed:
                if not self._stream.eof:
                    self._cut_short()
                return self._stream.flush()
            if self._stream.eof:
                self._stream = zlib.decompressobj(_GZIP)
            try:
                piece = self._stream.decompress(packed, size)
            except zlib.error as error:
                raise OSError(f"damaged gzip data: {error}") from error
            self._left = self._stream.unconsumed_tail or self._stream.unused_data.lstrip(b"\0")
        return piece


class _Recoded:
    """A UTF-16 file (what ``>`` of Windows PowerShell writes) read as UTF-8."""

    def __init__(self, raw: IO[bytes]) -> None:
        import codecs

        self._raw = raw
        self._decoder = codecs.getincrementaldecoder("utf-16")("replace")

    def __enter__(self) -> _Recoded:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def read(self, size: int) -> bytes:
        piece = self._raw.read(size)
        return self._decoder.decode(piece, not piece).encode("utf-8")
