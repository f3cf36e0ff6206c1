from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from paths import REPORTS, needs_reports
from synth import Synth

from nsys_tui.analysis.diagnostics import messages
from nsys_tui.analysis.rules.case import AND_OTHERS, Case
from nsys_tui.analysis.rules.ranking import RULES
from nsys_tui.analysis.rules.register import parse_rule
from nsys_tui.errors import UsageError
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.analysis.rules.register import Outcome
    from nsys_tui.analysis.window import Scope

US, MS = 1_000, 1_000_000
NSYS = {
    "cuda_memcpy_async": "Duration Start SrcKind DstKind Bytes PID DeviceID ContextID "
    "GreenContextID StreamID APIName",
    "cuda_memcpy_sync": "Duration Start SrcKind DstKind Bytes PID DeviceID ContextID "
    "GreenContextID StreamID APIName",
    "cuda_memset_sync": "Duration Start MemoryKind Bytes PID DeviceID ContextID GreenContextID "
    "StreamID APIName",
    "cuda_api_sync": "Duration Start PID TID APIName",
    "gpu_gaps": "Row# Duration Start PID DeviceID ContextID",
    "gpu_time_util": "Row# In-Use Duration Start PID DeviceID ContextID",
    "dx12_mem_ops": "Duration Start TID DeviceID WarningType",
}


def run(synth: Synth, rule: str, scope: Scope | None = None) -> Outcome:
    """Runs ``name:parameter=value`` on a report."""
    name, values = parse_rule(rule)
    return RULES[name].run(Case(open_report(synth.write()), scope), values)


def rows(outcome: Outcome, *headers: str) -> list[tuple[Any, ...]]:
    """Some columns of the rule's table."""
    table = outcome.table
    places = [[column.header for column in table.columns].index(header) for header in headers]
    return [tuple(row[place] for place in places) for row in table.rows()]


@pytest.fixture
def synth(tmp_path: Path) -> Synth:
    return Synth(tmp_path / "r.sqlite").process(10, "train")


def test_the_seven_rules_have_the_columns_of_nsys(synth: Synth) -> None:
    synth.kernel("k", 0, 9)
    for name, columns in NSYS.items():
        outcome = run(synth, name)
        headers = [column.header.replace(" ", "") for column in outcome.table.columns]
        assert headers == columns.split(), name
        assert outcome.advice == RULES[name].nothing
        assert RULES[name].of_nsys


def test_launches_that_wait_are_told_only_where_there_are_some(synth: Synth) -> None:
    synth.kernel("k", 0, 900 * US)
    assert rows(run(synth, "blocking_launches"), "Kernel") == []


def test_of_tiny_kernels_launched_as_often_the_longer_is_named(synth: Synth) -> None:
    for number in range(2000):
        call = number * 20 * US
        took = (2 + number % 2) * US
        synth.launch(
            "ab"[number % 2], (call, call + 9 * US), (call + 10 * US, call + 10 * US + took)
        )
    synth.launch("long", (41 * MS, 41 * MS + 9 * US), (42 * MS, 43 * MS))
    outcome = run(synth, "tiny_kernels")
    assert rows(outcome, "Launches", "Kernel") == [(1000, "b"), (1000, "a")]
    assert "led by b (1,000)" in outcome.findings[0].title


def copy(synth: Synth, api: str, **options: Any) -> Synth:
    corr = len(synth.rows.get("CUPTI_ACTIVITY_KIND_MEMCPY", [])) + 1
    start = corr * MS
    synth.api(api, start, start + 500 * US, corr=corr)
    return synth.memcpy(start + US, start + 400 * US, corr=corr, **options)


def test_asynchronous_copies_of_pageable_memory(synth: Synth) -> None:
    copy(synth, "cudaMemcpyAsync_v3020", src="pageable", bytes=100)
    copy(synth, "cudaMemcpyAsync_v3020", kind="DtoH", dst="pageable", bytes=9_000)
    copy(synth, "cudaMemcpyAsync_v3020", bytes=1)
    copy(synth, "cudaMemcpy_v3020", src="pageable", bytes=2)
    copy(synth, "cuMemcpyHtoDAsync_v2", src="pageable", bytes=300)
    everything = run(synth, "cuda_memcpy_async")
    assert sorted(rows(everything, "Bytes", "Src Kind", "API Name")) == [
        (100, "Pageable", "cudaMemcpyAsync"),
        (300, "Pageable", "cuMemcpyHtoDAsync_v2"),
        (9_000, "Device", "cudaMemcpyAsync"),
    ]
    assert len(run(synth, "cuda_memcpy_async:compat=1").table) == 2
    assert len(run(synth, "cuda_memcpy_async:min_bytes=1000").table) == 1
    (finding,) = everything.findings
    assert finding.saved_ns == 101 * US, "idle in the call; the driver takes small uploads along"
    assert "1x async copy of pageable memory, 9.00 kB" in finding.title


