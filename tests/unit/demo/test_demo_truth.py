"""The truth beside the demo report against plain SQL on the report itself."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from demo_making import Demo

CAK = "CUPTI_ACTIVITY_KIND_"
OPERATIONS = " UNION ALL ".join(
    f"SELECT start, end, globalPid, streamId, correlationId, {name} AS name FROM {CAK}{table}"
    for table, name in (
        ("KERNEL", "(SELECT value FROM StringIds WHERE id = shortName)"),
        ("MEMCPY", "'[memcpy]'"),
        ("MEMSET", "'[memset]'"),
        ("GRAPH_TRACE", "'[graph]'"),
    )
)
CALLS = f"SELECT * FROM {CAK}RUNTIME WHERE eventClass IN (0, 1)"


def global_pid(pid: int) -> int:
    return 1 << 48 | pid << 24


def marked(rows: list[tuple[int, int]], scale: int) -> set[int]:
    """Every ``scale``-th nanosecond that the intervals cover: an idiot-proof union."""
    found: set[int] = set()
    for start, end in rows:
        found.update(range(-(-start // scale), -(-end // scale)))
    return found


def test_operations_and_kernels(demo: Demo) -> None:
    count, total = demo.rows(f"SELECT count(*), sum(end - start) FROM ({OPERATIONS})")[0]
    assert demo.truth["operations"] == {"count": count, "total_ns": total}
    rows = demo.rows(
        f"SELECT value, count(*), sum(end - start), min(end - start), max(end - start)"
        f" FROM {CAK}KERNEL JOIN StringIds ON id = demangledName GROUP BY 1 ORDER BY 3 DESC, 1"
    )
    assert [tuple(kernel.values()) for kernel in demo.truth["kernels"]] == rows


def test_device_times_by_marking_every_half_microsecond(demo: Demo) -> None:
    scale = 500
    for device in demo.truth["devices"]:
        rows = demo.rows(
            f"SELECT start, end, name FROM ({OPERATIONS}) WHERE globalPid = ?",
            global_pid(device["pid"]),
        )
        busy = marked([(s, e) for s, e, _ in rows], scale)
        comm = marked([(s, e) for s, e, n in rows if n.startswith("nccl")], scale)
        memory = marked([(s, e) for s, e, n in rows if n in ("[memcpy]", "[memset]")], scale)
        graph = marked([(s, e) for s, e, n in rows if n == "[graph]"], scale)
        compute = marked([(s, e) for s, e, n in rows if n[0] not in "n["], scale)
        for name, points in {
            "busy_ns": busy,
            "compute_ns": compute,
            "comm_ns": comm,
            "memory_ns": memory,
            "graph_ns": graph,
            "exposed_comm_ns": comm - compute,
            "exposed_memory_ns": memory - compute - comm,
        }.items():
            assert len(points) * scale == pytest.approx(device[name], abs=len(rows) * scale)
            assert len(points) * scale == pytest.approx(device[name], rel=0.01, abs=10_000), name
        counts = Counter(n if n[0] == "[" else "kernel" for _, _, n in rows)
        assert counts["kernel"] == device["kernel_count"]
        assert counts["[graph]"] == device["graph_count"]
        first, last = demo.truth["span"]
        assert device["idle_ns"] == last - first - device["busy_ns"]


def test_gaps_add_up_to_the_idle_time_inside_each_device(demo: Demo) -> None:
    for device in demo.truth["devices"]:
        gaps = device["gaps"]
        assert sum(cause["total_ns"] for cause in gaps["by_cause"].values()) == gaps["total_ns"]
        low, high = demo.truth["extent"]
        inside = high - low - gaps["head_ns"] - gaps["tail_ns"]
        assert device["busy_ns"] + gaps["total_ns"] == inside
        for gap in gaps["listed"]:
            crossing = demo.rows(
                f"SELECT count(*) FROM ({OPERATIONS})"
                " WHERE globalPid = ? AND start < ? AND end > ?",
                global_pid(device["pid"]),
                gap["end"],
                gap["start"],
            )
            assert crossing == [(0,)]


def test_api_and_nvtx_counts(demo: Demo) -> None:
    rows = demo.rows(
        f"SELECT value, count(*), sum(end - start) FROM ({CALLS}) JOIN StringIds ON id = nameId"
        " GROUP BY 1"
    )
    assert {n: {"count": c, "total_ns": t} for n, c, t in rows} == demo.truth["api"]
    ranges, ends = demo.rows(
        "SELECT count(*), count(end) FROM NVTX_EVENTS WHERE eventType IN (59, 60)"
    )[0]
    assert demo.truth["nvtx"]["ranges"] == ranges
    assert demo.truth["nvtx"]["open"] == ranges - ends > 0
    moved = demo.rows("SELECT count(*) FROM NVTX_EVENTS WHERE endGlobalTid <> globalTid")
    assert moved == [(demo.truth["nvtx"]["other_thread_end"],)] != [(0,)]


def test_folded_stacks_by_a_correlated_query(demo: Demo) -> None:
    """Attribution by SQL: the ranges open on the call's thread when the call began."""
    rows = demo.rows(
        f"""
        SELECT path, count(*), sum(ns) FROM (
          SELECT o.end - o.start AS ns, (
            SELECT group_concat(name, ';') FROM (
              SELECT coalesce(n.text, s.value) AS name FROM NVTX_EVENTS n
              LEFT JOIN StringIds s ON s.id = n.textId
              WHERE n.globalTid = c.globalTid AND n.eventType IN (59, 60)
                AND n.endGlobalTid IS NULL
                AND n.start <= c.start AND (n.end IS NULL OR c.start < n.end)
              ORDER BY n.start, -coalesce(n.end, 9e18)
            )
          ) AS path
          FROM ({OPERATIONS}) o JOIN ({CALLS}) c ON c.correlationId = o.correlationId
            AND (c.globalTid >> 24) = (o.globalPid >> 24)
          WHERE o.name LIKE 'layernorm%' OR o.name LIKE '[mem%' OR o.name LIKE 'nccl%'
        ) GROUP BY path
        """
    )
    expected: dict[str, list[int]] = {}
    for entry in demo.truth["folded"]:
        if entry["leaf"].startswith(("layernorm", "[mem", "nccl")):
            path = [] if entry["path"] == ["[no NVTX range]"] else entry["path"]
            sums = expected.setdefault(";".join(path), [0, 0])
            sums[0] += entry["count"]
            sums[1] += entry["gpu_ns"]
    assert {path or "": [count, ns] for path, count, ns in rows} == expected
    assert sum(e["gpu_ns"] for e in demo.truth["folded"]) == demo.truth["operations"]["total_ns"]


