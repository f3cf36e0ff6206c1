from __future__ import annotations

import json
import math
import struct
from typing import TYPE_CHECKING, Any

import pytest
from demo_making import Demo, make
from loglines import body, info, init, nemo, read
from paths import REPORTS, needs_reports
from synth import Synth

from nsys_tui import cli
from nsys_tui.analysis.nccl.collectives import collectives
from nsys_tui.analysis.nccl.kernel_matching import How, kernel_kind
from nsys_tui.analysis.nccl.rank_matching import Traced
from nsys_tui.analysis.nccl.tables import each_table, members_table, operations_table
from nsys_tui.fleet.mapping import told_rank
from nsys_tui.logs import read_logs
from nsys_tui.logs.report_join import join_calls
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nsys_tui.analysis.nccl.result import Collectives
    from nsys_tui.model.report import Report

US = 1_000
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    made = make(tmp_path_factory.mktemp("demo"), steps=4)
    yield made
    made.connection.close()


def opened(path: Path) -> Report:
    return open_report(path, use_cache=False)


def by_hand(demo: Demo) -> list[tuple[int, int, int]]:
    """(bytes, time, skew) of each collective: the k-th of both ranks, straight from the file."""
    rows = demo.rows(
        """SELECT n.globalTid >> 24 & 0xffffff, n.jsonText, k.start, k."end"
        FROM NVTX_EVENTS n JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
          ON r.globalTid = n.globalTid AND r.start >= n.start AND r."end" <= n."end"
        JOIN CUPTI_ACTIVITY_KIND_KERNEL k
          ON k.correlationId = r.correlationId AND k.globalPid = n.globalTid & ~0xffffff
        WHERE n.jsonText LIKE '%Message size%' ORDER BY k.start"""
    )
    ranks: dict[int, list[tuple[int, int, int]]] = {}
    for pid, payload, start, end in rows:
        size = json.loads(payload)["Message size [bytes]"]
        ranks.setdefault(pid, []).append((size, start, end))
    found = []
    for parts in zip(*ranks.values(), strict=True):
        starts, ends = [s for _, s, _ in parts], [e for _, _, e in parts]
        found.append((parts[0][0], max(ends) - max(starts), max(starts) - min(starts)))
    return found


def check(found: Collectives, demo: Demo) -> None:
    expected = by_hand(demo)
    assert len(expected) > 30
    assert found.bytes.tolist() == [size for size, _, _ in expected]
    assert found.time.tolist() == [time for _, time, _ in expected]
    assert found.skew.tolist() == [skew for _, _, skew in expected]
    # Two ranks: an all-reduce sends 2 (n - 1) / n = 1 times its buffer.
    rates = [size / time * 1e9 for size, time, _ in expected]
    assert found.algorithm_bandwidth.tolist() == pytest.approx(rates, rel=1e-12)
    assert found.bus_bandwidth.tolist() == pytest.approx(rates, rel=1e-12)
    assert (found.ranks == 2).all()
    assert (found.seen == 2).all()
    assert not found.estimated.any()


def test_bandwidth_of_the_demo_is_that_worked_out_by_hand(demo: Demo) -> None:
    found = collectives([Traced(opened(demo.path))])
    check(found, demo)
    assert (found.how == How.BY_CALL).all()
    assert any("ranks joined by order" in note for note in found.notes)
    assert (found.sized_by, [m.rank for m in found.members]) == ("NVTX payloads", [0, 1])
    truth = demo.truth["collectives"]
    assert (int(found.time.sum()), int(found.skew.sum())) == (truth["time_ns"], truth["skew_ns"])
    assert sum(found.bytes.tolist()) * 2 == truth["bytes"]


def test_the_log_gives_the_same_by_order_and_says_so(demo: Demo) -> None:
    found = collectives([Traced(opened(demo.path))], join_calls(read_logs(demo.logs)))
    check(found, demo)
    assert (found.how == How.BY_ORDER).all()
    notes = "\n".join(found.notes)
    count = 2 * len(found)
    assert f"joined by order: {count} of {count}" in notes
    assert f"sizes agree with NVTX in {count} of {count}" in notes
    assert set(each_table(found)["Joined"]) == {"by order"}


