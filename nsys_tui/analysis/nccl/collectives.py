"""Collectives of one or several reports: which kernel, how fast, and who kept the others waiting.

The calls come from the reports' own NVTX ranges or from an NCCL log; see ``result`` for what
the figures mean. NCCL's ranges name the communicator, which all GPUs of a process share, and not
the GPU: the kernels that a group launched tell how many there are, and equal calls for each of them
tell the order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from nsys_tui.analysis.nccl.calls import UNKNOWN, CallProcess, Calls, Launches, launches_of
from nsys_tui.analysis.nccl.kernel_matching import (
    Match,
    NcclKernels,
    kernels_inside,
    match_by_call,
    match_by_order,
    nccl_kernels,
)
from nsys_tui.analysis.nccl.rank_matching import Side, Traced, join_ranks
from nsys_tui.analysis.nccl.result import Collectives
from nsys_tui.model.arrays import Bool, Indices, Int32, Int64, Integers
from nsys_tui.model.collective_sizes import parse_patched_text, parse_payload, payload_fields
from nsys_tui.model.events import Ranges
from nsys_tui.model.groups import factorise, factorise_rows
from nsys_tui.model.report import Report
from nsys_tui.model.target import PROCESS_MASK, pid_of, tid_of

_CALL: Final = re.compile(
    r"(nccl)?(AllReduce|Broadcast|Bcast|Reduce|AllGather|ReduceScatter|Send|Recv|AlltoAll|Gather"
    r"|Scatter)(?![A-Za-z])"
)
"""NCCL 2.28 and newer leave the prefix out: then the domain has to be NCCL's."""
_ALIASES: Final = {"Bcast": "Broadcast"}
_INIT: Final = re.compile(r"(nccl)?CommInit")
_GROUP: Final = re.compile(r"(nccl)?Group(Start|End)\b")
_DOMAIN: Final = "NCCL"

MISSING: Final = (
    "no sizes in this report: NCCL 2.18 or newer writes them into NVTX; record with nsys profile"
    " --trace=nvtx,cuda and export with an nsys that fills jsonText; or give the log of"
    " NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,COLL"
)
"""What to do about a report whose NCCL ranges carry no payload."""


def names_collectives(report: Report) -> bool:
    """Whether NVTX ranges name collectives."""
    return bool(_named(report.ranges, _CALL)[1].any())


def nvtx_calls(report: Report) -> Calls:
    """The collectives among a report's NVTX ranges, by process, thread and time.

    A call between ``ncclGroupStart`` and ``ncclGroupEnd`` belongs to the launch of its group, which
    lasts to the end of the outermost ``ncclGroupEnd``.
    """
    ranges = report.ranges
    called, is_call = _named(ranges, _CALL)
    if not is_call.any():
        return _nothing()
    edges, is_edge = _named(ranges, _GROUP)
    step = np.array([{"Start": 1, "End": -1}.get(edge, 0) for edge in edges], np.int64)
    chosen = np.flatnonzero(is_call | is_edge)
    chosen = chosen[np.lexsort((ranges.start[chosen], ranges.thread[chosen]))]
    launch, until = _groups(ranges, chosen, step[ranges.name[chosen]])
    kept = is_call[chosen] & (launch != UNKNOWN)
    rows, launch, until = chosen[kept], launch[kept], until[kept]
    return _calls(report, rows, launch, until, called)


def _named(ranges: Ranges, pattern: re.Pattern[str]) -> tuple[list[str], Bool]:
    """What a pattern finds in each name (its last group), and the rows that are NCCL's own."""
    matches = [pattern.match(name) for name in ranges.names]
    prefixed = np.array([bool(match and match[1]) for match in matches], bool)
    bare = np.array([bool(match and not match[1]) for match in matches], bool)
    mine = np.array([domain.name == _DOMAIN for domain in ranges.domains], bool)
    words = [match[match.re.groups] if match else "" for match in matches]
    if not len(ranges):
        return words, np.zeros(0, bool)
    return words, prefixed[ranges.name] | (bare[ranges.name] & mine[ranges.domain])


