from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from paths import goldens, needs_reports, report_paths
from synth import Synth

from nsys_tui.errors import UnreadableReportError
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.events import BLOCK, GRID
from nsys_tui.model.kinds import Kind
from nsys_tui.reader import btree, filecheck, open_report
from nsys_tui.reader.cache import Sidecar, cache_root
from nsys_tui.reader.gather import merge
from nsys_tui.sql.console import Console

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.model.report import Report


def opened(synth: Synth, **options: Any) -> Report:
    return open_report(synth.write(), **options)


@pytest.fixture
def synth(tmp_path: Path) -> Synth:
    return Synth(tmp_path / "report.sqlite").process(1000)


def test_equal_correlation_ids_of_two_processes_are_told_apart(synth: Synth) -> None:
    for pid, api_start in ((1000, 10), (2000, 20)):
        synth.process(pid).api("cudaLaunchKernel_v7000", api_start, api_start + 5, corr=1)
        synth.kernel("gemm", 100 + pid, 200 + pid, corr=1)
    report = opened(synth)
    starts = report.api.start[report.calls]
    assert starts.tolist() == [10, 20]


def test_of_two_calls_with_one_correlation_id_the_earlier_wins_and_backtraces_never(
    synth: Synth,
) -> None:
    synth.api("cuCtxSynchronize", 5, 90, corr=7, event_class=67)
    synth.api("cudaDeviceReset_v3020", 50, 60, corr=7).api("cuLaunchKernel", 20, 30, corr=7)
    report = opened(synth.kernel("k", 100, 110, corr=7))
    assert report.api.start[report.calls].tolist() == [20]
    assert report.api.real.tolist() == [False, True, True]


def test_operations_without_a_call_stay_unattributed(synth: Synth) -> None:
    synth.api("cudaLaunchKernel_v7000", 1, 2, corr=1)
    synth.kernel("known", 10, 20, corr=1).kernel("late start", 30, 40, corr=9)
    synth.memcpy(50, 60, kind=11, corr=0)
    assert opened(synth).calls.tolist() == [0, -1, -1]


def test_what_a_writer_adds_to_its_log_is_read_although_the_file_stays_as_it_was(
    synth: Synth,
) -> None:
    path = synth.kernel("k", 10, 20).write()
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
        for count in (2, 4, 8):
            writer.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL"
            )
            writer.commit()
            assert len(open_report(path).operations) == count


def test_device_zero_of_two_processes_may_be_two_gpus(synth: Synth) -> None:
    synth.gpu(0, "A").gpu(1, "B").cuda_device(1000, 0, 1).cuda_device(2000, 0, 0)
    synth.process(1000).kernel("k", 0, 10, device=0).process(2000).kernel("k", 0, 10, device=0)
    report = opened(synth)
    devices = report.devices
    assert [(d.gpu_id, d.name, d.id) for d in devices] == [(0, "A", 0), (1, "B", 0)]
    assert [member.pid for device in devices for member in device.members] == [2000, 1000]
    assert report.notes.texts == ()


@pytest.mark.parametrize(("gpus", "processes"), [(2, 2), (0, 2), (1, 2), (2, 1)])
def test_gpus_that_nothing_tells_apart_are_said(synth: Synth, gpus: int, processes: int) -> None:
    for number in range(gpus):
        synth.gpu(number, "A")
    for number in range(processes):
        synth.process(1000 + number).kernel("k", 0, 10, device=0)
    report = opened(synth)
    assert len(report.devices) == 1
    guessed = "2 processes worked on a GPU that each calls 0: taken for one GPU"
    assert (guessed in " ".join(report.notes.texts)) == (gpus != 1 and processes == 2)


@pytest.mark.parametrize("gpu_id", ["one", b"\x01", 1.5, float("inf"), None])
def test_a_gpu_id_that_is_no_number_leaves_the_ordinal(synth: Synth, gpu_id: object) -> None:
    synth.gpu(4, "A", cu_device=0).raw(
        "TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId", "pid"), [(gpu_id, 0, 1000), (4, 1, 1000)]
    )
    report = opened(synth.kernel("k", 0, 10, device=0).kernel("k", 20, 30, device=1))
    assert [(device.gpu_id, len(device.members)) for device in report.devices] == [(4, 2)]


@pytest.mark.parametrize(("seen", "has"), [(None, 108), (0, 108), (60, 60)])
def test_a_process_that_sees_a_part_of_a_gpu_has_its_sms(
    synth: Synth, seen: int | None, has: int
) -> None:
    synth.gpu(4, "A", cu_device=0).cuda_device(1000, 0, 4, numMultiprocessors=seen)
    (device,) = opened(synth.kernel("k", 0, 10, device=0)).devices
    assert device.info
    assert device.info.sm_count == has


