from __future__ import annotations

import numpy as np
import pytest
from benchmarks.gate_power import SHAPES, pool_of, tried

TRIALS = 60


@pytest.mark.parametrize("shape", SHAPES)
def test_gates_neither_cry_wolf_nor_let_5_percent_pass(shape: str) -> None:
    pool, random = pool_of(shape, 3, 40), np.random.default_rng(3)
    for runs in (1, 5):
        told, _, _ = tried(pool, (runs, 0.01, 0.0), TRIALS, random)
        assert told["worse"] + told["better"] <= 0.05 * TRIALS
        told, _, _ = tried(pool, (runs, 0.01, 0.02), TRIALS, random)
        assert told["same"] == 0
    told, _, _ = tried(pool, (5, 0.01, 0.05), TRIALS, random)
    # Of 60, nine in ten: a true 95 % falls below that once in fifty.
    assert told["worse"] >= 0.9 * TRIALS
