"""Which rank each process of each report is: evidence per process, one decision over all.

nsys takes a file's place in the sorted list for its rank. Here that is the last resort, and the
result always says what a rank was taken from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from nsys_tui.analysis.identity import Identity, nccl_ranks
from nsys_tui.errors import UsageError
from nsys_tui.model.report import Report
from nsys_tui.units import named_ranks, ranks_text

Evidence = tuple[tuple[int, str], ...]
"""Ranks that a process may have, the surest first, each with what says so."""

BY_ORDER: Final = "by order of files"
NUMBER: Final = "number in the file name"
GIVEN: Final = "--ranks"
_PROCESS_NAME: Final = re.compile(r"(?i)\brank[ _:-]?(\d{1,6})\b")


def evidence(
    report: Report, owners: Sequence[int], environment: Identity, name: Identity
) -> list[Evidence]:
    """What a report says about its ranks.

    The environment and the file name speak of the program that nsys started. If that started
    several processes, they tell only which block of ranks these have, and the order of the
    ranks (by GPU, then by process id) which one in it: a guess, and called so. So it is where a
    process has several.

    Args:
        report: the report.
        owners: globalPid of the process of each rank, in order of GPU and process id.
        environment: what ``environment_of`` found.
        name: what ``from_name`` found.
    """
    recorded, nccl = report.ranks, nccl_ranks(report, environment.world)
    sizes, seen = Counter(owners), Counter[int]()
    members = []
    for number, process in enumerate(owners):
        here, count = seen[process], sizes[process]
        seen[process] += 1
        numbers = nccl.get(process, [])
        named = _PROCESS_NAME.search(report.process_name(process))
        said = [
            (recorded.get(process), "MPI"),
            (numbers[here] if len(numbers) == count else None, "NCCL"),
            (int(named[1]) if named else None, "process name"),
        ]
        if count > 1:
            said = [_in_process(rank, source, here, count) for rank, source in said]
            said.sort(key=lambda entry: not entry[1].startswith("≈ NCCL"))
        sure = [(rank, source) for rank, source in said if rank is not None]
        members.append((*sure, *_of_program(number, len(owners), environment, name)))
    return members


def _in_process(rank: int | None, source: str, here: int, count: int) -> tuple[int | None, str]:
    """The rank of one GPU of a process: NCCL numbers GPUs, others number the process."""
    if rank is None or source == "NCCL":
        return rank, f"≈ {source} + order of GPUs"
    return rank * count + here, f"≈ {source} × {count} + order of GPUs"


def _of_program(
    number: int, count: int, environment: Identity, name: Identity
) -> list[tuple[int, str]]:
    said = [
        (environment.rank, environment.variable),
        *environment.others,
        (name.rank, "file name"),
        (_on_node(environment), "node number × ranks of a node + local rank"),
        (name.number, NUMBER),
    ]
    if count == 1:
        return [(rank, source) for rank, source in said if rank is not None]
    blocks = [(environment.node, "node number"), *said]
    return [
        (block * count + number, f"≈ {source} × {count} + order of GPUs")
        for block, source in blocks
        if block is not None
    ]


def _on_node(environment: Identity) -> int | None:
    node, local, size = environment.node, environment.local, environment.local_size
    return None if node is None or local is None or size is None else node * size + local


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
    one, first those whose evidence is of one kind. Who has none left takes the lowest free rank, in
    the order given.

    Args:
        members: evidence of each process, in the order of files, GPUs and process ids.

    Returns:
        rank and source of each.
    """
    choice = [0] * len(members)

    def claim(member: int) -> tuple[int, str] | None:
        claims_of = members[member]
        return claims_of[choice[member]] if choice[member] < len(claims_of) else None

    while True:
        claims = [claim(member) for member in range(len(members))]
        alike, counts = Counter(filter(None, claims)), Counter(c[0] for c in claims if c)
        shared = [member for member, c in enumerate(claims) if c and alike[c] > 1]
        shared = shared or [member for member, c in enumerate(claims) if c and counts[c[0]] > 1]
        if not shared:
            break
        for member in shared:
            choice[member] += 1
    taken = {c[0] for c in claims if c is not None}
    free = (rank for rank in range(len(taken) + len(members)) if rank not in taken)
    return [c if c is not None else (next(free), BY_ORDER) for c in claims]