def test_a_program_with_tens_of_thousands_of_streams(synth: Synth) -> None:
    for number in range(33_000):
        synth.kernel("k", number, number + 1, stream=number)
    ops = opened(synth).operations
    assert [ops.streams[code].id for code in ops.stream.tolist()] == list(range(33_000))


@pytest.mark.parametrize(
    ("written", "version"),
    [
        ("52510517", "525.105.17"),
        ("5206105", "520.61.05"),
        ("42600", "426.00"),
        ("580.95.05", "580.95.05"),
        ("unknown", "unknown"),
        ("0", ""),
    ],
)
def test_driver_versions_that_were_written_as_one_number(
    synth: Synth, written: str, version: str
) -> None:
    synth.environment("NvDriverVersion", written)
    assert opened(synth).metadata.driver == version


@pytest.mark.parametrize(
    ("setting", "value", "kind", "why"),
    [
        ("PROCESS_0:COLLECT_CUDA_TRACE", "true", Capability.KERNELS, "no CUDA call was seen"),
        ("PROCESS_0:COLLECT_CUDA_TRACE", "false", Capability.KERNELS, "--trace=cuda"),
        ("CAPTURE_EVENT_TYPE", "Cuda", Capability.KERNELS, "no CUDA call was seen"),
        ("PROCESS_1:COLLECT_NVTX_TRACE", "true", Capability.NVTX, "no range was seen"),
        ("CAPTURE_EVENT_TYPE", "OSRuntime", Capability.OSRT, "no call was seen"),
        ("CAPTURE_EVENT_TYPE", "Cuda", Capability.OSRT, "--trace=osrt"),
    ],
)
def test_what_was_asked_for_and_not_seen_is_told(
    synth: Synth, setting: str, value: str, kind: Capability, why: str
) -> None:
    synth.meta(setting, value, capture=True).sample(10)
    assert why in opened(synth).lacks(kind)


def test_kernels_are_not_asked_for_again_where_cuda_was_traced(synth: Synth) -> None:
    synth.meta("PROCESS_0:COLLECT_CUDA_TRACE", "true", capture=True)
    synth.api("cudaMalloc_v3020", 0, 10, corr=1)
    for kind in (Capability.KERNELS, Capability.GPU_PROPERTIES):
        assert opened(synth).lacks(kind).endswith("CUDA was traced, and none was recorded")


def test_what_gpu_work_must_have_had_is_not_said_to_be_none(synth: Synth) -> None:
    synth.kernel("k", 0, 10)
    report = opened(synth)
    for kind in (Capability.API, Capability.GPU_PROPERTIES):
        assert report.lacks(kind).endswith("nsys lost or left them out")
    assert report.lacks(Capability.MEMSETS).endswith("CUDA was traced, and none was recorded")


def test_more_gpus_than_there_can_be_are_damage(synth: Synth) -> None:
    for number in range(33_000):
        synth.kernel("k", number, number + 1, device=number)
    report = opened(synth)
    with pytest.raises(UnreadableReportError, match="cannot read") as caught:
        _ = report.operations
    assert "33,000 different GPUs" in caught.value.message


def test_an_open_range_ends_with_the_extent_although_all_times_are_negative(synth: Synth) -> None:
    synth.nvtx("open", -90).nvtx("late", -20).kernel("k", -80, -50).nvtx("closed", -70, -60)
    report = opened(synth)
    assert report.ranges.end.tolist() == [-20, -60, -20]
    assert report.extent == (-90, -20)


def test_an_event_that_ends_before_it_starts_is_a_point(synth: Synth) -> None:
    synth.kernel("k", 50, 20).api("cudaFree", 9, 3).osrt("poll", 8, 2).nvtx("r", 70, 60)
    report = opened(synth.sync(5, 1))
    for events in (report.operations, report.api, report.osrt, report.ranges, report.syncs):
        assert events.end.tolist() == events.start.tolist()


