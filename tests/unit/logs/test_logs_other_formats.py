"""Benchmarks, mpiP, NCCL's plugins, PyTorch's watchdog and recorder; packed logs."""

from __future__ import annotations

import gzip
import json
import lzma
import pickle
import shutil
import subprocess
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from loglines import body, info, logs_json, read
from paths import LOGS

from nsys_tui.cli import main
from nsys_tui.errors import UnreadableReportError
from nsys_tui.logs import read_logs
from nsys_tui.logs.nccl.hangs import find_hangs
from nsys_tui.logs.nccl.plugins import measured_rows
from nsys_tui.logs.others import pytorch
from nsys_tui.logs.others.pytorch import dump_verdicts, timeout_verdicts
from nsys_tui.logs.sections.section import LogAnswer
from nsys_tui.logs.sections.tables import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsys_tui.logs import LogResult

FORMATS = LOGS / "formats"
needs_formats = pytest.mark.skipif(
    not FORMATS.is_dir(), reason="needs the real excerpts in ../shared/logs/formats, absent here"
)


def real(name: str) -> LogResult:
    return read_logs([FORMATS / f"{name}.log"])


@needs_formats
def test_a_real_table_of_nccl_tests() -> None:
    out, inside = real("nccl-tests-1").benchmarks
    for series, time, algbw, busbw in (
        (out, 33646, "255.31", "223.39"),
        (inside, 32669, "262.94", "230.07"),
    ):
        assert (len(series.points), series.nranks, series.out_of_bounds) == (34, 8, 0)
        assert [point.size for point in series.points].count(0) == 5
        last = series.points[-1]
        assert (last.size, last.value) == (2**33, time)
        assert (last.algbw, last.busbw) == (Fraction(algbw), Fraction(busbw))
        assert series.best == last
        assert series.printed_mean_busbw == Fraction("58.2651")
        assert last.our_algbw == Fraction(2**33, time * 1000)
        assert last.our_busbw == last.our_algbw * Fraction(7, 8)
    cells = [point.busbw or 0 for series in (out, inside) for point in series.points]
    assert round(float(sum(cells) / len(cells)), 4) == 58.2647


def test_rows_that_nccl_wrote_between(tmp_path: Path) -> None:
    between = info(body())
    head, row = NCCL_TESTS.splitlines()[:-3], NCCL_TESTS.splitlines()[-3]
    first, second = row.index(" 10.00 "), row.index(" 20.00 ")
    size, out, inside = row[:first], row[first:second], row[second:]
    pieces = [size + between, between, out + between, between, inside]
    found = read(tmp_path, [*head, *pieces, *NCCL_TESTS.splitlines()[-2:]])
    assert len(found.calls) == 4
    whole = read(tmp_path, NCCL_TESTS)
    for one, other in zip(found.benchmarks, whole.benchmarks, strict=True):
        (here,), (there,) = one.points, other.points
        assert (here.size, here.value, here.busbw) == (there.size, there.value, there.busbw)


@needs_formats
def test_the_table_inside_of_a_real_log() -> None:
    result = read_logs([LOGS / "nccl-tests-2.27.7-allreduce-1proc-2gpu.log"])
    out, inside = result.benchmarks
    assert [point.size for point in out.points] == [2**n for n in range(23, 34)]
    assert (out.points[0].value, inside.points[0].value) == (Fraction("314.7"), Fraction("310.8"))
    assert out.points[0].our_busbw == Fraction(2**23, 314700)
    cells = [point.busbw or 0 for series in (out, inside) for point in series.points]
    assert round(float(sum(cells) / len(cells)), 2) == 28.26
    assert out.printed_mean_busbw == Fraction("28.2632")


OSU = {
    "MPI_Get_accumulate latency Test v5.8": (23, 1, 4194304, "52.67", "5630.91", "44.27"),
    "MPI_Fetch_and_op latency Test v5.8": (1, 8, 8, "33.40", "33.40", "33.40"),
    "MPI Allreduce Latency Test v5.8": (19, 4, 1048576, "17.67", "845.90", "12.71"),
    "MPI Latency Test v5.8": (24, 0, 4194304, "9.29", "1359.87", "8.69"),
    "MPI Bandwidth Test v5.8": (23, 1, 4194304, "0.13", "4117.48", "0.13"),
}


@needs_formats
def test_real_tables_of_osu() -> None:
    series = {one.test: one for one in real("osu-1").benchmarks}
    assert len(series) == 9
    for name, (rows, first, last, *values) in OSU.items():
        points = series[name].points
        assert (len(points), points[0].size, points[-1].size) == (rows, first, last)
        numbers = series[name].numbers()
        assert [numbers[0], numbers[-1], min(numbers)] == [Fraction(one) for one in values]


