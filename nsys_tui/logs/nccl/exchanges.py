"""All-to-alls that ranks make of grouped sends and receives, as those of experts are.

NCCL logs each send and each receive. Calls of one launch that go to all other ranks of the
communicator and come from them are one all-to-all; who sends nothing to one of them may leave that
call out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from nsys_tui.logs.nccl.calls import CallLog
from nsys_tui.logs.nccl.participants import Communicator, Group
from nsys_tui.model.arrays import Int64
from nsys_tui.model.groups import factorise_rows, sums

_SMALLEST: Final = 3
"""Ranks from which on it is no exchange of two."""
_PEERS: Final = 2
"""Ranks that an all-to-all sends to and receives from at least: a ring has one of each."""


@dataclass(frozen=True)
class Exchange:
    """The all-to-alls of one group; bytes are those that ranks in the logs send."""

    group: int
    nranks: int
    number: int
    """All-to-alls of the rank with most of them."""
    least_bytes: int
    """To one rank in one of them, itself too where that is logged."""
    mean_bytes: Fraction
    most_bytes: int
    imbalance: Fraction | None
    """What the rank that receives most receives over the mean of all ranks, as a mean over the
    all-to-alls; None where not every rank is in the logs with as many of them."""
    busiest: int | None
    """Rank that receives most in all of them together."""


def exchanges(
    log: CallLog, communicators: Sequence[Communicator], groups: Sequence[Group]
) -> list[Exchange]:
    """The all-to-alls of each group that makes some; none are known where opCount stays 0."""
    pairwise = log.by_kind.are(("Send", "Recv"))
    large = [one.nranks >= _SMALLEST and one.rank >= 0 for one in communicators]
    wanted = pairwise & np.array([*large, False])[log.by_kind.communicator]
    if not wanted.any() or log.counter_stands_still:
        return []
    made = _Made(communicators)
    for calls in log.parts(wanted):
        sends = calls.are(("Send",))
        columns = calls.communicator, calls.op_count, calls.root, sends, calls.bytes
        made.add(np.column_stack([one.astype(np.int64) for one in columns]))
    made.end()
    return [one for i, group in enumerate(groups) if (one := made.exchange(i, group))]


class _Made:
    """Launches that are all-to-alls, by communicator."""

    def __init__(self, communicators: Sequence[Communicator]) -> None:
        self._rank = np.array([one.rank for one in communicators], np.int64)
        self._nranks = np.array([one.nranks for one in communicators], np.int64)
        self._open = np.empty((0, 5), np.int64)
        self._received: dict[int, list[Int64]] = {}
        self._sent: dict[int, list[tuple[int, int, int, int]]] = {}

    def add(self, calls: Int64) -> None:
        """Takes in calls: communicator, opCount, peer, whether a send, bytes."""
        calls = np.concatenate((self._open, calls))
        calls = calls[np.argsort(calls[:, 0], kind="stable")]
        number, whose = _launches(calls)
        last = np.append(np.diff(whose) != 0, True)  # goes on in the next block, maybe
        self._open = calls[last[number]]
        self._take(calls[~last[number]])

    def end(self) -> None:
        """No more calls."""
        self._take(self._open)

    def _take(self, calls: Int64) -> None:
        """Takes in whole launches."""
        if not len(calls):
            return
        number, whose = _launches(calls)
        codes, ends = factorise_rows([number, calls[:, 3], calls[:, 2]])
        size = sums(codes, calls[:, 4], len(ends))
        launch, sends, peer = ends.T
        others = peer != self._rank[whose[launch]]
        sent, received = (
            np.bincount(launch[others & (sends == which)], minlength=len(whose)) for which in (1, 0)
        )
        _, met = factorise_rows([launch[others], peer[others]])
        every = np.bincount(met[:, 0], minlength=len(whose)) == self._nranks[whose] - 1
        unknown = np.bincount(number, calls[:, 4] < 0, minlength=len(whose)) > 0
        whole = every & (sent >= _PEERS) & (received >= _PEERS) & ~unknown
        total = sums(launch[sends == 0], size[sends == 0], len(whose))
        for one in np.unique(whose[whole]).tolist():
            mine = whole & (whose == one)
            out = size[mine[launch] & (sends == 1)]
            self._received.setdefault(one, []).append(total[mine])
            self._sent.setdefault(one, []).append(
                (len(out), int(out.min()), int(out.max()), int(out.sum()))
            )

    def exchange(self, index: int, group: Group) -> Exchange | None:
        """What the ranks of a group did; None if no all-to-all."""
        members = [one for one in group.members if one in self._sent]
        if not members:
            return None
        sent = [part for one in members for part in self._sent[one]]
        received = [np.concatenate(self._received[one]) for one in members]
        number = max(map(len, received))
        imbalance = busiest = None
        if len(members) == group.nranks and min(map(len, received)) == number:
            table = np.stack(received).astype(np.float64)
            table = table[:, table.any(axis=0)]
            if table.size:
                share = table.max(axis=0) / table.mean(axis=0)
                imbalance = Fraction(float(share.mean()))
                busiest = int(self._rank[members[int(np.argmax(table.sum(axis=1)))]])
        return Exchange(
            index,
            group.nranks,
            number,
            min(least for _, least, _, _ in sent),
            Fraction(sum(part[3] for part in sent), sum(part[0] for part in sent)),
            max(most for _, _, most, _ in sent),
            imbalance,
            busiest,
        )


def _launches(calls: Int64) -> tuple[Int64, Int64]:
    """Number of the launch of each call, and the communicator of each launch."""
    begins = np.ones(len(calls), np.bool_)
    begins[1:] = (np.diff(calls[:, :2], axis=0) != 0).any(axis=1)
    return np.cumsum(begins) - 1, calls[begins, 0]
