"""One pass over one file: every line is counted and handed to whoever understands it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.logs.bodies import CallTexts, find_bodies
from nsys_tui.logs.grammar import LONGEST_HEAD, MAX_MESSAGE
from nsys_tui.logs.heads import NO_TIME, Head, Heads, Processes
from nsys_tui.logs.messages import Messages, Place, wanted
from nsys_tui.logs.mpi import MpiCall, parse_mpi
from nsys_tui.logs.textfile import blocks
from nsys_tui.logs.trainers import TrainerLines

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_LEVELS: Final = (b"NCCL WARN ", b"NCCL CALL ", b"NCCL TRACE ", b"NCCL ABORT ")


@dataclass(slots=True)
class Scan:
    """What one file holds, in the file's own line numbers."""

    path: str
    file: int
    messages: Messages = field(default_factory=Messages)
    chunks: list[dict[str, NDArray[Any]]] = field(default_factory=list)
    trainer: TrainerLines = field(init=False)
    mpi: list[MpiCall] = field(default_factory=list)
    lines: int = 0
    header_lines: int = 0
    inner_headers: int = 0
    torn_lines: int = 0
    cut_lines: int = 0
    torn_mpi_lines: int = 0
    timed: bool = False
    mentions_debug_time: bool = False


class Scanner:
    """Reads files one after another into ``Scan`` objects that share their codes."""

    def __init__(self, processes: Processes, texts: CallTexts, flops_per_token: int | None) -> None:
        self._processes = processes
        self._texts = texts
        self._flops_per_token = flops_per_token

    def scan(self, path: Path, file: int) -> Scan:
        """Reads one file.

        Raises:
            UnreadableReportError: the file cannot be read or is no text.
        """
        scan = Scan(str(path), file)
        scan.trainer = TrainerLines(file, self._flops_per_token)
        heads = Heads(self._processes)
        ended = True
        for data in blocks(path):
            # A piece of a line that was too long continues the line of the piece before.
            first = scan.lines + 1 if ended else scan.lines
            self._block(scan, data, first, heads)
            ended = data.endswith(b"\n")
        return scan

    def _block(self, scan: Scan, data: bytes, first: int, heads: Heads) -> None:
        ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
        starts = np.concatenate(([0], ends + 1))
        if data.endswith(b"\n"):
            starts = starts[:-1]
        else:
            ends = np.append(ends, len(data))
        scan.mentions_debug_time |= _mentions_debug_time(data)

        bodies = find_bodies(data, starts, heads, self._texts)
        line = bodies.columns["line"]
        self._count(scan, bodies.heads, bodies.head, line, bodies.columns["torn"])
        scan.timed |= bool((bodies.columns["time_ns"] != NO_TIME).any())
        for at, text in bodies.leftovers:
            self._foreign(scan, text, at + first, glued=True)
        other = np.ones(len(starts), dtype=np.bool_)
        other[line] = False
        for at in np.flatnonzero(other).tolist():
            begin = int(starts[at])
            text = data[begin : min(int(ends[at]), begin + LONGEST_HEAD)]
            self._line(scan, text, at + first, heads)
        bodies.columns["line"] = line + first
        scan.chunks.append(bodies.columns)
        scan.lines = first + len(starts) - 1

    def _count(
        self,
        scan: Scan,
        heads: list[Head],
        head: NDArray[np.intp],
        line: NDArray[np.int64],
        torn: NDArray[np.bool_],
    ) -> None:
        """Counts the lines that hold bodies, each once."""
        _, once = np.unique(line, return_index=True)
        lines_of = np.bincount(head[once], minlength=len(heads))
        for one, count in zip(heads, lines_of.tolist(), strict=True):
            scan.header_lines += count * (one.headers > 0)
            scan.inner_headers += count * (one.column > 0)
            if one.process >= 0:
                self._processes.seen[one.process].lines += count
        scan.torn_lines += len(np.unique(line[torn]))

    def _line(self, scan: Scan, text: bytes, number: int, heads: Heads) -> None:
        at = _level_at(text) if b"NCCL " in text else -1
        if at < 0:
            if b": opCount " in text and b"sendbuff" in text:
                scan.torn_lines += 1
            elif b"CCL version" in text:
                place = Place(scan.file, number, -1, -1, -1)
                scan.messages.add(_NOBODY, place, text.decode("utf-8", "replace"), False)
            else:
                self._foreign(scan, text, number)
            return
        end = text.index(b" ", at + 5) + 1
        head = heads(text[:end])
        message = text[end:].rstrip(b"\r")
        self._count_other(scan, head, message)
        if head.before.strip():
            self._foreign(scan, head.before, number)
        cut = head.headers > 0 and len(text) - head.column >= MAX_MESSAGE
        scan.cut_lines += cut
        if head.level != "INFO" or wanted(message):
            place = Place(scan.file, number, head.process, head.thread, head.device)
            scan.messages.add(head, place, message.decode("utf-8", "replace"), cut)

    def _count_other(self, scan: Scan, head: Head, message: bytes) -> None:
        scan.header_lines += head.headers > 0
        scan.inner_headers += head.column > 0
        scan.torn_lines += head.headers != 1 or b": opCount " in message
        if head.process >= 0:
            self._processes.seen[head.process].lines += 1

    def _foreign(self, scan: Scan, text: bytes, number: int, *, glued: bool = False) -> None:
        """A line that NCCL did not write."""
        if scan.trainer.add(text, number, glued=glued) or b"MPI_" not in text:
            return
        found, torn = parse_mpi(text, scan.file, number)
        scan.mpi += found
        scan.torn_mpi_lines += torn


def _level_at(text: bytes) -> int:
    """Where the last ``NCCL LEVEL`` of a line starts, -1 without one."""
    at = text.rfind(b"NCCL INFO ")
    return at if at >= 0 else max(text.rfind(level) for level in _LEVELS)


_NOBODY: Final = Head(-1, -1, -1, "VERSION", 0, -1, NO_TIME, b"", b"")


def _mentions_debug_time(data: bytes) -> bool:
    at = data.find(b"NCCL_DEBUG_TIME")
    while at >= 0:
        if data[at + 15 : at + 20] != b"STAMP":
            return True
        at = data.find(b"NCCL_DEBUG_TIME", at + 15)
    return False