@needs_formats
def test_a_real_report_of_mpip() -> None:
    (report,) = real("mpip-1").mpip
    assert (report.version, report.callsites, len(report.tasks), len(report.sites)) == (
        "3.5.0",
        211,
        5,
        7,
    )
    whole = report.tasks[-1]
    assert (whole.task, whole.app_s, whole.mpi_s) == ("*", Fraction("38.1"), Fraction("0.783"))
    first = report.sites[0]
    assert (first.call, first.site, first.time_ms, first.calls) == ("Isend", 25, 926, 71742)


@needs_formats
def test_real_events_of_plugins() -> None:
    (row,) = measured_rows(real("nccl-inspector-1").measured)
    assert (row.op, row.bytes, row.nranks, row.source) == ("AllReduce", 2360832, 3, "kernel_gpu")
    assert row.algbw is not None
    assert row.our_algbw is not None
    assert round(row.our_algbw, 6) == round(row.algbw.mean, 6) == Fraction("0.416887")
    assert row.our_busbw is not None
    assert round(row.our_busbw, 4) == Fraction("0.5558")
    (row,) = measured_rows(real("nccl-profiler-1").measured)
    assert (row.op, row.bytes, row.source) == ("AllReduce", 8388608, "host enqueue")
    assert row.time_us is not None
    assert (row.time_us.mean, row.our_algbw) == (Fraction("0.152344"), None)


@needs_formats
def test_real_timeouts() -> None:
    found = real("watchdog-1").timeouts
    assert {(one.rank, one.seq, one.op, one.sent, one.ran_ms) for one in found} == {
        (0, 808, "ALLREDUCE", 9801523, 600030),
        (1, 808, "ALLREDUCE", 9801523, 600020),
        (2, 808, "ALLREDUCE", 9801523, 600061),
    }
    told = {one.rank: (one.enqueued, one.completed) for one in found}
    assert told == {0: (811, 807), 1: (811, 807), 2: (-1, -1)}
    (said,) = timeout_verdicts(found)
    assert "ranks 0-2 ran out of time in ALLREDUCE 808" in said
    assert "none of these is behind" in said


@needs_formats
def test_a_real_sample_of_the_flight_recorder() -> None:
    (dump,) = real("flight-recorder-1").dumps
    (entry,) = dump.entries
    assert (entry.op, entry.seq, entry.state) == ("nccl:all_reduce", 1, "completed")
    assert (entry.group, entry.sizes, entry.duration_ns) == ("0", "Float [3, 4]", 39036605)
    (status,) = dump.statuses
    assert (status.enqueued, status.started, status.completed) == (2, -1, 2)


@needs_formats
def test_one_warning_with_several_pointers_is_one_kind() -> None:
    assert dict(real("nccl-warn-1").warnings) == {
        "socketProgress: Connection closed by remote peer gpu004.ds-a4-r02.abc.com<…>": 1,
        "Socket recv failed while polling for opId=0x…": 2,
    }


NCCL_TESTS = """\
# nccl-tests version 2.17.1
# Collective test starting: all_reduce_perf
# Using devices
#  Rank  0 Group  0 Pid   1 on    node01 device  0 [0000:07:00] NVIDIA H100
#  Rank  1 Group  0 Pid   2 on    node01 device  1 [0000:0f:00] NVIDIA H100
#  Rank  2 Group  0 Pid   3 on    node01 device  2 [0000:17:00] NVIDIA H100
#                                         out-of-place                       in-place
#       size     count  type redop root  time algbw  busbw #wrong  time algbw busbw #wrong
     1000000    250000 float   sum   -1 10.00 100.00 133.33     0 20.00 50.00 66.67      1
# Out of bounds values : 1 FAILED
# Avg bus bandwidth    : 100
"""


def test_a_table_with_a_named_test(tmp_path: Path) -> None:
    out, inside = read(tmp_path, NCCL_TESTS).benchmarks
    assert (out.test, out.nranks, out.out_of_bounds) == ("all_reduce", 3, 1)
    (point,) = inside.points
    assert (point.value, point.wrong) == (20, "1")
    assert (point.our_algbw, point.our_busbw) == (50, Fraction(200, 3))
    (row, _) = logs_json(read(tmp_path, NCCL_TESTS))["benchmarks"]
    assert (row["column"], row["points"][0]["our_busbw_gb_per_s"]) == ("out-of-place", "133.333333")


def test_a_cut_list_of_ranks_counts_none(tmp_path: Path) -> None:
    cut = [line for line in NCCL_TESTS.splitlines() if " Rank  0 " not in line]
    assert len(cut) < len(NCCL_TESTS.splitlines())
    assert {one.nranks for one in read(tmp_path, cut).benchmarks} == {-1}


