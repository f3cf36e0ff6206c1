"""Figures of the timeline against plain SQL and loops: areas, steps, search, busy time, facts."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pytest
from brute import query
from demo_making import make_report
from hypothesis import given, settings
from hypothesis import strategies as st
from synth import Synth

from nsys_tui.analysis.timeline.area import area
from nsys_tui.analysis.timeline.facts import facts_of, path_at
from nsys_tui.analysis.timeline.gpu import device_tracks, spread, stream_tracks
from nsys_tui.analysis.timeline.host import api_tracks, caller_words, osrt_tracks, range_tracks
from nsys_tui.analysis.timeline.launch_links import call_of, launched_by
from nsys_tui.analysis.timeline.lineup import Lineup
from nsys_tui.analysis.timeline.search import Step, after, before, column, search
from nsys_tui.analysis.timeline.summary import Summary
from nsys_tui.analysis.timeline.tracks import Section, Track, arrange
from nsys_tui.model.categories import Category
from nsys_tui.model.lanes import Lane, cell_edges
from nsys_tui.reader import open_report
from nsys_tui.units import format_count, format_duration

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.model.report import Report

WINDOW = (400_000_000, 600_000_123)
OPERATIONS = """
    SELECT start, end, deviceId, streamId, globalPid, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL
        JOIN StringIds s ON s.id = shortName
    UNION ALL SELECT start, end, deviceId, streamId, globalPid, 'copy'
        FROM CUPTI_ACTIVITY_KIND_MEMCPY
    UNION ALL SELECT start, end, deviceId, streamId, globalPid, 'set'
        FROM CUPTI_ACTIVITY_KIND_MEMSET
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "demo.sqlite"
    return make_report(path, steps=4).report


@pytest.fixture(scope="module")
def report(demo: Path) -> Report:
    found = open_report(demo, use_cache=False)
    for part in ("operations", "api", "ranges", "osrt", "syncs"):
        found.load(part)
    return found


@pytest.fixture(scope="module")
def tracks(report: Report) -> tuple[Track, ...]:
    found = stream_tracks(report.operations)
    found += device_tracks(found)
    return arrange([*found, *api_tracks(report), *osrt_tracks(report), *range_tracks(report)])


def union(pairs: list[tuple[int, int]]) -> int:
    total, reach = 0, -(2**62)
    for start, end in sorted(pairs):
        total += max(0, end - max(start, reach))
        reach = max(reach, end)
    return total


def test_an_area_of_all_lanes_says_what_sql_says(demo: Path, tracks: tuple[Track, ...]) -> None:
    lo, hi = WINDOW
    found = area(tracks, WINDOW, "short")
    compute: dict[int, list[tuple[int, int]]] = defaultdict(list)
    every: dict[int, list[tuple[int, int]]] = defaultdict(list)
    started: dict[str, int] = defaultdict(int)
    times: dict[str, int] = defaultdict(int)
    for start, end, _, _, process, name in query(demo, OPERATIONS):
        if start < hi and (end > lo or start >= lo):
            cut = (max(start, lo), min(end, hi))
            every[process].append(cut)
            times[name] += cut[1] - cut[0]
            started[name] += start >= lo
            if name not in ("copy", "set") and not name.startswith("nccl"):
                compute[process].append(cut)
    rows = {row.name: row for row in found.categories}
    assert rows["compute"].busy == sum(map(union, compute.values()))
    assert rows["compute"].of == 2 * (hi - lo)
    assert rows["idle"].busy == 2 * (hi - lo) - sum(map(union, every.values()))
    nccl = sum(count for name, count in started.items() if name.startswith("nccl"))
    assert rows["comm"].events == nccl
    assert rows["memory"].events == started["copy"] + started["set"]
    full = area(tracks, WINDOW, "full")
    names = {row.name.partition("(")[0].split("<")[0].split()[-1]: row for row in full.names}
    kernels = [name for name in started if name not in ("copy", "set")]
    assert len(kernels) > 10
    for name in kernels:
        assert names[name].total == times[name]
        assert names[name].events == started[name]


def test_an_area_counts_each_event_once_and_only_its_own_lanes(
    demo: Path, tracks: tuple[Track, ...]
) -> None:
    gpu = [t for t in tracks if t.device == 0]
    only_row = [t for t in gpu if t.summary is not None]
    assert area(gpu, WINDOW, "short") == area(only_row, WINDOW, "short")
    stream = next(t for t in gpu if t.label.startswith("str 16"))
    found = area([stream], WINDOW, "short")
    sql = f"""SELECT count(*) FROM ({OPERATIONS}) WHERE streamId = 16 AND deviceId = 0
        AND globalPid = {stream.process} AND start >= {WINDOW[0]} AND start < {WINDOW[1]}"""
    assert sum(row.events for row in found.names) == query(demo, sql)[0][0]
    assert [row.name for row in found.categories if row.of] == ["comm", "idle"]


