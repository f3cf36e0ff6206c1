"""How long ``nsys-tui logs`` takes against seven awk passes that answer the same questions.

Run as a script: ``python tests/benchmarks/bench_logs.py [--calls N] [--repeats N] [--kind K]``. It
writes a log with several ranks, tuning and step lines into a scratch folder, runs both, checks that
they agree, and prints a table of times and their ratio, for each kind of log. awk keeps its
intermediate files, so only some of its passes read the whole log: that is the hardest comparison
for us.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

RANKS = 8
LAYERS = 12
FRONTS: dict[str, Callable[[int], str]] = {
    "plain": lambda n: "",
    "srun": lambda n: f"{n % RANKS}: ",
    "stamped": lambda n: f"[{clock(n)}] ",
    "iso": lambda n: f"{clock(n).replace(' ', 'T')}Z ",
    "kubectl": lambda n: f"[pod/train-{n % RANKS}/pytorch] {clock(n).replace(' ', 'T')}123Z ",
    "coloured": lambda n: f"\x1b[3{n % RANKS}m",
    "ray": lambda n: f"(RayTrainWorker pid={600 + n % RANKS}, ip=10.72.7.{n % RANKS}) ",
}
"""What stands before the n-th line of NCCL's, by kind of log."""
TAILS = {"coloured": "\x1b[0m", "rccl": " task 3 globalrank 1"}
KINDS_OF_LOG = (*FRONTS, "rccl", "micros", "crlf", "call")
STEP_LINE = (
    "Training epoch 0, iteration {step}/999999 | lr: 6.897e-06 | global_batch_size: 128 | "
    "global_step: {step} | reduced_train_loss: 11.96 | train_step_timing in s: 6.{step:03} | "
    "TFLOPS_per_GPU: 1.249e+03 | consumed_samples: 5632\n"
)
KINDS = (
    ("AllGather", 9, 0, 2),
    ("ReduceScatter", 7, 0, 4),
    ("AllReduce", 7, 0, 4),
    ("Broadcast", 0, 0, 1),
)

PASSES = {
    "window": """/Training epoch/ {
        for (i = 1; i <= NF; i++) if ($i == "iteration") { split($(i + 1), a, "/"); s = a[1] }
    } s >= 0 { print }""",
    "sizes": """/NCCL INFO/ && /opCount/ {
        op = ""; count = 0; type = -1
        for (i = 1; i <= NF; i++) {
            if (op == "" && $i ~ /:$/ && $i != "INFO:") op = substr($i, 1, length($i) - 1)
            if ($i == "count") count = $(i + 1)
            if ($i == "datatype") type = $(i + 1)
        }
        split("1 1 4 4 8 8 2 4 8 2 1 1", size, " ")
        if (count > 0 && type in size) print op, count, type, count * size[type + 1]
    }""",
    "per operation": """{
        n[$1]++; t[$1] += $4
        if (!($1 in lo) || $4 < lo[$1]) lo[$1] = $4
        if ($4 > hi[$1]) hi[$1] = $4
    } END { for (o in n) printf "%s %d %.0f %.0f %.0f\\n", o, n[o], lo[o], hi[o], t[o] }""",
    "histogram": """{
        b = $4 < 65536 ? "a" : $4 < 1048576 ? "b" : $4 < 16777216 ? "c" : "d"; n[$1 " " b]++
    } END { for (k in n) print k, n[k] }""",
    "aggregate": """{ n[$1 " " $2 " " $3]++ } END { for (k in n) print n[k], k }""",
    "per GPU": """/NCCL INFO/ && /opCount/ { n[$1 " " $2]++ } END { for (k in n) print k, n[k] }""",
    "step time": """/train_step_timing/ {
        for (i = 1; i <= NF; i++) if ($i == "train_step_timing") { t += $(i + 3); n++ }
    } END { if (n) printf "%.6f %d\\n", t / n, n }""",
}
INPUTS = {"window": "log", "sizes": "window", "per GPU": "window", "step time": "log"}


def clock(n: int) -> str:
    """A time with microseconds, another one for each line."""
    seconds, part = divmod(n, 5000)
    minutes = seconds // 60
    return f"2026-01-16 {minutes // 60 % 24:02}:{minutes % 60:02}:{seconds % 60:02}.{part * 200:06}"


def dressed(line: str, kind: str, n: int) -> str:
    """A line of NCCL's as this kind of log has it."""
    if kind == "micros":
        line = line.replace("NCCL", f"{1_558_545_003_174_220 + n * 7} NCCL", 1)
    elif kind == "crlf":
        line = f"{line[:-1]}\r\n"
    elif kind == "call" and ": opCount" in line:
        who = line.partition(" [")[0]
        call = f"ncclAllReduce(7f{n:010x},7f{n:010x},4096,7,0,0,0x5500a0,0x6600b0)"
        line = f"{line}{who} NCCL CALL {call}\n"
    elif kind in TAILS and (kind != "rccl" or ": opCount" in line):
        line = f"{line[:-1]}{TAILS[kind]}\n"
    return FRONTS.get(kind, FRONTS["plain"])(n) + line


def write_log(path: Path, calls: int, kind: str = "plain") -> int:
    """Writes the log and returns how many calls it holds."""
    made, step, number, rng = 0, 0, 0, random.Random(1)
    with path.open("w", newline="") as file:
        while made < calls:
            lines = [_rank_lines(rank, step, rng) for rank in range(RANKS)]
            for line in (line for rank in zip(*lines, strict=True) for line in rank if line):
                number += 1
                file.write(dressed(line, kind, number))
            file.write(STEP_LINE.format(step=step))
            made += RANKS * LAYERS * len(KINDS)
            step += 1
    return made


