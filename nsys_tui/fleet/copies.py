"""Reports that are no ranks of their own: copies of others, and captures of another run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TypeAlias

from nsys_tui.fleet.ranks import NUMBER
from nsys_tui.fleet.summary import Failure, ReportSummary
from nsys_tui.paths import told_apart

Reports: TypeAlias = Sequence[tuple[str, ReportSummary]]


def left_out(reports: Reports, given: Collection[str] = ()) -> list[Failure]:
    """Reports to leave out of a fleet, and why.

    Args:
        reports: path and summary of each, in order: of copies the first is kept.
        given: paths whose ranks the user tells; these stay.
    """
    rest, gone = reports, dict[str, Failure]()
    for strangers in (_copies, _of_other_runs, _of_other_jobs):
        found = strangers(rest)
        gone |= {failure.path: failure for failure in found if failure.path not in given}
        rest = [(path, report) for path, report in rest if path not in gone]
    return [*gone.values()]


def _copies(reports: Reports) -> list[Failure]:
    """The same capture under several names, as it is or exported once more.

    A report's id is of its ends; that the figures are the same too rules chance out. Two sessions
    of one host do not begin in the same nanosecond and do the same.
    """
    first: dict[tuple[str, object], str] = {}
    copies = []
    for path, report in reports:
        content = _content(report)
        keys: list[tuple[str, object]] = [("the same file as", (report.report_id, content))]
        if report.start_utc is not None:
            session = (report.start_utc, report.host, content)
            keys.append(("the same capture as", session))
        known = next((key for key in keys if key in first), None)
        if known is not None:
            copies.append(Failure(path, f"{known[0]} {os.path.basename(first[known])}"))
            continue
        first |= dict.fromkeys(keys, path)
    return copies


def _content(report: ReportSummary) -> str:
    """What a report says of its processes; equal for copies, whatever their names."""
    digest = hashlib.blake2b(repr((report.session_ns, report.base)).encode(), digest_size=16)
    for process in report.processes:
        digest.update(
            repr((process.process, process.unit, process.devices, process.steps.labels)).encode()
        )
        for values in (
            process.splits,
            process.heat,
            process.collectives.start,
            process.steps.start,
        ):
            digest.update(values.tobytes())
    return digest.hexdigest()


def _of_other_runs(reports: Reports) -> list[Failure]:
    """Ranks that were captured twice: of runs that do not overlap in time, the largest counts.

    Only reports whose rank the largest run has too are left out, and only where it has several.
    """
    others = of_other_times(reports)
    main = set().union(*_runs(reports)).difference(others)
    return _strangers(reports, main, others, "at another time")


def _of_other_jobs(reports: Reports) -> list[Failure]:
    """Ranks that several jobs have, of which the largest counts: as it is with runs.

    Parts of one job that a scheduler numbers apart have ranks of their own, and stay.
    """
    told = [dict(report.jobs) for _, report in reports]
    for variable in dict.fromkeys(name for jobs in told for name in jobs):
        members: dict[str, list[int]] = {}
        for number, jobs in enumerate(told):
            if variable in jobs:
                members.setdefault(jobs[variable], []).append(number)
        main = max(members.values(), key=len)
        others = sorted(number for job in members.values() if job is not main for number in job)
        known = {claim for number in main for claim in _sure(reports[number][1])}
        same = [number for number in others if known.issuperset(_sure(reports[number][1]))]
        if found := _strangers(reports, set(main), same, f"with another {variable}"):
            return found
    return []


def _sure(report: ReportSummary) -> list[tuple[int, str]]:
    """All that a report says of its ranks, but for numbers in names."""
    said = (entry for process in report.processes for entry in process.evidence)
    return [entry for entry in said if NUMBER not in entry[1]]


def _strangers(
    reports: Reports, main: AbstractSet[int], others: Sequence[int], apart: str
) -> list[Failure]:
    """Those of the others whose ranks the main run, if it has several, has too."""
    if not others or len(main) < 2:
        return []
    holder = {
        claim: reports[number][0]
        for number in sorted(main)
        for claim in _claims(reports[number][1])
    }
    strangers = []
    for number in others:
        path, report = reports[number]
        claims = _claims(report)
        if claims and all(claim in holder for claim in claims):
            rank, source = claims[0]
            other, _ = told_apart([Path(holder[claims[0]]), Path(path)])
            strangers.append(
                Failure(path, f"another run: {other} is rank {rank} too ({source}), {apart}")
            )
    return strangers


def of_other_times(reports: Reports) -> list[int]:
    """Places of reports that do not overlap in time with those of the largest run."""
    runs = _runs(reports)
    main = max(runs, key=len, default=[])
    return sorted(number for run in runs if run is not main for number in run)


def of_same_ranks(reports: Reports, others: Sequence[int]) -> set[int]:
    """Which of some reports say that they are ranks that the rest has, too."""
    rest = {
        claim
        for number, (_, report) in enumerate(reports)
        if number not in others
        for claim in _claims(report)
    }
    return {number for number in others if rest.intersection(_claims(reports[number][1]))}


def _runs(reports: Reports) -> list[list[int]]:
    """Places of reports whose sessions overlap in time, directly or by others; in order of time."""
    spans = []
    for number, (_, report) in enumerate(reports):
        if report.start_utc is not None:
            lasted = max(report.session_ns or 0, report.base[1])
            spans.append((report.start_utc, report.start_utc + lasted, number))
    runs: list[list[int]] = []
    until = 0
    for start, end, number in sorted(spans):
        if not runs or start > until:
            runs.append([])
        runs[-1].append(number)
        until = max(until, end)
    return runs


def _claims(report: ReportSummary) -> list[tuple[int, str]]:
    """The surest rank of each process; nothing where that is only a number in a name."""
    surest = [process.evidence[0] for process in report.processes if process.evidence]
    return [entry for entry in surest if NUMBER not in entry[1]]
