"""Our rule on what happens once: first uses of code, set-up in the first steps."""

from __future__ import annotations

from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.iterations.warm_up import CONTEXT_NS
from nsys_tui.analysis.rules import awaited
from nsys_tui.analysis.rules.case import SET_UP, Case, kept
from nsys_tui.analysis.rules.copies import moved_once
from nsys_tui.analysis.rules.finding import Finding, Severity
from nsys_tui.analysis.rules.gap_facts import after_all_launches, usual_name
from nsys_tui.analysis.rules.held import is_alone
from nsys_tui.analysis.rules.idle_causes import WAITS
from nsys_tui.analysis.rules.register import Arguments, Result, cut, rule
from nsys_tui.analysis.stalls.causes import SHARES, Cause, Edge, Gaps
from nsys_tui.analysis.stalls.explained import LONG_CALL_NS, shares_of
from nsys_tui.analysis.thread_states import sampled
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Int64
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.events import FARTHEST
from nsys_tui.model.groups import factorise_rows, rows_of_values
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.table import Column, Unit
from nsys_tui.names import api_name, brief

_CALL_CELLS: Final = 22
_LOADING: Final = (Cause.MODULE, Cause.API, Cause.LAUNCH_LATENCY)
"""Causes that loading code before shortens."""
_TOLD_APART: Final = frozenset(
    (Cause.LOCK, Cause.WAIT, Cause.IO, Cause.SLEEP, Cause.OSRT, Cause.SYNC, Cause.API)
)
"""Causes with a finding for each call; of the others one finding names the worst."""
_BESIDE_CALLS: Final = (*SHARES[Cause.LOCK : Cause.API], *SHARES[Cause.HOST :])
"""Causes that are no calls of CUDA."""
_DONE_ONCE: Final = (Cause.MODULE, Cause.ALLOCATION, Cause.API, Cause.HOST)
"""What a host does itself in a gap that does not come again, whatever most of it is."""


def kinds_of(gaps: Gaps) -> Int64:
    """Of each gap the cause, and the call at fault where that tells more: int64 [2, n]."""
    apart = np.isin(gaps.cause, [*_TOLD_APART])
    return np.stack((gaps.cause.astype(np.int64), np.where(apart, gaps.what, -1)))


@rule(
    "First use of code",
    advice="Loading, compiling and setting up happen once: leave the first steps out of what you"
    " measure, load eagerly (CUDA_MODULE_LOADING=EAGER), or ship code for this GPU.",
    nothing="No GPU idles while code is loaded or used for the first time.",
)
def warm_up(case: Case, arguments: Arguments) -> Result:
    """Idle gaps that come in the first of named steps alone, first uses of code, copies made once.

    In the steps after these, ``module_loading`` tells of what is loaded. It matters less than what
    comes again, whatever it takes, and other findings are rated by the time without it.
    """
    gaps = _once(case)
    shown, hidden = cut(np.argsort(-gaps.idle, kind="stable"), arguments)
    work = case.work
    columns = (
        (Column("Idle", Unit.NS), gaps.idle[shown]),
        (Column("Start", Unit.NS), gaps.start[shown]),
        (Column("What"), [work.name(code) for code in gaps.what[shown].tolist()]),
    )
    findings = (_warm_up(case, gaps) if len(gaps) else []) + moved_once(case)
    return Result(columns, tuple(findings), hidden=hidden)


@kept
def _once(case: Case) -> Gaps:
    """Idle gaps between operations that come once."""
    gaps = case.stalls.gaps
    gaps = gaps.take(gaps.edge == Edge.INNER)
    return gaps.take(first_uses(case, gaps))


def _once_ns(case: Case, gaps: Gaps) -> tuple[Bool, Int64]:
    """Which gaps lie before most of the work, and how much of each comes once: all or hardly any.

    Of a later one that is all: ``gpu_idle`` leaves it out, and what the host does unseen, or waits
    for, before it uses code first is mostly the compiling of it. So it is of what has most of one.
    """
    early = (_middle(gaps) < case.set_up_until[gaps.device]) | case.is_set_up
    charged = _charged(gaps)
    return early, np.where(early & (2 * charged <= gaps.idle), charged, gaps.idle)


