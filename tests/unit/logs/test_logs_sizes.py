"""Sums, buckets, owners and traffic of collectives; exact whatever their size."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from loglines import body, info, init, read

from nsys_tui.errors import UsageError
from nsys_tui.logs.nccl import statistics
from nsys_tui.logs.result import restrict
from nsys_tui.model.collective_sizes import buffer_bytes, wire_bytes, wire_factor

if TYPE_CHECKING:
    from pathlib import Path


def test_sums_beyond_63_bits_are_exact(tmp_path: Path) -> None:
    count = 10**18 - 1
    lines = [info(body(count=count, datatype=8)) for _ in range(5)]
    lines.append(info(body(count=3, datatype=0)))
    (row,) = statistics.per_op(read(tmp_path, lines).calls.sums)
    assert row.total_bytes == 5 * 8 * count + 3 > 2**64
    assert (row.min_bytes, row.max_bytes, row.calls) == (3, 8 * count, 6)
    assert row.mean_bytes == Fraction(40 * count + 3, 6)


@pytest.mark.parametrize(
    ("code", "name", "size"),
    [
        (0, "int8", 1),
        (1, "uint8", 1),
        (2, "int32", 4),
        (3, "uint32", 4),
        (4, "int64", 8),
        (5, "uint64", 8),
        (6, "fp16", 2),
        (7, "fp32", 4),
        (8, "fp64", 8),
        (9, "bf16", 2),
        (10, "fp8_e4m3", 1),
        (11, "fp8_e5m2", 1),
    ],
)
def test_data_types(tmp_path: Path, code: int, name: str, size: int) -> None:
    (row,) = statistics.aggregate(read(tmp_path, [info(body(count=7, datatype=code))]).calls.sums)
    assert (row.dtype, row.bytes) == (name, 7 * size)


def test_an_unknown_type_is_counted_but_in_no_sum(tmp_path: Path) -> None:
    calls = read(tmp_path, [info(body(datatype=12)), info(body(count=2))]).calls.sums
    (row,) = statistics.per_op(calls)
    assert (row.calls, row.unsized, row.total_bytes, row.min_bytes) == (2, 1, 8, 8)
    assert [b.calls for b in statistics.histogram(calls)] == [1]
    assert {(r.dtype, r.bytes) for r in statistics.aggregate(calls)} == {
        ("type 12", -1),
        ("fp32", 8),
    }


def test_bucket_bounds_belong_to_the_bucket_above(tmp_path: Path) -> None:
    sizes = [0, 65535, 65536, 2**20 - 1, 2**20, 2**24 - 1, 2**24]
    lines = [info(body(count=size, datatype=0)) for size in sizes]
    calls = read(tmp_path, lines).calls.sums
    found = {row.bucket: row.calls for row in statistics.histogram(calls)}
    assert found == {"<64KB": 2, "64KB-1MB": 2, "1MB-16MB": 2, ">16MB": 1}
    own = statistics.histogram(calls, statistics.parse_bounds("1, 1MiB,3MB"))
    assert {row.bucket: row.calls for row in own} == {
        "<1B": 1,
        "1B-1MB": 3,
        "1MB-3MB": 1,
        ">3MB": 2,
    }


@pytest.mark.parametrize("text", ["", "abc", "2,1", "1,1", "1MB;2MB", "99999999T", "-1"])
def test_bad_bounds(text: str) -> None:
    with pytest.raises(UsageError):
        statistics.parse_bounds(text)


def test_per_gpu_and_communicator(tmp_path: Path) -> None:
    lines = [info(init(f"0x{r}", r, 2, device=r), tid=r) for r in (0, 1)]
    lines += [info(body(comm="0x0", nranks=2, count=1))] * 2
    lines += [info(body(comm="0x1", nranks=2, count=10)), info(body("Broadcast", comm="0x1"))]
    result = read(tmp_path, lines)
    sums = result.calls.sums
    rows = statistics.per_owner(sums, sums.gpu)
    assert [(r.owner, r.op, r.calls, r.total_bytes) for r in rows] == [
        (0, "AllReduce", 2, 8),
        (1, "AllReduce", 1, 40),
        (1, "Broadcast", 1, 4096),
    ]
    by_communicator = statistics.per_owner(sums, sums.communicator)
    assert [(r.owner, r.calls) for r in by_communicator] == [(0, 2), (1, 1), (1, 1)]
    assert len(restrict(result, gpu=1).calls) == 2
    assert len(restrict(result, rank=0).calls) == 2
    assert len(restrict(result, rank=9).calls) == 0


def test_rate_from_stamps(tmp_path: Path) -> None:
    lines = [f"[2025-07-25 19:54:0{s}] {info(body(count=1000))}" for s in (1, 2, 5)]
    found = statistics.rate(read(tmp_path, lines).calls)
    assert found is not None
    assert (found.calls_per_s, found.bytes_per_s) == (Fraction(3, 4), 3000)
    assert statistics.rate(read(tmp_path, [info(body())] * 3).calls) is None


@pytest.mark.parametrize(
    ("op", "ranks", "buffer", "wire"),
    [
        ("AllReduce", 8, 1000, 1750),
        ("AllReduce", 3, 1000, Fraction(4000, 3)),
        ("AllGather", 8, 8000, 7000),
        ("ReduceScatter", 4, 4000, 3000),
        ("AlltoAll", 4, 4000, 3000),
        ("AllToAll", 4, 4000, 3000),
        ("Broadcast", 8, 1000, 1000),
        ("Reduce", 8, 1000, 1000),
        ("Send", 2, 1000, 1000),
        ("Recv", 2, 1000, 1000),
        ("AllReduce", 1, 1000, 0),
        ("Send", 1, 1000, 0),
        ("AllGather", 1, 1000, 0),
    ],
)
def test_wire_bytes(op: str, ranks: int, buffer: int, wire: Fraction) -> None:
    assert buffer_bytes(op, 1000, ranks) == buffer
    assert wire_bytes(op, 1000, ranks) == wire
    factor = wire_factor(op, ranks)
    assert factor is not None
    assert factor * buffer == wire


def test_traffic_names_operations_without_a_rule(tmp_path: Path) -> None:
    lines = [info(body("AllGather", count=1000, datatype=0)), info(body("WaitSignal"))]
    rows = statistics.traffic(read(tmp_path, lines).calls.sums)
    assert [(r.op, r.buffer_bytes, r.wire_bytes) for r in rows] == [
        ("AllGather", 8000, 7000),
        ("WaitSignal", 4096, None),
    ]
