from __future__ import annotations

import statistics
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.analysis import stretch_stats
from nsys_tui.analysis.stretch_stats import Wavelet

values = st.lists(st.integers(-5, 1 << 40) | st.integers(0, 6), min_size=1, max_size=40)
stretches = st.lists(st.tuples(st.integers(0, 39), st.integers(1, 40), st.integers(0, 3)))


@settings(max_examples=200, deadline=None)
@given(values, stretches, st.sampled_from([0, 3, 1000]))
def test_figures_of_stretches_are_those_of_their_values(
    numbers: list[int], pieces: list[tuple[int, int, int]], long: int
) -> None:
    count = len(numbers)
    spans = [(at % count, min(at % count + size, count), code) for at, size, code in pieces]
    spans += [(0, count, code) for code in range(4)]
    first, last, codes = (np.array(column, np.int64) for column in zip(*spans, strict=True))
    with patch.object(stretch_stats, "_LONG", long):
        found = stretch_stats.stretch_stats(codes, first, last, np.array(numbers, np.int64), 4)
    for code in range(4):
        own = [value for lo, hi, of in spans if of == code for value in numbers[lo:hi]]
        assert found.counts[code] == len(own)
        assert found.totals[code] == sum(own)
        assert (found.min[code], found.max[code]) == (min(own), max(own))
        assert found.median[code] == pytest.approx(statistics.median(own), abs=0.5)
        deviation = statistics.stdev(own) if len(own) > 1 else 0
        assert found.std[code] == pytest.approx(deviation, rel=1e-9, abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), stretches)
def test_stretches_are_split_by_code(codes: list[int], pieces: list[tuple[int, int, int]]) -> None:
    spans = [(at % len(codes), min(at % len(codes) + size, len(codes))) for at, size, _ in pieces]
    wavelet = Wavelet(np.array(codes), 10)
    first, last = (np.array([span[side] for span in spans], np.int64) for side in (0, 1))
    found = zip(*(column.tolist() for column in wavelet.split(first, last)), strict=True)
    parts = {(which, code): sorted(wavelet.order[lo:hi].tolist()) for which, code, lo, hi in found}
    assert parts == {
        (which, code): [place for place in range(lo, hi) if codes[place] == code]
        for which, (lo, hi) in enumerate(spans)
        for code in {*codes[lo:hi]}
    }
