"""Which communicator, rank and GPU a line belongs to, worked out after all files were read.

A pointer names a communicator only inside its process and only until it is destroyed; the shared
commId joins the ranks. Where a log has no Init lines the join is by size and order, and says so.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from nsys_tui.logs.line_prefixes import Process
from nsys_tui.logs.nccl.calls import CallLog, KindBook
from nsys_tui.logs.nccl.messages import CommEvent, Timing
from nsys_tui.logs.nccl.participants import Communicator, Gpu, Group
from nsys_tui.model.arrays import Array, Int64

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

    def assign(self, log: CallLog, pointers: Sequence[str]) -> CallLog:
        """Says of which communicator each kind of call is, opening those that no Init line named.

        Args:
            log: the calls; ``pointer``, ``first`` and ``number`` stand beside their kinds.
            pointers: text of each pointer code.

        Returns:
            The calls with the column ``communicator``; a kind of call whose pointer names one
            communicator after another is split.
        """
        keys = [(process, pointers[at]) for process, at in _of_kinds(log, "process", "pointer")]
        for key, first in zip(keys, _of_kinds(log, "file", "first"), strict=True):
            if not self._of_key[key]:
                self._open(key, first)
        again = {key for key in keys if len(self._of_key[key]) > 1}
        instance = np.array([self._of_key[key][0] for key in keys], np.int64)
        if again:
            log = self._split(log, keys, instance, again)
        else:
            log = replace(log, kinds={**log.kinds, "communicator": instance})
        names = ("communicator", "nranks", "device", "number")
        for one, nranks, device, number in _of_kinds(log, *names):
            draft = self.drafts[one]
            if not draft.calls:
                draft.facts.setdefault("nranks", str(nranks))
                draft.device = device
            draft.calls += number
        return log

    def _split(self, log: CallLog, keys: list[Key], instance: Int64, again: set[Key]) -> CallLog:
        """Tells the communicators apart that a pointer named one after another."""
        book = KindBook()

        def told(rows: dict[str, Array]) -> dict[str, Array]:
            kind, line = rows["kind"], rows["line"]
            one = instance[kind]
            at = _position(log.kinds["file"][kind], line)
            for code in np.unique(kind).tolist():
                if keys[code] in again:
                    known = self._of_key[keys[code]]
                    starts = [_position(*self.drafts[i].first) for i in known]
                    mine = kind == code
                    place = np.searchsorted(starts, at[mine], side="right") - 1
                    one[mine] = np.array(known)[np.maximum(place, 0)]
            return {**rows, "kind": book.codes([kind, one], line)}

        blocks = log.mapped(told).blocks
        parts = book.columns(("kind", "communicator"))
        kinds = {name: values[parts["kind"]] for name, values in log.kinds.items()}
        return replace(log, blocks=blocks, kinds={**kinds, **parts})

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
            candidates = by_size.get((timing.place.process, timing.nranks), [])
            if len(candidates) == 1:
                candidates[0].facts.setdefault("rank", str(timing.rank))
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


T = TypeVar("T", int, "Int64")


def _of_kinds(log: CallLog, *names: str) -> Iterator[Any]:
    return zip(*(log.kinds[name].tolist() for name in names), strict=True)


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
    guesses = [_make_group(drafts, each, "", False) for each in _guess(drafts, unnamed, processes)]
    sizes = Counter(group.nranks for group in (*groups, *guesses))
    for guess in guesses:
        ranks = [drafts[i].number("rank") for i in guess.members]
        each = ranks == [*range(len(ranks))] and len(ranks) == guess.nranks
        groups.append(replace(guess, certain=each and sizes[guess.nranks] == 1))
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