def _groups(ranges: Ranges, rows: Indices, step: Int64) -> tuple[Int64, Int64]:
    """Launch number of each range, and when its launch ends on the host.

    Every call outside of a group is a launch of its own; what NCCL calls inside of it (an AlltoAll
    sends and receives) is a part of it and gets -1.
    """
    launch = np.full(len(rows), UNKNOWN, np.int64)
    until = ranges.end[rows].copy()
    starts, ends = ranges.start[rows].tolist(), ranges.end[rows].tolist()
    threads = ranges.thread[rows].tolist()
    number = depth = begun = covered = 0
    thread = UNKNOWN
    for call, change in enumerate(step.tolist()):
        if threads[call] != thread:
            thread, depth, covered = threads[call], 0, starts[call]
        if starts[call] < covered:
            continue
        if change > 0 and depth == 0:
            number, begun = number + 1, call
        elif change == 0 and depth == 0:
            number, covered = number + 1, ends[call]
        depth = max(depth + change, 0)
        launch[call] = number
        if change < 0 and depth == 0:
            until[begun : call + 1] = ends[call]
    return launch, until


def _calls(report: Report, rows: Indices, launch: Int64, until: Int64, op_of: list[str]) -> Calls:
    ranges = report.ranges
    sizes, communicators, communicator = _payloads(report, rows)
    named = [_ALIASES.get(op, op) for op in op_of]
    ops = tuple(sorted({op for op in named if op}))
    codes = np.array([ops.index(op) if op else 0 for op in named], np.int32)
    op = codes[ranges.name[rows]]
    owner = ranges.threads & PROCESS_MASK
    process, owners = factorise(owner[ranges.thread[rows]])
    host = report.metadata.host
    known = _initialised(report)
    pids = [pid_of(int(pid)) for pid in owners]
    world, rank = _memberships(known, pids, communicators, process, communicator)
    first_of = np.full(int(launch.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first_of, launch, ranges.start[rows])
    return Calls(
        process.astype(np.int32),
        np.array([tid_of(int(t)) for t in ranges.threads], np.int64)[ranges.thread[rows]],
        op,
        sizes,
        world,
        rank,
        communicator,
        np.zeros(len(rows), np.int32),
        launch,
        np.full(len(rows), UNKNOWN, np.int64),
        first_of[launch],
        until,
        np.ones(len(rows), bool),
        ops,
        communicators,
        tuple(_process(host, pid, known) for pid in pids),
    )


def _payloads(report: Report, rows: Indices) -> tuple[Int64, tuple[str, ...], Int32]:
    """Bytes of each call, the communicators, and the communicator of each call."""
    ranges = report.ranges
    payload = report.payloads.of(ranges.rowid[rows])
    inverse, distinct = factorise_rows((ranges.name[rows], payload))
    payloads = []
    for name, code in distinct.tolist():
        text = ranges.names[name]
        one = parse_patched_text(text)
        if one is None and code >= 0:
            one = parse_payload(text, report.payloads.texts[code])
        payloads.append(one or (UNKNOWN, ""))
    texts = tuple(dict.fromkeys(key for _, key in payloads))
    sizes = np.array([size for size, _ in payloads], np.int64)
    keys = np.array([texts.index(key) for _, key in payloads], np.int32)
    of_row = inverse.ravel()
    return sizes[of_row], texts, keys[of_row]


class _Joined(NamedTuple):
    """A process's part in a communicator, as the call that made it tells."""

    pid: int
    communicator: str
    size: int
    rank: int
    ordinal: int
    """CUDA ordinal of its GPU, -1 for not known."""


def _initialised(report: Report) -> list[_Joined]:
    """Who is in which communicator, from the payloads of the calls that made them."""
    ranges = report.ranges
    rows = np.flatnonzero(_named(ranges, _INIT)[1])
    codes = report.payloads.of(ranges.rowid[rows])
    communicators = []
    for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
        if code < 0:
            continue
        values = payload_fields(report.payloads.texts[code])
        key = str(values.get("NCCL communicator ID", ""))
        numbers = [values.get(name) for name in ("No. of ranks", "Rank", "CUDA device")]
        size, rank, ordinal = (one if isinstance(one, int) else UNKNOWN for one in numbers)
        if key and size >= 0 and rank >= 0:
            pid = pid_of(int(ranges.threads[ranges.thread[row]]))
            communicators.append(_Joined(pid, key, size, rank, ordinal))
    return communicators


def _memberships(
    known: list[_Joined],
    pids: list[int],
    communicators: tuple[str, ...],
    process: Integers,
    communicator: Int32,
) -> tuple[Int32, Int32]:
    """Size of each call's communicator and its rank there; the size also from another rank."""
    sizes = {one.communicator: one.size for one in known}
    ranks: dict[tuple[int, str], set[int]] = {}
    for one in known:
        ranks.setdefault((one.pid, one.communicator), set()).add(one.rank)
    world = np.array([sizes.get(key, UNKNOWN) for key in communicators], np.int32)
    rank = np.array(
        [[_only(ranks.get((pid, key), set())) for key in communicators] for pid in pids],
        np.int32,
    ).reshape(len(pids), len(communicators))
    return world[communicator], rank[process, communicator]


def _only(ranks: set[int]) -> int:
    """The rank if there is one; a process that drives several GPUs has none of its own."""
    return next(iter(ranks)) if len(ranks) == 1 else UNKNOWN


def _process(host: str, pid: int, known: list[_Joined]) -> CallProcess:
    """A process with its rank in its largest communicator, or the ranks of its GPUs there."""
    mine = [one for one in known if one.pid == pid]
    largest = max((one.size for one in mine), default=UNKNOWN)
    there = [one for one in mine if one.size == largest]
    gpus = tuple(sorted({(one.ordinal, one.rank) for one in there if one.ordinal >= 0}))
    rank = _only({one.rank for one in there})
    return CallProcess(host, pid, rank, gpus if rank < 0 else ())


def _nothing() -> Calls:
    short, long, flags = np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, bool)
    return Calls(
        *(short, long, short, long, short, short, short, short),
        *(long, long, long, long, flags, (), (), ()),
    )


