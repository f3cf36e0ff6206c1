"""Which communicator, rank and GPU a line belongs to, worked out after all files were read.

A pointer names a communicator only inside its process and only until it is destroyed; the shared
commId joins the ranks. Where a log has no Init lines the join is by size and order, and says so.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from nsys_tui.logs.calls import narrow, rows_by
from nsys_tui.logs.participants import Communicator, Gpu, Group

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from nsys_tui.logs.line_prefixes import Process
    from nsys_tui.logs.messages import CommEvent, Timing

Key = tuple[int, str]
"""(process, pointer)."""


@dataclass(slots=True)
class _Draft:
    """A communicator while its lines are being gathered."""

    process: int
    pointer: str
    first: tuple[int, int]
    facts: dict[str, str] = field(default_factory=dict)
    complete: bool = False
    ended: str = ""
    device: int = -1
    calls: int = 0

    def number(self, name: str, default: int = -1) -> int:
        word = self.facts.get(name, "")
        return int(word) if word.lstrip("-").isdigit() else default


class CommunicatorTable:
    """Instances of all communicators, by process, pointer and position in the log."""

    def __init__(self) -> None:
        self.drafts: list[_Draft] = []
        self._of_key: dict[Key, list[int]] = defaultdict(list)

    def add_events(self, events: Iterable[CommEvent]) -> None:
        """Opens, completes and ends instances; events come in line order per file."""
        for event in events:
            place = event.place
            key = (place.process, event.pointer)
            known = self._of_key[key]
            draft = self.drafts[known[-1]] if known else None
            if draft is None or self._is_new(draft, event):
                draft = self._open(key, (place.file, place.line))
            draft.facts |= event.facts
            draft.complete |= event.phase == "complete"
            if event.phase in ("destroy", "abort"):
                draft.ended = event.phase

    @staticmethod
    def _is_new(draft: _Draft, event: CommEvent) -> bool:
        if event.phase in ("destroy", "abort"):
            return False
        return bool(draft.ended) or (draft.complete and event.phase in ("start", "complete"))

    def _open(self, key: Key, first: tuple[int, int]) -> _Draft:
        draft = _Draft(key[0], key[1], first)
        self._of_key[key].append(len(self.drafts))
        self.drafts.append(draft)
        return draft

    def at(self, process: int, pointer: str, file: int, line: int) -> int:
        """Instance that a pointer means at a place; -1 if it is not known."""
        known = self._of_key.get((process, pointer), [])
        if not known:
            return -1
        starts = [self.drafts[i].first for i in known]
        return known[max(0, bisect_right(starts, (file, line)) - 1)]

    def assign(
        self, columns: dict[str, NDArray[Any]], pointers: Sequence[str]
    ) -> NDArray[np.int32]:
        """Instance of each call, opening those that no Init line named.

        Args:
            columns: ``process``, ``pointer``, ``file``, ``line``, ``nranks`` and ``device``.
            pointers: text of each pointer code.
        """
        combined = narrow(columns["process"].astype(np.int64) * len(pointers) + columns["pointer"])
        result = np.empty(len(combined), dtype=np.int32)
        for rows in sorted((rows for _, rows in rows_by(combined)), key=lambda rows: int(rows[0])):
            head = int(rows[0])
            key = (int(columns["process"][head]), pointers[int(columns["pointer"][head])])
            self._assign_key(key, rows, columns, result)
        return result

    def _assign_key(
        self,
        key: Key,
        rows: NDArray[np.integer],
        columns: dict[str, NDArray[Any]],
        result: NDArray[np.int32],
    ) -> None:
        head = int(rows[0])
        if not self._of_key[key]:
            self._open(key, (int(columns["file"][head]), int(columns["line"][head])))
        known = self._of_key[key]
        if len(known) == 1:
            result[rows] = known[0]
        else:
            starts = [_position(*self.drafts[i].first) for i in known]
            at = _position(columns["file"][rows].astype(np.int64), columns["line"][rows])
            place = np.searchsorted(starts, at, side="right") - 1
            result[rows] = np.array(known, dtype=np.int32)[np.maximum(place, 0)]
        for instance in known:
            mine = rows[result[rows] == instance]
            draft = self.drafts[instance]
            draft.calls += len(mine)
            if len(mine):
                draft.facts.setdefault("nranks", str(int(columns["nranks"][mine[0]])))
                draft.device = int(columns["device"][mine[0]])

    def take_ranks(self, timings: Iterable[Timing], ranks: dict[int, int]) -> None:
        """Fills ranks that no line with the pointer told.

        Args:
            timings: ``Init timings`` lines: process, rank and size, but no pointer; used where the
                process has one communicator of that size.
            ranks: RCCL's global rank by process; used for the largest communicator of a process.
        """
        by_size: dict[tuple[int, int], list[_Draft]] = defaultdict(list)
        for draft in self.drafts:
            by_size[draft.process, draft.number("nranks")].append(draft)
        for timing in timings:
            found = by_size.get((timing.place.process, timing.nranks), [])
            if len(found) == 1:
                found[0].facts.setdefault("rank", str(timing.rank))
        for process, rank in ranks.items():
            mine = [draft for draft in self.drafts if draft.process == process]
            size = max((draft.number("nranks") for draft in mine), default=-1)
            largest = [draft for draft in mine if draft.number("nranks") == size]
            if len(largest) == 1:
                largest[0].facts.setdefault("rank", str(rank))

    def finish(
        self, processes: Sequence[Process]
    ) -> tuple[tuple[Communicator, ...], tuple[Group, ...], tuple[Gpu, ...]]:
        """The tables of communicators, of groups and of GPUs."""
        groups = _group(self.drafts, processes)
        group_of = {member: i for i, group in enumerate(groups) for member in group.members}
        gpus: dict[Gpu, int] = {}
        result = []
        for i, draft in enumerate(self.drafts):
            gpu = _gpu(draft, processes)
            result.append(
                Communicator(
                    process=draft.process,
                    pointer=draft.pointer,
                    rank=draft.number("rank"),
                    nranks=draft.number("nranks"),
                    cuda_device=draft.number("cudaDev"),
                    bus_id=draft.facts.get("busId", ""),
                    comm_id=draft.facts.get("commId", ""),
                    nodes=draft.number("nNodes"),
                    local_ranks=draft.number("localRanks"),
                    local_rank=draft.number("localRank"),
                    parent=draft.facts.get("parent", ""),
                    ended=draft.ended,
                    group=group_of[i],
                    gpu=-1 if gpu is None else gpus.setdefault(gpu, len(gpus)),
                    calls=draft.calls,
                    first=draft.first,
                )
            )
        return tuple(result), tuple(groups), tuple(gpus)


T = TypeVar("T", int, "NDArray[np.int64]")


def _position(file: T, line: T) -> T:
    """One number that orders lines over all files; no file has 2**40 lines."""
    return (file << 40) + line


def _gpu(draft: _Draft, processes: Sequence[Process]) -> Gpu | None:
    if draft.process < 0:
        return None
    host = processes[draft.process].host
    bus_id = draft.facts.get("busId", "")
    if bus_id:
        device = draft.number("nvmlDev", draft.number("cudaDev"))
        return Gpu(host, device, bus_id, -1, certain=True)
    return Gpu(host, draft.device, "", draft.process, certain=False)


def _group(drafts: Sequence[_Draft], processes: Sequence[Process]) -> list[Group]:
    """Joins the communicators of different ranks."""
    certain: dict[tuple[str, ...], list[int]] = defaultdict(list)
    unnamed: list[int] = []
    identity: dict[Key, tuple[str, ...]] = {}
    for i, draft in enumerate(drafts):
        name = _identity(draft, identity)
        if name:
            identity[draft.process, draft.pointer] = name
            certain[name].append(i)
        else:
            unnamed.append(i)
    groups = [_make_group(drafts, members, name[0], True) for name, members in certain.items()]
    groups += [
        _make_group(drafts, members, "", False) for members in _guess(drafts, unnamed, processes)
    ]
    return groups


def _identity(draft: _Draft, known: dict[Key, tuple[str, ...]]) -> tuple[str, ...]:
    """What all ranks of a communicator share: its commId, or the split that it came from."""
    if comm_id := draft.facts.get("commId"):
        return (comm_id,)
    parent = known.get((draft.process, draft.facts.get("parent", "")))
    if parent is None or "color" not in draft.facts:
        return ()
    number = draft.facts.get("splitCount", draft.facts.get("childCount", ""))
    return (*parent, f"split {number} color {draft.facts['color']}")


def _make_group(drafts: Sequence[_Draft], members: list[int], name: str, certain: bool) -> Group:
    ordered = sorted(members, key=lambda i: (drafts[i].number("rank"), drafts[i].first))
    nranks = max(drafts[i].number("nranks") for i in members)
    return Group(nranks, tuple(ordered), name, certain)


def _guess(
    drafts: Sequence[_Draft], unnamed: Sequence[int], processes: Sequence[Process]
) -> list[list[int]]:
    """Joins communicators of equal size that are their process's n-th of that size.

    If that gives more members than the communicator has ranks, it is tried within each host, and
    failing that each communicator stays alone: nothing can be said about them.
    """
    seen: dict[tuple[int, int], int] = defaultdict(int)
    candidates: dict[tuple[int, int], list[int]] = defaultdict(list)
    joined: list[list[int]] = []
    for i in sorted(unnamed, key=lambda i: drafts[i].first):
        process, nranks = drafts[i].process, drafts[i].number("nranks")
        if process < 0 or nranks < 1:
            joined.append([i])
        else:
            candidates[nranks, seen[process, nranks]].append(i)
            seen[process, nranks] += 1
    for (nranks, _), members in candidates.items():
        by_host: dict[str, list[int]] = defaultdict(list)
        for i in members:
            by_host[processes[drafts[i].process].host].append(i)
        parts = [members] if len(members) <= nranks else list(by_host.values())
        for part in parts:
            joined += [part] if len(part) <= nranks else [[i] for i in part]
    return joined
