"""What makes a comparison unfair: other GPUs, drivers, versions, options, kinds of data."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nsys_tui.analysis.compare.side import GROUPS, OF_HOST, Named, Side
from nsys_tui.analysis.compare.stats import Change
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.analysis.window import Scope
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import is_communication
from nsys_tui.model.kernel_names import product_kind
from nsys_tui.model.report import Report
from nsys_tui.model.target import Device, counted_names
from nsys_tui.units import format_bytes, format_count, format_share

_COSTLY: Final = frozenset(("GPUs", "GPUs used", "GPU clock", "driver", "CPU", "steps"))
"""Facts that change times by themselves."""
_EXPLAIN: Final = ("GPUs", "GPUs used", "GPU clock")
"""Facts that explain any change of times."""
_ALIKE: Final = 0.5
"""With less of the kernel time in kernels of both sides, the work is another."""
_AS_OFTEN: Final = 0.6
"""The same of kernels that are launched as often on both sides: twice as many of all is 0.5."""
_MOST: Final = 0.8
"""With so much of the compute kernels' time in launches of other sizes, the problem is another."""
_SEVERAL: Final = 3
"""So many kernels change at least: fewer may have been tuned."""
_MORE: Final = 1.1
"""So many times the threads are more, so many times the time is longer."""
_MORE_BYTES: Final = 1.5
"""As many copies of so many times the bytes move other data."""
_GRAPH: Final = "[CUDA graph "
"""How a graph that was traced as a whole is called, in place of its kernels."""
_CALLS: Final = 0.1
"""Relative difference of calls up to which there are as many."""
_OPTION: Final = re.compile(
    r"(COLLECT_|CUDA_|NVTX_OPTIONS:|OS_RUNTIME_OPTIONS:|LINUX_PERF_OPTIONS:|GPU_METRICS|SHOW_BACKTR"
    r"|SAMPL|USE_(DWARF|FRAME_POINTERS|LBRS|LINUX_PERF|UNWIND_TABLES)\Z)"
)
"""Capture settings that say what was traced, by the beginning of their name."""
_PROCESS: Final = re.compile(r"\APROCESS_[0-9]+:")
_TRACED: Final = (
    Capability.API,
    Capability.NVTX,
    Capability.OSRT,
    Capability.SAMPLES,
    Capability.CUDA_BACKTRACES,
    Capability.OSRT_BACKTRACES,
    Capability.GPU_METRICS,
    Capability.GPU_MEMORY,
    Capability.MPI,
    Capability.SCHED,
)
"""Kinds of data whose recording costs the program time."""

WITNESSES: Final = (
    Capability.API,
    Capability.OSRT,
    Capability.SAMPLES,
    Capability.MPI,
    Capability.SCHED,
)
"""Kinds of data that tell what a host thread did while a GPU was idle."""


@dataclass(frozen=True)
class Difference:
    """Something that is not the same on both sides."""

    what: str
    a: str
    b: str
    unfair: bool
    """Whether it changes times by itself."""


def facts(report: Report, scope: Scope) -> dict[str, str]:
    """Facts of a capture by name; those that are not recorded are left out."""
    data = report.metadata
    used = [report.devices[number] for number in scope.device_rows(report)]
    names = sorted(device.info.name if device.info else device.name for device in used)
    recorded = {
        "GPUs": "GPU work not known" if report.gpu_doubt else counted_names(names),
        "GPUs used": str(len(used)) if used else "",
        "GPU clock": _clocks(used),
        "driver": data.driver,
        "nsys": data.product_version,
        "CPU": data.cpu,
        "OS": data.os,
        "host": data.host,
        "command": " ".join(data.command),
    }
    return {name: text for name, text in recorded.items() if text}


def _clocks(devices: Sequence[Device]) -> str:
    """Highest clock rates of GPUs, as recorded."""
    rates = {device.info.clock_hz for device in devices if device.info and device.info.clock_hz}
    return ", ".join(f"{clock / 1e6:g} MHz" for clock in sorted(rates))


def options(report: Report) -> dict[str, str]:
    """Capture settings that change what is traced; of several processes, all values."""
    values: dict[str, set[str]] = {}
    for name, value in report.metadata.capture_settings:
        plain = _PROCESS.sub("", name)
        if _OPTION.match(plain):
            values.setdefault(plain, set()).add(value)
    return {name: ", ".join(sorted(given)) for name, given in sorted(values.items())}


