from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.analysis.aggregate import group_stats
from nsys_tui.analysis.compare.blocks import (
    block_length,
    instance_errors,
    mean_errors,
    quantile,
    redrawn,
    upper_tail,
)
from nsys_tui.analysis.compare.stats import (
    FEWEST,
    Change,
    Rules,
    Sample,
    Verdict,
    discovered,
    judge,
    pooled,
    relative,
)
from nsys_tui.analysis.compare.tails import tails

SAMPLES = st.lists(st.integers(0, 10**12), min_size=1, max_size=60)
QUIET = Rules(noise=0.0)


def sample(*values: int) -> Sample:
    return Sample.of(values)


def runs(*means: float, jitter: float = 0.002, steps: int = 40, seed: int = 0) -> Sample:
    draws = np.random.default_rng(seed)
    return pooled(
        [Sample.of(np.rint(m * (1 + jitter * draws.standard_normal(steps)))) for m in means]
    )


@given(SAMPLES)
def test_figures_are_exact(values: list[int]) -> None:
    made = sample(*values)
    assert made.median == np.median(values)
    assert (made.count, made.total) == (len(values), sum(values))
    assert (made.least, made.most) == (min(values), max(values))
    assert made.mean == pytest.approx(sum(values) / len(values))


@pytest.mark.parametrize(
    ("freedom", "expected"), [(1, 12.7062), (4, 2.7764), (10, 2.2281), (30, 2.0423), (1e9, 1.96)]
)
def test_quantiles_of_student_are_those_of_the_tables(freedom: float, expected: float) -> None:
    assert quantile(0.975, freedom) == pytest.approx(expected, abs=1e-4)
    assert upper_tail(expected, freedom) == pytest.approx(0.025, abs=1e-5)
    assert upper_tail(-expected, freedom) == pytest.approx(0.975, abs=1e-5)


def test_error_of_a_mean_is_that_of_drawn_blocks() -> None:
    draws = np.random.default_rng(5)
    values = np.cumsum(draws.integers(-50, 51, 300)) + 10_000
    drawn = redrawn(values, 12, 1).mean(axis=1)
    found = float(mean_errors(values[None, :], 12).error[0])
    assert found == pytest.approx(drawn.std(), rel=0.25)
    alone = float(mean_errors(values[None, :], 1).error[0])
    assert alone == pytest.approx(values.std(ddof=1) / math.sqrt(300))
    assert found > 2 * alone


def test_blocks_are_as_long_as_steps_depend_on_each_other() -> None:
    draws = np.random.default_rng(2)
    free = draws.integers(900, 1100, 400)
    tied = np.repeat(draws.integers(900, 1100, 20), 20)
    assert block_length(free) <= 2
    assert block_length(tied) >= 10
    assert block_length(np.full(50, 7)) == 1


def test_errors_of_instances_know_that_neighbours_are_alike() -> None:
    draws = np.random.default_rng(3)
    levels = np.repeat(draws.integers(900, 1100, 10), 100)
    codes = np.tile([0, 1], 500)
    free = draws.permutation(levels)
    errors = [float(instance_errors(group_stats(codes, v, 2)).error[0]) for v in (levels, free)]
    assert errors[0] > 4 * errors[1]
    assert errors[1] == pytest.approx(free[::2].std(ddof=1) / math.sqrt(500), rel=0.5)


@settings(max_examples=50)
@given(SAMPLES)
def test_a_sample_against_itself_is_the_same_however_small(values: list[int]) -> None:
    found = judge(sample(*values), sample(*values))
    assert found.verdict is Verdict.SAME
    assert (found.delta, found.ratio, found.interval) == (0, 0, (0, 0))


@settings(max_examples=50)
@given(SAMPLES, SAMPLES)
def test_swapping_sides_never_keeps_a_verdict_of_better_or_worse(
    a: list[int], b: list[int]
) -> None:
    pair = {judge(sample(*x), sample(*y), QUIET).verdict for x, y in ((a, b), (b, a))}
    assert pair not in ({Verdict.BETTER}, {Verdict.WORSE})


@settings(max_examples=50)
@given(SAMPLES, SAMPLES)
def test_same_is_said_only_of_an_interval_within_the_threshold(a: list[int], b: list[int]) -> None:
    found = judge(sample(*a), sample(*b), Rules(0.03, 0.0))
    if found.verdict is Verdict.SAME and found.interval is not None:
        assert max(map(abs, found.interval)) <= 0.03 + 1e-9
    if found.verdict.told and found.interval is not None:
        assert min(map(abs, found.interval)) > 0.03 - 1e-9


def test_planted_change_is_found_and_the_direction_told() -> None:
    a, b = sample(*range(995, 1006)), sample(*range(1045, 1056))
    assert judge(a, b, QUIET).verdict is Verdict.WORSE
    assert judge(b, a, QUIET).verdict is Verdict.BETTER
    assert judge(a, b, Rules(noise=0.0, more_is_better=True)).verdict is Verdict.BETTER
    assert judge(a, b, QUIET).ratio == pytest.approx(0.05)


