"""Finding: one problem, how grave and how sure it is, where it shows and what to do about it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np

from nsys_tui.model.arrays import Int64, Integers
from nsys_tui.model.events import EventSet
from nsys_tui.model.intervals import Intervals
from nsys_tui.names import visible


class Severity(StrEnum):
    """High, medium or low, in words that need no colour."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def letter(self) -> str:
        """H, M or L."""
        return self.value[0].upper()

    @property
    def rank(self) -> int:
        """2 for high, 1 for medium, 0 for low."""
        return 2 - list(Severity).index(self)


WORTH_FIXING: Final = 0.01
"""Part of the time from which a finding matters, and is named by the verdict."""
OF_RUN: Final = WORTH_FIXING, 5 * WORTH_FIXING
OF_GAPS: Final = 0.001, 0.01
"""Parts of the span (or window) from which a finding, or one gap, counts as medium and high."""
HIGH_NS: Final = 1_000_000
MEDIUM_NS: Final = 100_000
"""Times below which it does not, however short the run is."""


def severity(saved_ns: int, base_ns: int, shares: tuple[float, float] = OF_RUN) -> Severity:
    """Severity of a problem that costs ``saved_ns`` of ``base_ns``."""
    return list(Severity)[2 - int(ranks(np.array([saved_ns], np.int64), base_ns, shares)[0])]


def ranks(saved_ns: Int64, base_ns: int, shares: tuple[float, float] = OF_GAPS) -> Int64:
    """The rank of the severity of many: int64 [n], 2 for high, 1 for medium, 0 for low."""
    if base_ns <= 0:
        return np.zeros(len(saved_ns), np.int64)
    medium, high = (share * base_ns for share in shares)
    grave = saved_ns >= max(high, HIGH_NS)
    return np.maximum(2 * grave.astype(np.int64), saved_ns >= max(medium, MEDIUM_NS))


class Confidence(StrEnum):
    """How firmly a finding is known."""

    MEASURED = "measured"
    """Events say so."""
    INFERRED = "inferred"
    """A rule over events."""
    GUESS = "guess"
    """By a name or a pattern alone."""


TITLE_CELLS: Final = 100
_OF_WORK: Final = 8
_OF_MOST: Final = 5
"""Of work one of so many parts counts in a list, more of what has most of it; idle time whole."""
_OF_FINE: Final = 20
_MUCH: Final = 10
"""A guess counts less than one of so many parts of the time."""
_FIGURES: Final = re.compile(r" \([^)]*\)| [\d.,]+ ?(%|x\b|[kMGTP]?B\b)")
"""Shares, factors and sizes in a subject, and what stands in brackets."""


def command_of(command: str, name: str) -> str:
    """A command of a finding with the report's name in it, as a shell wants it; not escaped.

    Args:
        command: with ``REPORT`` for the file.
        name: of the report.
    """
    return re.sub(r"\bREPORT\b", lambda _: shlex.quote(visible(name)), command)


def by_ncu(name: str = "") -> str:
    """The command that looks closely at some launches, of the kernel of a name, if it has one."""
    kernel = f" -k {shlex.quote(name)}" if name else ""
    return f"ncu --set full{kernel} --launch-count 5 PROGRAM"


class Held(NamedTuple):
    """Waits for another thread, and since when that one works without a wait of its own."""

    spans: Intervals
    """From then to the ends of the waits: what ends sooner there shortens nothing."""
    until: str
    """What has to happen first: ``loader is quicker``."""
    known: bool
    """Whether events show that it works on meanwhile; else nobody can tell."""
    rules: frozenset[str] = frozenset()
    """The rules whose findings it holds up; empty for all."""


