"""Training steps and other repeats: found from NVTX names, or from a repeating kernel pattern.

The rules are tried in the order of definitions ("Iterations"); the result says which one applied.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Final

import numpy as np

from nsys_tui.analysis.aggregate import grouped_union
from nsys_tui.analysis.iterations.kernel_pattern import COVERED, FEWEST, are_alike, repeated
from nsys_tui.analysis.iterations.warm_up import warm_up_steps
from nsys_tui.analysis.window import WHOLE_REPORT, Scope, row_numbers
from nsys_tui.errors import NoDataError
from nsys_tui.model.arrays import Bool, Float64, Indices, Int64
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.events import FARTHEST
from nsys_tui.model.groups import factorise
from nsys_tui.model.report import Report
from nsys_tui.model.target import PROCESS_MASK
from nsys_tui.names import normalise_nvtx, strip_op_id
from nsys_tui.patterns import matching
from nsys_tui.redaction import redacted
from nsys_tui.units import out_of

STEP_NAME: Final = re.compile(
    r"(?i)\b(train|(time)?step|iter(ation)?|batch)\b|train(ing)?_?(step|iter|batch)(?![a-z])"
)
JOINED_STEP_NAME: Final = re.compile(
    r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))(?i:step|iter(ation)?|batch)(?![a-z]|(?i:_?norm))"
)
"""The same inside a word: ``training_step``, ``ProfilerStep#3``; not ``batch_norm``."""
_ASIDE_NAME: Final = re.compile(r"(?i)(epoch|valid|eval|test|load|fetch|optim|schedul)")
"""Names of what holds steps, is in them or comes between them: steps only where no other are."""
PART_NAME: Final = re.compile(r"(?i)(layer|block|stage|phase)")
"""Names of parts that a step goes through, one after the other."""
_OPERATOR_NAME: Final = re.compile(r"^aten::|\bseq = ")
"""Operators of PyTorch, which many parts of a step use."""
OUTLIER_Z: Final = 3.5
_AHEAD: Final = 0.25
NOTABLE: Final = 0.01
"""Part of a step that counts."""
_MAD_TO_SIGMA: Final = 1.4826
_NUMBER: Final = re.compile(r"\d{1,15}(?!\d)")


class Rule(StrEnum):
    """How the iterations were found."""

    ASKED = "by the pattern asked for"
    NAME = "by NVTX name"
    OUTERMOST = "by the outermost repeated NVTX range"
    NUMBERED = "by numbered NVTX ranges"
    PATTERN = "by pattern"
    NONE = "no iterations found"


_CALLED_STEPS: Final = (Rule.NAME, Rule.ASKED)


def counted(never_closed: Bool, *, warm_up: int) -> Bool:
    """Iterations that statistics are of: all but the warm-up and those whose end is not known.

    Args:
        never_closed: a truth value for each, in time order.
        warm_up: how many at the beginning are warm-up.

    Returns:
        A truth value for each; true for all where none would be left.
    """
    kept = ~never_closed
    kept[:warm_up] = False
    return kept if kept.any() else np.ones(len(kept), bool)


def deviations(times: Int64, steady: Int64) -> Float64:
    """Robust distance of times from the median of the steady ones, in deviations (from the MAD).

    0 where nothing is steady; a deviation below 1 % of the median counts as 1 %.
    """
    if not len(steady):
        return np.zeros(len(times))
    median = float(np.median(steady))
    spread = _MAD_TO_SIGMA * float(np.median(np.abs(steady - median)))
    return np.asarray((times - median) / max(spread, 0.01 * median, 1.0), np.float64)