@pytest.mark.parametrize("front", ["[1,0]<stdout>:", "0: ", "2025-01-01T00:00:00.5Z "])
def test_a_table_behind_labels(tmp_path: Path, front: str) -> None:
    lines = [f"{front}{line}" for line in NCCL_TESTS.splitlines()]
    out, _ = read(tmp_path, lines).benchmarks
    assert (out.test, out.nranks, len(out.points)) == ("all_reduce", 3, 1)


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        ("type   redop", "float     sum 122131   2.20 4.33 2e-06 122165 2.20 4.33 2e-06"),
        ("type   redop", "float         122131   2.20 4.33 0e+00 122165 2.20 4.33 0e+00"),
        ("type", "float         122131   2.20 4.33 0e+00 122165 2.20 4.33 0e+00"),
        ("type    root", "float       0 122131   2.20 4.33   N/A 122165 2.20 4.33   N/A"),
        ("type redop root", "float sum  0 122131   2.20 4.33 0e+00 122165 2.20 4.33 0e+00"),
    ],
)
def test_rows_of_older_tables_with_whole_times(tmp_path: Path, columns: str, row: str) -> None:
    head = ["#  out-of-place   in-place", f"#  size  count {columns}  time  algbw busbw error"]
    out, inside = read(tmp_path, [*head, f"  268435456   67108864 {row}"]).benchmarks
    for series, time in ((out, 122131), (inside, 122165)):
        (point,) = series.points
        assert (point.size, point.value, point.busbw) == (2**28, time, Fraction("4.33"))


MSCCLPP = """\
# Using devices
#  Rank  0 Pid     10 on    node01 device  0 [0x07] NVIDIA H100
#  Rank  1 Pid     11 on    node01 device  1 [0x0f] NVIDIA H100
#                                    in-place                       out-of-place
#       size         count     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)     (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
     1000000        250000    10.00  100.00  100.00       0
     4000000       1000000    20.00  200.00  200.00       3
# Out of bounds values : 3 FAILED
"""


def test_a_table_of_mscclpp_has_no_type_and_only_in_place(tmp_path: Path) -> None:
    result = read(tmp_path, MSCCLPP)
    (inside,) = result.benchmarks
    assert (inside.kind, inside.column, inside.nranks) == ("mscclpp-test", "in-place", 2)
    assert [(p.size, p.value, p.busbw, p.wrong) for p in inside.points] == [
        (1000000, 10, 100, "0"),
        (4000000, 20, 200, "3"),
    ]
    assert logs_json(result)["in_short"] == [
        "mscclpp-test in-place: rows with wrong results: 1 of 2",
        "mscclpp-test in-place: at most 200.00 GB/s bus bandwidth, at 4,000,000 bytes",
    ]


def test_runs_that_print_into_one_another(tmp_path: Path) -> None:
    lines = NCCL_TESTS.splitlines()
    twice = [line for line in lines for _ in range(2)]
    out, inside = read(tmp_path, twice).benchmarks
    assert (out.nranks, out.runs, len(out.points), inside.wrong_rows) == (3, 2, 2, 2)


def test_a_table_that_lost_its_number_signs(tmp_path: Path) -> None:
    lines = [line.replace("#", " ") for line in NCCL_TESTS.splitlines()]
    out, _ = read(tmp_path, lines).benchmarks
    assert (out.test, out.nranks, len(out.points), out.out_of_bounds) == ("all_reduce", 3, 1, 1)


def test_a_table_of_osu_with_several_columns(tmp_path: Path) -> None:
    lines = [
        "# OSU MPI Allreduce Latency Test v7.0",
        "# Datatype: MPI_CHAR.",
        "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations",
        "4                       1.50              1.25              1.75        1000",
        "",
        "8                       2.50              2.25              2.75        1000",
        "a warning between",
        "16                      3.50              3.25              3.75        1000",
        "done",
        "8                       9.99              9.99              9.99        1000",
    ]
    series = read(tmp_path, lines).benchmarks
    assert [one.column for one in series] == [
        "Avg Latency(us)",
        "Min Latency(us)",
        "Max Latency(us)",
    ]
    assert [float(point.value or 0) for point in series[0].points] == [1.5, 2.5, 3.5]


def timeout(rank: int, seq: int, op: str = "ALLREDUCE", enqueued: int = 9) -> list[str]:
    front = f"[rank{rank}]:[E626 06:24:44.9 ProcessGroupNCCL.cpp:616]"
    return [
        f"{front} [Rank {rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn=8, NumelOut=8, Timeout(ms)=1000) "
        "ran for 1001 milliseconds before timing out.",
        f"{front} [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Exception detected by watchdog at "
        f"work: {seq}, last enqueued NCCL work: {enqueued}, last completed NCCL work: {seq - 1}.",
    ]