def test_synchronous_copies_leave_out_what_does_not_block(synth: Synth) -> None:
    for size in (64_000, 64_001, 65_536, 65_537):
        copy(synth, "cudaMemcpy_v3020", kind="HtoD", src="pageable", bytes=size)
    copy(synth, "cudaMemcpy_v3020", kind="DtoD", bytes=10)
    copy(synth, "cudaMemcpy_v3020", kind="DtoH", dst="pageable", bytes=4)
    copy(synth, "cudaMemcpyAsync_v3020", bytes=7)
    found = {
        rule: sorted(size for (size,) in rows(run(synth, rule), "Bytes"))
        for rule in (
            "cuda_memcpy_sync",
            "cuda_memcpy_sync:compat=1",
            "cuda_memcpy_sync:device_to_device=1",
            "cuda_memcpy_sync:small=0",
        )
    }
    assert found == {
        "cuda_memcpy_sync": [4, 65_537],
        "cuda_memcpy_sync:compat=1": [4, 10, 64_001, 65_536, 65_537],
        "cuda_memcpy_sync:device_to_device=1": [4, 10, 65_537],
        "cuda_memcpy_sync:small=0": [4, 64_000, 64_001, 65_536, 65_537],
    }


def test_memsets_of_pinned_or_managed_memory(synth: Synth) -> None:
    for corr, (api, kind) in enumerate(
        (
            ("cudaMemset_v3020", 1),
            ("cudaMemset_v3020", 2),
            ("cudaMemset_v3020", 4),
            ("cudaMemsetAsync_v3020", 1),
        ),
        start=1,
    ):
        synth.api(api, corr * MS, corr * MS + US, corr=corr)
        synth.memset(corr * MS, corr * MS + US, corr=corr, memKind=kind, bytes=corr)
    found = rows(run(synth, "cuda_memset_sync"), "Bytes", "Memory Kind", "PID", "Device ID")
    assert found == [(1, "Pinned", 10, 0), (3, "Managed", 10, 0)]


def test_synchronisation_beyond_the_two_calls_nsys_knows(synth: Synth) -> None:
    for place, name in enumerate(
        (
            "cudaDeviceSynchronize_v3020",
            "cudaStreamSynchronize_v3020",
            "cudaEventSynchronize_v3020",
            "cuCtxSynchronize",
            "cudaMalloc_v3020",
        )
    ):
        synth.api(name, place * US, place * US + 100 - place, tid=7 if place else None)
    assert [name for (name,) in rows(run(synth, "cuda_api_sync"), "API Name")] == [
        "cudaDeviceSynchronize",
        "cudaStreamSynchronize",
        "cudaEventSynchronize",
        "cuCtxSynchronize",
    ]
    assert len(run(synth, "cuda_api_sync:compat=1").table) == 2
    assert len(run(synth, "cuda_api_sync:thread=7").table) == 3
    assert len(run(synth, "cuda_api_sync:process=99").table) == 0


def test_driver_calls_push_no_row_of_nsys_out_of_the_table(synth: Synth) -> None:
    for number in range(6):
        start = 1_000 * US * number
        synth.api("cuEventSynchronize", start, start + 500 * US)
        synth.api("cudaStreamSynchronize_v3020", start + 600 * US, start + (601 + number) * US)
    found = [name for (name,) in rows(run(synth, "cuda_api_sync:rows=2"), "API Name")]
    assert found == ["cuEventSynchronize"] * 2 + ["cudaStreamSynchronize"] * 2
    assert run(synth, "cuda_api_sync:rows=2").table.notes == (
        "8 more rows: cuda_api_sync:rows=-1 shows all",
    )


