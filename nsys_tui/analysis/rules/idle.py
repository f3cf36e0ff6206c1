"""Our rules on idle GPUs: which cause costs how much, and what only the first use costs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.breakdown import UVM_COPY_KINDS
from nsys_tui.analysis.rules.case import WORTH_A_LINE
from nsys_tui.analysis.rules.finding import Confidence
from nsys_tui.analysis.rules.parameters import cut
from nsys_tui.analysis.rules.register import Result, rule
from nsys_tui.analysis.rules.severity import Severity
from nsys_tui.analysis.sampled import Doing, sampled
from nsys_tui.analysis.stalls.by_witness import by_witness, shares_of, when
from nsys_tui.analysis.stalls.causes import SHARES, Cause
from nsys_tui.analysis.stalls.gaps import LONG_CALL_NS, Edge
from nsys_tui.analysis.stalls.rows import stall_groups
from nsys_tui.analysis.thread_states import Witness
from nsys_tui.model import intervals
from nsys_tui.model.capabilities import OPTIONS, Capability
from nsys_tui.model.categories import OpKind
from nsys_tui.model.events import FARTHEST
from nsys_tui.model.table import Column, Unit
from nsys_tui.names import api_name, fit, strip_op_id
from nsys_tui.units import plural

if TYPE_CHECKING:
    from nsys_tui.analysis.rules.case import Case
    from nsys_tui.analysis.rules.finding import Finding
    from nsys_tui.analysis.rules.parameters import Arguments
    from nsys_tui.analysis.sampled import Sampled
    from nsys_tui.analysis.stalls.by_witness import Spans
    from nsys_tui.analysis.stalls.gaps import Gaps
    from nsys_tui.model.events import Bool, Int64
    from nsys_tui.model.intervals import Intervals
    from nsys_tui.model.report import Report


@dataclass(frozen=True)
class _Cause:
    """What to say of idle time of one cause."""

    advice: str
    doubt: str
    settle: str
    hidden_by_work: bool = False
    """Whether it can only be hidden behind GPU work, so gives back no more than there is."""
    needs: Capability | None = None
    """What a report must hold for the command that settles it; else that is to be recorded."""

    def settled_by(self, report: Report) -> str:
        """The command that settles the doubt for a report, or the capture that would allow it."""
        if self.needs is None or report.can(self.needs):
            return self.settle
        return f"nsys profile {OPTIONS[self.needs]}"


def _in_system(advice: str, doubt: str, works: bool = True) -> _Cause:
    """Of a call of the operating system's libraries that works, or else waits for something."""
    settle = "nsys-tui stacks REPORT --source osrt"
    return _Cause(advice, doubt, settle, hidden_by_work=works, needs=Capability.OSRT_BACKTRACES)