def set_up(case: Case) -> Intervals:
    """When no GPU computes because of what happens once: gaps that it has most of, and copies.

    Where something is moved before the first step, so is all until then, or until a kernel runs,
    but gaps that come again.
    """
    if not case.works or case.is_one_shot:
        return intervals.empty()
    gaps, every, (moved, _) = _once(case), case.stalls.gaps, case.moved_once
    every = every.take(every.edge == Edge.INNER)
    again = intervals.subtract((every.start, every.end), (gaps.start, gaps.end))
    gaps = gaps.take(2 * _once_ns(case, gaps)[1] > gaps.idle)
    spans = intervals.joined((gaps.start, gaps.end), *moved.values())
    if any(len(one[0]) for one in moved.values()):
        spans = intervals.joined(spans, intervals.subtract(case.before_kernels, again))
    for device in case.by_device:
        idle = case.idle_time.idle_part(device, spans)
        spans = intervals.joined(idle, intervals.meet(spans, moved[device]))
    return spans


SET_UP.append(set_up)


def _warm_up(case: Case, gaps: Gaps) -> list[Finding]:
    device = int(np.argmax(np.bincount(gaps.device, gaps.idle)))
    gaps = gaps.take(gaps.device == device)
    early, each = _once_ns(case, gaps)
    cost, worst, tried = int(each.sum()), int(np.argmax(gaps.idle)), _tried(case, device)
    name = _done_in(case, gaps, worst)
    longest = f", longest in {brief(name, _CALL_CELLS)}" if name != Cause.NOTHING.key else ""
    if 10 * tried > cost:
        longest = f", tries kernels for {units.format_duration(tried)}"
    shorter = ", or load code before (eagerly)" if gaps.cause[worst] in _LOADING else ""
    if gaps.cause[worst] in (Cause.HOST, Cause.IO) and name != Cause.HOST.key:
        shorter = ", or make that quicker"
    before = 2 * int(each[early].sum()) > cost
    first = "between a few operations" if case.is_set_up else "before most of its work"
    if case.has_named_steps:
        first = "before the second step" if case.warm_up_steps == 1 else "in the first steps"
    where = first if before else "at first use of code"
    return case.finding(
        "warm_up",
        f"{case.device_labels([device])} idle {units.format_duration(cost)} {where}{longest}:"
        " only once",
        "leave it out of what you measure" + shorter,
        subject=f"idle {where}{longest} (once)",
        saved_ns=cost + tried,
        at_most=Severity.MEDIUM,
        window=(int(gaps.start[worst]), int(gaps.end[worst])),
        device=device,
        screen="5",
        command="nsys-tui stalls REPORT",
        lost=case.idle_time.idle_part(device, (gaps.start, gaps.end)),
    )


def _done_in(case: Case, gaps: Gaps, gap: int) -> str:
    """What the host did in a gap: its call, the function that samples hit, or the cause."""
    if gaps.cause[gap] == Cause.HOST and gaps.caller[gap] >= 0:
        thread, when = int(case.report.api.threads[gaps.caller[gap]]), slice(gap, gap + 1)
        if (seen := sampled(case.report, thread, gaps.start[when], gaps.end[when])) and seen.name:
            return seen.name
    return case.work.name(int(gaps.what[gap])) or Cause(gaps.cause[gap]).key


def _tried(case: Case, device: int) -> int:
    """How long a GPU runs kernels, in the first of named steps, that never come again."""
    ops, rows = case.report.operations, case.by_device[device]
    rows = rows[ops.category[rows] != Category.MEMORY]
    last = np.full(len(ops.names), -FARTHEST)
    np.maximum.at(last, ops.name[rows], ops.start[rows])
    warm = case.set_up_until[device] if case.has_named_steps else -FARTHEST
    once = rows[last[ops.name[rows]] < warm]
    return intervals.total(*ops.runs(once))


