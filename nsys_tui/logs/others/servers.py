"""Throughput lines of inference servers: of intervals, or of requests (llama.cpp, Ollama).

A server's line is a mean over the seconds before it; lines far apart belong to two runs, and what
lay between is in no figure.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from nsys_tui.logs.figures import Spread, spread_of
from nsys_tui.logs.line_prefixes import NO_TIME, parse_own_stamp
from nsys_tui.logs.trainers.step_lines import RunTotal, number
from nsys_tui.logs.trainers.trainer_table import N, compiled

_FORMATS: Final = (
    (
        "vllm",
        b"Avg generation throughput",
        rf"(?:Engine (?P<engine>\w+): )?Avg prompt throughput: (?P<prompt>{N}) tokens/s, "
        rf"Avg generation throughput: (?P<generation>{N}) tokens/s"
        r"(?:, Running: (?P<running>\d{1,9}) reqs)?"
        r"(?:.*?(?:Waiting|Pending): (?P<waiting>\d{1,9}) reqs)?",
    ),
    (
        "sglang",
        b"gen throughput (token/s)",
        r"Decode batch.*?#running-req: (?P<running>\d{1,9}).*?"
        rf"gen throughput \(token/s\): (?P<generation>{N})"
        r"(?:, #queue-req: (?P<waiting>\d{1,9}))?",
    ),
    (
        "sglang",
        b"input throughput (token/s)",
        rf"Prefill batch.*?input throughput \(token/s\): (?P<prompt>{N})",
    ),
    (
        "llama.cpp",
        b" tokens per second)",
        rf"(?:prompt eval time = .*?, +(?P<prompt>{N})"
        rf"|(?<!prompt )eval time = .*?, +(?P<generation>{N})) tokens per second\)",
    ),
    (
        "ollama",
        b"eval rate: ",
        rf"(?:prompt eval rate: +(?P<prompt>{N})|(?<!prompt )eval rate: +(?P<generation>{N}))"
        " tokens/s",
    ),
)
_RANKS: Final = re.compile(r"\[[^\]]*?((?: (?:DP|TP|PP|EP)\d+)+)\]")
_RESULT: Final = re.compile(
    r"^=+ (?:Serving Benchmark (?:\w+ )?Result =+|PERFORMANCE OVERVIEW)\s*$"
)
_RESULT_LINE: Final = re.compile(rf"^([A-Z][\w .()/%\[\]-]{{2,60}}?):\s+({N})\s*$")
_RESULTS: Final = (b"Serving Benchmark ", b"PERFORMANCE OVERVIEW")
WORDS: Final = (*(word for _, word, _ in _FORMATS), *_RESULTS)
"""One of these stands in each line of theirs, but for those of a result block."""
_LONGEST_RESULT: Final = 100
"""Lines of a result block, and of others who write between them."""
_APART: Final = 3
"""Intervals between lines after which another run begins."""


@dataclass(frozen=True)
class ServerLine:
    """One line, with what it says of the interval before it."""

    format: str
    engine: str
    file: int
    line: int
    time_ns: int
    prompt: Fraction | None
    """Tokens per second."""
    generation: Fraction | None
    running: int | None
    waiting: int | None


@dataclass
class ServerLines:
    """Gathers a file's lines."""

    file: int
    lines: list[ServerLine] = field(default_factory=list)
    totals: list[RunTotal] = field(default_factory=list)
    _result: dict[str, str] | None = None
    _result_line: int = 0

    def add(self, text: bytes, line: int) -> bool:
        """Takes a line in if it is a server's; returns whether it is."""
        for name, word, expression in _FORMATS:
            if word not in text:
                continue
            decoded = text.decode("utf-8", "replace")
            ranks = _RANKS.search(decoded)
            matches = list(compiled(expression).finditer(decoded))  # several where lines are torn
            for match in matches:
                told = match.groupdict()
                self.lines.append(
                    ServerLine(
                        name,
                        told.get("engine") or (ranks[1].strip() if ranks else ""),
                        self.file,
                        line,
                        parse_own_stamp(decoded[: match.start()]),
                        number(told.get("prompt")),
                        number(told.get("generation")),
                        _whole(told.get("running")),
                        _whole(told.get("waiting")),
                    )
                )
            if matches:
                return True
        return False

    def add_result(self, text: bytes, line: int) -> bool:
        """Takes in a line of the block that a serving benchmark ends with."""
        titled = any(word in text for word in _RESULTS)
        if titled and _RESULT.match(text.decode("utf-8", "replace")):
            self.end()
            self._result, self._result_line = {}, line
            return True
        if self._result is None:
            return False
        if match := _RESULT_LINE.match(text.decode("utf-8", "replace")):
            self._result[match[1]] = match[2]
            return True
        ends = text.startswith(b"==") and bool(self._result)
        if ends or line - self._result_line > _LONGEST_RESULT:
            self.end()
        return False

    @property
    def in_result(self) -> bool:
        """Whether the next line may be one of a result block."""
        return self._result is not None

    def end(self) -> None:
        """No more lines: a block that was begun is whole."""
        if self._result:
            values = tuple(self._result.items())
            self.totals.append(RunTotal("serving benchmark", self.file, self._result_line, values))
        self._result = None


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)


@dataclass(frozen=True)
class Throughput:
    """Figures of one engine over one run of it, or over all its lines."""

    format: str
    engine: str
    run: int
    """From 1; 0 over all runs."""
    lines: int
    warmup: int
    """First rates of generation left out: they hold the time since the server's start."""
    prompt: Spread | None
    generation: Spread | None
    most_running: int | None
    most_waiting: int | None


def throughput(lines: Sequence[ServerLine]) -> list[Throughput]:
    """Figures by engine, and by run where it had several."""
    rows = []
    by_engine: dict[tuple[str, str], list[ServerLine]] = {}
    for one in lines:
        by_engine.setdefault((one.format, one.engine), []).append(one)
    for mine in by_engine.values():
        runs = _runs(mine)
        rows.append(_figures(mine, 0))
        if len(runs) > 1:
            rows += [_figures(run, i) for i, run in enumerate(runs, 1)]
    return rows


def _runs(lines: Sequence[ServerLine]) -> list[list[ServerLine]]:
    """The lines split where the time between two is several intervals long."""
    gaps = [
        b.time_ns - a.time_ns if NO_TIME not in (a.time_ns, b.time_ns) else 0
        for a, b in itertools.pairwise(lines)
    ]
    usual = sorted(gap for gap in gaps if gap > 0)
    if len(usual) < 2:
        return [list(lines)]
    longest = _APART * usual[len(usual) // 2]
    runs = [[lines[0]]]
    for one, gap in zip(lines[1:], gaps, strict=True):
        if gap > longest:
            runs.append([])
        runs[-1].append(one)
    return runs


def _figures(lines: Sequence[ServerLine], run: int) -> Throughput:
    generation = [one.generation for one in lines if one.generation is not None]
    warm = _warmup(lines[0].format, generation)
    return Throughput(
        lines[0].format,
        lines[0].engine,
        run,
        len(lines),
        warm,
        spread_of([one.prompt for one in lines]),
        spread_of(generation[warm:]),
        max((one.running for one in lines if one.running is not None), default=None),
        max((one.waiting for one in lines if one.waiting is not None), default=None),
    )


def _warmup(server: str, rates: Sequence[Fraction]) -> int:
    """1 where a first rate of SGLang holds the time that it was idle, and so next to nothing."""
    later = sorted(rates[1:])
    return int(server == "sglang" and bool(later) and rates[0] * 2 < later[len(later) // 2])
