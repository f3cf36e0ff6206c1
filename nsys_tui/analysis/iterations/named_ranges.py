"""Ranges of one name on one thread, of which those of one may be the steps of a program."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np

from nsys_tui.analysis.aggregate import grouped_union
from nsys_tui.analysis.iterations.kernel_pattern import FEWEST, are_alike
from nsys_tui.analysis.iterations.steps import Iterations, Rule
from nsys_tui.analysis.launches import launching
from nsys_tui.analysis.window import Scope, row_numbers
from nsys_tui.model.arrays import Bool, Indices, Int64
from nsys_tui.model.groups import factorise
from nsys_tui.model.report import Report
from nsys_tui.model.target import PROCESS_MASK
from nsys_tui.names import normalise_nvtx, strip_op_id
from nsys_tui.patterns import matching
from nsys_tui.redaction import redacted

_ASIDE_NAME: Final = re.compile(r"(?i)(epoch|valid|eval|test|load|fetch|optim|schedul)")
"""Names of what holds steps, is in them or comes between them: steps only where no other are."""
PART_NAME: Final = re.compile(r"(?i)(layer|block|stage|phase)")
"""Names of parts that a step goes through, one after the other."""
_NUMBER: Final = re.compile(r"\d{1,15}(?!\d)")


class Candidates:
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

    @classmethod
    def of(cls, report: Report, scope: Scope) -> Candidates:
        """Those of all ranges in scope that nest."""
        ranges = report.ranges
        texts = [normalise_nvtx(name) for name in ranges.names]
        names = {text: code for code, text in enumerate(dict.fromkeys(texts))}
        of_name = np.array([names[text] for text in texts], np.int64)
        rows = row_numbers(ranges, scope.threads(ranges))
        rows = rows[ranges.nests[rows]]
        key = ranges.thread[rows].astype(np.int64) * len(names) + of_name[ranges.name[rows]]
        return cls(report, [*names], rows, key)

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
        return self._report.api.threads[np.unique(launching(self._report)[:, 1])]

    def outermost(self, chosen: Bool) -> Candidates:
        """Some candidates, with those of their ranges that lie in no other range of them."""
        ranges, mine = self._ranges, chosen[self._of]
        rows, key = self._rows[mine], self._key[mine]
        thread, start, end = ranges.thread[rows], ranges.start[rows], ranges.end[rows]
        order = np.lexsort((rows, -end, start, thread))
        rank, ends = factorise(end[order])
        # The latest end so far: ranks, so that those of a thread are above all of the one before.
        reach = thread[order].astype(np.int64) * len(ends) + rank
        top = np.append(True, np.maximum.accumulate(reach)[:-1] < reach[1:])[: len(rows)]
        return Candidates(self._report, self._labels, rows[order][top], key[order][top])

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