@dataclass(frozen=True, eq=False)
class Iterations:
    """Steps in time order; warm-up and what was never closed stay out of mean and deviation."""

    rule: Rule
    name: str
    """What repeats: a range name with digits as ``#``, or the length of a kernel pattern."""
    start: Int64
    own_end: Int64
    """End of each iteration's own range, or of its last kernel."""
    labels: tuple[str, ...]
    rows: Indices
    """Rows of ``Report.ranges``, empty for a kernel pattern."""
    never_closed: Bool
    """Iterations whose end is not known: of what was recorded they have all."""
    process: int = -1
    """globalPid the iterations belong to, -1 for none."""
    first: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    """Starts of the steps, by whatever name, that come first on their thread."""
    counts_from: int = -1
    """What the names of ranges count up from by one; -1 where they do not."""
    warm_up: int = 0
    """How many at the beginning are warm-up."""
    cuda: tuple[int, int] | None = None
    """From the first to the last row of CUDA of the process; None where it has no GPU work."""

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def end(self) -> Int64:
        """Start of the next iteration; the last one ends with its own range."""
        ends: Int64 = np.append(self.start[1:], self.own_end[-1:])
        return ends

    @cached_property
    def duration(self) -> Int64:
        """Time of each iteration in ns."""
        return self.end - self.start

    @cached_property
    def counted(self) -> Bool:
        """Those that statistics are of."""
        return counted(self.never_closed, warm_up=self.warm_up)

    @cached_property
    def recorded(self) -> Bool:
        """Those that CUDA was recorded in: all, unless whole steps lie before or after its rows.

        Then those which its rows only begin or end in are not, either.
        """
        if self.cuda is None:
            return np.ones(len(self), np.bool_)
        first, last = self.cuda
        late = (self.start < first) & (self.end <= first).any()
        early = (self.end > last) & (self.start >= last).any()
        return np.asarray(~(late | early), np.bool_)

    @cached_property
    def usual(self) -> Bool:
        """Those that are counted and recorded; without any, those that are counted."""
        both = self.counted & self.recorded
        return both if both.any() else self.counted

    @property
    def coverage(self) -> str:
        """In how many of them CUDA was recorded, empty for all."""
        if self.recorded.all():
            return ""
        return f"CUDA is recorded in {out_of(int(self.recorded.sum()), len(self))} steps"

    @property
    def unended(self) -> str:
        """What is said of those that were never closed."""
        return "never closed" if self.rule in _CALLED_STEPS else "end unknown"

    @property
    def steady(self) -> Int64:
        """Times of those that are counted."""
        return self.duration[self.counted]

    @cached_property
    def z(self) -> Float64:
        """``deviations`` from those that are counted."""
        return deviations(self.duration, self.steady)

    @property
    def outliers(self) -> Indices:
        """Places of steady iterations that are much slower than the others."""
        return np.flatnonzero(self.counted & (self.z > OUTLIER_Z))

    @cached_property
    def typical(self) -> int:
        """The steady step whose time is nearest to the median; the first of several."""
        away = np.abs(self.duration - float(np.median(self.steady)))
        return int(np.argmin(np.where(self.usual, away, np.inf)))

    def only(self, step: int) -> Iterations:
        """One step, with the end that it has among the others."""
        return self._part(step, step + 1)

    @property
    def of_recorded(self) -> Iterations:
        """Those that CUDA was recorded in, with the ends that they have; without any, all."""
        those = np.flatnonzero(self.recorded)
        if len(those) in (0, len(self)):
            return self
        return self._part(int(those[0]), int(those[-1]) + 1)

    def _part(self, begin: int, end: int) -> Iterations:
        part, left_out = slice(begin, end), np.searchsorted(self.first, self.start[begin], "right")
        return replace(
            self,
            start=self.start[part],
            own_end=np.append(self.own_end[begin : end - 1], self.end[end - 1]),
            labels=self.labels[part],
            rows=self.rows[part],
            never_closed=self.never_closed[part],
            first=self.first[max(0, int(left_out) - 1) :],
            counts_from=self.counts_from + begin * (self.counts_from >= 0),
            warm_up=max(0, self.warm_up - begin),
        )


def _none() -> Iterations:
    nothing = np.empty(0, np.int64)
    rows = np.empty(0, np.intp)
    return Iterations(Rule.NONE, "", nothing, nothing, (), rows, np.empty(0, bool))


