from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import plain_sql
import pytest
from demo_making import make_report
from paths import REPORTS, needs_reports, report_paths
from synth import Synth

from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.stalls import host_activity
from nsys_tui.analysis.stalls.answer import StallAnswer
from nsys_tui.analysis.stalls.causes import Cause, Edge, api_name_class
from nsys_tui.analysis.stalls.explained import shares_of
from nsys_tui.analysis.stalls.gaps import stalls
from nsys_tui.analysis.stalls.rows import HEAD, LAUNCH_BOUND, TAIL, stall_groups, stall_rows
from nsys_tui.analysis.stalls.surroundings import scene
from nsys_tui.analysis.window import Scope
from nsys_tui.cli import main
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.analysis.stalls.rows import StallRow

US = 1_000
MS = 1_000_000


def gap_before(synth: Synth) -> StallRow:
    """The only listed gap between two kernels of a report."""
    report = open_report(synth.write())
    rows = stall_rows(report, stalls(report))
    (row,) = [row for row in rows if row.kind == "gap"]
    return row


@pytest.fixture
def synth(tmp_path: Path) -> Synth:
    """A kernel until 100 us, and the next one from 300 us on."""
    return (
        Synth(tmp_path / "r.sqlite")
        .process(10, "train")
        .launch("first", call=(0, 10 * US), gpu=(20 * US, 100 * US))
        .launch("second", call=(290 * US, 295 * US), gpu=(300 * US, 400 * US))
    )


def test_a_large_thread_is_worked_out_once_and_the_same_near_gaps(
    synth: Synth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_activity, "HELD", 1)
    synth.api("cudaMalloc", 50 * US, 120 * US).osrt("ioctl", 60 * US, 150 * US)
    synth.api("cudaMalloc", 400 * US, 420 * US).osrt("poll", 160 * US, 280 * US)
    report = open_report(synth.write())
    thread, edges = int(report.api.threads[0]), np.array([[100 * US], [300 * US]])
    work = host_activity.HostWork(report)
    whole = work.thread(thread)
    assert work.thread(thread) is whole
    near = host_activity.HostWork(report).near(thread, *edges)
    assert len(near) < len(whole)
    shares = [
        {one: int(ns[0]) for one, ns in each.shares(*edges).items()} for each in (near, whole)
    ]
    assert shares[0] == shares[1]
    assert shares[0][Cause.ALLOCATION] == 20 * US


def test_a_named_sync_call_and_then_launch_latency(synth: Synth) -> None:
    synth.api("cudaStreamSynchronize_v3020", 50 * US, 280 * US).nvtx("opt", 0, 400 * US)
    row = gap_before(synth)
    assert row.label == "sync call: cudaStreamSynchronize"
    assert row.shares == {
        "launch latency": 10 * US,
        "sync call": 180 * US,
        "nothing recorded": 10 * US,
    }
    assert (row.previous, row.next, row.range, row.call) == (
        "first",
        "second",
        "opt",
        "cudaLaunchKernel",
    )


def test_precedence_gives_a_nanosecond_to_the_first_class_only(synth: Synth) -> None:
    (
        synth.api("cudaMalloc_v3020", 100 * US, 290 * US)
        .api("cudaStreamSynchronize_v3020", 100 * US, 290 * US)
        .osrt("ioctl", 100 * US, 290 * US)
        .overhead("CUDA profiling data flush", 100 * US, 150 * US)
        .cuda_overhead("cuLibraryGetKernel", 150 * US, 160 * US, 7)
    )
    assert gap_before(synth).shares == {
        "launch latency": 10 * US,
        "profiler overhead": 50 * US,
        "module load or JIT": 10 * US,
        "allocation or free": 130 * US,
    }


def test_os_calls_count_outermost_and_are_named(synth: Synth) -> None:
    synth.osrt("read", 110 * US, 250 * US).osrt("futex", 110 * US, 240 * US, nesting=1)
    assert gap_before(synth).label == "I/O: read"


def test_a_range_alone_is_named_and_no_witness_that_the_host_computed(synth: Synth) -> None:
    synth.nvtx("step 7", 0, 400 * US).nvtx("augment", 120 * US, 280 * US)
    row = gap_before(synth)
    assert (row.label, row.range) == ("nothing recorded", "augment")