def test_who_is_behind_by_the_watchdog(tmp_path: Path) -> None:
    lines = timeout(0, 9) + timeout(1, 9) + timeout(2, 7, enqueued=7)
    (said,) = timeout_verdicts(read(tmp_path, lines).timeouts)
    assert "rank 2 is behind: it enqueued 7, others wait in 9" in said
    lines = timeout(0, 9) + timeout(1, 9, "BROADCAST")
    (said,) = timeout_verdicts(read(tmp_path, lines).timeouts)
    assert "different collectives under one number, 9" in said
    old = "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, "
    old += "TensorShape=[8], Timeout(ms)=1800000) ran for 1803170 milliseconds before timing out."
    (one,) = read(tmp_path, [old]).timeouts
    assert (one.rank, one.seq, one.op, one.ran_ms) == (3, -1, "ALLREDUCE", 1803170)
    new = "[PG ID 0 PG GUID 0(default_pg) Rank 3]  failure detected by watchdog at work sequence "
    new += "id: 1234 PG status: last enqueued work: 1236, last completed work: 1233"
    (one,) = read(tmp_path, [new]).timeouts
    assert (one.rank, one.seq, one.enqueued, one.completed) == (3, 1234, 1236, 1233)
    assert one.group == "0(default_pg)"


def test_time_outs_that_ranks_wrote_into_one_another(tmp_path: Path) -> None:
    """Half a line before a whole one is none; two whole ones in a line are two."""
    (first, end), (second, other_end) = timeout(0, 9), timeout(1, 7, enqueued=7)
    half = first[: first.index("OpType=") + 20]
    found = read(tmp_path, [half + second, end, other_end]).timeouts
    assert {(one.rank, one.seq, one.op) for one in found} == {(0, 9, ""), (1, 7, "ALLREDUCE")}
    (said,) = timeout_verdicts(found)
    assert "rank 1 is behind: it enqueued 7, others wait in 9" in said
    glued = read(tmp_path, [first + second, end + other_end]).timeouts
    assert {(one.rank, one.seq, one.enqueued) for one in glued} == {(0, 9, 9), (1, 7, 7)}


def test_a_size_that_is_not_printed_is_no_other_size(tmp_path: Path) -> None:
    old = "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, "
    old += "OpType=ALLREDUCE, Timeout(ms)=1000) ran for 1001 milliseconds before timing out."
    (said,) = timeout_verdicts(read(tmp_path, [*timeout(0, 9), old]).timeouts)
    assert "different" not in said
    (said,) = timeout_verdicts(read(tmp_path, [*timeout(0, 9, "BROADCAST"), old]).timeouts)
    assert said.endswith("under one number, 9: rank 0 BROADCAST of 8; rank 3 ALLREDUCE")


def test_time_outs_of_groups_that_no_line_names(tmp_path: Path) -> None:
    old = "[Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, "
    old += "OpType=ALLREDUCE, Timeout(ms)=1000) ran for 1001 milliseconds before timing out."
    lines = [old.format(0, 120), old.format(0, 117), old.format(7, 64)]  # of sub-groups of a job
    (said,) = timeout_verdicts(read(tmp_path, lines).timeouts)
    assert said == (
        "group not named: ranks 0, 7 ran out of time in 64, 117, 120: no line names their groups,"
        " so none is known to be behind"
    )


def test_a_rank_whose_first_line_is_lost_names_no_operation(tmp_path: Path) -> None:
    lines = timeout(0, 9) + timeout(3, 9)[1:]
    (said,) = timeout_verdicts(read(tmp_path, lines).timeouts)
    assert "ranks 0, 3 ran out of time in ALLREDUCE 9, all of them had enqueued it" in said


SIZED = {
    "osu": (
        "# OSU MPI-CUDA Bandwidth Test v7.2",
        "# Size      Bandwidth (MB/s)        Validation",
        "{:<10} {:20.2f}              Pass",
        "Bandwidth (MB/s)",
    ),
    "imb": (
        "# Benchmarking PingPong ",
        "       #bytes #repetitions      t[usec]",
        "{:13}         1000 {:12.2f}",
        "t[usec]",
    ),
    "perftest": (
        "                    RDMA_Write BW Test",
        " #bytes     #iterations    BW average[Gb/sec]",
        " {:<10} 5000             {:.2f}",
        "BW average[Gb/sec]",
    ),
    "ucc": (
        "Collective:             Alltoall",
        "                             avg         min         max         avg",
        "       65536 {0:12} {1:12.2f}        1.00        2.00       24.00",
        "Time (us), avg",
    ),
}


