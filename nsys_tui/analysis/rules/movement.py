"""Our rule on kernels that only move, convert or combine elements, told by their names."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import (
    TITLE_CELLS,
    Confidence,
    Finding,
    Severity,
    longest_of,
)
from nsys_tui.analysis.rules.held import launched_late
from nsys_tui.analysis.rules.register import Arguments, Parameter, Result, cut, most_of, rule
from nsys_tui.analysis.rules.run import A_RUN
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Indices, Int64
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.events import GRID, OpName
from nsys_tui.model.groups import rows_of_codes, sums
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.kernel_names import product_kind, short_name
from nsys_tui.model.kernel_rules import parts_of
from nsys_tui.model.table import Column, Unit
from nsys_tui.names import brief

_KINDS: Final = (
    ("copy", "keep one type and layout, and cast once, or fuse the copies: torch.compile"),
    ("concatenation", "write the parts into one buffer from the start, or fuse: torch.compile"),
    ("elementwise", "fuse neighbours: torch.compile, or a kernel that does several of them"),
    ("optimizer", "update in one pass: fused=True of the optimizer, or torch.compile"),
    ("conversion", "keep one type and layout from end to end, in PyTorch torch.channels_last"),
    ("copy", "let the kernels before or after them write or read the data as it is needed"),
    ("dequantisation", "let kernels multiply with the quantised weights, or dequantise them once"),
)
"""What kernels do, and what would change it."""
_ELEMENTWISE, _LAYOUT, _OWN, _DEQUANTISED = 2, 4, 5, 6
_GOES: Final = np.array([1, 1, 0, 2 / 3, 1, 0, 0, 0])
"""What of each kind would go, and of all else: arrays that one pass updates are read and written
once, not about three times; of elementwise kernels it depends."""
_OF_TORCH: Final = tuple(
    map(re.compile, (r"elementwise copy\b", r"cat\b", "elementw", r"multi tensor (_foreach|\w+Op)"))
)
"""Short names of the first kinds."""
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_MOVES: Final = re.compile(
    r"cast|cat|concat|convert|copy|dequant(?:ize)?|memcpy|nchw|nhwc|permute|reformat|transpose",
    re.IGNORECASE,
)
_HOW: Final = re.compile(
    r"array|batched|bf|block|blockwise|chunk|coalesced|contiguous|cuda|cupy|data|device|double"
    r"|float|folded|fp|from|generic|gpu|half|in|int|kernel|layout|matrix|naive|no|optimized|out"
    r"|packed|shared|simple|sizes|split|strided|tensor|tiled|to|type|vec|vectorized|weights|with"
    r"|wrapped|[a-z]",
    re.IGNORECASE,
)
"""A name of such words alone, one of them a move, tells of nothing else."""
_LIBRARY: Final = re.compile(r"\bcudnn::|\bnvinfer\w*::|\bcublas\w*::|\Awrapped_")
_OPERANDS: Final = re.compile(r"rray<char ?\*, ?(?:\([a-z ]+\))?(\d)|\b(BinaryF|CUDAF)unctor")
"""Of PyTorch: how many tensors are read and written, or that there are three; else two are."""
_LEAST_NS: Final = 2_000
"""What a kernel takes however little it moves."""
_EXPONENTIAL: Final = re.compile(r".*softmax|elementwise exp\b")
_REDUCES: Final = re.compile(r".*softmax|reduce")
_OF_OTHERS: Final = re.compile(r"(?i).*(split_?k|nll|loss|entropy|log softmax)|elementwise log")
_OF_ATTENTION: Final = 20
"""Most kernels between the two products of attention, the second one counted, and what is none of
them: the end of a product that is split, not batched, and a loss, which takes logarithms."""


@rule(
    "Kernels that only copy, convert or combine elements",
    advice="They move data and hardly compute: fuse them with their neighbours, cast once, and keep"
    " one layout.",
    nothing="Hardly any GPU time is in kernels that by their names do nothing else.",
    parameters=(Parameter("share", 5.0, "share of GPU time that is a finding, in percent"),),
)
def movement_kernels(case: Case, arguments: Arguments) -> Result:
    """Copies, casts, concatenations, conversions of layout and elementwise kernels of frameworks.

    Told by names: those of PyTorch's elementwise and concatenating kernels, and names of a library
    or program in which no word says anything but that data is copied, cast, transposed or laid out
    anew. Kernels that are fused already, of optimizers, normalisations and softmax are none of
    them, but those that do one operation on all arrays of an optimizer are. From one batched
    product to the next, with a reduction between and somewhere an exponential, they are attention
    written out, which one kernel does. How many bytes a kernel moves is not recorded. What could be
    saved is at most all of their time, but of elementwise kernels what they take to hand data to
    the next, and the moments between them; of a program's own, or where the GPU mostly idles,
    nobody knows; where launches bind the run, other rules tell what fusing saves. A program of
    which they are most moves data on purpose, and while pages migrate a kernel waits for these.
    """
    ops = case.report.operations
    kind = np.array([_kind(name) for name in ops.names], np.int64)
    rows = case.where(lambda rows: (kind[ops.name[rows]] >= 0) & (ops.kind[rows] == OpKind.KERNEL))
    pages = ops.runs(case.copies[case.on_demand(case.copies)])
    rows = rows[intervals.covered(pages, ops.start[rows], ops.end[rows]) == 0]
    time = sums(ops.name[rows], ops.durations(rows), len(ops.names))
    count = np.bincount(ops.name[rows], minlength=len(ops.names))
    order, hidden = cut(np.argsort(-time, kind="stable")[: np.count_nonzero(time)], arguments)
    on = sums(ops.device[rows], ops.durations(rows), len(ops.devices))
    findings: list[Finding] = []
    if len(rows):
        device = int(np.argmax(on))
        least = arguments.number("share")
        findings = _moving(case, device, rows[ops.device[rows] == device], kind, least)
        findings += _attention(case, device, least)
    columns = (
        (Column("GPU Time", Unit.NS), time[order]),
        (Column("Launches", Unit.COUNT), count[order].astype(np.int64)),
        (Column("Kind"), [_KINDS[kind[code]][0] for code in order.tolist()]),
        (Column("Kernel"), [ops.shown[code] for code in order.tolist()]),
    )
    return Result(columns, findings, hidden=hidden)


def _kind(name: OpName) -> int:
    """The place among the kinds, -1 for a kernel that may do anything else."""
    short = short_name(name.demangled, name.short).name
    for place, pattern in enumerate(_OF_TORCH):
        if pattern.match(short):
            return place
    words = _WORD.findall(parts_of(name.demangled).base)
    others = [word for word in words if not _MOVES.fullmatch(word)]
    if len(others) == len(words) or not all(map(_HOW.fullmatch, others)):
        return -1
    if any("dequant" in word.lower() for word in words):
        return _DEQUANTISED
    return _LAYOUT if _LIBRARY.search(name.demangled) else _OWN


def _moving(case: Case, device: int, rows: Indices, kind: Int64, least: float) -> list[Finding]:
    ops = case.report.operations
    name, took = ops.name[rows], ops.durations(rows)
    of_kind = sums(kind[name], took, len(_KINDS))
    whole, spent = int(ops.durations(case.by_device[device]).sum()), int(took.sum())
    computed = int(ops.durations(case.doing(device, Category.COMPUTE)).sum())
    if 100 * spent < least * whole or 2 * of_kind[_OWN] > computed:
        return []
    between = _between(case, device, kind)
    could = min(_fused(case, device, kind), _alone(case, device, kind)) + intervals.total(*between)
    paces = 2 * case.idle_time.busy_ns(device) >= case.base_ns
    saved, stake = could * paces, max(int(of_kind[_OWN:].sum()), could)
    if 100 * stake < least * whole:
        return []
    by_name = np.bincount(name, took)
    most = int(np.argmax(by_name))
    much = (k for k in np.argsort(-of_kind).tolist() if 10 * of_kind[k] > spent)
    told = " and ".join([*dict.fromkeys(_KINDS[k][0] for k in much)][:2]) + " kernels"
    title = (
        f"{told}: {units.format_duration(spent)} on {case.device_labels([device])},"
        f" {units.format_share(spent, whole)} of its GPU time, {most_of(by_name.max(), spent)} "
    )
    return case.finding(
        "movement_kernels",
        title + brief(ops.shown[most], TITLE_CELLS - len(title)),
        _KINDS[int(np.argmax(of_kind))][1],
        subject=told,
        saved_ns=saved,
        stake_ns=stake,
        at_most=None if saved == stake else Severity.MEDIUM,
        window=longest_of(ops, rows[name == most]),
        device=device,
        screen="3",
        gone=intervals.joined(between, ops.runs(rows)),
    )


def _fused(case: Case, device: int, kind: Int64) -> int:
    """Time of a device's kernels of these kinds that would go, were neighbouring ones one.

    That one neither writes nor reads what an elementwise kernel hands to the next. Many of one name
    in turn hand nothing on: each is for an array of its own. All else of the others stays.
    """
    ops, saved = case.report.operations, 0.0
    every = case.by_device[device]
    kind = np.where(kind >= _OWN, -1, kind)
    found = [_OPERANDS.search(name.demangled) for name in ops.names]
    tensors = np.array([max(1, int(one[1] or 3)) if one else 2 for one in found], np.int64)
    for place in rows_of_codes(ops.stream[every], len(ops.streams)):
        rows = every[place]
        of_row = np.where(ops.kind[rows] == OpKind.KERNEL, kind[ops.name[rows]], -1)
        chain, combines = np.cumsum(of_row < 0), of_row == _ELEMENTWISE
        saved += float(_GOES[of_row] @ ops.durations(rows))
        name, chain = ops.name[rows[combines]], chain[combines]
        took, linked = ops.durations(rows[combines]), np.diff(chain) == 0
        turn = np.cumsum(np.append(True, ~linked | (np.diff(name) != 0))[: len(name)])
        linked &= (np.bincount(turn)[turn[1:]] < A_RUN) | (np.diff(turn) > 0)
        least = np.minimum(took, _LEAST_NS)
        each = (took - least) / tensors[ops.name[rows[combines]]]
        gone = np.minimum(least[1:], least[:-1]) + 2 * np.minimum(each[1:], each[:-1])
        saved += gone[linked].sum()
    return int(saved)


def _between(case: Case, device: int, kind: Int64) -> Intervals:
    """Moments between two elementwise kernels that are no launch-bound run's."""
    ops = case.report.operations
    before, after, starts, ends = case.short_gaps(device, intervals.empty())
    combines = (kind == _ELEMENTWISE)[ops.name] & (ops.kind == OpKind.KERNEL)
    both = combines[before] & combines[after]
    return intervals.subtract((starts[both], ends[both]), case.launch_bound(device))


