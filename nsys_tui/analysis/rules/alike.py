"""Operations that are alike, added up once: rules ask which kernels have the time of a report."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from nsys_tui.analysis.window import WHOLE_REPORT, Scope, row_numbers
from nsys_tui.model.arrays import Bool, Int64
from nsys_tui.model.groups import factorise_rows, first_rows, sums
from nsys_tui.model.report import Report

_MANY: Final = 1 << 18
"""Operations of a report from which the sums are stored: fewer are added up as fast."""


class Alike(NamedTuple):
    """Operations of one device, name, kind and launch configuration: int64 [n]."""

    device: Int64
    name: Int64
    kind: Int64
    category: Int64
    counted: Int64
    code: Int64
    """Row of ``LaunchAttributes.table``."""
    first: Int64
    """Row of the first of them."""
    launched: Int64
    """How many they are."""
    time: Int64
    """Sum of their durations, whole where they straddle the window."""

    def where(self, chosen: Bool) -> Alike:
        """Some of them."""
        return Alike(*(column[chosen] for column in self))


def alike(report: Report, scope: Scope) -> Alike:
    """The operations in scope by what is the same; those of many are kept for a report."""

    def made() -> dict[str, Int64]:
        ops = report.operations
        rows = row_numbers(ops, scope.operations(ops))
        launch = report.launch_attributes.code[rows]
        columns = (ops.device, ops.name, ops.kind, ops.category, ops.counted.view(np.uint8))
        codes, keys = factorise_rows((*(column[rows] for column in columns), launch))
        launched = np.bincount(codes, minlength=len(keys)).astype(np.int64)
        time = sums(codes, ops.durations(rows), len(keys))
        first = rows[first_rows(codes)].astype(np.int64)
        return dict(zip(Alike._fields, (*keys.T.copy(), first, launched, time), strict=True))

    if scope != WHOLE_REPORT or len(report.operations) < _MANY:
        return Alike(**made())
    return Alike(**report.derived("alike_1", made))