def test_a_thread_on_a_cpu_computes_and_names_its_innermost_range(synth: Synth) -> None:
    synth.nvtx("step 7", 0, 400 * US).nvtx("augment", 120 * US, 280 * US).sched(0, True)
    row = gap_before(synth)
    assert (row.label, row.range, row.witness) == ("host compute: augment", "augment", "measured")


def test_a_thread_that_slept_did_not_compute(synth: Synth) -> None:
    synth.nvtx("host work", 0, 400 * US)
    synth.sched(0, True).sched(130 * US, False).sched(270 * US, True)
    row = gap_before(synth)
    assert (row.label, row.range, row.witness) == ("off the CPU", "host work", "measured")
    assert row.shares == {
        "launch latency": 10 * US,
        "host compute": 50 * US,
        "off the CPU": 140 * US,
    }


def test_samples_are_a_witness_of_the_time_before_them(synth: Synth) -> None:
    for t in (140, 180, 220, 260):
        synth.sample(t * US)
    row = gap_before(synth)
    assert (row.cause, row.witness) == ("host compute", "sampled")
    assert row.shares == {
        "launch latency": 10 * US,
        "host compute": 160 * US,
        "nothing recorded": 30 * US,
    }


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize(("at", "cause"), [(600, Cause.NOTHING), (950, Cause.HOST)])
def test_samples_in_calls_tell_nothing_of_the_time_between(
    tmp_path: Path, at: int, cause: Cause, every: int
) -> None:
    """A sample a millisecond hits a thread while it waits for its kernel, or after that.

    Of one that sleeps as it waits so few steps have one that its time on a CPU is this.
    """
    synth = Synth(tmp_path / "r.sqlite").process(10, "train")
    synth.api("cudaFree_v3020", 0, 99 * MS)
    for before in range(99):
        synth.sample(before * MS)
    for step in range(30):
        start = (100 + step) * MS
        synth.launch("k", (start, start + 10 * US), (start + 20 * US, start + 800 * US))
        synth.api("cudaStreamSynchronize_v3020", start + 30 * US, start + 810 * US)
        if step % every == 0:
            synth.sample(start + at * US)
    gaps = stalls(open_report(synth.write())).gaps
    inner = gaps.cause[gaps.edge == Edge.INNER]
    assert len(inner) == 29
    assert (inner[1:-every] == cause).all()


def test_an_asynchronous_copy_of_pageable_memory_blocks(tmp_path: Path) -> None:
    synth = (
        Synth(tmp_path / "r.sqlite")
        .process(10)
        .launch("first", call=(0, 10 * US), gpu=(20 * US, 100 * US))
        .api("cudaMemcpyAsync_v3020", 50 * US, 280 * US, corr=5)
        .memcpy(60 * US, 90 * US, kind="HtoD", src="pageable", corr=5)
        .launch("second", call=(290 * US, 295 * US), gpu=(300 * US, 400 * US))
    )
    assert gap_before(synth).cause == "blocking or pageable copy"


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("cudaDeviceSynchronize_v3020", Cause.SYNC),
        ("cuCtxSynchronize", Cause.SYNC),
        ("cudaFreeAsync_v11020", Cause.ALLOCATION),
        ("cuMemAlloc_v2", Cause.ALLOCATION),
        ("cudaHostAlloc_v3020", Cause.ALLOCATION),
        ("cuLibraryLoadData", Cause.MODULE),
        ("cudaMemcpy_v3020", Cause.COPY),
        ("cuMemcpyDtoH_v2", Cause.COPY),
        ("cudaMemcpyFromSymbol_v3020", Cause.COPY),
        ("cudaMemcpyAsync_v3020", Cause.API),
        ("cudaStreamWaitEvent_v3020", Cause.API),
        ("cudaLaunchKernel_v7000", Cause.API),
    ],
)
def test_api_calls_count_as_what_they_do(name: str, cause: Cause) -> None:
    assert api_name_class(name) is cause


def waiting(tmp_path: Path) -> Synth:
    """The second kernel's call comes before the gap."""
    return (
        Synth(tmp_path / "r.sqlite")
        .process(10)
        .launch("first", call=(0, 10), gpu=(20 * US, 100 * US))
    )


def test_a_collective_waits_for_its_peer(tmp_path: Path) -> None:
    synth = waiting(tmp_path).launch(
        "ncclDevKernel_AllReduce", call=(20, 30), gpu=(300 * US, 400 * US)
    )
    row = gap_before(synth)
    assert (row.cause, row.label) == ("peer", "device: peer: AllReduce")
    assert row.shares == {}


