"""The reduce step: summaries of reports become one fleet, with a rank and a clock for everybody."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from nsys_tui.fleet.clocks import closer, fitted, judged
from nsys_tui.fleet.collectives import match
from nsys_tui.fleet.communicators import told_apart
from nsys_tui.fleet.copies import left_out, of_other_times, of_same_ranks
from nsys_tui.fleet.files import in_order
from nsys_tui.fleet.fleet import Clock, Fleet, Member, listed, only_notes
from nsys_tui.fleet.overlap import overlapping, told
from nsys_tui.fleet.ranks import (
    GIVEN,
    NUMBER,
    Evidence,
    check_counts,
    conflicts,
    decide,
    without_numbers,
)
from nsys_tui.fleet.summary import Failure, Options, ProcessSummary, ReportSummary
from nsys_tui.fleet.times import SessionClock
from nsys_tui.units import format_duration, named_ranks

_SHOWN: Final = 4
"""Reports left out that are named in notes."""
_CLOCK_TEXT: Final = {
    Clock.UTC: "clocks aligned by the UTC start of each session",
    Clock.ENDS: "≈ clocks aligned by the ends of collectives, which all ranks leave together",
    Clock.SESSION: "clocks not aligned: every session starts at 0",
}


def reduce(
    results: Sequence[tuple[str, ReportSummary | Failure]],
    options: Options | None = None,
    clock: Clock = Clock.AUTO,
    given: Mapping[str, tuple[int, ...]] | None = None,
) -> Fleet:
    """Puts the summaries of all reports together.

    Args:
        results: path and summary of each report, in the order of the files; the order decides
            ranks only where nothing else does.
        options: what the summaries were made with.
        clock: how clocks are aligned; ``AUTO`` takes UTC where all reports tell it, unless clocks
            fitted to the ends of collectives agree better.
        given: ranks that the user tells, by path.

    Raises:
        UsageError: a report holds more or fewer ranks than were given.
    """
    given = given or {}
    failures = tuple(summary for _, summary in results if isinstance(summary, Failure))
    reports = [(path, summary) for path, summary in results if isinstance(summary, ReportSummary)]
    left = tuple(left_out(reports, given))
    gone = {failure.path for failure in left}
    reports = [(path, report) for path, report in reports if path not in gone]
    check_counts(given, {path: len(report.processes) for path, report in reports})
    evidence = _evidence(reports, given)
    ranks = decide(evidence)
    owners = _of_communicators([report for _, report in reports], [rank for rank, _ in ranks])
    order = sorted(range(len(owners)), key=lambda member: ranks[member][0])
    others = of_other_times(reports)
    used, origin, clocks = _clocks([report for _, report in reports], owners, clock, others)
    late: list[str] = []
    if clock is not Clock.SESSION and not all(each.aligned for each in clocks):
        reports, late = _overlapping(reports, [rank for rank, _ in ranks])
    if late:
        owners = _of_communicators([report for _, report in reports], [rank for rank, _ in ranks])
        used, origin, clocks = _clocks([report for _, report in reports], owners, clock, others)
    twice = of_same_ranks(reports, others)
    apart = {member for member in others if member in twice or not clocks[member].fitted}
    members = tuple(
        Member(
            ranks[member][0],
            ranks[member][1],
            reports[owners[member][0]][0],
            reports[owners[member][0]][1],
            owners[member][1],
            clocks[owners[member][0]],
            owners[member][0] in apart,
        )
        for member in order
    )
    several = len(reports) > 1
    notes = (
        *([_clock_text(used, others)] if several else []),
        *_left_notes(left),
        *_other_notes([os.path.basename(reports[member][0]) for member in others]),
        *_notes(members, used),
        *conflicts(evidence, ranks),
        *(_clock_notes(members) if several else []),
        *late,
    )
    options = options or Options()
    return Fleet(members, failures, used, origin, options, (*only_notes(options), *notes), left)


def _overlapping(
    reports: Sequence[tuple[str, ReportSummary]], ranks: Sequence[int]
) -> tuple[list[tuple[str, ReportSummary]], list[str]]:
    """The reports with the collectives that all captures saw, and what is to be said of others."""
    processes = [(report, process) for _, report in reports for process in report.processes]
    calls_of, missing = overlapping(
        [process.collectives for _, process in processes],
        [report.start_utc for report, _ in processes],
    )
    left = iter(calls_of)
    cut = [
        (path, replace(report, processes=tuple(
            replace(process, collectives=next(left)) for process in report.processes
        )))
        for path, report in reports
    ]  # fmt: skip
    return cut, told(ranks, missing)


def _of_communicators(
    reports: Sequence[ReportSummary], ranks: Sequence[int]
) -> list[tuple[int, ProcessSummary]]:
    """All ranks with their report's place, and communicators told apart where none is named."""
    owners = [(n, p) for n, report in enumerate(reports) for p in report.processes]
    calls_of = [process.collectives for _, process in owners]
    starts = [report.start_utc for report in reports]
    first = min((start for start in starts if start is not None), default=0)
    clocks = [SessionClock((starts[n] or first) - first) for n, _ in owners]
    world = max([*ranks, -1, *((report.world or 0) - 1 for report in reports)]) + 1
    told = told_apart(calls_of, clocks, [n for n, _ in owners], ranks, world)
    return [(n, replace(p, collectives=calls)) for (n, p), calls in zip(owners, told, strict=True)]


