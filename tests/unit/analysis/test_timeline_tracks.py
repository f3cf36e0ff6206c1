"""Which lanes there are, and in which order, on reports said in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from synth import Synth

from nsys_tui.analysis.nvtx.paths import nvtx_paths
from nsys_tui.analysis.timeline.gpu import (
    device_tracks,
    memory_tracks,
    projected_ranges,
    projected_tracks,
    stream_tracks,
)
from nsys_tui.analysis.timeline.host import (
    api_tracks,
    host_tracks,
    mark_tracks,
    osrt_tracks,
    range_tracks,
    sample_tracks,
    state_tracks,
    sync_tracks,
)
from nsys_tui.analysis.timeline.lineup import Lineup
from nsys_tui.analysis.timeline.metrics import metric_tracks, step_tracks
from nsys_tui.analysis.timeline.tracks import Section, Track, arrange, launching_first, passes
from nsys_tui.model.categories import Category
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from nsys_tui.analysis.timeline.tracks import Track
    from nsys_tui.model.report import Report

HOST = (api_tracks, osrt_tracks, host_tracks, range_tracks, mark_tracks, sync_tracks, sample_tracks)


def opened(synth: Synth) -> Report:
    return open_report(synth.write(), use_cache=False)


def all_tracks(report: Report) -> tuple[Track, ...]:
    found = stream_tracks(report.operations)
    found += device_tracks(found)
    for make in (*HOST, memory_tracks, metric_tracks):
        found += make(report)
    if len(report.ranges) and len(report.operations):
        found += projected_tracks(report, nvtx_paths(report))
    return arrange(found)


def labels(tracks: Iterable[Track]) -> list[str]:
    return ["  " * track.depth + track.label for track in tracks]


def by_label(tracks: Iterable[Track], label: str) -> Track:
    return next(track for track in tracks if track.label == label)


@pytest.fixture
def training(tmp_path: Path) -> Report:
    """Two GPUs, overlapping work on a stream, nested ranges, a second thread."""
    synth = Synth(tmp_path / "r.sqlite").gpu(0).gpu(1).process(100, "train")
    synth.cuda_device(100, 0, 0).cuda_device(100, 1, 1).thread(101, "worker")
    synth.nvtx("step", 0, 900).nvtx("forward", 10, 400).nvtx("layer", 20, 100)
    synth.nvtx("load", 0, 50, tid=101)
    synth.launch("gemm", (30, 40), (100, 400)).launch("gemm", (41, 45), (300, 600))
    synth.launch("ncclDevKernel_AllReduce", (50, 60), (400, 500), stream=13)
    synth.launch("gemm", (500, 510), (520, 560), device=1)
    synth.osrt("poll", 0, 1000, tid=101)
    synth.api("cudaStreamSynchronize_v3020", 600, 900, corr=77)
    synth.sync(610, 890, corr=77, stream=7)
    return opened(synth)


def test_groups_come_in_order_and_overlapping_work_gets_rows_of_its_own(training: Report) -> None:
    assert labels(all_tracks(training)) == [
        "NVTX",
        "  lvl 2",
        "  lvl 3",
        "GPU 0",
        "  nvtx",
        "    lvl 2",
        "    lvl 3",
        "  str 7",
        "  str 7+",
        "  str 13",
        "GPU 1",
        "  nvtx",
        "  str 7",
        "CPU 100",
        "  tid 100",
        "    sync",
        "  worker",
        "    nvtx",
    ]


def test_lanes_of_overlapping_work_share_the_events_and_none_overlaps(training: Report) -> None:
    tracks = [track for track in all_tracks(training) if track.stream == 0 and track.lane]
    lanes = [track.lane for track in tracks if track.lane]
    assert [list(zip(lane.starts, lane.ends, strict=True)) for lane in lanes] == [
        [(100, 400)],
        [(300, 600)],
    ]
    assert tracks[1].title == "GPU 0 str 7 (2 of 2: overlapping work)"


def test_a_thread_lends_its_row_to_its_api_calls_or_the_first_it_has(training: Report) -> None:
    tracks = all_tracks(training)
    assert by_label(tracks, "tid 100").part == "api"
    assert by_label(tracks, "worker").part == "osrt"
    assert by_label(tracks, "CPU 100").note == "pid 100 train"


def test_calls_that_wait_for_the_gpu_are_told_apart(training: Report) -> None:
    lane = by_label(all_tracks(training), "tid 100").lane
    assert lane is not None
    assert lane.categories(slice(None)).tolist() == [Category.API] * 4 + [Category.SYNC]


def test_deeper_ranges_fold_away_with_those_around_them(training: Report) -> None:
    tracks = all_tracks(training)
    top = by_label(tracks, "NVTX")
    shown = Lineup(tracks).shown(folded=[top.key])
    assert labels(shown)[:2] == ["NVTX", "GPU 0"]
    assert [t.key for t in shown if t.part == "projected"] == ["gpu:0/nvtx", "gpu:1/nvtx"]
    unfolded = Lineup(tracks).shown(opened=["gpu:0/nvtx"])
    assert sum(t.part == "projected" for t in unfolded) == 3


@pytest.mark.parametrize(("count", "folded"), [(4, 0), (5, 4)])
def test_of_many_gpus_all_but_the_first_begin_folded(
    tmp_path: Path, count: int, folded: int
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(100, "train")
    for device in range(count):
        synth.gpu(device).kernel("gemm", 10, 20, device=device)
    tracks = [t for t in all_tracks(opened(synth)) if t.key.startswith("gpu") and not t.parents]
    assert [track.folded for track in tracks] == [False] * (count - folded) + [True] * folded


def test_hidden_pinned_and_nesting_levels(training: Report) -> None:
    tracks = all_tracks(training)
    hidden = Lineup(tracks).shown(hidden={"gpu:0"})
    assert not any(t.key.startswith("gpu:0") for t in hidden)
    stream = by_label(tracks, "str 13").key
    pinned = Lineup(tracks).shown(pinned=[stream])
    assert pinned[0].key == stream
    assert [t.key for t in pinned].count(stream) == 1
    assert labels(Lineup(tracks).shown(levels=1))[:2] == ["NVTX", "GPU 0"]


def test_projected_ranges_last_from_their_first_to_their_last_operation(training: Report) -> None:
    first, second = projected_ranges(training, nvtx_paths(training))
    ranges, level = first
    spans = {
        ranges.names[code]: (start, end)
        for code, start, end in zip(
            ranges.name.tolist(), ranges.start.tolist(), ranges.end.tolist(), strict=True
        )
    }
    assert spans == {"step": (100, 600), "forward": (100, 600), "layer": (100, 600)}
    assert level.tolist() == [0, 1, 2]
    ranges, level = second
    assert [ranges.names[code] for code in ranges.name] == ["step"]
    assert (ranges.start.tolist(), ranges.end.tolist()) == ([520], [560])


def test_domains_other_kinds_and_counters_have_rows_of_their_own(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(100, "train")
    synth.cuda_device(100, 0, 0).domain(1, "NCCL")
    synth.nvtx("step", 0, 900).nvtx("ncclAllReduce", 10, 50, domain=1)
    synth.mark("here", 5).sample(7).sample(9)
    synth.launch("gemm", (30, 40), (100, 400))
    synth.memory_usage(20, 1000).memory_usage(60, 500)
    synth.gpu_metric(0, "SM Active [Throughput %]", 50).gpu_metric(10, "DRAM [MB]", 7)
    tracks = all_tracks(opened(synth))
    assert [t.label for t in tracks if t.part in ("ranges", "marks", "samples")] == [
        "NVTX",
        "NCCL",
        "marks",
        "sample",
    ]
    memory = by_label(tracks, "mem")
    assert memory.counter is not None
    assert memory.counter.values.tolist() == [1000, 1500]
    assert memory.counter.top == 1500
    metrics = [t for t in tracks if t.part == "gpu_metrics"]
    assert {t.parents for t in metrics} == {("gpu:0",)}, "right below their GPU"
    assert sorted((t.label, t.counter.unit, t.counter.top) for t in metrics if t.counter) == [
        ("DRAM", "MB", 7.0),
        ("SM Active", "%", 100.0),
    ]


def test_a_wait_without_a_known_call_stands_apart(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(100, "train")
    synth.sync(610, 890, corr=77, stream=7)
    tracks = all_tracks(opened(synth))
    assert labels(tracks) == ["CPU", "  no thread"]
    assert [t.part for t in tracks] == ["", "syncs"]


def test_a_filter_of_devices_streams_or_processes_excludes_only_what_has_another(
    training: Report,
) -> None:
    tracks = all_tracks(training)
    on_gpu_1 = [t for t in tracks if passes(t, devices={1})]
    assert {t.device for t in on_gpu_1} == {1, None}
    stream = by_label(tracks, "str 13")
    assert passes(stream, streams={stream.stream or 0})
    assert not passes(stream, streams={(stream.stream or 0) + 1})
    assert not passes(stream, processes={12345})


def test_many_threads_make_as_many_rows(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(100, "many")
    for tid in range(2000):
        synth.osrt("read", tid, tid + 5, tid=tid + 1)
    assert len(all_tracks(opened(synth))) == 2001


def test_time_on_a_cpu_is_a_row_of_threads_that_have_others(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "states.sqlite").process(1000).osrt("poll", 40, 90, tid=7)
    synth.sched(0, True, tid=7).sched(40, False, tid=7).sched(90, True, tid=7)
    synth.sched(100, False, tid=7).sched(10, True, tid=9).sched(20, False, tid=9)
    tracks = [track for track in state_tracks(opened(synth)) if track.covered is not None]
    assert [track.title[:38] for track in tracks] == ["tid 7: share of the time on a CPU; b: "]
    lane = tracks[0].covered
    assert lane is not None
    assert (lane.starts.tolist(), lane.ends.tolist()) == ([0, 90], [40, 100])
    assert spans(tracks[0]) == {"blocked": [(40, 90)]}


def spans(track: Track) -> dict[str, list[tuple[int, int]]]:
    """Times off the CPU by what they were."""
    return {
        name: list(zip(lane.starts.tolist(), lane.ends.tolist(), strict=True))
        for name, lane in track.off
    }


def test_times_off_the_cpu_are_told_apart_as_far_as_events_do(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "states.sqlite", schema="2024.5").process(1000)
    synth.osrt("poll", 5, 25, tid=7)
    for time, on, state in (
        (0, 1, 0), (10, 0, 0), (30, 1, 0), (40, 0, 0), (50, 1, 0), (60, 0, 1), (70, 1, 0),
        (80, 0, 2), (90, 1, 0),
    ):  # fmt: skip
        synth.sched(time, bool(on), tid=7, threadState=state)
    (track,) = (track for track in state_tracks(opened(synth)) if track.covered is not None)
    assert spans(track) == {
        "blocked": [(10, 30), (80, 90)],
        "runnable": [(60, 70)],
        "off the CPU": [(40, 50)],
    }


def test_threads_that_call_the_gpu_stand_for_themselves_and_the_others_fold(
    training: Report,
) -> None:
    found = stream_tracks(training.operations)
    for make in HOST:
        found += make(training)
    tracks = arrange(launching_first(found))
    host = [t for t in tracks if t.order[0] in (Section.LAUNCHING, Section.HOST)]
    assert labels(host) == ["tid 100", "  sync", "others", "  worker", "    nvtx"]
    assert [t.words for t in host[:3]] == ["train main 100 CUDA API", "GPU waits", "other threads"]
    assert host[2].note == "1 thread that calls no GPU, of train 100"
    assert labels(Lineup(tracks).shown())[-1] == "others", "folded"
    without = [t for t in found if t.part != "api"]
    assert labels(arrange(launching_first(without))) == labels(arrange(without)), (
        "where none calls, none folds"
    )


def test_ranks_stand_above_their_launcher_and_the_cursor_begins_on_their_calls(
    tmp_path: Path,
) -> None:
    synth = Synth(tmp_path / "mpi.sqlite").process(90, "mpirun")
    for at in range(0, 1000, 100):
        synth.osrt("poll", at, at + 90)
    synth.process(100, "solver").mpi("MPI_Init", 0, 400)
    for at in range(0, 400, 100):
        synth.osrt("read", at, at + 5)
    report = opened(synth)
    rows = Lineup(arrange(launching_first([*osrt_tracks(report), *host_tracks(report)]))).shown()
    assert [row.part for row in rows] == ["host_events", "osrt", ""]
    assert rows[-1].note == "1 thread that calls no MPI, of mpirun 90"
    assert rows.busiest == 0, "the calls of MPI are fewer than those of the OS"


def test_threads_of_one_name_are_told_apart_where_there_is_little_room(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0)
    for pid, worker in ((144, "loader"), (145, "saver")):
        synth.process(pid, "python3").thread(pid, "python3").thread(pid + 100, worker)
        for tid in (pid, pid + 100):
            synth.api("cudaMalloc", 10, 20, corr=tid, tid=tid)
    tracks = all_tracks(opened(synth))
    named = [track.label for track in tracks if track.thread is not None]
    assert named == ["python3 144", "loader", "python3 145", "saver"]


def test_the_cursor_begins_on_ranges_and_not_on_more_marks(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").nvtx("step", 0, 100)
    for at in range(0, 90, 10):
        synth.nvtx("sample", at, None, type=34)
    report = opened(synth)
    rows = Lineup(arrange([*range_tracks(report), *mark_tracks(report)])).shown()
    assert {row.part for row in rows} >= {"ranges", "marks"}
    assert rows[rows.busiest].part == "ranges"


def test_without_context_switches_no_thread_has_a_row_of_its_states(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "none.sqlite").process(1000).osrt("poll", 40, 90)
    assert state_tracks(opened(synth)) == []


def test_steps_stand_above_where_the_outermost_ranges_do_not_show_them(tmp_path: Path) -> None:
    def report(*, inside: bool) -> Report:
        synth = Synth(tmp_path / f"{inside}.sqlite").gpu(0).process(100, "train")
        synth.cuda_device(100, 0, 0)
        if inside:
            synth.nvtx("training", 0, 5000)
        for step in range(4):
            at = 100 + 1000 * step
            synth.nvtx(f"step {step}", at, at + 900)
            synth.launch("gemm", (at + 1, at + 2), (at + 10, at + 800))
        return opened(synth)

    (track,) = step_tracks(report(inside=True))
    assert track.lane is not None
    assert track.texts == ("step 0", "step 1", "step 2", "step 3")
    assert track.lane.starts.tolist() == [100, 1100, 2100, 3100]
    assert track.lane.ends.tolist() == [1000, 2000, 3000, 4000]
    assert step_tracks(report(inside=False)) == []
