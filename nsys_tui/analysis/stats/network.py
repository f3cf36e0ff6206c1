"""Network congestion: how long ports had data to send and could not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.analysis.stats.query import Columns, Needs, report
from nsys_tui.errors import NoDataError, UsageError
from nsys_tui.model.kinds import Kind
from nsys_tui.model.table import Column, Unit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsys_tui.analysis.stats.query import Query

_KINDS: Final = (Kind.NIC_METRIC, Kind.SWITCH_METRIC)
_SEND_WAIT: Final = re.compile(r"(?i)send[ _]?waits?|xmit[ _]?wait")
_THRESHOLD: Final = 10_000
_NS_PER_MS: Final = 1_000_000


@report(
    "Network Devices Congestion",
    Needs("network metrics", "--nic-metrics=true"),
    old="networkcongestion",
    arguments={"ticks_threshold=": f"list events above so many ticks/ms, {_THRESHOLD} by default"},
)
def network_congestion(query: Query) -> Columns:
    """Intervals in which a port waited to send at a high rate; ticks differ between devices."""
    threshold = _threshold(query.arguments.get("ticks_threshold"))
    waits = _send_wait_metrics(query)
    devices = _devices(query)
    found = []
    fields = ("global_id", "metrics_list_id", "metrics_idx", "value")
    for kind in _KINDS:
        for row in query.raw_counted(kind, *fields):
            duration = (row["end"] or 0) - row["start"]
            is_wait = (row["metrics_list_id"], row["metrics_idx"]) in waits
            if is_wait and duration > 0:
                rate = (row["value"] or 0) * _NS_PER_MS / duration
                if rate > threshold:
                    named = devices.get(row["global_id"], (row["global_id"], ""))
                    found.append((row["start"], row["end"], duration, rate, *named))
    if not found:
        raise NoDataError("no congestion above the threshold")
    found.sort()
    start, end, duration, rate, guid, name = (list(values) for values in zip(*found, strict=True))
    return [
        (Column("Start", Unit.NS), start),
        (Column("End", Unit.NS), end),
        (Column("Duration", Unit.NS), duration),
        (Column("Send wait rate (ticks/ms)", Unit.NONE, 1), rate),
        (Column("GUID"), [f"0x{(g or 0) & 0xFFFFFFFFFFFFFFFF:016X}" for g in guid]),
        (Column("Name"), name),
    ]


def _threshold(text: str | None) -> float:
    if text is None:
        return _THRESHOLD
    try:
        return float(text)
    except ValueError as error:
        hint = "write network_congestion:ticks_threshold=10000"
        raise UsageError(f"network_congestion: {text!r} is no number", hint=hint) from error


def _send_wait_metrics(query: Query) -> set[tuple[Any, Any]]:
    """(list, index) of the metrics that count send waits."""
    fields = ("metrics_list_id", "metrics_idx", "name")
    keys = zip(*query.report.rows(Kind.NETWORK_METRIC_NAME, *fields).lists(), strict=True)
    return {(listed, index) for listed, index, name in keys if _SEND_WAIT.search(name or "")}


def _devices(query: Query) -> Mapping[int, tuple[int, str]]:
    """globalId -> (GUID, name) of the network cards; switches are known by their id only."""
    cards = query.report.rows(Kind.NIC, "guid", "global_id", "nic_id", "name")
    by_nic: dict[Any, tuple[int, str]] = {}
    known: dict[int, tuple[int, str]] = {}
    for guid, global_id, nic, name in zip(*cards.lists(), strict=True):
        facts = (guid if guid is not None else global_id or 0, name or "")
        by_nic[nic] = facts
        if global_id is not None:
            known[global_id] = facts
    ids = query.report.rows(Kind.NIC_ID, "nic_id", "global_id")
    for nic, global_id in zip(*ids.lists(), strict=True):
        if nic in by_nic:
            known[global_id] = by_nic[nic]
    return known
