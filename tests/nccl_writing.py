"""Writes NCCL and RCCL logs of any version and launcher, with the figures that must come out.

The truth is kept while writing, from plain integers and dictionaries: nothing here is shared with
the code under test. Every line follows the grammar of the version that it claims to be of.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

SIZES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)
TYPES = (
    *("int8", "uint8", "int32", "uint32", "int64", "uint64", "fp16", "fp32", "fp64", "bf16"),
    *("fp8_e4m3", "fp8_e5m2"),
)
BUCKETS = ((1 << 16, "<64KB"), (1 << 20, "64KB-1MB"), (1 << 24, "1MB-16MB"), (1 << 80, ">16MB"))
VERSIONS = (
    *((2, 4), (2, 7), (2, 10), (2, 12), (2, 14), (2, 16), (2, 17), (2, 18), (2, 20), (2, 22)),
    *((2, 24), (2, 26), (2, 27), (2, 28), (2, 29), (2, 30)),
)
LAUNCHERS = (
    *("bare", "srun", "torchrun", "default", "mpirun", "ray", "iso", "kubectl", "colour"),
    *("nccl-stamp", "nccl-stamp-us", "space-stamp", "syslog", "glued"),
)


@dataclass
class Rank:
    """One process with one GPU."""

    number: int
    host: str
    pid: int
    device: int
    pointers: dict[int, str]
    """Pointer of each of its communicators."""


@dataclass
class Truth:
    """What must come out."""

    calls: list[tuple[int, str, int, int]] = field(default_factory=list)
    """(rank, operation, count, datatype) of every whole COLL line."""
    owner: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    """COLL lines by (host, pid, communicator pointer)."""
    steps: dict[int, int] = field(default_factory=Counter)
    """COLL lines by step."""
    tuning: Counter[tuple[str, str]] = field(default_factory=Counter)
    """TUNING lines by (algorithm, protocol)."""
    headers: int = 0
    torn: int = 0
    lines: int = 0

    def sizes(self) -> dict[str, Any]:
        """The four lists of sizes in the goldens' shape, lists without an order as sets."""
        per_op: dict[str, list[int]] = {}
        histogram: Counter[tuple[str, str]] = Counter()
        distinct: Counter[tuple[str, int, str, int]] = Counter()
        for _, op, count, kind in self.calls:
            size = count * SIZES[kind]
            per_op.setdefault(op, []).append(size)
            histogram[op, next(name for top, name in BUCKETS if size < top)] += 1
            distinct[op, count, TYPES[kind], size] += 1
        return {
            "collective_lines": len(self.calls),
            "per_op": {
                op: {
                    "calls": len(sizes),
                    "min_bytes": min(sizes),
                    "max_bytes": max(sizes),
                    "total_bytes": sum(sizes),
                    "avg_bytes": _mean(sizes),
                }
                for op, sizes in per_op.items()
            },
            "histogram": {(op, name, n) for (op, name), n in histogram.items()},
            "aggregate": {(n, *key) for key, n in distinct.items()},
        }


