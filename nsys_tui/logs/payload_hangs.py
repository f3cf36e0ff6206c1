"""Calls that do not match, and how far each rank got, as JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_tui.logs.exact import known

if TYPE_CHECKING:
    from nsys_tui.logs.hangs import HangReport, Member, Progress
    from nsys_tui.logs.result import LogResult


def hangs_json(result: LogResult, hangs: HangReport) -> dict[str, Any]:
    """Mismatches, drifts and the last call of every rank."""
    return {
        "mismatches": [
            {
                "group": one.group,
                "certain": result.groups[one.group].certain,
                "opcount": None if one.by_order else f"{one.op_count & (2**64 - 1):x}",
                "by_order": one.by_order,
                "what": one.what,
                "ops": list(one.ops),
                "members": [_member(result, member) for member in one.members],
            }
            for one in hangs.mismatches
        ],
        "more_mismatches": hangs.more_mismatches,
        "drifts": [
            {
                "group": one.group,
                "certain": result.groups[one.group].certain,
                "by_order": one.by_order,
                "behind": [_progress(result, member) for member in one.behind],
                "ahead": [_progress(result, member) for member in one.ahead],
                "missing_ranks": one.missing_ranks,
                "next_calls": list(one.next_calls),
            }
            for one in hangs.drifts
        ],
        "progress": [_progress(result, one) for one in hangs.progress],
        "unchecked_groups": hangs.unchecked_groups,
    }


def _member(result: LogResult, member: Member) -> dict[str, Any]:
    one = result.communicators[member.communicator]
    return {
        "communicator": member.communicator,
        **process_json(result, one.process),
        "rank": known(one.rank),
        "calls": list(member.calls),
        "file": result.files[member.file].path,
        "line": member.line,
    }


def _progress(result: LogResult, one: Progress) -> dict[str, Any]:
    return _member(result, one.last) | {
        "call_count": one.calls,
        "last_opcount": f"{one.last_op_count & (2**64 - 1):x}" if one.calls else None,
    }


def process_json(result: LogResult, process: int) -> dict[str, Any]:
    """Host and pid of a process by its place, both None for -1."""
    one = result.processes[process] if process >= 0 else None
    return {"host": one.host if one else None, "pid": one.pid if one else None}
