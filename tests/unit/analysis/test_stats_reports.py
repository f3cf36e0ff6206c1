"""Statistical reports on small synthetic captures whose figures can be counted by hand."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from synth import Synth, global_tid

from nsys_tui.analysis.stats.query import REPORTS, Query, find_instance
from nsys_tui.analysis.stats.reports import (
    DEFAULT,
    by_device,
    by_rank,
    compute,
    compute_parts,
    find,
    parse,
    run_report,
)
from nsys_tui.analysis.window import Scope
from nsys_tui.errors import NoDataError, UsageError
from nsys_tui.model.table import plain
from nsys_tui.model.target import pid_of
from nsys_tui.reader import open_report
from nsys_tui.text.tables import render

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.model.report import Report
    from nsys_tui.model.table import Table


def opened(capture: Synth) -> Report:
    return open_report(capture.write(), use_cache=False)


def rows(table: Table, *headers: str) -> list[tuple[Any, ...]]:
    columns = [[None if v != v else v for v in plain(table[h])] for h in headers]
    return list(zip(*columns, strict=True))


@pytest.fixture
def two_processes(tmp_path: Path) -> Report:
    """Two ranks whose correlation ids are the same, one GPU each."""
    capture = Synth(tmp_path / "r.sqlite").gpu(0).gpu(1)
    for pid, gpu, length in ((100, 0, 10), (200, 1, 30)):
        capture.process(pid, f"rank{gpu}").cuda_device(pid, 0, gpu).mpi_rank(gpu)
        capture.nvtx("step", 0, 100).nvtx("fwd", 5, 60)
        capture.launch("gemm<int>(float*)", (10, 20), (30, 30 + length), corr=7)
        capture.launch("relu(float*)", (40, 50), (70, 75), corr=8)
        capture.launch("late()", (70, 110), (120, 130), corr=9)
        capture.memcpy(80, 90, bytes=1000, corr=10).api("cudaMemcpy_v3020", 75, 92, corr=10)
    return opened(capture)


def test_names_of_kernels(two_processes: Report) -> None:
    names = {
        argument: set(run_report(two_processes, f"cuda_gpu_kern_sum{argument}")["Name"])
        for argument in ("", ":base", ":mangled", ":nvtx-name", ":nvtx-name:base")
    }
    assert names[""] == {"gemm<int>(float*)", "relu(float*)", "late()"}
    assert names[":base"] == {"gemm", "relu", "late"}
    assert names[":mangled"] == {"_Z4gemmv", "_Z4reluv", "_Z4latev"}
    # The call of late() ends after its range: no range encloses it.
    assert names[":nvtx-name"] == {"fwd/gemm<int>(float*)", "fwd/relu(float*)", "late()"}
    assert names[":nvtx-name:base"] == {"fwd/gemm", "fwd/relu", "late"}


def test_columns_stand_in_the_order_of_nsys(two_processes: Report) -> None:
    table = run_report(two_processes, "cuda_gpu_kern_sum")
    assert [column.header for column in table.columns] == [
        "Time", "Total Time", "Instances", "Avg", "Med", "Min", "Max", "StdDev", "Name",
    ]  # fmt: skip


def test_a_call_joins_the_kernel_of_its_own_process_only(two_processes: Report) -> None:
    table = run_report(two_processes, "cuda_kern_exec_sum:base")
    found = rows(table, "PID", "Kernel Name", "Count", "QCount", "TAvg", "QAvg", "KAvg")
    assert (100, "gemm", 1, 1, 30.0, 10.0, 10.0) in found
    assert (200, "gemm", 1, 1, 50.0, 10.0, 30.0) in found
    assert len(found) == 6


def test_queue_time_counts_only_where_the_kernel_started_after_the_call(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite")
    capture.launch("k()", (0, 50), (40, 60)).launch("k()", (100, 110), (130, 140))
    table = run_report(opened(capture), "cuda_kern_exec_sum")
    assert rows(table, "Count", "QCount", "QMin", "QMax", "TMin", "TMax") == [
        (2, 1, 20, 20, 40, 60)
    ]


def test_kernels_by_grid_and_block(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite")
    capture.kernel("k()", 0, 5, grid=(2, 1, 1)).kernel("k()", 5, 9, grid=(4, 1, 1))
    capture.kernel("k()", 10, 15, grid=(2, 1, 1))
    table = run_report(opened(capture), "cuda_gpu_kern_gb_sum")
    assert rows(table, "Total Time", "Instances", "GridXYZ", "Name") == [
        (10, 2, "   2    1    1", "k()"),
        (4, 1, "   4    1    1", "k()"),
    ]


def test_api_names_with_old_suffixes_merge_only_on_demand(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite").api("cudaGraphLaunch_v10000", 0, 5)
    capture.api("cudaMalloc_v3020", 5, 8).api("cudaMalloc", 4, 9, event_class=67, frames=["main"])
    report = opened(capture)
    assert rows(run_report(report, "cuda_api_sum"), "Total Time", "Num Calls", "Name") == [
        (5, 1, "cudaGraphLaunch_v10000"),
        (5, 1, "cudaMalloc"),
        (3, 1, "cudaMalloc"),
    ]
    merged = run_report(report, "cuda_api_sum:merged")
    assert rows(merged, "Total Time", "Num Calls", "Name") == [
        (5, 1, "cudaGraphLaunch"),
        (3, 1, "cudaMalloc"),
    ]


def test_busy_share_is_a_union_and_graph_launches_are_work(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite")
    capture.kernel("k()", 0, 60, stream=7).kernel("k()", 20, 80, stream=8).graph(90, 100)
    report = opened(capture)
    busy = run_report(report, "cuda_gpu_kern_sum:busy")
    assert rows(busy, "Total Time", "Busy Time", "Busy") == [(120, 80, 80.0)]
    assert "1 CUDA graph launches" in busy.notes[0]
    work = run_report(report, "gpu_work_sum")
    assert rows(work, "Category", "Total Time", "Busy Time") == [
        ("CUDA_KERNEL", 120, 80),
        ("CUDA_GRAPH", 10, 10),
    ]


def test_a_graph_launch_whose_nodes_were_traced_is_not_counted_twice(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite").graph(0, 50, corr=3)
    capture.kernel("node()", 0, 20, corr=3, graphNodeId=11)
    work = run_report(opened(capture), "gpu_work_sum")
    assert rows(work, "Total Time", "Operation") == [(20, "node()")]


def test_ranges_by_domain_and_style(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite").domain(3, "NCCL").nvtx("step", 0, 10)
    capture.nvtx("step", 20, 25, domain=3, registered=True).nvtx("io", 0, 100, type=60)
    capture.nvtx("open", 50)
    report = opened(capture)
    assert rows(run_report(report, "nvtx_sum"), "Total Time", "Style", "Range") == [
        (100, "StartEnd", "io"),
        (10, "PushPop", "step"),
        (5, "PushPop", "NCCL:step"),
    ]
    assert run_report(report, "nvtx_sum").notes == ("1 ranges were never closed and are left out",)
    assert list(run_report(report, "nvtx_startend_sum")["Range"]) == ["io"]


def test_nesting_of_the_push_pop_trace(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite").nvtx("a", 0, 100).nvtx("b", 10, 40).nvtx("c", 20, 30)
    capture.nvtx("d", 50, 60).nvtx("cross", 55, 120).nvtx("other", 0, 10, tid=9)
    table = run_report(opened(capture), "nvtx_pushpop_trace")
    found = {row[0]: row[1:] for row in rows(
        table, "Name", "DurChild", "DurNonChild", "Lvl", "NumChild", "RangeStack", "NameTree"
    )}  # fmt: skip
    assert found["a"] == (40, 60, 0, 2, ":1", "a")
    assert found["b"] == (10, 20, 1, 1, ":1:2", "--b")
    assert found["c"] == (0, 10, 2, 0, ":1:2:3", "----c")
    assert found["cross"][2] == 0
    assert found["other"][4] == ":6"


def test_a_kernel_in_two_ranges_of_a_name_is_one_instance(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite").nvtx("f", 0, 100).nvtx("f", 1, 50)
    capture.launch("k()", (10, 20), (30, 40)).launch("k()", (60, 70), (80, 95))
    table = run_report(opened(capture), "nvtx_kern_sum")
    found = rows(table, "NVTX Inst", "Kern Inst", "Total Time", "Avg")
    assert found == [(2, 2, 10 + 10 + 15, pytest.approx(35 / 3))]


def test_ranges_of_one_start_stand_by_end_and_their_work_as_in_the_file(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite").nvtx("outer", 0, 100).nvtx("inner", 0, 50)
    report = opened(capture.launch("k()", (10, 20), (30, 40)))
    for name, listed in (
        ("nvtx_pushpop_trace", ["inner", "outer"]),
        ("nvtx_gpu_proj_trace", ["outer", "inner"]),
    ):
        assert [row[0] for row in rows(run_report(report, name), "Name")] == listed


def test_work_of_one_start_stands_kernels_first(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite").memset(10, 20).memcpy(10, 15).kernel("k", 10, 30)
    table = run_report(opened(capture), "cuda_gpu_trace")
    assert [row[0] for row in rows(table, "Duration")] == [20, 5, 10]


def test_launches_by_two_versions_of_a_call_are_of_one_call(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite")
    for start, version in ((0, 3020), (100, 7000)):
        capture.launch(
            "k", (start, start + 5), (start + 10, start + 20), api=f"cudaLaunch_v{version}"
        )
    assert rows(run_report(opened(capture), "cuda_kern_exec_sum"), "Count", "API Name") == [
        (2, "cudaLaunch")
    ]


def test_projection_of_ranges_onto_the_gpu(two_processes: Report) -> None:
    table = run_report(two_processes, "nvtx_gpu_proj_trace")
    found = rows(table, "PID", "Name", "Projected Start", "Projected Duration", "NumGPUOps", "Lvl")
    assert sorted(found) == [
        (100, "fwd", 30, 45, 2, 1),
        (100, "step", 30, 60, 3, 0),
        (200, "fwd", 30, 45, 2, 1),
        (200, "step", 30, 60, 3, 0),
    ]
    sums = run_report(two_processes, "nvtx_gpu_proj_sum")
    assert rows(sums, "Range", "Total Proj Time", "Range Instances", "Total GPU Ops") == [
        ("step", 120, 2, 6),
        ("fwd", 90, 2, 4),
    ]


def test_projection_with_work_sees_graphs_threads_and_busy_time(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite").nvtx("phase", 0, 100, type=60, end_tid=9)
    capture.api("cudaGraphLaunch_v10000", 10, 20, tid=5, corr=1).graph(30, 50, corr=1)
    capture.launch("k()", (30, 35), (80, 90), tid=6)
    report = opened(capture)
    with pytest.raises(NoDataError):
        run_report(report, "nvtx_gpu_proj_trace")
    table = run_report(report, "nvtx_gpu_proj_trace:work")
    assert rows(table, "Name", "Projected Duration", "GPU Busy", "NumGPUOps") == [
        ("phase", 60, 30, 2)
    ]


def test_a_kernel_counts_in_every_enclosing_range(two_processes: Report) -> None:
    table = run_report(two_processes, "nvtx_kern_sum:base")
    found = rows(table, "NVTX Range", "PID", "NVTX Inst", "Kern Inst", "Total Time", "Kernel Name")
    assert found == [
        (None, 100, 0, 1, 10, "late"), (None, 200, 0, 1, 10, "late"),
        ("fwd", 100, 1, 1, 10, "gemm"), ("fwd", 100, 1, 1, 5, "relu"),
        ("fwd", 200, 1, 1, 30, "gemm"), ("fwd", 200, 1, 1, 5, "relu"),
        ("step", 100, 1, 1, 10, "gemm"), ("step", 100, 1, 1, 5, "relu"),
        ("step", 200, 1, 1, 30, "gemm"), ("step", 200, 1, 1, 5, "relu"),
    ]  # fmt: skip


def test_a_window_keeps_whole_rows_and_clipping_cuts_them(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite")
    capture.kernel("k()", 0, 40).kernel("k()", 50, 70).kernel("k()", 90, 120).kernel(
        "k()", 200, 300
    )
    report = opened(capture)
    whole = Query(report, Scope(window=(30, 100)))
    assert rows(run_report(report, "cuda_gpu_kern_sum", whole), "Total Time", "Instances") == [
        (90, 3)
    ]
    clipped = run_report(
        report, "cuda_gpu_kern_sum", Query(report, Scope(window=(30, 100)), clip=True)
    )
    assert rows(clipped, "Total Time", "Instances", "Avg", "Min", "Max", "Straddling") == [
        (40, 2, 25.0, 20, 30, 1)
    ]


def test_what_cannot_be_cut_counts_where_it_starts(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite").nvtx("all", 0, 200)
    for start in (0, 50, 150):
        capture.memcpy(start, start + 30, bytes=100, corr=start + 1)
        capture.launch("k()", (start, start + 1), (start + 5, start + 40))
    capture.mpi("MPI_Send", 0, 60, "p2p", size=8).mpi("MPI_Send", 60, 70, "p2p", size=8)
    report = opened(capture)
    for clip, expected in ((False, 2), (True, 1)):
        query = Query(report, Scope(window=(20, 100)), clip=clip)
        counted = {
            "cuda_gpu_mem_size_sum": "Count",
            "cuda_kern_exec_sum": "Count",
            "nvtx_kern_sum": "Kern Inst",
            "mpi_msg_size_sum": "Instances",
        }
        for name, header in counted.items():
            assert list(run_report(report, name, query)[header]) == [expected], name


def test_a_row_that_only_straddles_has_time_but_no_statistics(tmp_path: Path) -> None:
    report = opened(Synth(tmp_path / "r.sqlite").kernel("k()", 0, 100))
    query = Query(report, Scope(window=(10, 20)), clip=True)
    table = run_report(report, "cuda_gpu_kern_sum", query)
    (row,) = rows(table, "Total Time", "Instances", "Straddling", "Min")
    assert row[:3] == (10, 0, 1)
    assert row[3] is None


def test_times_beyond_float_precision_are_whole_beside_unknown_ones(tmp_path: Path) -> None:
    long = 2**53 + 1
    capture = Synth(tmp_path / "r.sqlite").kernel("only_reaches_in()", 0, 100)
    report = opened(capture.launch("long()", (20, 21), (40, 40 + long)))
    query = Query(report, Scope(window=(10, 50)), clip=True)
    table = run_report(report, "cuda_gpu_kern_sum", query)
    figures = dict(rows(table, "Name", "Min"))
    assert figures == {"only_reaches_in()": None, "long()": long}
    assert [row["Min (ns)"] for row in json.loads(render(table, "json"))].count(long) == 1
    assert f",{long},{long}," in render(table, "csv")
    late = Synth(tmp_path / "late.sqlite").launch("k()", (0, long), (long + 2, long + 9))
    late.launch("overlaps()", (5, 30), (20, 40), corr=9)
    found = rows(run_report(opened(late), "cuda_kern_exec_trace"), "Queue Start", "Queue Dur")
    assert sorted(found, key=str) == sorted([(long, 2), (None, None)], key=str)


def test_an_nvtx_filter_names_an_instance_and_its_thread(two_processes: Report) -> None:
    first = find_instance(two_processes, "fwd")
    second = find_instance(two_processes, "fwd/1")
    assert first.window == second.window == (5, 60)
    assert first.thread != second.thread
    query = Query(two_processes, Scope(window=first.window), thread=first.thread)
    table = run_report(two_processes, "cuda_gpu_kern_sum:base", query)
    assert set(table["Instances"]) == {1}
    for wrong in ("nothing", "fwd/2", "fwd@NCCL"):
        with pytest.raises(UsageError):
            find_instance(two_processes, wrong)


def test_each_device_and_each_rank_on_its_own(two_processes: Report) -> None:
    query = Query(two_processes)
    wanted = parse("cuda_gpu_kern_sum:base")
    devices = compute_parts(wanted, by_device(query), "Device")
    assert all(isinstance(n, int) for n in [*devices["Instances"], *devices["Total Time"]])
    assert rows(devices, "Device", "Total Time", "Name")[0] == ("GPU 0", 10, "gemm")
    assert ("GPU 1", 30, "gemm") in rows(devices, "Device", "Total Time", "Name")
    ranks = compute_parts(parse("cuda_api_sum"), by_rank(query), "Rank")
    assert set(ranks["Rank"]) == {"0", "1"}


def test_ranks_without_mpi_are_called_by_their_pid(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite").process(11).kernel("k()", 0, 1)
    report = opened(capture.process(12).kernel("k()", 0, 2))
    table = compute_parts(parse("cuda_gpu_kern_sum"), by_rank(Query(report)), "Rank")
    assert rows(table, "Rank", "Total Time") == [("pid 11", 1), ("pid 12", 2)]


def test_mpi_reports(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite").process(5).mpi_rank(3)
    capture.mpi("MPI_Allreduce", 0, 10, size=64, recvSize=32)
    capture.mpi("MPI_Send", 20, 25, "p2p", size=8, tag=4, remoteRank=1)
    capture.mpi("MPI_Wait", 30, 31, "wait")
    report = opened(capture)
    assert rows(run_report(report, "mpi_event_sum"), "Total Time", "Source", "Name") == [
        (10, "collectives", "MPI_Allreduce"), (5, "p2p", "MPI_Send"), (1, "start_wait", "MPI_Wait"),
    ]  # fmt: skip
    trace = run_report(report, "mpi_event_trace")
    assert rows(trace, "Event", "Rank", "PeerRank", "Size", "CollSendSize", "CollRecvSize") == [
        ("MPI_Allreduce", 3, None, None, 64, 32),
        ("MPI_Send", 3, 1, 8, None, None),
        ("MPI_Wait", 3, None, None, None, None),
    ]
    sizes = run_report(report, "mpi_msg_size_sum")
    assert rows(sizes, "Total Message Volume", "Source", "Name") == [
        (64, "coll_send", "MPI_Allreduce"),
        (32, "coll_recv", "MPI_Allreduce"),
        (8, "p2p", "MPI_Send"),
    ]


def test_unified_memory_reports(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite")
    for place, size in ((0x1000, 4096), (0x2000, 65536), (0x1000, 4096)):
        capture.memcpy(0, 1000, kind="UVM HtoD", bytes=size, virtualAddress=place)
    capture.memcpy(0, 500, kind="UVM DtoH", bytes=100, virtualAddress=0x1000)
    capture.page_faults(gpu=0x2000, cpu=0x3000)
    report = opened(capture)
    table = run_report(report, "um_sum")
    assert rows(table, "Virtual Address", "HtoD Migration Size", "DtoH Migration Size",
                "CPU Page Faults", "GPU Page Faults") == [
        ("0x2000", 65536, None, None, 7), ("0x1000", 8192, 100, None, None),
        ("0x3000", None, None, 1, None),
    ]  # fmt: skip
    assert len(run_report(report, "um_sum:rows=1")) == 1
    totals = run_report(report, "um_total_sum")
    assert totals.rows() == [(73728, 100, 1, 7, "0x1000", "0x3000")]
    faults = run_report(report, "um_cpu_page_faults_sum")
    assert faults.rows() == [(1, "main+0x10")]
    with pytest.raises(UsageError):
        run_report(report, "um_sum:rows=many")


MARKED = ["start INTEGER", "end INTEGER", "eventClass INTEGER", "globalTid INTEGER"]


def test_rarely_used_tables(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite")
    name, marker = capture.string("Barrier"), capture.string("started")
    thread = capture.gtid()
    capture.raw(
        "OPENMP_EVENT_KIND_SYNC_REGION", [*MARKED, "nameId INTEGER"],
        [(0, 10, 78, thread, name), (20, 26, 78, thread, name), (0, 0, 79, thread, marker)],
    )  # fmt: skip
    capture.raw("VULKAN_DEBUG_API", [*MARKED, "textId INTEGER"], [(0, 7, 53, thread, name)])
    capture.raw(
        "KHR_DEBUG_EVENTS", [*MARKED, "textId INTEGER"],
        [(0, 7, 4, thread, name), (5, 9, 5, thread, name), (5, None, 4, thread, name)],
    )  # fmt: skip
    capture.raw("NVVIDEO_DECODER_API", [*MARKED, "nameId INTEGER"], [(0, 3, 86, thread, name)])
    capture.raw("SYSCALL", [*MARKED, "nameId INTEGER"], [(0, 11, 107, thread, name)])
    report = opened(capture)
    figures = ("Total Time", "Count", "Name")
    assert rows(run_report(report, "openmp_sum"), *figures) == [(16, 2, "Barrier")]
    assert list(run_report(report, "vulkan_marker_sum")["Range"]) == ["Barrier"]
    assert list(run_report(report, "opengl_khr_range_sum")["Total Time"]) == [7]
    assert list(run_report(report, "opengl_khr_gpu_range_sum")["Total Time"]) == [4]
    assert rows(run_report(report, "nvvideo_api_sum"), "Event Type", "Name") == [
        ("Decoder", "Barrier")
    ]
    assert rows(run_report(report, "syscall_sum"), "Total Time", "Num Calls") == [(11, 1)]


def test_display_driver_queues(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite")
    thread, other = capture.gtid(), global_tid(7, 7)
    packet = ["start INTEGER", "end INTEGER", "globalTid INTEGER", "gpu INTEGER"]
    begun = [*packet, "context INTEGER", "submitSequence INTEGER", "engineType INTEGER"]
    capture.raw(
        "WDDM_QUEUE_PACKET_START_EVENTS", begun,
        [(0, 0, thread, 0, 5, 1, 1), (10, 10, thread, 0, 5, 2, 1), (60, 60, thread, 0, 6, 1, 0),
         (90, 90, other, 0, 8, 1, 6), (95, 95, thread, 0, 5, 9, 1)],
    )  # fmt: skip
    capture.raw(
        "WDDM_QUEUE_PACKET_STOP_EVENTS", begun,
        [(20, 20, thread, 0, 5, 1, 1), (30, 30, thread, 0, 5, 2, 1), (80, 80, thread, 0, 6, 1, 0),
         (95, 95, other, 0, 8, 1, 6)],
    )  # fmt: skip
    ids = [*packet, "context INTEGER", "engineType INTEGER"]
    capture.raw(
        "WDDM_DMA_PACKET_START_EVENTS", [*ids, "uliSubmissionId INTEGER"],
        [(70, 70, thread, 0, 6, 0, 44)],
    )  # fmt: skip
    capture.raw(
        "WDDM_DMA_PACKET_STOP_EVENTS", [*ids, "uliCompletionId INTEGER"],
        [(5, 5, thread, 0, 6, 0, 44), (100, 100, thread, 0, 6, 0, 44)],
    )  # fmt: skip
    capture.raw(
        "TARGET_INFO_WDDM_CONTEXTS",
        ["context INTEGER", "engineType INTEGER", "nodeOrdinal INTEGER", "friendlyName TEXT"],
        [(6, 0, 3, "Compute_0")],
    )
    hardware = ["context INTEGER", "hwQueue INTEGER", "parentDxgHwQueue INTEGER"]
    capture.raw("WDDM_HW_QUEUE_EVENTS", hardware, [(9, queue, 5) for queue in (1, 2, 3)])
    table = run_report(opened(capture), "wddmqueuesdetails")
    assert [column.header for column in table.columns] == [
        "Utilization", "Instances", "Avg", "Med", "Min", "Max", "StdDev", "Name", "Q Type",
        "Q Name", "PID", "GPU ID", "Context", "Engine", "Node Ord",
    ]  # fmt: skip
    pid = pid_of(thread)
    assert rows(table, "Utilization", "Instances", "Min", "Max", "Name", "Q Name", "PID") == [
        (100.0, 1, 5, 5, "Copy", "queue", 7),
        (30.0, 2, 20, 20, "3D/Comp", "queue", pid),
        (30.0, 1, 30, 30, "Compute_0", "dma", pid),
        (20.0, 1, 20, 20, "Compute_0", "queue", pid),
    ]
    assert rows(table, "Context", "Engine", "Node Ord")[1:3] == [("0x5", 1, 0), ("0x6", 0, 3)]
    clipped = Query(opened(capture), Scope(window=(15, 75)), clip=True)
    assert rows(run_report(clipped.report, "wddm_queue_sum", clipped), "Utilization", "Name") == [
        (25.0, "3D/Comp"),
        (25.0, "Compute_0"),
        (pytest.approx(100 / 12), "Compute_0"),
    ]


def test_network_congestion(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite")
    metric = {"metricsListId": 1, "description": "", "unit": ""}
    capture.add("TARGET_INFO_NETWORK_METRICS", metricsIdx=0, name="IB: Send waits", **metric)
    capture.add("TARGET_INFO_NETWORK_METRICS", metricsIdx=1, name="IB: Bytes sent", **metric)
    for start, index, value in ((0, 0, 5_000), (1_000_000, 0, 20_000), (2_000_000, 1, 10**9)):
        capture.add(
            "NET_NIC_METRIC", start=start, end=start + 1_000_000, globalId=4, portId=1,
            metricsListId=1, metricsIdx=index, value=value,
        )  # fmt: skip
    report = opened(capture)
    table = run_report(report, "network_congestion")
    assert rows(table, "Start", "Send wait rate (ticks/ms)") == [(1_000_000, 20_000.0)]
    assert len(run_report(report, "network_congestion:ticks_threshold=1000")) == 2


def test_gpu_trace_shows_shape_bytes_and_memory(tmp_path: Path) -> None:
    capture = Synth(tmp_path / "r.sqlite").gpu(0, "A100").kernel("k()", 100, 200, grid=(3, 2, 1))
    capture.memcpy(0, 10, bytes=5000, src="pageable").memset(20, 20, bytes=64)
    table = run_report(opened(capture), "cuda_gpu_trace")
    found = rows(table, "Name", "GrdX", "Bytes", "Throughput", "SrcMemKd", "DstMemKd", "Device")
    assert found[0] == (
        "[CUDA memcpy Host-to-Device]", None, 5000, 5e11, "Pageable", "Device", "A100 (0)"
    )  # fmt: skip
    assert found[1][3] is None
    assert found[2][:3] == ("k()", 3, None)


def test_every_report_explains_itself_and_every_old_name_finds_one() -> None:
    assert set(DEFAULT) <= set(REPORTS)
    for report in REPORTS.values():
        assert report.help
        assert all(find(old) is report for old in report.old_names)
    assert find("gpukernsum").name == "cuda_gpu_kern_sum"


@pytest.mark.parametrize("text", ["cuda_gpu_sums", "cuda_api_sum:base", "um_sum:rows", ""])
def test_unknown_reports_and_arguments_are_usage_errors(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text)


def test_a_missing_kind_of_data_says_what_records_it(tmp_path: Path) -> None:
    report = opened(Synth(tmp_path / "r.sqlite").kernel("k()", 0, 1))
    with pytest.raises(NoDataError, match=r"OS Runtime") as missing:
        run_report(report, "osrt_sum")
    assert "--trace=osrt" in missing.value.hint
    with pytest.raises(NoDataError, match="asked for"):
        compute(parse("cuda_gpu_kern_sum"), Query(report, Scope(window=(5, 9))))


@pytest.mark.parametrize("called", [True, False])
def test_calls_that_a_list_of_calls_and_work_lacks_are_told(tmp_path: Path, called: bool) -> None:
    synth = Synth(tmp_path / "r.sqlite").kernel("k()", 0, 1)
    table = run_report(opened(synth.api("cudaFree", 0, 1) if called else synth), "cuda_api_gpu_sum")
    assert any("no CUDA API calls" in note for note in table.notes) != called


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_no_report_fails_on_an_empty_or_odd_file(tmp_path: Path, name: str) -> None:
    odd = Synth(tmp_path / "odd.sqlite").kernel("a;b\n\x1b[31m\"'", 5, 5).nvtx("", 3, 3)
    odd.memcpy(0, 0, bytes=0, corr=0).osrt("read", 7, 7).api("cudaFree_v3020", 9, 9)
    empty = Synth(tmp_path / "empty.sqlite").thread(1, "main")
    for capture in (odd, empty):
        report = opened(capture)
        with contextlib.suppress(NoDataError):
            assert len(run_report(report, name))