def find_iterations(
    report: Report, pattern: str | None = None, scope: Scope = WHOLE_REPORT
) -> Iterations:
    """Finds the iterations of a report by the first rule that applies.

    Of several names or threads that qualify, the one that covers most time is taken, then the
    lower thread id.

    Args:
        report: the report.
        pattern: a regular expression for range names; then only this rule is tried.
        scope: restricts processes and time.

    Raises:
        UsageError: the pattern is no regular expression, or takes too long.
    """
    candidates = _candidates(report, scope)
    if pattern is not None:
        found = candidates.best(candidates.named(pattern) & candidates.apart, Rule.ASKED)
    else:
        found = _by_range(report, candidates) or _by_pattern(report, candidates, scope)
    if found is None:
        return _none()
    first = found.counts_from in (0, 1)
    warm_up = warm_up_steps(report, scope, found.start, found.duration, first=first)
    # nsys ends what the program left open with the session, to the nanosecond.
    ended = found.own_end == (report.metadata.session_duration_ns or 0)
    ended[-1] |= _lasts_longer(found)
    return replace(
        found,
        warm_up=warm_up,
        never_closed=found.never_closed | ended,
        cuda=_cuda_of(report, found.process),
    )


def _cuda_of(report: Report, process: int) -> tuple[int, int] | None:
    """From the first to the last row of CUDA of a process; None where it has no GPU work."""
    api, ops = report.api, report.operations
    work, calls = ops.processes == process, api.thread_process == process
    rows = (ops, np.flatnonzero(work[ops.process])), (api, np.flatnonzero(calls[api.thread]))
    if not len(rows[0][1]):
        return None
    first = min(int(events.start[mine].min(initial=FARTHEST)) for events, mine in rows)
    return first, max(int(events.end[mine].max(initial=-FARTHEST)) for events, mine in rows)


def _lasts_longer(found: Iterations) -> bool:
    """Whether the last step lasts longer than its own range or kernels, as the others do.

    Where a range that is called a step ends, its program says.
    """
    if found.rule in _CALLED_STEPS:
        return False
    pause = np.median(found.start[1:] - found.own_end[:-1])
    return bool(pause > NOTABLE * np.median(found.duration[:-1]))


def required_iterations(
    report: Report, pattern: str | None = None, scope: Scope = WHOLE_REPORT
) -> Iterations:
    """``find_iterations``, where nothing can be said without any.

    Raises:
        NoDataError: no iterations were found.
        UsageError: the pattern is no regular expression.
    """
    iterations = find_iterations(report, pattern, scope)
    if iterations.rule is not Rule.NONE:
        return iterations
    why = str(Rule.NONE)
    if pattern is not None and report.can(Capability.NVTX):
        why = f"no NVTX ranges that do not overlap match {pattern!r}"
    hint = report.lacks(Capability.NVTX) or (
        "name their NVTX ranges: nsys-tui iterations REPORT --iteration REGEX"
    )
    raise NoDataError(f"{report.name}: {why}", hint=hint)


def gpu_step_ns(report: Report, iterations: Iterations) -> float | None:
    """About how long the GPUs take for a step, where the host launches far ahead of them.

    Then steps take as long as their launches, and tell nothing of the GPUs: those work on after the
    last step for a quarter of the time of all. None where steps tell the truth.
    """
    ops, api = report.operations, report.api
    if iterations.rule in (Rule.NONE, Rule.PATTERN) or len(iterations) < FEWEST or not len(ops):
        return None
    until = int(iterations.end[-1])
    rows = np.arange(np.searchsorted(ops.start, until), len(ops))
    rows = rows[ops.processes[ops.process[rows]] == iterations.process]
    rows, calls = report.called(rows)
    late = ops.end[rows[api.start[calls] < until]].max(initial=until)
    if late - until <= _AHEAD * (until - iterations.start[0]):
        return None
    return float(late - iterations.start[1]) / len(iterations)


def _by_range(report: Report, candidates: _Candidates) -> Iterations | None:
    span = report.span or report.ranges.bounds()
    if span is None:
        return None
    needed = COVERED * (span[1] - span[0])
    fit = (candidates.count >= FEWEST) & candidates.apart
    # Of a host that runs far ahead no range covers much; a count tells that they are steps.
    steps = candidates.named(JOINED_STEP_NAME) & ~candidates.named(PART_NAME)
    steps &= (candidates.covered >= needed) | candidates.counts_up
    if named := candidates.best(fit & (candidates.named(STEP_NAME) | steps), Rule.NAME):
        return named
    top = candidates.outermost(candidates.count >= FEWEST)
    kept = (top.count >= FEWEST) & top.apart & ~top.named(_OPERATOR_NAME)
    part = top.named(PART_NAME)
    turns = kept & top.turns & part
    numbered = (turns | kept & top.counts_up & ~part) & (top.reach >= needed)
    others = kept & ~turns & (top.covered >= needed)
    found = (top.best(others, Rule.OUTERMOST), top.best(numbered, Rule.NUMBERED))
    return next((one for one in found if one and candidates.are_steps(one)), None)


