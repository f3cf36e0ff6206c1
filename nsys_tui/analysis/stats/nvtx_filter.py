"""``range[@domain][/index]``: the time window and thread of one NVTX range instance."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.errors import NoDataError, UsageError
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.target import PROCESS_MASK

if TYPE_CHECKING:
    from nsys_tui.model.report import Report

_PUSH_POP: Final = (59, 70)
_UNESCAPED_AT: Final = re.compile(r"(?<!\\)@")
_INDEX: Final = re.compile(r"(?<!\\)/(\d+)\Z")


@dataclass(frozen=True)
class RangeInstance:
    """One instance of a range."""

    window: tuple[int, int]
    thread: int
    """globalTid that opened it."""
    push_pop: bool
    """Push/pop ranges restrict to their thread, start/end ranges to their process."""

    @property
    def process(self) -> int:
        """globalPid of the range."""
        return self.thread & PROCESS_MASK


def find_instance(report: Report, text: str) -> RangeInstance:
    """Finds the instance of a range that a filter names.

    The index counts from 0 in the order of the starts. Without a domain the default domain is
    looked at first, then all others. ``@`` and ``/`` inside a name are written with a backslash.

    Raises:
        UsageError: no range is called so, or it has fewer instances.
        NoDataError: the report has no NVTX ranges.
    """
    if not report.can(Capability.NVTX):
        raise NoDataError(report.lacks(Capability.NVTX))
    name, domain, index = _parse(text)
    ranges = report.ranges
    named = np.array([found == name for found in ranges.names], bool)
    rows = np.flatnonzero(named[ranges.name]) if len(named) else np.empty(0, np.intp)
    domains = np.array([found.name for found in ranges.domains], object)
    if domain is not None:
        rows = rows[domains[ranges.domain[rows]] == domain]
    else:
        default = rows[domains[ranges.domain[rows]] == ""]
        rows = default if len(default) else rows
    if not len(rows):
        raise UsageError(
            f"no NVTX range called {text!r}", hint="nvtx_sum lists them as domain:name"
        )
    if index >= len(rows):
        raise UsageError(
            f"{text!r}: there are {len(rows)} instances", hint=f"the last one is /{len(rows) - 1}"
        )
    row = rows[index]
    return RangeInstance(
        (int(ranges.start[row]), int(ranges.end[row])),
        int(ranges.threads[ranges.thread[row]]),
        int(ranges.style[row]) in _PUSH_POP,
    )


def _parse(text: str) -> tuple[str, str | None, int]:
    match = _INDEX.search(text)
    index = int(match.group(1)) if match else 0
    rest = text[: match.start()] if match else text
    parts = _UNESCAPED_AT.split(rest, maxsplit=1)
    name = _plain(parts[0])
    return name, _plain(parts[1]) if len(parts) > 1 else None, index


def _plain(text: str) -> str:
    return text.replace("\\@", "@").replace("\\/", "/")