class TestADiskThatFails:
    def failing(self, *_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    def test_at_opening_it_is_named(self, synth: Synth, monkeypatch: pytest.MonkeyPatch) -> None:
        path = synth.kernel("k", 0, 10).write()
        monkeypatch.setattr(filecheck, "read_at", self.failing)
        with pytest.raises(UnreadableReportError, match=str(path)) as caught:
            open_report(path)
        assert caught.value.message == "Input/output error"

    def test_for_the_descriptor_alone_leaves_sqlite(
        self, synth: Synth, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        report = opened(synth.kernel("k", 5, 10))
        monkeypatch.setattr(btree, "read_into", self.failing)
        assert report.operations.start.tolist() == [5]

    def test_meanwhile_it_is_named(self, synth: Synth, monkeypatch: pytest.MonkeyPatch) -> None:
        report = opened(synth.kernel("k", 5, 10))
        monkeypatch.setattr(filecheck, "read_at", self.failing)
        with pytest.raises(UnreadableReportError, match="cannot read"):
            _ = report.operations


def test_a_view_in_the_place_of_a_table_is_named(synth: Synth) -> None:
    kernels = "CUPTI_ACTIVITY_KIND_KERNEL"
    synth.kernel("k", 0, 10).sql(f"ALTER TABLE {kernels} RENAME TO kept")
    synth.sql(f"CREATE VIEW {kernels} AS SELECT * FROM kept").sql("CREATE VIEW mine AS SELECT 1")
    assert [note for note in opened(synth).notes.texts if "view" in note] == [
        f"{kernels} is a view, not a table: it is not read"
    ]


def test_one_gpu_seen_under_two_ordinals_is_one_device(synth: Synth) -> None:
    synth.gpu(3, "A").cuda_device(1000, 0, 3).cuda_device(2000, 2, 3)
    synth.process(1000).kernel("k", 0, 10, device=0).process(2000).kernel("k", 0, 10, device=2)
    (device,) = opened(synth).devices
    assert device.gpu_id == 3
    assert device.id is None
    assert device.label == "GPU 3"


def test_without_gpu_tables_processes_share_a_device_by_ordinal(synth: Synth) -> None:
    synth.process(1000).kernel("k", 0, 10, device=1).process(2000).kernel("k", 0, 10, device=1)
    (device,) = opened(synth).devices
    assert (device.gpu_id, device.id, device.name) == (None, 1, "GPU 1")


def test_a_graph_launch_whose_nodes_were_traced_is_not_counted_twice(synth: Synth) -> None:
    synth.graph(0, 100, corr=5).kernel("node", 10, 20, corr=5, graphNodeId=77)
    synth.graph(200, 300, corr=6)
    ops = opened(synth).operations
    graphs = ops.of_kind(OpKind.GRAPH)
    assert ops.counted[graphs].tolist() == [False, True]
    assert (ops.category[graphs] == Category.GRAPH).all()


def test_unified_memory_copies_belong_to_no_stream_and_no_call(synth: Synth) -> None:
    synth.api("cudaFree_v3020", 0, 1, corr=0).memcpy(10, 20, kind=11, stream=0, context=0, corr=0)
    report = opened(synth)
    assert [stream.label for stream in report.streams] == ["unified memory"]
    assert [(stream.context, stream.id) for stream in report.streams] == [(0, 0)]
    assert report.calls.tolist() == [-1]


def test_open_range_ends_with_the_last_event_of_any_kind(synth: Synth) -> None:
    synth.nvtx("step", 100, None).kernel("k", 150, 900).osrt("poll", 0, 1500)
    ranges = opened(synth).ranges
    assert ranges.open.tolist() == [True]
    assert ranges.end.tolist() == [1500]


def test_range_names_come_from_text_or_registered_strings(synth: Synth) -> None:
    synth.nvtx("inline", 0, 10).nvtx("registered", 20, 30, registered=True).nvtx("inline", 40, 50)
    ranges = opened(synth).ranges
    assert [ranges.names[code] for code in ranges.name] == ["inline", "registered", "inline"]


def test_a_range_is_called_by_its_registered_string_and_a_domain_by_its_text_as_in_nsys(
    synth: Synth,
) -> None:
    number = synth.string("registered")
    synth.process(1).nvtx("text", 0, 10, textId=number).nvtx("text", 20, 30, textId=number + 99)
    synth.domain(1, "domain", textId=number).nvtx("in it", 40, 50, domain=1)
    report = opened(synth)
    ranges = report.ranges
    assert [ranges.names[code] for code in ranges.name] == ["registered", "text", "in it"]
    assert [ranges.domains[code].name for code in ranges.domain][-1] == "domain"
    shown = Console(report).run("SELECT name, domain FROM ranges ORDER BY start_ns").table.rows()
    assert shown == [("registered", ""), ("text", ""), ("in it", "domain")]


def test_domain_names_are_per_process(synth: Synth) -> None:
    synth.process(1000).domain(1, "NCCL").nvtx("a", 0, 10, domain=1)
    synth.process(2000).domain(1, "MPI").nvtx("b", 5, 15, domain=1).nvtx("c", 20, 30, domain=4)
    ranges = opened(synth).ranges
    assert [ranges.domains[code].name for code in ranges.domain] == ["NCCL", "MPI", "domain 4"]


def test_start_end_range_that_ends_on_another_thread_does_not_nest(synth: Synth) -> None:
    synth.nvtx("own", 0, 10, type=60, tid=1001).nvtx("other", 20, 30, type=60, tid=1001, end_tid=5)
    assert opened(synth).ranges.nests.tolist() == [True, False]


@pytest.mark.parametrize("use_cache", [True, False])
def test_second_opening_gives_the_same_parts(synth: Synth, use_cache: bool) -> None:
    synth.gpu(0, "A").stream_info(7, name="main stream").kernel("k[red]", -5, 10, corr=1)
    synth.api("cudaLaunchKernel_v7000", -20, -10, corr=1).nvtx("r", -30, 40).osrt("poll", 1, 2)
    path = synth.write()
    first, second = (open_report(path, use_cache=use_cache) for _ in range(2))
    for part in ("operations", "api", "ranges", "osrt"):
        one, two = getattr(first, part), getattr(second, part)
        assert one.start.tolist() == two.start.tolist()
        assert one.names == two.names
    assert first.operations.streams == second.operations.streams
    assert first.operations.devices == second.operations.devices
    assert first.calls.tolist() == second.calls.tolist() == [0]
    assert first.extent == second.extent


def test_parts_are_whole_where_the_disk_fails_while_they_are_stored(
    synth: Synth, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    synth.kernel("a", 0, 10).memcpy(5, 20, bytes=64).kernel("b", 30, 40)
    path = synth.write()
    report = open_report(path)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", failing)
        ops = report.operations
    assert report.api.start.tolist() == []
    assert not [*cache_root().rglob("*.columns")], "one failure is enough"
    assert ops.start.tolist() == [0, 5, 30]
    assert ops.bytes.tolist() == [0, 64, 0]


@pytest.mark.parametrize("kernels", [3, 400_000])
def test_tables_of_every_size_are_merged_in_order_of_start(kernels: int) -> None:
    rng = np.random.default_rng(kernels)
    sizes = {"kernel": kernels, "copy": 2_000, "set": 7, "graph": 0}
    room = sum(sizes.values())
    parts = []
    for name, size in sizes.items():
        columns = {"start": np.empty(room, np.int64), "rowid": np.empty(room, np.int64)}
        columns["start"][:size] = np.sort(rng.integers(0, 500_000, size))
        columns["rowid"][:size] = np.arange(size)
        part = {column: values[:size] for column, values in columns.items()}
        parts.append(part | {name: rng.integers(1, 9, size)})
    expected = sorted(
        (int(part["start"][row]), -len(part["start"]), row, name, int(part[name][row]))
        for part, name in zip(parts, sizes, strict=True)
        for row in range(len(part["start"]))
    )
    merged = merge(parts)
    assert merged["start"].tolist() == [start for start, *_ in expected]
    assert merged["rowid"].tolist() == [row for _, _, row, *_ in expected]
    for name in sizes:
        values = [value if name == own else 0 for *_, own, value in expected]
        assert merged[name].tolist() == values


def test_events_come_in_start_order_whatever_the_file_order(synth: Synth) -> None:
    for start in (50, 10, 30, 10):
        synth.kernel(f"k{start}", start, start + 5)
    ops = opened(synth).operations
    assert ops.start.tolist() == [10, 10, 30, 50]
    assert ops.rowid.tolist() == [2, 4, 3, 1]


def test_launch_attributes_follow_the_operations(synth: Synth) -> None:
    synth.kernel("late", 50, 60, gridX=5, blockX=64).memcpy(20, 30)
    synth.kernel("early", 10, 20, gridX=7, blockX=32)
    attributes = opened(synth).launch_attributes
    assert attributes.of(slice(None), GRID)[:, 0].tolist() == [7, 0, 5]
    assert attributes.of(slice(None), BLOCK)[:, 0].tolist() == [32, 0, 64]


def test_a_string_id_without_a_row_is_named_by_its_number(synth: Synth) -> None:
    path = synth.kernel("k", 0, 10).write()
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM StringIds")
    (name,) = open_report(path, use_cache=False).operations.names
    assert name.short.startswith("[string ")


def test_communication_patterns_of_the_user_are_added(synth: Synth) -> None:
    synth.kernel("my_ring_reduce", 0, 10).kernel("ncclDevKernel_AllReduce", 20, 30)
    synth.kernel("gemm_nccl_like", 40, 50)
    path = synth.write()
    plain, custom = open_report(path), open_report(path, patterns=("my_ring",))
    assert plain.operations.category.tolist() == [
        Category.COMPUTE,
        Category.COMM,
        Category.COMPUTE,
    ]
    assert custom.operations.category.tolist()[0] == Category.COMM


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("void dpsk::ep::internode::combine<false, (int)4>(void *)", Category.COMM),
        ("void deep_ep::intranode::dispatch<8>(void *)", Category.COMM),
        ("trtllm_mnnvl_allreduce::oneshotAllreduceFusionKernel<8>(Params)", Category.COMM),
        ("void moe_comm::moeA2ADispatchKernel<4>(Params)", Category.COMM),
        ("block_all_reduce_sum_f32_f32_kernel(float *, float *, int)", Category.COMPUTE),
    ],
)
def test_communication_is_told_by_name(synth: Synth, name: str, category: Category) -> None:
    report = opened(synth.kernel(name, 0, 10))
    assert report.operations.category.tolist() == [category]


@needs_reports
@pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
def test_real_reports_hold_what_plain_sql_says(path: Path) -> None:
    report = open_report(path)
    ops = report.operations
    expected = goldens()["reports"].get(path.name)
    if expected is None:
        pytest.skip(f"{path.name} has no golden figures")
    for kind in (OpKind.KERNEL, OpKind.MEMCPY, OpKind.MEMSET):
        rows = ops.of_kind(kind)
        golden = expected["gpu_operations"][kind.name.lower()]
        assert len(rows) == golden["count"]
        assert int(ops.duration[rows].sum()) == golden["total_ns"]
    pairs = expected.get("kernel_api_pairs")
    if pairs:
        kernels = ops.of_kind(OpKind.KERNEL)
        missing = int((report.calls[kernels] < 0).sum())
        assert missing == pairs["kernels_without_api_row_of_their_process"]


@needs_reports
@pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
def test_every_call_has_the_process_and_correlation_of_its_operation(path: Path) -> None:
    report = open_report(path)
    ops, api = report.operations, report.api
    rows = np.flatnonzero(report.calls >= 0)
    calls = report.calls[rows]
    assert (api.correlation[calls] == ops.correlation[rows]).all()
    process = api.thread_process[api.thread[calls]]
    assert (process == ops.processes[ops.process[rows]]).all()


@pytest.mark.parametrize("value", ["'nought'", "x'00'", "1.5"])
def test_rows_of_another_type_are_left_out_and_counted(synth: Synth, value: str) -> None:
    kernels = "CUPTI_ACTIVITY_KIND_KERNEL"
    synth.kernel("k", 5, 10).kernel("odd", 20, 30).kernel("k", 40, 50)
    synth.sql(f"UPDATE {kernels} SET deviceId = {value} WHERE start = 20")
    report = opened(synth)
    assert report.operations.start.tolist() == [5, 40]
    assert [device.id for device in report.devices] == [0]
    assert len(report.launch_attributes.code) == 2
    (note,) = report.notes
    assert (note.table, note.column) == (kernels, "deviceId")
    assert note.text.endswith("left out")


def test_numbers_of_a_table_that_is_missing_are_none_and_of_a_field_minus_one(
    tmp_path: Path,
) -> None:
    report = open_report(Synth(tmp_path / "r.sqlite").sched(5, True).write(), use_cache=False)
    assert [len(one) for one in report.numbers(Kind.UM_GPU_FAULT, "start", "device_id")] == [0] * 3
    _, start, other = report.numbers(Kind.SCHEDULING, "start", "no_such_field")
    assert (start.tolist(), other.tolist()) == ([5], [-1])


def test_a_part_stored_with_other_fields_is_built_anew(
    synth: Synth, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A development version may store other fields under the same number."""
    path = synth.process(100).gpu().launch("gemm", (0, 10), (20, 120)).write()
    with closing(open_report(path)) as first:
        told = first.operations.devices
    load = Sidecar.load

    def older(self: Sidecar, part: str) -> Any:
        arrays, meta = load(self, part) or ({}, {})
        return arrays, {name: value for name, value in meta.items() if name != "devices"}

    monkeypatch.setattr(Sidecar, "load", older)
    with closing(open_report(path)) as second:
        assert second.operations.devices == told
