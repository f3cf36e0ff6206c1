"""Memsets by which a benchmark empties the L2 cache before each launch that it measures."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.run import A_RUN
from nsys_tui.model.arrays import Indices

_CACHE: Final = 32_000_000
"""Bytes that a cache holds at most on most GPUs: benchmarks clear more."""


def are_flushes(case: Case, rows: Indices) -> bool:
    """Whether most memsets of a GPU have one size, that of a cache or more, and come before timing.

    An event is recorded right after each of them: what is measured begins behind the memset.
    """
    ops, calls, api = case.report.operations, case.report.calls[rows], case.report.api
    timed = (calls >= 0) & (calls + 1 < len(api))
    record = np.array(["EventRecord" in name for name in api.names], bool)
    timed[timed] = record[api.name[calls[timed] + 1]]
    size = np.sort(ops.bytes[rows[timed]])
    middle = size[len(size) // 2] if len(size) else 0
    alike = int((size == middle).sum())
    return bool(middle >= _CACHE and alike >= max(A_RUN, len(rows) // 2))