def _evidence(
    reports: Sequence[tuple[str, ReportSummary]], given: Mapping[str, tuple[int, ...]]
) -> list[Evidence]:
    """Evidence of every rank: what the user tells, else what its report and its host do."""
    of_hosts = _by_host([report for _, report in reports])
    members: list[Evidence] = []
    for (path, report), on_host in zip(reports, of_hosts, strict=True):
        for number, process in enumerate(report.processes):
            evidence = process.evidence
            if path in given:
                evidence = ((given[path][number], GIVEN),)
            elif len(reports) == 1:
                evidence = without_numbers(evidence)
            elif on_host is not None:
                evidence = (*(e for e in evidence if e[1] != NUMBER), on_host)
            members.append(evidence)
    return members


def _by_host(reports: Sequence[ReportSummary]) -> list[tuple[int, str] | None]:
    """Ranks by the order of hosts and the rank on each, where all reports tell that alone."""
    told = [r for r in reports if len(r.processes) == 1 and r.host and r.local is not None]
    pairs = {(report.host, report.local) for report in told}
    if not reports or len(pairs) < len(reports):
        return [None] * len(reports)
    hosts = sorted({r.host for r in reports}, key=lambda host: in_order(Path(host)))
    size = 1 + max(report.local or 0 for report in reports)
    source = f"≈ order of hosts × {size} + local rank"
    return [(hosts.index(r.host) * size + (r.local or 0), source) for r in reports]


def _left_notes(left: Sequence[Failure]) -> list[str]:
    """Who is no rank of its own, and why."""
    more = f"left out: {len(left) - _SHOWN} more, see the section skipped"
    notes = [f"left out: {os.path.basename(one.path)}: {one.reason}" for one in left[:_SHOWN]]
    return [*notes, more] if len(left) > _SHOWN else notes


def _clock_text(clock: Clock, others: Sequence[int]) -> str:
    """What put clocks together: not the UTC start of what seems to be of another time."""
    if clock is Clock.UTC and others:
        return "clocks aligned by the UTC start of most sessions; the others begin with the first"
    return _CLOCK_TEXT[clock]


def _other_notes(names: Sequence[str]) -> list[str]:
    """Which reports may be of another run, or of a machine whose clock is wrong."""
    text = (
        f"another run, or a clock that is off? {listed(names)}: begun at another time than the rest"
    )
    return [f"{text}; only --clock utc keeps that time between them"] * bool(names)


def _clocks(
    reports: Sequence[ReportSummary],
    owners: Sequence[tuple[int, ProcessSummary]],
    clock: Clock,
    others: Sequence[int],
) -> tuple[Clock, int, list[SessionClock]]:
    """The clock that was used, its zero in UTC, and that of each report.

    Reports of other times begin with the first, unless UTC was asked for: days between them would
    leave no cell of a map to the runs.
    """
    told = [report.start_utc for report in reports]
    if clock is not Clock.UTC:
        doubtful = set(others)
        told = [None if session in doubtful else start for session, start in enumerate(told)]
    known = [start for start in told if start is not None]
    first = min(known, default=0)
    starts = [None if start is None else start - first for start in told]
    by_utc = [SessionClock(start or 0) for start in starts]
    sessions = [session for session, _ in owners]
    calls_of = [process.collectives for _, process in owners] if len(reports) > 1 else []
    groups = match(calls_of, [SessionClock(0)] * len(calls_of)).groups
    if clock is Clock.SESSION:
        return clock, 0, judged(groups, sessions, [SessionClock(0)] * len(reports))
    by_utc = judged(groups, sessions, by_utc)
    if clock is Clock.UTC:
        return clock, first, by_utc
    clocks = fitted(groups, sessions, starts)
    if (
        clock is Clock.AUTO
        and len(known) + len(others) == len(reports)
        and not closer(clocks, by_utc)
    ):
        return Clock.UTC, first, by_utc
    if clock is Clock.AUTO and all(calls_of.residual is None for calls_of in clocks):
        return Clock.SESSION, 0, [SessionClock(0)] * len(reports)
    return Clock.ENDS, first, clocks


