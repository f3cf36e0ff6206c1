"""All-to-alls of grouped sends and receives against a plain loop; what is near one is none."""

from __future__ import annotations

import random
import re
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from loglines import logs_json, read
from peer_runs import REDUCE, Run, log_of, pipeline, recv, ring, send, told

from nsys_tui.logs.nccl.exchanges import exchanges
from nsys_tui.logs.nccl.hangs import find_hangs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsys_tui.logs import LogResult
    from nsys_tui.logs.nccl.exchanges import Exchange

RANKS = 4
Sizes = list[list[list[int]]]
"""Elements by step, sender and receiver."""


def sizes(steps: int, seed: int = 4) -> Sizes:
    rng = random.Random(seed)
    return [
        [[rng.randrange(1, 900) for _ in range(RANKS)] for _ in range(RANKS)] for _ in range(steps)
    ]


def experts(made: Sizes) -> Run:
    """Each step an all-to-all as one group, with itself too, then all reduce; 0 is left out."""
    run: Run = {rank: [] for rank in range(RANKS)}
    for step, table in enumerate(made):
        for rank, calls in run.items():
            calls += [
                send(to, table[rank][to], group=step) for to in range(RANKS) if table[rank][to]
            ]
            calls += [
                recv(by, table[by][rank], group=step) for by in range(RANKS) if table[by][rank]
            ]
            calls.append(REDUCE)
    return run


def result_of(folder: Path, run: Run, *, merged: bool = False) -> LogResult:
    logs = [log_of(rank, calls, RANKS) for rank, calls in run.items()]
    if merged:
        logs = [[line for several in zip(*logs, strict=True) for line in several]]
    return read(folder, *logs)


def found(result: LogResult) -> list[Exchange]:
    return exchanges(result.calls, result.communicators, result.groups)


@pytest.mark.parametrize("merged", [False, True])
def test_bytes_and_imbalance_of_experts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, merged: bool
) -> None:
    monkeypatch.setattr("nsys_tui.logs.textfile.BLOCK_BYTES", 1500)
    made = sizes(12)
    result = result_of(tmp_path, experts(made), merged=merged)
    (one,) = found(result)
    every = [4 * n for table in made for row in table for n in row]
    received = [[4 * sum(row[rank] for row in table) for rank in range(RANKS)] for table in made]
    assert (one.group, one.nranks, one.number) == (0, RANKS, 12)
    assert (one.least_bytes, one.most_bytes) == (min(every), max(every))
    assert one.mean_bytes == Fraction(sum(every), len(every))
    uneven = sum(max(step) * RANKS / sum(step) for step in received) / 12
    assert one.imbalance == pytest.approx(uneven)
    totals = [sum(step[rank] for step in received) for rank in range(RANKS)]
    assert one.busiest == totals.index(max(totals))
    assert not find_hangs(result).mismatches
    (said,) = (text for text in logs_json(result)["in_short"] if "all-to-all" in text)
    assert said == (
        f"group 0: 12 all-to-alls of 4 ranks by sends and receives, {min(every):,} to"
        f" {max(every):,} bytes to a rank; imbalance {uneven:.2f}"
    )


def test_a_rank_that_sends_nothing_to_another_one_leaves_it_out(tmp_path: Path) -> None:
    made = sizes(3)
    made[1][2][0] = 0
    (one,) = found(result_of(tmp_path, experts(made)))
    assert one.number == 3


def test_without_all_ranks_no_imbalance_is_known(tmp_path: Path) -> None:
    run = experts(sizes(3))
    del run[3]
    (one,) = found(result_of(tmp_path, run))
    assert (one.number, one.imbalance, one.busiest) == (3, None, None)


def gather() -> Run:
    """All send to rank 0, which sends to all in a group of its own."""
    run: Run = {rank: [send(0, group=0), recv(0, group=1)] for rank in range(1, RANKS)}
    others = range(1, RANKS)
    root = [recv(by, group=0) for by in others] + [send(to, group=1) for to in others]
    return {0: root, **run}


@pytest.mark.parametrize("shape", [pipeline, ring, gather])
def test_other_exchanges_are_no_all_to_all(tmp_path: Path, shape: Callable[[], Run]) -> None:
    assert found(result_of(tmp_path, shape())) == []


def test_without_a_counter_none_is_known(tmp_path: Path) -> None:
    logs = [
        [re.sub("opCount [0-9a-f]+", "opCount 0", line) for line in log_of(rank, calls, RANKS)]
        for rank, calls in experts(sizes(3)).items()
    ]
    assert found(read(tmp_path, *logs)) == []


def test_a_rank_that_sends_less_to_one_peer_is_named(tmp_path: Path) -> None:
    run = experts(sizes(5))
    at = next(i for i, c in enumerate(run[2]) if (c.op, c.peer, c.group) == ("Send", 3, 3))
    run[2][at] = run[2][at]._replace(elements=run[2][at].elements - 1)
    result = result_of(tmp_path, run)
    (fault,) = find_hangs(result).mismatches
    sender, receiver = fault.members
    ranks = [result.communicators[one.communicator].rank for one in (sender, receiver)]
    assert (fault.what, ranks, sender.number) == ("size", [2, 3], at + 1)
    del run[2][at]
    assert told(find_hangs(result_of(tmp_path, run))) == {"one-sided"}
