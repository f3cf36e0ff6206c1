"""Lines that NCCL did not write: of trainers, progress bars and servers.

A line is looked at only if it holds a word of one of them, and a block that holds none is passed
over whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.logs import (
    benchmark_tables,
    flight_recorder,
    mpip,
    plugins,
    servers,
    trainer_table,
    watchdogs,
)
from nsys_tui.logs.benchmark_tables import BenchmarkTables
from nsys_tui.logs.grammar import FRONT
from nsys_tui.logs.mpip import MpipLines
from nsys_tui.logs.plugins import PluginLines
from nsys_tui.logs.progress_bars import WORDS, Bars
from nsys_tui.logs.run_totals import run_totals
from nsys_tui.logs.servers import ServerLines
from nsys_tui.logs.trainers import MODEL_WORDS, TrainerLines
from nsys_tui.logs.watchdogs import WatchdogLines

if TYPE_CHECKING:
    from nsys_tui.logs.flight_recorder import Dump
    from nsys_tui.logs.trainer_table import Trainer
    from nsys_tui.logs.trainers import RunTotal, StepLine

_WORDS: Final = tuple(
    dict.fromkeys(
        [
            *(one.word for one in trainer_table.TRAINERS),
            *trainer_table.TOTAL_WORDS,
            *trainer_table.BELOW_WORDS,
            *MODEL_WORDS,
            *WORDS,
            *servers.WORDS,
            *benchmark_tables.WORDS,
            *mpip.WORDS,
            *plugins.WORDS,
            *watchdogs.WORDS,
        ]
    )
)


class OtherLines:
    """Gathers them from one file."""

    def __init__(
        self, path: str, file: int, flops_per_token: int | None, own: Trainer | None
    ) -> None:
        self._path = path
        self.benchmarks = BenchmarkTables(file)
        self.mpip = MpipLines(file)
        self.plugins = PluginLines()
        self.watchdogs = WatchdogLines(file)
        self.dumps: list[Dump] = []
        """PyTorch's flight recorder, if the file is a dump of it."""
        self._dumped: list[bytes] | None = None
        self._begun = False
        self._tables = False
        """Whether lines of the block may be of a benchmark's table."""
        self.steps: list[StepLine] = []
        """By line, once the file has ended."""
        self.totals: list[RunTotal] = []
        self.servers = ServerLines(file)
        self._trainers = TrainerLines(file, flops_per_token, own)
        self._bars = Bars(file)
        self._known = _WORDS if own is None else (own.word, *_WORDS)
        self._words = self._known

    def begin(self, block: bytes) -> None:
        """Looks which words a block of lines holds."""
        self.benchmarks.settle()
        self._words = tuple(word for word in self._known if word in block)
        self._tables = self.benchmarks.inside or any(
            word in block for word in benchmark_tables.WORDS
        )
        if not self._begun and flight_recorder.looks_like_dump(block):
            self._dumped = []
        self._begun = True
        if self._dumped is not None:
            self._dumped.append(block)
            if sum(map(len, self._dumped)) > flight_recorder.LARGEST:
                self._dumped = None

    def add(self, text: bytes, line: int, *, glued: bool = False) -> bool:
        """Takes a line in; returns whether it is one of theirs.

        Args:
            text: the line.
            line: its number.
            glued: whether a COLL line follows in it.
        """
        if self._tables and self.benchmarks.add(_bare(text), line):
            return True
        inside = self.mpip.inside or self.servers.in_result
        if not inside and not any(word in text for word in self._words):
            return False
        if self.mpip.add(_bare(text)):
            return True
        found = self._trainers.add(text, line, glued=glued)
        found |= self._bars.add(text, line)
        found |= self.watchdogs.add(text, line) or self.plugins.add(text)
        return found | self.servers.add(text, line) | self.servers.add_result(_bare(text), line)

    def end(self) -> None:
        """Puts together what only the whole file tells."""
        self.servers.end()
        self.benchmarks.end()
        if self._dumped is not None:
            self.dumps = flight_recorder.read_dumps(self._path, b"".join(self._dumped))
            self._dumped = None
        shown = self._bars.done()
        self.totals = run_totals(self._trainers.totals, shown) + self.servers.totals
        steps = self._trainers.steps + self._bars.steps(self.totals)
        self.steps = sorted(steps, key=lambda one: one.line)


def _bare(text: bytes) -> bytes:
    """A line without its rank and time: those of tables are told by what they begin with."""
    front = FRONT.match(text)
    return text[front.end() :] if front else text