_TOLD: Final = 3
"""Residuals that a drift must come to over a session: the fit of less is chance."""


def _clock_notes(members: Sequence[Member]) -> list[str]:
    """How well clocks agree, and whose do not."""
    notes = []
    measured = [(m.clock.residual, m.rank) for m in members if m.clock.residual is not None]
    off = [m.rank for m in members if not m.clock.aligned]
    used = [m for m in members if m.clock.aligned]
    drift, drifting = max(((abs(m.clock.drift), m.rank) for m in used), default=(0, 0))
    worst, rank = max(((m.clock.residual or 0, m.rank) for m in used), default=(0, 0))
    if drift * max((m.lasted for m in used), default=0) > _TOLD * worst:
        notes.append(
            f"clocks drift by up to {1e6 * drift:.1f} ppm (rank {drifting}), which is corrected;"
            f" ends then agree to {format_duration(worst)} or better (rank {rank} least)"
        )
    if off:
        notes.append(
            f"not aligned: {named_ranks(off)}, whose collectives end"
            f" {format_duration(max(residual for residual, rank in measured if rank in set(off)))}"
            " from those of others, or may be matched wrongly: in no figure across ranks"
        )
    return notes


def _unconnected(members: Sequence[Member]) -> list[str]:
    """Ranks that make no collective, or none with the others: two runs look so, too."""
    if any(member.process.collectives.point_to_point for member in members):
        return []
    silent = [m.rank for m in members if m.gpus and not m.process.collectives.keys]
    if silent and len(silent) < len(members) - 1:
        return [f"{named_ranks(silent)} took part in no collective"]
    sets: list[tuple[set[int], set[tuple[str, str]]]] = []
    for member in members:
        own = {member.rank}, set(member.process.collectives.keys)
        if not own[1]:
            return []
        for one in [one for one in sets if not own[1].isdisjoint(one[1])]:
            own = own[0] | one[0], own[1] | one[1]
            sets.remove(one)
        sets.append(own)
    if len(sets) < 2 or min(len(ranks) for ranks, _ in sets) < 2:
        return []
    names = " and ".join(named_ranks(ranks) for ranks, _ in sets[:_SHOWN])
    return [f"≈ {names} have no collective in common: groups of one run, or several runs"]


def _of_other_nodes(members: Sequence[Member]) -> list[str]:
    """Ranks whose report names another host than Slurm's variable, however long the names are."""
    apart = [
        (member.rank, host, node)
        for member in members
        if (host := member.report.host) and (node := member.report.node_name)
        if host.lower().partition(".")[0] != node.lower().partition(".")[0]
    ]
    if not apart:
        return []
    rank, host, node = apart[0]
    return [
        f"{named_ranks([rank for rank, *_ in apart])} by the host of the report, although"
        f" SLURMD_NODENAME says another: {host} and {node} of rank {rank}"
    ]


def _notes(members: Sequence[Member], clock: Clock) -> list[str]:
    notes = []
    silent = [m.file for m in members if m.report.start_utc is None]
    if silent and clock is Clock.UTC:
        notes.append(
            f"no UTC start in {listed(dict.fromkeys(silent))}: taken to start with the first"
        )
    elif silent and clock is Clock.SESSION and len({m.path for m in members}) > 1:
        notes.append(f"no UTC start in {listed(dict.fromkeys(silent))}")
    guessed = [m.rank for m in members if m.guessed]
    if guessed and len(members) > 1:
        notes.append(f"≈ {named_ranks(guessed)} guessed: see the column Rank from")
    told: dict[str, dict[str, None]] = {}
    for member in members:
        for note in member.report.notes:
            told.setdefault(note, {})[member.file] = None
    notes += [f"{listed(files)}: {note}" for note, files in told.items()]
    if absent := Fleet(tuple(members), (), clock).absent:
        world = max(m.report.world or 0 for m in members)
        notes.append(f"no report of {named_ranks(absent)} of {world}")
    notes += _of_other_nodes(members)
    notes += _unconnected(members)
    if any(m.report.hidden_graphs for m in members):
        notes.append("CUDA graphs were traced as a whole: exposed times are upper bounds")
    pairs = sum(m.process.collectives.point_to_point for m in members)
    if pairs:
        alone = sum(m.process.collectives.alone_ns for m in members)
        notes.append(
            f"{pairs:,} send and receive kernels are not matched: each has its own peers;"
            f" {format_duration(alone)} in them while nothing computes,"
            " ≈ bubbles of pipelines or exchanges of experts"
        )
    return notes
