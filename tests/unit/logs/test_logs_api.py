"""CALL lines: what a program called, beside what NCCL says it launched."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from loglines import body, info, read

from nsys_tui.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

WHO = "node01:1000:2000 NCCL CALL"
LINES = [
    f"{WHO} ncclCommInitRank(0x55d5f5ac09e0,2,0xde843772bfa53d08,0,0)",
    f"{WHO} ncclGroupStart()",
    f"{WHO} ncclAllReduce(7f00,7f00,1024,7,0,0,0x5500a0,0x6600b0)",
    info(body("AllReduce", 5)),
    f"{WHO} ncclAllReduce(7f10,7f20,1024,7,0,0,0x5500a0,0x6600b0)",
    f"{WHO} ncclBcast(7f10,7f20,9007199254740993,0,0,3,5500a0,(nil))",
    "node01:1001:2001 NCCL CALL ncclAllReduce(1,2,1024,7,0,0,0x1,0x2)",
    f"{WHO} ncclGroupEnd()",
    f"{WHO} ncclAllReduce(7f10,7f2",
]


def test_calls_are_listed_with_their_arguments(tmp_path: Path) -> None:
    result = read(tmp_path, LINES)
    assert result.files[0].call_lines == len(result.api) == 8
    assert len(result.calls) == 1
    assert result.processes[0].pid == 1000
    listed = [
        (line, one.function, one.op, one.count, one.dtype, one.bytes, one.root, in_place)
        for _, line, one, in_place in result.api.rows()
    ]
    assert listed[2] == (3, "ncclAllReduce", "AllReduce", 1024, "fp32", 4096, 0, True)
    assert listed[3] == (5, "ncclAllReduce", "AllReduce", 1024, "fp32", 4096, 0, False)
    big = 2**53 + 1
    assert listed[4] == (6, "ncclBcast", "Broadcast", big, "int8", big, 3, False)
    made, started, *_, bcast, _, ended, torn = [one for _, _, one, _ in result.api.rows()]
    assert (made.function, made.count) == ("ncclCommInitRank", -1)
    assert made.arguments == "0x55d5f5ac09e0,2,0xde843772bfa53d08,0,0"
    assert (started.arguments, ended.arguments) == ("", "")
    assert (bcast.pointer, bcast.stream) == ("0x5500a0", "(nil)")
    assert (torn.function, torn.count) == ("ncclAllReduce", -1)


def test_calls_are_summed_by_function_and_size(tmp_path: Path) -> None:
    rows = read(tmp_path, LINES).api.per_function()
    found = {(r.function, r.count, r.dtype, r.reduction): (r.calls, r.processes) for r in rows}
    assert found["ncclAllReduce", 1024, "fp32", "sum"] == (3, 2)
    assert found["ncclBcast", 2**53 + 1, "int8", ""] == (1, 1)
    assert found["ncclGroupStart", -1, "", ""] == (1, 1)
    assert sum(row.calls for row in rows) == 8


def test_every_file_keeps_its_own_lines(tmp_path: Path) -> None:
    result = read(tmp_path, LINES[:3], LINES[:1], LINES[6:7])
    places = [(file, line, one.process) for file, line, one, _ in result.api.rows()]
    assert [(file, line) for file, line, _ in places] == [(0, 1), (0, 2), (0, 3), (1, 1), (2, 1)]
    assert [result.processes[p].pid for _, _, p in places] == [1000] * 4 + [1001]


def test_the_command_prints_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "a.log"
    log.write_text("\n".join(LINES) + "\n")
    assert main(["logs", str(log), "--section", "api", "--section", "api-calls"]) == 0
    text = capsys.readouterr().out
    assert "ncclCommInitRank" in text
    assert "9,007,199,254,740,993" in text
    assert main(["logs", str(log), "--format", "json", "--calls"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["collective_lines"] == 1
    assert found["call_lines"] == 8
    assert sum(row["calls"] for row in found["api"]) == 8
    assert found["api_calls"][2] == {
        "file": str(log), "line": 3, "host": "node01", "pid": 1000, "function": "ncclAllReduce",
        "count": 1024, "dtype": "fp32", "bytes": 4096, "reduction": "sum", "root": 0,
        "comm": "0x5500a0", "stream": "0x6600b0", "in_place": True, "arguments": None,
    }  # fmt: skip
    assert found["api_calls"][1]["arguments"] is None
    assert len(found["api_calls"]) == 8