def test_rows_start_end_and_nvtx_narrow_every_rule(synth: Synth) -> None:
    for place in range(5):
        synth.api("cudaDeviceSynchronize_v3020", place * MS, place * MS + US)
    synth.nvtx("phase", 1 * MS, 3 * MS).nvtx("phase", 4 * MS, 5 * MS)
    cut = run(synth, "cuda_api_sync:rows=2")
    assert len(cut.table) == 2
    assert any("3 more rows" in note for note in cut.table.notes)
    for rule, starts in {
        "cuda_api_sync:start=1ms:end=3ms": [1 * MS, 2 * MS],
        "cuda_api_sync:nvtx=phase": [1 * MS, 2 * MS],
        "cuda_api_sync:nvtx=phase/1": [4 * MS],
        "cuda_api_sync:nvtx=phase:end=2ms": [1 * MS],
    }.items():
        assert [start for (start,) in rows(run(synth, rule), "Start")] == starts, rule


def test_gaps_are_strictly_longer_and_graphs_are_work(synth: Synth) -> None:
    synth.kernel("a", 10 * MS, 20 * MS).kernel("b", 520 * MS, 530 * MS)
    synth.kernel("c", 1031 * MS, 1040 * MS)
    assert rows(run(synth, "gpu_gaps"), "Duration", "Start") == [(501 * MS, 530 * MS)]
    synth.graph(600 * MS, 1000 * MS)
    assert rows(run(synth, "gpu_gaps"), "Duration") == []
    assert rows(run(synth, "gpu_gaps:compat=1"), "Duration") == [(501 * MS,)]
    assert len(run(synth, "gpu_gaps:gap=20").table) == 3


def test_a_gap_has_the_context_that_worked_before_it(synth: Synth) -> None:
    for place, context in enumerate((3, 1, 2)):
        synth.kernel("k", place * 1_000 * MS + 1, place * 1_000 * MS + 2, context=context)
    assert rows(run(synth, "gpu_gaps"), "Context ID") == [(3,), (1,)]
    assert rows(run(synth, "gpu_time_util:chunks=1"), "Context ID") == [(2,)]


@pytest.mark.parametrize("library", ["OPENGL", "VULKAN", "DX12"])
def test_work_without_a_context_is_not_said_to_be_of_context_0(synth: Synth, library: str) -> None:
    for second, context in enumerate((None, 0, None)):
        synth.render(library, second * 1_000 * MS + 1, second * 1_000 * MS + 2, context=context)
    assert rows(run(synth, "gpu_gaps"), "Context ID") == [(None,), (0,)]
    assert rows(run(synth, "gpu_time_util:chunks=1"), "Context ID") == [(None,)]


def test_stretches_of_the_same_printed_use_stand_the_shorter_first(synth: Synth) -> None:
    for start, end in ((0, 100_000), (299_880, 400_000), (499_911, 600_000)):
        synth.kernel("k", start + 1, end + 1)
    low = run(synth, "gpu_time_util:chunks=6")
    assert rows(low, "In-Use", "Start") == [(0.089, 400_001), (0.06, 100_001)]


def test_rows_of_equal_time_stand_as_their_calls_do_in_the_file(synth: Synth) -> None:
    for thread, start in ((1, 5 * MS), (1, 7 * MS), (2, 4 * MS)):
        synth.api("cudaDeviceSynchronize_v3020", start, start + US, tid=thread)
    found = rows(run(synth, "cuda_api_sync"), "TID", "Start")
    assert found == [(1, 5 * MS), (1, 7 * MS), (2, 4 * MS)]


def test_nested_operations_make_no_false_gap(synth: Synth) -> None:
    synth.kernel("long", 1, 2_000 * MS).kernel("short", 10 * MS, 20 * MS, stream=8)
    synth.kernel("late", 1_900 * MS, 1_950 * MS, stream=8)
    assert len(run(synth, "gpu_gaps").table) == 0


def test_a_profiler_stall_of_the_same_process_is_no_gap(synth: Synth) -> None:
    synth.kernel("a", 10 * MS, 20 * MS).kernel("b", 900 * MS, 910 * MS)
    synth.overhead("CUDA profiling data flush overhead", 30 * MS, 800 * MS)
    assert len(run(synth, "gpu_gaps").table) == 0
    synth.process(99).overhead("CUDA profiling stop overhead", 30 * MS, 31 * MS)
    assert len(run(synth, "gpu_gaps").table) == 0


