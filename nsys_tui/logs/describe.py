"""A call in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.logs.grammar import datatype_name, reduction_name

if TYPE_CHECKING:
    from nsys_tui.logs.calls import Calls


def describe(calls: Calls, row: int) -> str:
    """A call in words, such as ``AllReduce max fp32 × 4096`` or ``Send fp32 × 8 to rank 1``."""
    op = calls.ops[int(calls.op[row])]
    reduction = reduction_name(int(calls.reduction[row]), op)
    kind = datatype_name(int(calls.datatype[row]))
    towards = {"Send": " to", "Recv": " from"}.get(op)
    peer = f"{towards} rank {int(calls.root[row])}" if towards else ""
    return f"{op} {reduction + ' ' if reduction else ''}{kind} × {int(calls.count[row])}{peer}"