def differences(a: Side, b: Side) -> tuple[Difference, ...]:
    """What differs between the captures of two sides, the unfair first."""
    if a.identity and a.identity == b.identity:
        return ()
    sentences = [
        Difference(name, a.facts[name], b.facts[name], name in _COSTLY)
        for name in a.facts
        if name in b.facts and a.facts[name] != b.facts[name]
    ]
    if a.by_step and b.by_step and a.steps.name != b.steps.name:
        sentences.append(Difference("steps", _steps(a), _steps(b), unfair=True))
    sentences += [
        Difference(f"{kind} recorded", _yes(kind in a.kinds), _yes(kind in b.kinds), unfair=True)
        for kind in of_one_side(a, b)
    ]
    # Versions of nsys know different options: one that a side lacks was not chosen otherwise.
    sentences += [
        Difference(f"option {name}", value, b.options[name], unfair=True)
        for name, value in a.options.items()
        if b.options.get(name, value) != value
    ]
    return tuple(sorted(sentences, key=lambda difference: not difference.unfair))


def of_one_side(a: Side, b: Side, kinds: Iterable[Capability] = _TRACED) -> list[Capability]:
    """Kinds of data that one side has and the other lacks."""
    return [kind for kind in kinds if (kind in a.kinds) != (kind in b.kinds)]


def explained(a: Side, b: Side, change: Change) -> str:
    """What of the machines or of the capture explains a change; empty for nothing known."""
    for name in _EXPLAIN:
        first, second = a.facts.get(name, ""), b.facts.get(name, "")
        if first and second and first != second:
            return f"{name}: {first} in A, {second} in B, which explains a change"
    cost, grown = _overhead(b) - _overhead(a), _wall(b) - _wall(a)
    if grown and cost / grown >= _ALIKE and change.delta * cost > 0:
        part = min(cost / grown, 1.0)  # a gap counts whole for its largest cause
        return f"profiler overhead explains {format_share(part)} of the change"
    return ""


def _overhead(side: Side) -> float:
    """Idle time that the profiler caused, per GPU and step or as a whole, ns."""
    named = side.names("stalls").get(Cause.PROFILER.key)
    return 0.0 if named is None else named.total / (side.parts * max(side.device_count, 1))


def _wall(side: Side) -> float:
    return side.metrics["wall"].mean if "wall" in side.metrics else 0.0


def different_work(a: Side, b: Side) -> str:
    """Why two sides are different programs, by their kernels and copies; empty where not."""
    mine, theirs = a.names("kernels"), b.names("kernels")
    if not (mine or theirs):
        return _other_calls(a, b)
    if not mine or not theirs or a.unknown & {"kernels"} or b.unknown & {"kernels"}:
        return ""
    by_step = a.by_step and b.by_step  # without, runs of the same program may be of any length
    shared, products = {*mine} & {*theirs}, _products(a, b) if by_step else {}
    enough = _alike(mine, theirs, shared) >= _ALIKE
    if not enough and _alike(mine, theirs, {*shared, *products}) < _ALIKE:
        return _other_names(mine, theirs)
    if not by_step:
        return ""
    other = _other_counts(a, b, shared, products) or _other_bytes(a, b)
    other = other or _other_threads(a, b, products)
    as_large = enough or _as_many_threads(a, b)
    return other if other or as_large else _other_names(mine, theirs)


def matched_by_kind(a: Side, b: Side) -> list[str]:
    """What is to be said of kernels that are one work under names that differ."""
    kinds = _products(a, b) if a.by_step and b.by_step else {}
    notes = []
    for kind in dict.fromkeys(kinds.values()):
        names = [{n for n in side.names("kernels") if kinds.get(n) == kind} for side in (a, b)]
        mine, theirs = len(names[0] - names[1]), len(names[1] - names[0])
        often = sum(a.names("kernels")[name].count for name in names[0]) / a.parts
        notes.append(
            f"{kind}: {mine} of {len(names[0])} kernel names only in A and {theirs} of"
            f" {len(names[1])} only in B; matched as one kind, {often:,.1f} launches per step:"
            " libraries choose them by size and release"
        )
    return notes