def test_utilisation_never_passes_a_hundred_percent(synth: Synth) -> None:
    """Ten chunks of 10 us: two kernels side by side, then idle, then one again."""
    synth.kernel("a", 1, 40 * US + 1).kernel("b", 1, 40 * US + 1, stream=8)
    synth.kernel("c", 95 * US + 1, 100 * US + 1)
    (low,) = rows(run(synth, "gpu_time_util:chunks=10"), "In-Use", "Duration", "Start")
    assert low == (0.0, 50 * US, 40 * US + 1)
    every = run(synth, "gpu_time_util:chunks=10:threshold=101")
    assert rows(every, "In-Use", "Duration") == [(45.0, 100 * US)]
    summed = run(synth, "gpu_time_util:chunks=10:threshold=201:compat=1")
    assert rows(summed, "In-Use") == [(85.0,)]


def test_directx_memory_operations(synth: Synth) -> None:
    synth.kernel("k", 0, 9).string("ID3D12Device::CreateHeap")
    strings = [synth.string(f"ID3D12{name}") for name in ("Device::CreateHeap", "Resource::Map")]
    synth.raw(
        "DX12_API",
        ("id", "start", "end", "globalTid", "nameId"),
        [(1, 0, 50, 7, strings[0]), (2, 60, 90, 7, strings[0]), (3, 95, 99, 7, strings[1])],
    )
    synth.raw(
        "DX12_MEMORY_OPERATION",
        ("gpu", "heapType", "heapFlags", "cpuPageProperty", "traceEventId"),
        [(0, 1, 0, 0, 1), (0, 1, 0x1000, 0, 2), (0, 1, 0, 0, 3)],
    )
    found = rows(run(synth, "dx12_mem_ops"), "Duration", "TID", "Warning Type")
    assert found == [(50, 7, "Heap or resource created with zeroing")]


def test_exposed_communication_and_imbalance(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for device, length in ((0, 100 * US), (1, 120 * US)):
        synth.kernel("gemm", 0, length, device=device)
        synth.kernel("ncclDevKernel_AllReduce", 90 * US, 150 * US, device=device, stream=9)
    exposed = run(synth, "exposed_communication")
    assert rows(exposed, "Communication", "Exposed", "Of Communication") == [
        (60 * US, 50 * US, pytest.approx(250 / 3)),
        (60 * US, 30 * US, 50.0),
    ]
    assert exposed.findings[0].window == (100 * US, 150 * US)
    uneven = run(synth, "gpu_imbalance")
    assert [gpu for (gpu,) in rows(uneven, "GPU")] == ["GPU 0", "GPU 1"]
    assert uneven.findings[0].saved_ns == 15 * US  # What runs beside the collective ends before it.
    assert run(synth, "gpu_imbalance:threshold=21").findings == []


@pytest.mark.parametrize(("pause", "saved"), [(0, 40), (40, 80)])
def test_a_slow_gpu_costs_nothing_beside_collectives_that_outlast_it(
    pause: int, saved: int, tmp_path: Path
) -> None:
    """Three collectives, of which the last is at once behind the others or waits for compute."""
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for device, length in ((0, 200), (1, 240)):
        synth.kernel("gemm", 0, length * US, device=device)
        synth.kernel("gemm", length * US, 2 * length * US, device=device)
        for start in (240, 340, 440 + pause):
            name = "ncclDevKernel_AllReduce"
            synth.kernel(name, start * US, (start + 100) * US, device=device, stream=9)
    (one,) = run(synth, "gpu_imbalance").findings
    assert one.saved_ns == saved * US


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ([120 * US], "GPU 4 and others compute up to 22.0% longer"),
        ([108 * US], "GPU 4 computes 22.0% longer"),
        ([100 * US, 20 * US], "GPU 4 computes 22.0% longer"),
    ],
    ids=["as_slow", "less_slow", "more_work"],
)
def test_gpus_that_are_slow_together_are_named_together(
    second: list[int], told: str, tmp_path: Path
) -> None:
    """Which of two slow GPUs is mended matters not while the other one holds the run up as long."""
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for device, lengths in enumerate([*[[100 * US]] * 3, second, [122 * US]]):
        for number, length in enumerate(lengths):
            start = sum(lengths[:number])
            synth.kernel("gemm", start, start + length, device=device)
        synth.kernel("ncclDevKernel_AllReduce", 122 * US, 150 * US, device=device, stream=9)
    (one,) = run(synth, "gpu_imbalance").findings
    assert one.title.startswith(told)
    assert (AND_OTHERS in one.subject) == (AND_OTHERS in told)


