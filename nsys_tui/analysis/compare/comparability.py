"""What makes a comparison unfair: other GPUs, drivers, versions, options, kinds of data."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nsys_tui.analysis.compare.side import GROUPS, OF_HOST, Named, Side
from nsys_tui.analysis.compare.stats import Change
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.analysis.window import Scope
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.categories import is_communication
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
_MORE_THREADS: Final = 1.1
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
        Difference(f"trace of {kind}", _yes(kind in a.kinds), _yes(kind in b.kinds), unfair=True)
        for kind in _TRACED
        if (kind in a.kinds) != (kind in b.kinds)
    ]
    # Versions of nsys know different options: one that a side lacks was not chosen otherwise.
    sentences += [
        Difference(f"option {name}", value, b.options[name], unfair=True)
        for name, value in a.options.items()
        if b.options.get(name, value) != value
    ]
    return tuple(sorted(sentences, key=lambda difference: not difference.unfair))


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
    shared = {*mine} & {*theirs}
    alike = min(_common(names, dict.fromkeys(shared, 1.0)) for names in (mine, theirs))
    if alike < _ALIKE:
        graphs = [{n: float(n.startswith(_GRAPH)) for n in names} for names in (mine, theirs)]
        first, second = map(_common, (mine, theirs), graphs)
        if abs(first - second) > _ALIKE:
            traced = (
                f"{'A' if first > second else 'B'} holds CUDA graphs that were traced as a whole"
            )
            return f"{traced}, not their kernels (nsys --cuda-graph-trace=node traces these)"
        names, differ = len({*mine} | {*theirs}), len({*mine} ^ {*theirs})
        counts = f"{format_count(differ)} of {format_count(names)} kernel names differ"
        return f"{counts}, and {format_share(alike)} of the kernel time is in those of both"
    if not (a.by_step and b.by_step):
        return ""  # runs of the same program may be of any length
    return _other_counts(a, b, shared) or _other_bytes(a, b) or _other_threads(a, b)


def _other_counts(a: Side, b: Side, shared: Collection[str]) -> str:
    """Kernels of both sides that are launched so much more often that it is other work."""
    names = [{name: side.names("kernels")[name] for name in shared} for side in (a, b)]
    often = [_often(side, each) for side, each in zip((a, b), names, strict=True)]
    for place in (0, 1):
        parts = {n: min(1.0, often[1 - place][n] / often[place][n]) for n in shared}
        if _common(names[place], parts) < _AS_OFTEN:
            first, second = (sum(counts.values()) for counts in often)
            return f"{first:,.0f} kernels per step in A and {second:,.0f} in B"
    return ""


def _other_threads(a: Side, b: Side) -> str:
    """Compute kernels that, launched as often, nearly all launch more threads, or fewer."""
    if a.facts.get("GPUs") != b.facts.get("GPUs"):
        return ""  # grids follow the number of multiprocessors
    names = [
        {n: named for n, named in side.names("kernels").items() if not is_communication((n,))}
        for side in (a, b)
    ]
    often, others = (_often(side, each) for side, each in zip((a, b), names, strict=True))
    grown = {
        n: b.threads[n] / names[1][n].count / (a.threads[n] / names[0][n].count)
        for n in {*often} & {*others}
        if abs(often[n] - others[n]) <= _CALLS * often[n] and a.threads.get(n) and b.threads.get(n)
    }
    for word, sign in (("more", 1), ("fewer", -1)):
        changed = {n: 1.0 for n, ratio in grown.items() if ratio**sign > _MORE_THREADS}
        share = min(_common(each, changed) for each in names)
        if len(changed) >= _SEVERAL and share >= _MOST:
            some, every = format_count(len(changed)), format_count(len({*often, *others}))
            what = f"{some} of {every} compute kernels ({format_share(share)} of their time)"
            return f"{what} launch {word} threads in B, as with another batch or problem size"
    return ""


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
    most = max((named.bytes for names in (mine, theirs) for named in names.values()), default=0)
    for name in mine:
        if name not in theirs or 2 * max(mine[name].bytes, theirs[name].bytes) < most:
            continue
        calls, others = often[0][name], often[1][name]
        sizes = sorted(n.bytes / max(n.count, 1) for n in (mine[name], theirs[name]))
        if abs(calls - others) <= _CALLS * calls and sizes[0] and sizes[1] > _MORE_BYTES * sizes[0]:
            texts = [
                format_bytes(round(named[name].bytes / max(named[name].count, 1) * each))
                for named, each in ((mine, calls), (theirs, others))
            ]
            return f"{name} moves {texts[0]} in A and {texts[1]} in B, in as many copies"
    return ""


def _steps(side: Side) -> str:
    return f"{side.steps.name} ({side.steps.rule})"


def _yes(there: bool) -> str:
    return "yes" if there else "no"
