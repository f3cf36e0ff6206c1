"""Lines that NCCL did not write: of trainers, progress bars and servers.

A line is looked at only if it holds a word of one of them; where a block has many such lines, its
words are found first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from nsys_tui.logs.nccl import plugins
from nsys_tui.logs.nccl.grammar import FRONT
from nsys_tui.logs.nccl.plugins import PluginLines
from nsys_tui.logs.others import benchmark_tables, mpi, pytorch, servers
from nsys_tui.logs.others.benchmark_tables import BenchmarkTables
from nsys_tui.logs.others.mpi import MpipLines
from nsys_tui.logs.others.pytorch import Dump, WatchdogLines
from nsys_tui.logs.others.servers import ServerLines
from nsys_tui.logs.trainers import mlperf, trainer_table
from nsys_tui.logs.trainers.mlperf import MlperfLines
from nsys_tui.logs.trainers.progress_bars import WORDS, Bars
from nsys_tui.logs.trainers.step_lines import (
    MODEL_WORDS,
    RunTotal,
    StepLine,
    TrainerLines,
    number,
    with_times,
)
from nsys_tui.logs.trainers.trainer_table import Trainer

_WORDS: Final = tuple(
    dict.fromkeys(
        [
            *(word for one in trainer_table.TRAINERS for word in one.words),
            *trainer_table.TOTAL_WORDS,
            *trainer_table.BELOW_WORDS,
            *MODEL_WORDS,
            *WORDS,
            *servers.WORDS,
            *benchmark_tables.WORDS,
            *mlperf.WORDS,
            *mpi.WORDS,
            *plugins.WORDS,
            *pytorch.WATCHDOG_WORDS,
        ]
    )
)
_MANY: Final = 1000
"""Lines in a block from which on it is worth to search the whole block for each word once."""


class OtherLines:
    """Gathers them from one file."""

    def __init__(
        self, path: str, file: int, flops_per_token: int | None, trainer: Trainer | None
    ) -> None:
        self._path = path
        self.benchmarks = BenchmarkTables(file)
        self.mpip = MpipLines(file)
        self.mlperf = MlperfLines(file)
        self.plugins = PluginLines()
        self.watchdogs = WatchdogLines(file)
        self.dumps: list[Dump] = []
        """PyTorch's flight recorder, if the file is a dump of it."""
        self._dumped: list[bytes] | None = None
        self._begun = False
        self._tables: bool | None = False
        """Whether lines of the block may be of a benchmark's table; None until its first line."""
        self.steps: list[StepLine] = []
        """By line, once the file has ended."""
        self.totals: list[RunTotal] = []
        self.servers = ServerLines(file)
        self._trainers = TrainerLines(file, flops_per_token, trainer)
        self._bars = Bars(file)
        self._known = _WORDS if trainer is None else (*trainer.words, *_WORDS)
        self._words = self._known
        self._block = b""
        self._added = 0

    def begin(self, block: bytes) -> None:
        """Begins a block of lines.

        Raises:
            UnreadableReportError: the file is one dump, too large to be read.
        """
        self.benchmarks.settle()
        self._words, self._block, self._added = self._known, block, 0
        self._tables = self.benchmarks.inside or None
        if not self._begun and pytorch.looks_like_dump(block):
            self._dumped = []
        self._begun = True
        if self._dumped is not None:
            self._dumped.append(block)
            if sum(map(len, self._dumped)) > pytorch.LARGEST:
                pytorch.refuse_whole(self._path, self._dumped[0])
                self._dumped = None

    def add(self, text: bytes, line: int, *, glued: bool = False) -> bool:
        """Takes a line in; returns whether it is one of theirs.

        Args:
            text: the line.
            line: its number.
            glued: whether a COLL line follows in it.
        """
        if self._tables is None:
            self._tables = any(word in self._block for word in benchmark_tables.WORDS)
        if self._tables and self.benchmarks.add(_bare(text), line):
            return True
        self._added += 1
        if self._added == _MANY:
            self._words = tuple(word for word in self._known if word in self._block)
        inside = self.mpip.inside or self.servers.in_result
        if not inside and not any(word in text for word in self._words):
            return False
        if self.mpip.add(_bare(text)) or self.mlperf.add(text, line):
            return True
        known = self._trainers.add(text, line, glued=glued)
        known |= self._bars.add(_behind_front(text), line)
        known |= self.watchdogs.add(text, line) or self.plugins.add(text)
        return known | self.servers.add(text, line) | self.servers.add_result(_bare(text), line)

    def end(self) -> None:
        """Puts together what only the whole file tells.

        Raises:
            UnreadableReportError: the file is one dump, and no whole one.
        """
        self.servers.end()
        self.benchmarks.end()
        if self._dumped is not None:
            self.dumps = pytorch.read_dumps(self._path, b"".join(self._dumped))
            self._dumped = None
        shown = self._bars.done()
        self.totals = run_totals(self._trainers.totals, shown) + self.servers.totals
        self.totals += self.mlperf.totals()
        steps = with_times(self._trainers.steps) + self._bars.steps(self.totals)
        self.steps = sorted(steps, key=lambda one: one.line)