NO_CALL: Final = "in no recorded call: other programs may have had the CPU, see the load then"
"""What to do about a thread that was off the CPU where its OS calls are recorded."""
_RECORD: Final = "nsys profile --cpuctxsw=process-tree --sample=process-tree --trace=cuda,nvtx,osrt"
_CAUSES: Final = {
    Cause.LAUNCH_LATENCY: _Cause(
        "launch earlier, or capture the phase as a CUDA graph",
        "the host may need a result of the GPU before it can launch",
        "nsys-tui stalls REPORT",
    ),
    Cause.PROFILER: _Cause(
        "caused by profiling: trace less, or flush less often",
        "without the profiler something else may hold the GPU up",
        "nsys profile --cuda-flush-interval=10000 --sample=none",
    ),
    Cause.QUEUE: _Cause(
        "too many launches are queued: launch fewer, or as one CUDA graph",
        "another process or the profiler may have filled the queue",
        _RECORD,
    ),
    Cause.ALLOCATION: _Cause(
        "allocate once before, reuse the memory, and free at the end",
        "the call may wait for GPU work that would be waited for anyway",
        "nsys-tui stalls REPORT",
    ),
    Cause.LOCK: _in_system(
        "see which thread holds it or should wake this one: that one is late, or busy",
        "the thread that it waits for is the cause, and this one only its victim",
        works=False,
    ),
    Cause.IO: _in_system(
        "read or write ahead on another thread, so that the launching one need not wait",
        "a pipe or socket waits for another process, whose work is then the cause",
    ),
    Cause.SLEEP: _in_system(
        "wait for the event itself instead of sleeping, or sleep on another thread",
        "the program may pace itself on purpose",
        works=False,
    ),
    Cause.OSRT: _in_system(
        "take the call off the launching thread, or make it ahead of time",
        "the call may itself wait for a thread whose work is the cause",
    ),
    Cause.API: _Cause(
        "move the call out of the loop",
        "what the call waited for is not recorded",
        _RECORD,
    ),
    Cause.HOST: _Cause(
        "launch ahead of what the host computes here, or move it to another thread",
        "the GPU may need what the host computes: then only faster code helps",
        "nsys-tui stacks REPORT --source cpu",
        hidden_by_work=True,
        needs=Capability.SAMPLES,
    ),
    Cause.OFF_CPU: _Cause(
        "the launching thread slept or had no CPU: see in which call (--trace=osrt)",
        "what it waited for is not recorded",
        _RECORD,
    ),
    Cause.NOTHING: _Cause(
        "record what the host does: --cpuctxsw=process-tree --trace=cuda,nvtx,osrt",
        "it may compute, sleep, or wait for another process",
        _RECORD,
    ),
    Cause.UNKNOWN: _Cause(
        "no call launched what follows: record with --trace=cuda from the start",
        "the launch may lie before the capture, or in a process that was not traced",
        "nsys profile --trace=cuda",
    ),
}
"""Causes that ``gpu_idle`` reports; the others have rules of their own."""
_RENDERING: Final = _Cause(
    "see what the frame loop does here: graphics calls are not tied to their work on the GPU",
    "a frame limit or the display may pace the program on purpose",
    "nsys-tui stalls REPORT",
)
_SYNC: Final = _Cause(
    "order work with events instead of waiting on the host",
    "the host may need the result before it can go on",
    "nsys-tui analyze REPORT -r cuda_api_sync",
)
_NOT_KNOWN: Final = (Cause.NOTHING, Cause.UNKNOWN)
_UNPRICED: Final = (*_NOT_KNOWN, Cause.PROFILER)
"""Causes of which nobody can tell what the program could save; without the profiler, nothing."""


@rule(
    "Idle time of GPUs by cause",
    advice="Idle time between operations by what the host did meanwhile; nsys-tui stalls lists the"
    " gaps.",
    nothing="No idle time between operations.",
)
def gpu_idle(case: Case, arguments: Arguments) -> Result:
    """Idle gaps from 10 us on by cause, and the calls and ranges that cost most."""
    groups = stall_groups(case.report, case.stalls) if len(case.report.operations) else []
    shown, hidden = cut(groups, arguments)
    return Result(
        (
            (Column("Idle", Unit.NS), [group.idle_ns for group in shown]),
            (Column("Gaps", Unit.COUNT), [group.count for group in shown]),
            (Column("Longest", Unit.NS), [group.longest_ns for group in shown]),
            (Column("Cause"), [group.key for group in shown]),
        ),
        (*idle_findings(case, "gpu_idle", tuple(_CAUSES)), *_short_gaps(case)),
        hidden=hidden,
    )


def _short_gaps(case: Case) -> list[Finding]:
    """Gaps too short to be looked at one by one, where they add up to much.

    A launch that is made only when the GPU is idle already comes late; of others the GPU itself
    needs the time.
    """
    least = max(_MUCH * case.base_ns, 1)
    below = {total.place: total.below_ns for total in case.stalls.totals}
    place = max(below, key=lambda key: below[key], default=-1)
    if place < 0 or below[place] < least or not len(case.report.api):
        return []
    report, ops = case.report, case.report.operations
    rows = next(rows for other, rows in case.by_device if other == place)
    reach = np.maximum.accumulate(ops.end[rows])[:-1]
    calls, begun = report.calls[rows[1:]], ops.start[rows[1:]]
    late = (begun > reach) & (begun - reach < case.stalls.threshold_ns) & (calls >= 0)
    late &= report.api.end[calls] >= reach
    runs = [(run.start, run.end) for run in case.stalls.bound if run.place == place]
    bound = intervals.union(*np.array(runs, np.int64).reshape(-1, 2).T)
    starts, ends = intervals.subtract((reach[late], begun[late]), bound)
    idle = intervals.total(starts, ends)
    if idle < least:
        return []
    return case.finding(
        "gpu_idle",
        f"{case.device_labels([place])} idle {units.format_duration(idle)} in"
        f" {plural(len(starts), 'short gap')}: each launch comes only when the one before is done",
        "launch further ahead, fuse kernels, or capture the phase as a CUDA graph",
        subject="idle, short gaps before late launches",
        saved_ns=idle,
        window=(int(starts[0]), int(ends[-1])),
        place=place,
        screen="2",
        command="nsys-tui stalls REPORT --threshold 1us",
        confidence=Confidence.INFERRED,
        doubt="the host may need a result of the GPU before it can launch",
        settle="nsys-tui stalls REPORT --threshold 1us",
        lost=case.idle_part(place, (starts, ends)),
    )


