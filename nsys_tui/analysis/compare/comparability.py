"""What makes a comparison unfair: other GPUs, drivers, versions, options, kinds of data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsys_tui.model.capabilities import Capability
from nsys_tui.model.target import counted_names

if TYPE_CHECKING:
    from nsys_tui.analysis.compare.side import Side
    from nsys_tui.analysis.window import Scope
    from nsys_tui.model.report import Report

_COSTLY: Final = frozenset(("GPUs", "GPUs used", "driver", "CPU", "steps"))
"""Facts that change times by themselves."""
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
    used = [report.devices[place] for place in scope.device_rows(report)]
    names = sorted(device.info.name if device.info else device.name for device in used)
    found = {
        "GPUs": "GPU work not known" if report.gpu_doubt else counted_names(names),
        "GPUs used": str(len(used)) if used else "",
        "driver": data.driver,
        "nsys": data.product_version,
        "CPU": data.cpu,
        "OS": data.os,
        "host": data.host,
        "command": " ".join(data.command),
    }
    return {name: text for name, text in found.items() if text}


def options(report: Report) -> dict[str, str]:
    """Capture settings that change what is traced; of several processes, all values."""
    values: dict[str, set[str]] = {}
    for name, value in report.metadata.capture_settings:
        plain = _PROCESS.sub("", name)
        if _OPTION.match(plain):
            values.setdefault(plain, set()).add(value)
    return {name: ", ".join(sorted(found)) for name, found in sorted(values.items())}


def differences(a: Side, b: Side) -> tuple[Difference, ...]:
    """What differs between the captures of two sides, the unfair first."""
    if a.identity and a.identity == b.identity:
        return ()
    found = [
        Difference(name, a.facts[name], b.facts[name], name in _COSTLY)
        for name in a.facts
        if name in b.facts and a.facts[name] != b.facts[name]
    ]
    if a.by_step and b.by_step and a.steps.name != b.steps.name:
        found.append(Difference("steps", _steps(a), _steps(b), unfair=True))
    found += [
        Difference(f"trace of {kind}", _yes(kind in a.kinds), _yes(kind in b.kinds), unfair=True)
        for kind in _TRACED
        if (kind in a.kinds) != (kind in b.kinds)
    ]
    # Versions of nsys know different options: one that a side lacks was not chosen otherwise.
    found += [
        Difference(f"option {name}", value, b.options[name], unfair=True)
        for name, value in a.options.items()
        if b.options.get(name, value) != value
    ]
    return tuple(sorted(found, key=lambda difference: not difference.unfair))


def _steps(side: Side) -> str:
    return f"{side.steps.name} ({side.steps.rule})"


def _yes(there: bool) -> str:
    return "yes" if there else "no"
