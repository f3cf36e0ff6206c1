from __future__ import annotations

import json
import re
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from demo_making import make

from nsys_tui.demo.report import make_report
from nsys_tui.demo.schema import GENERATIONS, tables

if TYPE_CHECKING:
    from pathlib import Path

    from demo_making import Demo

CAK = "CUPTI_ACTIVITY_KIND_"


def dump(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def test_the_same_arguments_give_the_same_report_and_truth(demo: Demo, tmp_path: Path) -> None:
    again = make_report(
        tmp_path / "again.sqlite", truth_path=tmp_path / "truth.json", log_path=tmp_path / "logs"
    )
    assert dump(again.report) == dump(demo.path)
    assert json.loads((tmp_path / "truth.json").read_text()) == demo.truth
    assert [log.read_text() for log in sorted(again.logs)] == [log.read_text() for log in demo.logs]


def test_figures_do_not_change_from_one_release_of_python_to_the_next(demo: Demo) -> None:
    """Pinned by hand: a change here is a change of the demo report."""
    assert demo.truth["operations"]["count"] == 10_689
    assert [d["kernel_count"] for d in demo.truth["devices"]] == [4_816, 4_816]


def test_the_file_is_sound_and_complete(demo: Demo) -> None:
    assert demo.rows("PRAGMA integrity_check") == [("ok",)]
    names = {name for (name,) in demo.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
    wanted = {
        f"{CAK}GRAPH_TRACE", f"{CAK}SYNCHRONIZATION", f"{CAK}CUDA_EVENT", "OSRT_API",
        "CUDA_GPU_MEMORY_USAGE_EVENTS", "GPU_METRICS", "TARGET_INFO_GPU_METRICS", "SCHED_EVENTS",
        "COMPOSITE_EVENTS", "SAMPLING_CALLCHAINS", "CUDA_CALLCHAINS", "DIAGNOSTIC_EVENT",
        "TARGET_INFO_NVTX_CUDA_STREAM", "NVTX_PAYLOAD_SCHEMAS", "META_DATA_EXPORT",
    }  # fmt: skip
    assert wanted <= names
    assert not [n for n in names if demo.rows(f'SELECT count(*) FROM "{n}"') == [(0,)]]


def test_two_processes_share_an_ordinal_and_correlation_ids_but_no_gpu(demo: Demo) -> None:
    assert demo.rows(f"SELECT DISTINCT deviceId FROM {CAK}KERNEL") == [(0,)]
    devices = demo.rows("SELECT pid, cudaId, gpuId FROM TARGET_INFO_CUDA_DEVICE ORDER BY gpuId")
    assert [row[1:] for row in devices] == [(0, 0), (0, 1)]
    colliding = demo.rows(
        f"SELECT count(*) FROM {CAK}KERNEL a JOIN {CAK}KERNEL b"
        " ON a.correlationId = b.correlationId AND a.globalPid < b.globalPid"
    )
    assert colliding[0][0] > 1000


def test_every_operation_has_one_call_in_its_own_process(demo: Demo) -> None:
    for table in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"):
        rows = demo.rows(
            f"SELECT count(*), count(DISTINCT k.rowid), min(k.start - c.start) FROM {CAK}{table} k"
            f" JOIN {CAK}RUNTIME c ON c.correlationId = k.correlationId"
            " AND (c.globalTid >> 24) = (k.globalPid >> 24) AND c.eventClass IN (0, 1)"
        )
        total = demo.rows(f"SELECT count(*) FROM {CAK}{table}")[0][0]
        count, distinct, latency = rows[0]
        assert count == distinct == total
        assert latency > 0


def test_push_pop_ranges_nest_on_every_thread(demo: Demo) -> None:
    rows = demo.rows(
        "SELECT globalTid, start, coalesce(end, 9000000000000000000) FROM NVTX_EVENTS"
        " WHERE eventType = 59 ORDER BY globalTid, start"
    )
    stack: list[tuple[Any, ...]] = []
    for row in rows:
        while stack and (stack[-1][0] != row[0] or stack[-1][2] <= row[1]):
            stack.pop()
        assert not stack or row[2] <= stack[-1][2]
        stack.append(row)


def test_the_backward_pass_is_launched_from_another_thread(demo: Demo) -> None:
    rows = demo.rows(
        "SELECT DISTINCT s.value FROM NVTX_EVENTS n JOIN ThreadNames t USING (globalTid)"
        " JOIN StringIds s ON s.id = t.nameId WHERE n.text = 'layernorm_backward'"
    )
    assert rows == [("pt_autograd_0",)]


def test_work_on_one_stream_never_overlaps(demo: Demo) -> None:
    for table in ("KERNEL", "MEMCPY"):
        overlaps = demo.rows(
            "SELECT count(*) FROM (SELECT start, lag(end) OVER"
            f" (PARTITION BY globalPid, streamId ORDER BY start) AS previous FROM {CAK}{table})"
            " WHERE start < previous"
        )
        assert overlaps == [(0,)]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_old_generations_have_their_own_columns_and_the_same_work(
    generation: str, demo: Demo, tmp_path: Path
) -> None:
    old = make(tmp_path, generation=generation)
    expected = {name: [c.name for c in t.columns] for name, t in tables(generation).items()}
    present = {n for (n,) in old.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for name in present & set(expected):
        columns = [row[1] for row in old.rows(f'PRAGMA table_info("{name}")')]
        assert columns == expected[name]
    assert f"{CAK}KERNEL" in present
    assert any(name.startswith("ENUM_") for name in present) == (generation >= "2022.4")
    assert old.truth["operations"] == demo.truth["operations"]
    devices = old.rows(f"SELECT count(DISTINCT deviceId) FROM {CAK}KERNEL")
    assert devices == [(1 if "TARGET_INFO_CUDA_DEVICE" in present else 2,)]
    old.connection.close()


def test_a_scaled_report_repeats_the_loop_and_its_truth_still_holds(tmp_path: Path) -> None:
    big = make(tmp_path, steps=2, kernels=9_000, gpus=3)
    truth = big.truth
    assert truth["copies"] > 2
    kernels = big.rows(f"SELECT count(*) FROM {CAK}KERNEL")[0][0]
    assert kernels == pytest.approx(9_000, rel=0.25)
    assert kernels == sum(d["kernel_count"] for d in truth["devices"])
    operations = " UNION ALL ".join(
        f"SELECT start, end, globalPid, correlationId FROM {CAK}{table}"
        for table in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")
    )
    count, total = big.rows(f"SELECT count(*), sum(end - start) FROM ({operations})")[0]
    assert truth["operations"] == {"count": count, "total_ns": total}
    for device in truth["devices"]:
        busy = end_of_all = 0
        for start, end in big.rows(
            f"SELECT start, end FROM ({operations}) WHERE globalPid = ? ORDER BY start",
            1 << 48 | device["pid"] << 24,
        ):
            busy += max(0, end - max(start, end_of_all))
            end_of_all = max(end_of_all, end)
        assert busy == device["busy_ns"]
    assert big.rows(f"SELECT min(start), max(end) FROM ({operations})") == [tuple(truth["span"])]
    orphans = big.rows(
        f"SELECT count(*) FROM ({operations}) o WHERE 1 <> (SELECT count(*) FROM"
        f" {CAK}RUNTIME c WHERE c.correlationId = o.correlationId"
        " AND (c.globalTid >> 24) = (o.globalPid >> 24) AND c.eventClass < 2 AND c.start < o.start)"
        " AND o.correlationId % 37 = 0"
    )
    assert orphans == [(0,)]
    names = [n for (n,) in big.rows("SELECT text FROM NVTX_EVENTS WHERE text LIKE 'Train step%'")]
    assert sorted({int(n.split()[-1]) for n in names}) == list(range(truth["steps"] + 1))
    (duration,) = big.rows("SELECT duration FROM ANALYSIS_DETAILS")[0]
    assert duration == truth["session_ns"] >= truth["span"][1]
    big.connection.close()


def test_fewer_steps_leave_out_the_later_problems(tmp_path: Path) -> None:
    small = make(tmp_path, steps=5)
    assert {p["kind"] for p in small.truth["problems"]} == {"sync_stall", "straggler"}
    small.connection.close()


def test_the_nccl_log_names_the_collectives_of_the_report(demo: Demo) -> None:
    found = []
    for log in demo.logs:
        text = log.read_text()
        assert re.search(r"NCCL INFO ncclCommInitRank comm 0x\w+ rank \d nranks 2 .*COMPLETE", text)
        found += re.findall(r"AllReduce: opCount (\w+) .* count (\d+) datatype (\d) ", text)
    sizes = {"9": 2, "7": 4}
    assert len(found) == demo.truth["collectives"]["count"]
    assert sum(int(c) * sizes[d] for _, c, d in found) == demo.truth["collectives"]["bytes"]
    payloads = demo.rows(
        "SELECT sum(json_extract(jsonText, '$.\"Message size [bytes]\"')) FROM NVTX_EVENTS"
    )
    assert payloads == [(demo.truth["collectives"]["bytes"],)]
    kernels = demo.rows(f"SELECT count(*), sum(end - start) FROM {CAK}KERNEL WHERE streamId = 16")
    truth = demo.truth["collectives"]
    assert kernels == [(truth["count"], truth["kernel_ns"])]
