"""Sections of CALL lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsys_tui.logs.sections import (
    LogAnswer,
    Section,
    count,
    file_path,
    host_pid,
    known,
    shown,
    text,
    through,
)
from nsys_tui.model.table import Unit, column

if TYPE_CHECKING:
    from collections.abc import Sequence

_NONE: Final = "no CALL lines (NCCL_DEBUG=TRACE with CALL in NCCL_DEBUG_SUBSYS records them)"
API: Final = (
    column("function", "Function"),
    count("calls", "Lines"),
    known("count", "Count"),
    column("dtype", "Type"),
    column("reduction", "Reduction"),
    known("bytes", "Bytes per call"),
    count("processes", "Processes"),
)
_CALL: Final = (
    shown("Process", lambda call, result: result.process_label(call.process)),
    column("function", "Function"),
    known("count", "Count"),
    text("dtype", "Type"),
    known("bytes", "Bytes"),
    text("reduction", "Reduction", "reduction_name"),
    shown("Root", lambda call, _: None if call.root < 0 else call.root, Unit.COUNT),
    count("root", read=lambda call, _: call.root if call.count >= 0 else None),
    text("comm", "Communicator", "pointer"),
    text("stream"),
)
API_CALLS: Final = (
    file_path(lambda row: row.file),
    count("line", "Line"),
    *host_pid(lambda row, _: row.call.process),
    *(through("call", one) for one in _CALL),
    shown("In place", lambda row, _: "yes" if row.in_place else None),
    column("in_place", unit=Unit.FLAG),
    through("call", text("arguments", "Arguments")),
)


def _lines(answer: LogAnswer) -> int:
    return len(answer.result.api)


def _meaning(_: LogAnswer, rows: Sequence[Any]) -> list[str]:
    return ["the same calls as in COLL lines, seen where the program made them"] * bool(rows)


SECTIONS: Final = (
    Section(
        "api",
        "API calls (CALL lines)",
        API,
        lambda answer: answer.result.api.per_function(),
        _meaning,
        _NONE,
        _lines,
    ),
    Section(
        "api-calls",
        "API calls one by one",
        API_CALLS,
        lambda answer: answer.result.api.rows(),
        none=_NONE,
        count=_lines,
        longest="calls",
    ),
)
