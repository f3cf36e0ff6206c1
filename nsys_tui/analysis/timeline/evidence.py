"""Facts of what another screen sends to the timeline and is no event: an idle gap, a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from nsys_tui.analysis.rules.finding import Finding, command_of
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.analysis.stalls.gaps import stalls
from nsys_tui.analysis.stalls.host_activity import HostWork
from nsys_tui.analysis.stalls.rows import StallRow, stall_rows
from nsys_tui.analysis.timeline.facts import Facts
from nsys_tui.analysis.window import Scope
from nsys_tui.model.report import Report
from nsys_tui.units import format_count, format_duration

Fact: TypeAlias = tuple[str, str]
Moment: TypeAlias = Callable[[int], str]


def gap_facts(
    report: Report, work: HostWork, gap: tuple[int, int, int], moment: Moment
) -> Facts | None:
    """What is known about an idle gap or a launch-bound run.

    Args:
        report: its report; all event sets are loaded.
        work: what the host did.
        gap: place of the device, start and end in ns.
        moment: writes a time.

    Returns:
        None where the device is not idle from that start to that end.
    """
    device, start, end = gap
    if not 0 <= device < len(report.devices) or end <= start:
        return None
    scope = Scope((start, end), frozenset((device,)))
    result = stalls(report, scope, threshold_ns=0, work=work)
    rows = (row for row in stall_rows(report, result) if (row.start, row.end) == (start, end))
    row = next(rows, None)
    if row is None:
        return None
    return Facts(f"{row.kind}: {row.label}", tuple(_of_stall(report, row, moment)))


def _of_stall(report: Report, row: StallRow, moment: Moment) -> Iterator[Fact]:
    yield ("start", moment(row.start))
    yield ("dur", format_duration(row.length_ns))
    yield ("GPU", _gpu(report, row.device))
    yield ("cause", row.label)
    if row.witness:
        yield ("witness", str(row.witness))
    if row.kind == "run":
        yield ("idle", f"{format_duration(row.idle_ns)} in {format_count(row.gaps)} gaps")
    if row.thread >= 0:
        yield ("thread", report.thread_name(row.thread))
    if row.call:
        yield ("call", row.call)
    if row.range:
        yield ("range", row.range)
    labels = {cause.key: cause.label for cause in Cause}
    shares = sorted(row.shares.items(), key=lambda item: -item[1])
    if len(shares) > 1:
        parts = (f"{labels[key]} {format_duration(ns)}" for key, ns in shares)
        yield ("meanwhile", ", ".join(parts))
    if row.previous:
        yield ("before", row.previous)
    if row.next:
        yield ("after", row.next)


def _gpu(report: Report, device: int) -> str:
    return report.devices[device].label.removeprefix("GPU ")


def finding_facts(report: Report, finding: Finding, moment: Moment) -> Facts:
    """What a finding says.

    Args:
        report: its report.
        finding: one with or without a window.
        moment: writes a time.
    """
    facts: list[Fact] = []
    if finding.window is not None:
        start, end = finding.window
        facts += [("start", moment(start)), ("dur", format_duration(end - start))]
    if finding.device is not None and finding.device < len(report.devices):
        facts.append(("GPU", _gpu(report, finding.device)))
    if finding.saved_ns:
        facts.append(("could save", format_duration(finding.saved_ns)))
    facts += [
        ("finding", finding.title),
        ("advice", finding.advice),
        ("severity", str(finding.severity)),
        ("rule", finding.rule),
        ("known", str(finding.confidence)),
    ]
    if finding.same_as:
        facts.append(("same time", finding.same_as))
    if finding.doubt:
        facts.append(("but", finding.doubt))
    if finding.settle:
        facts.append(("settle by", command_of(finding.settle, report.name)))
    return Facts(f"finding: {finding.subject}", tuple(facts))