def _charged(gaps: Gaps) -> Int64:
    """Of each gap its cause's part, and what the host does beside; all where the GPU waited."""
    charged = np.zeros(len(gaps), np.int64)
    for cause, time in shares_of(gaps).items():
        charged += time * ((cause in _DONE_ONCE) | (gaps.cause == cause))
    return np.where(gaps.cause < len(SHARES), np.minimum(charged, gaps.idle), gaps.idle)


def _middle(gaps: Gaps) -> Int64:
    """Where most of each gap lies: one that begins with a step is of it, not of the step before."""
    return (gaps.start + gaps.end) // 2


def _sets_up(case: Case, gaps: Gaps) -> Bool:
    """In which gaps the process that ends them makes its first CUDA call."""
    known = np.flatnonzero((gaps.call >= 0) & (gaps.idle >= CONTEXT_NS))
    begun = _first_calls(case)[case.report.api.thread[gaps.call[known]]]
    with_set_up = np.zeros(len(gaps), bool)
    with_set_up[known] = (begun >= gaps.start[known]) & (begun < gaps.end[known])
    return with_set_up


@kept
def _first_calls(case: Case) -> Int64:
    """Of each thread, when its process makes its first call."""
    api = case.report.api
    _, owner = np.unique(api.thread_process, return_inverse=True)
    first = np.zeros(len(owner), np.int64)
    # Of equal places the last that is assigned stays.
    first[owner[api.thread[::-1]]] = api.start[::-1]
    return np.asarray(first[owner], np.int64)


_ONCE: Final = 2
"""Calls of one name up to which they are set-up, of each process."""
LOOKUP_NS: Final = 20_000
"""Shorter calls about modules look something up and load nothing."""
_OF_EARLY: Final = 10
"""Early gaps for each later one that is alike: sizes that grow take most steps early."""
_AGAIN: Final = 5
"""Loads before kernels that a GPU ran already, after set-up, from which on it is no set-up."""


def come_again(case: Case, gaps: Gaps) -> Bool:
    """Which gaps come again in the steady part: there one for every ten of a cause lasts as long.

    What comes before code is loaded is seen, and no gap comes again for it.
    """
    kind, _ = factorise_rows([*kinds_of(gaps)])
    again = (_middle(gaps) >= case.set_up_until[gaps.device]) & ~before_code(case, gaps)
    order = np.lexsort((-gaps.idle, kind, again))
    early, later = np.split(order, [np.count_nonzero(~again)])
    first, begun = (np.searchsorted(kind[of], kind[early]) for of in (early, later))
    like = begun + (np.arange(len(early)) - first) // _OF_EARLY
    known = like < np.searchsorted(kind[later], kind[early], "right")
    early, like = early[known], later[like[known]]
    again[early] = gaps.idle[early] <= 2 * gaps.idle[like]
    return again


def _lacks_cpu(case: Case, gaps: Gaps) -> Bool:
    """In which gaps the thread could go on, had it a CPU: nothing is set up meanwhile."""
    lacks: Bool = gaps.cause == Cause.OFF_CPU
    lacking = np.flatnonzero(lacks)
    for caller, places in rows_of_values(gaps.caller[lacking]):
        mine = lacking[places]
        ready = case.work.scheduling.ready(int(case.report.api.threads[caller]))
        could = intervals.covered(ready, gaps.start[mine], gaps.end[mine])
        lacks[mine] = 2 * could > gaps.idle[mine]
    return lacks


def _waits_for_others(case: Case, gaps: Gaps) -> Bool:
    """In which gaps the thread waits for requests, or for what nobody of the program works on."""
    waits: Bool = gaps.cause == Cause.WAIT
    waiting = np.flatnonzero(waits)
    for caller, places in rows_of_values(gaps.caller[waiting]):
        mine, thread = waiting[places], int(case.report.api.threads[caller])
        spans = intervals.union(gaps.start[mine], gaps.end[mine])
        waited = case.work.near(thread, *spans).by_class[Cause.WAIT]
        spans = intervals.intersection(spans, (waited.starts, waited.ends))
        call = usual_name(case, gaps.what[mine], gaps.idle[mine])
        asked = WAITS.match(call) is not None and awaited.is_asked(case, thread)
        waits[mine] = asked or is_alone(case, thread, spans)
    return waits


