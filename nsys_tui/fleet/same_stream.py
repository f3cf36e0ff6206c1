"""Communicators that only share a stream's number, told apart by which ranks leave together.

Where NCCL names no communicator, the k-th call on a stream is matched over all ranks, although the
ranks may be of several tensor or data parallel groups. By UTC alone the ranks of a group end
together and groups apart. Clocks that are off look like that too, but a host has one clock: so sets
of ranks that are hosts are left alone, and sets across hosts are communicators.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.fleet.clocks import close
from nsys_tui.fleet.collectives import match

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.fleet.collectives import Group
    from nsys_tui.fleet.session_clock import SessionClock
    from nsys_tui.fleet.summary import Collectives

_SAMPLE: Final = 64
"""Calls of a group that are looked at, evenly chosen."""


def told_apart(
    own: Sequence[Collectives], clocks: Sequence[SessionClock], hosts: Sequence[str]
) -> list[Collectives]:
    """The collectives with a communicator of their own for each set of ranks that leave together.

    Args:
        own: collectives of each rank.
        clocks: of the session of each rank, by UTC.
        hosts: of each rank.
    """
    keys = [list(mine.keys) for mine in own]
    groups = match(own, clocks).groups
    bound = close(groups)
    for group in groups:
        if not group.communicator.startswith("stream ") or group.unmatched or not group.calls:
            continue
        sets = _leaving_together(group, bound)
        if not _are_communicators(sets, hosts):
            continue
        for number, members in enumerate(sets, 1):
            for place in members:
                at = keys[place].index((group.name, group.communicator))
                keys[place][at] = group.name, f"≈ {group.communicator}, set {number}"
    return [replace(mine, keys=tuple(each)) for mine, each in zip(own, keys, strict=True)]


def _leaving_together(group: Group, bound: float) -> list[list[int]]:
    """Ranks whose ends are no further apart than ``bound``, at least in half of the calls."""
    ends = group.end[:, :: -(-group.calls // _SAMPLE)]
    left = np.arange(len(ends))
    sets = []
    while len(left):
        near = np.median(np.abs(ends[left] - ends[left[0]]), axis=1) <= bound
        sets.append([group.members[row] for row in left[near].tolist()])
        left = left[~near]
    return sets


def _are_communicators(sets: Sequence[Sequence[int]], hosts: Sequence[str]) -> bool:
    """Whether sets of ranks are of one size and none of them is what shares a clock."""
    of_sets = [{hosts[place] for place in members} for members in sets]
    one_host = len(set().union(*of_sets)) == 1
    alike = len(set(map(len, sets))) == 1 and len(sets[0]) > 1
    return len(sets) > 1 and alike and (one_host or all(len(each) > 1 for each in of_sets))