def _rank_lines(rank: int, step: int, rng: random.Random) -> list[str]:
    head = f"node01:{4000 + rank}:{5000 + rank} [{rank}] NCCL INFO"
    made = []
    for layer in range(LAYERS):
        for number, (op, kind, reduction, _) in enumerate(KINDS):
            op_count = (step * LAYERS + layer) * len(KINDS) + number
            count = 4096 << (layer if number < 2 else 0)
            made.append(
                f"{head} {op}: opCount {op_count:x} sendbuff 0x7f{rng.getrandbits(40):010x} "
                f"recvbuff 0x7f{rng.getrandbits(40):010x} count {count} datatype {kind} "
                f"op {reduction} root 0 comm 0x5500{rank}a0 [nranks={RANKS}] stream 0x66{rank}0\n"
            )
            if rank == 0:
                made.append(f"{head} {op}: {count} Bytes -> Algo RING proto LL channel{{0..1}}\n")
            else:
                made.append("")
    return made


def run_awk(log: Path, scratch: Path, awk: str) -> tuple[dict[str, float], dict[str, str]]:
    """Seconds and output of each pass."""
    times: dict[str, float] = {}
    outputs = {"log": log}
    for name, program in PASSES.items():
        source = outputs[INPUTS.get(name, "sizes")]
        target = outputs[name] = scratch / f"{name.replace(' ', '-')}.txt"
        begin = time.perf_counter()
        with target.open("w") as file:
            subprocess.run(
                [awk, program, str(source)],
                stdout=file,
                check=True,
                env={**os.environ, "LC_ALL": "C"},
            )
        times[name] = time.perf_counter() - begin
    small = ("per operation", "step time")
    return times, {name: outputs[name].read_text() for name in small}


def cpu_seconds() -> float:
    """User and system time of the programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_grep(log: Path) -> float:
    """CPU seconds of ``grep -c opCount``, which only counts the lines.

    With /dev/null for its output, grep ends at the first line that fits.
    """
    begin = cpu_seconds()
    subprocess.run(["grep", "-c", "opCount", str(log)], capture_output=True, check=True)
    return cpu_seconds() - begin


def run_ours(log: Path) -> tuple[float, dict[str, object]]:
    """Seconds of the whole command with its start, and what it prints."""
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "nsys_tui", "logs", "--format=json", "--steps=0-999999", str(log)],
        capture_output=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    return time.perf_counter() - begin, dict(json.loads(done.stdout))


def check(found: dict[str, object], outputs: dict[str, str], calls: int, kind: str) -> None:
    """Fails if the two do not say the same; awk drops what stands before the first step line.

    With a label that ends in a colon awk takes the label for the operation, as the old kit did.
    """
    assert found["collective_lines"] == calls, found["collective_lines"]
    per_op = found["per_op"]
    assert isinstance(per_op, dict)
    listed = [] if kind in ("srun", "ray") else outputs["per operation"].splitlines()
    for line in listed:
        op, count, low, high, _ = line.split()
        one = per_op[op]
        assert (one["min_bytes"], one["max_bytes"]) == (int(low), int(high)), line
        assert 0 <= one["calls"] - int(count) <= RANKS * LAYERS, line
    average = found["average"]
    assert isinstance(average, dict)
    mean, steps = outputs["step time"].split()
    assert average["steps"] == int(steps), average
    assert abs(float(average["average_train_step_timing_s"]) - float(mean)) < 2e-6, average


def main() -> int:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--kind", action="append", choices=KINDS_OF_LOG, help="default: all")
    parser.add_argument("--awk", default=shutil.which("mawk") or shutil.which("awk") or "awk")
    arguments = parser.parse_args()
    slower = 0
    widths = (10, 6, 9, 9, 7, 7, 8, 8, 6)
    names = ("calls", "MB", "awk (s)", "ours (s)", "MB/s", "ratio", "CPU (s)", "x grep", "MiB")
    heads = "".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
    print(f"{'kind':12}{heads}")
    for kind in arguments.kind or KINDS_OF_LOG:
        slower += compare(kind, arguments.calls, arguments.repeats, arguments.awk)
    return 1 if slower else 0


def compare(kind: str, wanted: int, repeats: int, program: str) -> bool:
    """Times both on one kind of log, the best of some runs; returns whether ours is slower."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "nccl.log"
        calls = write_log(log, wanted, kind)
        awk: dict[str, float] = {}
        ours = cpu = grep = float("inf")
        for _ in range(repeats):
            times, outputs = run_awk(log, Path(folder), program)
            awk = {name: min(awk.get(name, t), t) for name, t in times.items()}
            begin = cpu_seconds()
            seconds, found = run_ours(log)
            ours, cpu = min(ours, seconds), min(cpu, cpu_seconds() - begin)
            grep = min(grep, run_grep(log))
        check(found, outputs, calls, kind)
        size = log.stat().st_size / 1e6
    total = sum(awk.values())
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"{kind:12}{calls:10,}{size:6.0f}{total:9.2f}{ours:9.2f}{size / ours:7.0f}"
        f"{ours / total:7.2f}{cpu:8.2f}{cpu / max(grep, 0.01):8.0f}{peak:6.0f}",
        flush=True,
    )
    return ours > total


if __name__ == "__main__":
    sys.exit(main())
