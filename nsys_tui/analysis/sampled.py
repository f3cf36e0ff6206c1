"""What CPU samples say a thread did meanwhile: the function, and whether it worked or polled."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.thread_states import ByThread
from nsys_tui.model.kinds import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.model.events import CallChains, Int64
    from nsys_tui.model.report import Report

FEWEST: Final = 10
"""Samples below which nothing is said of them."""
_FRAMES: Final = 24
"""Frames looked at from the leaf on."""


class Doing(StrEnum):
    """What kind of code samples hit."""

    WORKS = "computes"
    POLLS = "waits for another rank"
    COMPILES = "compiles GPU code"
    DRIVER = "in the CUDA driver"


@dataclass(frozen=True)
class Sampled:
    """What most samples of some time hit."""

    doing: Doing
    name: str
    """The function, or its library where the function has no name; empty where they differ."""
    share: float
    """Of the samples, 0 to 1, that do this; where a function is named, that hit it."""
    count: int
    """Samples looked at."""


_POLLING: Final = re.compile(r"^P?MPI_|^(MPID|MPIR|MPIDI|ompi_|opal_|ucp_|uct_|cxip_|psm2_|fi_cq)")
_COMPILING: Final = re.compile(r"ptxjitcompiler|nvrtc|nvJitLink|nvvm")
_DRIVER: Final = re.compile(r"libcuda(rt)?\.so|libcudart|nvcuda\.dll|ToolsInjection|cupti")
_SYSTEM: Final = re.compile(r"\[vdso\]|\[kernel|libc[.-]|ld-|libpthread|libm[.-]|libstdc\+\+")


def sampled(report: Report, thread: int, starts: Int64, ends: Int64) -> Sampled | None:
    """What a thread did in some disjoint intervals by its CPU samples.

    Args:
        report: the report.
        thread: its globalTid.
        starts: of the intervals, ascending.
        ends: of the intervals.

    Returns:
        None where there are hardly any samples.
    """
    if not len(report.samples) or not len(starts):
        return None
    samples = report.samples
    rows = ByThread(samples).rows(thread)
    times = samples.start[rows]
    place = np.searchsorted(starts, times, side="right") - 1
    hit = rows[(place >= 0) & (times < ends[np.maximum(place, 0)])]
    ids, count = np.unique(samples.chain[hit], return_counts=True)
    if len(hit) < FEWEST:
        return None
    doing, names = _read(report.chains(Kind.SAMPLE_CHAIN), ids)
    of_kind = {kind: int(count[doing == kind].sum()) for kind in Doing}
    most = max(of_kind, key=lambda kind: of_kind[kind])
    mine = np.flatnonzero(doing == most)
    found, group = np.unique(names[mine], return_inverse=True)
    by_name = np.bincount(group, count[mine])
    top = int(np.argmax(by_name))
    named = bool(found[top]) and 4 * by_name[top] >= of_kind[most]
    share = (by_name[top] if named else of_kind[most]) / len(hit)
    return Sampled(most, str(found[top]) if named else "", float(share), len(hit))


def _read(chains: CallChains, ids: Int64) -> tuple[NDArray[np.str_], NDArray[np.str_]]:
    """What each chain does, and the innermost function of the program or library that does it."""
    polls = np.array([_POLLING.search(name) is not None for name in chains.symbols], bool)
    modules = (_COMPILING, _DRIVER, _SYSTEM)
    compiles, driver, system = (
        np.array([pattern.search(name) is not None for name in chains.modules], bool)
        for pattern in modules
    )
    unnamed = np.array([_is_unnamed(name) for name in chains.symbols], bool)
    first, last = (np.searchsorted(chains.id, ids, side=side) for side in ("left", "right"))
    doing = np.full(len(ids), Doing.WORKS, "U32")
    symbol = np.full(len(ids), -1, np.int64)
    leaf = chains.module[first[first < last]]
    doing[np.flatnonzero(first < last)[driver[leaf]]] = Doing.DRIVER
    for level in range(_FRAMES):
        going = np.flatnonzero(first + level < last)
        if not len(going):
            break
        row = first[going] + level
        code, module = chains.symbol[row], chains.module[row]
        doing[going[compiles[module]]] = Doing.COMPILES
        polling = polls[code]
        doing[going[polling]] = Doing.POLLS
        named = ~(unnamed[code] | system[module]) & ((symbol[going] < 0) | polling)
        symbol[going[named]] = code[named]
    texts = np.array([*chains.symbols, ""], object)
    return doing, texts[symbol].astype(str)


def _is_unnamed(symbol: str) -> bool:
    return symbol.startswith(("0x", "[")) or not symbol
