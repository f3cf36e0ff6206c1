from __future__ import annotations

import sqlite3

import pytest
from paths import REPORTS, needs_reports

from nsys_tui.demo import schema
from nsys_tui.demo.write import enum_tables

REAL = {
    "2021": "no-metadata-old",
    "2022.1": "windows-streams-2022.1",
    "2022.4": "nvtx-only-2022.4",
    "2023.3": "nsys-stats-2023.3",
    "2024.5": "cloverleaf-a100-2024.5",
    "2025.1": "uvm-migration-2025.1",
    "2025.5": "cuda-graph-2025.5",
    "2026.2": "pytorch-nccl-2gpu-2026.2",
}


def _columns(connection: sqlite3.Connection, table: str) -> list[tuple[object, ...]]:
    rows = connection.execute(f'PRAGMA table_info("{table}")').fetchall()
    return [(name, kind, not_null, key) for _, name, kind, not_null, _, key in rows]


@needs_reports
@pytest.mark.parametrize("generation", REAL)
def test_tables_have_the_columns_of_a_real_export_of_that_age(generation: str) -> None:
    uri = f"file:{REPORTS / REAL[generation]}.sqlite?immutable=1"
    real = sqlite3.connect(uri, uri=True)
    ours = sqlite3.connect(":memory:")
    compared = 0
    for name, table in schema.tables(generation).items():
        ours.execute(table.sql)
        expected = _columns(real, name)
        if expected:
            assert _columns(ours, name) == expected, name
            compared += 1
    assert compared > 5
    real.close()


@pytest.mark.parametrize(
    ("generation", "absent", "present"),
    [
        ("2021", "META_DATA_EXPORT EXPORT_META_DATA PROCESSES ANALYSIS_DETAILS", "StringIds"),
        ("2022.1", "META_DATA_EXPORT TARGET_INFO_CUDA_DEVICE", "EXPORT_META_DATA PROCESSES"),
        ("2023.3", "EXPORT_META_DATA UnwindMethodType", "META_DATA_EXPORT META_DATA_CAPTURE"),
        ("2025.5", "TARGET_INFO_CUDA_NULL_STREAM", "TARGET_INFO_CUDA_DEVICE DIAGNOSTIC_EVENT"),
        ("2026.2", "EXPORT_META_DATA", "NVTX_PAYLOAD_SCHEMAS CUPTI_ACTIVITY_KIND_OVERHEAD"),
    ],
)
def test_tables_come_and_go_with_the_generations(
    generation: str, absent: str, present: str
) -> None:
    found = set(schema.tables(generation))
    assert not found & set(absent.split())
    assert set(present.split()) <= found


def test_enumerations_appear_in_2022_4_with_the_misspelt_name() -> None:
    assert enum_tables((2022, 1, 1)) == {}
    assert "ENUM_CUDA_KRENEL_LAUNCH_TYPE" in enum_tables((2022, 4, 2))
    assert "ENUM_CUDA_KERNEL_LAUNCH_TYPE" in enum_tables((2023, 3, 3))
    assert (1, "CUDA_MEMCPY_KIND_HOST-TO-DEVICE", "Host-to-Device") in enum_tables((2025, 1))[
        "ENUM_CUDA_MEMCPY_OPER"
    ]
