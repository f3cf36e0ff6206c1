"""What a communicator is probably for, guessed from the sizes and types of its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.logs.grammar import POINT_TO_POINT, datatype_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nsys_tui.logs.calls import Calls
    from nsys_tui.logs.participants import Communicator, Group

_FEWEST: Final = 8
"""Calls below which no guess is made."""
_LARGE: Final = 1 << 20
_MAX: Final = 2
"""ncclMax."""


def purposes(
    calls: Calls, communicators: Sequence[Communicator], groups: Sequence[Group]
) -> list[str]:
    """A guess for each group, marked ``≈``; empty where the calls show no pattern.

    Many calls of one size in half precision look like tensor parallelism, large gathers and
    reductions like data parallelism, single values with ``max`` like a check for overflow, sends
    and receives like pipeline or expert parallelism.
    """
    if not len(calls):
        return [""] * len(groups)
    group = np.array([one.group for one in communicators])[calls.communicator]
    order = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[order], np.arange(len(groups) + 1))
    return [
        _purpose(calls, order[bounds[i] : bounds[i + 1]], one.nranks)
        for i, one in enumerate(groups)
    ]


def _purpose(calls: Calls, rows: NDArray[np.intp], nranks: int) -> str:
    if len(rows) < _FEWEST or nranks < 2:
        return ""
    ops = calls.op_names()[rows]
    if np.isin(ops, list(POINT_TO_POINT)).mean() > 0.5:
        return "≈ pipeline or expert parallel"
    if ((calls.count[rows] == 1) & (calls.reduction[rows] == _MAX)).mean() > 0.5:
        return "≈ overflow check"
    sizes, first, counts = np.unique(calls.bytes[rows], return_index=True, return_counts=True)
    common = int(np.argmax(counts))
    kind = datatype_name(int(calls.datatype[rows][first[common]]))
    op = str(ops[first[common]])
    if op == "AllReduce" and counts[common] > len(rows) / 2 and kind in ("fp16", "bf16"):
        return "≈ tensor parallel"
    if (sizes >= _LARGE).any() and np.isin(ops, ["AllReduce", "ReduceScatter"]).any():
        return "≈ data parallel"
    return ""