def test_step_times(demo: Demo) -> None:
    rows = demo.rows(
        "SELECT (globalTid >> 24) & 16777215, text, start, end,"
        " lead(start) OVER (PARTITION BY globalTid ORDER BY start)"
        " FROM NVTX_EVENTS WHERE text LIKE 'Train step %' ORDER BY globalTid, start"
    )
    pids = {device["rank"]: device["pid"] for device in demo.truth["devices"]}
    found = [
        (pids[s["rank"]], s["name"], s["start"], s["end"], s["start"] + s["time_ns"])
        for s in demo.truth["step_times"]
    ]
    assert found == [row for row in rows if row[3] is not None]
    assert len(found) == 20


def problem(demo: Demo, kind: str) -> list[dict[str, Any]]:
    return [p for p in demo.truth["problems"] if p["kind"] == kind]


def kernels_in(demo: Demo, found: dict[str, Any]) -> list[tuple[Any, ...]]:
    pid = next(d["pid"] for d in demo.truth["devices"] if d["rank"] == found["rank"])
    return demo.rows(
        f"SELECT o.start, o.end, o.name, c.start FROM ({OPERATIONS}) o JOIN ({CALLS}) c"
        " ON c.correlationId = o.correlationId AND (c.globalTid >> 24) = (o.globalPid >> 24)"
        " WHERE o.globalPid = ? AND o.start < ? AND o.end > ? ORDER BY o.start",
        global_pid(pid),
        found["window"][1],
        found["window"][0],
    )