@pytest.mark.parametrize(("kernels", "length", "saved"), [(6, 20, 10), (5, 24, 20)])
def test_work_that_others_would_do_gains_half_of_it(
    kernels: int, length: int, saved: int, tmp_path: Path
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for device, count, lasts in ((0, 5, 20), (1, kernels, length)):
        for number in range(count):
            start = number * lasts * US
            synth.kernel("gemm", start, start + lasts * US, device=device)
        synth.kernel("ncclDevKernel_AllReduce", 120 * US, 150 * US, device=device, stream=9)
    (one,) = run(synth, "gpu_imbalance").findings
    assert one.saved_ns == saved * US
    assert one.advice.startswith("give the others" if saved == 10 else "balance the work")


def test_a_gpu_of_another_model_stays_slow(tmp_path: Path) -> None:
    """At 20 and 60 us for one piece each, five pieces for each end after 150 us if divided well."""
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for device, model, lasts in ((0, "NVIDIA A100", 20), (1, "Tesla T4", 60)):
        synth.gpu(device, model)
        for number in range(5):
            start = number * lasts * US
            synth.kernel("gemm", start, start + lasts * US, device=device)
    (one,) = run(synth, "gpu_imbalance").findings
    assert one.saved_ns == 150 * US
    assert one.advice == "it is a Tesla T4, as no other is: give it less"


def test_small_copies_make_a_series(synth: Synth) -> None:
    for _ in range(100):
        copy(synth, "cudaMemcpyAsync_v3020", kind="DtoH", bytes=4)
    copy(synth, "cudaMemcpyAsync_v3020", kind="HtoD", bytes=4)
    outcome = run(synth, "small_copies")
    assert rows(outcome, "Count", "Bytes Each", "Direction") == [(100, 4, "Device-to-Host")]
    assert outcome.findings[0].saved_ns == (100 + 99 * 101) * US
    assert len(run(synth, "small_copies:count=101").table) == 0


@pytest.mark.parametrize(("lasts", "told"), [(8, True), (80, False)])
def test_small_copies_within_a_gpu_are_launches_of_their_own(
    synth: Synth, lasts: int, told: bool
) -> None:
    """Long calls do something else."""
    for number in range(100):
        start = number * (lasts + 2) * US
        synth.api("cudaMemcpyAsync_v3020", start, start + lasts * US, corr=number + 1)
        end = start + (lasts + 1) * US
        synth.memcpy(start + lasts * US, end, kind="DtoD", bytes=8, corr=number + 1)
    found = run(synth, "small_copies").findings
    assert [one.saved_ns for one in found] == [99 * 9 * US] * told  # 8 in a call, 1 before it
    assert [one.advice for one in found] == ["move the data by one kernel"] * told
    (exposed,) = run(synth, "exposed_copies").findings
    assert exposed.advice.startswith("swap pointers, or let kernels write their results")


def test_waits_after_small_copies_of_one_process_do_not_idle_the_gpu_of_another(
    tmp_path: Path,
) -> None:
    """What ends the long gap of the other GPU has no call: whose it is, its row says."""
    synth = Synth(tmp_path / "r.sqlite").process(10)
    synth.api("cudaMemcpyAsync_v3020", 0, 5 * US, corr=1)
    synth.memcpy(5 * US, 6 * US, kind="DtoH", bytes=4, corr=1)
    synth.api("cudaStreamSynchronize_v3020", 5 * US, 90 * MS).kernel("k", 6 * US, 90 * MS)
    synth.process(20).kernel("k", 0, US, device=1).kernel("k", 90 * MS, 90 * MS + US, device=1)
    for number in range(100):
        start = 90 * MS + (10 * number - 5) * US
        synth.api("cudaMemcpyAsync_v3020", start, start + 4 * US, corr=number + 1)
        start += 8 * US
        synth.memcpy(start, start + US, kind="DtoH", bytes=4, device=1, corr=number + 1)
    (found,) = run(synth, "small_copies").findings
    assert found.saved_ns < MS


def steps(synth: Synth, slow: int = -1) -> Synth:
    """Six steps of 10 ms with a kernel each; ``slow`` takes 60 ms."""
    start = 0
    for number in range(6):
        length = (60 if number == slow else 10) * MS
        synth.nvtx(f"step {number}", start, start + length)
        synth.launch("k", call=(start, start + US), gpu=(start + US, start + 9 * MS))
        start += length
    return synth


def test_slow_steps(synth: Synth) -> None:
    outcome = run(steps(synth, slow=4), "slow_steps")
    assert rows(outcome, "Step", "Time") == [("step 4", 60 * MS)]
    assert outcome.findings[0].saved_ns == 50 * MS
    assert "much slower: step 4" in outcome.findings[0].title


def test_even_steps_are_no_finding(synth: Synth) -> None:
    assert len(run(steps(synth), "slow_steps").table) == 0


def test_allocations_and_loading_count_inside_the_loop_only(synth: Synth) -> None:
    steps(synth)
    for place in range(12):
        synth.api("cudaMalloc_v3020", place * 100, place * 100 + 50)
        synth.api("cudaMalloc_v3020", 30 * MS + place * US, 30 * MS + place * US + 500)
        synth.api("cudaFree_v3020", 31 * MS + place * US, 31 * MS + place * US + 500)
    synth.cuda_overhead("lazy", 5 * MS, 6 * MS, 7)
    synth.cuda_overhead("lazy", 39 * MS, 40 * MS, 7).api("cuModuleLoadData", 40 * MS, 42 * MS)
    allocations = run(synth, "frequent_allocation")
    assert rows(allocations, "API Name", "Calls") == [("cudaMalloc", 12)]
    assert len(run(synth, "frequent_allocation:count=13").table) == 0
    loading = run(synth, "module_loading")
    assert rows(loading, "What", "Duration") == [("cuModuleLoadData", 2 * MS), ("lazy", 1 * MS)]
    assert loading.findings[0].saved_ns == MS + US, "the GPU works from 40.001 ms on"


def test_waits_are_told_by_range_with_the_idle_time_they_cause(synth: Synth) -> None:
    synth.nvtx("layer 1", 0, 2 * MS).nvtx("other", 2 * MS, 19 * MS)
    synth.launch("a", call=(0, US), gpu=(US, 100 * US))
    synth.api("cudaStreamSynchronize_v3020", 50 * US, MS)
    synth.launch("b", call=(MS + US, MS + 2 * US), gpu=(MS + 3 * US, 13 * MS))
    synth.api("cudaStreamSynchronize_v3020", 2 * MS + US, 13 * MS)
    outcome = run(synth, "sync_by_range")
    assert rows(outcome, "NVTX Range", "Calls", "GPU Idle") == [
        ("layer #", 1, MS + 3 * US - 100 * US),
        ("other", 1, 0),
    ]
    (finding,) = outcome.findings
    assert "cudaStreamSynchronize in layer 1" in finding.title


def test_idle_time_before_migrations_of_unified_memory_is_told(synth: Synth) -> None:
    for begun in (US, 30 * US, 60 * US):
        synth.launch("a", call=(begun - US, begun), gpu=(begun, begun + 29 * US))
    for number in range(1, 4):
        synth.memcpy(number * MS, number * MS + 10 * US, kind=11)
    (finding,) = run(synth, "gpu_idle").findings
    told = "nothing recorded before pages migrate"
    assert f"in 3 gaps, {told}" in finding.title
    assert "--cpuctxsw" in finding.advice
    (finding,) = run(synth.api("cudaMalloc_v3020", 0, 9, tid=99), "gpu_idle").findings
    assert f"in 3 gaps, {told}" in finding.title
    assert "cudaMemPrefetchAsync" in finding.advice
    (finding,) = run(synth.api("cudaMemPrefetchAsync", 9, 20, tid=99), "gpu_idle").findings
    assert "cudaMemPrefetchAsync" not in finding.advice, "it prefetches already"


def test_idle_time_without_a_call_asks_for_calls(synth: Synth) -> None:
    synth.kernel("a", 0, 100 * US).kernel("b", MS, 12 * MS)
    (finding,) = run(synth, "gpu_idle").findings
    assert "1 gap, unknown" in finding.title
    assert "--trace=cuda" in finding.advice


def test_low_occupancy_by_launch_configuration(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu().process(10)
    synth.kernel("fat", 0, 900, block=(128, 1, 1), registersPerThread=255)
    synth.kernel("fat", 1000, 1900, block=(128, 1, 1), registersPerThread=255)
    synth.kernel("fine", 2000, 3000, block=(256, 1, 1))
    outcome = run(synth, "low_occupancy")
    assert rows(outcome, "Kernel", "Launches", "GPU Time", "Limited By", "Block") == [
        ("fat", 2, 1800, "registers", "128x1x1")
    ]
    assert outcome.findings[0].severity == "low"
    assert len(run(synth, "low_occupancy:below=5").table) == 0


@pytest.mark.parametrize(
    "name",
    [
        "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
        "ampere_sgemm_128x64_tn",
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 32, 4>>(Params)",
    ],
)
def test_products_and_attention_of_libraries_are_built_for_few_warps(
    name: str, tmp_path: Path
) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu().process(10)
    synth.kernel(name, 0, 900, block=(128, 1, 1), registersPerThread=255)
    assert run(synth, "low_occupancy").findings == []


def test_lost_data_is_told_from_routine_messages(synth: Synth) -> None:
    synth.kernel("k", 0, 9)
    synth.diagnostic("Not all CUDA events might have been collected.", severity=2)
    synth.diagnostic("No NVTX events collected. Does the process use NVTX?", severity=2)
    synth.diagnostic("Number of CUDA events collected: 12.", severity=1)
    synth.diagnostic("Number of CUDA events lost: 0", severity=2)
    synth.diagnostic("0 CUDA events were dropped.", severity=2)
    outcome = run(synth, "data_loss")
    assert len(outcome.table) == 1
    assert outcome.findings[0].severity == "medium"


@pytest.mark.parametrize("lost", ["lost: 5", "lost: 05", "lost: 0, dropped: 3"])
def test_what_was_lost_beside_nothing_lost_is_told(lost: str, synth: Synth) -> None:
    synth.kernel("k", 0, 9).diagnostic(f"Number of CUDA events {lost}", severity=2)
    assert len(run(synth, "data_loss").findings) == 1


def test_what_a_child_process_lost_is_told_as_such(synth: Synth) -> None:
    synth.kernel("k", 0, 9).process(77)
    for _ in range(2):
        synth.diagnostic("Not all CUDA events might have been collected.", severity=2)
    (found,) = run(synth, "data_loss").findings
    assert found.severity == "low"
    assert found.title.endswith("collected. (2 times) (in a process without GPU work)")


def test_what_nsys_says_of_the_gpu_work_comes_first_and_once(synth: Synth) -> None:
    synth.kernel("k", 0, 9)
    synth.diagnostic("No NVTX events collected.", severity=2)
    for _ in range(3):
        synth.diagnostic("CUDA driver is not supported.", severity=2)
    synth.process(77).diagnostic("CUDA tracing of a child failed.", severity=2)
    said = [message.text for message in messages(open_report(synth.write()))]
    assert said == [
        "CUDA driver is not supported. (3 times)",
        "No NVTX events collected.",
        "CUDA tracing of a child failed. (in a process without GPU work)",
    ]


def test_missing_ranges_name_the_option(synth: Synth) -> None:
    outcome = run(synth.kernel("k", 0, 9), "missing_nvtx")
    assert "--trace=nvtx" in outcome.findings[0].title
    assert run(synth.nvtx("a", 0, 9), "missing_nvtx").findings == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpu_gap", "gpu_gaps"),
        ("gpu_gaps:gpa=3", "gap, compat, rows"),
        ("gpu_gaps:gap=much", "in ms"),
    ],
)
def test_wrong_rules_and_parameters_are_named(text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_rule(text)
    assert said in str(error.value)


@needs_reports
def test_two_processes_with_equal_correlation_ids_keep_their_copies() -> None:
    import sqlite3

    path = REPORTS / "pytorch-nccl-2gpu-2026.2.sqlite"
    db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    (count,) = db.execute(
        """SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY m
        JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = m.correlationId
        AND (r.globalTid & ~16777215) = m.globalPid
        JOIN StringIds s ON s.id = r.nameId
        WHERE s.value LIKE 'cudaMemcpy%Async%' AND (m.srcKind = 0 OR m.dstKind = 0)"""
    ).fetchone()
    db.close()
    name, values = parse_rule("cuda_memcpy_async:rows=-1")
    assert len(RULES[name].run(Case(open_report(path)), values).table) == count