@pytest.mark.parametrize("kind", SIZED)
def test_tables_of_sizes(tmp_path: Path, kind: str) -> None:
    title, header, row, column = SIZED[kind]
    figures = {1: Fraction("1.5"), 64: Fraction("99.25"), 4096: Fraction("7.75")}
    rows = [row.format(*at) for at in ((n, float(v)) for n, v in figures.items())]
    lines = [title, "# a remark", header, rows[0], "a warning", *rows[1:], row.format(8, 5.0)]
    result = read(tmp_path, lines)
    series = result.benchmarks[0]
    assert (series.kind, series.column) == (kind, column)
    assert {point.size: point.value for point in series.points} == figures
    assert all(
        one.column in (column, "Time (us), min", "Time (us), max") for one in result.benchmarks
    )
    assert logs_json(result)["in_short"][0].endswith(f"{column}: 1.50 to 99.25, most at 64 bytes")


GIVEN_BY_HEADERS = {
    "all_reduce Duration (us)": (
        "---- Performance of all_reduce on 4 devices -----------------",
        "Size (Bytes)         Description               Duration             "
        "Throughput (Gbps)    BusBW (Gbps)        ",
        "------------------------------------------",
        "16.0 B               4x4                       20.000 us            0.013       0.010",
        "1.33 KB              340x4                     40.500 us            0.537       0.403",
        "64.0 MB              16777216x4                1.500 ms             715.8       536.9",
    ),
    "all_reduce busbw (GBps)": (
        "The average bandwidth of all_reduce over 8 ranks (5 warmups / 20 trials):",
        "",
        "| payload |    busbw   |    algbw   |",
        "| ------: | ---------: | ---------: |",
        "|   32KiB |   1.75GBps |   1.00GBps |",
        "|    2MiB |  70.00GBps |  40.00GBps |",
    ),
    " Time (us)": (
        "+--------------+-----------+--------------+-------------+----------------+",
        "| Size (fp32)  | Time (us) | AlgBW (GB/s) | Correctness | NCCL Time (us) |",
        "+--------------+-----------+--------------+-------------+----------------+",
        "|   4.0 KiB    |    5.00   |     0.82     |     PASS    |      9.00      |",
        "|  96.0 MiB    |   450.00  |    223.70    |     PASS    |     501.50     |",
    ),
    " time": (
        "# size time algbw busbw",
        "1000000 10.0 100.0 175.0",
        "a line between",
        "4000000 25.0 160.0 280.0",
    ),
}
SERIES = {
    "all_reduce Duration (us)": {16: "20", 1360: "40.5", 2**26: "1500"},
    "all_reduce busbw (GBps)": {2**15: "1.75", 2**21: "70"},
    " Time (us)": {4096: "5", 96 * 2**20: "450"},
    " time": {1_000_000: "10", 4_000_000: "25"},
}


@pytest.mark.parametrize("name", SERIES)
def test_tables_whose_header_tells_their_columns(tmp_path: Path, name: str) -> None:
    found = read(tmp_path, [*GIVEN_BY_HEADERS[name], "", "4 others share 2.0 3.0"]).benchmarks
    series = next(one for one in found if f"{one.test} {one.column}" == name)
    assert {p.size: p.value for p in series.points} == {
        size: Fraction(value) for size, value in SERIES[name].items()
    }


@pytest.mark.parametrize(
    "lines",
    [
        ["# size time algbw busbw time algbw busbw", "8 1.0 2.0 3.0 1.0 2.0 3.0"],
        ["we size the busbw for each time", "8 nodes have the busbw we want"],
        ["| Size (MB) | busbw |", "| 8 | 3.0 |"],
        ["# size time algbw busbw", "8 1.0 2.0"],
    ],
)
def test_what_only_looks_like_such_a_table_is_none(tmp_path: Path, lines: list[str]) -> None:
    assert not read(tmp_path, lines).benchmarks


@pytest.mark.parametrize("check", ["PASS", "FAIL"])
def test_a_failed_check_of_such_a_table_is_told_once(tmp_path: Path, check: str) -> None:
    lines = ["| bytes | Time (us) | AlgBW (GB/s) | Check |", f"| 8 | 5.0 | 0.0 | {check} |"]
    result = read(tmp_path, [*lines, "| 4096 | 5.0 | 0.8 | PASS |"])
    assert [point.size for point in result.benchmarks[0].points] == [8, 4096]
    wrong = [said for said in logs_json(result)["in_short"] if "wrong results: 1 of 2" in said]
    assert len(wrong) == (check == "FAIL")