def first_uses(case: Case, gaps: Gaps) -> Bool:
    """Which gaps happen once: before the second step, at first use of code, in a lone call.

    So does the one in which a process makes its first CUDA call, which sets its context up.
    """
    report = case.report
    api = report.api
    if case.is_set_up:
        return ~after_all_launches(case, gaps)
    before = gaps.start < (case.loop[0] if case.has_loop else FARTHEST)
    used_first = np.isin(gaps.next, case.first_of_names) & before
    early, compiles = _middle(gaps) < case.set_up_until[gaps.device], before_code(case, gaps)
    loads: Bool = compiles | (gaps.cause == Cause.MODULE)
    known = loads & ~early & (compiles | ~np.isin(gaps.next, case.first_of_names))
    if np.bincount(gaps.device, known).max(initial=0) >= _AGAIN:
        loads &= ~known
    again = come_again(case, gaps)
    first, early = loads & ~(compiles & again), early & ~again
    unusual = gaps.take(early)
    first[early] |= ~(_lacks_cpu(case, unusual) | _waits_for_others(case, unusual))
    first |= used_first & (gaps.time(Cause.MODULE) > 0) & (gaps.cause != Cause.HOST)
    allocates = (gaps.cause == Cause.ALLOCATION) & (gaps.time(Cause.ALLOCATION) >= CONTEXT_NS)
    first |= used_first & allocates  # A library sets itself up so.
    first |= _sets_up(case, gaps) & before
    first |= launched_first(case, gaps) & before
    by_api = np.flatnonzero((gaps.cause == Cause.API) & (gaps.call >= 0))
    if not len(by_api):
        return first
    count, most = api.count_of_names, _ONCE * len(np.unique(api.thread_process))
    rare = [api_name(api.names[code]) for code in np.flatnonzero((count > 0) & (count <= most))]
    first[by_api] |= np.isin(gaps.what[by_api], [case.work.code(name) for name in rare])
    return first


def before_code(case: Case, gaps: Gaps) -> Bool:
    """Which gaps lie mostly before their process loads code, which is likely compiled meanwhile.

    Whatever the host is seen to do then, be it to wait for the compiler, but for calls of CUDA.
    """
    api, loads = case.report.api, _loads(case)
    compiles = np.zeros(len(gaps), np.bool_)
    mine = np.flatnonzero(np.isin(gaps.cause, _BESIDE_CALLS) & (gaps.caller >= 0))
    for process, places in rows_of_values(api.thread_process[gaps.caller[mine]]):
        of_process = loads[api.thread_process[api.thread[loads]] == process]
        loaded, some = np.append(-FARTHEST, api.start[of_process]), mine[places]
        last = loaded[np.searchsorted(loaded, gaps.end[some]) - 1]
        compiles[some] = last >= _middle(gaps)[some]
    return compiles


@kept
def _loads(case: Case) -> Indices:
    """Rows of the calls that load code: short ones look something up."""
    api, rows = case.report.api, np.flatnonzero(case.work.api_classes == Cause.MODULE)
    unloads = np.array(["Unload" in name for name in api.names], bool)[api.name[rows]]
    return rows[~unloads & (api.durations(rows) >= LOOKUP_NS)]


def launched_first(case: Case, gaps: Gaps) -> Bool:
    """Which gaps are the part of one in which a long call launches a kernel for the first time."""
    first: Bool = (gaps.cause == Cause.API) & (gaps.call >= 0)
    first &= np.isin(gaps.next, case.first_of_names)
    first &= case.report.operations.kind[gaps.next] == OpKind.KERNEL
    first[first] = case.report.api.durations(gaps.call[first]) >= LONG_CALL_NS
    return first
