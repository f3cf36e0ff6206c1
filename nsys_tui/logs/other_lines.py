"""Lines that NCCL did not write: of trainers, progress bars and servers.

A line is looked at only if it holds a word of one of them, and a block that holds none is passed
over whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.logs import servers, trainer_table
from nsys_tui.logs.progress_bars import WORDS, Bars
from nsys_tui.logs.run_totals import run_totals
from nsys_tui.logs.servers import ServerLines
from nsys_tui.logs.trainers import MODEL_WORDS, TrainerLines

if TYPE_CHECKING:
    from nsys_tui.logs.trainer_table import Trainer
    from nsys_tui.logs.trainers import RunTotal, StepLine

_WORDS: Final = tuple(
    dict.fromkeys(
        [
            *(one.word for one in trainer_table.TRAINERS),
            *trainer_table.TOTAL_WORDS,
            *MODEL_WORDS,
            *WORDS,
            *servers.WORDS,
        ]
    )
)


class OtherLines:
    """Gathers them from one file."""

    def __init__(self, file: int, flops_per_token: int | None, own: Trainer | None) -> None:
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
        self._words = tuple(word for word in self._known if word in block)

    def add(self, text: bytes, line: int, *, glued: bool = False) -> bool:
        """Takes a line in; returns whether it is one of theirs.

        Args:
            text: the line.
            line: its number.
            glued: whether a COLL line follows in it.
        """
        if not self.servers.in_result and not any(word in text for word in self._words):
            return False
        found = self._trainers.add(text, line, glued=glued)
        found |= self._bars.add(text, line)
        return found | self.servers.add(text, line)

    def end(self) -> None:
        """Puts together what only the whole file tells."""
        self.servers.end()
        shown = self._bars.done()
        self.totals = run_totals(self._trainers.totals, shown) + self.servers.totals
        steps = self._trainers.steps + self._bars.steps(self.totals)
        self.steps = sorted(steps, key=lambda one: one.line)