class Writer:
    """A run of several ranks, written into one text or one text per rank."""

    def __init__(
        self, seed: int, version: tuple[int, int], launcher: str, *, rccl: str = ""
    ) -> None:
        self.rng = random.Random(seed)
        self.version, self.launcher, self.rccl = version, launcher, rccl
        self.truth = Truth()
        self.world = self.rng.choice([2, 4, 8])
        per_node = self.rng.choice([2, 4, 8])
        self.ranks = [
            Rank(
                n,
                f"node-{n // per_node:02}",
                4000 + 17 * n,
                n % per_node,
                {c: f"0x{self.rng.getrandbits(44) | 1 << 44:x}" for c in range(3)},
            )
            for n in range(self.world)
        ]
        self.nodes = -(-self.world // per_node)
        self.per_node = min(per_node, self.world)
        self.micros = 1_768_545_203_000_000
        self.texts: list[list[str]] = [[] for _ in self.ranks]
        """Lines by rank; ``merged`` puts them in the order of writing."""
        self.merged: list[str] = []
        self.step = 0
        self.counts: tuple[int, ...] = (1, 63, 65536, 2**20, 2**31, 2**53 + 1, 57229824)
        self.op_counts = [0, 0, 0]

    def put(self, rank: Rank, message: str, level: str = "INFO", *, whole: bool = True) -> None:
        """One line of a rank, as its version and launcher print it."""
        self.micros += self.rng.randint(1, 900)
        epoch = f" {self.micros}" if self.rccl == "2019" else ""
        device = "" if level == "CALL" else f" [{rank.device}]"
        where = ""
        if level == "WARN":
            where = " transport/net_ib.cc:172"
            where += " (ncclIbInit)" if self.version >= (2, 30) else ""
        tid = rank.pid + self.rng.choice([0, 0, 0, 7])
        header = f"{rank.host}:{rank.pid}:{tid}{device}{epoch}{where} NCCL {level} "
        if level == "WARN" and not self._stamped():
            self._append(rank, "")
        self._append(rank, self._front(rank) + header + message + self._end())
        self.truth.headers += whole

    def _append(self, rank: Rank, line: str) -> None:
        self.texts[rank.number].append(line)
        self.merged.append(line)

    def _stamped(self) -> bool:
        return self.launcher not in ("bare", "glued")

    def _clock(self, digits: int) -> str:
        seconds, micros = divmod(self.micros, 10**6)
        day, clock = divmod(seconds - 1_768_521_600, 86_400)
        text = f"{clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}"
        fraction = f".{micros * 1000:09}"[: digits + 1] if digits else ""
        return f"2026-01-{16 + day:02}T{text}{fraction}"

    def _front(self, rank: Rank) -> str:
        iso = self._clock(6)
        return {
            "bare": "",
            "srun": f"{rank.number}: ",
            "torchrun": f"[rank{rank.number}]: ",
            "default": f"[default{rank.device}]:",
            "mpirun": f"[1,{rank.number}]<stdout>:",
            "ray": f"(RayTrainWorker pid={rank.pid}, ip=10.72.7.{rank.number}) ",
            "iso": f"{iso}Z ",
            "kubectl": f"[pod/train-{rank.number}/pytorch] {self._clock(9).rstrip('0')}Z ",
            "colour": f"\x1b[3{rank.number}m",
            "nccl-stamp": f"[{self._clock(0).replace('T', ' ')}] ",
            "nccl-stamp-us": f"[{self._clock(6).replace('T', ' ')}] ",
            "space-stamp": f"{self._clock(3).replace('T', ' ')} ",
            "syslog": f"Jan 16 {self._clock(0)[11:]} {rank.host} train[{rank.pid}]: ",
            "glued": self.rng.choice(["", "", "   16777216  4194304 float "]),
        }[self.launcher]

    def _end(self) -> str:
        return "\x1b[0m" if self.launcher == "colour" else ""

    def start(self) -> None:
        """Banner, environment and the world communicator of every rank."""
        major, minor = self.version
        for rank in self.ranks:
            self.put(rank, f"NCCL version {major}.{minor}.3+cuda12.2")
            self.put(rank, f"NCCL_DEBUG set by environment to INFO{'.' * (minor > 14)}")
        for rank in self.ranks:
            self.init(rank, 0, rank.number, self.world, "0xabcdef0123456789")

    def init(self, rank: Rank, comm: int, number: int, size: int, comm_id: str) -> None:
        """The Init lines of a communicator as one rank prints them, with its ring."""
        _, minor = self.version
        pointer = rank.pointers[comm]
        who = f"comm {pointer} rank {number} nranks {size} cudaDev {rank.device}"
        who += f" nvmlDev {rank.device}" if minor >= 18 else ""
        who += f" busId {rank.device + 1}7000"
        who += f" commId {comm_id}" if minor >= 16 else ""
        call = "ncclCommInitRank " if minor >= 22 else ""
        if minor >= 18:
            lead = f"[Rank {number}] " if minor >= 29 else ""
            self.put(rank, f"{lead}{call}{who} - Init START")
        if minor >= 20:
            local = f"localRanks {self.per_node} localRank {rank.device} MNNVL 0"
            self.put(
                rank, f"comm {pointer} rank {number} nRanks {size} nNodes {self.nodes} {local}"
            )
        if number == 0:
            self.put(rank, f"Channel 00/01 : {' '.join(map(str, range(size)))}")
        before, after = (number - 1) % size, (number + 1) % size
        self.put(rank, f"Ring 00 : {before} -> {number} -> {after}")
        same = (number // self.per_node) == (after // self.per_node)
        via = "P2P/CUMEM" if same else "NET/IB/0/GDRDMA"
        names = (str(number), str(after)) if minor >= 18 else ("17000", "27000")
        side = "" if same else "[send] "
        part = "00/0" if minor >= 12 else "00"
        self.put(
            rank, f"Channel {part} : {number}[{names[0]}] -> {after}[{names[1]}] {side}via {via}"
        )
        self.put(rank, "Connected all rings")
        self.put(rank, f"{call}{who} - Init COMPLETE")

    def collective(
        self, comm: int, members: list[Rank], op: str, count: int, kind: int, *, red: int = 0
    ) -> None:
        """One collective on every member, its COLL line (and a TUNING line on the first)."""
        number = self.op_counts[comm]
        self.op_counts[comm] += 1
        self.rng.shuffle(members)
        for rank in members:
            send = f"0x{self.rng.getrandbits(47):x}"
            receive = self.rng.choice([send, f"0x{self.rng.getrandbits(47):x}", "(nil)"])
            acc = "acc (nil) " if self.rccl == "acc" else ""
            nranks = "" if self.rng.random() < 0.1 and comm == 0 else f"[nranks={len(members)}] "
            line = (
                f"{op}: opCount {number:x} sendbuff {send} recvbuff {receive} {acc}count {count}"
                f" datatype {kind} op {red} root 0 comm {rank.pointers[comm]} {nranks}"
                f"stream 0x{0x6600 + comm:x}"
            )
            if self.rccl == "task":
                line += f" task {self.rng.randint(0, 9)} globalrank {rank.number}"
            self.put(rank, line)
            self.truth.calls.append((rank.number, op, count, kind))
            self.truth.owner[rank.host, rank.pid, rank.pointers[comm]] += 1
            self.truth.steps[self.step] += 1
        self.tune(members[0], op, count * SIZES[kind])

    def tune(self, rank: Rank, op: str, size: int) -> None:
        """A TUNING line in the version's form."""
        _, minor = self.version
        algorithm, protocol = self.rng.randint(0, 1), self.rng.randint(0, 2)
        names = (("TREE", "RING")[algorithm], ("LL", "LL128", "SIMPLE")[protocol])
        if minor >= 24:
            channels = "channel{Lo..Hi}={0..23}"
            self.put(rank, f"{op}: {size} Bytes -> Algo {names[0]} proto {names[1]} {channels}")
        else:
            front = f"{op}: " if minor == 23 else ""
            time = f"time {self.rng.random() * 1e4:f}"
            self.put(rank, f"{front}{size} Bytes -> Algo {algorithm} proto {protocol} {time}")
        self.truth.tuning[names] += 1

    def step_line(self) -> None:
        """NeMo's line, which closes the step."""
        self.merged.append(
            f"Training epoch 0, iteration {self.step}/99 | lr: 6e-06 | global_step: {self.step} | "
            f"reduced_train_loss: 11.96 | train_step_timing in s: {6 + self.step / 1000:.4} | "
            f"TFLOPS_per_GPU: 1.249e+03 | consumed_samples: 5632"
        )
        self.step += 1

    def run(self, steps: int, calls: int) -> None:
        """Steps with random collectives on the world and on two halves of it."""
        self.start()
        ops = ["AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce"]
        ops += ["AlltoAll", "Gather", "Scatter"] if self.version >= (2, 28) else []
        kinds = 12 if self.version >= (2, 24) else 10 if self.version >= (2, 10) else 9
        for _ in range(steps):
            for _ in range(calls):
                op = self.rng.choice(ops)
                count = self.rng.choice(self.counts)
                red = self.rng.randint(0, 3) if "Reduce" in op else 0
                kind = self.rng.randrange(kinds)
                self.collective(0, list(self.ranks), op, count, kind, red=red)
            if self.rng.random() < 0.5:
                rank = self.rng.choice(self.ranks)
                self.put(rank, "NET/IB : Got async event : port error", "WARN")
            self.step_line()

    def text(self, newline: str = "\n") -> str:
        """All ranks in one text."""
        self.truth.lines = len(self.merged)
        return "".join(line + newline for line in self.merged)

    def text_of(self, rank: int, newline: str = "\n") -> str:
        """One rank's own file."""
        return "".join(line + newline for line in self.texts[rank])


def _mean(values: list[int]) -> int | float:
    """Exact where it is whole, as the goldens have it."""
    mean = Fraction(sum(values), len(values))
    return int(mean) if mean.denominator == 1 else sum(values) / len(values)
