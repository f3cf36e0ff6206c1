"""Our rule on calls that returned an error: what they asked for was not done."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui.analysis import diagnostics
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.register import Arguments, Result, cut, rule
from nsys_tui.model.groups import factorise_rows
from nsys_tui.model.table import Column, Unit

_MOST: Final = 0.5
"""Part of launch calls that failed from which the run did not do its work."""
_LAST: Final = (700, 710, 714, 715, 716, 717, 718, 719)
"""Errors after which every further call of the process fails.

Source: CUDA runtime API, cudaError.
"""


@rule(
    "Launches, copies, waits, allocations and frees that failed",
    advice="What they asked for was not done, and results may be wrong: check the error of each"
    " call, and run the program under compute-sanitizer.",
    nothing="No such call returned an error, or API calls are not recorded.",
)
def failed_calls(case: Case, arguments: Arguments) -> Result:
    """Calls that a program cannot do without and that returned an error, by call and error."""
    api = case.report.api
    failed = np.sort(diagnostics.failed_rows(case.report))
    if len(failed):
        failed = failed[np.isin(failed, case.calls)]
    codes, kinds = factorise_rows((api.name[failed], api.return_value[failed]))
    count = np.bincount(codes, minlength=len(kinds))
    first = np.full(len(kinds), np.iinfo(np.int64).max)
    np.minimum.at(first, codes, api.start[failed])
    order, hidden = cut(np.argsort(-count, kind="stable"), arguments)
    columns = (
        (Column("Name"), [api.names[code] for code in kinds[order, 0].tolist()]),
        (Column("Error"), [diagnostics.error_label(error) for error in kinds[order, 1].tolist()]),
        (Column("Count", Unit.COUNT), count[order]),
        (Column("First", Unit.NS), first[order]),
    )
    if not len(failed):
        return Result(columns)
    row = failed[np.argmin(api.start[failed])]
    launches, calls = diagnostics.failed_launches(case.report)
    grave = len(launches) > _MOST * calls or np.isin(api.return_value[failed], _LAST).any()
    findings = case.finding(
        "failed_calls",
        diagnostics.failed_calls(case.report),
        "check the error of each call in the program; compute-sanitizer PROGRAM shows where",
        subject="calls that failed",
        saved_ns=0,
        window=(int(api.start[row]), int(api.end[row])),
        at_least=Severity.HIGH if grave else Severity.MEDIUM,
    )
    return Result(columns, findings, hidden=hidden)
