from __future__ import annotations

import re
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from synth import Synth

from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.analysis.iterations.steps import Rule
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    import pytest

Span = tuple[int, int, str, int]
NAMES = ("step {}", "train{}", "block", "op {}", "LayerNorm")
RANGES = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 20), st.sampled_from(NAMES), st.integers(1, 2)),
    max_size=14,
)
STEP = re.compile(r"(?i)\b(train|step|iter(ation)?|batch)\b")


def by_hand(spans: list[Span], span: tuple[int, int]) -> tuple[Rule, str, list[int]] | None:
    """Rules 2 and 3 of the definitions, one range at a time."""
    named: dict[tuple[int, str], list[Span]] = {}
    for one in sorted(spans, key=lambda s: s[0]):
        named.setdefault((one[3], one[2]), []).append(one)

    def best(groups: dict[tuple[int, str], list[Span]]) -> tuple[str, list[int]] | None:
        ranked = []
        for (tid, name), own in groups.items():
            apart = all(a[1] <= b[0] for a, b in pairwise(own))
            if len(own) >= 3 and apart:
                ranked.append((sum(e - s for s, e, _, _ in own), -tid, name, own))
        if not ranked:
            return None
        *_, name, own = max(ranked, key=lambda r: (r[0], r[1]))
        return name, [s for s, *_ in own]

    found = best({key: own for key, own in named.items() if STEP.search(key[1])})
    if found:
        return Rule.NAME, *found
    repeated = [s for own in named.values() if len(own) >= 3 for s in own]
    tops = [s for s in repeated if not any(holds(o, s, spans) for o in repeated)]
    groups: dict[tuple[int, str], list[Span]] = {}
    for one in sorted(tops, key=lambda s: s[0]):
        groups.setdefault((one[3], one[2]), []).append(one)
    wide = {
        key: own
        for key, own in groups.items()
        if sum(e - s for s, e, *_ in own) * 2 >= span[1] - span[0]
    }
    found = best(wide)
    return (Rule.OUTERMOST, *found) if found and come_regularly(found[1]) else None


def come_regularly(starts: list[int]) -> bool:
    """Three of four within a quarter of the median."""
    times = [after - one for one, after in pairwise(starts)]
    near = [time for time in times if abs(time - median(times)) <= median(times) / 4]
    return 4 * len(near) >= 3 * len(times)


def holds(outer: Span, inner: Span, order: list[Span]) -> bool:
    """Whether a range lies in another one of its thread; of equal ones the earlier row is outer."""
    if outer is inner or outer[3] != inner[3]:
        return False
    if outer[:2] == inner[:2]:
        return places(order, outer) < places(order, inner)
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def places(order: list[Span], one: Span) -> int:
    return next(place for place, other in enumerate(order) if other is one)


@settings(max_examples=150, deadline=None)
@given(RANGES, st.integers(0, 20), st.integers(1, 60))
def test_rules_equal_the_definitions_one_range_at_a_time(
    tmp_path_factory: pytest.TempPathFactory,
    ranges: list[tuple[int, int, str, int]],
    begin: int,
    width: int,
) -> None:
    synth = Synth(tmp_path_factory.mktemp("steps") / "r.sqlite").process(1)
    synth.kernel("k", begin, begin + width)
    spans: list[Span] = []
    for number, (start, length, name, tid) in enumerate(ranges):
        synth.nvtx(name.format(number), start, start + length, tid=tid)
        spans.append((start, start + length, name.replace("{}", "#"), tid))
    found = find_iterations(open_report(synth.write(), use_cache=False))
    expected = by_hand(spans, (begin, begin + width))
    if expected is None:
        assert found.rule is Rule.NONE
        return
    rule, name, starts = expected
    assert found.rule is rule
    covered = int((found.own_end - found.start).sum())
    alike = sum(e - s for s, e, n, _ in spans if n == name and s in starts)
    assert (found.name, found.start.tolist()) == (name, starts) or covered == alike
