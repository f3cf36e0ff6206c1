"""Our rules on grids of kernels: small ones, and their last waves."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.kernel_facts import blocks_per_sm
from nsys_tui.analysis.rules.case import AND_OTHERS, Case
from nsys_tui.analysis.rules.finding import Finding, by_ncu, longest_of
from nsys_tui.analysis.rules.late_ranks import Spare, waited_for
from nsys_tui.analysis.rules.migrations import migrating
from nsys_tui.analysis.rules.register import Arguments, Parameter, Result, cut, rule
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.analysis.window import clipped
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Float64, Indices
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.events import REGISTERS
from nsys_tui.model.groups import factorise_rows, rows_of_codes, sums
from nsys_tui.model.kernel_names import of_library
from nsys_tui.model.table import Column, Unit
from nsys_tui.names import brief

_NAME_CELLS, _WAVE_CELLS = 36, 24
_TELLING: Final = 0.1
"""Part of the time of all small grids from which others than the worst one are told of."""
_WARP: Final = 32
_LANES: Final = f"give each block at least the {_WARP} threads of a warp: lanes are empty"
_SCHEDULERS: Final = 4
"""Of an SM, each of which runs warps of its own."""
_WHOLLY: Final = 0.99
"""Part of the time from which kernels run wholly beside others."""
_TURNS: Final = 20
"""Times that another thread launches from which threads share a stream."""
HALF: Final = 0.5
"""Part of a GPU up to which blocks that fill it could be split in two without a second wave."""
_ON_HOST: Final = re.compile(r"cu(da)?(Mem)?(HostAlloc|AllocHost|MallocHost|HostRegister)")
_FREES: Final = re.compile("Free|Unregister")
"""Calls that ask for memory of the host, which kernels may read, and those that give some back."""
_EVEN: Final = 0.9
"""Blocks of an SM on average over those of the SMs with most, up to which the others count."""


def reads_host(case: Case) -> Bool:
    """Of each process, whether it asks for memory of the host alone, and copies nothing of it.

    What its kernels read comes over the bus, which their blocks wait for, not for an SM.
    """
    api, ops, rows = case.report.api, case.report.operations, case.calls
    frees = np.array([_FREES.search(name) is not None for name in api.names], bool)
    on_host = np.array([_ON_HOST.match(name) is not None for name in api.names], bool)
    rows = rows[(case.work.api_classes[rows] == Cause.ALLOCATION) & ~frees[api.name[rows]]]
    asks, of_host = api.thread_process[api.thread[rows]], on_host[api.name[rows]]
    copied = ops.processes[np.unique(ops.process[ops.kind == OpKind.MEMCPY])]
    others = np.append(asks[~of_host], copied)
    return np.isin(ops.processes, asks[of_host]) & ~np.isin(ops.processes, others)


def filled(case: Case, rows: Indices, *, by_lanes: bool = False) -> Float64:
    """How much of its GPU each operation's blocks can fill, 0 to 1, by SMs and by lanes of a warp.

    1 for what is no compute kernel, and where grid or number of SMs are not known.

    Args:
        case: the report.
        rows: rows of operations.
        by_lanes: blocks below a warp leave lanes empty however many there are, and an SM with fewer
            warps than schedulers leaves some of these without any.
    """
    report, ops = case.report, case.report.operations
    if not len(rows) or not report.can(Capability.LAUNCH_SHAPES):
        return np.ones(len(rows))
    launch = report.launch_attributes
    counts, model = np.unique(case.sm_counts, return_inverse=True)
    blocks, sms, enough = launch.blocks, counts[:, None], _WARP * (_SCHEDULERS if by_lanes else 1)
    lanes = np.minimum(launch.threads, _WARP) / _WARP if by_lanes else np.ones(len(blocks))
    part = np.minimum(launch.threads, enough) / enough
    by_shape = np.minimum(lanes, blocks * part / np.maximum(sms, 1))
    by_shape[(sms == 0) | (blocks <= 0)] = 1.0
    shares: Float64 = by_shape[model[ops.device[rows]], launch.code[rows]]
    shares[ops.category[rows] != Category.COMPUTE] = 1.0
    return shares


@rule(
    "Kernels whose grid leaves half of the GPU without work",
    advice="A grid of so few blocks leaves half of the GPU's SMs idle: split the work over"
    " more blocks, or run independent kernels beside it. Blocks smaller than a warp leave its lanes"
    " idle. What could be saved is an upper bound.",
    nothing="No long kernel leaves half of the SMs, or of the lanes of its warps, without work.",
    parameters=(Parameter("shortest", 20.0, "leave out shorter kernels, in us"),),
)
def small_grids(case: Case, arguments: Arguments) -> Result:
    """Kernels by name and shape with a block for half of the SMs, or half of a warp's threads.

    Blocks of less than four warps leave schedulers of their SM idle, so they count for a part. A
    larger grid with its blocks split in two would take two waves, so it is left out. So are short
    kernels: they take as long as a kernel takes at least, and what runs wholly beside a stream that
    has more to do, or waits for pages most of the time. Kernels that run at the same time fill the
    GPU together. Less than a tenth of its SMs empty counts as none. What the host, or the last GPU
    of a collective, does not wait for could save nothing.
    """
    report, ops = case.report, case.report.operations
    fills = filled(case, case.alike.first, by_lanes=True)
    few = np.isin(np.arange(len(ops.names)), case.alike.name[fills <= HALF])
    every, shortest = case.operations, 1000 * arguments.number("shortest")
    if not (ops.durations(every[few[ops.name[every]]]) >= shortest).any():
        every = every[:0]
    share = filled(case, every, by_lanes=True)
    small = share <= HALF
    small[small] = ops.durations(every[small]) >= shortest
    small[small] = ~(_hidden(case, every[small]) | _wait_for_pages(case, every[small]))
    rows, launch = every[small], report.launch_attributes
    of_shape, shapes = launch.alike(rows, (launch.blocks, launch.threads))
    codes, kinds = factorise_rows((ops.name[rows], of_shape))
    kinds = np.column_stack((kinds[:, 0], shapes[kinds[:, 1]]))
    starts, ends = clipped(ops, rows, case.scope.window)
    time = sums(codes, ends - starts, len(kinds))
    empty, beside = _empty_time(case, every, share, small)
    lost = np.bincount(codes, beside[small], len(kinds))
    order, hidden = cut(np.argsort(-lost, kind="stable"), arguments)
    names = [ops.shown[code] for code in kinds[:, 0].tolist()]
    findings: list[Finding] = []
    if len(rows):
        device = max(empty, key=lambda key: empty[key].ns)
        spent = np.bincount(codes, (ends - starts) * (ops.device[rows] == device))
        top = int(np.argmax(np.where(spent > 0, lost, -1)))
        more = (spent > 0) & (kinds[:, 0] != kinds[top, 0])
        more &= spent[more].sum() >= _TELLING * spent.sum()
        others = len(np.unique(kinds[more, 0]))
        takes = units.format_duration(int(spent[more].sum()))
        own = int(spent[kinds[:, 0] == kinds[top, 0]].sum())
        alone = (1 - share[small])[codes == top] @ (ends - starts)[codes == top]
        rest = f"; {units.plural(others, 'other kernel')}: {takes}" * (others > 0)
        if 2 * lost[top] < alone:
            rest = " beside other work"
        name = brief(names[top], _WAVE_CELLS if rest else _NAME_CELLS)
        blocks, threads = kinds[top, 1:].tolist()
        sms = int(case.sm_counts[device])
        few = blocks < sms or threads >= _WARP
        more_blocks = _fill(case, rows[(codes == top) & (ops.device[rows] == device)]) * few
        findings = case.finding(
            "small_grids",
            f"{name}: {units.plural(blocks, 'block')} of {units.plural(threads, 'thread')}"
            f" on {sms} SMs, {units.format_duration(own)}{rest}",
            "; ".join(filter(None, (_LANES * (threads < _WARP), more_blocks))),
            subject=f"small {'grids' if few else 'blocks'} of {name}{AND_OTHERS * (others > 0)}",
            saved_ns=min(empty[device].ns, own + int(spent[more].sum())),
            window=longest_of(ops, rows[codes == top]),
            device=device,
            screen="3",
            settle=by_ncu(ops.names[ops.name[rows[codes == top][0]]].short),
        )
    columns = (
        (Column("GPU Time", Unit.NS), time[order]),
        (Column("Launches", Unit.COUNT), np.bincount(codes, minlength=len(kinds))[order]),
        (Column("Blocks", Unit.COUNT), kinds[order, 1]),
        (Column("Threads", Unit.COUNT), kinds[order, 2]),
        (Column("Kernel"), [names[code] for code in order.tolist()]),
    )
    return Result(columns, waited_for(case, findings, empty), hidden=hidden)


def _hidden(case: Case, rows: Indices) -> Bool:
    """Which kernels run, as all small ones of their stream, beside others of streams with more."""
    ops, hidden = case.report.operations, np.zeros(len(rows), np.bool_)
    for device in np.unique(ops.device[rows]).tolist():
        every = case.doing(device, Category.COMPUTE)
        work = sums(ops.stream[every], ops.durations(every), len(ops.streams))
        streams = np.argsort(-work, kind="stable")[: np.count_nonzero(work)].tolist()
        if len(streams) < 2:
            continue
        small, by_stream = (rows_of_codes(ops.stream[some], len(work)) for some in (rows, every))
        busy, before = intervals.empty(), np.zeros(len(ops.names), np.bool_)
        longer: list[Indices] = []
        for stream in streams:
            mine = small[stream][ops.device[rows[small[stream]]] == device]
            if len(mine) and not before[ops.name[rows[mine]]].any():
                busy, longer = intervals.joined(busy, *map(ops.runs, longer)), []
                runs = ops.runs(rows[mine])
                beside = intervals.overlap_length(busy, runs)
                hidden[mine] = beside >= _WHOLLY * intervals.total(*runs)
            longer.append(every[by_stream[stream]])
            before[ops.name[longer[-1]]] = True
    return hidden


def _wait_for_pages(case: Case, rows: Indices) -> Bool:
    """During which kernels pages migrate on demand most of the time: that is what they take."""
    ops, waits = case.report.operations, np.zeros(len(rows), np.bool_)
    for device, pages in migrating(case)[0].items():
        mine = np.flatnonzero(ops.device[rows] == device)
        during = intervals.covered(pages, ops.start[rows[mine]], ops.end[rows[mine]])
        waits[mine] = 2 * during > ops.durations(rows[mine])
    return waits


def _fill(case: Case, rows: Indices) -> str:
    """What to do about small grids, by whether threads launch them on one stream by turns."""
    ops, calls = case.report.operations, case.report.calls[rows]
    stream, threads = ops.stream[rows], case.report.api.thread[calls[calls >= 0]]
    runs = intervals.union(ops.start[rows], ops.end[rows])
    if ops.durations(rows).sum() >= 2 * intervals.total(*runs):
        return "use more blocks: they run side by side already, and leave SMs empty"
    if of_library(ops.names[ops.name[rows[0]]].demangled):
        return "run others beside it, or give it larger matrices: a library chooses its blocks"
    if len(np.unique(stream)) == 1 and np.count_nonzero(np.diff(threads)) >= _TURNS:
        count = len(np.unique(threads))
        return (
            f"give each of the {count} threads that launch it a stream of its own, or more blocks"
        )
    return "use more blocks (several an SM may give more), or run others beside it"


@rule(
    "Kernels whose last wave of blocks leaves SMs without work",
    advice="Blocks run in waves of as many as the GPU holds at a time; in the last one most SMs"
    " have none. Size the grid to whole waves, or let as many blocks as fit loop over the work."
    " What could be saved is an upper bound.",
    nothing="No long kernel ends in a wave of few blocks, or the report lacks the GPU's limits.",
    parameters=(Parameter("shortest", 20.0, "leave out shorter kernels, in us"),),
)
def last_waves(case: Case, arguments: Arguments) -> Result:
    """Kernels of some waves of blocks (≈), of which the last one fills little of the GPU.

    How many blocks run at a time follows from block size, registers and shared memory; all blocks
    are taken to last equally long, unless they read memory of the host. Blocks that share an SM are
    quicker the fewer they are: only kernels count of which some SMs get none in the last wave, and
    by that a tenth fewer than others. Products of libraries choose their grids themselves. What the
    host, or the last GPU of a collective, does not wait for could save nothing.
    """
    report, ops = case.report, case.report.operations
    launch, (each, waves) = report.launch_attributes, waves_of(case)
    last = each * (waves % 1) / np.maximum(waves, 1)
    uneven = (waves > 1) & (last < 1) & (each <= _EVEN * np.ceil(each))
    own = np.array([not of_library(name.demangled) for name in ops.names], bool)
    rows = case.where(lambda rows: (ops.category[rows] == Category.COMPUTE) & own[ops.name[rows]])
    rows = rows[np.flatnonzero(uneven[ops.device[rows], launch.code[rows]])]
    rows = rows[ops.durations(rows) >= 1000 * arguments.number("shortest")]
    if len(rows):
        rows = rows[~reads_host(case)[ops.process[rows]]]
    every = case.operations if len(rows) else rows
    short = np.isin(every, rows)
    codes, kinds = factorise_rows((ops.device[rows], ops.name[rows], launch.code[rows]))
    of_kind = waves[kinds[:, 0], kinds[:, 2]]
    of_sm = each[kinds[:, 0], kinds[:, 2]]
    evenly = of_sm / np.ceil(of_sm)
    time = sums(codes, ops.durations(rows), len(kinds))
    share = filled(case, every)
    share[short] = evenly[codes]
    empty, beside = _empty_time(case, every, share, short)
    lost = np.bincount(codes, beside[short], len(kinds))
    order, hidden = cut(np.argsort(-lost, kind="stable"), arguments)
    names = [ops.shown[code] for code in kinds[:, 1].tolist()]
    findings: list[Finding] = []
    if len(rows):
        device = max(empty, key=lambda key: empty[key].ns)
        top = int(np.argmax(np.where(kinds[:, 0] == device, lost, -1)))
        others = np.count_nonzero((kinds[:, 0] == device) & (lost > 0)) - 1
        more = f"; {others} more" if others and 10 * lost[top] < 9 * empty[device].ns else ""
        name, blocks = brief(names[top], _WAVE_CELLS - len(more)), int(launch.blocks[kinds[top, 2]])
        at_a_time, whole = round(blocks / of_kind[top]), int(of_kind[top])
        findings = case.finding(
            "last_waves",
            f"{name}: {units.plural(blocks, 'block')}, ≈{units.format_count(at_a_time)} at a time:"
            f" {units.format_count(blocks - whole * at_a_time)} in the last of {whole + 1} waves,"
            f" {units.format_duration(int(time[top]))}{more}",
            "size the grid to whole waves, or let as many blocks as fit loop over the work",
            subject=f"last wave of {brief(names[top], _WAVE_CELLS)}",
            saved_ns=empty[device].ns,
            window=longest_of(ops, rows[codes == top]),
            device=device,
            screen="3",
            settle=by_ncu(ops.names[ops.name[rows[codes == top][0]]].short),
        )
    columns = (
        (Column("Could Save", Unit.NS), lost[order].astype(np.int64)),
        (Column("GPU Time", Unit.NS), time[order]),
        (Column("Launches", Unit.COUNT), np.bincount(codes, minlength=len(kinds))[order]),
        (Column("Blocks", Unit.COUNT), launch.blocks[kinds[order, 2]]),
        (Column("Waves ≈", Unit.NONE), of_kind[order].round(2)),
        (Column("Kernel"), [names[code] for code in order.tolist()]),
    )
    return Result(columns, waited_for(case, findings, empty), hidden=hidden)


def waves_of(case: Case) -> tuple[Float64, Float64]:
    """Blocks for each SM, and waves in which they run, of each configuration on each device.

    0 where grid or limits are not known.
    """
    report = case.report
    launch, shaped = report.launch_attributes, report.can(Capability.LAUNCH_SHAPES)
    registers = launch.table[:, REGISTERS].astype(np.int64)
    each, waves = np.zeros((2, len(report.devices), len(registers)))
    for device, info in enumerate(device.info for device in report.devices):
        most = blocks_per_sm(info, launch.threads, registers, launch.shared) if info else None
        if info is not None and most is not None and info.sm_count and shaped:
            each[device] = launch.blocks / info.sm_count
            fits = most.min(axis=0)
            waves[device] = np.where(fits > 0, each[device] / np.maximum(fits, 1), 0)
    return each, waves


def _empty_time(
    case: Case, rows: Indices, share: Float64, small: Bool
) -> tuple[dict[int, Spare], Float64]:
    """Time that the GPU's empty part would shorten, by device, and while each operation runs.

    All that runs fills the GPU together.
    """
    ops, beside = case.report.operations, np.zeros(len(rows))
    empty: dict[int, Spare] = {}
    for device in np.unique(ops.device[rows[small]]).tolist():
        mine = np.flatnonzero(ops.device[rows] == device)
        starts, ends = clipped(ops, rows[mine], case.scope.window)
        level, counted = share[mine], small[mine].astype(np.int64)
        times = np.concatenate((starts, ends))
        order = np.argsort(times, kind="stable")
        lengths = np.diff(times[order], append=0)
        full = np.cumsum(np.concatenate((level, -level))[order])
        asked = np.cumsum(np.concatenate((counted, -counted))[order]) > 0
        room = np.where(full <= _EVEN, 1 - full, 0)
        lost = np.append(0.0, np.cumsum(lengths * room * asked))
        until = np.empty(len(order))
        until[order] = lost[:-1]
        empty[device] = Spare(times[order], lost[:-1])
        beside[mine] = until[len(mine) :] - until[: len(mine)]
    return empty, beside