def with_slots(calls: Calls, kernels: NcclKernels) -> Calls:
    """The calls with their ``slot``: numbered within group and communicator, GPU by GPU.

    Calls that are not the same for every GPU keep slot 0, and with it one launch.
    """
    order = np.argsort(calls.launch, kind="stable")
    edges = np.append(np.flatnonzero(np.diff(calls.launch[order], prepend=-1)), len(order))
    several = np.flatnonzero(np.diff(edges) > 1)
    if not len(several) or not len(kernels):
        return calls
    groups = [order[edges[place] : edges[place + 1]] for place in several.tolist()]
    heads = order[edges[several]]
    pids = np.array([process.pid for process in calls.processes], np.int64)[calls.process[heads]]
    begin, until = kernels_inside(
        kernels, pids, calls.thread[heads], calls.start[heads], calls.end[heads]
    )
    slot = calls.slot.copy()
    for rows, first, last in zip(groups, begin.tolist(), until.tolist(), strict=True):
        devices = len(np.unique(kernels.device[first:last]))
        if devices < 2:
            continue
        shared = np.unique(calls.communicator[rows])
        for communicator in shared:
            mine = rows[calls.communicator[rows] == communicator]
            slot[mine] = _slots(calls.op[mine], calls.bytes[mine], devices, len(shared))
    return replace(calls, slot=slot)


