from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.analysis.compare.stats import (
    DRAWS,
    FEWEST,
    Change,
    Spread,
    Verdict,
    judge,
    judge_together,
    relative,
)

SAMPLES = st.lists(st.integers(0, 10**12), min_size=1, max_size=60)


def spread(*values: int) -> Spread:
    return Spread.of(np.sort(np.array(values, np.int64)))


def random(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def judged(a: Spread, b: Spread, **options: float) -> Change:
    return judge(a, b, random(), **options)  # type: ignore[arg-type]


@given(SAMPLES)
def test_median_count_and_sum_are_exact(values: list[int]) -> None:
    made = spread(*values)
    assert made.median == np.median(values)
    assert (made.count, made.total) == (len(values), sum(values))
    assert (made.least, made.most) == (min(values), max(values))


@pytest.mark.parametrize("values", [(10, 20, 40, 80, 160), (1, 2, 4, 8, 16, 32)])
def test_resampled_medians_have_the_distribution_of_all_resamples(values: tuple[int, ...]) -> None:
    size = len(values)
    every = [float(np.median(pick)) for pick in itertools.product(values, repeat=size)]
    drawn = spread(*values).resampled(random(), 200_000)
    outcomes, counts = np.unique(every, return_counts=True)
    assert set(drawn.tolist()) <= set(outcomes.tolist())
    for outcome, expected in zip(outcomes, counts / len(every), strict=True):
        # Three standard errors of a share over 200 000 draws.
        assert abs((drawn == outcome).mean() - expected) < 3 * 0.5 / 200_000**0.5


def test_interval_is_that_of_a_bootstrap_by_resampling() -> None:
    source = np.random.default_rng(5)
    a, b = source.integers(900, 1100, 15), source.integers(950, 1250, 12)
    picks = np.random.default_rng(6)
    before = np.median(picks.choice(a, (20_000, len(a))), axis=1)
    after = np.median(picks.choice(b, (20_000, len(b))), axis=1)
    expected = np.percentile(after / before - 1, (2.5, 97.5))
    found = judged(spread(*a.tolist()), spread(*b.tolist()))
    assert found.ratio == pytest.approx(np.median(b) / np.median(a) - 1)
    assert found.interval == pytest.approx(expected, abs=0.01)


def test_a_large_sample_keeps_what_its_median_can_be() -> None:
    values = np.sort(np.random.default_rng(2).lognormal(10, 1, 300_001).astype(np.int64))
    small = Spread.of(values)
    assert len(small.middle) < 6_000
    assert small.median == np.median(values)
    kept_whole = Spread(len(values), 0, 0, 0, 0, values)
    assert np.array_equal(small.resampled(random()), kept_whole.resampled(random()))


@settings(max_examples=50)
@given(SAMPLES)
def test_a_sample_against_itself_is_the_same_however_small(values: list[int]) -> None:
    found = judged(spread(*values), spread(*values))
    assert found.verdict is Verdict.SAME
    assert (found.delta, found.ratio, found.interval) == (0, 0, (0, 0))


@settings(max_examples=50)
@given(SAMPLES, SAMPLES)
def test_swapping_sides_never_keeps_a_verdict_of_better_or_worse(
    a: list[int], b: list[int]
) -> None:
    there, back = judged(spread(*a), spread(*b)), judged(spread(*b), spread(*a))
    pair = {there.verdict, back.verdict}
    assert pair not in ({Verdict.BETTER}, {Verdict.WORSE})


def test_planted_change_is_found_and_the_direction_told() -> None:
    a = spread(*range(995, 1006))
    b = spread(*range(1045, 1056))
    assert judged(a, b).verdict is Verdict.WORSE
    assert judged(b, a).verdict is Verdict.BETTER
    assert judge(a, b, random(), more_is_better=True).verdict is Verdict.BETTER
    assert judged(a, b).ratio == pytest.approx(0.05)


def test_a_change_below_the_threshold_is_none() -> None:
    a, b = spread(*[1000] * 9), spread(*[1005] * 9)
    assert judged(a, b).verdict is Verdict.SAME
    assert judged(a, b, threshold=0.005).verdict is Verdict.WORSE
    assert judged(spread(*[100] * 9), spread(*[103] * 9), threshold=0.03).verdict is Verdict.WORSE


def test_a_large_change_that_noise_explains_is_none() -> None:
    a = spread(100, 900, 100, 900, 100, 900, 500)
    b = spread(120, 880, 140, 860, 900, 900, 600)
    found = judged(a, b)
    assert found.ratio is not None
    assert found.ratio > 0.01
    assert found.verdict is Verdict.SAME


def test_fewer_than_five_values_allow_no_verdict() -> None:
    few, enough = spread(*[100] * (FEWEST - 1)), spread(*[200] * FEWEST)
    assert judged(few, enough).verdict is Verdict.UNKNOWN
    assert judged(enough, few).verdict is Verdict.UNKNOWN
    assert judged(few, enough).ratio == 1.0


def test_from_nothing_there_is_no_ratio_but_a_verdict() -> None:
    found = judged(spread(*[0] * 6), spread(*[50] * 6))
    assert (found.ratio, found.verdict) == (None, Verdict.WORSE)
    assert relative(0, 0) == 0.0
    gone = judged(spread(*[50] * 6), spread(*[0] * 6))
    assert (gone.ratio, gone.verdict) == (-1.0, Verdict.BETTER)


def test_sums_of_medians_weigh_names_by_how_often_they_run() -> None:
    pairs = [(spread(*[100] * 9), spread(*[110] * 9)), (spread(*[1000] * 9), spread(*[1000] * 9))]
    found = judge_together(pairs, [10.0, 1.0], random())
    assert (found.a, found.b) == (2000.0, 2100.0)
    assert (found.ratio, found.verdict) == (0.05, Verdict.WORSE)
    assert judge_together(pairs, [10.0, 99.0], random()).verdict is Verdict.SAME


def test_equal_seeds_give_equal_intervals() -> None:
    a, b = spread(*range(100, 120)), spread(*range(90, 130))
    assert judge(a, b, random(3)) == judge(a, b, random(3))
    assert judge(a, b, random(3)).interval != judge(a, b, random(4)).interval
    assert DRAWS >= 1000


@pytest.mark.parametrize(("count", "noise"), [(5, 0.005), (11, 0.02), (40, 0.05)])
def test_noise_is_rarely_called_a_change_and_5_percent_is_found(count: int, noise: float) -> None:
    draws = np.random.default_rng(7)

    def sample(factor: float = 1.0) -> Spread:
        times = 1e6 * factor * (1 + noise * draws.standard_normal(count))
        return Spread.of(np.sort(times.astype(np.int64)))

    told = [judged(sample(), sample()).verdict for _ in range(300)]
    assert sum(verdict is not Verdict.SAME for verdict in told) <= 0.08 * len(told)
    found = [judged(sample(), sample(1.05)).verdict for _ in range(50)]
    assert Verdict.BETTER not in found
    assert found.count(Verdict.WORSE) >= 0.9 * 50