def _alike(mine: Mapping[str, Named], theirs: Mapping[str, Named], shared: Iterable[str]) -> float:
    """Part of the kernel time that is in some names, on the side where it is less."""
    return min(_common(names, dict.fromkeys(shared, 1.0)) for names in (mine, theirs))


def _other_names(mine: Mapping[str, Named], theirs: Mapping[str, Named]) -> str:
    graphs = [{n: float(n.startswith(_GRAPH)) for n in names} for names in (mine, theirs)]
    first, second = map(_common, (mine, theirs), graphs)
    if abs(first - second) > _ALIKE:
        traced = f"{'A' if first > second else 'B'} holds CUDA graphs that were traced as a whole"
        return f"{traced}, not their kernels (nsys --cuda-graph-trace=node traces these)"
    names, differ = len({*mine} | {*theirs}), len({*mine} ^ {*theirs})
    counts = f"{format_count(differ)} of {format_count(names)} kernel names differ"
    alike = _alike(mine, theirs, {*mine} & {*theirs})
    return f"{counts}, and {format_share(alike)} of the kernel time is in those of both"


def _products(a: Side, b: Side) -> dict[str, str]:
    """Kinds of the matrix products by name, of kinds launched as often under names that differ."""
    sides = [_often(side, side.names("kernels")) for side in (a, b)]
    kinds = {name: kind for side in sides for name in side if (kind := product_kind(name))}
    often = [defaultdict[str, float](float) for _ in sides]
    for counts, side in zip(often, sides, strict=True):
        for name, count in side.items():
            counts[kinds.get(name, "")] += count
    differ = {kinds.get(name, "") for name in {*sides[0]} ^ {*sides[1]}}
    alike = {k for k in differ if abs(often[0][k] - often[1][k]) <= _CALLS * often[0][k]}
    return {name: kind for name, kind in kinds.items() if kind in alike}


def _other_counts(a: Side, b: Side, shared: Collection[str], products: Collection[str]) -> str:
    """Kernels of both sides that are launched so much more often that it is other work."""
    names = [{name: side.names("kernels")[name] for name in shared} for side in (a, b)]
    often = [_often(side, each) for side, each in zip((a, b), names, strict=True)]
    for place in (0, 1):
        parts = {n: min(1.0, often[1 - place][n] / often[place][n]) for n in shared}
        parts |= dict.fromkeys(products, 1.0)
        if _common(names[place], parts) < _AS_OFTEN:
            first, second = (sum(counts.values()) for counts in often)
            return f"{first:,.0f} kernels per step in A and {second:,.0f} in B"
    return ""


def _other_threads(a: Side, b: Side, products: Collection[str]) -> str:
    """Compute kernels that, launched as often, nearly all launch more threads, or fewer.

    Matrix products may launch as many for another problem, or be other kernels: those that do
    say nothing where they take longer, if what launches more threads does, too.
    """
    grown, lasted = _grown(a, b)
    names = [_computing(side) for side in (a, b)]
    every = format_count(len({*names[0], *names[1]}))
    silent = {n for n in grown if product_kind(n) and 1 / _MORE < grown[n] < _MORE} | {*products}
    longer = _lasted(b, silent) / _lasted(a, silent) if silent else 1.0
    for word, sign in (("more", 1), ("fewer", -1)):
        changed = {n for n, ratio in grown.items() if ratio**sign > _MORE} - {*products}
        judged, more = names, ""
        if longer**sign > _MORE:
            more = f", and matrix products take {longer:.2f} times as long"
            changed = {n for n in changed if lasted[n] ** sign > _MORE}
            kept = {n for n in grown if max(_far(grown[n]), _far(lasted[n])) > _MORE} - silent
            judged = [{n: named for n, named in each.items() if n in kept} for each in names]
        share = min(_common(each, dict.fromkeys(changed, 1.0)) for each in judged)
        if len(changed) >= _SEVERAL and share >= _MOST:
            part = min(_common(each, dict.fromkeys(changed, 1.0)) for each in names)
            what = f"{format_count(len(changed))} of {every} compute kernels"
            what = f"{what} ({format_share(part)} of their time)"
            return f"{what} launch {word} threads in B{more}, as with another batch or problem size"
    return ""