def test_a_stream_that_waits_for_an_event_is_told_from_a_late_start(tmp_path: Path) -> None:
    plain = waiting(tmp_path).launch("second", call=(20, 30), gpu=(300 * US, 400 * US))
    assert gap_before(plain).cause == "late start"
    waits = (
        waiting(tmp_path)
        .sync(15, 18, "stream wait", stream=7)
        .launch("second", call=(20, 30), gpu=(300 * US, 400 * US))
    )
    assert gap_before(waits).cause == "event"
    of_another_stream = (
        waiting(tmp_path)
        .sync(15, 18, "stream wait", stream=9)
        .launch("second", call=(20, 30), gpu=(300 * US, 400 * US))
    )
    assert gap_before(of_another_stream).cause == "late start"


def test_the_api_call_decides_what_a_synchronisation_row_is(tmp_path: Path) -> None:
    """Exports of older captures number the types differently: a stream sync as type 2."""
    synth = (
        waiting(tmp_path)
        .api("cudaStreamSynchronize_v3020", 14, 19, corr=77)
        .sync(15, 18, 2, stream=7, corr=77)
        .launch("second", call=(20, 30), gpu=(300 * US, 400 * US))
    )
    assert gap_before(synth).cause == "late start"


def test_equal_correlation_ids_in_two_processes_are_told_apart(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0)
    for pid in (10, 20):
        synth.cuda_device(pid, 0, 0)
    synth.process(10).launch("first", call=(0, 10), gpu=(20 * US, 100 * US), corr=1)
    synth.api("cudaStreamSynchronize_v3020", 100 * US, 290 * US)
    synth.api("cudaLaunchKernel_v7000", 291 * US, 292 * US, corr=2)
    synth.process(20).nvtx("other", 0, 400 * US)
    synth.launch("second", call=(290 * US, 291 * US), gpu=(300 * US, 400 * US), corr=2)
    row = gap_before(synth)
    assert (row.cause, row.range) == ("nothing recorded", "other")


def test_no_api_row_is_unknown(synth: Synth) -> None:
    report = open_report(synth.kernel("stray", 900 * US, 901 * US).write())
    assert [row.cause for row in stall_rows(report, stalls(report)) if row.next == "stray"] == [
        "unknown"
    ]


def test_head_and_tail_are_told_apart_and_come_last(synth: Synth) -> None:
    report = open_report(synth.session(2 * MS).write())
    result = stalls(report)
    assert [row.kind for row in stall_rows(report, result)] == ["gap", "tail", "head"]
    (total,) = result.totals
    assert (total.head_ns, total.tail_ns) == (20 * US, 2 * MS - 400 * US)
    table = StallAnswer(report, result).groups("cause")
    shares = {row[-1]: row[0] for row in table.rows()}
    assert shares == {"nothing recorded": 100.0, HEAD: None, TAIL: None}
    assert {group.key for group in stall_groups(report, result)} == {
        "nothing recorded",
        HEAD,
        TAIL,
    }


def test_short_gaps_are_counted_below_the_line(synth: Synth) -> None:
    synth.kernel("third", 401 * US, 410 * US).kernel("fourth", 412 * US, 413 * US)
    report = open_report(synth.write())
    for threshold in (1, 10 * US, MS):
        (total,) = stalls(report, threshold_ns=threshold).totals
        assert total.idle_ns == total.listed_ns + total.below_ns == 223 * US
    assert (total.below_count, total.listed_count) == (4, 0)


def test_a_window_cuts_idle_time_but_not_its_cause(synth: Synth) -> None:
    synth.api("cudaDeviceSynchronize_v3020", 50 * US, 280 * US)
    report = open_report(synth.write())
    result = stalls(report, Scope(window=(150 * US, 250 * US)))
    (row,) = stall_rows(report, result)
    assert (row.start, row.end, row.idle_ns) == (100 * US, 300 * US, 100 * US)
    assert row.cause == "sync call"
    assert row.severity is Severity.MEDIUM, "half of the window, but no millisecond"


