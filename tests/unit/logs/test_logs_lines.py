"""What a line says: headers behind every prefix, bodies of every layout, torn and cut lines."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from loglines import body, info, nemo, read

from nsys_tui.errors import UnreadableReportError
from nsys_tui.logs.line_prefixes import NO_TIME
from nsys_tui.logs.nccl.hangs import find_hangs
from nsys_tui.logs.sections.advice import advise

if TYPE_CHECKING:
    from pathlib import Path

LINE = info(body())


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("", -1),
        ("3: ", 3),
        (" 3: ", 3),
        ("[default3]:", -1),
        ("job-demo/0 [default0]:", -1),
        ("[1,6]<stdout>:", 6),
        ("(RayTrainWorker pid=615, ip=10.72.7.6) ", -1),
        ("worker-0 stdout F ", -1),
        ("\x1b[36m", -1),
        ("2: \x1b[1;33m", 2),
    ],
)
def test_prefixes(tmp_path: Path, prefix: str, rank: int) -> None:
    result = read(tmp_path, [prefix + LINE, prefix + info(body(op_count=6))])
    (process,) = result.processes
    assert (process.host, process.pid, process.rank) == ("node01", 1000, rank)
    assert len(result.calls) == 2
    assert result.calls.select().thread.tolist() == [2000, 2000]
    assert result.files[0].torn_lines == 0
    assert result.files[0].header_lines == 2


@pytest.mark.parametrize(
    ("prefix", "seconds"),
    [
        ("[2025-07-25 19:54:57] ", 0),
        ("[2025-07-25_19:54:57] ", 0),
        ("2025-07-25 19:54:57.101122 ", 101_122_000),
        ("2025-07-25T19:54:57,5Z ", 500_000_000),
        ("2025-07-25T21:54:57.000000007+02:00 ", 7),
        ("3: [2025-07-25 19:54:57] ", 0),
    ],
)
def test_times_in_front(tmp_path: Path, prefix: str, seconds: int) -> None:
    result = read(tmp_path, [prefix + info(body(op_count=n)) for n in range(3)])
    # 2025-07-25 19:54:57 is 1753473297 seconds after 1970, by the calendar.
    assert set(result.calls.select().time_ns.tolist()) == {1_753_473_297 * 10**9 + seconds}
    assert result.files[0].timed
    assert [process.host for process in result.processes] == ["node01"]


def test_time_of_rccl_stands_behind_the_device(tmp_path: Path) -> None:
    line = f"h:1:2 [1] 1558545003174220 NCCL INFO {body()}"
    result = read(tmp_path, [line])
    assert result.calls.select().time_ns.tolist() == [1_558_545_003_174_220_000]
    assert result.calls.select().device.tolist() == [1]


def test_without_a_time_there_is_none(tmp_path: Path) -> None:
    result = read(tmp_path, [LINE])
    assert result.calls.select().time_ns.tolist() == [NO_TIME]
    assert not result.files[0].timed


def test_columns_of_a_call(tmp_path: Path) -> None:
    line = info(
        body(
            "Send",
            0xD60,
            count=2420736,
            datatype=9,
            root=3,
            comm="0x7f51",
            nranks=4,
            stream="(nil)",
            buffers=("(nil)", "0x1"),
        ),
        dev=2,
        tid=77,
    )
    (row,) = read(tmp_path, ["", line]).calls.rows()
    expected = {
        "line": 2,
        "op": "Send",
        "count": 2420736,
        "dtype": "bf16",
        "bytes": 4841472,
        "root": 3,
        "op_count": 0xD60,
        "nranks": 4,
        "stream": "(nil)",
        "thread": 77,
        "device": 2,
        "in_place": False,
        "torn": False,
        "reduction": "",
    }
    assert {name: getattr(row, name) for name in expected} == expected


def test_reduction_and_in_place(tmp_path: Path) -> None:
    same = info(body("ReduceScatter", reduction=4, buffers=("0x1", "0x1")))
    made = info(body("AllReduce", reduction=7))
    rows = list(read(tmp_path, [same, made, info(body("Broadcast"))]).calls.rows())
    assert [row.reduction for row in rows] == ["avg", "user 7", ""]
    assert [row.in_place for row in rows] == [True, False, False]


def test_rccl_layouts(tmp_path: Path) -> None:
    lines = [
        info(body(acc="acc (nil) ", comm="0x0")),
        info(body("AllGather") + " task 12 globalrank 7", pid=5),
    ]
    result = read(tmp_path, lines)
    assert len(result.calls) == 2
    assert result.files[0].torn_lines == 0
    assert [process.rank for process in result.processes] == [-1, 7]


@pytest.mark.parametrize(
    "line",
    [
        LINE[: LINE.index("stream")],
        LINE[: LINE.index("count 1024") + 9],
        LINE.replace("sendbuff", "sendbufnode01:1:2 [0] NCCL INFO hello"),
        LINE.replace("count 1024", f"count {10**19}"),
        LINE.replace("opCount 5", "opCount xyz"),
        LINE.replace("opCount 5", "opCount " + "f" * 17),
    ],
)
def test_half_a_body_is_torn_and_no_call(tmp_path: Path, line: str) -> None:
    result = read(tmp_path, [line, info(body("AllGather"))])
    assert [result.calls.ops[op] for op in result.calls.select().op] == ["AllGather"]
    assert result.files[0].torn_lines == 1


def test_whole_body_after_a_cut_line_belongs_to_the_last_header(tmp_path: Path) -> None:
    cut = info("comm 0x5584 rank 1 nr", pid=1)
    line = cut + info(body("AllGather"), pid=2, dev=3)
    result = read(tmp_path, [info("Using network IB", pid=2), info("x", pid=2), line])
    (row,) = result.calls.rows()
    process = result.processes[row.process]
    assert (process.host, process.pid, row.device, row.torn) == ("node01", 2, 3, True)
    assert [(p.host, p.pid) for p in result.processes] == [("node01", 2)]
    assert result.files[0].torn_lines == 1


def test_two_bodies_in_one_line_are_both_used(tmp_path: Path) -> None:
    result = read(tmp_path, [info(body("AllGather")) + info(body("Broadcast")), LINE])
    assert [result.calls.ops[op] for op in result.calls.select().op] == [
        "AllGather",
        "Broadcast",
        "AllReduce",
    ]
    assert result.calls.select().torn.tolist() == [True, True, False]
    assert result.calls.select().line.tolist() == [1, 1, 2]
    assert result.files[0].torn_lines == 1


@pytest.mark.parametrize("start", ["", "NCCL INFO ", "some text "])
def test_body_without_header_counts_for_sizes_only(tmp_path: Path, start: str) -> None:
    result = read(tmp_path, [start + body()])
    assert len(result.calls) == 1
    assert result.calls.select().process.tolist() == [-1]
    assert result.calls.select().rank.tolist() == [-1]
    assert result.files[0].torn_lines == 1


def test_program_output_glued_before_a_header_is_not_torn(tmp_path: Path) -> None:
    lines = [LINE, "   8388608  float  sum  -1" + LINE]
    result = read(tmp_path, lines)
    assert [process.host for process in result.processes] == ["node01"]
    assert set(result.calls.select().process.tolist()) == {0}
    assert result.files[0].torn_lines == 0
    assert result.files[0].header_not_at_column_0 == 1


def test_a_message_that_fills_the_buffer_is_cut(tmp_path: Path) -> None:
    trees = "Trees" + "".join(f" [{c}] 1/-1/-1->0->-1" for c in range(100))
    line = info(trees)[:1023]
    short = info(trees)[:900]
    result = read(tmp_path, [line, short])
    assert result.files[0].cut_lines == 1


@pytest.mark.parametrize(
    "line",
    [
        "node:1:2 [0] ofi_init:1134 NCCL WARN NET/OFI Only EFA provider is supported",
        "node:1:2 [0] misc/socket.cc:550 NCCL WARN NET/OFI Only EFA provider is supported",
        "[2026-04-28 14:14:48] node:1:2 [0] init.cc:12 (ncclInit) NCCL WARN "
        "NET/OFI Only EFA provider is supported",
    ],
)
def test_warnings_of_every_generation(tmp_path: Path, line: str) -> None:
    result = read(tmp_path, ["", line])
    assert result.warnings == (("NET/OFI Only EFA provider is supported", 1),)
    assert result.files[0].header_lines == 1


def test_call_and_trace_lines(tmp_path: Path) -> None:
    lines = [
        "node:1:2 NCCL CALL ncclAllReduce(7f,7f,1,7,0,0,55,66)",
        "node:1:2 [0] 1234.567 init.cc:12 NCCL TRACE something",
    ]
    result = read(tmp_path, lines)
    assert result.files[0].call_lines == 1
    assert result.files[0].header_lines == 2


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("NCCL version 2.10.3+cuda11.3", "2.10.3+cuda11.3"),
        (info("NCCL version 2.27.7+cuda13.0"), "2.27.7+cuda13.0"),
        ("RCCL version 2.18.6+hip6.0 HEAD:abc", "RCCL 2.18.6+hip6.0"),
    ],
)
def test_versions(tmp_path: Path, line: str, version: str) -> None:
    assert read(tmp_path, [line]).files[0].versions == (version,)


def test_line_ends_and_encodings(tmp_path: Path) -> None:
    for number, data in enumerate(
        [
            f"{LINE}\r\n{LINE}\r\n".encode(),
            f"{LINE}\n{LINE}".encode(),
            f"{LINE}\n{LINE}\n".encode("utf-16"),
            gzip.compress(f"{LINE}\n{LINE}\n".encode()),
            b"\xff\xfa caf\xe9 " + f"{LINE}\n{LINE}\n".encode(),
            b"\0" * 100_000 + f"{LINE}\n".encode() + b"\0" * 999 + f"{LINE}\n".encode(),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        result = read(folder, data)
        assert result.calls.select().bytes.tolist() == [4096, 4096], number
        assert result.files[0].lines == 2, number
        assert [process.host for process in result.processes] == ["node01"], number


def test_lines_longer_than_a_block(tmp_path: Path) -> None:
    data = f"{LINE}\n".encode() + b"x" * (9 << 20) + f" {LINE}\n{LINE}\n".encode()
    result = read(tmp_path, data)
    assert result.calls.select().line.tolist() == [1, 2, 3]
    assert result.files[0].lines == 3


def test_calls_across_blocks_keep_their_line_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [info(body(op_count=n)) if n % 3 else nemo(n) for n in range(1, 50)]
    whole = read(tmp_path, lines)
    monkeypatch.setattr("nsys_tui.logs.textfile.BLOCK_BYTES", 700)
    split = read(tmp_path, lines)
    for name in ("line", "op_count", "step"):
        there, here = (getattr(one.calls.select(), name) for one in (split, whole))
        assert there.tolist() == here.tolist()
    assert whole.calls.select().op_count.tolist() == [n for n in range(1, 50) if n % 3]
    assert whole.calls.select().line.tolist() == [n for n in range(1, 50) if n % 3]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_compressed_log_that_is_being_written_gives_what_it_has(
    tmp_path: Path, share: float
) -> None:
    lines = [info(body(op_count=n, count=n * n * 7919)) for n in range(1, 20_000)]
    packed = gzip.compress("".join(f"{line}\n" for line in lines).encode())
    result = read(tmp_path, packed[: int(len(packed) * share)])
    found = result.calls.select().op_count.tolist()
    assert found == list(range(1, len(found) + 1))
    assert abs(len(found) / len(lines) - share) < 0.15
    assert result.files[0].cut_short
    assert any("ends in the middle" in one.text for one in advise(result))


def test_gzip_members_one_after_another_are_one_log(tmp_path: Path) -> None:
    parts = [gzip.compress(f"{info(body(op_count=n))}\n".encode()) for n in range(3)]
    result = read(tmp_path, b"".join(parts) + b"\0" * 512)
    assert result.calls.select().op_count.tolist() == [0, 1, 2]
    assert not result.files[0].cut_short


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    cases = {
        b"SQLite format 3\0" + b"\1" * 99: "database",
        bytes(range(256)) * 40: "binary",
        b"\x1f\x8b" + b"no gzip" * 99: "cannot read",
    }
    for data, word in cases.items():
        with pytest.raises(UnreadableReportError, match=word) as caught:
            read(tmp_path, data)
        assert "rank0.log" in caught.value.title
        assert caught.value.hint


def test_one_bad_file_among_others_is_skipped_and_named(tmp_path: Path) -> None:
    result = read(tmp_path, b"\x7fELF" + bytes(range(256)) * 10, [LINE])
    assert len(result.calls) == 1
    ((path, why),) = result.skipped
    assert path.endswith("rank0.log")
    assert "binary" in why


def test_numbers_that_no_machine_has_end_nowhere(tmp_path: Path) -> None:
    line = info(body(op_count=2**64 - 1, count=10**18 - 1, datatype=8, nranks=999_999_999))
    head = f"99999999999999999999.1: {line.replace('NCCL', '9' * 40 + ' NCCL')}"
    result = read(tmp_path, [head] * 3)
    assert result.calls.select().bytes.tolist() == [8 * (10**18 - 1)] * 3
    assert (result.calls.select().time_ns == result.calls.select().time_ns.min()).all()
    assert find_hangs(result).drifts == ()


@pytest.mark.parametrize(("length", "cut"), [(1023, 1), (1022, 0)])
def test_a_stamp_of_its_own_counts_in_the_buffer_of_nccl(
    tmp_path: Path, length: int, cut: int
) -> None:
    stamp = "[2026-01-16 06:33:24] "
    lines = [stamp + info("Using network IB"), (stamp + info("Trees " + "x" * 1023))[:length]]
    assert read(tmp_path, lines).files[0].cut_lines == cut


@pytest.mark.parametrize("half", [info(body())[:90], "[1.6] MPI_Recv: byt"])
def test_a_log_cut_in_its_last_line_is_not_torn(tmp_path: Path, half: str) -> None:
    whole = f"{info(body(op_count=0))}\n[1.5] MPI_Send: bytes=4\n"
    cut = read(tmp_path, whole + half)
    said = [one.text for one in advise(cut)]
    assert [text.rpartition("/")[2] for text in said if "middle" in text] == [
        "rank0.log' ends in the middle: what stands before that was read"
    ]
    assert not any("torn" in text for text in said)
    torn = read(tmp_path, f"{whole}{half}\n")
    assert any("torn" in one.text for one in advise(torn))