def _as_many_threads(a: Side, b: Side) -> bool:
    """Whether nearly all compute kernels but matrix products launch as many threads."""
    grown, _ = _grown(a, b)
    names = [{n: x for n, x in _computing(s).items() if not product_kind(n)} for s in (a, b)]
    alike = {n: 1.0 for n in grown if n in names[0] and _far(grown[n]) <= _MORE}
    return len(alike) >= _SEVERAL and min(_common(each, alike) for each in names) >= _MOST


def _grown(a: Side, b: Side) -> tuple[dict[str, float], dict[str, float]]:
    """Threads and times of a launch in B over those in A, of what is launched as often.

    None on other GPUs: grids follow the number of multiprocessors.
    """
    if a.facts.get("GPUs") != b.facts.get("GPUs"):
        return {}, {}
    first, second = map(_computing, (a, b))
    often, others = (_often(side, each) for side, each in ((a, first), (b, second)))
    known = [
        n
        for n in first
        if n in second
        and abs(often[n] - others[n]) <= _CALLS * often[n]
        and a.threads.get(n)
        and b.threads.get(n)
    ]
    calls = {n: second[n].count / first[n].count for n in known}
    threads = {n: b.threads[n] / a.threads[n] / calls[n] for n in known}
    return threads, {n: second[n].total / max(first[n].total, 1) / calls[n] for n in known}


def _computing(side: Side) -> dict[str, Named]:
    kernels = side.names("kernels").items()
    return {name: named for name, named in kernels if not is_communication((name,))}


def _lasted(side: Side, names: Collection[str]) -> float:
    """Time in some kernels, per step."""
    kernels = side.names("kernels")
    return max(1, sum(kernels[name].total for name in names if name in kernels)) / side.parts


def _far(ratio: float) -> float:
    """How far a ratio is from 1, either way."""
    return max(ratio, 1 / ratio) if ratio else math.inf


def _other_calls(a: Side, b: Side) -> str:
    """Host calls that are all that can be compared, and that each side makes more or less often."""
    if any({*a.names(key)} & {*b.names(key)} for key in ("ranges", "api")):
        return ""
    for key in OF_HOST:
        names = a.names(key), b.names(key)
        if all(names):
            often = [_often(side, each) for side, each in zip((a, b), names, strict=True)]
            pairs = ((0, 1), (1, 0))
            parts = [
                {n: min(1.0, often[j].get(n, 0) / often[i][n]) for n in often[i]} for i, j in pairs
            ]
            alike = min(map(_common, names, parts))
            if alike < _ALIKE:
                calls = f"{format_share(alike)} of the time in {GROUPS[key]}"
                return f"{calls} is in those that both sides make as often"
            return ""
    return ""


def _common(names: Mapping[str, Named], parts: Mapping[str, float]) -> float:
    """Part of the kernel time of a side that counts: of each name, a part."""
    total = sum(named.total for named in names.values())
    counted = sum(named.total * parts.get(name, 0.0) for name, named in names.items())
    return counted / total if total else 1.0


def _often(side: Side, names: Mapping[str, Named]) -> dict[str, float]:
    """How often each name occurs in a step, or in a run."""
    return {name: named.count / side.parts for name, named in names.items()}


def _other_bytes(a: Side, b: Side) -> str:
    """Copies of a kind that are as many on both sides, and move other amounts."""
    mine, theirs = a.names("copies"), b.names("copies")
    often = [_often(side, names) for side, names in ((a, mine), (b, theirs))]
    most = max((named.amount for names in (mine, theirs) for named in names.values()), default=0)
    for name in mine:
        if name not in theirs or 2 * max(mine[name].amount, theirs[name].amount) < most:
            continue
        calls, others = often[0][name], often[1][name]
        sizes = sorted(n.amount / max(n.count, 1) for n in (mine[name], theirs[name]))
        if abs(calls - others) <= _CALLS * calls and sizes[0] and sizes[1] > _MORE_BYTES * sizes[0]:
            texts = [
                format_bytes(round(named[name].amount / max(named[name].count, 1) * each))
                for named, each in ((mine, calls), (theirs, others))
            ]
            return f"{name} moves {texts[0]} in A and {texts[1]} in B, in as many copies"
    return ""


def _steps(side: Side) -> str:
    return f"{side.steps.name} ({side.steps.rule})"


def _yes(there: bool) -> str:
    return "yes" if there else "no"