def test_host_categories_of_an_area_are_thread_time(demo: Path, tracks: tuple[Track, ...]) -> None:
    lo, hi = WINDOW
    rows = {row.name: row for row in area(tracks, WINDOW, "short").categories}
    calls: dict[int, list[tuple[int, int]]] = defaultdict(list)
    count = 0
    sql = "SELECT start, end, globalTid FROM OSRT_API WHERE eventClass = 27"
    for start, end, thread in query(demo, sql):
        if start < hi and (end > lo or start >= lo):
            calls[thread].append((max(start, lo), min(end, hi)))
            count += start >= lo
    assert rows["osrt"].busy == sum(map(union, calls.values()))
    assert rows["osrt"].events == count
    assert rows["osrt"].of == 0


@pytest.mark.parametrize("pattern", ["allreduce", "gemm_bf16_128x64", "^Layer \\d$", "cudaMemcpy"])
def test_a_search_finds_what_a_loop_over_the_file_finds(
    demo: Path, tracks: tuple[Track, ...], pattern: str
) -> None:
    found = search(Lineup(tracks), pattern, "short")
    sql = """
        SELECT s.value || char(10) || d.value FROM CUPTI_ACTIVITY_KIND_KERNEL
            JOIN StringIds s ON s.id = shortName JOIN StringIds d ON d.id = demangledName
        UNION ALL SELECT value FROM CUPTI_ACTIVITY_KIND_RUNTIME
            JOIN StringIds ON StringIds.id = nameId
        UNION ALL SELECT value FROM OSRT_API JOIN StringIds ON StringIds.id = nameId
        UNION ALL SELECT coalesce(text, value) FROM NVTX_EVENTS
            LEFT JOIN StringIds ON StringIds.id = textId WHERE eventType IN (59, 60, 70, 71)
    """
    wanted = re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    texts = [re.sub(r"_v\d{4,5}$", "", text) for (text,) in query(demo, sql)]
    assert found.total == sum(bool(wanted.search(text)) for text in texts)
    assert found.total > 0


def test_a_pattern_that_is_no_expression_is_words_and_exact_means_the_whole_name(
    tracks: tuple[Track, ...],
) -> None:
    assert search(Lineup(tracks), "gpt2_forward(", "short").total == 0
    words = search(Lineup(tracks), "( allreduce", "short")
    assert {key.partition(":")[0] for key in words.matches} == {"gpu"}, "ranges have no bracket"
    assert search(Lineup(tracks), "allreduce", "short").total > words.total > 0
    exact = search(Lineup(tracks), "gpt2_forward", "short", exact=True)
    assert 0 < exact.total <= search(Lineup(tracks), "gpt2_forward", "short").total
    assert search(Lineup(tracks), "gpt2_forwar", "short", exact=True).total == 0


def test_matches_are_stepped_through_in_time_over_all_lanes(tracks: tuple[Track, ...]) -> None:
    found = search(Lineup(tracks), "allreduce", "short")
    keys = [track.key for track in tracks]
    everything = sorted(
        (int(tracks[place].lane.starts[position]), place, int(position))  # type: ignore[union-attr]
        for key, positions in found.matches.items()
        for place in [keys.index(key)]
        for position in positions
    )
    here = (-1, -1)
    walked: list[tuple[int, int, int]] = []
    while (number := found.step(*here, forward=True)) is not None:
        assert number == len(walked)
        here = (int(found.start[number]), int(found.place[number]))
        walked.append((*here, int(found.position[number])))
    assert walked == everything
    assert found.step(2**62, len(keys), forward=False) == len(everything) - 1
    hidden = found.without({keys[everything[0][1]]})
    assert 0 < hidden.total < found.total
    assert everything[0][1] not in hidden.place.tolist()


lanes_of_events = st.lists(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), min_size=1, max_size=12),
    min_size=1,
    max_size=3,
)


def made(lists: list[list[tuple[int, int]]]) -> list[Lane]:
    return [
        Lane.build([s for s, _ in events], [s + d for s, d in events], None, 0) for events in lists
    ]


