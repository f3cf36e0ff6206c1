"""LogResult: all that was read from a set of logs, frozen, for commands, a screen or a join."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from nsys_tui.logs.nccl.api import ApiLog
from nsys_tui.logs.nccl.calls import CallLog, Calls
from nsys_tui.logs.nccl.messages import Timing
from nsys_tui.logs.nccl.participants import Communicator, Gpu, Group, LogProcess, purposes
from nsys_tui.logs.nccl.plugins import Measured
from nsys_tui.logs.nccl.topology import Topology
from nsys_tui.logs.others.benchmark_tables import Series
from nsys_tui.logs.others.mpi import MpiLog, MpipReport
from nsys_tui.logs.others.pytorch import Dump, Timeout
from nsys_tui.logs.others.servers import ServerLine
from nsys_tui.logs.trainers.step_lines import RunTotal, StepLine
from nsys_tui.model.arrays import Int64


@dataclass(frozen=True)
class LogFile:
    """One file and what its lines were."""

    path: str
    lines: int
    """Line ends, plus one for a last line without."""
    header_lines: int
    header_not_at_column_0: int
    collective_lines: int
    """Whole COLL bodies."""
    torn_lines: int
    """Lines with several headers, with a COLL body but no header, or with half a COLL body."""
    cut_lines: int
    """NCCL lines that filled NCCL's buffer of 1024 bytes, so that their end is missing."""
    tuning_lines: int
    call_lines: int
    versions: tuple[str, ...]
    timed: bool
    """Whether the COLL lines carry a wall clock."""
    cut_short: bool = False
    """Whether its end is missing: of a packed file, or of the call in its last line."""


@dataclass(frozen=True)
class TuningRow:
    """How often the tuner took an algorithm and protocol for an operation and a size."""

    op: str
    algorithm: str
    protocol: str
    bytes: int
    channels: str
    calls: int


@dataclass(frozen=True)
class KernelRow:
    """Durations of a collective kernel by RCCL's own kernel trace, one block of it counted once."""

    kernel: str
    count: int
    min_ns: int
    mean_ns: Fraction
    max_ns: int
    unfinished: int


@dataclass(frozen=True)
class Window:
    """A window over steps, both ends included."""

    first: int
    last: int
    legacy: bool
    lines: int
    """Lines of text inside, over all files."""
    step_lines: tuple[int, ...]
    """Steps whose line is printed inside."""
    steps: tuple[int, ...]
    """Steps whose collectives it really holds; the step after the last printed one is included."""


@dataclass(frozen=True, eq=False)
class LogResult:
    """Everything that was read."""

    files: tuple[LogFile, ...]
    processes: tuple[LogProcess, ...]
    calls: CallLog
    """Calls in the step window, or all."""
    every_call: CallLog
    """All calls: a hang is looked for in these, since ranks pass a step line at different times."""
    communicators: tuple[Communicator, ...]
    groups: tuple[Group, ...]
    gpus: tuple[Gpu, ...]
    topology: Topology
    tuning: tuple[TuningRow, ...]
    api: ApiLog
    """CALL lines: the same calls as the program made them, and functions that are no collective."""
    kernels: tuple[KernelRow, ...]
    timings: tuple[Timing, ...]
    environment: tuple[tuple[str, str, int], ...]
    """(variable, value, lines)."""
    warnings: tuple[tuple[str, int], ...]
    """(text of a WARN line, lines)."""
    step_lines: tuple[StepLine, ...]
    run_totals: tuple[RunTotal, ...]
    trainer: str
    """Format whose step lines own the window; empty without any."""
    window: Window | None
    mpi: MpiLog
    servers: tuple[ServerLine, ...]
    """Throughput lines of inference servers."""
    warmup: int | None
    """Step lines that the user leaves out of averages; None where the log is to tell."""
    benchmarks: tuple[Series, ...]
    """Tables of nccl-tests and OSU, a series for each column."""
    mpip: tuple[MpipReport, ...]
    measured: tuple[Measured, ...]
    """Collectives that NCCL's plugins measured."""
    timeouts: tuple[Timeout, ...]
    """Collectives that PyTorch's watchdog found to take too long."""
    dumps: tuple[Dump, ...]
    """PyTorch's flight recorder."""
    mentions_debug_time: bool
    """Whether the text names NCCL_DEBUG_TIME, which is no variable of NCCL."""
    skipped: tuple[tuple[str, str], ...]
    """(file, why) of files that could not be read beside others that could."""
    half_calls: frozenset[int]
    """Processes of which the end of a file tells half a call."""

    @property
    def has_content(self) -> bool:
        """Whether anything that this room knows was found."""
        return bool(
            len(self.calls)
            or self.step_lines
            or self.run_totals
            or self.servers
            or self.benchmarks
            or self.mpip
            or self.measured
            or self.timeouts
            or self.dumps
            or self.mpi.calls
            or self.mpi.torn_lines
            or any(f.header_lines or f.collective_lines or f.torn_lines for f in self.files)
        )

    @cached_property
    def purposes(self) -> list[str]:
        """What the communicators of each group are probably for; empty where nothing tells."""
        return purposes(self.calls.sums, self.communicators, self.groups)

    def process_label(self, index: int, unknown: str = "-") -> str:
        """``host:pid`` of a process by its place, or ``unknown`` where that is -1."""
        if index < 0:
            return unknown
        process = self.processes[index]
        return f"{process.host}:{process.pid}"

    def group_label(self, group: int) -> str:
        """Number of a group, marked where its members are a guess."""
        return f"{'' if self.groups[group].certain else '≈'}{group}"


def job_ranks(result: LogResult, calls: Calls) -> Int64:
    """Rank in the job of each of some calls; -1 where no line tells it.

    A process that drives several GPUs has no rank of its own; then the communicator's rank counts,
    if it is one of the largest size.
    """
    of_process = np.array([p.rank for p in result.processes] + [-1], dtype=np.int64)
    rank = of_process[calls.process]
    largest = max((c.nranks for c in result.communicators), default=-1)
    return np.where((rank < 0) & (calls.nranks == largest), calls.rank, rank)


def restrict(result: LogResult, *, rank: int | None = None, gpu: int | None = None) -> LogResult:
    """The same result with the calls of one rank of the job or of the GPUs of one number only."""
    kinds = result.calls.by_kind
    keep = np.ones(len(kinds), dtype=np.bool_)
    if rank is not None:
        keep &= job_ranks(result, kinds) == rank
    if gpu is not None:
        devices = np.array([one.device for one in result.gpus] + [-1], dtype=np.int64)
        keep &= devices[kinds.gpu] == gpu
    if keep.all():
        return result
    return replace(result, calls=result.calls.where(lambda rows: keep[rows["kind"]]))