def test_waiting_by_rank_adds_up_to_the_skew(demo: Demo) -> None:
    found = collectives([Traced(opened(demo.path))])
    table = members_table(found)
    assert sum(table["Waited for others"]) == int(found.skew.sum())
    both = zip(table["Waited for others"], table["Transferred"], strict=True)
    assert [waited + moved for waited, moved in both] == list(table["Kernel time"])
    assert sum(table["Came last"]) == len(found)
    assert sum(table["Kernel time"]) == demo.truth["collectives"]["kernel_ns"]
    assert sum(operations_table(found)["Count"]) == len(found)


def payload(size: int, comm: int = 77) -> str:
    return json.dumps({"NCCL communicator ID": comm, "Message size [bytes]": size})


def member(rank: int, ranks: int, comm: int = 77) -> str:
    return json.dumps({"NCCL communicator ID": comm, "No. of ranks": ranks, "Rank": rank})


def one(synth: Synth, name: str, at: int, size: int | None, *, gpu: int, ns: int = 10 * US) -> None:
    """One collective: range, launch and kernel."""
    json_text = None if size is None else payload(size)
    synth.nvtx(name, at, at + 5 * US, json=json_text)
    kernel = ALL_REDUCE.replace("AllReduce", name.removeprefix("nccl"))
    synth.launch(kernel, (at + US, at + 2 * US), (at + 3 * US, at + 3 * US + ns), device=gpu)


def test_a_rank_alone_is_marked_as_waiting(tmp_path: Path) -> None:
    synth = (
        Synth(tmp_path / "r.sqlite").process(5).nvtx("ncclCommInitRank", 0, 9, json=member(3, 4))
    )
    one(synth, "ncclAllGather", 100 * US, 1_000, gpu=0)
    found = collectives([Traced(opened(synth.write()))])
    assert found.bytes.tolist() == [4_000]
    assert found.wire.tolist() == [3_000.0]
    assert found.bus_bandwidth.tolist() == pytest.approx([3_000 / 10e-6])
    assert found.estimated.all()
    assert found.members[0].rank == 3
    assert any("includes waiting" in note for note in found.notes)


