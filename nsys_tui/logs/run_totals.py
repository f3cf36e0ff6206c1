"""What a trainer says of a whole run: copies of it joined, and steps from rates that were rounded.

Hugging Face prints steps per second with three decimals: 0.007 may be anything from 0.0065 to
0.0075, so its inverse is no step time. With the run's time only some numbers of steps fit; if it is
one, the mean step is exact.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from nsys_tui.logs.trainers import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.logs.trainers import RunTotal

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
    return [_with_steps(one, shown_steps) for one in joined]


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


def _runtime(total: RunTotal) -> Fraction:
    return seconds_of(dict(total.values).get("train_runtime", "")) or Fraction(0)


def seconds_of(text: str) -> Fraction | None:
    """``5:57:27.49`` or ``273.0149`` as seconds."""
    parts = [number(word) for word in text.split(":")]
    if any(part is None for part in parts):
        return None
    return sum((part or Fraction(0)) * 60**i for i, part in enumerate(reversed(parts))) or None


def _with_steps(total: RunTotal, shown: int | None) -> RunTotal:
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
