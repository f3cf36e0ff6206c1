"""Logs of every version and launcher against the figures that their writer kept."""

from __future__ import annotations

import gzip
import random
import shutil
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from loglines import logs_json
from nccl_writing import LAUNCHERS, TYPES, VERSIONS, Writer

from nsys_tui.logs import read_logs

if TYPE_CHECKING:
    from pathlib import Path

STEPS, CALLS = 3, 6
CASES = [
    (version, launcher, rccl)
    for number, version in enumerate(VERSIONS)
    for launcher, rccl in (
        (LAUNCHERS[number % len(LAUNCHERS)], ""),
        (LAUNCHERS[(number * 3 + 5) % len(LAUNCHERS)], ""),
        (LAUNCHERS[(number * 5 + 2) % len(LAUNCHERS)], ("2019", "acc", "task")[number % 3]),
    )
]


def figures(*paths: Path, **options: Any) -> dict[str, Any]:
    result = read_logs(paths, **options)
    return logs_json(result)


def sizes(found: dict[str, Any]) -> dict[str, Any]:
    """The four golden keys, with lists as sets: their order is not what is tested."""
    return {
        "collective_lines": found["collective_lines"],
        "per_op": found["per_op"],
        "histogram": {tuple(row.values()) for row in found["histogram"]},
        "aggregate": {tuple(row.values()) for row in found["aggregate"]},
    }


def written(folder: Path, writer: Writer, seed: int) -> Path:
    text = writer.text("\r\n" if seed % 5 == 0 else "\n").encode()
    path = folder / "run.log"
    path.write_bytes(gzip.compress(text) if seed % 3 == 0 else text)
    return path


@pytest.mark.parametrize(("version", "launcher", "rccl"), CASES)
def test_every_figure_of_one_log(
    version: tuple[int, int], launcher: str, rccl: str, tmp_path: Path
) -> None:
    seed = version[1] * 10 + len(rccl)
    writer = Writer(seed, version, launcher, rccl=rccl)
    writer.run(STEPS, CALLS)
    truth = writer.truth
    log = written(tmp_path, writer, seed)
    found = figures(log)
    assert sizes(found) == truth.sizes()
    assert (found["lines"], found["header_lines"]) == (truth.lines, truth.headers)
    assert (found["torn_lines"], found["mismatches"], found["drifts"]) == (0, [], [])
    told = {(p["host"], p["pid"]): p["rank"] for p in found["processes"]}
    assert told == {(rank.host, rank.pid): rank.number for rank in writer.ranks}
    used = [one for one in found["communicators"] if one["collective_lines"]]
    owner = {(one["host"], one["pid"], one["comm"]): one["collective_lines"] for one in used}
    assert owner == truth.owner
    tuning: Counter[tuple[str, str]] = Counter()
    for row in found["tuning"]:
        tuning[row["algorithm"], row["protocol"]] += row["calls"]
    assert tuning == truth.tuning
    (group,) = found["topology"]["groups"]
    assert [tuple(ring["ranks"]) for ring in group["rings"]] == [tuple(range(writer.world))]
    assert len(group["edges"]) == writer.world
    assert found["average"]["average_train_step_timing_s"] == "6.001000"
    for step in range(STEPS):
        assert figures(log, steps=(step, step))["collective_lines"] == truth.steps[step]


@pytest.mark.parametrize("seed", range(4))
def test_one_file_per_rank(seed: int, tmp_path: Path) -> None:
    writer = Writer(seed, random.Random(seed).choice(VERSIONS[6:]), "iso")
    writer.run(STEPS, CALLS)
    paths = []
    for rank in writer.ranks:
        paths.append(tmp_path / f"nccl.{rank.host}.{rank.pid}.log")
        paths[-1].write_text(writer.text_of(rank.number))
    found = figures(*paths)
    assert sizes(found) == writer.truth.sizes()
    assert (found["mismatches"], found["drifts"]) == ([], [])
    calls = Counter(rank for rank, *_ in writer.truth.calls)
    rows: Counter[int] = Counter()
    for row in found["per_rank"]:
        rows[row["rank"]] += row["calls"]
    assert rows == calls