def conflicts(members: Sequence[Evidence], told: Sequence[tuple[int, str]]) -> list[str]:
    """Where evidence of ranks disagrees: what was not used, and of which rank.

    Args:
        members: evidence of each rank.
        told: what ``decide`` made of it.
    """
    claimed = Counter(entry for own in members for entry in dict.fromkeys(own) if _sure(entry))
    notes = [
        f"{source} says rank {rank} for {count} ranks: not used"
        for (rank, source), count in claimed.items()
        if count > 1
    ]
    against: dict[tuple[str, str], list[int]] = {}
    for own, (rank, source) in zip(members, told, strict=True):
        for entry in own:
            if _sure(entry) and claimed[entry] == 1 and entry[0] != rank:
                against.setdefault((source, entry[1]), []).append(rank)
    notes += [
        f"{named_ranks(ranks)} by {source}, although {'the ' * other.islower()}{other} says another"
        for (source, other), ranks in against.items()
    ]
    return notes


def _sure(entry: tuple[int, str]) -> bool:
    return not entry[1].startswith("≈") and entry[1] not in (NUMBER, GIVEN)


_LINE: Final = re.compile(
    r"(?P<name>.*\S)\s+(?P<ranks>\d{1,7}(?:-\d{1,7})?(?:,\d{1,7}(?:-\d{1,7})?)*)"
)
MOST: Final = 1 << 20
"""Ranks of a file at most."""


def read_ranks(path: str, reports: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Ranks by path of the report.

    Lines are ``REPORT RANKS``: a path or file name, and ranks such as ``3``, ``0-7`` or ``0,2,4``;
    empty lines and those with # count for nothing.

    Args:
        path: the file.
        reports: paths of the reports of the fleet.

    Raises:
        UsageError: it cannot be read, names a report that is not there or several with that name,
            or has a rank twice.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    ranks: dict[str, tuple[int, ...]] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise UsageError(
                f"{path}, line {number}: not a report and its ranks: {text!r}",
                hint="write lines such as: rank_0.nsys-rep 0, or: node1.nsys-rep 8-15",
            )
        ranks[_report(match["name"], reports, f"{path}, line {number}")] = _numbers(match["ranks"])
    twice = [
        rank
        for rank, n in Counter(r for numbers in ranks.values() for r in numbers).items()
        if n > 1
    ]
    if twice:
        raise UsageError(f"{path} gives rank {ranks_text(twice)} to more than one")
    return ranks


def _report(name: str, reports: Sequence[str], where: str) -> str:
    """The report that a name means: its path, the end of it, or the file's name."""
    ends = [one for one in reports if one == name or one.endswith("/" + name.removeprefix("./"))]
    if len(ends) != 1:
        what = "several reports have" if ends else "no report of the fleet has"
        raise UsageError(f"{where}: {what} the name {name!r}")
    return ends[0]


def _numbers(text: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), min(int(last or first), int(first) + MOST) + 1)
    return tuple(numbers)


def check_counts(given: Mapping[str, tuple[int, ...]], there: Mapping[str, int]) -> None:
    """Sees that every report has as many ranks as were given.

    Args:
        given: ranks by path.
        there: number of ranks that each report holds.

    Raises:
        UsageError: one has more or fewer.
    """
    for path, ranks in given.items():
        count = there.get(path, len(ranks))
        if count != len(ranks):
            raise UsageError(f"{path} holds {count} ranks, {len(ranks)} are given")
