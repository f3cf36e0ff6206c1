"""Our rule on what has most of the GPU time, and products that could use tensor cores."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from nsys_tui import units
from nsys_tui.analysis.iterations.flops import NO_TENSOR, TENSOR
from nsys_tui.analysis.rules.alike import Alike
from nsys_tui.analysis.rules.case import Case, kept
from nsys_tui.analysis.rules.finding import Confidence, Finding, by_ncu, longest_of
from nsys_tui.analysis.rules.gpu_work import HALF, filled, reads_host, waves_of
from nsys_tui.analysis.rules.held import launched_late
from nsys_tui.analysis.rules.register import RULES, Arguments, Parameter, Result, cut, rule
from nsys_tui.analysis.window import clipped
from nsys_tui.model import intervals
from nsys_tui.model.arrays import Bool, Indices, Integers
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import Category, OpKind
from nsys_tui.model.groups import among, regroup, sums
from nsys_tui.model.intervals import Intervals
from nsys_tui.model.kernel_names import of_library, product_kind, short_name
from nsys_tui.model.table import Column, Unit
from nsys_tui.model.target import GpuInfo
from nsys_tui.names import brief

_NAME_CELLS: Final = 36
_ROUNDED: Final = {7: "fp16"}
"""To what tensor cores round single precision, by major compute capability; later ones to two."""
_SOONER: Final = 1 / 2, 2 / 3
"""Part of an FP32 product that rounding saves: on tensor cores of twice its rate, and of eight."""
_ROUNDING: Final = "≈ {}, of 16-bit numbers: they may not do, and converting to them takes time"
_LAUNCHES: Final = "fewer or faster launches of it shorten the run: ncu -k says what limits it"
_ONE_LAUNCH: Final = "it is one launch, as long as what it does: ncu -k says what limits it"
_BY_NCU: Final = _LAUNCHES, _ONE_LAUNCH
_MORE_BLOCKS: Final = (
    "its blocks fill {} of the room for them: more may help, ncu -k says what limits it"
)
_SOON_NS: Final = 20_000
"""Shorter kernels take as long as one takes at least."""
_AHEAD: Final = "let the host launch further ahead: else faster ones only make the GPU wait longer"
_PAGES: Final = "{} of it are waits for pages: prefetch them; ncu -k says what limits the rest"
_PART: Final = 10
"""One of so many parts of a kernel's time is told of."""
_GRAPH_NODES: Final = "nsys profile --cuda-graph-trace=node"
_IN_GRAPH: Final = f"see which of its kernels take long: {_GRAPH_NODES}"
_OF_OTHERS: Final = Category.MEMORY, Category.COMM
"""What other rules tell of."""
_DECIDES: Final = 50.0
"""Per cent of GPU time from which an operation decides how long the run takes."""
_LEADS, _PRICED = 0.4, 0.1
"""Parts of the deciding share from which a kernel leads, with more than each of five even ones, and
from which products are told of: a third of a twentieth is worth fixing."""


@rule(
    "Operations by share of all GPU time",
    advice="Shares are of the time of all GPU work, copies and memsets included. What has half of"
    " it decides how long the run takes: ncu says what limits such a kernel.",
    nothing="No GPU work.",
    parameters=(Parameter("share", _DECIDES, "share of GPU time that is a finding, in percent"),),
)
def dominant_kernel(case: Case, arguments: Arguments) -> Result:
    """Kernels, copies and memsets by name, and a kernel that most of the GPU time goes to.

    Single-precision products of libraries count together, of all shapes, where tensor cores could
    round: a half or more of their time has a price. Beside them one or two kernels that lead, where
    these have more time than all but compute and what is moved once: nothing shortens it as much.
    A library's products in 16 bits or less come after what could give back a twentieth of them.
    """
    every = case.alike.where(case.alike.counted > 0)
    codes, names = regroup(every.name, case.report.operations.shown)
    time = sums(codes, every.time, len(names))
    count = sums(codes, every.launched, len(names))
    used = np.flatnonzero(count)
    order, hidden = cut(used[np.argsort(-time[used], kind="stable")], arguments)
    whole = float(time.sum()) or 1.0
    findings = _leading(case, every, whole, arguments.number("share"))
    columns = (
        (Column("Of GPU Time", Unit.PERCENT, 1), 100 * time[order] / whole),
        (Column("GPU Time", Unit.NS), time[order]),
        (Column("Instances", Unit.COUNT), count[order]),
        (Column("Operation"), [names[code] for code in order.tolist()]),
    )
    return Result(columns, findings, hidden=hidden)