def test_one_run_a_side_is_judged_by_the_noise_that_is_assumed() -> None:
    a, b = runs(1e6), runs(1.05e6, seed=1)
    assert judge(a, b, QUIET).verdict is Verdict.WORSE
    doubted = judge(a, b)
    assert doubted.verdict is Verdict.INCONCLUSIVE
    assert doubted.interval is not None
    # 1.96 x 2 % x sqrt(2) to either side of 5 %.
    assert doubted.interval[1] == pytest.approx(1.05 * math.exp(0.0554) - 1, abs=0.002)
    assert judge(a, runs(1.1e6, seed=1)).verdict is Verdict.WORSE


def test_three_runs_a_side_show_what_runs_differ_by() -> None:
    found = judge(runs(1e6, 1.002e6, 0.998e6), runs(1.05e6, 1.052e6, 1.048e6, seed=1))
    assert found.verdict is Verdict.WORSE
    assert found.spread == pytest.approx(0.002, rel=0.5)
    wide = judge(runs(1e6, 1.05e6, 0.95e6), runs(1.05e6, 1.1e6, 1e6, seed=1))
    assert wide.verdict is Verdict.INCONCLUSIVE


def test_one_run_against_many_borrows_their_spread() -> None:
    many = runs(*(1e6 * (1 + 0.001 * n) for n in range(-4, 5)))
    assert judge(many, runs(1.03e6, seed=9)).verdict is Verdict.WORSE
    assert judge(many, runs(1.001e6, seed=9)).verdict is Verdict.SAME


def test_modes_and_slow_steps_that_medians_do_not_see_are_worse() -> None:
    draws = np.random.default_rng(1)
    a = Sample.of(np.rint(1e6 * (1 + 0.01 * draws.standard_normal(40))))
    two = Sample.of(np.where(draws.random(40) < 0.49, 3e6, 1e6) + draws.integers(0, 9000, 40))
    fourth = Sample.of(np.where(np.arange(40) % 4 == 3, 3e6, 1e6) + draws.integers(0, 9000, 40))
    assert judge(a, two).verdict is Verdict.WORSE
    assert judge(a, fourth).verdict is Verdict.WORSE
    assert abs(relative(a.median, fourth.median) or 0) < 0.02


def test_tails_are_told_from_as_many_steps_as_they_need() -> None:
    values = np.random.default_rng(1).integers(900, 1100, 200)
    assert [*tails(values[:39])] == ["slow"]
    assert [*tails(values[:40])] == ["p95", "slow"]
    found = tails(np.concatenate((values, np.full(50, 5000))))
    assert found["p95"].mean == 5000
    assert found["slow"].mean == pytest.approx(1e9 * 50 / 250)


def test_fewer_than_five_values_of_a_run_allow_no_verdict() -> None:
    few, enough = sample(*[100] * (FEWEST - 1)), sample(*[200] * FEWEST)
    assert judge(few, enough).verdict is Verdict.UNKNOWN
    assert judge(enough, few).verdict is Verdict.UNKNOWN
    assert judge(few, enough).ratio == 1.0
    a, b = (pooled([sample(v) for v in side]) for side in ((100, 101, 99), (200, 201, 199)))
    assert judge(a, b).verdict is Verdict.WORSE


def test_from_nothing_there_is_no_ratio_but_a_verdict() -> None:
    found = judge(sample(*[0] * 6), sample(*[50] * 6))
    assert (found.ratio, found.verdict) == (None, Verdict.WORSE)
    assert relative(0, 0) == 0.0
    gone = judge(sample(*[50] * 6), sample(*[0] * 6))
    assert (gone.ratio, gone.verdict) == (-1.0, Verdict.BETTER)


def test_an_absolute_limit_is_in_the_units_of_the_figure() -> None:
    a, b = sample(*[1000] * 9), sample(*[1050] * 9)
    assert judge(a, b, Rules(noise=0.0, absolute=40)).verdict is Verdict.WORSE
    assert judge(a, b, Rules(noise=0.0, absolute=60)).verdict is Verdict.SAME


def test_a_family_of_rows_has_few_false_discoveries() -> None:
    def change(chance: float) -> Change:
        return Change(1, 2, 1.0, (0.5, 1.5), Verdict.WORSE, chance=chance)

    found = discovered([change(p) for p in (0.001, 0.02, 0.04, 0.045, 0.049)])
    assert {each.verdict for each in found} == {Verdict.WORSE}
    found = discovered([change(p) for p in (0.001, 0.03, 0.4, 0.5, 0.6)])
    assert [each.verdict for each in found].count(Verdict.WORSE) == 1
    assert discovered([]) == []


def test_an_interval_beyond_all_numbers_has_an_end() -> None:
    change = judge(runs(1e6, 1e6), runs(2e6, 2e6), Rules(noise=1e7))
    assert change.verdict is Verdict.INCONCLUSIVE
    assert change.interval is not None
    assert change.interval[1] > 1e9