def test_sizes_that_may_not_be_bytes_are_unknown(tmp_path: Path) -> None:
    lines = ["size time algbw busbw", "1000 10.0 0.4 0.7", "2000 10.0 0.8 1.4"]
    time, *_ = read(tmp_path, lines).benchmarks
    assert [point.size for point in time.points] == [None, None], "they are counts of 4 bytes"


@pytest.mark.parametrize("sized", [False, True])
def test_transfers_of_transferbench(tmp_path: Path, sized: bool) -> None:
    row = " Transfer 0{}: G00 -> [GPU 00:004] -> G0{} | {:9.3f} GB/s | {:8.3f} ms | {}LOCAL"
    size = f"{2**30:12} bytes | " if sized else ""
    head = f"Test {{}}:{'' if sized else f' [{2**30} bytes]'}"
    rates = ((8.5, 8.25, 9.75), (3.5,))
    lines = ["Run configuration (TransferBench v1.02)"]
    for test, speeds in enumerate(rates, 1):
        lines += [head.format(test)]
        lines += [row.format(n, n, rate, 1074 / rate, size) for n, rate in enumerate(speeds)]
        lines += [
            " Aggregate Bandwidth (CPU timed)   |    33.5 GB/s |  128.1 ms | Overhead: 0.4 ms"
        ]
    result = read(tmp_path, lines)
    found = [one for one in result.benchmarks if one.column == "GB/s"]
    assert [one.numbers() for one in found] == [[*map(Fraction, told)] for told in rates]
    assert {point.size for one in found for point in one.points} == {2**30}
    assert logs_json(result)["in_short"][0] == "transferbench test 1, GB/s: 8.25 to 9.75"


def test_a_matrix_of_nvbandwidth(tmp_path: Path) -> None:
    lines = [
        "Running device_to_device_memcpy_read_ce.",
        "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
        "           0         1",
        " 0       N/A    276.07",
        " 1    275.98       N/A",
        "",
        "SUM device_to_device_memcpy_read_ce 552.05",
    ]
    result = read(tmp_path, lines)
    (series,) = result.benchmarks
    assert series.numbers() == [Fraction("276.07"), Fraction("275.98")]
    assert logs_json(result)["in_short"] == [
        "nvbandwidth device_to_device_memcpy_read_ce, bandwidth (GB/s): 275.98 to 276.07"
    ]


def test_linpack_and_its_check(tmp_path: Path) -> None:
    lines = [
        "T/V                N    NB     P     Q               Time                 Gflops",
        "WR03R2R4      264192  1024     4     2              41.15      2.988e+05 ( 3.735e+04)",
        "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0018 ...... FAILED",
    ]
    result = read(tmp_path, lines)
    assert logs_json(result)["in_short"] == [
        "hpl: N 264192, seconds 41.15, Gflops 2.988e+05",
        "hpl: check FAILED",
    ]
    assert not SECTIONS["steps"].has_rows(LogAnswer(result, find_hangs(result)))


def test_linpack_of_mixed_precision(tmp_path: Path) -> None:
    lines = [
        "    LU GFLOPS = 4.2400e+06, per GPU =  530000.00",
        "       GFLOPS = 3.1360e+06, per GPU =  392000.00",
    ]
    assert logs_json(read(tmp_path, lines))["in_short"] == [
        "hpl-mxp: LU_Gflops 4.2400e+06, LU_Gflops_per_GPU 530000.00",
        "hpl-mxp: Gflops 3.1360e+06, Gflops_per_GPU 392000.00",
    ]


def test_completions_that_failed_are_one_kind_of_warning(tmp_path: Path) -> None:
    form = (
        "h:1:2 [4] ib.c:16 NCCL WARN NET/IB : Got completion from peer 10.0.0.1<{}> with status=12 "
        "opcode={} len=0 vendor err {} localGid fd00:1148::3:ff{}"
    )
    lines = [form.format(*at) for at in ((54, 0, 129, 1), (492, 32616, 129, 2), (54, 0, 249, 1))]
    assert sorted(dict(read(tmp_path, lines).warnings).values()) == [1, 2]


