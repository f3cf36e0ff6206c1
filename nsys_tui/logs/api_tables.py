"""CALL lines as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.logs.table_parts import count, known, make, text

if TYPE_CHECKING:
    from nsys_tui.logs.result import LogResult
    from nsys_tui.model.table import Table

NONE = "no CALL lines (NCCL_DEBUG=TRACE with CALL in NCCL_DEBUG_SUBSYS records them)"


def api_table(result: LogResult) -> Table:
    """CALL lines by function, count and type."""
    rows = result.api.per_function()
    notes = ["the same calls as in COLL lines, seen where the program made them"] if rows else ()
    return make(
        "api",
        "API calls (CALL lines)",
        {
            "Function": text([row.function for row in rows]),
            "Lines": count([row.calls for row in rows]),
            "Count": known([row.count for row in rows]),
            "Type": text([row.dtype or "-" for row in rows]),
            "Reduction": text([row.reduction or "-" for row in rows]),
            "Bytes per call": known([row.bytes for row in rows]),
            "Processes": count([row.processes for row in rows]),
        },
        notes,
        none=NONE,
    )


def api_calls_table(result: LogResult, limit: int | None) -> Table:
    """CALL lines one by one."""
    rows = list(result.api.rows(limit))
    more = len(result.api) - len(rows)
    calls = [one for _, _, one, _ in rows]
    return make(
        "api-calls",
        "API calls one by one",
        {
            "Line": count([line for _, line, _, _ in rows]),
            "Process": text([result.process_label(one.process) for one in calls]),
            "Function": text([one.function for one in calls]),
            "Count": known([one.count for one in calls]),
            "Type": text([one.dtype or "-" for one in calls]),
            "Bytes": known([one.bytes for one in calls]),
            "Reduction": text([one.reduction_name or "-" for one in calls]),
            "Root": known([one.root for one in calls]),
            "Communicator": text([one.pointer or "-" for one in calls]),
            "In place": text(["yes" if same else "-" for *_, same in rows]),
            "Arguments": text([one.arguments or "-" for one in calls]),
        },
        [f"{more:,} more calls (--top)"] if more else [],
        none=NONE,
    )