@settings(max_examples=80, deadline=None)
@given(lanes_of_events)
def test_stepping_visits_every_event_in_order_both_ways(
    lists: list[list[tuple[int, int]]],
) -> None:
    lanes = made(lists)
    order = sorted(
        Step(int(start), number, position)
        for number, lane in enumerate(lanes)
        for position, start in enumerate(lane.starts.tolist())
    )
    forward, here = [], Step(-1, -1, 0)
    while (step := after(lanes, here)) is not None:
        forward.append(step)
        here = step
    assert forward == order
    backward, here = [], Step(100, -1, 0)
    while (step := before(lanes, here)) is not None:
        backward.append(step)
        here = step
    assert backward == order[::-1]


@settings(max_examples=80, deadline=None)
@given(lanes_of_events, st.integers(0, 50), st.integers(1, 20))
def test_a_column_gives_its_longest_event_and_its_number(
    lists: list[list[tuple[int, int]]], lo: int, width: int
) -> None:
    lanes = made(lists)
    inside = [
        Step(int(start), number, position)
        for number, lane in enumerate(lanes)
        for position, start in enumerate(lane.starts.tolist())
        if lo <= start < lo + width
    ]
    found = column(lanes, lo, lo + width)
    if not inside:
        assert found is None
        return
    assert found is not None

    def length(step: Step) -> int:
        lane = lanes[step.lane]
        return int(lane.ends[step.position] - lane.starts[step.position])

    best = min(inside, key=lambda step: (-length(step), step))
    assert found == (best, sorted(inside).index(best) + 1, len(inside))