_MUCH: Final = 0.01
"""Part of the time looked at from which short gaps are told."""
_TOLD_APART: Final = frozenset(
    (Cause.LOCK, Cause.IO, Cause.SLEEP, Cause.OSRT, Cause.SYNC, Cause.API)
)
"""Causes with a finding for each call; of the others one finding names the worst."""


def idle_findings(case: Case, name: str, causes: tuple[Cause, ...]) -> list[Finding]:
    """A finding for each cause, or for each call at fault where that tells more."""
    every, spans = case.once("idle by witness", lambda: _idle_by_witness(case))
    gaps = every.take(np.isin(every.cause, causes))
    if not len(gaps):
        return []
    kinds, group = np.unique(_keys(gaps), axis=1, return_inverse=True)
    found: list[Finding] = []
    for number, cause in enumerate(kinds[0].tolist()):
        mine = gaps.take(group.ravel() == number)
        found += _idle_finding(case, name, Cause(cause), mine, spans)
    return found


def _idle_by_witness(case: Case) -> tuple[Gaps, Spans]:
    """Idle gaps once for each of their causes and when that was, without what happens once."""
    gaps = case.stalls.gaps
    gaps = gaps.take(gaps.edge == Edge.INNER)
    gaps = gaps.take(~_first_uses(case, gaps))
    causes = (*_CAUSES, Cause.SYNC)
    return by_witness(case.stalls.work, gaps, causes, WORTH_A_LINE * case.base_ns)


def _keys(gaps: Gaps) -> Int64:
    """Of each gap the cause, and the call at fault where that tells more: int64 [2, n]."""
    apart = np.isin(gaps.cause, [*_TOLD_APART])
    return np.stack((gaps.cause.astype(np.int64), np.where(apart, gaps.what, -1)))


def _idle_finding(case: Case, name: str, cause: Cause, gaps: Gaps, spans: Spans) -> list[Finding]:
    """GPUs idle at the same time lose it once: the one that loses most counts."""
    place = int(np.argmax(np.bincount(gaps.place, gaps.idle)))
    several = len(np.unique(gaps.place)) > 1
    gaps = gaps.take(gaps.place == place)
    worst, total = int(np.argmax(gaps.idle)), int(gaps.idle.sum())
    lost = case.idle_part(place, when(case.stalls.work, gaps, spans))
    renders = cause in _NOT_KNOWN and _before_rendering(case, gaps)
    said = _RENDERING if renders else _CAUSES.get(cause, _SYNC)
    told, confidence, advice = _told(case, cause, gaps, lost, said.advice)
    unpriced = cause in _UNPRICED or advice is REQUESTS
    most = case.base_ns
    if advice in SPREAD:
        most -= sum(case.busy_ns(other) for other, _ in case.by_device) // len(case.by_device)
    elif said.hidden_by_work and advice is not AWAITED:
        most = case.busy_ns(place)
    label = case.device_labels([place]) + (" and others" if several else "")
    return case.finding(
        name,
        f"{label} idle {units.format_duration(total)} in {plural(len(gaps), 'gap')}{told}",
        advice,
        subject=f"idle{told}".removesuffix(", why is not recorded"),
        saved_ns=0 if unpriced else min(total, most),
        stake_ns=total,
        window=(int(gaps.start[worst]), int(gaps.end[worst])),
        place=place,
        screen="5",
        command="nsys-tui stalls REPORT",
        at_most=Severity.MEDIUM if unpriced else None,
        confidence=confidence,
        doubt=said.doubt,
        settle=said.settled_by(case.report),
        lost=lost,
    )