def _alone(case: Case, device: int, kind: Int64) -> int:
    """How long kernels of these kinds run alone on a device while launches do not bind it."""
    ops, every = case.report.operations, case.by_device[device]
    every = every[ops.category[every] != Category.MEMORY]
    moving = kind[ops.name[every]] >= 0
    alone = intervals.subtract(ops.runs(every[moving]), ops.runs(every[~moving]))
    return intervals.total(*intervals.subtract(alone, launched_late(case, device)))


def _attention(case: Case, device: int, least: float) -> list[Finding]:
    """What kernels take between two batched products of a stream, if it is attention."""
    ops, every = case.report.operations, case.by_device[device]
    short = [short_name(name.demangled, name.short).name for name in ops.names]
    product, reduces, others, takes_exp = (
        np.array([bool(test(name)) for name in short], bool)
        for test in (product_kind, _REDUCES.match, _OF_OTHERS.match, _EXPONENTIAL.match)
    )
    rows = every[np.argsort(ops.stream[every], kind="stable") if takes_exp.any() else slice(0)]
    at = np.flatnonzero(product[ops.name[rows]])
    batched = case.report.launch_attributes.of(rows[at], GRID)[:, -1] > 1
    seen = [np.diff(np.cumsum(of[ops.name[rows]])[at]) for of in (reduces, others)]
    chain = batched[:-1] & batched[1:] & (seen[0] > 0) & (seen[1] == 0)
    chain &= np.diff(at) <= _OF_ATTENTION
    chain &= np.diff(ops.stream[rows[at]]) == 0
    edges = np.zeros(len(rows), np.int8)
    edges[at[:-1][chain] + 1] += 1
    edges[at[1:][chain]] -= 1
    rows = rows[np.cumsum(edges) > 0]
    spent, whole = int(ops.durations(rows).sum()), int(ops.durations(every).sum())
    if not takes_exp[ops.name[rows]].any() or 100 * spent < least * whole:
        return []
    return case.finding(
        "movement_kernels",
        f"attention written out: {units.format_duration(spent)} between its products on"
        f" {case.device_labels([device])}, {units.format_share(spent, whole)} of its GPU time",
        "use scaled_dot_product_attention or FlashAttention: one kernel keeps scores on the SM",
        subject="attention written out",
        saved_ns=spent,
        window=longest_of(ops, rows),
        device=device,
        screen="3",
        gone=ops.runs(rows),
        confidence=Confidence.INFERRED,
    )
