"""Rows of a comparison: a figure or a name on both sides, what became of it, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.compare.side import METRICS, SHARES
from nsys_tui.analysis.compare.stats import Change, Spread, Verdict, judge, relative

if TYPE_CHECKING:
    from nsys_tui.analysis.compare.side import Named, Side

_KINDS: Final = {
    Verdict.BETTER: "faster",
    Verdict.WORSE: "slower",
    Verdict.SAME: "same",
    Verdict.UNKNOWN: "too few",
}


@dataclass(frozen=True)
class Row:
    """One name or figure on both sides. Totals are means per steady step, else sums."""

    key: str
    name: str
    a_total: float
    b_total: float
    a_count: float
    """Instances per step, or in all."""
    b_count: float
    change: Change
    """Of the medians that are compared."""
    by_step: bool
    """Whether ``change`` compares sums per step; else durations of instances."""
    kind: str
    """``new``, ``gone``, ``slower``, ``faster``, ``more calls``, ``fewer calls``, ``too few``,
    ``more``, ``less`` or ``same``."""
    verdict: Verdict
    a_bytes: float = 0
    b_bytes: float = 0
    share: bool = False
    """Whether the figures are parts of the whole in billionths, not ns."""

    @property
    def delta(self) -> float:
        """``b_total - a_total``."""
        return self.b_total - self.a_total

    @property
    def words(self) -> str:
        """``worse: slower``, ``better: gone``, ``same``, ``too few``."""
        if self.kind == "too few" or self.kind == str(self.verdict):
            return self.kind
        if self.verdict is Verdict.UNKNOWN:
            return self.kind
        return f"{self.verdict}: {self.kind}"


class RowJudge:
    """Compares sides row by row with one stream of random numbers.

    Args:
        a: before.
        b: after.
        threshold: smaller relative changes count as none.
        random: draws of the bootstrap.
    """

    def __init__(self, a: Side, b: Side, threshold: float, random: np.random.Generator) -> None:
        self.a, self.b = a, b
        self.has_common = True
        """Where nothing is, what only one side has is neither better nor worse."""
        self.threshold, self.random = threshold, random
        self.by_step = a.by_step and b.by_step
        self.unknown = a.unknown | b.unknown

    def _judge(self, a: Spread, b: Spread) -> Change:
        return judge(a, b, self.random, threshold=self.threshold, interval=False)

    def summary(self) -> tuple[Row, ...]:
        """A row for each figure that either side has; of one that only one has, 0 is the other."""
        rows = []
        for key, name in METRICS.items():
            a, b = self.a.metrics.get(key), self.b.metrics.get(key)
            has_both_gpus = "busy" in self.a.metrics and "busy" in self.b.metrics
            known = key not in self.unknown
            if known and (a or b) and (key == "wall" or has_both_gpus):
                rows.append(self._figure(key, name, a or _zeros_like(b), b or _zeros_like(a)))
        return tuple(rows)

    def _figure(self, key: str, name: str, a: Spread, b: Spread) -> Row:
        share = key in SHARES
        change = judge(a, b, self.random, threshold=self.threshold, more_is_better=share)
        kind = "more" if change.delta > 0 else "less"
        if change.verdict in (Verdict.SAME, Verdict.UNKNOWN):
            kind = _KINDS[change.verdict]
        return Row(
            key=key,
            name=name,
            a_total=change.a,
            b_total=change.b,
            a_count=a.count,
            b_count=b.count,
            change=change,
            by_step=self.by_step,
            kind=kind,
            verdict=change.verdict,
            share=share,
        )

    def group(self, key: str) -> tuple[Row, ...]:
        """A row for each name of either side, the largest difference in time first.

        None where a side is not known: all of it would be new or gone.
        """
        if key in self.unknown:
            return ()
        mine, theirs = self.a.names(key), self.b.names(key)
        names = sorted({*mine, *theirs})
        rows = [self._named(name, mine.get(name), theirs.get(name)) for name in names]
        return tuple(sorted(rows, key=lambda row: (-abs(row.delta), -row.a_total, row.name)))

    def _named(self, name: str, a: Named | None, b: Named | None) -> Row:
        change, by_step, kind = self._changed(a, b)
        verdict = change.verdict
        if self.has_common:
            verdict = {"new": Verdict.WORSE, "gone": Verdict.BETTER}.get(kind, verdict)
        return Row(
            key=name,
            name=name,
            a_total=_each(a.total if a else 0, self.a),
            b_total=_each(b.total if b else 0, self.b),
            a_count=_each(a.count if a else 0, self.a),
            b_count=_each(b.count if b else 0, self.b),
            change=change,
            by_step=by_step,
            kind=kind,
            verdict=verdict,
            a_bytes=_each(a.bytes if a else 0, self.a),
            b_bytes=_each(b.bytes if b else 0, self.b),
        )

    def _changed(self, a: Named | None, b: Named | None) -> tuple[Change, bool, str]:
        """Change of a name, whether it is per step, and the kind of the change."""
        if a is None or b is None:
            medians = (a.instances.median if a else 0.0, b.instances.median if b else 0.0)
            change = Change(*medians, relative(*medians), None, Verdict.UNKNOWN)
            return change, False, "new" if a is None else "gone"
        each = self._judge(a.instances, b.instances)
        calls = self._calls(a, b)
        often = "more calls" if calls > 0 else "fewer calls"
        changed = abs(calls) >= self.threshold
        if a.per_step is None or b.per_step is None or not in_most_steps(a.per_step, b.per_step):
            kind = often if changed and each.verdict is Verdict.SAME else _KINDS[each.verdict]
            return each, False, kind
        sums = self._judge(a.per_step, b.per_step)
        by_calls = changed and (calls > 0) == (sums.verdict is Verdict.WORSE)
        told = sums.verdict in (Verdict.BETTER, Verdict.WORSE)
        if told and each.verdict is not sums.verdict and by_calls:
            return sums, True, often
        return sums, True, _KINDS[sums.verdict]

    def _calls(self, a: Named, b: Named) -> float:
        """Relative change of how often a name occurs: in the median step, else in all."""
        if not self.by_step:
            return relative(a.count, b.count) or 0.0
        return relative(a.calls or 0.0, b.calls or 0.0) or 0.0


def in_most_steps(a: Spread, b: Spread) -> bool:
    """Whether a name takes time in more than half of the steps on both sides."""
    return a.median > 0 and b.median > 0


def _each(total: int, side: Side) -> float:
    """A sum as the mean per step, where the side has steps."""
    return total / side.step_count if side.by_step else float(total)


def _zeros_like(other: Spread | None) -> Spread:
    """A figure that one side lacks is 0 in each of its steps."""
    return Spread.of(np.zeros(other.count if other is not None else 1, np.int64))
