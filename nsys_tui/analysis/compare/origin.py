"""Which reports of one moment are the ranks of one run, and which are runs of their own.

Ranks share a job or a communicator and have different numbers; jobs that only happen to run side by
side do not. What nothing tells apart counts as one run: too few runs raise no false alarm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nsys_tui.analysis.identity import digest, environment_of, nccl_inits, nccl_ranks
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.report import Report

_OWN_RANK: Final = re.compile(r"(?i)(rank[= ])\d+")
"""The rank in a command of which every rank has its own."""


_COMMUNICATOR: Final = "NCCL communicator ID"


@dataclass(frozen=True)
class Origin:
    """What a report tells of the run that it belongs to; empty or None where nothing does."""

    jobs: Mapping[str, str]
    """Digests of the command and of what schedulers and CI call the job, by name."""
    ranks: Mapping[str, tuple[int, ...]]
    """Ranks that are in the report, by what says so."""
    world: int | None = None
    """Ranks of the whole run."""
    communicators: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    """Digests of the host and bus of each GPU."""
    talks: bool | None = None
    """Whether ranks communicate at all."""

    @property
    def most(self) -> int:
        """Ranks in the report."""
        return max(map(len, self.ranks.values()), default=1)


NOWHERE: Final = Origin({}, {})
"""Of a report that tells nothing."""


def origin_of(report: Report) -> Origin:
    """Reads what a report tells of its run; NCCL's own words only where the launcher has none."""
    data, told = report.metadata, environment_of(report)
    jobs = dict(told.jobs)
    if data.command:
        jobs["command"] = digest(_OWN_RANK.sub(r"\1#", " ".join(data.command)))
    ranks = {"MPI": tuple(sorted({*report.ranks.values()}))}
    for rank, variable in ((told.rank, told.variable), *told.others):
        ranks[variable] = () if rank is None else (rank,)
    world, names = told.world, set[str]()
    if told.rank is None or world is None:
        nccl = sorted(rank for each in nccl_ranks(report).values() for rank in each)
        fields = [values for _, values in nccl_inits(report)]
        names = {str(each[_COMMUNICATOR]) for each in fields if _COMMUNICATOR in each}
        if nccl and len({*nccl}) == len(nccl):  # else of several groups
            sizes = (size for each in fields if isinstance(size := each.get("No. of ranks"), int))
            ranks["NCCL"], world = tuple(nccl), max(sizes, default=world)
    buses = {device.info.bus for device in report.devices if device.info and device.info.bus}
    return Origin(
        jobs,
        {source: sources for source, sources in ranks.items() if sources},
        world,
        tuple(sorted(names)),
        tuple(sorted(digest(f"{data.host} {bus}") for bus in buses)) if data.host else (),
        _talks(report),
    )


def _talks(report: Report) -> bool | None:
    ops = report.operations
    if (ops.category == Category.COMM).any() or report.can(Capability.MPI):
        return True
    hidden = ((ops.kind == OpKind.GRAPH) & ops.counted).any()
    return None if hidden or not len(ops) or report.gpu_doubt else False


def apart(a: Origin, b: Origin) -> str:
    """Why two reports of one moment are of two runs; empty where nothing says so."""
    if {*a.communicators} & {*b.communicators}:
        return ""
    for name, value in a.jobs.items():
        if b.jobs.get(name, value) != value:
            return f"{name} differs"
    both = [name for name in a.ranks if name in b.ranks]
    if any(not {*a.ranks[name]} & {*b.ranks[name]} for name in both):
        return ""
    if both:
        return f"both have rank {min(a.ranks[both[0]])} by {both[0]}"
    if any(each.world and each.most >= each.world for each in (a, b)):
        return "one has all ranks of its run"
    if False in (a.talks, b.talks):
        return "neither ranks nor communication tie them"
    return "they share a GPU" if {*a.gpus} & {*b.gpus} else ""
