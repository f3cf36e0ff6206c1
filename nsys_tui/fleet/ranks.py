"""Which rank each process of each report is: evidence per process, one decision over all.

nsys takes a file's place in the sorted list for its rank. Here that is the last resort, and the
result always says what a rank was taken from.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.model.nvtx_text import payload_fields
from nsys_tui.model.target import PROCESS_MASK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.fleet.identity import Identity
    from nsys_tui.model.report import Report

Evidence = tuple[tuple[int, str], ...]
"""Ranks that a process may have, the surest first, each with what says so."""

BY_ORDER: Final = "by order of files"
NUMBER: Final = "number in the file name"
_PROCESS_NAME: Final = re.compile(r"(?i)\brank[ _:-]?(\d{1,6})\b")
_INIT: Final = re.compile(r"^(nccl)?CommInit")


def evidence(
    report: Report, processes: Sequence[int], environment: Identity, name: Identity
) -> list[Evidence]:
    """What a report says about the ranks of its processes.

    The environment and the file name speak of the program that nsys started. If that started
    several processes, they tell only which block of ranks these have, and the order of the
    processes (by GPU, then by process id) which one in it: a guess, and called so.

    Args:
        report: the report.
        processes: globalPid of each process, in order of GPU and process id.
        environment: what ``environment_of`` found.
        name: what ``from_name`` found.
    """
    recorded, nccl = report.ranks, nccl_ranks(report)
    found = []
    for place, process in enumerate(processes):
        own: list[tuple[int, str]] = []
        if process in recorded:
            own.append((recorded[process], "MPI"))
        if process in nccl:
            own.append((nccl[process], "NCCL"))
        named = _PROCESS_NAME.search(report.process_name(process))
        if named:
            own.append((int(named[1]), "process name"))
        own += _of_program(place, len(processes), environment, name)
        found.append(tuple(own))
    return found


def _of_program(
    place: int, count: int, environment: Identity, name: Identity
) -> list[tuple[int, str]]:
    said = [
        (environment.rank, environment.variable),
        (name.rank, "file name"),
        (name.number, NUMBER),
    ]
    if count == 1:
        return [(rank, source) for rank, source in said if rank is not None]
    blocks = [(environment.node, "node number"), *said]
    return [
        (block * count + place, f"≈ {source} × {count} + order of GPUs")
        for block, source in blocks
        if block is not None
    ]


def nccl_ranks(report: Report) -> dict[int, int]:
    """globalPid -> rank in the largest communicator that the process opened, from NVTX payloads."""
    ranges = report.ranges
    opens = np.array([_INIT.match(text) is not None for text in ranges.names], bool)
    rows = np.flatnonzero(opens[ranges.name]) if len(opens) else np.empty(0, np.intp)
    if not len(rows):
        return {}
    payloads = report.payloads
    best: dict[int, tuple[int, int]] = {}
    for row, code in zip(rows.tolist(), payloads.of(ranges.rowid[rows]).tolist(), strict=True):
        values = payload_fields(payloads.texts[code]) if code >= 0 else {}
        rank, size = values.get("Rank"), values.get("No. of ranks", 0)
        process = int(ranges.threads[ranges.thread[row]]) & PROCESS_MASK
        if isinstance(rank, int) and isinstance(size, int) and size > best.get(process, (0, 0))[0]:
            best[process] = size, rank
    return {process: rank for process, (_, rank) in best.items()}


def without_numbers(own: Evidence) -> Evidence:
    """What is left where there are no other reports whose names count on: a version, say, does not.

    Args:
        own: evidence of a process.
    """
    return tuple((rank, source) for rank, source in own if NUMBER not in source)


def decide(members: Sequence[Evidence]) -> list[tuple[int, str]]:
    """One rank for every process, no two alike.

    Everybody gets what its surest evidence says. Those who then share a rank have evidence that
    does not tell them apart (the rank of a job script, say): all of them fall back to their next
    one. Who has none left takes the lowest free rank, in the order given.

    Args:
        members: evidence of each process, in the order of files, GPUs and process ids.

    Returns:
        rank and source of each.
    """
    choice = [0] * len(members)

    def claim(place: int) -> tuple[int, str] | None:
        own = members[place]
        return own[choice[place]] if choice[place] < len(own) else None

    while True:
        claims = [claim(place) for place in range(len(members))]
        counts = Counter(rank for rank, _ in filter(None, claims))
        shared = [place for place, c in enumerate(claims) if c is not None and counts[c[0]] > 1]
        if not shared:
            break
        for place in shared:
            choice[place] += 1
    taken = {c[0] for c in claims if c is not None}
    free = (rank for rank in range(len(taken) + len(members)) if rank not in taken)
    return [c if c is not None else (next(free), BY_ORDER) for c in claims]
