"""One pass over one file: every line is counted and handed to whoever understands it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from nsys_tui.logs.line_prefixes import NO_TIME, Head, Heads, Lines, Processes, lift
from nsys_tui.logs.nccl.api import ApiLines
from nsys_tui.logs.nccl.calls import NO_STEP, OF_CALLS, Block
from nsys_tui.logs.nccl.coll_bodies import CallTexts, find_bodies
from nsys_tui.logs.nccl.grammar import LONGEST_FOREIGN, LONGEST_HEAD, MAX_MESSAGE
from nsys_tui.logs.nccl.messages import Messages, Place, wanted
from nsys_tui.logs.other_lines import OtherLines
from nsys_tui.logs.others.mpi import MpiLog
from nsys_tui.logs.textfile import blocks
from nsys_tui.logs.trainers.trainer_table import Trainer
from nsys_tui.model.arrays import Bool, Indices, Int64

KIND: Final = (
    *("file", "process", "pointer", "op", "datatype", "reduction", "root", "nranks", "thread"),
    *("device", "stream", "in_place", "torn", "global_rank"),
)
"""What makes calls alike."""
_LEVELS: Final = (b"INFO ", b"WARN ", b"CALL ", b"TRACE ", b"ABORT ")


@dataclass(slots=True)
class Scan:
    """What one file holds, in the file's own line numbers."""

    path: str
    file: int
    messages: Messages = field(default_factory=Messages)
    blocks: list[Block] = field(default_factory=list)
    other: OtherLines = field(init=False)
    api: ApiLines = field(default_factory=ApiLines)
    mpi: MpiLog = field(default_factory=MpiLog)
    lines: int = 0
    bodies: int = 0
    """Whole COLL bodies."""
    header_lines: int = 0
    inner_headers: int = 0
    torn_lines: int = 0
    cut_lines: int = 0
    timed: bool = False
    cut_short: bool = False
    half_call: tuple[int, int] = (0, -1)
    """Line of the last half COLL body, and its process."""
    half_mpi: int = 0
    """Line of the last torn MPI call."""
    mentions_debug_time: bool = False


@dataclass(slots=True)
class _Front:
    """What several lines of a block begin with."""

    head: Head
    is_call: bool
    lines: int = 0


