"""How and where verbs print: stdout, a file, another program's input; and notes beside that."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import textwrap
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from nsys_tui.errors import UsageError
from nsys_tui.names import visible_lines
from nsys_tui.redaction import redacted_lines
from nsys_tui.writing import refusals, whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsys_tui.model.table import Document, Table

CONSOLE: Final = "-"
STEP_SUMMARY: Final = Path("$GITHUB_STEP_SUMMARY")
"""Stands for the file that the environment names."""
DATA_FORMATS: Final = ("json", "csv", "tsv")
"""Formats for programs: nothing is cut off, and csv and tsv hold one table."""
BARRED: Final = 100
"""Cells of a terminal's line from which there is room for bars beside figures."""


@contextlib.contextmanager
def opened(destination: str, *, overwrite: bool) -> Iterator[IO[str]]:
    """A text stream to write to.

    Args:
        destination: ``-`` for stdout, ``@program arguments`` for a program's input, else a file.
        overwrite: replace a file that exists.

    Raises:
        UsageError: the file exists or cannot be written, or the program cannot be started.
    """
    if destination == CONSOLE:
        yield sys.stdout
    elif destination.startswith("@"):
        with _piped(destination[1:]) as stream:
            yield stream
    else:
        with text_file(Path(destination), overwrite=overwrite) as stream:
            yield stream


def refuse_report(path: Path) -> None:
    """Keeps reports from being written into, also where an existing file may be replaced.

    Raises:
        UsageError: the file is a report.
    """
    from nsys_tui.reader.filecheck import is_report, start_of

    if path.is_file() and path.stat().st_size and is_report(path, start_of(path)):
        raise UsageError(
            f"{path} is a report: nothing is written into it", hint="name another file"
        )


@contextlib.contextmanager
def text_file(path: Path, *, overwrite: bool) -> Iterator[IO[str]]:
    """A file to write text to; one that cannot be finished does not stay.

    Raises:
        UsageError: the file exists, is a report, or cannot be written.
    """
    if overwrite:
        refuse_report(path)
    mode = "w" if overwrite else "x"
    with whole_file(path, mode, encoding="utf-8", errors="backslashreplace") as stream:
        yield stream


@contextlib.contextmanager
def _piped(command: str) -> Iterator[IO[str]]:
    # Split into words and started without a shell: nothing of a report is ever interpreted.
    sys.stdout.flush()  # what the program prints comes after it
    try:
        words = shlex.split(command)
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, text=True, encoding="utf-8", errors="backslashreplace"
        )
    except (ValueError, IndexError) as error:
        raise UsageError(f"not a command: @{command}", hint="write -o '@less -S'") from error
    except OSError as error:
        raise UsageError(f"cannot start {words[0]}: {error.strerror}") from error
    stream = process.stdin
    assert stream is not None
    try:
        yield stream
    except BrokenPipeError:
        pass  # The program has read enough.
    finally:
        with contextlib.suppress(BrokenPipeError):
            stream.close()
        if process.wait():
            say(f"nsys-tui: {words[0]} ended with {process.returncode}")


def append_summary(path: Path, markdown: str) -> None:
    """Appends to the summary of a CI job's step, without tokens and passwords.

    Raises:
        UsageError: no file is named, or it cannot be written.
    """
    if path == STEP_SUMMARY:
        named = os.environ.get("GITHUB_STEP_SUMMARY")
        if not named:
            raise UsageError(
                "GITHUB_STEP_SUMMARY is not set", hint="name a file: --step-summary FILE"
            )
        path = Path(named)
    refuse_report(path)
    with refusals(path), path.open("a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(redacted_lines(markdown) + "\n")


def write(stream: IO[str], pieces: Iterable[str]) -> None:
    """Writes text, escaping what the stream's encoding cannot express."""
    for piece in pieces:
        try:
            stream.write(piece)
        except UnicodeEncodeError:
            encoding = getattr(stream, "encoding", None) or "ascii"
            stream.write(piece.encode(encoding, "backslashreplace").decode(encoding))


def room(stream: IO[str]) -> int | None:
    """Cells of a line where a stream goes to a terminal; None elsewhere, where lines are whole."""
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except OSError:
        return None


def in_colour(stream: IO[str]) -> bool:
    """Whether tables are painted: on terminals that know colours, unless NO_COLOR is set."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "") in ("dumb", "unknown", "")
    return stream.isatty() and not plain


def say(text: str, stream: IO[str] | None = None, end: str = "\n") -> None:
    """Prints a note for people: harmless names, lines broken at spaces to fit.

    Args:
        text: the note.
        stream: where it goes; stderr by itself.
        end: what follows.
    """
    stream = stream or sys.stderr
    cells = room(stream)
    lines = visible_lines(text).split("\n")
    for place, line in enumerate(lines):
        if cells is not None and len(line) > cells:
            line = textwrap.fill(
                line,
                cells,
                subsequent_indent="  ",
                break_long_words=False,  # a path that is broken cannot be copied
                break_on_hyphens=False,
            )
        write(stream, [line, "\n" if place < len(lines) - 1 else end])


def speaks_unicode(stream: IO[str]) -> bool:
    """Whether a stream can be sent line-drawing characters."""
    return "utf" in (getattr(stream, "encoding", None) or "").lower()


def print_tables(tables: Sequence[Table], fmt: str) -> None:
    """Prints tables one below the other to stdout; of csv and tsv only the first.

    Those have no room for its notes, which go to stderr.
    """
    from nsys_tui.text.sections import sections

    if fmt in DATA_FORMATS:
        for note in tables[0].notes:
            say(f"note: {note}")

    cells = room(sys.stdout)
    if fmt != "table" or not in_colour(sys.stdout):
        write(sys.stdout, sections(tables, fmt, cells))
        return
    bars = cells is not None and cells >= BARRED and speaks_unicode(sys.stdout)
    print_painted(sections(tables, fmt, cells, bars=bars))


def print_painted(pieces: Iterable[str]) -> None:
    """Prints tables for people to stdout, in colour where that is a terminal that knows colours."""
    if in_colour(sys.stdout):
        from nsys_tui.text.paint import painted

        pieces = painted(pieces)
    write(sys.stdout, pieces)


def print_document(
    document: Document,
    answer: Any,
    shared: Any = None,
    *notes: Iterable[object],
    only: Sequence[str] | None = None,
) -> None:
    """Prints a result as JSON; see ``documents.document_text``."""
    from nsys_tui.text.documents import document_text

    write(sys.stdout, document_text(document, answer, shared, chain(*notes), only))


def write_table(table: Table, fmt: str, destination: str, *, overwrite: bool) -> None:
    """Writes one table; see ``opened``.

    Raises:
        UsageError: the file exists or cannot be written, or pyarrow is needed and missing.
    """
    if fmt == "parquet" and destination != CONSOLE:
        from nsys_tui.export.tables import write_parquet

        refuse_report(Path(destination))
        write_parquet(table, Path(destination), overwrite=overwrite)
        return
    from nsys_tui.text.tables import chunks

    with opened(destination, overwrite=overwrite) as stream:
        write(stream, chunks(table, fmt))
