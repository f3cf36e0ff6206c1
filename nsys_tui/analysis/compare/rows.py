"""Rows of a comparison: a figure or a name on both sides, what became of it, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log
from typing import Final, NamedTuple

from nsys_tui.analysis.compare.comparability import WITNESSES, of_one_side
from nsys_tui.analysis.compare.side import METRICS, MORE_IS_BETTER, SHARES, TAIL, WHOLE, Named, Side
from nsys_tui.analysis.compare.stats import (
    FEWEST,
    Change,
    Rules,
    Sample,
    Verdict,
    discovered,
    judge,
    relative,
)
from nsys_tui.model.categories import is_communication
from nsys_tui.model.kernel_names import variant_names

_KINDS: Final = {
    Verdict.BETTER: "faster",
    Verdict.WORSE: "slower",
    Verdict.SAME: "same",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.UNKNOWN: "too few",
}
_PLAIN: Final = {"slower": "more", "faster": "less"}
"""What becomes of times of different work, and of collectives, which last as long as they wait."""
_IDLE: Final = _PLAIN | {"more calls": "more", "fewer calls": "less"}
"""What becomes of idle time, which is no work that takes long."""


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
    """Of the figure that ``statistic`` names."""
    by_step: bool
    """Whether ``change`` compares sums per step; else durations of instances."""
    kind: str
    """``new``, ``gone``, ``slower``, ``faster``, ``more calls``, ``fewer calls``, ``more bytes``,
    ``fewer bytes``, ``more threads``, ``fewer threads``, ``too few``, ``more``, ``less``, ``same``
    or ``inconclusive``."""
    verdict: Verdict
    variants: tuple[str | None, str | None] = (None, None)
    """Which kernels of the name that ``key`` is these are in A and in B; None for all."""
    a_bytes: float = 0
    b_bytes: float = 0
    share: bool = False
    """Whether the figures are parts of the whole in billionths, not ns."""

    @property
    def delta(self) -> float:
        """``b_total - a_total``."""
        return self.b_total - self.a_total

    @property
    def statistic(self) -> str:
        """What ``change`` compares."""
        if self.key in TAIL:
            return {"slow": "share of steps above 1.5 medians"}.get(self.key, self.key)
        return "mean per step" if self.by_step else "mean of instances"

    @property
    def words(self) -> str:
        """``worse: slower``, ``gone``, ``same``, ``too few``."""
        if self.kind == "too few" or self.kind == str(self.verdict):
            return self.kind
        if self.verdict is Verdict.UNKNOWN or self.kind in ("new", "gone"):
            return self.kind  # their work may be done under other names
        return f"{self.verdict}: {self.kind}"


class _Pair(NamedTuple):
    key: str
    name: str
    a: Named | None
    b: Named | None
    variants: tuple[str | None, str | None] = (None, None)


class RowJudge:
    """Compares sides row by row.

    Args:
        a: before.
        b: after.
        rules: threshold, and what runs differ by where they do not show it.
    """

    def __init__(self, a: Side, b: Side, rules: Rules) -> None:
        self.a, self.b = self.sides = a, b
        self.comparable = True
        """Whether names may be judged: where sides are not comparable none is better or worse."""
        self.rules = rules
        self.by_step = a.by_step and b.by_step
        self.unknown = a.unknown | b.unknown

    def summary(self) -> tuple[Row, ...]:
        """A row for each figure that either side has; of one that only one has, 0 is the other."""
        rows = []
        for key, name in METRICS.items():
            a, b = self.a.metrics.get(key), self.b.metrics.get(key)
            has_both_gpus = "busy" in self.a.metrics and "busy" in self.b.metrics
            both = a is not None and b is not None
            known = key not in self.unknown and (both if key in TAIL else a or b)
            if known and (key in ("wall", *TAIL) or has_both_gpus):
                rows.append(self._figure(key, name, a or _zeros_like(b), b or _zeros_like(a)))
        return _corrected_tail(rows)

    def _figure(self, key: str, name: str, a: Sample, b: Sample) -> Row:
        absolute = self.rules.threshold * WHOLE if key == "slow" else self.rules.absolute
        rules = replace(self.rules, more_is_better=key in MORE_IS_BETTER, absolute=absolute)
        change = judge(a, b, rules)
        return Row(
            key=key,
            name=name,
            a_total=change.a,
            b_total=change.b,
            a_count=a.count,
            b_count=b.count,
            change=change,
            by_step=self.by_step,
            kind=_figure_kind(change),
            verdict=change.verdict,
            share=key in SHARES,
        )

    def group(self, key: str) -> tuple[Row, ...]:
        """A row for each name of either side, the largest difference in time first.

        None where a side is not known or not recorded, or causes are told by other data on either:
        all of it would be new or gone.
        """
        if key in self.unknown or any(key in side.untraced for side in self.sides):
            return ()
        if key == "stalls" and of_one_side(self.a, self.b, WITNESSES):
            return ()
        pairs = [*self._pairs(key)]
        changes = iter(discovered([self._change(p.a, p.b) for p in pairs if p.a and p.b]))
        rows = [self._named(pair, next(changes) if pair.a and pair.b else None) for pair in pairs]
        words = _IDLE if key == "stalls" else _PLAIN
        rows = [
            replace(row, kind=words.get(row.kind, row.kind))
            if key == "stalls" or not self.comparable or is_communication((row.key,))
            else row
            for row in rows
        ]
        return tuple(sorted(rows, key=lambda row: (-abs(row.delta), -row.a_total, row.name)))

    def _pairs(self, group: str) -> Iterator[_Pair]:
        """What is compared with what: names, and kernels of a name by their template arguments.

        Of variants that only A has and those that only B has it is not known which became which:
        one each are a pair, more are not told apart.
        """
        mine, theirs = self.a.names(group), self.b.names(group)
        for name in sorted({*mine, *theirs}):
            a, b = (side.variants_of(name) if group == "kernels" else {} for side in self.sides)
            left, right = ([key for key in one if key not in b or key not in a] for one in (a, b))
            if not (a and b) or (left and right and len(left) + len(right) > 2):
                other = " (other template arguments)" if a and b else ""
                yield _Pair(name, name + other, mine.get(name), theirs.get(name))
                continue
            called = variant_names(name, {*a, *b})
            if left and right:
                (old,), (new,) = left, right
                text = f"{called[old]} -> {called[new]}"
                yield _Pair(name, text, a[old], b[new], (old, new))
            single = {*left, *right} if left and right else set()
            for key in sorted({*a, *b} - single):
                yield _Pair(name, called[key], a.get(key), b.get(key), (key, key))

    def _change(self, a: Named, b: Named) -> Change:
        if a.per_step is None or b.per_step is None:
            return judge(a.instances, b.instances, self.rules)
        return judge(a.per_step, b.per_step, self.rules)

    def _named(self, pair: _Pair, change: Change | None) -> Row:
        a, b = pair.a, pair.b
        by_step = change is not None and bool(a and a.per_step and b and b.per_step)
        if change is None or a is None or b is None:
            change, kind = _one_sided(a, b), "new" if a is None else "gone"
        else:
            kind = self._kind(pair.key, a, b, change)
        verdict = {"new": Verdict.WORSE, "gone": Verdict.BETTER}.get(kind, change.verdict)
        rare = not (a and b) and max(n.count for n in (a, b) if n) < FEWEST
        verdict = verdict if self.comparable and not rare else Verdict.UNKNOWN
        return Row(
            key=pair.key,
            name=pair.name,
            variants=pair.variants,
            a_total=change.a if by_step else (a.total if a else 0) / self.a.parts,
            b_total=change.b if by_step else (b.total if b else 0) / self.b.parts,
            a_count=(a.count if a else 0) / self.a.parts,
            b_count=(b.count if b else 0) / self.b.parts,
            change=change,
            by_step=by_step,
            kind=kind,
            verdict=verdict,
            a_bytes=(a.amount if a else 0) / self.a.parts,
            b_bytes=(b.amount if b else 0) / self.b.parts,
        )

    def _kind(self, key: str, a: Named, b: Named, change: Change) -> str:
        """What became of a name: slower because each takes longer, or moves, launches or is more.

        Threads are those of all kernels of a name, so not told of one variant.
        """
        kernels = self.a.names("kernels").get(key) is a and self.b.names("kernels").get(key) is b
        mine, theirs = a.amount, b.amount
        if kernels:
            mine, theirs = self.a.threads.get(key, 0), self.b.threads.get(key, 0)
        if change.verdict.told and mine and theirs and a.total and b.total:
            moved = log((theirs / b.count) / (mine / a.count))
            rate = log((b.total / theirs) / (a.total / mine))
            if abs(rate) < abs(moved) and (moved > 0) == (change.verdict is Verdict.WORSE):
                what = "threads" if kernels else "bytes"
                return f"more {what}" if moved > 0 else f"fewer {what}"
        calls = self._calls(a, b)
        often = "more calls" if calls > 0 else "fewer calls"
        changed = abs(calls) >= self.rules.threshold
        if a.per_step is None or b.per_step is None:
            unmoved = changed and change.verdict is Verdict.SAME
            return often if unmoved else _KINDS[change.verdict]
        by_calls = changed and (calls > 0) == (change.verdict is Verdict.WORSE)
        if change.verdict.told and by_calls:
            each = judge(a.instances, b.instances, self.rules)
            if each.verdict is not change.verdict:
                return often
        return _KINDS[change.verdict]

    def _calls(self, a: Named, b: Named) -> float:
        """Relative change of how often a name occurs: in the median step, else in all."""
        if not self.by_step:
            return relative(a.count, b.count) or 0.0
        return relative(a.calls or 0.0, b.calls or 0.0) or 0.0


def _figure_kind(change: Change) -> str:
    if change.verdict.told:
        return "more" if change.delta > 0 else "less"
    return _KINDS[change.verdict]


def _corrected_tail(rows: list[Row]) -> tuple[Row, ...]:
    """The rows, those of the tail corrected as one family."""
    tail = [row for row in rows if row.key in TAIL]
    changes = dict(zip(tail, discovered([row.change for row in tail]), strict=True))
    return tuple(
        replace(
            row, change=changes[row], verdict=changes[row].verdict, kind=_figure_kind(changes[row])
        )
        if row in changes
        else row
        for row in rows
    )


def _one_sided(a: Named | None, b: Named | None) -> Change:
    """What only one side has."""
    first, second = (named.instances.mean if named else 0.0 for named in (a, b))
    medians = (a.instances.median if a else 0.0, b.instances.median if b else 0.0)
    return Change(first, second, relative(first, second), None, Verdict.UNKNOWN, medians)


def _zeros_like(other: Sample | None) -> Sample:
    """A figure that one side lacks is 0 in each of its steps."""
    return Sample.of([0] * (other.count if other is not None else 1))