@dataclass(frozen=True, eq=False)
class Scanner:
    """Reads files one after another into ``Scan`` objects that share their codes."""

    processes: Processes
    texts: CallTexts
    flops_per_token: int | None
    trainer: Trainer | None = None
    """The user's own."""

    def scan(self, path: Path, file: int) -> Scan:
        """Reads one file.

        Raises:
            UnreadableReportError: the file cannot be read or is no text.
        """
        scan = Scan(str(path), file)
        scan.other = OtherLines(str(path), file, self.flops_per_token, self.trainer)
        heads = Heads(self.processes)
        ended = True

        def cut_short() -> None:
            scan.cut_short = True

        for data in blocks(path, cut_short):
            # A piece of a line that was too long continues the line of the piece before.
            first = scan.lines + 1 if ended else scan.lines
            self._block(scan, data, first, heads)
            ended = data.endswith(b"\n")
        half, half_mpi = scan.half_call[0] == scan.lines, scan.half_mpi == scan.lines
        if ended or not half:
            scan.half_call = 0, -1
        if not ended:  # no other process wrote over its last line: the rest of it is not there
            scan.torn_lines -= half
            scan.mpi.torn_lines -= half_mpi
            scan.cut_short |= half or half_mpi
        scan.other.end()
        return scan

    def _block(self, scan: Scan, data: bytes, first: int, heads: Heads) -> None:
        ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
        starts = np.concatenate(([0], ends + 1))
        if data.endswith(b"\n"):
            starts = starts[:-1]
        else:
            ends = np.append(ends, len(data))
        scan.mentions_debug_time |= _mentions_debug_time(data)
        scan.other.begin(data)

        lines = lift(data, starts, ends)
        bodies = find_bodies(lines.data, lines.starts, heads, self.texts)
        columns = bodies.columns
        line = columns["line"]
        lifted = lines.time_ns[line]
        columns["time_ns"] = np.where(lifted == NO_TIME, columns["time_ns"], lifted)
        self._count(scan, bodies.heads, bodies.head, line, columns["torn"])
        scan.timed |= bool((columns["time_ns"] != NO_TIME).any())
        for at, text in bodies.before:
            self._foreign(scan, lines.with_stamp(at, text), at + first, glued=True)
        for at, text in bodies.behind:
            self._foreign(scan, text, at + first)
        other = np.ones(len(starts), dtype=np.bool_)
        other[line] = False
        self._others(scan, lines, np.flatnonzero(other), first, heads)
        columns["line"] = line + first
        if len(line):
            columns["file"] = np.broadcast_to(np.int64(scan.file), len(line))
            kind = self.texts.kinds.codes([columns[name] for name in KIND], columns["line"])
            step = np.broadcast_to(np.int64(NO_STEP), len(line))
            rows = {name: columns.get(name, step) for name in OF_CALLS}
            scan.blocks.append(Block.of({"kind": kind, **rows}))
        scan.api.pack()
        scan.bodies += len(line)
        scan.lines = first + len(starts) - 1

    def _others(self, scan: Scan, lines: Lines, which: Indices, first: int, heads: Heads) -> None:
        """Lines without a whole COLL body."""
        data = lines.data
        fronts: dict[bytes, _Front] = {}
        begins, ends = lines.starts[which].tolist(), lines.ends[which].tolist()
        for at, begin, end in zip(which.tolist(), begins, ends, strict=True):
            if end - begin > LONGEST_HEAD:
                # A progress bar redrawn in one line, which the next message may follow.
                redrawn = data.rfind(b"\r", begin, end - 1) + 1
                if redrawn:
                    self._foreign(scan, data[begin:redrawn], at + first)
                    begin = redrawn
                end = min(end, begin + LONGEST_HEAD)
            text = data[begin:end]
            level = text.rfind(b"NCCL ")
            if not text.startswith(_LEVELS, level + 5):
                level = _level_at(text)
            if level < 0:
                if not self._headless(scan, text, at + first):
                    whole = lines.whole(at, LONGEST_FOREIGN) if begin == lines.starts[at] else text
                    self._foreign(scan, whole, at + first)
                continue
            split = text.index(b" ", level + 5) + 1
            front = fronts.get(text[:split])
            if front is None:
                head = heads(text[:split])
                front = fronts[text[:split]] = _Front(head, head.level == "CALL")
            front.lines += 1
            if front.is_call:
                scan.api.add(front.head.process, text[split:], at + first)
                continue
            self._line(scan, lines, at, text, text[split:].rstrip(b"\r"), at + first, front.head)
        for front in fronts.values():
            self._count_head(scan, front.head, front.lines)
            scan.torn_lines += front.lines * (front.head.headers != 1)

    def _line(
        self,
        scan: Scan,
        lines: Lines,
        at: int,
        text: bytes,
        message: bytes,
        number: int,
        head: Head,
    ) -> None:
        """A line with a level of NCCL's."""
        if head.headers == 1 and b": opCount " in message:
            scan.torn_lines += 1
            scan.half_call = number, head.process
        if head.before.strip():
            self._foreign(scan, lines.with_stamp(at, head.before), number)
        cut = head.headers > 0 and lines.fills(at, len(text) - head.column, MAX_MESSAGE)
        scan.cut_lines += cut
        if b" Bytes -> " in message:
            scan.messages.add_tuning(message)
        elif head.level != "INFO" or wanted(message):
            place = Place(scan.file, number, head.process, head.thread, head.device)
            scan.messages.add(head, place, message.decode("utf-8", "replace"), cut)

    def _headless(self, scan: Scan, text: bytes, number: int) -> bool:
        """Takes in what is NCCL's of a line without a level; returns whether anything is."""
        if b": opCount " in text and b"sendbuff" in text:
            scan.torn_lines += 1
        elif b"CCL version" in text:
            place = Place(scan.file, number, -1, -1, -1)
            scan.messages.add(_NOBODY, place, text.decode("utf-8", "replace"), False)
        else:
            return False
        return True

    def _count(
        self,
        scan: Scan,
        heads: list[Head],
        head: Indices,
        line: Int64,
        torn: Bool,
    ) -> None:
        """Counts the lines that hold bodies, each once."""
        _, once = np.unique(line, return_index=True)
        lines_of = np.bincount(head[once], minlength=len(heads))
        for one, count in zip(heads, lines_of.tolist(), strict=True):
            self._count_head(scan, one, count)
        scan.torn_lines += len(np.unique(line[torn]))

    def _count_head(self, scan: Scan, head: Head, lines: int) -> None:
        scan.header_lines += lines * (head.headers > 0)
        scan.inner_headers += lines * (head.column > 0)
        if head.process >= 0:
            self.processes.seen[head.process].lines += lines

    def _foreign(self, scan: Scan, text: bytes, number: int, *, glued: bool = False) -> None:
        """A line that NCCL did not write."""
        if scan.other.add(text, number, glued=glued) or b"MPI_" not in text:
            return
        if scan.mpi.add(text):
            scan.half_mpi = number


def _level_at(text: bytes) -> int:
    """Where the last ``NCCL LEVEL`` of a line starts, -1 without one."""
    at = text.rfind(b"NCCL ")
    while at >= 0 and not text.startswith(_LEVELS, at + 5):
        at = text.rfind(b"NCCL ", 0, at)
    return at


_NOBODY: Final = Head(-1, -1, -1, "VERSION", 0, -1, NO_TIME, b"", b"")


def _mentions_debug_time(data: bytes) -> bool:
    at = data.find(b"NCCL_DEBUG_TIME")
    while at >= 0:
        if data[at + 15 : at + 20] != b"STAMP":
            return True
        at = data.find(b"NCCL_DEBUG_TIME", at + 15)
    return False
