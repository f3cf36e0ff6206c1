from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from synth import NONE32, Synth, global_pid, global_tid

from nsys_tui.demo.schema import GENERATIONS

if TYPE_CHECKING:
    from pathlib import Path


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def full(path: Path, generation: str) -> Synth:
    """At least one event of every kind."""
    return (
        Synth(path, schema=generation)
        .process(100, "train")
        .gpu(0)
        .cuda_device(100, 0, 0)
        .thread(100, "main")
        .stream_info(7, name="main stream")
        .context_info()
        .nvtx("step 1", 0, 900)
        .nvtx("r", 10, None, registered=True, domain=1)
        .domain(1, "NCCL", -5)
        .mark("m", 3)
        .launch("void gemm<float>(float*)", call=(10, 20), gpu=(100, 400))
        .memcpy(1, 2, src="pageable")
        .memset(3, 4)
        .graph(5, 9)
        .graph_event(95, 1, graphId=1)
        .sync(1, 9)
        .cuda_event(4, 1)
        .memory_usage(1, 100)
        .gpu_metric(1, "SM Active", 50)
        .gpu_metric(2, "DRAM", 7)
        .api("cudaMalloc_v3020", 1, 2, frames=["a", "b"], event_class=67)
        .osrt("poll", 1, 2, frames=["poll"])
        .sample(3, ["a", "b"])
        .sched(1, True)
        .overhead("CUDA init", 1, 2)
        .cuda_overhead("x", 1, 2, 6)
        .mpi("MPI_Send", 1, 2, "p2p", size=8)
        .mpi("MPI_Wait", 2, 3, "wait")
        .mpi_rank(0)
        .diagnostic("hello")
        .session(1000)
        .environment("Hostname", "h")
        .meta("A", "b", capture=True)
    )


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_kind_of_event_fits_every_generation(generation: str, tmp_path: Path) -> None:
    path = full(tmp_path / "r.sqlite", generation).write()
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert rows(path, "SELECT text, domainId, end FROM NVTX_EVENTS ORDER BY start LIMIT 2") == [
        ("NCCL", 1, None),
        ("step 1", 0, 900),
    ]
    names = {name for (name,) in rows(path, "SELECT name FROM sqlite_master")}
    assert ("EXPORT_META_DATA" in names) == generation.startswith("2022")


def test_a_launch_joins_its_kernel_and_names_are_split(tmp_path: Path) -> None:
    path = Synth(tmp_path / "r.sqlite").launch("void ns::gemm<4>(f*)", (1, 2), (3, 9)).write()
    assert rows(
        path,
        "SELECT k.start, k.end, c.start, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k"
        " JOIN CUPTI_ACTIVITY_KIND_RUNTIME c USING (correlationId)"
        " JOIN StringIds s ON s.id = k.shortName",
    ) == [(3, 9, 1, "ns::gemm")]


def test_ids_are_packed_and_signed() -> None:
    assert global_tid(0x123456, 0xABCDEF) == 0x0001_1234_56AB_CDEF
    assert global_pid(1, hw_vm=0x8000) == (0x8000 << 48 | 1 << 24) - 2**64


def test_defaults_use_the_current_process(tmp_path: Path) -> None:
    path = Synth(tmp_path / "r.sqlite").process(7).sync(1, 2, "context").nvtx("a", 1, 2).write()
    assert rows(path, "SELECT globalTid FROM NVTX_EVENTS") == [(global_tid(7, 7),)]
    found = rows(path, "SELECT syncType, eventId FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION")
    assert found == [(4, NONE32)]


def test_columns_no_generation_has_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="colour"):
        Synth(tmp_path / "r.sqlite").nvtx("a", 1, 2, colour=3)


def test_tables_and_columns_can_be_left_out_emptied_and_replaced(tmp_path: Path) -> None:
    path = (
        Synth(
            tmp_path / "r.sqlite",
            omit_tables=["CUPTI_ACTIVITY_KIND_MEMSET"],
            omit_columns={"NVTX_EVENTS": ["color"]},
            empty_tables=["OSRT_API"],
            enums=False,
        )
        .nvtx("a", 1, 2)
        .memset(1, 2)
        .raw("PROCESSES", ["globalPid INTEGER", "extra"], [(1, "x")])
        .sql("CREATE VIEW broken AS SELECT * FROM NOWHERE")
        .write()
    )
    names = {name for (name,) in rows(path, "SELECT name FROM sqlite_master")}
    assert "CUPTI_ACTIVITY_KIND_MEMSET" not in names
    assert not [name for name in names if name.startswith("ENUM_")]
    assert rows(path, "SELECT count(*) FROM OSRT_API") == [(0,)]
    assert rows(path, "SELECT * FROM PROCESSES") == [(1, "x")]
    assert "color" not in [r[1] for r in rows(path, "PRAGMA table_info(NVTX_EVENTS)")]
    assert "broken" in names