def test_a_summary_knows_the_union_of_its_lanes_at_any_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Against a bitmap of every nanosecond; with few events a chunk, so that chunks meet."""
    monkeypatch.setattr("nsys_tui.analysis.timeline.summary.CHUNK", 5)
    monkeypatch.setattr("nsys_tui.analysis.timeline.summary.STEP", 7)
    random_ = np.random.default_rng(4)
    for _ in range(40):
        span = int(random_.integers(100, 3000))
        lanes = []
        busy = np.zeros((4, 3 * span), bool)
        for _ in range(int(random_.integers(1, 4))):
            count = int(random_.integers(1, 200))
            starts = np.sort(random_.integers(0, span, count))
            ends = starts + random_.integers(0, 30, count)
            ends[random_.integers(0, count)] += span // 3
            codes = random_.integers(0, 3, count).astype(np.uint8)
            lanes.append(Lane.build(starts, ends, None, codes))
            for start, end, code in zip(starts, ends, codes, strict=True):
                busy[[code, 3], start:end] = True
        summary = Summary.build(lanes)
        edges = cell_edges(int(random_.integers(0, span)), 2 * span, 40)
        wanted = np.add.reduceat(busy[:, : int(edges[-1])].astype(int), edges[:-1], axis=1)
        wanted[:, np.diff(edges) == 0] = 0
        assert (summary.busy(edges) == wanted[[*summary.codes, 3]]).all()
        for limit in (0, 10**9):
            monkeypatch.setattr("nsys_tui.analysis.timeline.summary.ON_THE_FLY", limit)
            assert (summary.lane(edges).busy(edges) == wanted[3]).all()


def test_an_event_of_no_length_is_in_the_summary_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsys_tui.analysis.timeline.summary.ON_THE_FLY", 0)
    summary = Summary.build([Lane.build([5], [5], None, 2)])
    lane = summary.lane(np.array([0, 4, 8], np.int64))
    assert lane.count(np.array([0, 4, 8], np.int64)).tolist() == [0, 1]
    assert Summary.build([]).lane(np.array([0, 4], np.int64)).busy(np.array([0, 4])).tolist() == [0]


def test_a_summary_of_no_lanes_is_never_busy() -> None:
    assert Summary.build([]).busy(np.array([0, 5, 10], np.int64)).tolist() == [[0, 0]]


def test_flows_go_to_what_has_the_same_process_and_correlation_id(
    demo: Path, report: Report
) -> None:
    ops, api = report.operations, report.api
    pick = random.Random(1)
    for row in pick.sample(range(len(ops)), 40):
        call = call_of(report, ops, row)
        assert call == int(report.calls[row])
        assert (ops, row) in launched_by(report, call)
        assert api.thread_process[api.thread[call]] == ops.processes[ops.process[row]]


def test_the_path_at_a_time_is_what_is_open_then(demo: Path, report: Report) -> None:
    sql = """SELECT coalesce(text, value) FROM NVTX_EVENTS LEFT JOIN StringIds ON textId = id
        WHERE eventType IN (59, 70) AND globalTid = ? AND start <= ? AND coalesce(end, 1e18) > ?
        ORDER BY start, -coalesce(end, 1e18), NVTX_EVENTS.rowid"""
    pick = random.Random(2)
    deep = 0
    for row in pick.sample(range(len(report.api)), 30):
        tid = int(report.api.threads[report.api.thread[row]])
        time = int(report.api.start[row])
        wanted = [name for (name,) in query(demo, sql, tid, time, time)]
        assert path_at(report, tid, time) == wanted
        deep = max(deep, len(wanted))
    assert deep >= 3


def test_facts_of_a_kernel_give_launch_shape_occupancy_latency_and_path(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(100, "train").cuda_device(100, 0, 0)
    synth.nvtx("step", 0, 900).nvtx("forward", 5, 400)
    synth.launch("gemm(int)", (10, 20), (100, 400), grid=(8, 2, 1), block=(256, 1, 1))
    synth.launch(
        "gemm(int)",
        (30, 45),
        (450, 1000),
        grid=(8, 2, 1),
        block=(256, 1, 1),
        registersPerThread=128,
        dynamicSharedMemory=1024,
    )
    report = open_report(synth.write(), use_cache=False)
    for part in ("operations", "api", "ranges"):
        report.load(part)
    found = facts_of(report, report.operations, 1, "short", str)
    facts = dict(found.facts)
    assert found.title == "gemm, 2 of 2"
    assert facts["start"] == "450"
    assert facts["dur"] == "550 ns"
    assert (facts["grid"], facts["block"], facts["regs"]) == ("8,2,1", "256,1,1", "128")
    # 128 registers a thread: 65536 / (128 * 32) = 16 warps of 64 fit, two blocks of 8 warps.
    assert facts["occ"] == "≈25.0% (registers)"
    sms = report.devices[0].info.sm_count if report.devices[0].info else None
    assert sms, "16 blocks, two on each of them at a time"
    assert facts["waves"] == f"≈{16 / (2 * sms):.2f}"
    assert facts["smem"] == "1.02 kB"
    assert facts["launch"] == "train main 100 +420 ns (call to start)"
    assert facts["queue"] == "405 ns"
    assert facts["stream idle before"] == "50 ns"
    assert facts["nvtx"] == "step > forward"
    assert found.raw["end"] == 1000
    assert found.table == "CUPTI_ACTIVITY_KIND_KERNEL"


def test_a_launching_thread_is_called_by_its_name_where_no_other_has_it(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(100, "train").cuda_device(100, 0, 0)
    synth.thread(100, "train").thread(101, "loader").thread(102, "loader").api("cudaFree", 0, 5)
    report = open_report(synth.write(), use_cache=False)
    tids = [synth.gtid(tid) for tid in (100, 101, 102)]
    assert [caller_words(report, tid, tids) for tid in tids] == [
        "train",
        "loader 101",
        "loader 102",
    ]
    assert caller_words(report, tids[1], tids[:2]) == "loader"


def test_facts_of_a_copy_give_bytes_and_speed_and_say_when_no_call_is_known(
    tmp_path: Path,
) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(100, "train").cuda_device(100, 0, 0)
    synth.memcpy(0, 1000, bytes=2_000_000, kind="HtoD", src="pageable", corr=5)
    synth.memcpy(1000, 1500, bytes=2_000_000, kind="HtoD", src="pinned", corr=6)
    synth.api("cudaFree", 0, 5)
    report = open_report(synth.write(), use_cache=False)
    for part in ("operations", "api"):
        report.load(part)
    facts = dict(facts_of(report, report.operations, 0, "short", str).facts)
    assert facts["bytes"] == "2.00 MB"
    assert facts["speed"] == "2.00 TB/s"
    assert facts["memory"].startswith("Pageable -> Device (not pinned")
    assert facts["of fastest"].startswith("50.0% (4.00 TB/s, measured"), "by the pinned copy"
    assert facts["launch"] == "- (no API call with its correlation id)"


def test_facts_of_a_collective_tell_waiting_from_transfer(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).gpu(1).process(100, "train")
    synth.cuda_device(100, 0, 0).cuda_device(100, 1, 1)
    kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)"
    synth.launch(kernel, (0, 5), (100, 900), stream=9)
    synth.launch(kernel, (6, 9), (700, 900), stream=9, device=1)
    report = open_report(synth.write(), use_cache=False)
    for part in ("operations", "api", "ranges"):
        report.load(part)
    first, last = (dict(facts_of(report, report.operations, n, "short", str).facts) for n in (0, 1))
    assert (first["waited"], first["transfer"]) == ("600 ns for GPU 1", "200 ns")
    assert (last["waited"], last["transfer"]) == ("not: it came last", "200 ns")


def test_facts_of_a_range_give_the_gpu_work_that_its_thread_launched_in_it(
    demo: Path, report: Report
) -> None:
    named = [report.ranges.names[code] for code in report.ranges.name]
    row = named.index("Train step 2")
    tid = int(report.ranges.threads[report.ranges.thread[row]])
    begin, end = int(report.ranges.start[row]), int(report.ranges.end[row])
    tables = (f"CUPTI_ACTIVITY_KIND_{name}" for name in ("KERNEL", "MEMCPY", "MEMSET"))
    work = [
        times
        for table in tables
        for times in query(
            demo,
            f"SELECT k.start, k.end FROM {table} k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r"
            " ON r.correlationId = k.correlationId AND r.globalTid >> 24 = k.globalPid >> 24"
            " WHERE r.globalTid = ? AND r.start >= ? AND r.start < ?",
            tid,
            begin,
            end,
        )
    ]
    told = dict(facts_of(report, report.ranges, row, "short", str).facts)["GPU work"]
    total = format_duration(sum(end - start for start, end in work))
    spread = format_duration(max(end for _, end in work) - min(start for start, _ in work))
    assert len(work) > 10
    assert told == f"{total} in {format_count(len(work))} operations, within {spread}"


def test_facts_of_a_range_give_its_payload_and_of_a_call_its_stack(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(100, "train")
    synth.nvtx("step", 0, 900, json='{"size": 5}').nvtx("inner", 10, None)
    synth.api("cudaMalloc_v3020", 20, 30, frames=("malloc", "main"), returned=2)
    report = open_report(synth.write(), use_cache=False)
    for part in ("operations", "api", "ranges"):
        report.load(part)
    assert dict(facts_of(report, report.ranges, 0, "short", str).facts)["payload"] == '{"size": 5}'
    inner = dict(facts_of(report, report.ranges, 1, "short", str).facts)
    assert inner["open"] == "never closed: counted to the end of the capture"
    assert inner["nvtx"] == "step"
    call = facts_of(report, report.api, 0, "short", str)
    assert call.title == "cudaMalloc"
    assert [frame.split()[0] for frame in call.stack] == ["malloc", "main"]
    assert dict(call.facts)["returned"] == "2 (error)"


def test_a_sample_is_spread_so_that_its_shading_is_that_of_the_whole(demo: Path) -> None:
    """Every fourth stretch of 20 kernels: busy shares come close, and unspread they do not."""
    ops = open_report(demo, use_cache=False).operations
    kernels = ops.take(ops.kind == 0)
    page = (kernels.rowid - 1) // 20
    sampled = kernels.take((page % 4 == 0) | (kernels.rowid < 0))
    lo, hi = kernels.bounds() or (0, 1)
    edges = cell_edges(lo, hi, 8)

    def busy(tracks: list[Track]) -> list[float]:
        row = next(t for t in device_tracks(tracks) if t.device == 0)
        assert row.summary is not None
        return (row.summary.busy(edges)[-1] / np.diff(edges)).tolist()

    exact = busy(stream_tracks(kernels))
    estimated = busy(stream_tracks(spread(sampled)))
    raw = busy(stream_tracks(sampled))
    apart = sum(abs(a - b) for a, b in zip(exact, estimated, strict=True))
    assert apart / len(exact) < 0.2
    assert apart < 0.4 * sum(abs(a - b) for a, b in zip(exact, raw, strict=True))
    assert len(spread(sampled)) == len(sampled)


def test_copies_of_a_sample_are_spread_as_well(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(100, "train").cuda_device(100, 0, 0)
    for number in range(6):
        synth.memcpy(100 * number, 100 * number + 50)
    ops = open_report(synth.write(), use_cache=False).operations
    found = spread(ops.take(np.isin(ops.rowid, (1, 2, 5, 6))))
    assert found.start.tolist() == [0, 266, 400, 500]
    assert found.end.tolist() == [133, 400, 450, 550]


def test_a_sample_out_of_order_is_left_as_it_is(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(100, "train").cuda_device(100, 0, 0)
    synth.kernel("late", 500, 600).kernel("early", 0, 100)
    ops = open_report(synth.write(), use_cache=False).operations
    found = spread(ops)
    assert (found.start.tolist(), found.end.tolist()) == ([0, 500], [100, 600])


def test_a_critical_path_is_no_work_of_its_own() -> None:
    times = np.array([0, 10], np.int64)
    lane = Lane.build(times, times + 10, np.arange(2, dtype=np.int32), Category.COMPUTE)
    path = Track("path", "path", "critical path", part="path", order=(Section.NVTX, -1), lane=lane)
    found = area([path], (0, 15), "short")
    assert (found.categories, found.names) == ((), ())
