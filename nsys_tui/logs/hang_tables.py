"""Tables of what does not fit: mismatched calls, ranks behind, the last call of every rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.logs.grammar import opcount_text
from nsys_tui.logs.table_parts import count, make, text

if TYPE_CHECKING:
    from nsys_tui.logs.hangs import HangReport, Member, Progress
    from nsys_tui.logs.result import LogResult
    from nsys_tui.model.table import Table


def progress_table(result: LogResult, hangs: HangReport) -> Table:
    """Last call of every rank on every communicator."""
    rows = hangs.progress
    return make(
        "progress",
        "Last call of each rank",
        {
            "Group": text([result.communicators[one.communicator].group for one in rows]),
            "Rank": text([_who(result, one.last) for one in rows]),
            "Calls": count([one.calls for one in rows]),
            "Last opCount": text([opcount_text(one.last_op_count) for one in rows]),
            "Call": text([one.last.calls[0] for one in rows]),
            "Line": count([one.last.line for one in rows]),
        },
    )


def hangs_table(result: LogResult, hangs: HangReport) -> Table:
    """Mismatches and ranks that fell behind."""
    kinds, groups, where, what = [], [], [], []
    for one in hangs.mismatches:
        kinds.append(f"mismatch of {one.what}")
        groups.append(result.group_label(one.group))
        where.append("by order" if one.by_order else opcount_text(one.op_count))
        what.append("; ".join(f"{_who(result, m)}: {', '.join(m.calls)}" for m in one.members))
    for drift in hangs.drifts:
        kinds.append("behind")
        groups.append(result.group_label(drift.group))
        where.append("by order" if drift.by_order else "-")
        behind = ", ".join(_reached(result, p, drift.by_order) for p in drift.behind)
        ahead = ", ".join(_reached(result, p, drift.by_order) for p in drift.ahead)
        what.append(f"{behind}; ahead: {ahead}; not called: {', '.join(drift.next_calls)}")
    notes = []
    if hangs.more_mismatches:
        notes.append(f"{hangs.more_mismatches} more mismatches")
    if hangs.unchecked_groups:
        alone = hangs.unchecked_groups
        notes.append(f"communicators with one rank in these logs, so not comparable: {alone}")
    return make(
        "hangs",
        "Mismatches and ranks behind",
        {
            "Finding": text(kinds),
            "Group": text(groups),
            "opCount": text(where),
            "Ranks": text(what),
        },
        notes,
        none="none: all ranks in these logs called the same and came equally far"
        if len(result.calls)
        else "no collectives",
    )


def _reached(result: LogResult, one: Progress, by_order: bool) -> str:
    if not one.calls:
        return f"{_who(result, one.last)} made no call"
    at = f"call {one.calls}" if by_order else f"opCount {opcount_text(one.last_op_count)}"
    return f"{_who(result, one.last)} at {at}"


def _who(result: LogResult, member: Member) -> str:
    one = result.communicators[member.communicator]
    place = result.process_label(one.process, "?")
    return f"rank {one.rank} ({place})" if one.rank >= 0 else place
