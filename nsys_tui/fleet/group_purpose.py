"""What the ranks of a communicator are to one another, guessed from its shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.fleet.collectives import Group
    from nsys_tui.fleet.fleet import Member


def purpose(group: Group, members: Sequence[Member]) -> str:
    """A guess, marked ``≈``; empty where the shape tells nothing, as of all ranks together.

    Launchers number ranks node by node, and frameworks give tensor parallelism the closest ones: so
    neighbours on one host are that, and every n-th rank is data parallelism. Sends and receives are
    those of pipeline stages or of experts, which a kernel does not tell.

    Args:
        group: the calls of a communicator.
        members: all ranks of the fleet.
    """
    if "SendRecv" in group.name:
        return "≈ pipeline or expert parallel"
    ranks = sorted(members[place].rank for place in group.members)
    steps = set(np.diff(ranks).tolist())
    if len(ranks) == len(members) or len(steps) != 1:
        return ""
    if steps != {1}:
        return "≈ data parallel"
    hosts = {members[place].report.host for place in group.members}
    return "≈ tensor parallel" if len(hosts) == 1 else ""