@dataclass(frozen=True)
class Finding:
    """One problem found in a report."""

    rule: str
    """Name of the rule that found it."""
    severity: Severity
    title: str
    """What is wrong, with its figures, in one line."""
    subject: str
    """The same in a few words, as a list names it."""
    advice: str
    """What to do, in one line."""
    saved_ns: int
    """Time that could be saved at most, ns; 0 where it cannot be told."""
    window: tuple[int, int] | None
    """Where it shows best, ns; None for a finding about the report itself."""
    device: int | None
    """Device in ``Report.devices`` on which it shows best, or None."""
    screen: str
    """Number key of the screen that shows it."""
    command: str
    """Command that shows it, with ``REPORT`` for the file."""
    stake_ns: int = 0
    """Time that it is about, where what could be saved of it cannot be told or is less."""
    confidence: Confidence = Confidence.GUESS
    doubt: str = ""
    """How it could be wrong, in one sentence."""
    settle: str = ""
    """The command or capture that would settle the doubt, with ``REPORT`` for the file."""
    lost: Intervals | None = field(default=None, compare=False, repr=False)
    """When the GPU is idle because of it, where that is known: findings of one time are one."""
    gone: Intervals | None = field(default=None, compare=False, repr=False)
    """When it would be idle no more without it: what makes the host be ahead hides other time."""
    late: int = -1
    """Place of the GPU that it mostly waits for, -1 for none."""
    metrics: str = ""
    """What sampled hardware counters say of its time, empty for nothing."""
    phase: str = ""
    """The part of the time looked at that it keeps to: ``in the first 33%``."""
    held: Held | None = field(default=None, compare=False, repr=False)
    """Where it is the wait for another thread: when that one works on."""
    held_ns: int = 0
    """Time that it costs, too, but that would be waited for another thread without it."""
    same_as: str = ""
    """Subject of the finding above that could give most of this time back, too."""
    of_ns: int = 0
    """Time that its shares are of: without that of set-up, but for what happens once."""
    is_once: bool = False
    """Whether it happens once, and so is no part of what a longer run takes."""
    is_fine: bool = False
    """Whether it is of work that uses the GPU well, of which little can go."""

    @property
    def id(self) -> str:
        """What is the same in another report of the program: rule, subject and GPU, no figures."""
        about = _FIGURES.sub("", self.subject).strip().replace(" ", "-")
        return f"{self.rule}:{about}" + ("" if self.device is None else f"@{self.device}")

    @property
    def weight_ns(self) -> int:
        """By what it is rated."""
        return max(self.saved_ns, self.stake_ns)

    @property
    def order_ns(self) -> int:
        """By what it is ordered."""
        if self.is_fine:
            return max(self.saved_ns, self.stake_ns // _OF_FINE)
        idle = self.lost is not None
        return counted_ns(self.saved_ns, self.stake_ns, self.of_ns, self.confidence, idle=idle)


def decides(stake_ns: int, of_ns: int, confidence: Confidence) -> bool:
    """Whether something is known to be about most of the time, whatever it could give back."""
    return confidence is not Confidence.GUESS and 2 * stake_ns > of_ns


def counted_ns(
    saved_ns: int, stake_ns: int, of_ns: int, confidence: Confidence, *, idle: bool
) -> int:
    """By what a finding is rated: idle time, or a part of work of which nobody knows what can go.

    Args:
        saved_ns: time that could be saved at most.
        stake_ns: time that it is about.
        of_ns: the time that its shares are of.
        confidence: how it is known.
        idle: whether that is idle time of a GPU.
    """
    parts = 1 if idle else _OF_MOST if decides(stake_ns, of_ns, confidence) else _OF_WORK
    told = max(saved_ns, stake_ns // parts)
    guess = confidence is Confidence.GUESS
    return min(told // 2, max(of_ns // _MUCH - 1, 0)) if guess else told


_FEWEST_SPANS: Final = 10
NEARLY_ALL: Final = 0.95
_PART: Final = 0.5
_EDGE: Final = 0.05


def phase_of(spans: Intervals, base: tuple[int, int], since: int) -> str:
    """The part of a time in which nearly all of some intervals lie, or empty.

    Few intervals tell no phase, nor does more than half of the time from the first step on.

    Args:
        spans: of what is looked at.
        base: the time that parts are told of.
        since: when the first step begins.
    """
    (starts, ends), whole = spans, base[1] - base[0]
    if len(starts) < _FEWEST_SPANS:
        return ""
    beyond = (1 - NEARLY_ALL) / 2
    done = np.cumsum(ends - starts)
    first, last = np.searchsorted(done, (beyond * done[-1], (1 - beyond) * done[-1]))
    if ends[last] - starts[first] > _PART * (base[1] - since) or ends[last] <= base[0]:
        return ""
    lo, hi = (float(time - base[0]) / whole for time in (starts[first], ends[last]))
    if lo < _EDGE:
        return f"in the first {hi:.0%}"
    return f"in the last {1 - lo:.0%}" if hi > 1 - _EDGE else f"from {lo:.0%} to {hi:.0%}"


def longest_of(events: EventSet, rows: Integers) -> tuple[int, int]:
    """When the longest of some events was, as evidence."""
    row = int(rows[np.argmax(events.durations(rows))])
    return int(events.start[row]), int(events.end[row])


@dataclass(frozen=True)
class Certainty:
    """What to think of a rule's findings."""

    confidence: Confidence
    doubt: str
    """How the finding could be wrong."""
    settle: str
    """The command or capture that would tell, with ``REPORT`` for the file."""


_MEASURED, _INFERRED, _GUESS = Confidence.MEASURED, Confidence.INFERRED, Confidence.GUESS
_CLOCKS: Final = (
    "nvidia-smi --query-gpu=index,clocks.sm,clocks_throttle_reasons.active --format=csv -l 1"
)
_STALLS: Final = "nsys-tui stalls REPORT"
_SAME_DATA: Final = "compare checksums of what is uploaded, in the program itself"
_TWICE: Final = "profile again with the change, then nsys-tui compare BEFORE AFTER"
_NEEDED: Final = Certainty(
    _MEASURED,
    "the host may need the data before it can go on, so that it waits all the same",
    _TWICE,
)
_SLOWED: Final = Certainty(
    _INFERRED, "the profiler makes each launch slower than it is without", _TWICE
)
_OF_HOST: Final = Certainty(
    _MEASURED, "it may be the work itself, which nothing can leave out", _TWICE
)

CERTAINTY: Final = {
    "blocking_launches": Certainty(
        _INFERRED,
        "the host may be too slow to launch ahead, and a tool may make launches wait",
        _TWICE,
    ),
    "cuda_memcpy_async": _NEEDED,
    "cuda_memcpy_sync": _NEEDED,
    "cuda_memset_sync": Certainty(
        _MEASURED, "the host may wait for something else right after", _TWICE
    ),
    "data_loss": Certainty(
        _MEASURED,
        "what is missing may lie outside of what you look at",
        "nsys profile --duration=5",
    ),
    "dominant_kernel": Certainty(
        _MEASURED,
        "how fast it could be is in no row, so it has no price: it may be as fast as this GPU can",
        by_ncu(),
    ),
    "exposed_communication": Certainty(
        _INFERRED,
        "ranks may wait for the slowest one: then its delay is the cause, not the transfer",
        "nsys-tui collectives REPORT",
    ),
    "exposed_copies": Certainty(
        _INFERRED, "the next kernel may need the data: then nothing can hide its copy", _TWICE
    ),
    "failed_calls": Certainty(
        _MEASURED,
        "a library may try a launch that it expects to fail, and take another way then",
        "compute-sanitizer PROGRAM",
    ),
    "frequent_allocation": Certainty(
        _MEASURED, "the calls may wait for GPU work that would be waited for anyway", _STALLS
    ),
    "gpu_imbalance": Certainty(
        _INFERRED, "its kernels may have more data at the same grid, not be slower", _CLOCKS
    ),
    "last_waves": Certainty(
        _GUESS,
        "theoretical: blocks that last unequally long, or gain from room, lose less",
        by_ncu(),
    ),
    "memsets": Certainty(
        _GUESS, "the memory may have to be cleared, and something else wait for it", _TWICE
    ),
    "movement_kernels": Certainty(
        _GUESS,
        "told by names: their data may be needed as it is, and a fused kernel still moves some",
        _TWICE,
    ),
    "repeated_uploads": Certainty(
        _GUESS, "they may carry other data each time, such as one batch after the other", _SAME_DATA
    ),
    "serial_streams": Certainty(
        _INFERRED, "registers or shared memory may leave no room for both at a time", _TWICE
    ),
    "slow_copies": Certainty(
        _INFERRED, "another GPU or device may have used the bus meanwhile", _TWICE
    ),
    "tiny_kernels": _SLOWED,
    "host_only": _OF_HOST,
    "outside_work": _OF_HOST,
    "launch_bound": _SLOWED,
    "low_occupancy": Certainty(
        _INFERRED,
        "what more warps would gain is in no row, so it has no price: many kernels lose nothing",
        by_ncu(),
    ),
    "migrations_in_kernels": Certainty(
        _INFERRED,
        "the kernel may hide a part of it, or wait for faults that are not recorded, too",
        by_ncu(),
    ),
    "missing_nvtx": Certainty(
        _MEASURED, "nothing is wrong with the run", "nsys profile --trace=cuda,nvtx"
    ),
    "module_loading": Certainty(
        _MEASURED, "it may happen once for each new shape, not in every step", _STALLS
    ),
    "slow_steps": Certainty(
        _INFERRED, "these steps may have more to do: evaluation, a checkpoint", _STALLS
    ),
    "shared_gpus": Certainty(
        _MEASURED,
        "no event says whether MPS is on; they may need the GPU at different times anyway",
        "echo get_server_list | nvidia-cuda-mps-control",
    ),
    "small_copies": Certainty(
        _INFERRED, "the host may need each value before it can go on", _STALLS
    ),
    "small_grids": Certainty(
        _INFERRED, "theoretical: a kernel limited by memory or latency gains less", by_ncu()
    ),
    "unused_gpus": Certainty(
        _MEASURED,
        "it may be meant for another program, or for a later phase",
        "nvidia-smi --query-compute-apps=gpu_bus_id,pid,name --format=csv",
    ),
    "warm_up": Certainty(
        _INFERRED, "a call made once may be the work itself, such as in a one-shot run", _STALLS
    ),
}
"""By rule; idle time says so by its cause."""
UNSURE: Final = Certainty(_GUESS, "", "")
"""Of a rule that is not listed."""
