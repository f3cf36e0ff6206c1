"""Everybody who sums events by name says the same, and what a loop over the events says."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from synth import Synth

from nsys_tui.analysis.compare.measure import measure
from nsys_tui.analysis.compare.plan import plan
from nsys_tui.analysis.kernel_table import kernel_table
from nsys_tui.analysis.overview import top_kernels, top_ranges
from nsys_tui.analysis.stats.query import Query
from nsys_tui.analysis.stats.reports import run_report
from nsys_tui.analysis.timeline.area import area
from nsys_tui.analysis.timeline.gpu import stream_tracks
from nsys_tui.analysis.timeline.host import api_tracks, range_tracks
from nsys_tui.analysis.window import Scope
from nsys_tui.fleet.summary_parts import statistics as rank_statistics
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    import pytest

    from nsys_tui.analysis.timeline.tracks import Track
    from nsys_tui.model.report import Report
    from nsys_tui.model.table import Table

Window = tuple[int, int] | None
Event = tuple[str, int, int]
EVENTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 60), st.sampled_from([0, 1, 3, 9, 40])),
    max_size=10,
)
"""Name, start and length: equal names nest in each other, some have no length."""
WINDOWS = st.one_of(st.none(), st.tuples(st.integers(0, 50), st.integers(1, 40)))


class Sums(NamedTuple):
    total: int
    count: int  # type: ignore[assignment]  # a tuple has a method of that name
    straddling: int
    mean: float | None


def by_hand(events: list[Event], window: Window) -> dict[str, Sums]:
    lo, hi = window or (-(10**9), 10**9)
    totals: dict[str, int] = defaultdict(int)
    whole: dict[str, list[int]] = defaultdict(list)
    before: dict[str, int] = defaultdict(int)
    for name, start, end in events:
        if start < hi and (end > lo or start >= lo):
            totals[name] += max(0, min(end, hi) - max(start, lo))
            before[name] += start < lo
            whole[name] += [end - start] if start >= lo else []
    return {
        name: Sums(
            total,
            len(whole[name]),
            before[name],
            statistics.mean(whole[name]) if whole[name] else None,
        )
        for name, total in totals.items()
    }


def without_empty(found: dict[str, Sums]) -> dict[str, Sums]:
    """Without names of which nothing starts and no time is inside, which some callers leave out."""
    return {name: sums for name, sums in found.items() if sums.count or sums.total}


def from_table(table: Table, name: str, count: str, *, windowed: bool) -> dict[str, Sums]:
    counts = [int(number) for number in table[count]]
    straddling = [int(number) for number in table["Straddling"]] if windowed else [0] * len(counts)
    means = [float(mean) if n else None for mean, n in zip(table["Avg"], counts, strict=True)]
    rows = zip([int(ns) for ns in table["Total Time"]], counts, straddling, means, strict=True)
    return {text.lstrip(":"): Sums(*row) for text, row in zip(table[name], rows, strict=True)}


def from_area(tracks: list[Track], window: Window) -> dict[str, Sums]:
    found = area(tracks, window or (-(10**6), 10**6), "short")
    return {row.name: Sums(row.total, row.events, row.straddling, None) for row in found.names}


def printed(report: Report, name: str, window: Window) -> Table:
    return run_report(report, name, Query(report, Scope(window=window), clip=window is not None))


def without_means(found: dict[str, Sums]) -> dict[str, Sums]:
    return {name: sums._replace(mean=None) for name, sums in found.items()}


@settings(max_examples=60, deadline=None)
@given(EVENTS, EVENTS, EVENTS, WINDOWS)
def test_all_who_sum_by_name_agree(
    tmp_path_factory: pytest.TempPathFactory,
    work: list[tuple[str, int, int]],
    calls: list[tuple[str, int, int]],
    marked: list[tuple[str, int, int]],
    cut: tuple[int, int] | None,
) -> None:
    window = cut and (cut[0], cut[0] + cut[1])
    kernels, api, ranges = (
        [(name, start, start + length) for name, start, length in events]
        for events in (work, calls, marked)
    )
    synth = Synth(tmp_path_factory.mktemp("sums") / "r.sqlite").process(1000)
    for number, (name, start, end) in enumerate(kernels):
        synth.kernel(name, start, end, device=number % 2, stream=7 + number % 3)
    for name, start, end in api:
        synth.api(name, start, end)
    for name, start, end in ranges:
        synth.nvtx(name, start, end)
    report = open_report(synth.write())
    scope = Scope(window=window)
    side = measure(plan(report, scope, by_step=False))
    wanted = {
        "kernels": by_hand(kernels, window),
        "api": by_hand(api, window),
        "ranges": by_hand(ranges, window),
    }
    overview = {"kernels": top_kernels(report, scope), "ranges": top_ranges(report, scope)}
    for family, rows in overview.items():
        found = {r.name: Sums(r.total_ns, r.count, r.straddling, r.mean_ns) for r in rows}
        assert found == wanted[family]
    grouped = kernel_table(report, scope=scope)
    assert wanted["kernels"] == {
        label: Sums(
            int(grouped.total[row]),
            int(grouped.count[row]),
            int(grouped.straddling[row]),
            float(grouped.mean[row]) if grouped.count[row] else None,
        )
        for row, label in enumerate(grouped.labels)
    }
    tracks = {
        "kernels": stream_tracks(report.operations),
        "api": api_tracks(report),
        "ranges": range_tracks(report),
    }
    names = {
        "kernels": ("cuda_gpu_kern_sum", "Name", "Instances"),
        "api": ("cuda_api_sum:merged", "Name", "Num Calls"),
        "ranges": ("nvtx_sum", "Range", "Instances"),
    }
    for family, sums in wanted.items():
        assert from_area([*tracks[family]], window) == without_means(sums), family
        spreads = {
            name: Sums(
                own.total, own.count, 0, own.instances.total / own.count if own.count else None
            )
            for name, own in side.names(family).items()
        }
        assert spreads == {
            name: own._replace(straddling=0) for name, own in without_empty(sums).items()
        }, family
        rank = rank_statistics(report, family, scope)
        assert {
            name: (int(rank.inside[row]), int(rank.count[row]))
            for row, name in enumerate(rank.names)
        } == {name: (own.total, own.count) for name, own in without_empty(sums).items()}, family
        if sums:
            report_name, header, count = names[family]
            table = printed(report, report_name, window)
            assert from_table(table, header, count, windowed=window is not None) == sums, family