def _leading(case: Case, every: Alike, whole: float, least: float) -> list[Finding]:
    """Products that could use tensor cores, and the kernels with most time.

    Variants of one kernel count together where none of all names has half of the time.
    """
    ops, findings = case.report.operations, list[Finding]()
    every = every.where(~np.isin(every.category, _OF_OTHERS))
    plain = every.name[_are_plain(case)[every.name]]
    if len(products := _could_use_tensor_cores(case, _named(case, plain))) > 1:
        findings = _dominant(case, products, "FP32 GEMM", whole, _PRICED * least)
    short = [short_name(name.demangled, name.short).name for name in ops.names]
    for called in (ops.shown, [product_kind(name) or name for name in short]):
        codes, names = regroup(every.name, called)
        time = sums(codes, every.time, len(names))
        if 2 * time.max(initial=0) >= whole:
            break
    rest = sum(one.idle_ns + one.busy_ns - one.compute_ns for one in case.steady_splits)
    for top in np.argsort(-time, kind="stable")[: min(2, np.count_nonzero(time))].tolist():
        mine = _named(case, every.name[codes == top])
        leads = _LEADS if time[top] >= rest else 1
        if not findings or not np.isin(mine, products).any():
            findings += _dominant(case, mine, names[top], whole, leads * least)
    return findings


def _named(case: Case, names: Integers) -> Indices:
    """Rows of the counted kernels and graphs of some names."""
    ops = case.report.operations
    wanted = np.isin(np.arange(len(ops.names)), names)
    if not wanted.any():
        return np.zeros(0, np.intp)
    of_name = case.where(lambda rows: wanted[ops.name[rows]])
    return of_name[ops.counted[of_name] & ~among(ops.category[of_name], _OF_OTHERS)]


def _dominant(case: Case, rows: Indices, name: str, whole: float, least: float) -> list[Finding]:
    """What a kernel has of the time; other rules tell of copies, collectives and small grids.

    Beside work on other streams it has less of the GPU time than of the time looked at.
    """
    ops = case.report.operations
    share = float(ops.durations(rows).sum()) / whole
    per_device = np.bincount(ops.device[rows], ops.durations(rows)).astype(np.int64)
    device = int(np.argmax(per_device))
    on_it = rows[ops.device[rows] == device]
    runs = intervals.union(*clipped(ops, on_it, case.scope.window))
    spent = intervals.total(*runs)
    if 100 * max(share, spent / max(case.judged_ns, 1)) <= least:
        return []
    kind, category = ops.kind[rows[0]], ops.category[rows[0]]
    of_compute = (kind, category) == (OpKind.KERNEL, Category.COMPUTE)
    if not (of_compute or kind == OpKind.GRAPH) or _is_mostly_small(case, rows):
        return []
    of_name = np.bincount(ops.name[rows], ops.durations(rows))
    variants, most = np.count_nonzero(of_name), int(np.argmax(of_name))
    several = f" ({variants} variants)" if variants > 1 else ""
    name = ops.shown[most] if variants == 1 and of_compute else name
    name = brief(name if of_compute else name.strip("[]"), _NAME_CELLS) or "[no name]"
    subject, part = name, 0.0
    advice, settle = _LAUNCHES, by_ncu(ops.names[most].short)
    if not of_compute:
        advice, settle = _IN_GRAPH, _GRAPH_NODES
    elif len(rows) == 1:
        advice = _ONE_LAUNCH
    if len(_could_use_tensor_cores(case, rows)):
        formats, part = _formats(case.report.devices[device].info)
        advice = f"it uses no tensor cores: allow {formats}, if a less exact result will do"
    elif reads_host(case)[ops.process[on_it[0]]]:
        advice = "only memory of the host was asked for: copy what it reads of it to the GPU first"
    elif _PART * (moved := _waits_for_pages(case, device, name)) >= spent:
        advice = _PAGES.format(units.format_duration(moved))
    launch = case.report.launch_attributes
    known = case.report.can(Capability.LAUNCH_SHAPES)
    alone = 2 * spent > per_device[device]
    if known and alone and (launch.blocks[launch.code[rows]] == 1).all():
        advice = "it has one block, which one SM runs alone: use more blocks"
    elif alone and advice in _BY_NCU and (room := _room_filled(case, rows)) <= HALF:
        subject, advice = f"{name}, a small grid", _MORE_BLOCKS.format(units.format_share(room))
    own = spent - _beside(case, device, on_it, runs)
    late = of_compute and 2 * intervals.overlap_length(launched_late(case, device), runs) > spent
    if late and not part:
        advice = _AHEAD
    elif 2 * own < spent and not part:
        subject = f"{name}, others beside it"
        advice = "shorten what runs beside it, too, else less is gained: ncu -k says what limits it"
    product = product_kind(full := ops.names[most].demangled)
    fine = bool(product and TENSOR.search(full)) and "tf32" not in product
    found = case.finding(
        "dominant_kernel",
        f"{name}{several} has {units.format_share(share)} of GPU time:"
        f" {units.format_duration(spent)} on {case.device_labels([device])},"
        f" {case.share(spent)}",
        advice,
        subject=subject,
        saved_ns=min(round(part * spent), own),
        stake_ns=spent,
        window=longest_of(ops, rows),
        device=device,
        screen="3",
        confidence=Confidence.INFERRED if part else None,
        doubt=_ROUNDING.format(units.format_share(part)) * (part > 0),
        settle=settle,
    )
    return [replace(one, is_fine=fine) for one in found]