def _slots(op: Int32, size: Int64, devices: int, communicators: int) -> Int64:
    count = len(op)
    calls = np.stack([op.astype(np.int64), size], axis=1)
    for gpus in (devices, devices // communicators):
        if gpus < 2 or count % gpus:
            continue
        each = count // gpus
        in_turn, in_blocks = calls.reshape(each, gpus, 2), calls.reshape(gpus, each, 2)
        if (in_turn == in_turn[:, :1]).all():
            return np.tile(np.arange(gpus), each)
        if (in_blocks == in_blocks[:1]).all():
            return np.repeat(np.arange(gpus), each)
    return np.zeros(count, np.int64)


def collectives(traced: Sequence[Traced], logged: Calls | None = None) -> Collectives:
    """Finds the collectives of reports, with their kernels.

    Args:
        traced: the reports; times of all are put on the clock of the first by their UTC start.
        logged: calls of an NCCL log, which then give sizes instead of the reports' NVTX ranges.

    Returns:
        The collectives that were joined with a kernel. Ranks are joined by communicator and order.
    """
    sides = [_side(one, logged, _offset(one.report, traced[0].report)) for one in traced]
    return join_ranks(traced, sides, "NCCL log" if logged is not None else "NVTX payloads")


def _offset(report: Report, first: Report) -> int:
    here, there = report.metadata.session_start_utc_ns, first.metadata.session_start_utc_ns
    return 0 if here is None or there is None else here - there


def _side(traced: Traced, logged: Calls | None, offset: int) -> Side:
    report = traced.report
    kernels = nccl_kernels(report)
    traced_calls = with_slots(nvtx_calls(report), kernels)
    launches = launches_of(traced_calls)
    own_pids = np.array([one.pid for one in traced_calls.processes], np.int64)[launches.process]
    match = match_by_call(report, kernels, traced_calls, launches)
    match = match_by_order(report, kernels, launches, own_pids, match)
    notes: list[str] = []
    if logged is None:
        calls, pids = traced_calls, own_pids
        if len(kernels) and not (launches.bytes >= 0).any():
            notes.append(MISSING)
    else:
        calls, by_nvtx = logged, _sizes_by_kernel(launches, match)
        launches = launches_of(logged)
        index, note = _processes(traced, kernels, logged.processes)
        pids = np.array([*index, UNKNOWN], np.int64)[launches.process]
        match = match_by_order(report, kernels, launches, pids)
        notes += [note] if note else []
        notes += _agreement(by_nvtx, launches, match) + _unsized(launches, match)
    left = len(kernels) - int(np.count_nonzero(match.first >= 0))
    if left > 0:
        notes.append(f"{left:,} of {len(kernels):,} NCCL kernels belong to no known call")
    named = [f"{report.name}: {note}" for note in (*report.notes, *notes, *match.notes)]
    return Side(calls, launches, match, offset, pids, tuple(named))


def _sizes_by_kernel(launches: Launches, match: Match) -> dict[int, int]:
    known = np.flatnonzero((match.first >= 0) & (launches.bytes >= 0))
    return dict(zip(match.first[known].tolist(), launches.bytes[known].tolist(), strict=True))


def _agreement(by_nvtx: dict[int, int], launches: Launches, match: Match) -> list[str]:
    """How well the log fits what NVTX says of the same kernels."""
    pairs = [
        (by_nvtx[row], size)
        for row, size in zip(match.first.tolist(), launches.bytes.tolist(), strict=True)
        if row in by_nvtx and size >= 0
    ]
    same = sum(a == b for a, b in pairs)
    return [f"sizes agree with NVTX in {same:,} of {len(pairs):,} calls"] if pairs else []


def _unsized(launches: Launches, match: Match) -> list[str]:
    """What has no bus bandwidth because the log tells no number of ranks."""
    count = int(np.count_nonzero((match.first >= 0) & (launches.ranks < 1)))
    text = (
        f"bus bandwidth of {count:,} collectives is unknown: no line tells how many ranks their"
        " communicator has (nsys-tui logs --ranks N gives it)"
    )
    return [text] if count else []


def _processes(
    traced: Traced, kernels: NcclKernels, processes: tuple[CallProcess, ...]
) -> tuple[list[int], str]:
    """Process of the report that each process of the log is, -1 for none, and how that was told."""
    here = np.unique(kernels.pid).tolist()
    host = traced.report.metadata.host.partition(".")[0].lower()
    if traced.rank >= 0 and len(here) == 1:
        return [here[0] if p.rank == traced.rank else UNKNOWN for p in processes], ""
    same = [p for p in processes if p.pid in here]
    if same:
        namesakes = len({p.pid for p in same}) < len(same)
        mine = [p for p in same if not namesakes or p.host.lower() == host]
        return [p.pid if p in mine else UNKNOWN for p in processes], ""
    if len(here) == 1 and traced.named_rank in {p.rank for p in processes if p.rank >= 0}:
        note = f"≈ no process id in common with the log: taken as rank {traced.named_rank} by name"
        return [here[0] if p.rank == traced.named_rank else UNKNOWN for p in processes], note
    if len(processes) == len(here):
        order = sorted(range(len(processes)), key=lambda i: (processes[i].rank, processes[i].pid))
        index = dict(zip(order, here, strict=True))
        note = "≈ no process id in common with the log: processes are paired by order"
        return [index[process] for process in range(len(processes))], note
    return [UNKNOWN] * len(processes), "no process id in common with the log: nothing is joined"