def _told(
    case: Case, cause: Cause, gaps: Gaps, lost: Intervals, advice: str
) -> tuple[str, Confidence, str]:
    """The cause in words, how sure it is, and what to do."""
    what, where = (_name(case, codes, gaps.idle) for codes in (gaps.what, gaps.range))
    inside = f" in {fit(where, _PLACE_CELLS)}" if where and where != what else ""
    if cause in _NOT_KNOWN and _before_migrations(case, gaps):
        if cause is Cause.UNKNOWN:
            advice = case.page_advice
        return f", {cause.label}: pages migrate on demand", Confidence.INFERRED, advice
    if cause is Cause.HOST:
        return _host(case, gaps, lost, inside, advice)
    if cause is Cause.OFF_CPU and len(case.report.osrt):
        advice = NO_CALL
    if cause is Cause.SYNC and (others := _waits_for(case, gaps)):
        turns = len(others) > 1
        whom = "GPUs by turns" if turns else case.device_labels(others)
        return f", {fit(what, _NAME_CELLS)} waits for {whom}", Confidence.INFERRED, SPREAD[turns]
    if cause is Cause.API and what.startswith("MPI_"):
        return f", in {fit(what, _NAME_CELLS)}{inside}", Confidence.MEASURED, RANKS
    if cause is Cause.API and what.startswith(_LAUNCHES) and not _are_long(case, gaps):
        name = f": {fit(what, _NAME_CELLS)} of other work comes first"
        return name, Confidence.MEASURED, "launch for each GPU or stream from a thread of its own"
    if cause is Cause.API and what.startswith(_LAUNCHES):
        advice = "see what the launch waits for: a lock, pages of host memory, a first use"
        name = f": {fit(what, _NAME_CELLS)} itself took it, why is not recorded"
        return name, Confidence.INFERRED, advice
    if cause is Cause.IO and _SERVES.match(what):
        name = f", waits for requests: {fit(what, _NAME_CELLS)}"
        return name, Confidence.INFERRED, REQUESTS
    if cause is Cause.IO and WAITS.match(what):
        advice = AWAITED
    if cause is Cause.LAUNCH_LATENCY and "GraphLaunch" in what:
        advice = "launch the next graph before this one ends, or let one graph do more"
    several = "" if (gaps.what == gaps.what[0]).all() else "most in "
    known = what and what != "Unknown"
    told = f", {cause.label}: {several}{fit(what, _NAME_CELLS)}" if known else f", {cause.label}"
    inferred = cause in _NOT_KNOWN or cause not in SHARES
    return told + inside, Confidence.INFERRED if inferred else Confidence.MEASURED, advice


WAITS: Final = re.compile(r"_*(p?poll|p?select|epoll|recv|accept|connect)")
"""Calls that read nothing until somebody else sends."""
_SERVES: Final = re.compile(r"_*(epoll_p?wait|accept)")
"""Calls in which the loop of a server waits for whoever comes next."""
REQUESTS: Final = "no fault if nobody asked: else send requests sooner, or let other work run"
SPREAD: Final = (
    "spread that GPU's work, or give this one some meanwhile",
    "let them overlap: launch the work of all before waiting, in more and smaller batches",
)
RANKS: Final = "see which rank comes late to it, or let kernels run meanwhile (non-blocking calls)"
AWAITED: Final = "see who is to send what it waits for: that process or thread is late, or busy"
_LAUNCHES: Final = ("cudaLaunch", "cuLaunch", "cudaGraphLaunch", "cuGraphLaunch")
_BY_DOING: Final = {
    Doing.POLLS: "the thread polls for another rank: see what that rank does, or overlap the wait",
    Doing.COMPILES: "GPU code is compiled here: ship code for this GPU, or keep CUDA's cache",
    Doing.DRIVER: "the time goes to CUDA's driver: see the calls around it",
}