class _Candidates:
    """Ranges of one normalised name on one thread each, in start order.

    Columns, not an object each: ten thousand threads have as many candidates a name.

    Args:
        report: the report.
        labels: normalised names.
        rows: ranges that nest, in start order.
        key: thread code * number of labels + label, of each of ``rows``.
    """

    def __init__(self, report: Report, labels: list[str], rows: Indices, key: Int64) -> None:
        self._report, ranges = report, report.ranges
        order = np.argsort(key, kind="stable")
        self._ranges, self._labels, self._rows, self._key = ranges, labels, rows[order], key[order]
        heads = np.append(True, self._key[1:] != self._key[:-1])[: len(rows)]
        self._of = np.cumsum(heads) - 1
        self._first = np.flatnonzero(heads)
        start, end = ranges.start[self._rows], ranges.end[self._rows]
        count = len(self._first)
        self.count = np.bincount(self._of, minlength=count)
        self.covered = grouped_union(self._of, start, end, count)
        clash = np.append(False, start[1:] < end[:-1])[: len(rows)] & ~heads
        self.apart = np.bincount(self._of[clash], minlength=count) == 0
        """Whether the ranges of a candidate do not overlap."""
        last = np.append(self._first[1:], len(rows))[:count] - 1
        self.reach: Int64 = end[last] - start[self._first]
        """From its first start to its last end, where they do not overlap."""

    @cached_property
    def _number(self) -> Int64:
        """The last number in the name of each range, -1 for none."""
        names = self._ranges.names
        numbers = [int((_NUMBER.findall(strip_op_id(name)) or ("-1",))[-1]) for name in names]
        return np.array(numbers, np.int64)[self._ranges.name[self._rows]]

    @cached_property
    def _turn(self) -> Int64:
        """After how many ranges numbers begin again; 0 where they do not count up by one."""
        number, first = self._number, self._first
        if not len(first):
            return self.count
        since = number - number[first][self._of]
        turn: Int64 = np.maximum.reduceat(since, first) + 1
        place = np.arange(len(number)) - first[self._of]
        wrong = (since != place % np.maximum(turn, 1)[self._of]) | (number < 0)
        turn[np.bincount(self._of[wrong], minlength=len(first)) > 0] = 0
        return turn

    @property
    def counts_up(self) -> Bool:
        """Candidates whose ranges are numbered, each by one more than the one before."""
        return np.asarray(self._turn == self.count, np.bool_)

    @property
    def turns(self) -> Bool:
        """Candidates whose numbers begin again after the same number, often enough."""
        return np.asarray((self._turn > 1) & (self.count >= FEWEST * self._turn), np.bool_)

    def named(self, pattern: str | re.Pattern[str]) -> Bool:
        """Candidates whose normalised name, or the name of whose first range, has a pattern.

        Names are searched without their secrets: answers to pattern after pattern spell them out.
        """
        ranges = self._ranges
        label = self._key[self._first] % max(1, len(self._labels))
        of_name, name = factorise(ranges.name[self._rows[self._first]])
        names = [redacted(ranges.names[code]) for code in name]
        texts = {*self._labels, *names}
        if isinstance(pattern, str):
            found = {*matching(pattern, texts)}
        else:
            found = {*filter(pattern.search, texts)}
        by_label = np.array([text in found for text in self._labels], bool)
        by_name = np.array([text in found for text in names], bool)
        by_either: Bool = by_label[label] | by_name[of_name]
        return by_either

    @cached_property
    def _launching(self) -> Int64:
        """Threads that launch GPU work."""
        api, calls = self._report.api, self._report.calls
        return api.threads[np.flatnonzero(np.bincount(api.thread[calls[calls >= 0]]))]

    def outermost(self, chosen: Bool) -> _Candidates:
        """Some candidates, with those of their ranges that lie in no other range of them."""
        ranges, mine = self._ranges, chosen[self._of]
        rows, key = self._rows[mine], self._key[mine]
        thread, start, end = ranges.thread[rows], ranges.start[rows], ranges.end[rows]
        order = np.lexsort((rows, -end, start, thread))
        rank, ends = factorise(end[order])
        # The latest end so far: ranks, so that those of a thread are above all of the one before.
        reach = thread[order].astype(np.int64) * len(ends) + rank
        top = np.append(True, np.maximum.accumulate(reach)[:-1] < reach[1:])[: len(rows)]
        return _Candidates(self._report, self._labels, rows[order][top], key[order][top])

    def are_steps(self, found: Iterations) -> bool:
        """Whether what is not called a step comes regularly, and not once for each part of one."""
        parts = self.named(PART_NAME) & self.counts_up & (self.count >= FEWEST)
        as_many = np.abs(self.count - len(found)) <= 1
        return are_alike(np.diff(found.start)) and not (parts & as_many).any()

    def best(self, kept: Bool, rule: Rule) -> Iterations | None:
        """Of some candidates the one that covers most time; of equal ones the lower thread's.

        Threads that launch GPU work come first, what is beside steps last.
        """
        places = np.flatnonzero(kept)
        if not len(places):
            return None
        ranges = self._ranges
        heads = self._rows[self._first[places]]
        thread = ranges.threads[ranges.thread[heads]]
        aside = self.named(_ASIDE_NAME)[places]
        idle = np.isin(thread, self._launching, invert=True)
        best = np.lexsort((thread, -self.covered[places], aside, idle))[0]
        chosen, beside = int(places[best]), np.flatnonzero(thread == thread[best])
        first = places[beside[np.argmin(ranges.start[heads[beside]])]]
        rows = self._rows[self._of == chosen]
        names = [ranges.names[code] for code in ranges.name[rows]]
        iterations = Iterations(
            rule,
            self._labels[int(self._key[self._first[chosen]]) % len(self._labels)],
            ranges.start[rows],
            ranges.end[rows],
            _numbered(names),
            rows,
            ranges.open[rows],
            int(thread[best]) & PROCESS_MASK,
            ranges.start[self._rows[self._of == first]],
            _counts_from(names),
        )
        if rule is not Rule.NUMBERED or self.counts_up[chosen]:
            return iterations
        turn = int(self._turn[chosen])
        last = np.append(np.arange(turn, len(rows), turn), len(rows)) - 1
        return replace(
            iterations,
            name=f"{names[0]} to {names[turn - 1]}",
            start=iterations.start[::turn],
            first=iterations.start[::turn],
            own_end=iterations.own_end[last],
            labels=tuple(f"turn {number}" for number in range(len(last))),
            rows=rows[:0],
            never_closed=iterations.never_closed[last],
        )


