"""Sections of what does not fit: mismatched calls, ranks behind, the last call of every rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from nsys_tui.logs.nccl.grammar import opcount_text
from nsys_tui.logs.nccl.hang_report import Member, Progress
from nsys_tui.logs.nccl.peer_pass import HELD
from nsys_tui.logs.result import LogResult
from nsys_tui.logs.sections.section import LogAnswer, Section, item, shown
from nsys_tui.model.table import Unit
from nsys_tui.units import named_ranks, ranks_text


def findings(answer: LogAnswer) -> Iterator[tuple[str, str, str, str]]:
    """Finding, group, opCount and what the ranks did."""
    result = answer.result
    for one in answer.hangs.mismatches:
        at = "by order" if one.by_order else opcount_text(one.op_count)
        did = _grouped(result, [(m, _did(m)) for m in one.members], "; ")
        if one.waiting:
            did += "; waiting: " + _grouped(result, [(m, _did(m)) for m in one.waiting])
        what = _PEERS[one.what] if one.point_to_point else f"mismatch of {one.what}"
        yield what, result.group_label(one.group), at, did
    for drift in answer.hangs.drifts:
        behind, ahead = (
            _grouped(result, [(p.last, _reached(p, drift.by_order)) for p in side])
            for side in (drift.behind, drift.ahead)
        )
        calls = [(call, len([*same])) for call, same in groupby(drift.next_calls)]
        left = ", ".join(call + f" ({times} times)" * (times > 1) for call, times in calls)
        did = f"{behind}; ahead: {ahead}; not called: {left}"
        at = "by order" if drift.by_order else "-"
        what = "behind, or left out" if drift.point_to_point else "behind"
        yield what, result.group_label(drift.group), at, did


_NAMED: Final = 4
"""Ranks that did the same and are still named one by one, with their processes."""
_PEERS: Final = {
    "size": "send and receive differ in size",
    "type": "send and receive differ in type",
    "peer": "send and receive with the wrong peer",
    "order": "calls wait for one another: order",
    "circle": "calls wait for one another in a circle: order",
    "one-sided": "send or receive with no other end",
}


def _grouped(result: LogResult, said: list[tuple[Member, str]], between: str = ", ") -> str:
    """Members and what is said of each; many ranks of which the same is said are named as one."""
    by_text: dict[str, list[Member]] = {}
    for member, text in said:
        by_text.setdefault(text, []).append(member)
    parts = []
    for text, members in by_text.items():
        ranks = [result.communicators[member.communicator].rank for member in members]
        if len(members) <= _NAMED or min(ranks) < 0:
            parts += [f"{_who(result, member)}{text}" for member in members]
        else:
            parts.append(f"ranks {ranks_text(ranks)}{text}")
    return between.join(parts)


def _did(member: Member) -> str:
    number = f" call {member.number}" if member.number else ""
    good = f" (last good: {member.last_good})" if member.last_good else ""
    return f"{number}: {', '.join(member.calls)}{good}"


def _left_out(answer: LogAnswer, rows: Sequence[Any]) -> list[str]:
    notes = []
    if answer.hangs.more_mismatches:
        notes.append(f"{answer.hangs.more_mismatches} more mismatches")
    if alone := answer.hangs.unchecked_groups:
        notes.append(
            f"communicators with one rank in these logs or without their first calls, so not"
            f" comparable: {alone}"
        )
    if peers := answer.hangs.unchecked_peers:
        notes.append(
            "communicators whose sends and receives were not compared (ranks unknown, lines torn,"
            f" or a log that begins in the middle): {peers}"
        )
    if partly := answer.hangs.partly_checked_peers:
        notes.append(
            "communicators whose sends and receives were compared in part (where opCount stays 0 by"
            f" count, type and lone ends; of over {HELD:,} calls around the first that does not"
            f" fit): {partly}"
        )
    if not rows and not notes:
        agreed = "none: all ranks in these logs called the same and came equally far"
        notes = [agreed if len(answer.calls) else "no collectives"]
    return notes + _absent(answer.result)


def _absent(result: LogResult) -> list[str]:
    """Which ranks of the largest communicator have no line in the logs, if others have."""
    sure = [group for group in result.groups if group.certain]
    largest = max(sure, key=lambda group: group.nranks, default=None)
    known = [] if largest is None else [result.communicators[m].rank for m in largest.members]
    missing = set(range(largest.nranks if largest else 0)) - set(known)
    if not missing or min(known) < 0 or len(missing) * 2 > len(known):
        return []
    return [f"no line of {named_ranks(missing)} in these logs: a rank that is behind may be there"]


def _reached(one: Progress, by_order: bool) -> str:
    if not one.calls:
        return " made no collective"
    at = f"call {one.calls}" if by_order else f"opCount {opcount_text(one.last_op_count)}"
    return f" at {at}"


def _who(result: LogResult, member: Member) -> str:
    one = result.communicators[member.communicator]
    label = result.process_label(one.process, "?")
    return f"rank {one.rank} ({label})" if one.rank >= 0 else label


SECTIONS: Final = (
    Section(
        "hangs",
        "Mismatches and ranks behind",
        (
            shown("Finding", item(0)),
            shown("Group", item(1)),
            shown("opCount", item(2)),
            shown("Ranks", item(3)),
        ),
        findings,
        _left_out,
        count=lambda answer: len(answer.hangs.mismatches) + len(answer.hangs.drifts),
    ),
    Section(
        "progress",
        "Last call of each rank",
        (
            shown("Group", lambda one, result: result.communicators[one.communicator].group),
            shown("Rank", lambda one, result: _who(result, one.last)),
            shown("Calls", lambda one, _: one.calls, Unit.COUNT),
            shown("Last opCount", lambda one, _: opcount_text(one.last_op_count)),
            shown("Call", lambda one, _: one.last.calls[0]),
            shown("Line", lambda one, _: one.last.line, Unit.COUNT),
        ),
        lambda answer: answer.hangs.progress,
    ),
)