def _host(
    case: Case, gaps: Gaps, lost: Intervals, inside: str, advice: str
) -> tuple[str, Confidence, str]:
    """What the thread did on its CPU: the function that samples hit, else the range."""
    api = case.report.api
    threads = gaps.caller[gaps.caller >= 0]
    caller = int(np.bincount(threads).argmax())
    thread = int(api.threads[caller])
    seen = sampled(case.report, thread, *lost)
    measured = case.stalls.work.witness(thread) is Witness.MEASURED
    confidence = Confidence.MEASURED if measured else Confidence.INFERRED
    if seen is None:
        return f", {Cause.HOST.label}{inside}", confidence, advice
    return f", {_seen(seen)}", confidence, _BY_DOING.get(seen.doing, advice)


def _seen(seen: Sampled) -> str:
    share = f" ({100 * seen.share:.0f}% of samples)"
    name = fit(seen.name, _NAME_CELLS)
    if seen.doing is Doing.WORKS:
        return f"host compute: {name}{share}" if name else "host compute"
    return f"host {seen.doing}{': ' + name if name else ''}{share}"


def _name(case: Case, codes: Int64, idle: Int64) -> str:
    """The name that more than half of the idle time has, empty for none."""
    found, group = np.unique(codes, return_inverse=True)
    time = np.bincount(group, idle)
    top = int(np.argmax(time))
    name = case.stalls.work.name(int(found[top]))
    return strip_op_id(name) if 2 * time[top] > time.sum() else ""


def _before_migrations(case: Case, gaps: Gaps) -> bool:
    """Whether most of the idle time ends with a migration of unified memory."""
    migrates = np.isin(case.report.operations.copy_kind[gaps.next], UVM_COPY_KINDS)
    return int(gaps.idle[migrates & (gaps.next >= 0)].sum()) * 2 > int(gaps.idle.sum())


def _before_rendering(case: Case, gaps: Gaps) -> bool:
    """Whether most of the idle time ends with work of a graphics library."""
    renders = case.report.operations.kind[gaps.next] > OpKind.GRAPH
    return int(gaps.idle[renders & (gaps.next >= 0)].sum()) * 2 > int(gaps.idle.sum())


def _waits_for(case: Case, gaps: Gaps) -> list[int]:
    """Other GPUs that work for the waiting thread through most of some gaps: one, or by turns."""
    report, spans = case.report, intervals.union(gaps.start, gaps.end)
    found: list[int] = []
    idle = spans
    for place, rows in case.by_device:
        calls = report.calls[rows]
        threads = report.api.thread[calls[calls >= 0]]
        if place == int(gaps.place[0]) or not np.isin(threads, gaps.caller).any():
            continue
        own = case.idle_part(place, spans)
        if 2 * intervals.total(*own) < intervals.total(*spans):
            return [place]
        found, idle = [*found, place], intervals.meet(idle, own)
    return found if 2 * intervals.total(*idle) < intervals.total(*spans) else []


def _are_long(case: Case, gaps: Gaps) -> bool:
    """Whether the calls that launch what ends some gaps take most of them, not those before."""
    api, calls = case.report.api, gaps.call
    own = np.minimum(api.end[calls], gaps.end) - np.maximum(api.start[calls], gaps.start)
    return 2 * int(own[calls >= 0].clip(0).sum()) > int(gaps.idle.sum())


_NAME_CELLS: Final = 22
_PLACE_CELLS: Final = 16
"""Cells of names in findings, which are one line."""


@rule(
    "First use of code",
    advice="Loading, compiling and setting up happen once: leave the first steps out of what you"
    " measure, load eagerly (CUDA_MODULE_LOADING=EAGER), or ship code for this GPU.",
    nothing="No GPU idles while code is loaded or used for the first time.",
)
def warm_up(case: Case, arguments: Arguments) -> Result:
    """Idle gaps that come in the first of named steps alone, and first uses of code.

    In the steps after these, ``module_loading`` tells of what is loaded.
    """
    gaps = case.stalls.gaps
    gaps = gaps.take(gaps.edge == Edge.INNER)
    gaps = gaps.take(_first_uses(case, gaps))
    shown, hidden = cut(np.argsort(-gaps.idle, kind="stable"), arguments)
    work = case.stalls.work
    return Result(
        (
            (Column("Idle", Unit.NS), gaps.idle[shown]),
            (Column("Start", Unit.NS), gaps.start[shown]),
            (Column("What"), [work.name(code) for code in gaps.what[shown].tolist()]),
        ),
        tuple(_warm_up(case, gaps)) if len(gaps) else (),
        hidden=hidden,
    )