def _counts_from(names: Sequence[str]) -> int:
    first, second = (map(int, _NUMBER.findall(one)) for one in (*names, "", "")[:2])
    return next((one for one, after in zip(first, second, strict=False) if after == one + 1), -1)


def _numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Names of steps; with their numbers, from 0 on, where some are the same: ``step (3)``."""
    if len(set(names)) == len(names):
        return tuple(names)
    return tuple(f"{name} ({number})" for number, name in enumerate(names))


def _candidates(report: Report, scope: Scope) -> _Candidates:
    ranges = report.ranges
    texts = [normalise_nvtx(name) for name in ranges.names]
    names = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    of_name = np.array([names[text] for text in texts], np.int64)
    rows = row_numbers(ranges, scope.threads(ranges))
    rows = rows[ranges.nests[rows]]
    key = ranges.thread[rows].astype(np.int64) * len(names) + of_name[ranges.name[rows]]
    return _Candidates(report, [*names], rows, key)


def _by_pattern(report: Report, candidates: _Candidates, scope: Scope) -> Iterations | None:
    repeats = repeated(report, scope)
    if repeats is None:
        return None
    _, start, end, process = repeats
    name, labels = repeats.name, tuple(f"repeat {number}" for number in range(len(start)))
    rows, never_closed = np.empty(0, np.intp), np.zeros(len(start), bool)
    found = Iterations(Rule.PATTERN, name, start, end, labels, rows, never_closed, process)
    return found if candidates.are_steps(found) else None
