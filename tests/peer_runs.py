"""Runs of sends and receives, rank by rank, and their NCCL logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from loglines import body, info, init

if TYPE_CHECKING:
    from nsys_tui.logs.nccl.hang_report import HangReport


class Call(NamedTuple):
    """One call; calls with one ``group`` start together."""

    op: str
    peer: int = 0
    elements: int = 1024
    datatype: int = 7
    group: int = -1


def send(peer: int, count: int = 1024, datatype: int = 7, group: int = -1) -> Call:
    return Call("Send", peer, count, datatype, group)


def recv(peer: int, count: int = 1024, datatype: int = 7, group: int = -1) -> Call:
    return Call("Recv", peer, count, datatype, group)


REDUCE = Call("AllReduce")
Run = dict[int, list[Call]]
"""Calls by rank."""


def log_of(rank: int, calls: list[Call], nranks: int, *, ended: bool = False) -> list[str]:
    lines = [info(init(f"0x{rank + 1}0", rank, nranks), pid=rank + 1)]
    op_count, last = -1, -1
    for call in calls:
        op_count += call.group < 0 or call.group != last
        last = call.group
        text = body(
            call.op,
            op_count,
            count=call.elements,
            datatype=call.datatype,
            root=call.peer,
            comm=f"0x{rank + 1}0",
            nranks=nranks,
        )
        lines.append(info(text, pid=rank + 1))
    if ended:
        ids = f"comm 0x{rank + 1}0 rank {rank} nranks {nranks} cudaDev 0 busId 1000"
        lines.append(info(f"{ids} - Destroy COMPLETE", pid=rank + 1))
    return lines


def pipeline(steps: int = 4, ranks: int = 4) -> Run:
    """Activations go up, gradients come down, then all reduce."""
    run: Run = {rank: [] for rank in range(ranks)}
    for _ in range(steps):
        for rank in range(ranks):
            run[rank] += [recv(rank - 1)] * (rank > 0) + [send(rank + 1)] * (rank < ranks - 1)
        for rank in range(ranks):
            run[rank] += [recv(rank + 1)] * (rank < ranks - 1) + [send(rank - 1)] * (rank > 0)
        for calls in run.values():
            calls.append(REDUCE)
    return run


def ring(steps: int = 4, ranks: int = 4) -> Run:
    """Each rank sends to the next and receives from the one before, as one group."""
    run: Run = {}
    for rank in range(ranks):
        run[rank] = []
        for step in range(steps):
            both = send((rank + 1) % ranks, group=step), recv((rank - 1) % ranks, group=step)
            run[rank] += [*both, REDUCE]
    return run


def told(found: HangReport) -> set[str]:
    kinds = {one.what for one in found.mismatches if one.point_to_point}
    return kinds | ({"behind"} if found.drifts else set())