def _bare(text: bytes) -> bytes:
    """A line without its rank and time: those of tables are told by what they begin with.

    What stands before a carriage return was a progress bar.
    """
    return _behind_front(text.rstrip(b"\r").rpartition(b"\r")[2])


def _behind_front(text: bytes) -> bytes:
    """A line without what launchers and collectors put before it."""
    front = FRONT.match(text)
    return text[front.end() :] if front else text


_HALF: Final = Fraction(1, 2000)
"""Half of the last decimal of a rate."""
_BLOCK_LINES: Final = 12
"""Lines that the metrics at the end stand in."""
_SAME: Final = Fraction(1, 50)
"""Copies of one run differ by less: each process stops its own clock."""


def run_totals(totals: Sequence[RunTotal], shown_steps: int | None = None) -> list[RunTotal]:
    """The runs: copies joined, with their number of steps.

    Args:
        totals: lines of one file, in order.
        shown_steps: steps that the run's progress bar counts, if there is one.
    """
    joined: list[RunTotal] = []
    for one in totals:
        if joined and _continues(joined[-1], one):
            joined[-1] = replace(joined[-1], values=(*joined[-1].values, *one.values))
        elif joined and _is_copy(joined[-1], one):
            longest = max(joined[-1], one, key=_runtime)
            joined[-1] = replace(longest, line=joined[-1].line, copies=joined[-1].copies + 1)
        else:
            joined.append(one)
    pairs = zip([None, *joined], joined, strict=False)
    once = [one for last, one in pairs if last is None or not _told_again(last, one)]
    return [_with_steps(one, shown_steps) for one in once]


def _continues(last: RunTotal, one: RunTotal) -> bool:
    """Whether a line goes on with a block of metrics that has a line for each."""
    keys = dict(last.values).keys()
    single = len(one.values) == 1 and all(key.startswith("train_") for key in keys)
    apart = not (keys & dict(one.values).keys()) and one.line - last.line <= _BLOCK_LINES
    return one.format == last.format == "huggingface" and single and apart


def _is_copy(last: RunTotal, one: RunTotal) -> bool:
    here, there = dict(last.values), dict(one.values)
    if (one.format, here.keys()) != (last.format, there.keys()) or "train_runtime" not in here:
        return False
    a, b = _runtime(last), _runtime(one)
    return abs(a - b) <= _SAME * max(a, b)


def _told_again(last: RunTotal, block: RunTotal) -> bool:
    """Whether a block of metrics says no more than the dictionary before it."""
    here, there = dict(last.values), dict(block.values)
    keys = there.keys() - {"train_runtime"}
    near = abs(_runtime(last) - _runtime(block)) <= _SAME * _runtime(last)
    return (
        near
        and bool(keys)
        and there.keys() < here.keys()
        and all(here[k] == there[k] for k in keys)
    )


def _runtime(total: RunTotal) -> Fraction:
    return seconds_of(dict(total.values).get("train_runtime", "")) or Fraction(0)


def seconds_of(text: str) -> Fraction | None:
    """``5:57:27.49`` or ``273.0149`` as seconds."""
    parts = [number(word) for word in text.split(":")]
    if any(part is None for part in parts):
        return None
    return sum((part or Fraction(0)) * 60**i for i, part in enumerate(reversed(parts))) or None


def _with_steps(total: RunTotal, shown: int | None) -> RunTotal:
    """A run with the steps that its figures leave.

    Hugging Face prints steps per second with three decimals: 0.007 may be anything from 0.0065 to
    0.0075, so its inverse is no step time. With the run's time only some numbers of steps fit; if
    it is one, the mean step is exact.
    """
    values = dict(total.values)
    runtime = seconds_of(values.get("train_runtime", ""))
    rate = number(values.get("train_steps_per_second"))
    if runtime is None or rate is None:
        return total
    least = max(1, math.ceil(runtime * (rate - _HALF)))
    most = math.floor(runtime * (rate + _HALF))
    if shown is not None and least <= shown <= most:
        least = most = shown
    if least > most:
        return total
    if least == most:
        return replace(total, steps=least, step_ns=round(runtime * 10**9 / least))
    shortest, longest = (round(runtime * 10**9 / steps) for steps in (most, least))
    return replace(total, step_range_ns=(shortest, longest))