AWK = shutil.which("mawk") or shutil.which("gawk") or shutil.which("awk")
WINDOW = """/Training epoch/ {
    for (i = 1; i <= NF; i++) if ($i == "iteration") { split($(i + 1), part, "/"); state = part[1] }
} state > first - 1 && state <= last { print }"""
SIZES = """BEGIN { split("1 1 4 4 8 8 2 4 8 2 1 1", size, " ") }
/NCCL INFO/ && /opCount/ {
    op = ""; count = 0; type = -1
    for (i = 1; i <= NF; i++) {
        if (op == "" && $i ~ /:$/ && $i != "INFO:") op = substr($i, 1, length($i) - 1)
        if ($i == "count") count = $(i + 1)
        if ($i == "datatype") type = $(i + 1)
    }
    if (count > 0 && type >= 0 && type < 12) print op, count, type, count * size[type + 1]
}"""
PER_OP = """{ n[$1]++; t[$1] += $4
    if (!($1 in lo) || $4 < lo[$1]) lo[$1] = $4
    if ($4 > hi[$1]) hi[$1] = $4
} END { for (o in n) printf "%s %d %.0f %.0f %.0f\\n", o, n[o], lo[o], hi[o], t[o] }"""
HISTOGRAM = """{ b = $4 < 1048576 ? "64KB-1MB" : $4 < 16777216 ? "1MB-16MB" : ">16MB"
    if ($4 < 65536) b = "<64KB"
    n[$1 " " b]++ } END { for (k in n) print k, n[k] }"""
AGGREGATE = """{ n[$1 " " $2 " " $3]++ } END { for (k in n) print n[k], k }"""
AVERAGE = """/Training epoch/ {
    for (i = 1; i <= NF; i++) {
        if ($i == "iteration") { split($(i + 1), part, "/"); step = part[1] }
        if ($i == "train_step_timing") time = $(i + 3)
    }
    if (step >= first && step <= last) { n++; t += time }
} END { if (n) printf "%.6f\\n", t / n }"""


def awk(program: str, text: str, *bounds: str) -> list[list[str]]:
    done = subprocess.run(
        [str(AWK), *(word for bound in bounds for word in ("-v", bound)), program],
        input=text,
        text=True,
        capture_output=True,
        check=True,
    )
    return [line.split() for line in done.stdout.splitlines()]


@pytest.mark.skipif(AWK is None, reason="no awk")
@pytest.mark.parametrize("launcher", ["bare", "ray", "iso", "kubectl", "nccl-stamp-us", "glued"])
def test_the_legacy_window_is_the_awk_kit(launcher: str, tmp_path: Path) -> None:
    writer = Writer(7, (2, 27), launcher)
    # mawk prints integers from 2**31 on as floats, so the kit's own figures end there.
    writer.counts = (0, 1, 63, 8192, 65536, 2**20, 4194304, 57229824)
    writer.step = 41
    writer.run(12, 5)
    text = writer.text()
    log = tmp_path / "run.log"
    log.write_text(text)
    bounds = ("first=45", "last=50")
    window = subprocess.run(
        [str(AWK), "-v", bounds[0], "-v", bounds[1], WINDOW],
        input=text, text=True, capture_output=True, check=True,
    ).stdout  # fmt: skip
    lines = awk(SIZES, window)
    listed = "\n".join(" ".join(line) for line in lines)
    found = figures(log, legacy_window=True)
    assert found["lines"] == window.count("\n")
    assert found["collective_lines"] == len(lines)
    assert {
        (op, one["calls"], one["min_bytes"], one["max_bytes"], one["total_bytes"])
        for op, one in found["per_op"].items()
    } == {(line[0], *map(int, line[1:])) for line in awk(PER_OP, listed)}
    assert {(row["op"], row["bucket"], row["calls"]) for row in found["histogram"]} == {
        (op, bucket, int(n)) for op, bucket, n in awk(HISTOGRAM, listed)
    }
    assert {(r["calls"], r["op"], r["count"], r["dtype"]) for r in found["aggregate"]} == {
        (int(n), op, int(count), TYPES[int(kind)]) for n, op, count, kind in awk(AGGREGATE, listed)
    }
    (mean,) = awk(AVERAGE, text, "first=45", "last=49")
    assert found["average"]["average_train_step_timing_s"] == mean[0]
