"""MPI logger lines, NVTX texts and payloads, and advice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from loglines import body, info, init, nemo, read

from nsys_tui.logs.sections.advice import advise
from nsys_tui.model.collective_sizes import parse_patched_text, parse_payload

if TYPE_CHECKING:
    from pathlib import Path

MPI = [
    "[12.000000] MPI_Init: world_rank=3",
    "[12.500000] MPI_Send: -> dest=1 tag=7 bytes=100 comm=0x44",
    "[12.600000] MPI_Recv: <- source=1 tag=7 bytes=50 comm=0x44",
    "[12.700000] MPI_Sendrecv: send-> dest=1 send_bytes=8 ; recv<- source=2 recv_bytes=4",
    "[12.800000] MPI_Bcast: root=0 comm_size=4 bytes=4000000000 comm=0x44",
    "[12.900000] MPI_Bcast: root=0 comm_size=4 bytes=4000000000 comm=0x44",
    "[13.000000] MPI_Allgather: send_bytes=16 recv_bytes=64 comm=0x44",
    "[13.100001] MPI_Finalize: world_rank=3",
]


def test_mpi_logger(tmp_path: Path) -> None:
    log = read(tmp_path, MPI).mpi
    rows = {row.name: (row.calls, row.min_bytes, row.total_bytes) for row in log.per_call()}
    assert rows == {
        "MPI_Bcast": (2, 4_000_000_000, 8_000_000_000),
        "MPI_Send": (1, 100, 100),
        "MPI_Allgather": (1, 80, 80),
        "MPI_Recv": (1, 50, 50),
        "MPI_Sendrecv": (1, 12, 12),
        "MPI_Init": (1, 0, 0),
        "MPI_Finalize": (1, 0, 0),
    }
    assert log.per_call()[0].name == "MPI_Bcast"
    assert log.world_ranks == [3]
    assert log.torn_lines == 0


@pytest.mark.parametrize(
    ("line", "calls"),
    [
        ("[12.5] MPI_Send: -> dest=1 tag=7 byt[13.0] MPI_Bcast: root=0 bytes=8", 2),
        ("000] MPI_Send: -> dest=1 tag=7 bytes=100 comm=0x44", 0),
        ("[1.0] MPI_Send: -> dest", 0),
    ],
)
def test_torn_mpi_lines(tmp_path: Path, line: str, calls: int) -> None:
    log = read(tmp_path, [*MPI, line]).mpi
    assert log.torn_lines == 1
    assert log.calls == len(MPI) + calls


def test_text_of_a_patched_nccl_gives_bytes_as_they_are() -> None:
    text = "ncclAllReduce(): commHash 0x1f, stream 0x55, data_size 4096, type_size 4, pid 77"
    assert parse_patched_text(text) == (4096, "0x1f")
    assert parse_patched_text("ncclAllReduce") is None
    assert parse_patched_text("commHash 0x1f, data_size 4") is None


@pytest.mark.parametrize(
    ("name", "payload", "expected"),
    [
        ("ncclAllReduce", {"Message size [bytes]": 4096}, (4096, "")),
        ("ncclBroadcast", {"Bytes": 8, "Root": 2}, (8, "")),
        (
            "ncclSend",
            {"NCCL communicator ID": 12345678901234567890, "Message size [bytes]": 1, "Peer": 3},
            (1, "12345678901234567890"),
        ),
        ("ncclRecv", {"payload": [{"Bytes": "77"}]}, (77, "")),
    ],
)
def test_payload_of_stock_nccl(name: str, payload: object, expected: object) -> None:
    assert parse_payload(name, json.dumps(payload)) == expected


@pytest.mark.parametrize("payload", ["", "{", "[]", "{}", '{"Bytes": null}', '{"Bytes": "x"}', "3"])
def test_payloads_without_a_size(payload: str) -> None:
    assert parse_payload("ncclSend", payload) is None


def test_payload_of_another_range() -> None:
    assert parse_payload("forward", '{"Bytes": 8}') is None


def said(folder: Path, lines: list[str], **options: object) -> dict[str, str]:
    return {one.text: one.severity for one in advise(read(folder, lines, **options))}


def find(texts: dict[str, str], word: str) -> list[str]:
    return [severity for text, severity in texts.items() if word in text]


@pytest.mark.parametrize(
    "line",
    [
        "export NCCL_DEBUG_TIME=1",
        info("NCCL_DEBUG_TIME set by environment to 1."),
        "NCCL_DEBUG_TIME",
    ],
)
def test_debug_time_is_warned_about(tmp_path: Path, line: str) -> None:
    texts = said(tmp_path, [line, info(body())])
    assert find(texts, "NCCL_DEBUG_TIME is no variable of NCCL") == ["warning"]
    assert find(texts, "NCCL_DEBUG_TIMESTAMP_LEVELS=INFO") == ["warning"]


def test_the_right_variable_is_no_reason_to_warn(tmp_path: Path) -> None:
    lines = ["export NCCL_DEBUG_TIMESTAMP_LEVELS=INFO", f"[2025-07-25 19:54:57] {info(body())}"]
    assert find(said(tmp_path, lines), "NCCL_DEBUG_TIME") == []


def test_lines_without_time_get_a_note(tmp_path: Path) -> None:
    assert find(said(tmp_path, [info(body())]), "NCCL_DEBUG_TIME") == ["note"]


def test_advice_on_what_is_missing(tmp_path: Path) -> None:
    assert find(said(tmp_path, [info(body())]), "no Init lines") == ["note"]
    with_init = [info(init("0x5500a0", 0, 8)), info(body())]
    assert find(said(tmp_path, with_init), "no Init lines") == []
    assert find(said(tmp_path, [info(body())]), "durations and bandwidth") == ["note"]
    assert find(said(tmp_path, [body()]), "torn") == ["warning"]
    assert find(said(tmp_path, [info(body(datatype=99))]), "unknown data type") == ["warning"]
    other_device = [info(init("0x5500a0", 0, 8)), info(body(), dev=3)]
    assert find(said(tmp_path, other_device), "[brackets]") == ["note"]


def test_advice_on_windows(tmp_path: Path) -> None:
    lines = [info(body()), nemo(45), info(body()), nemo(46), nemo(47)]
    assert find(said(tmp_path, lines, legacy_window=True), "46 to 47") == ["warning"]
    assert find(said(tmp_path, lines, steps=(90, 99)), "no step line from 90 to 99") == ["warning"]
    assert find(said(tmp_path, lines, steps=(45, 46)), "window") == []


def test_advice_on_intervals_and_mixed_trainers(tmp_path: Path) -> None:
    megatron = " iteration {}/ 99 | elapsed time per iteration (ms): 1.0 |"
    lines = [megatron.format(n) for n in (10, 20, 30)]
    assert find(said(tmp_path, lines, steps=(10, 20)), "every 10 steps") == ["note"]
    assert find(said(tmp_path, [*lines, nemo(1)]), "several trainers; megatron") == ["note"]
    llmc = "step 1/9 | loss 1.0 | norm 1.0 | lr 1e-3 | 300.00 ms | 1% bf16 MFU | 7 tok/s"
    assert find(said(tmp_path, [llmc]), "--flops-per-token") == ["note"]
