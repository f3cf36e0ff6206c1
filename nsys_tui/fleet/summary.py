"""What is kept of one report: small enough for a thousand of them, enough for every fleet figure.

Times are ns on the session's own clock. A summary depends on its report and on ``Options`` only.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Final

import numpy as np

from nsys_tui.analysis.iterations.steps import counted
from nsys_tui.analysis.window import Choice
from nsys_tui.errors import UNREADABLE
from nsys_tui.fleet.name_stats import NameStats
from nsys_tui.fleet.times import Grid
from nsys_tui.model.arrays import Bool, Int32, Int64
from nsys_tui.units import Edges

VERSION: Final = 14
"""Raised whenever the meaning of a stored summary changes."""

SPLIT: Final = (
    "busy",
    "idle",
    "compute",
    "comm",
    "memory",
    "graph",
    "exposed_comm",
    "exposed_memory",
    "compute_comm_overlap",
    "sum",
    "kernels",
    "operations",
)
"""What is counted per GPU of a process; all but the last two are ns."""
MAPPED: Final = ("busy", "compute", "comm", "compute_comm_overlap", "memory")
"""What is kept per bin, ns."""
STEP_FIGURES: Final = ("busy", "compute", "comm", "exposed_comm", "memory")
"""What is kept per step, ns, all GPUs of the process together."""
FAMILIES: Final = ("kernels", "copies", "ranges", "api", "osrt", "mpi")
"""Kinds of events with statistics per name."""
OF_GPU: Final = ("kernels", "copies")
"""Those that GPUs did."""
USUAL: Final = ("kernels", "copies", "ranges", "mpi")
"""Those that cost little to read."""


@dataclass(frozen=True)
class Options:
    """What decides the content of a summary."""

    iteration: str | None = None
    """Regular expression for the NVTX ranges that are steps."""
    pace: str | None = None
    """Kernel or range of which every instance is kept."""
    families: tuple[str, ...] = USUAL
    patterns: tuple[str, ...] = ()
    """The user's own regular expressions for communication kernels."""
    window: Edges | None = None
    """Only this counts, ns on the session's own clock; an end that is None is that of the trace."""
    step: str | None = None
    """Only the step of this label or number counts, each rank's own."""
    nvtx: str | None = None
    """Only the NVTX range ``NAME`` or ``NAME/INDEX`` counts, each rank's own."""
    choice: Choice = field(default_factory=Choice)
    """Which processes, GPUs and streams count, of each report those that it has."""

    @property
    def unrestricted(self) -> Options:
        """The same for all processes, GPUs and streams."""
        return replace(self, choice=Choice())

    def key(self) -> str:
        """Tells summaries of different options apart."""
        text = json.dumps([VERSION, asdict(self)], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _none() -> Int64:
    return np.zeros(0, np.int64)


def _flat() -> Int64:
    return np.zeros((0, 0), np.int64)


@dataclass(frozen=True, eq=False)
class Steps:
    """Iterations of one process."""

    rule: str = ""
    """How they were found; empty where none were."""
    name: str = ""
    labels: tuple[str, ...] = ()
    start: Int64 = field(default_factory=_none)
    end: Int64 = field(default_factory=_none)
    figures: Int64 = field(default_factory=_flat)
    """``STEP_FIGURES``, shape (steps, figures)."""
    never_closed: Bool = field(default_factory=lambda: np.zeros(0, bool))
    """Those whose end is not known."""
    warm_up: int = 1
    """How many at the beginning are warm-up."""

    @property
    def counted(self) -> Bool:
        """Those that statistics are of."""
        return counted(self.never_closed, warm_up=self.warm_up)

    @property
    def steady(self) -> Int64:
        """Times of those that are counted."""
        return (self.end - self.start)[self.counted]


@dataclass(frozen=True, eq=False)
class Collectives:
    """Communication kernels that all ranks of a communicator run, in the order of their starts."""

    keys: tuple[tuple[str, str], ...] = ()
    """(kernel name, communicator): what is matched over ranks. The communicator is NCCL's id, or
    ``stream 1`` and so on by the number of its stream among those that communicate."""
    key: Int32 = field(default_factory=lambda: np.zeros(0, np.int32))
    """Index into ``keys``."""
    start: Int64 = field(default_factory=_none)
    end: Int64 = field(default_factory=_none)
    gap: Int64 = field(default_factory=_none)
    """Time since the end of those before; -1 for the first."""
    before: Int64 = field(default_factory=_flat)
    """``arrivals.PARTS`` of that time, shape (calls, parts)."""
    point_to_point: int = 0
    """Send and receive kernels, which are not matched."""
    alone_ns: int = 0
    """Time in these while nothing computes: what a pipeline waits, and its transfers."""


@dataclass(frozen=True, eq=False)
class Pace:
    """All instances of one kernel or range in one process."""

    kind: str = ""
    """``kernel`` or ``range``; empty where the process has none."""
    name: str = ""
    start: Int64 = field(default_factory=_none)
    duration: Int64 = field(default_factory=_none)


@dataclass(frozen=True, eq=False)
class ProcessSummary:
    """What may be a rank: a process, or one of several GPUs of it that communicate."""

    process: int
    """globalPid, -1 where the report names no process."""
    pid: int
    name: str
    evidence: tuple[tuple[int, str], ...]
    """Ranks it may have, the surest first, each with what says so."""
    devices: tuple[str, ...]
    splits: Int64
    """``SPLIT`` per device, shape (devices, figures)."""
    heat: Int64
    """``MAPPED`` per device and bin of the report's grid, ns: shape (devices, figures, bins)."""
    memory_peak: Int64
    """Most bytes of GPU memory held, per device; -1 where not recorded."""
    memory: Int64
    """Most bytes held in each bin: shape (devices, bins), or (0, 0)."""
    steps: Steps = field(default_factory=Steps)
    collectives: Collectives = field(default_factory=Collectives)
    pace: Pace = field(default_factory=Pace)
    stats: tuple[NameStats, ...] = ()
    """One per family of the options, in their order; of host events only for unit 0."""
    unit: int = 0
    """Place among the ranks of its process."""
    window: tuple[int, int] | None = None
    """What counts of the session; None for everything."""


@dataclass(frozen=True, eq=False)
class ReportSummary:
    """One report."""

    report_id: str
    host: str
    job: str
    node: int | None
    local: int | None
    """Rank within its node, where environment or file name tell."""
    world: int | None
    """Number of ranks of the program, where environment or file name tell."""
    start_utc: int | None
    """Session start, ns since 1970; None where the report does not tell."""
    session_ns: int | None
    base: tuple[int, int]
    """First operation's start to last one's end over all GPUs; what shares are of."""
    grid_shape: tuple[int, int, int]
    """``Grid`` of the heat maps, on the UTC clock, or the session's own where that is unknown."""
    hidden_graphs: bool
    """Whether CUDA graphs were traced as a whole, which makes exposed times upper bounds."""
    notes: tuple[str, ...]
    processes: tuple[ProcessSummary, ...]
    gpu_doubt: str = ""
    """Why its GPU work is not believed: then it has no figures of GPUs."""
    jobs: tuple[tuple[str, str], ...] = ()
    """Digests of what its job is called, by environment variable."""
    node_name: str = ""
    """What Slurm calls its node, where that started it."""
    metrics: tuple[str, ...] = ()
    """Names of sampled GPU metrics."""
    metric_gpus: tuple[int, ...] = ()
    metric_sum: Int64 = field(default_factory=lambda: np.zeros((0, 0, 0), np.int64))
    """Sums of the samples, shape (gpus, metrics, bins of ``metric_grid``)."""
    metric_count: Int64 = field(default_factory=lambda: np.zeros((0, 0, 0), np.int64))

    @property
    def grid(self) -> Grid:
        """Bins of the heat maps."""
        return Grid(*self.grid_shape)

    @property
    def anchor(self) -> int:
        """Where the session's zero lies on the clock of the grid."""
        return self.start_utc or 0


@dataclass(frozen=True)
class Failure:
    """A report that could not be summarised."""

    path: str
    reason: str
    exit_code: int = UNREADABLE
    """What a command that read only this report would exit with."""
    lost: bool = False
    """Whether the cluster is to blame, not the report."""