def _warm_up(case: Case, gaps: Gaps) -> list[Finding]:
    place = int(np.argmax(np.bincount(gaps.place, gaps.idle)))
    gaps = gaps.take(gaps.place == place)
    early = _middle(gaps) < _steady_from(case)
    each = np.where(early, _charged(gaps), _used_first(gaps))
    cost, worst = int(each.sum()), int(np.argmax(gaps.idle))
    name = case.stalls.work.name(int(gaps.what[worst])) or Cause(gaps.cause[worst]).label
    before = 2 * int(each[early].sum()) > cost
    first = "before the second step" if case.warm_up_steps == 1 else "in the first steps"
    where = first if before else "at first use of code"
    return case.finding(
        "warm_up",
        f"{case.device_labels([place])} idle {units.format_duration(cost)} {where},"
        f" longest in {fit(name, _NAME_CELLS)}: only once",
        "leave the warm-up out of what you measure, or load code before (eagerly)",
        subject="set-up (once)" if before else "first use of code (once)",
        saved_ns=cost,
        at_most=Severity.MEDIUM if case.has_named_steps else None,
        window=(int(gaps.start[worst]), int(gaps.end[worst])),
        place=place,
        screen="5",
        command="nsys-tui stalls REPORT",
        lost=case.idle_part(place, (gaps.start, gaps.end)),
    )


def _charged(gaps: Gaps) -> Int64:
    """Of each gap what its witness shows of its cause; all of it where the GPU itself waited."""
    place = np.minimum(gaps.cause, len(SHARES) - 1)
    own = shares_of(gaps)[np.arange(len(gaps)), place]
    return np.where(gaps.cause < len(SHARES), own, gaps.idle)


def _used_first(gaps: Gaps) -> Int64:
    """Of each gap the part in which code was loaded, or the call that happens once was made."""
    loaded = gaps.shares[:, Cause.MODULE]
    called = gaps.shares[:, Cause.API] * (gaps.cause == Cause.API)
    return np.asarray(np.minimum(loaded + called, gaps.idle), np.int64)


def _middle(gaps: Gaps) -> Int64:
    """Where most of each gap lies: one that begins with a step is of it, not of the step before."""
    return (gaps.start + gaps.end) // 2


def _steady_from(case: Case) -> int:
    """When warm-up ends; what comes only before that is set-up. Far back without named steps."""
    return case.loop[0] if case.has_named_steps else -FARTHEST


_ONCE: Final = 2
"""Calls of one name up to which they are set-up."""


def _usual(case: Case, gaps: Gaps) -> Bool:
    """Which gaps come again in the steady part, of one cause and about as long, and so not once."""
    _, kind = np.unique(_keys(gaps), axis=1, return_inverse=True)
    kind = kind.ravel()
    steady = _middle(gaps) >= _steady_from(case)
    longest = np.zeros(kind.max(initial=-1) + 1, np.int64)
    np.maximum.at(longest, kind[steady], gaps.idle[steady])
    return np.asarray(gaps.idle <= 2 * longest[kind], np.bool_)


def _first_uses(case: Case, gaps: Gaps) -> Bool:
    """Which gaps happen once: before the second step, at first use of code, in a lone call."""
    report = case.report
    api = report.api
    before = gaps.start < (case.loop[0] if case.has_loop else FARTHEST)
    found: Bool = (gaps.cause == Cause.MODULE) & before
    found |= (_middle(gaps) < _steady_from(case)) & ~_usual(case, gaps)
    used_first = np.isin(gaps.next, case.first_of_names) & before
    found |= used_first & (gaps.shares[:, Cause.MODULE] > 0)
    by_api = np.flatnonzero((gaps.cause == Cause.API) & (gaps.call >= 0))
    if not len(by_api):
        return found
    count = np.bincount(api.name[api.real], minlength=len(api.names))
    rare = [api_name(api.names[code]) for code in np.flatnonzero((count > 0) & (count <= _ONCE))]
    found[by_api] |= np.isin(gaps.what[by_api], [case.stalls.work.code(name) for name in rare])
    long = api.durations(gaps.call[by_api]) >= LONG_CALL_NS
    long &= report.operations.kind[gaps.next[by_api]] == OpKind.KERNEL
    found[by_api] |= used_first[by_api] & long
    return found