def _room_filled(case: Case, rows: Indices) -> float:
    """How much of the room that a GPU has for blocks like those of a kernel these fill on average.

    1 where that is not known, a library chooses its blocks, they are sized to the SMs, or end soon.
    """
    ops, took = case.report.operations, case.report.operations.durations(rows)
    if of_library(ops.names[ops.name[rows[0]]].demangled) or took.mean() < _SOON_NS:
        return 1.0
    each, waves = (
        of[ops.device[rows], case.report.launch_attributes.code[rows]] for of in waves_of(case)
    )
    room = np.where((waves > 0) & (each % 1 > 0), np.minimum(waves, 1), 1)
    return float(room @ took / max(int(took.sum()), 1))


def _waits_for_pages(case: Case, device: int, name: str) -> int:
    """What migrations cost while launches of one kernel alone run, as the rule on them tells."""
    found = RULES["migrations_in_kernels"].run(case).findings
    mine = (one for one in found if one.subject == f"pages migrate in {name}")
    return sum(one.saved_ns for one in mine if one.device == device)


def _could_use_tensor_cores(case: Case, rows: Indices) -> Indices:
    """Those of some kernels that are long FP32 products, on a GPU whose tensor cores can round."""
    ops = case.report.operations
    able = np.array([_formats(device.info)[1] > 0 for device in case.report.devices], bool)
    rows = rows[_are_plain(case)[ops.name[rows]] & able[ops.device[rows]]]
    return rows[ops.durations(rows) >= _SOON_NS]


@kept
def _are_plain(case: Case) -> Bool:
    """Of each name of operations, whether it is of FP32 products."""
    names = case.report.operations.names
    return np.array([NO_TENSOR.search(name.demangled) is not None for name in names], np.bool_)


def _formats(info: GpuInfo | None) -> tuple[str, float]:
    """To what a GPU's tensor cores round single precision, and what of a product that saves.

    Those of large chips, such as 8.0 and 9.0, are eight times as quick, of 8.6 or 12.0 twice.
    """
    major, minor = (info and info.compute_capability) or (0, 0)
    if info is None or major < min(_ROUNDED) or "GTX" in info.name:
        return "", 0.0
    quick = major != 12 and (major != 8 or minor == 0)
    return _ROUNDED.get(major, "TF32 or bf16"), _SOONER[quick]


def _beside(case: Case, device: int, rows: Indices, runs: Intervals) -> int:
    """How long a device does other work while some kernels run."""
    ops, others = case.report.operations, case.by_device[device]
    others = others[~np.isin(ops.name[others], ops.name[rows])]
    return intervals.overlap_length(ops.runs(others), runs)


def _is_mostly_small(case: Case, rows: Indices) -> bool:
    """Whether most of the time of some kernels is of grids that leave half of the GPU empty."""
    time = case.report.operations.durations(rows)
    return bool(time[filled(case, rows, by_lanes=True) <= HALF].sum() * 2 > time.sum())
