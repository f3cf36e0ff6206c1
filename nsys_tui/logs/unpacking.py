"""Packed logs, unpacked as they are read; of one that was cut, what there is of it."""

from __future__ import annotations

import codecs
import lzma
import shutil
import subprocess
import zlib
from typing import IO, TYPE_CHECKING, Final

from nsys_tui.errors import UnreadableReportError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

GZIP: Final = b"\x1f\x8b"
XZ: Final = b"\xfd7zXZ\0"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
"""How the files begin."""
SAMPLE: Final = 1 << 16
"""Bytes of a packed file that are looked at together."""
_GZIP_HEADER: Final = 31
"""zlib's window bits for a stream with a gzip header."""


def gunzipped(raw: IO[bytes], size: int, cut_short: Callable[[], None]) -> Iterator[bytes]:
    """A gzip file in pieces of at most ``size`` bytes; members may follow one another.

    Raises:
        OSError: what it holds is no gzip stream.
    """
    stream = zlib.decompressobj(_GZIP_HEADER)
    left = b""
    while packed := left or raw.read(SAMPLE):
        if stream.eof:
            stream = zlib.decompressobj(_GZIP_HEADER)
        try:
            yield stream.decompress(packed, size)
        except zlib.error as error:
            raise OSError(f"damaged gzip data: {error}") from error
        left = stream.unconsumed_tail or stream.unused_data.lstrip(b"\0")
    if not stream.eof:
        cut_short()
    yield stream.flush()


def unxzed(raw: IO[bytes], size: int, cut_short: Callable[[], None]) -> Iterator[bytes]:
    """An xz file in pieces of at most ``size`` bytes.

    Raises:
        OSError: what it holds is damaged.
    """
    stream = lzma.LZMAFile(raw)  # noqa: SIM115
    try:
        while piece := stream.read1(size):
            yield piece
    except (EOFError, lzma.LZMAError) as error:
        if isinstance(error, lzma.LZMAError) and not stream.tell():
            raise OSError(f"damaged xz data: {error}") from error
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
    found = False
    try:
        while piece := process.stdout.read(size):
            found = True
            yield piece
        if process.wait():
            if not found:
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
