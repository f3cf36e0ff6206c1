"""What NCCL's own plugins measure: JSON lines of the inspector, and traces of the profiler.

The inspector gives a collective's duration and bandwidth. The example profiler's COLL events span
the time in which the host enqueued it, which is no duration of the collective: it is kept apart.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from nsys_tui.logs.figures import Spread, exact, spread_of
from nsys_tui.logs.nccl.grammar import DATATYPES
from nsys_tui.model.collective_sizes import wire_factor

WORDS: Final = (b'"coll_perf"', b'"cat"')
ENQUEUE: Final = "host enqueue"
"""Source of the times of the profiler plugin."""
_TYPES: Final = {name.replace("fp", "float").replace("bf", "bfloat"): n for name, n in DATATYPES}
"""Bytes of an element by what stands behind ``nccl``, in small letters."""


@dataclass(frozen=True)
class Measured:
    """One collective of a rank; None or -1 for what is not told."""

    op: str
    nranks: int
    bytes: int
    time_us: Fraction | None
    algbw: Fraction | None
    """GB/s as printed."""
    busbw: Fraction | None
    source: str
    """What took the time, as the plugin names it, or ``ENQUEUE``."""


@dataclass
class PluginLines:
    """Gathers the events of one file."""

    measured: list[Measured] = field(default_factory=list)
    _begun: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)

    def add(self, text: bytes) -> bool:
        """Takes a line in if it is an event of a plugin; returns whether it is."""
        if not any(word in text for word in WORDS):
            return False
        begin = max(text.find(b"{"), text.rfind(b'{"header"'))  # behind what was torn
        try:
            record = json.loads(text[begin:].decode("utf-8", "replace").strip().rstrip(","))
            return self._inspected(record) or self._traced(record)
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return False

    def _inspected(self, record: dict[str, Any]) -> bool:
        perf, header = record.get("coll_perf"), record.get("header") or {}
        if perf is None:
            return False
        self.measured.append(
            Measured(
                str(perf["coll"]),
                int(header.get("n_ranks", -1)),
                int(perf.get("coll_msg_size_bytes", -1)),
                exact(perf.get("coll_exec_time_us")),
                exact(perf.get("coll_algobw_gbs")),
                exact(perf.get("coll_busbw_gbs")),
                str(perf.get("coll_timing_source", "")),
            )
        )
        return True

    def _traced(self, event: dict[str, Any]) -> bool:
        """Pairs begin and end of the profiler's events of category COLL."""
        if event.get("cat") != "COLL" or event.get("ph") not in ("b", "e"):
            return False
        key = str(event.get("pid")), str(event.get("name")), str(event.get("id"))
        if event["ph"] == "b":
            self._begun[key] = event
            return True
        begun = self._begun.pop(key, None)
        if begun is None:
            return True
        told = begun.get("args") or {}
        begin, end = exact(begun.get("ts")), exact(event.get("ts"))
        size = _TYPES.get(str(told.get("Datatype")).removeprefix("nccl").lower())
        self.measured.append(
            Measured(
                str(begun["name"]),
                -1,
                -1 if size is None else int(told.get("Count", 0)) * size,
                None if begin is None or end is None else end - begin,
                None,
                None,
                ENQUEUE,
            )
        )
        return True


@dataclass(frozen=True)
class MeasuredRow:
    """Collectives of one operation, size, number of ranks and source."""

    op: str
    bytes: int
    nranks: int
    source: str
    calls: int
    time_us: Spread | None
    algbw: Spread | None
    busbw: Spread | None
    our_algbw: Fraction | None
    """GB/s by size and mean time; None where the time is no duration."""
    our_busbw: Fraction | None


def measured_rows(measured: Sequence[Measured]) -> list[MeasuredRow]:
    """Collectives that are equal in operation, size, ranks and source, largest first."""
    groups: dict[tuple[str, int, int, str], list[Measured]] = {}
    for one in measured:
        groups.setdefault((one.op, one.bytes, one.nranks, one.source), []).append(one)
    return [
        _row(mine) for _, mine in sorted(groups.items(), key=lambda pair: (-pair[0][1], pair[0]))
    ]


def _row(mine: Sequence[Measured]) -> MeasuredRow:
    first = mine[0]
    time = spread_of([one.time_us for one in mine])
    ours = bus = None
    if time and time.mean > 0 and first.bytes >= 0 and first.source != ENQUEUE:
        ours = first.bytes / time.mean / 1000
        factor = wire_factor(first.op, first.nranks) if first.nranks > 0 else None
        bus = None if factor is None else ours * factor
    return MeasuredRow(
        first.op,
        first.bytes,
        first.nranks,
        first.source,
        len(mine),
        time,
        spread_of([one.algbw for one in mine]),
        spread_of([one.busbw for one in mine]),
        ours,
        bus,
    )
