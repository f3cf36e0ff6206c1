"""How often the verdict of compare is wrong, and how often right: a script, prints a table.

    python tests/benchmarks/gate_power.py [TRIALS] [SEED]

Step times of many shapes, runs that differ by a known noise, changes that are known. Beside the
verdicts stands what others make of the same steps: Mann-Whitney on the medians of runs (on the
steps of a pair) and Welch's t-test on means, both at 5 % without a threshold.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.compare.blocks import upper_tail
from nsys_tui.analysis.compare.rows import RowJudge
from nsys_tui.analysis.compare.side import Side, Steps
from nsys_tui.analysis.compare.stats import Rules, Sample, pooled
from nsys_tui.analysis.compare.tails import tails
from nsys_tui.analysis.iterations.steps import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

STEP: Final = 10_000_000
"""ns."""
STEPS: Final = 120
WARM: Final = np.exp(-np.arange(STEPS) / 5)


def _autocorrelated(random: np.random.Generator) -> NDArray[np.float64]:
    noise = 0.02 * random.standard_normal(STEPS)
    values = np.empty(STEPS)
    level = noise[0]
    for place in range(STEPS):
        level = 0.8 * level + 0.6 * noise[place]
        values[place] = level
    return 1 + values


def _slow_rank(random: np.random.Generator) -> NDArray[np.float64]:
    """A step lasts as long as the slowest of eight ranks, one of which is slow now and then."""
    ranks = 1 + 0.01 * random.standard_normal((8, STEPS))
    ranks[3] *= 1 + 0.1 * (random.random(STEPS) < 0.3)
    return np.asarray(ranks.max(axis=0), np.float64)


SHAPES: Final[dict[str, Callable[[np.random.Generator], NDArray[np.float64]]]] = {
    "normal": lambda random: 1 + 0.02 * random.standard_normal(STEPS),
    "skewed": lambda random: np.exp(0.1 * random.standard_normal(STEPS)),
    "bimodal": lambda random: np.where(random.random(STEPS) < 0.5, 1.0, 1.3),
    "periodic": lambda random: (
        np.where(np.arange(STEPS) % 4 == 3, 3.0, 1.0) * (1 + 0.01 * random.standard_normal(STEPS))
    ),
    "drift": lambda random: (
        1 + 0.1 * np.arange(STEPS) / STEPS + 0.01 * random.standard_normal(STEPS)
    ),
    "autocorrelated": _autocorrelated,
    "warm-up": lambda random: 1 + 2 * WARM + 0.01 * random.standard_normal(STEPS),
    "slow rank": _slow_rank,
}
NOISES: Final = (0.005, 0.01, 0.02)
RUNS: Final = (1, 3, 5, 10)
CHANGES: Final = (0.0, 0.02, 0.05, 0.1)


POOL: Final = 150
"""Runs that are measured of each shape: trials draw from them, each scaled by noise and change."""


@dataclass(frozen=True)
class Run:
    """A measured run."""

    times: NDArray[np.int64]
    metrics: Mapping[str, Sample]

    @classmethod
    def of(cls, times: NDArray[np.float64]) -> Run:
        """Measures step times, in parts of ``STEP``."""
        whole = np.rint(STEP * times).astype(np.int64)
        return cls(whole, {"wall": Sample.of(whole)} | tails(whole))

    def scaled(self, factor: float) -> Run:
        """The run with every step so many times as long: all but the share of slow steps scales."""
        metrics = {
            key: each if key == "slow" else _scaled(each, factor)
            for key, each in self.metrics.items()
        }
        return Run(np.rint(self.times * factor).astype(np.int64), metrics)


def _scaled(sample: Sample, factor: float) -> Sample:
    runs = tuple(
        replace(run, value=run.value * factor, error=(run.error or 0.0) * factor)
        for run in sample.runs
    )
    return replace(sample, total=round(sample.total * factor), runs=runs)


def drawn(
    pool: list[Run], runs: int, noise: float, change: float, random: np.random.Generator
) -> list[Run]:
    """Some runs of a pool, each with its noise."""
    return [
        pool[place].scaled((1 + change) * (1 + noise * random.standard_normal()))
        for place in random.choice(len(pool), runs, replace=False).tolist()
    ]


def side_of(runs: list[Run]) -> Side:
    """What is measured of step times, and nothing else."""
    count = sum(len(run.times) for run in runs)
    steps = Steps(Rule.NAME, "step", np.zeros(count, np.int64), np.zeros(count, np.int64))
    metrics = {key: pooled([run.metrics[key] for run in runs]) for key in runs[0].metrics}
    return Side(
        label="", identity="", facts={}, options={}, kinds=(), device_count=1, base_ns=0,
        steps=steps, steps_found=count, metrics=metrics, groups={}, lacks={}, run_count=len(runs),
    )  # fmt: skip


def verdict(a: list[Run], b: list[Run], threshold: float) -> str:
    """What compare says of two sides: the mean step, and where it does not tell, the tail."""
    rows = RowJudge(side_of(a), side_of(b), Rules(threshold)).summary()
    return str(next((row.verdict for row in rows if row.verdict.told), rows[0].verdict))


def _each(side: list[Run], figure: Callable[[NDArray[np.int64]], object]) -> NDArray[np.float64]:
    """A figure of each run; of a single run its steps."""
    values = [figure(run.times) for run in side] if len(side) > 1 else side[0].times
    return np.asarray(values, np.float64)


def mann_whitney(a: list[Run], b: list[Run]) -> bool:
    """Whether medians of runs differ at 5 % (normal approximation); of a pair its steps."""
    first, second = (
        np.array([np.median(r.times) for r in side]) if len(side) > 1 else side[0].times
        for side in (a, b)
    )
    n, m = len(first), len(second)
    larger = (second[:, None] > first).sum() + 0.5 * (second[:, None] == first).sum()
    score = (abs(larger - n * m / 2) - 0.5) / math.sqrt(n * m * (n + m + 1) / 12)
    return 2 * upper_tail(float(score), math.inf) < 0.05


def t_test(a: list[Run], b: list[Run]) -> bool:
    """Whether means differ at 5 % by Welch's t-test; of a pair the means of its steps."""
    first, second = (
        np.array([r.times.mean() for r in side]) if len(side) > 1 else side[0].times
        for side in (a, b)
    )
    parts = [side.var(ddof=1) / len(side) for side in (first, second)]
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(side) - 1) for part, side in zip(parts, (first, second), strict=True)
    )
    score = abs(second.mean() - first.mean()) / math.sqrt(sum(parts))
    return 2 * upper_tail(float(score), float(freedom)) < 0.05


