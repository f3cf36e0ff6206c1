"""LogResult: all that was read from a set of logs, frozen, for commands, a screen or a join."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from nsys_tui.logs.communicator_purpose import purposes

if TYPE_CHECKING:
    from fractions import Fraction

    from nsys_tui.logs.api import ApiLog
    from nsys_tui.logs.benchmark_tables import Series
    from nsys_tui.logs.call_log import CallLog
    from nsys_tui.logs.flight_recorder import Dump
    from nsys_tui.logs.mpi import MpiLog
    from nsys_tui.logs.mpip import MpipReport
    from nsys_tui.logs.participants import Communicator, Gpu, Group, LogProcess
    from nsys_tui.logs.plugins import Measured
    from nsys_tui.logs.servers import ServerLine
    from nsys_tui.logs.steps import Window
    from nsys_tui.logs.topology import Topology
    from nsys_tui.logs.trainers import RunTotal, StepLine
    from nsys_tui.logs.watchdogs import Timeout


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
class InitTiming:
    """Seconds that a rank took to set a communicator up, as printed."""

    process: int
    rank: int
    nranks: int
    parts: tuple[tuple[str, str], ...]


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
    timings: tuple[InitTiming, ...]
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

    def process_label(self, place: int, unknown: str = "-") -> str:
        """``host:pid`` of a process by its place, or ``unknown`` where that is -1."""
        if place < 0:
            return unknown
        process = self.processes[place]
        return f"{process.host}:{process.pid}"

    def group_label(self, place: int) -> str:
        """Number of a group, marked where its members are a guess."""
        return f"{'' if self.groups[place].certain else '≈'}{place}"