def test_a_timeout_fails_where_asked(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("\n".join(timeout(0, 9)))
    assert main(["logs", str(log)]) == 0
    assert main(["logs", str(log), "--fail-on", "timeout"]) == 1


def dump(
    folder: Path,
    rank: int,
    enqueued: int,
    op: str = "nccl:all_reduce",
    shape: tuple[int, ...] = (),
    ranks: str = "[0, 1]",
) -> Path:
    entry = {
        "input_sizes": [shape] if shape else [],
        "input_dtypes": ["Float"],
        "collective_seq_id": 5,
        "process_group": ["0", "default_pg"],
        "profiling_name": op,
        "state": "scheduled",
        "is_p2p": False,
    }
    found: dict[str, Any] = {
        "version": "2.5",
        "pg_config": {"0": {"desc": "default_pg", "ranks": ranks}},
        "pg_status": {"0": {"last_enqueued_collective": enqueued, "last_completed_collective": 4}},
        "entries": [entry],
    }
    path = folder / f"trace_{rank}.json"
    path.write_text(json.dumps(found, indent=1))
    return path


def test_who_is_behind_by_the_flight_recorder(tmp_path: Path) -> None:
    dumps = read_logs([dump(tmp_path, 0, 5), dump(tmp_path, 1, 4)]).dumps
    assert dump_verdicts(dumps) == ["group 0: rank 1 is behind: it enqueued 4, others 5"]
    dumps = read_logs([dump(tmp_path, 0, 5), dump(tmp_path, 1, 5, "nccl:broadcast")]).dumps
    assert dump_verdicts(dumps)[-1] == (
        "group 0: ranks called different collectives under number 5: "
        "rank 0 nccl:all_reduce; rank 1 nccl:broadcast"
    )


def test_sizes_that_must_agree_and_do_not_are_told(tmp_path: Path) -> None:
    def said(*shapes: tuple[int, ...], op: str = "nccl:all_reduce") -> list[str]:
        paths = [dump(tmp_path, rank, 5, op, shape) for rank, shape in enumerate(shapes)]
        return dump_verdicts(read_logs(paths).dumps)

    waiting = "group 0: 2 of the ranks dumped did not complete 5; all of them enqueued it: "
    assert said((4, 2), (8,)) == [waiting + "none is behind"]
    assert said((8,), ()) == [waiting + "none is behind"]
    assert said((8,), (9,), op="nccl:all_to_all") == [waiting + "none is behind"]
    assert said((4, 2), (9,))[1:] == [
        "group 0: ranks called different collectives under number 5: "
        "rank 0 nccl:all_reduce of Float × 8; rank 1 nccl:all_reduce of Float × 9"
    ]
    paths = [dump(tmp_path, rank, 5, ranks="[0, 1, 2]") for rank in (0, 1)]
    said_of_two = dump_verdicts(read_logs(paths).dumps)
    assert said_of_two == [waiting + "a rank without a dump may be behind"]


def test_an_event_behind_half_of_another_one_is_read(tmp_path: Path) -> None:
    event = (
        '{"header":{"id":"0x9e","rank":1,"n_ranks":2},"coll_perf":{"coll":"AllReduce",'
        '"coll_sn":10,"coll_msg_size_bytes":1048576,"coll_exec_time_us":100}}'
    )
    (one,) = read(tmp_path, [f"[rank3]: {event[:90]}{event}"]).measured
    assert (one.op, one.nranks, one.bytes) == ("AllReduce", 2, 1 << 20)


def test_recorders_whose_lines_a_launcher_labelled(tmp_path: Path) -> None:
    texts = [dump(tmp_path, rank, 5 - rank).read_text().splitlines() for rank in (0, 1)]
    mixed = [
        f"[rank{rank}]: {line}"
        for both in zip(*texts, strict=True)
        for rank, line in enumerate(both)
    ]
    log = tmp_path / "train.log"
    log.write_text("\n".join(mixed))
    said = ["group 0: rank 1 is behind: it enqueued 4, others 5"]
    assert dump_verdicts(read_logs([log]).dumps) == said
    log.write_text("\n".join(f"2025-05-20T10:00:00.125Z stdout F {line}" for line in texts[0]))
    assert [one.enqueued for one in read_logs([log]).dumps[0].statuses] == [5]


def nccl_test(kinds: Sequence[str], lists: int = 1) -> list[str]:
    """What nccl-tests prints of sizes 1,024 and 2,048 for each of some kinds of rows."""
    times = "{0:6.2f}  {1:6.2f}  {1:6.2f}  {2:4d}"
    rows = [
        f"{size:12d} {size:12d} {kind:>22} "
        + " ".join([times.format(size / n, n / 1000, wrong)] * 2)
        for n, kind in enumerate(kinds, 1)
        for size in (1024, 2048)
        for wrong in [int("prod" in kind)]
    ]
    listed = [f"#  Rank  {rank} Group  0 Pid {rank} on host device {rank}" for rank in range(2)]
    names = "time  algbw  busbw  #wrong"
    head = [f"{'#':60}out-of-place  in-place", f"#  size  count  type redop root {names} {names}"]
    return [*listed * lists, *head, *rows, "# Avg bus bandwidth    : 1.5"]


def test_rows_of_each_type_reduction_and_root_are_a_series(tmp_path: Path) -> None:
    def columns(*kinds: str) -> list[str]:
        return [one.column for one in read(tmp_path, nccl_test(kinds)).benchmarks]

    assert columns("float sum -1") == ["out-of-place", "in-place"]
    assert columns("int8 sum -1", "half sum -1") == [
        *("out-of-place, int8", "in-place, int8", "out-of-place, half", "in-place, half")
    ]
    assert columns("int8 none 0", "int8 none 1")[1::2] == ["in-place, root 0", "in-place, root 1"]
    result = read(tmp_path, nccl_test(["int8 sum -1", "int8 prod -1", "half sum -1"], lists=2))
    assert [one.column for one in result.benchmarks][::2] == [
        *("out-of-place, int8 sum", "out-of-place, int8 prod", "out-of-place, half sum")
    ]
    assert [[point.size for point in one.points] for one in result.benchmarks] == [[1024, 2048]] * 6
    assert {one.printed_mean_busbw for one in result.benchmarks} == {Fraction(3, 2)}
    assert logs_json(result)["in_short"][:3] == [
        "nccl-tests out-of-place, int8 prod: rows with wrong results: 2 of 2",
        "nccl-tests in-place, int8 prod: rows with wrong results: 2 of 2",
        "nccl-tests: 2 runs, each alone, print into one another (MPI=1 missing?)",
    ]
    notes = SECTIONS["benchmarks"].table(LogAnswer(result, find_hangs(result))).notes
    assert sum("average bus bandwidth 1.5" in note for note in notes) == 1


def test_a_recorder_that_is_no_whole_one_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, cut = dump(tmp_path, 0, 5), dump(tmp_path, 1, 4)
    cut.write_text(cut.read_text()[:-40])
    with pytest.raises(
        UnreadableReportError, match=r"trace_1\.json.*\n.*cut or damaged.*\ncopy it"
    ):
        read_logs([cut])
    result = read_logs([whole, cut])
    assert [one.enqueued for one in result.dumps[0].statuses] == [5]
    ((path, why),) = result.skipped
    assert path == str(cut)
    assert "cut or damaged" in why
    assert "copy it again" in why
    labelled = tmp_path / "train.log"
    labelled.write_text("".join(f"[rank1]: {line}\n" for line in [*cut.open(), info(body())]))
    assert len(read_logs([labelled]).calls) == 1
    monkeypatch.setattr(pytorch, "LARGEST", 100)
    with pytest.raises(UnreadableReportError, match="larger than"):
        read_logs([whole])
    assert len(read_logs([labelled]).calls) == 1


def test_a_recorder_without_entries_tells_who_is_behind(tmp_path: Path) -> None:
    paths = [dump(tmp_path, rank, 5 - rank) for rank in (0, 1)]
    for path in paths:
        told = json.loads(path.read_text())
        path.write_text(json.dumps({key: told[key] for key in told if key != "entries"}))
    dumps = read_logs(paths).dumps
    assert dump_verdicts(dumps) == ["group 0: rank 1 is behind: it enqueued 4, others 5"]


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(pickle.dumps({"entries": []}))
    with pytest.raises(UnreadableReportError, match="pickle"):
        read_logs([path])


LINES = "".join(info(body(op_count=n)) + "\n" for n in range(3000)).encode()


@pytest.mark.parametrize("name", ["gz", "xz", "zst"])
def test_packed_logs(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"nccl.log.{name}"
    if name == "zst":
        if shutil.which("zstd") is None:
            pytest.skip("needs the program zstd")
        path.write_bytes(
            subprocess.run(["zstd", "-c"], input=LINES, capture_output=True, check=True).stdout
        )
    else:
        path.write_bytes((gzip if name == "gz" else lzma).compress(LINES))
    assert len(read_logs([path]).calls) == 3000
    whole = path.read_bytes()
    if name == "gz":  # damage behind text that was read is told as a cut
        path.write_bytes(whole[:-9] + bytes(9))
        assert read_logs([path]).files[0].cut_short
    if name != "zst":
        path.write_bytes(whole[:6] + bytes(40))
        with pytest.raises(UnreadableReportError, match="cannot read"):
            read_logs([path])
    path.write_bytes(whole[: len(whole) - 10])
    cut = read_logs([path])
    assert cut.files[0].cut_short
    assert len(cut.calls) <= 3000


def test_zstd_without_the_program_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    path = tmp_path / "nccl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(9))
    with pytest.raises(UnreadableReportError, match="needs the program zstd"):
        read_logs([path])


@pytest.mark.parametrize("junk", ['{"coll_perf": 5}', '{"cat": "COLL", "ph": "b"', '"cat" [[[['])
def test_lines_that_only_look_like_events(tmp_path: Path, junk: str) -> None:
    assert read(tmp_path, [junk, info(body())]).measured == ()