def pool_of(shape: str, seed: int, size: int = POOL) -> list[Run]:
    """Measured runs of a shape."""
    random = np.random.default_rng((seed, [*SHAPES].index(shape)))
    return [Run.of(SHAPES[shape](random)) for _ in range(size)]


def tried(
    pool: list[Run],
    case: tuple[int, float, float],
    trials: int,
    random: np.random.Generator,
    threshold: float = 0.01,
) -> tuple[Counter[str], float, float]:
    """Verdicts by how often, and how often the two other tests say that something differs.

    Args:
        pool: runs to draw from.
        case: runs a side, noise from run to run, and change, relative.
        trials: comparisons.
        random: draws.
        threshold: of the verdict.
    """
    runs, noise, change = case
    told: Counter[str] = Counter()
    ranks = means = 0
    for _ in range(trials):
        a, b = drawn(pool, runs, noise, 0.0, random), drawn(pool, runs, noise, change, random)
        told[verdict(a, b, threshold)] += 1
        ranks += mann_whitney(a, b)
        means += t_test(a, b)
    return told, ranks / trials, means / trials


def main(argv: list[str]) -> None:
    """Prints the table, and what of it misses its mark."""
    trials, seed = (int(argv[place]) if len(argv) > place else (400, 1)[place] for place in (0, 1))
    misses: list[str] = []
    print(f"{trials} trials each, threshold 1 %, {STEPS} steps a run, seed {seed}; all in percent")
    print(
        f"{'shape':15} {'noise':>5} {'runs':>4} {'change':>6} |"
        f" {'worse':>6} {'better':>6} {'same':>6} {'open':>6} | {'rank':>6} {'t':>6}"
    )
    random = np.random.default_rng(seed)
    for shape in SHAPES:
        pool = pool_of(shape, seed)
        for runs, noise, change in product(RUNS, NOISES, CHANGES):
            told, ranks, means = tried(pool, (runs, noise, change), trials, random)
            words = ("worse", "better", "same", "inconclusive")
            worse, better, same, opened = (100 * told[word] / trials for word in words)
            line = f"{shape:15} {100 * noise:5g} {runs:4} {100 * change:6g} |"
            line += f" {worse:6.1f} {better:6.1f} {same:6.1f} {opened:6.1f} |"
            line += f" {100 * ranks:6.1f} {100 * means:6.1f}"
            print(line, flush=True)
            wrong = better if change else worse + better
            must = change >= 0.05 and runs >= 5 and noise <= 0.01
            if wrong > 5 or (change >= 0.02 and same > 1) or (must and worse < 95):
                misses.append(line)
    print(f"\n{len(misses)} lines miss a mark (false alarms 5, found 95 with 5 runs, same 1)")
    print("\n".join(misses))


if __name__ == "__main__":
    main(sys.argv[1:])