def test_every_problem_is_planted_where_it_belongs(demo: Demo) -> None:
    found = Counter(p["kind"] for p in demo.truth["problems"])
    assert found == {
        "sync_stall": 2,
        "pageable_copy": 1,
        "launch_bound": 2,
        "exposed_communication": 2,
        "slow_step": 2,
        "straggler": 1,
    }
    for p in demo.truth["problems"]:
        assert p["duration_ns"] > 0
        assert p["window"][0] < p["window"][1]


def test_the_sync_stall_is_twelve_late_wakes(demo: Demo) -> None:
    for found in problem(demo, "sync_stall"):
        pid = next(d["pid"] for d in demo.truth["devices"] if d["rank"] == found["rank"])
        waits = demo.rows(
            f"SELECT count(*) FROM {CAK}SYNCHRONIZATION WHERE globalPid = ? AND streamId = 13"
            " AND end > ? AND start < ?",
            global_pid(pid),
            *found["window"],
        )
        assert found["gaps"] == 12 == waits[0][0]
        assert found["duration_ns"] > 12 * 200_000


def test_the_pageable_copy_blocks_its_call_beyond_the_transfer(demo: Demo) -> None:
    (found,) = problem(demo, "pageable_copy")
    rows = demo.rows(
        f"SELECT m.start, m.end, m.bytes, c.end FROM {CAK}MEMCPY m JOIN ({CALLS}) c"
        " ON c.correlationId = m.correlationId AND (c.globalTid >> 24) = (m.globalPid >> 24)"
        " WHERE m.dstKind = 0"
    )
    assert len(rows) == 1
    start, end, size, returned = rows[0]
    assert found["window"][0] == start
    assert (found["copy_ns"], found["copy_bytes"]) == (end - start, size)
    assert end < returned <= found["window"][1]
    assert found["duration_ns"] == found["window"][1] - end


def test_the_launch_bound_phase_meets_the_definition_and_is_maximal(demo: Demo) -> None:
    for found in problem(demo, "launch_bound"):
        run = kernels_in(demo, found)
        assert len(run) == found["operations"] >= 20
        assert all(end - start < 20_000 for start, end, _, _ in run)
        gaps = [b[0] - a[1] for a, b in pairwise(run)]
        assert max(gaps) <= 50_000
        assert sum(gaps) == found["idle_ns"] >= found["duration_ns"] / 4
        late = sum(b[3] > a[1] for a, b in pairwise(run))
        assert late == found["late_calls"] >= len(run) / 2
        around = {**found, "window": [run[0][0] - 50_000, run[-1][1] + 50_000]}
        assert kernels_in(demo, around) == run


def test_the_exposed_collective_is_hidden_by_no_compute(demo: Demo) -> None:
    for found in problem(demo, "exposed_communication"):
        names = [name for _, _, name, _ in kernels_in(demo, found)]
        assert [name for name in names if not name.startswith(("nccl", "["))] == []
        assert found["duration_ns"] == found["kernel_ns"]


def test_one_step_is_the_slowest_on_every_rank(demo: Demo) -> None:
    for rank in (0, 1):
        times = {s["name"]: s["time_ns"] for s in demo.truth["step_times"] if s["rank"] == rank}
        steady = [ns for name, ns in times.items() if name != "Train step 0"]
        assert max(times, key=lambda name: times[name]) == "Train step 8"
        assert times["Train step 8"] > 1.3 * sorted(steady)[-2]


def test_the_straggler_is_twelve_percent_slower(demo: Demo) -> None:
    (found,) = problem(demo, "straggler")
    assert found["compute_ns"] / found["other_compute_ns"] == pytest.approx(1.12, abs=0.005)
