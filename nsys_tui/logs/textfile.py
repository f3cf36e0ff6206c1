"""A log file as blocks of whole lines: bounded memory; packed and UTF-16 ones as they come.

The only place of this room that opens files; what is no text log is refused here, by name.
"""

from __future__ import annotations

import codecs
import gzip
import json
import lzma
import os
import shutil
import stat
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import IO, Final, cast

from nsys_tui.errors import UnreadableReportError
from nsys_tui.logs.nccl.grammar import ANSI

BLOCK_BYTES: Final = 8 << 20
LONGEST_LINE: Final = 4 << 20
"""A longer line is handed on in pieces, so that a file without line ends stays in bounds."""

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
        with sys.stdin.buffer if str(path) == "-" else path.open("rb", SAMPLE) as opened:
            raw = cast("BufferedReader", opened)
            for block in _undocked(_whole_lines(_pieces(raw, path, shown, cut_short))):
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


def _pieces(
    raw: BufferedReader, path: Path, shown: str, cut_short: Callable[[], None]
) -> Iterator[bytes]:
    """The text of a file as it comes."""
    head = raw.peek(SAMPLE)[:SAMPLE]
    if head.startswith(GZIP):
        return unpacked(gzip.GzipFile(fileobj=raw), BLOCK_BYTES, cut_short)
    if head.startswith(XZ):
        return unpacked(lzma.LZMAFile(raw), BLOCK_BYTES, cut_short)
    if head.startswith(ZSTD):
        return unzstded(path, BLOCK_BYTES, cut_short)
    if head.startswith(UTF16):
        return recoded(raw, BLOCK_BYTES)
    raw.read(len(codecs.BOM_UTF8) * head.startswith(codecs.BOM_UTF8))
    # A log that was truncated under a writer starts with NUL where its old text was.
    if head.strip(b"\0") or not stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        _refuse_binary(head, shown)
    return iter(lambda: raw.read(BLOCK_BYTES), b"")


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


def _whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks of about ``BLOCK_BYTES`` that end at a line end."""
    carry = b""
    for piece in pieces:
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


def _undocked(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks of what a container wrote, where they are records of Docker's json-file driver.

    A line longer than a record goes on in the next; only its first has the time in front.
    """
    begins = True
    for block in blocks:
        if not block.startswith(DOCKER):
            yield block
            continue
        lines: list[str] = []
        for line in block.splitlines():
            try:
                record = json.loads(line)
                text, time = str(record["log"]), str(record.get("time", ""))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                lines.append(line.decode("utf-8", "replace") + "\n")
                continue
            lines.append(f"{time} {text}" if begins and time else text)
            begins = text.endswith("\n")
        yield "".join(lines).encode("utf-8", "replace")


DOCKER: Final = b'{"log":'
GZIP: Final = b"\x1f\x8b"
XZ: Final = b"\xfd7zXZ\0"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
"""How the files begin."""
SAMPLE: Final = 1 << 16
"""Bytes in which a file shows what it is."""


def unpacked(
    stream: gzip.GzipFile | lzma.LZMAFile, size: int, cut_short: Callable[[], None]
) -> Iterator[bytes]:
    """A gzip or xz file in pieces of at most ``size`` bytes.

    Raises:
        OSError: what it holds is damaged from the start.
    """
    try:
        while piece := stream.read1(size):
            yield piece
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
        if not isinstance(error, EOFError) and not stream.tell():
            raise OSError(f"damaged data: {error}") from error
        cut_short()


def unzstded(path: Path, size: int, cut_short: Callable[[], None]) -> Iterator[bytes]:
    """A zstd file in pieces of at most ``size`` bytes, unpacked by the program ``zstd``.

    Raises:
        UnreadableReportError: there is no such program.
        OSError: what it holds is damaged.
    """
    program = shutil.which("zstd")
    if program is None or str(path) == "-":
        raise UnreadableReportError(
            "a log packed with zstd needs the program zstd, and a file",
            hint="install zstd, or unpack the log: zstd -d FILE",
        )
    process = subprocess.Popen(
        [program, "-dcq", "--", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    any_frame = False
    try:
        while piece := process.stdout.read(size):
            any_frame = True
            yield piece
        if process.wait():
            if not any_frame:
                raise OSError("damaged zstd data")
            cut_short()
    finally:
        process.kill()
        process.communicate()


def recoded(raw: IO[bytes], size: int) -> Iterator[bytes]:
    """A UTF-16 file (what ``>`` of Windows PowerShell writes) as UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    while piece := raw.read(size):
        yield decoder.decode(piece).encode()
    yield decoder.decode(b"", True).encode()