def test_without_the_number_of_ranks_there_is_no_bus_bandwidth(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(5)
    one(synth, "ncclAllReduce", 100 * US, 1_000, gpu=0)
    one(synth, "ncclAllGather", 200 * US, 1_000, gpu=0)
    found = collectives([Traced(opened(synth.write()))])
    assert found.bytes.tolist() == [1_000, -1]
    assert found.bus_bandwidth[0] != found.bus_bandwidth[0]
    assert found.algorithm_bandwidth[0] == pytest.approx(1e8)


def test_calls_of_a_group_share_one_kernel_and_their_bytes_are_summed(tmp_path: Path) -> None:
    synth = (
        Synth(tmp_path / "r.sqlite").process(5).nvtx("ncclCommInitRank", 0, 9, json=member(0, 2))
    )
    synth.nvtx("ncclGroupStart", 1000, 1010)
    for place, (op, size) in enumerate([("Send", 300), ("Recv", 500)]):
        synth.nvtx(f"nccl{op}", 1020 + 20 * place, 1030 + 20 * place, json=payload(size))
    synth.nvtx("ncclGroupEnd", 1100, 1200)
    synth.launch("ncclDevKernel_SendRecv(int)", (1110, 1150), (2000, 3000))
    one(synth, "ncclAllReduce", 5_000_000, 64, gpu=0)
    found = collectives([Traced(opened(synth.write()))])
    assert found.label == ("Send + Recv", "AllReduce")
    assert found.calls.tolist() == [2, 1]
    assert found.bytes.tolist() == [800, 64]
    assert found.time.tolist() == [1000, 10 * US]
    assert (found.how == How.BY_CALL).all()


def test_ranges_without_prefix_count_in_the_domain_of_nccl_alone(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(5).domain(3, "NCCL")
    synth.nvtx("CommInitRank", 0, 9, json=member(0, 2), domain=3)
    for place, domain in enumerate((3, 0)):
        at = 1000 + 10_000 * place
        synth.nvtx("AllReduce", at, at + 5000, json=payload(4096), domain=domain)
        synth.launch(ALL_REDUCE, (at + 1000, at + 2000), (at + 3000, at + 4000))
    synth.nvtx("GroupStart", 50_000, 50_010, domain=3)
    for at in (50_020, 50_040):
        synth.nvtx("AllReduce", at, at + 10, json=payload(100), domain=3)
    synth.nvtx("GroupEnd", 50_100, 50_900, domain=3)
    synth.launch(ALL_REDUCE, (50_200, 50_300), (50_400, 50_600))
    found = collectives([Traced(opened(synth.write()))])
    assert found.bytes.tolist() == [4096, 200]
    assert found.label == ("AllReduce", "2 AllReduce")
    assert any("1 of 3 NCCL kernels belong to no known call" in note for note in found.notes)


def test_blobs_are_read_by_the_schemas_of_the_report(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(5)
    schemas = {
        16777218: (24, [("No. of ranks", 5, 8), ("Rank", 5, 12), ("CUDA device", 5, 16)]),
        16777220: (16, [("Message size [bytes]", 22, 8)]),
        16777223: (24, [("Message size [bytes]", 22, 8), ("Reduction operation", 16777232, 16)]),
        16777226: (24, [("Message size [bytes]", 22, 8), ("Peer rank", 5, 16)]),
    }
    for schema, (size, fields) in schemas.items():
        synth.add("NVTX_PAYLOAD_SCHEMAS", domainId=0, schemaId=schema, payloadSize=size)
        entries = [("NCCL communicator ID", 18, None), *fields]
        for number, (name, kind, offset) in enumerate(entries):
            synth.add(
                "NVTX_PAYLOAD_SCHEMA_ENTRIES", domainId=0, schemaId=schema, idx=number,
                type=kind, name=name, offset=offset,
            )  # fmt: skip
    blobs = {
        "ncclCommInitRank": struct.pack("<Qiii4x", 77, 2, 1, 0),
        "ncclAllGather": struct.pack("<QQ", 77, 1000),
        "ncclAllReduce": struct.pack("<QQi4x", 77, 2**40, 0),
        "ncclBroadcast": b"too short",
    }
    for place, (name, blob) in enumerate(blobs.items()):
        at = 100 * US * place
        synth.nvtx(name, at, at + 5 * US, binaryData=blob)
        if place:
            kernel = ALL_REDUCE.replace("AllReduce", name.removeprefix("nccl"))
            synth.launch(kernel, (at + US, at + 2 * US), (at + 3 * US, at + 9 * US))
    found = collectives([Traced(opened(synth.write()))])
    assert found.bytes.tolist() == [2000, 2**40, -1]
    assert found.ranks.tolist() == [2, 2, -1]
    assert found.members[0].rank == 1


def two_gpus(path: Path) -> Synth:
    synth = Synth(path).gpu(0, "A").gpu(1, "A").process(5)
    for ordinal, rank in ((0, 4), (1, 7)):
        synth.cuda_device(5, ordinal, ordinal)
        told = {"NCCL communicator ID": 77, "No. of ranks": 8, "Rank": rank}
        synth.nvtx(
            "ncclCommInitRank", 20 * ordinal, 9 + 20 * ordinal,
            json=json.dumps(told | {"CUDA device": ordinal}),
        )  # fmt: skip
    return synth


@pytest.mark.parametrize("order", ["in turn", "in blocks"])
def test_gpus_of_one_process_have_their_own_bytes(tmp_path: Path, order: str) -> None:
    synth = two_gpus(tmp_path / "r.sqlite")
    sizes = [64, 64, 512, 512] if order == "in turn" else [64, 512, 64, 512]
    for group in range(3):
        at = 1_000_000 * (group + 1)
        synth.nvtx("ncclGroupStart", at, at + 10)
        for place, size in enumerate(sizes):
            start = at + 20 + 20 * place
            synth.nvtx("ncclAllReduce", start, start + 10, json=payload(size))
        synth.nvtx("ncclGroupEnd", at + 200, at + 900)
        for gpu in range(2):
            api = (at + 300 + 50 * gpu, at + 340 + 50 * gpu)
            synth.launch(ALL_REDUCE, api, (at + 1000 + 100 * gpu, at + 5000), device=gpu)
    found = collectives([Traced(opened(synth.write()))])
    assert found.label == ("2 AllReduce",) * 3
    assert found.bytes.tolist() == [576] * 3
    assert found.seen.tolist() == [2] * 3
    assert found.skew.tolist() == [100] * 3
    assert found.time.tolist() == [3900] * 3
    assert [(member.rank, member.gpu) for member in found.members] == [(4, "GPU 0"), (7, "GPU 1")]


def test_gpus_that_are_called_one_after_another_are_joined(tmp_path: Path) -> None:
    synth = two_gpus(tmp_path / "r.sqlite")
    for call in range(4):
        at = 1_000_000 + 100_000 * call
        synth.nvtx("ncclAllReduce", at, at + 50, json=payload(64 << call // 2))
        kernel = (2_000_000 + 1000 * (call // 2), 2_000_500 + 1000 * (call // 2) + call)
        synth.launch(ALL_REDUCE, (at + 10, at + 20), kernel, device=call % 2)
    found = collectives([Traced(opened(synth.write()))])
    assert found.bytes.tolist() == [64, 128]
    assert found.seen.tolist() == [2, 2]
    assert found.ranks.tolist() == [8, 8]
    assert found.estimated.all()


def test_a_payload_may_stand_among_the_strings(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(5)
    synth.nvtx("step", 0, 9).nvtx(
        "ncclAllReduce", 1000, 9000, jsonTextId=synth.string(payload(4096))
    )
    synth.launch(ALL_REDUCE, (2000, 3000), (4000, 5000))
    assert collectives([Traced(opened(synth.write()))]).bytes.tolist() == [4096]


def test_what_nccl_calls_inside_of_a_collective_is_no_launch_of_its_own(tmp_path: Path) -> None:
    synth = (
        Synth(tmp_path / "r.sqlite").process(5).nvtx("ncclCommInitRank", 0, 9, json=member(0, 2))
    )
    synth.nvtx("ncclAlltoAll", 1000, 2000, json=payload(100))
    synth.nvtx("ncclGroupStart", 1010, 1020).nvtx("ncclSend", 1030, 1040, json=payload(100))
    synth.nvtx("ncclGroupEnd", 1100, 1200)
    synth.launch("ncclDevKernel_SendRecv(int)", (1110, 1150), (2000, 3000))
    found = collectives([Traced(opened(synth.write()))])
    assert (found.label, found.bytes.tolist()) == (("AlltoAll",), [200])


def test_a_kernel_launched_elsewhere_is_joined_by_order(tmp_path: Path) -> None:
    synth = (
        Synth(tmp_path / "r.sqlite").process(5).nvtx("ncclCommInitRank", 0, 9, json=member(0, 2))
    )
    for step in range(2):
        at = (100 + 100 * step) * US
        synth.nvtx("ncclAllReduce", at, at + US, json=payload(64 << step))
        synth.launch(ALL_REDUCE, (at + 2 * US, at + 3 * US), (at + 5 * US, at + 9 * US), tid=9)
    found = collectives([Traced(opened(synth.write()))])
    assert found.bytes.tolist() == [64, 128]
    assert (found.how == How.BY_ORDER).all()
    assert "joined by order: 2 of 2" in "\n".join(found.notes)


def test_missing_payloads_name_what_records_them(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(5)
    one(synth, "ncclAllReduce", 100 * US, None, gpu=0)
    found = collectives([Traced(opened(synth.write()))])
    assert (len(found), found.bytes.tolist(), found.sized_by) == (1, [-1], "")
    notes = "\n".join(found.notes)
    assert "no sizes" in notes
    assert "nsys profile --trace=nvtx,cuda" in notes
    assert "NCCL_DEBUG_SUBSYS=INIT,COLL" in notes


def log(folder: Path, pid: int, ops: list[str], *, rank: int = 0, host: str = "n") -> list[str]:
    del folder
    lines = [info(init("0x10", rank, 2), pid=pid, tid=pid, host=host)]
    lines += [
        info(body(op, number, count=256, comm="0x10", nranks=2), pid=pid, tid=pid, host=host)
        for number, op in enumerate(ops)
    ]
    return lines


def kernels(path: Path, pid: int, ops: list[str]) -> Report:
    synth = Synth(path).process(pid)
    for place, op in enumerate(ops):
        at = place * 100 * US
        name = f"ncclDevKernel_{op}_Sum_f32(int)"
        synth.launch(name, (at, at + US), (at + 2 * US, at + 12 * US))
    return opened(synth.write())


@pytest.mark.parametrize(
    ("logged", "traced", "sizes"),
    [
        (["AllReduce", "AllGather"], ["AllReduce", "AllGather"], [1024, 2048]),
        # A log longer than the capture: only the middle fits.
        (["AllGather", "AllReduce", "AllReduce", "AllGather"], ["AllReduce"] * 2, [1024, 1024]),
        (["AllReduce"] * 3, ["AllReduce"] * 2, []),
        (["AllReduce"] * 2, ["AllGather"] * 2, []),
    ],
)
def test_a_log_is_joined_where_it_fits_and_nowhere_else(
    tmp_path: Path, logged: list[str], traced: list[str], sizes: list[int]
) -> None:
    calls = join_calls(read(tmp_path, log(tmp_path, 5, logged)))
    found = collectives([Traced(kernels(tmp_path / "r.sqlite", 5, traced))], calls)
    assert found.bytes.tolist() == sizes
    notes = "\n".join(found.notes)
    if not sizes:
        assert "not joined" in notes
    elif len(logged) > len(traced):
        assert "the only place that fits" in notes


def test_processes_of_a_container_are_paired_by_order_and_it_is_said(tmp_path: Path) -> None:
    calls = join_calls(read(tmp_path, log(tmp_path, 1, ["AllReduce"])))
    found = collectives([Traced(kernels(tmp_path / "r.sqlite", 5, ["AllReduce"]))], calls)
    assert found.bytes.tolist() == [1024]
    assert any("processes are paired by order" in note for note in found.notes)


def test_reports_of_several_ranks_are_put_on_one_clock(tmp_path: Path) -> None:
    paths = []
    for rank, (pid, utc, late) in enumerate([(1, 1_000, 0), (2, 501_000, 4 * US)]):
        synth = Synth(tmp_path / f"r{rank}.sqlite").process(pid).session(10**9, utc=utc)
        synth.nvtx("ncclCommInitRank", 0, 9, json=member(rank, 2))
        # The second session began 500 us later, so the same moment has a smaller time in it.
        at = 1_000 * US - (utc - 1_000) + late
        one(synth, "ncclAllReduce", at, 4096, gpu=0, ns=50 * US - late)
        paths.append(synth.write())
    found = collectives([Traced(opened(path)) for path in paths])
    assert (found.seen.tolist(), found.skew.tolist()) == ([2], [4 * US])
    assert found.time.tolist() == [46 * US]
    assert [(m.report, m.rank) for m in found.members] == [(0, 0), (1, 1)]
    assert found.members[found.last[0]].rank == 1


def test_ranks_are_joined_by_opcount_where_a_log_begins_later(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0, "A").gpu(1, "A")
    for pid, skipped in ((5, 0), (6, 1)):
        synth.process(pid).cuda_device(pid, 0, pid - 5)
        for place in range(skipped, 3):
            at = place * 100 * US
            synth.launch(ALL_REDUCE, (at, at + US), (at + pid * US, at + 20 * US))
    whole = log(tmp_path, 5, ["AllReduce"] * 3)
    init_line, _, *rest = log(tmp_path, 6, ["AllReduce"] * 3, rank=1)
    calls = join_calls(read(tmp_path, whole, [init_line, *rest]))
    found = collectives([Traced(opened(synth.write()))], calls)
    assert found.seen.tolist() == [1, 2, 2]
    assert found.skew.tolist() == [0, US, US]
    assert "ranks joined by opCount" in found.notes
    assert found.estimated.tolist() == [True, False, False]


def test_a_log_without_the_number_of_ranks_says_so_until_it_is_given(tmp_path: Path) -> None:
    line = info(body("AllReduce", 0, count=256), pid=5, tid=5).replace("[nranks=8] ", "")
    traced = [Traced(kernels(tmp_path / "r.sqlite", 5, ["AllReduce"]))]
    found = collectives(traced, join_calls(read(tmp_path, [line])))
    assert [math.isnan(value) for value in found.bus_bandwidth.tolist()] == [True]
    assert any("bus bandwidth of 1 collectives is unknown" in note for note in found.notes)
    found = collectives(traced, join_calls(read(tmp_path, [line], ranks=4)))
    assert found.bus_bandwidth.tolist() == [pytest.approx(1024 * 1.5 / (10 * US) * 10**9)]
    assert not any("unknown" in note for note in found.notes)


def test_opcounts_that_stand_still_leave_each_line_a_launch(tmp_path: Path) -> None:
    lines = [info(body("AllReduce", 0, count=256 << n, nranks=2), pid=5, tid=5) for n in range(3)]
    found = collectives(
        [Traced(kernels(tmp_path / "r.sqlite", 5, ["AllReduce"] * 3))],
        join_calls(read(tmp_path, lines)),
    )
    assert found.bytes.tolist() == [1024, 2048, 4096]


def test_a_communicator_used_in_one_group_alone_is_one_launch(tmp_path: Path) -> None:
    calls = [(0, "0x1", 100), (0, "0x2", 200), (0, "0x2", 300), (1, "0x1", 400)]
    lines = [
        info(body("AllReduce", number, count=count, comm=comm, nranks=2), pid=5, tid=5)
        for number, comm, count in calls
    ]
    report = kernels(tmp_path / "r.sqlite", 5, ["AllReduce"] * 3)
    found = collectives([Traced(report)], join_calls(read(tmp_path, lines)))
    assert found.bytes.tolist() == [400, 2000, 1600]


def test_kernel_names_of_several_versions() -> None:
    names = {
        "ncclDevKernel_AllReduce_Sum_f32_TREE_LL": "AllReduce",
        "ncclKernel_ReduceScatter_RING_LL_Sum_half": "ReduceScatter",
        "ncclReduceRingLLKernel_sum_f32": "Reduce",
        "ncclDevKernel_SendRecv": "SendRecv",
        "ncclDevKernel_Generic_1": "",
    }
    assert {name: kernel_kind(name) for name in names} == names


@needs_reports
def test_a_real_report_without_sizes_still_tells_who_comes_late() -> None:
    found = collectives([Traced(opened(REPORTS / "pytorch-nccl-2gpu-2026.2.sqlite"))])
    assert len(found) == 32
    assert set(found.label) == {"2 Send + 2 Recv"}
    assert (found.how == How.BY_CALL).all()
    assert (found.seen == 2).all()
    assert any("2 of 66 NCCL kernels belong to no known call" in note for note in found.notes)


def test_the_verb_and_the_option_of_logs_print_the_same(
    demo: Demo, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = [str(path) for path in demo.logs]
    report = str(demo.path)
    arguments = ["--format", "json"]
    assert cli.main(["collectives", report, "--no-cache", *arguments, "--nccl-log", *logs]) == 0
    verb = json.loads(capsys.readouterr().out)
    assert cli.main(["logs", *logs, "--report", report, *arguments]) == 0
    assert json.loads(capsys.readouterr().out) == verb
    size, time, _ = by_hand(demo)[0]
    first = verb["collectives"][0]
    assert (first["bytes"], first["time_ns"], first["joined"]) == (size, time, "by order")
    assert first["bus_bytes_per_s"] == pytest.approx(size / time * 1e9)


@pytest.mark.parametrize("fmt", ["table", "markdown", "csv"])
def test_other_formats(demo: Demo, capsys: pytest.CaptureFixture[str], fmt: str) -> None:
    assert cli.main(["collectives", str(demo.path), "--no-cache", "--format", fmt]) == 0
    text = capsys.readouterr().out
    assert "Bus GB/s" in text
    assert "AllReduce" in text
    if fmt == "csv":
        assert len(text.splitlines()) == 1 + len(by_hand(demo))


def test_a_report_without_nccl_ends_with_no_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Synth(tmp_path / "r.sqlite").process(1).kernel("gemm", 0, 9).write()
    assert cli.main(["collectives", str(path), "--no-cache"]) == 66
    assert "no NCCL kernel" in capsys.readouterr().err


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert cli.main([*arguments, "--format", "json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_a_window_takes_the_collectives_that_start_in_it(
    demo: Demo, capsys: pytest.CaptureFixture[str]
) -> None:
    report = (str(demo.path), "--no-cache")
    every = printed(capsys, "collectives", *report)["collectives"]
    lo, hi = every[5]["start_ns"], every[9]["start_ns"]
    found = printed(capsys, "collectives", *report, "--window", f"{lo}ns/{hi}ns")
    assert found["collectives"] == every[5:9]
    assert f"4 of {len(every)} collectives" in found["notes"][0]


def test_a_gpu_process_or_stream_chooses_and_figures_stay(
    demo: Demo, capsys: pytest.CaptureFixture[str]
) -> None:
    report = (str(demo.path), "--no-cache")
    every = printed(capsys, "collectives", *report)
    pid = str(every["members"][1]["pid"])
    for option in (["--device", "1"], ["--process", pid]):
        assert printed(capsys, "collectives", *report, *option) == every
    other = demo.rows("SELECT DISTINCT streamId FROM CUPTI_ACTIVITY_KIND_KERNEL")
    nccl = demo.rows(
        """SELECT DISTINCT streamId FROM CUPTI_ACTIVITY_KIND_KERNEL k
        JOIN StringIds s ON s.id = k.shortName WHERE s.value LIKE 'nccl%'"""
    )
    (silent, *_) = sorted(set(other) - set(nccl))
    assert cli.main(["collectives", *report, "--stream", str(silent[0])]) == 66
    assert "none of the" in capsys.readouterr().err
    assert cli.main(["collectives", *report, "--device", "9"]) == 64


def test_steps_rank_and_sections_choose_in_a_join(
    demo: Demo, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines = "".join(path.read_text() for path in demo.logs).splitlines()
    own = [line for line in lines if ": opCount " in line]
    first = {line.partition("opCount ")[2].partition(" ")[0] for line in own[:4]}
    early = [n for n in lines if n not in own or n.split("opCount ")[1].split()[0] in first]
    late = [line for line in own if line not in early]
    log = tmp_path / "all.log"
    log.write_text("\n".join([*early, nemo(0), *late, nemo(1)]) + "\n")
    join = ("logs", str(log), "--report", str(demo.path))
    every = printed(capsys, *join)["collectives"]
    one = printed(capsys, *join, "--steps", "0")["collectives"]
    assert one == every[: len(one)]
    assert len(one) == len(first)
    assert printed(capsys, *join, "--steps", "1")["collectives"] == every[len(one) :]
    assert printed(capsys, *join, "--rank", "1")["collectives"] == every
    assert cli.main([*join, "--rank", "7"]) == 66
    capsys.readouterr()
    assert cli.main([*join, "--section", "ranks"]) == 0
    text = capsys.readouterr().out
    assert "who comes late" in text
    assert "By operation" not in text


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--report", "{report}", "--section", "histogram"], "no section histogram"),
        (["--report", "{report}", "--buckets", "1K"], "--buckets"),
        (["--report", "{report}", "--calls"], "--calls"),
        (["--section", "operations"], "needs a report"),
    ],
)
def test_options_without_effect_are_refused(
    demo: Demo, capsys: pytest.CaptureFixture[str], options: list[str], why: str
) -> None:
    words = [word.format(report=demo.path) for word in options]
    assert cli.main(["logs", *map(str, demo.logs), *words]) == 64
    assert why in capsys.readouterr().err


def test_a_rank_in_the_file_name_stands_for_a_process_id(tmp_path: Path) -> None:
    texts = [log(tmp_path, pid, ["AllReduce"] * 2, rank=pid - 30) for pid in (30, 31)]
    calls = join_calls(read(tmp_path, *texts))
    traced = []
    for rank in (1, 0):
        path = tmp_path / f"run_rank{rank}.sqlite"
        report = kernels(path, 5, ["AllReduce"] * 2)
        traced.append(Traced(report, named_rank=told_rank(report, path)))
    found = collectives(traced, calls)
    assert [member.rank for member in found.members] == [1, 0]
    assert any("taken as rank 1 by name" in note for note in found.notes)