def test_a_launch_bound_phase_is_one_row(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for i in range(30):
        t = i * 30 * US
        synth.launch("tiny", call=(t, t + 5 * US), gpu=(t + 8 * US, t + 12 * US))
    report = open_report(synth.write())
    merged, single = stalls(report), stalls(report, merge_runs=False)
    rows = [row for row in stall_rows(report, merged) if row.kind != "head"]
    assert [(row.kind, row.gaps, row.idle_ns) for row in rows] == [("run", 29, 29 * 26 * US)]
    assert rows[0].cause == LAUNCH_BOUND
    assert len([row for row in stall_rows(report, single) if row.kind == "gap"]) == 29
    assert merged.whole.idle_ns == single.whole.idle_ns


def test_a_launch_bound_phase_has_its_last_gap(tmp_path: Path) -> None:
    """It ends with work of no length, at the moment at which longer work begins."""
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for i in range(30):
        t = i * 30 * US
        synth.launch("tiny", call=(t, t + 5 * US), gpu=(t + 8 * US, t + (12 if i < 29 else 8) * US))
    synth.launch("long", call=(t + 6 * US, t + 7 * US), gpu=(t + 8 * US, t + 300 * US))
    (total,) = stalls(open_report(synth.write())).totals
    assert (total.in_runs_count, total.in_runs_ns) == (29, 29 * 26 * US)
    assert total.listed_count == 0


def test_a_launch_bound_phase_has_the_range_of_most_of_it(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for i in range(30):
        t = i * 30 * US
        synth.launch("tiny", call=(t, t + 5 * US), gpu=(t + 8 * US, t + 12 * US))
    synth.nvtx("verify", 0, 25 * US).nvtx("draft", 26 * US, 900 * US)
    report = open_report(synth.write())
    (run,) = [row for row in stall_rows(report, stalls(report)) if row.kind == "run"]
    assert run.range == "draft"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("demo")
    path, truth = folder / "demo.sqlite", folder / "truth.json"
    make_report(path, truth_path=truth)
    return path, json.loads(truth.read_text())


def test_groups_add_up_to_all_idle_time(demo: tuple[Path, dict[str, Any]]) -> None:
    report = open_report(demo[0])
    result = stalls(report)
    for by in ("cause", "range", "pair", "thread", "device"):
        groups = stall_groups(report, result, by)
        assert sum(group.idle_ns for group in groups) == result.whole.idle_ns, by
        assert sum(group.count for group in groups) == sum(t.gap_count for t in result.totals)
        shares = StallAnswer(report, result).groups(by)["Share"]
        assert sum(share or 0 for share in shares) == pytest.approx(100), by


def test_threads_that_are_not_kept_are_looked_at_again(
    demo: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = open_report(demo[0])
    kept = stalls(report)
    monkeypatch.setattr(host_activity, "HELD", 0)
    again = stalls(report)
    np.testing.assert_equal(vars(kept.gaps), vars(again.gaps))
    assert kept.work.names == again.work.names
    kept.work.rest()
    assert stalls(report, work=kept.work).gaps.what.tolist() == kept.gaps.what.tolist()
    assert stall_rows(report, kept) == stall_rows(report, again)


def test_every_gap_of_the_demo_has_its_true_cause(demo: tuple[Path, dict[str, Any]]) -> None:
    report = open_report(demo[0])
    result = stalls(report, merge_runs=False)
    rows = [row for row in stall_rows(report, result) if row.kind == "gap"]
    for device in demo[1]["devices"]:
        place = [d.gpu_id for d in report.devices].index(device["gpu_id"])
        found = {(row.start, row.end): row.cause for row in rows if row.device == place}
        true = {(gap["start"], gap["end"]): gap["cause"] for gap in device["gaps"]["listed"]}
        assert found == true


def test_the_planted_stalls_come_out_with_the_planted_figures(
    demo: tuple[Path, dict[str, Any]],
) -> None:
    report = open_report(demo[0])
    rows = stall_rows(report, stalls(report))
    planted = {(p["kind"], p["device"]): p for p in demo[1]["problems"]}
    numbers = [device.gpu_id for device in report.devices]
    for (kind, gpu), problem in planted.items():
        place = numbers.index(gpu)
        mine = [row for row in rows if row.device == place]
        if kind == "launch_bound":
            (run,) = [row for row in mine if row.kind == "run"]
            assert [run.start, run.end] == problem["window"]
            assert run.idle_ns == problem["idle_ns"]
        elif kind in ("sync_stall", "pageable_copy", "slow_step"):
            lo, hi = problem["window"]
            those = [r for r in mine if r.cause == problem["cause"] and lo <= r.start < hi]
            assert sum(row.idle_ns for row in those) == problem["duration_ns"]
    assert rows[0].what == "pread64"


def test_the_scene_shows_what_everybody_did(synth: Synth) -> None:
    (
        synth.api("cudaStreamSynchronize_v3020", 90 * US, 280 * US)
        .osrt("ioctl", 100 * US, 270 * US)
        .nvtx("opt", 0, 400 * US)
        .osrt("write", 110 * US, 290 * US, tid=99)
        .sample(150 * US, ("poll", "main"))
        .sample(160 * US, ("poll", "main"))
        .sample(170 * US, ("spin", "main"))
    )
    report = open_report(synth.write())
    row = stall_rows(report, stalls(report))[0]
    seen = scene(report, row.device, (row.start, row.end), row.thread)
    assert [lane.names for lane in seen.gpu] == [("first", "second")]
    assert [(lane.label.rpartition(": ")[2], lane.names) for lane in seen.launching] == [
        ("API", ("cudaStreamSynchronize", "cudaLaunchKernel")),
        ("OS runtime", ("ioctl",)),
        ("NVTX", ("opt",)),
    ]
    assert [(lane.label, lane.names) for lane in seen.others] == [
        ("tid 99: OS runtime", ("write",))
    ]
    assert seen.stack is not None
    assert (seen.stack.frames, seen.stack.samples, seen.stack.of) == (("poll", "main"), 2, 3)


def test_without_samples_the_scene_says_what_records_them(synth: Synth) -> None:
    report = open_report(synth.write())
    row = stall_rows(report, stalls(report))[0]
    seen = scene(report, row.device, (row.start, row.end), row.thread)
    assert seen.stack is None
    assert any("--sample" in note for note in seen.notes)


@needs_reports
@pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
def test_every_format_on_every_report(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = open_report(path)
    if not len(report.operations):
        assert main(["stalls", str(path), "--format", "json"]) == 66
        shown = capsys.readouterr()
        assert json.loads(shown.out)["gaps"] == []
        assert "record with nsys profile" in shown.err
        return
    for fmt in ("table", "csv", "markdown"):
        assert main(["stalls", str(path), "--format", fmt]) == 0
    capsys.readouterr()
    assert main(["stalls", str(path), "--format", "json", "--group-by", "range"]) == 0
    shown = json.loads(capsys.readouterr().out)
    lo, hi = report.extent
    busy = plain_sql.devices(path)
    for device in shown["devices"]:
        assert device["idle_ns"] == hi - lo - busy[device["id"]]["busy_ns"]
        parts = (device[part]["idle_ns"] for part in ("listed", "launch_bound_runs"))
        assert device["idle_ns"] == sum(parts) + device["below_threshold"]["idle_ns"]
    assert sum(group["idle_ns"] for group in shown["by_range"]) == shown["idle_ns"]


@needs_reports
def test_two_processes_of_a_real_report_keep_their_own_calls() -> None:
    report = open_report(REPORTS / "pytorch-nccl-2gpu-2026.2.sqlite")
    result = stalls(report, threshold_ns=1)
    ops, api = report.operations, report.api
    called = result.gaps.call >= 0
    assert called.sum() > 5_000
    launched = ops.processes[ops.process[result.gaps.next[called]]]
    assert (api.thread_process[api.thread[result.gaps.call[called]]] == launched).all()


def pages(folder: Path, *, second_thread: bool) -> StallRow:
    """The host loops over managed memory for 200 us; then the page it touches migrates."""
    synth = Synth(folder / "r.sqlite").process(10, "train").sched(0, True)
    synth.launch("first", call=(0, 10 * US), gpu=(20 * US, 100 * US))
    synth.memcpy(300 * US, 310 * US, kind=12)
    if second_thread:
        synth.api("cudaStreamSynchronize_v3020", 0, 5 * US, tid=99)
    return gap_before(synth)


def test_a_page_that_migrates_was_touched_by_the_one_thread_that_calls_cuda(
    tmp_path: Path,
) -> None:
    row = pages(tmp_path, second_thread=False)
    assert (row.cause, row.witness, row.call) == ("host compute", "measured", "")
    assert row.shares == {"host compute": 200 * US}


def test_of_two_threads_none_is_held_to_have_touched_the_page(tmp_path: Path) -> None:
    row = pages(tmp_path, second_thread=True)
    assert (row.cause, row.witness, row.shares) == ("unknown", "", {})


def test_a_range_of_a_part_of_the_gap_does_not_name_it(synth: Synth) -> None:
    synth.sched(0, True).nvtx("MPI_Recv", 120 * US, 180 * US)
    row = gap_before(synth)
    assert (row.label, row.range) == ("host compute", "")


def held_up(tmp_path: Path, call: tuple[int, int], api: str = "cudaLaunchKernel_v7000") -> Synth:
    """An idle GPU from 100 us to 300 us, and the call of what ends it."""
    return (
        Synth(tmp_path / "r.sqlite")
        .process(10, "train")
        .launch("first", call=(0, 10 * US), gpu=(20 * US, 100 * US))
        .launch("second", call=call, gpu=(300 * US, 400 * US), api=api)
    )


def test_a_launch_call_that_spans_the_gap_is_no_late_start(tmp_path: Path) -> None:
    row = gap_before(held_up(tmp_path, (50 * US, 295 * US)))
    assert row.label == "other API: cudaLaunchKernel"
    assert row.shares == {"launch latency": 5 * US, "other API": 195 * US}
    early = gap_before(held_up(tmp_path, (50 * US, 130 * US)))
    assert early.cause == "late start", "the call was done long before the kernel began"
    short = gap_before(held_up(tmp_path, (60 * US, 290 * US)).nvtx("x", 0, 9))
    assert short.cause == "other API"


def test_the_row_that_shows_why_a_launch_took_long_is_named(tmp_path: Path) -> None:
    full = held_up(tmp_path, (50 * US, 295 * US))
    full.cuda_overhead("Command Buffer Full", 60 * US, 290 * US, 8)
    assert gap_before(full).cause == "full launch queue"
    locked = held_up(tmp_path, (120 * US, 295 * US)).osrt("pthread_mutex_lock", 125 * US, 280 * US)
    assert gap_before(locked).label == "lock: pthread_mutex_lock"
    lazy = held_up(tmp_path, (120 * US, 295 * US)).cuda_overhead("", 125 * US, 280 * US, 7)
    assert gap_before(lazy).cause == "module load or JIT"


def test_a_plain_launch_is_latency_however_idle_the_gpu_is(tmp_path: Path) -> None:
    row = gap_before(held_up(tmp_path, (120 * US, 130 * US)))
    assert row.shares["launch latency"] == 180 * US


def test_a_copy_that_stages_its_data_is_no_launch_latency(tmp_path: Path) -> None:
    synth = (
        Synth(tmp_path / "r.sqlite")
        .process(10)
        .launch("first", call=(0, 10 * US), gpu=(20 * US, 100 * US))
        .api("cudaMemcpy_v3020", 120 * US, 320 * US, corr=9)
        .memcpy(300 * US, 310 * US, corr=9, src="pageable")
    )
    row = gap_before(synth)
    assert row.shares == {
        "blocking or pageable copy": 180 * US,
        "nothing recorded": 20 * US,
    }


def test_a_process_that_is_left_out_had_the_gpu_meanwhile(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0)
    for pid in (10, 20):
        synth.process(pid).cuda_device(pid, 0, 0)
    synth.process(10).launch("first", call=(0, 5 * US), gpu=(10 * US, 50 * US))
    synth.launch("held up", call=(20 * US, 25 * US), gpu=(150 * US, 200 * US))
    synth.launch("in order", call=(30 * US, 35 * US), gpu=(300 * US, 400 * US))
    synth.process(20).launch("greedy", call=(40 * US, 45 * US), gpu=(60 * US, 145 * US))
    synth.kernel("short", 210 * US, 250 * US)
    report = open_report(synth.write(), use_cache=False)
    gaps = stalls(report, Scope(processes=frozenset((10,)))).gaps
    inner = gaps.take(gaps.edge == Edge.INNER)
    found = {
        int(start): Cause(cause) for start, cause in zip(inner.start, inner.cause, strict=True)
    }
    assert found == {50 * US: Cause.PROCESS, 200 * US: Cause.STREAM}


def test_a_wait_and_the_launch_after_it_have_no_more_than_the_window(synth: Synth) -> None:
    synth.api("cudaDeviceSynchronize", 15 * US, 280 * US)
    report = open_report(synth.write())
    for window, shown in ((None, 190 * US), ((150 * US, 155 * US), 5 * US)):
        shares = shares_of(stalls(report, Scope(window)).gaps)
        assert shares[Cause.SYNC].max() == shown
