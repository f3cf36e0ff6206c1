"""Folded stacks by source: GPU time by NVTX path, CPU samples, API and OS backtraces."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from nsys_tui.analysis.nvtx.operation_paths import CHUNK, attribute
from nsys_tui.analysis.nvtx.paths import Paths, nvtx_paths
from nsys_tui.analysis.stacks.frame_rules import DROPPED, NO_RULES, FrameRules, library, rewrite
from nsys_tui.analysis.window import WHOLE_REPORT, Scope, clipped, masked, row_numbers
from nsys_tui.errors import NoDataError
from nsys_tui.model.arrays import Indices, Int32, Int64, Integers
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.events import CallChains, EventSet, ThreadEvents
from nsys_tui.model.groups import factorise, pair_codes
from nsys_tui.model.kinds import Kind
from nsys_tui.model.progress import Progress, silent
from nsys_tui.model.report import Report
from nsys_tui.model.tree import ROOT, TrieBuilder, WeightedTree, weighted
from nsys_tui.names import api_name
from nsys_tui.units import format_duration, format_share

NO_CHAIN: Final = "[no call chain]"
BROKEN: Final = "[Broken backtraces]"
"""What nsys writes in place of callers that it could not find."""
_FIRST: Final = re.compile(r"_start|_*(GI_+)?clone3?")
"""What begins a program or a thread: nothing calls it, be it under ``BROKEN`` or not."""
UNBROKEN: Final = "another --backtrace (fp, dwarf, lbr), or code with frame pointers, keeps them"


class StackSource(StrEnum):
    """What is folded."""

    GPU = "gpu"
    CPU = "cpu"
    CUDA = "cuda"
    OSRT = "osrt"
    ON = "on"
    OFF = "off"
    NVTX = "nvtx"


TITLES: Final = {
    StackSource.GPU: "GPU time by NVTX path",
    StackSource.CPU: "CPU samples",
    StackSource.CUDA: "CUDA API by backtrace",
    StackSource.OSRT: "OS runtime by backtrace",
    StackSource.ON: "on the CPU by thread",
    StackSource.OFF: "off the CPU by OS call",
    StackSource.NVTX: "host time by NVTX path",
}


@dataclass(frozen=True, eq=False)
class Stacks:
    """A folded tree, and which events went where."""

    tree: WeightedTree
    rows: Integers
    """Events that were folded: rows of operations, samples, API or OS calls."""
    node: Integers
    """Leaf node of each of ``rows``."""
    notes: tuple[str, ...] = ()
    """What is left out or marked, one sentence each."""

    def longest(self, events: EventSet, nodes: int | Indices) -> int | None:
        """Row of the longest event at or below some nodes; of equals the first."""
        longest = self.rows[self.tree.trie.below(nodes)[self.node]]
        return int(longest[np.argmax(events.durations(longest))]) if len(longest) else None


def gpu_stacks(
    report: Report,
    scope: Scope = WHOLE_REPORT,
    *,
    rules: FrameRules = NO_RULES,
    names: str = "full",
    across_threads: bool = False,
    paths: Paths | None = None,
    progress: Progress = silent,
) -> Stacks:
    """Folds GPU time by NVTX path with the operation's name as leaf; each operation counts once.

    Graph launches whose nodes were traced too are left out (definitions: "GPU operation").

    Args:
        report: the report.
        scope: restricts operations; those that straddle the window are clipped.
        rules: changes range frames; by default nothing is stripped or dropped.
        names: style of the leaves: short, normalised or full.
        across_threads: credit work launched without an open range of its own thread to the path
            of another thread of the process.
        paths: NVTX paths of the report if they are at hand.
        progress: told how many operations were attributed.

    Raises:
        NoDataError: the report has no GPU work.
    """
    ops = report.operations
    if not len(ops):
        raise NoDataError(f"{report.name}: {report.lacks(Capability.KERNELS)}")
    chosen = scope.operations(ops)
    counted = masked(chosen, ops.counted[chosen])
    lengths = np.subtract(*reversed(clipped(ops, counted, scope.window)))
    rows = row_numbers(ops, counted)
    paths = paths or nvtx_paths(report, progress=progress)
    path = np.empty(len(rows), np.int32)
    for begin in range(0, len(rows), CHUNK):
        progress("finding the ranges of operations", begin, len(rows))
        part = slice(begin, begin + CHUNK)
        path[part] = attribute(report, paths, rows[part], across_threads=across_threads)
    progress("folding stacks", 0, len(rows))
    builder = TrieBuilder()
    rewritten = rewrite(paths.builder.trie(), builder, rules, path)
    leaves = np.array([*map(builder.label, ops.texts(names))] or [0], np.int64)
    notes = rules.labels
    dropped = (rewritten == DROPPED)[path]
    if dropped.any():
        lost = int(lengths.sum(where=dropped))
        notes += (f"{np.count_nonzero(dropped)} operations ({format_duration(lost)}) are dropped",)
        rows, path, lengths = rows[~dropped], path[~dropped], lengths[~dropped]
    node = _below(builder, rewritten[path], ops.name[rows], leaves)
    tree = weighted(builder, node, lengths, "ns")
    return Stacks(tree, rows.astype(np.int32), node.astype(np.int32), notes)


def _below(builder: TrieBuilder, above: Int64, name: Int32, leaves: Int64) -> Int64:
    """Leaf node of each event from its path and its name code."""
    place, parent, leaf = pair_codes(above, name, len(leaves))
    return builder.children(parent, leaves[leaf])[place]


def range_stacks(
    report: Report, scope: Scope = WHOLE_REPORT, *, rules: FrameRules = NO_RULES
) -> Stacks:
    """Folds the host time of NVTX ranges: each range without what those inside it cover.

    Args:
        report: the report.
        scope: restricts time and processes; ranges that straddle the window are clipped.
        rules: changes frames.

    Raises:
        NoDataError: the report has no NVTX ranges.
    """
    ranges = report.ranges
    if not len(ranges):
        raise NoDataError(f"{report.name}: {report.lacks(Capability.NVTX)}")
    paths = nvtx_paths(report)
    rows = row_numbers(ranges, scope.threads(ranges))
    rows = rows[paths.node[rows] >= 0]
    lo, hi = np.zeros(len(ranges), np.int64), np.zeros(len(ranges), np.int64)
    lo[rows], hi[rows] = clipped(ranges, rows, scope.window)
    duration = np.where(ranges.open, 0, hi - lo)
    inner = rows[paths.parent[rows] >= 0]
    around = paths.parent[inner]
    np.subtract.at(duration, around, np.maximum(np.minimum(hi[inner], hi[around]) - lo[inner], 0))
    builder = TrieBuilder()
    node = rewrite(paths.builder.trie(), builder, rules, paths.node[rows])[paths.node[rows]]
    kept = node != DROPPED
    rows, node = rows[kept], node[kept]
    tree = weighted(builder, node, np.maximum(duration[rows], 0), "ns")
    return Stacks(tree, rows, node, rules.labels)


def cpu_stacks(
    report: Report,
    scope: Scope = WHOLE_REPORT,
    *,
    rules: FrameRules = NO_RULES,
    thread: int | None = None,
) -> Stacks:
    """Folds CPU samples; the weight of a stack is its number of samples.

    Args:
        report: the report.
        scope: restricts time and processes.
        rules: changes frames.
        thread: globalTid of the only thread to fold.

    Raises:
        NoDataError: the report has no CPU samples.
    """
    samples = report.samples
    if not len(samples):
        raise NoDataError(f"{report.name}: {report.lacks(Capability.SAMPLES)}")
    kept = np.ones(len(samples), bool)
    if scope.window:
        kept &= (samples.start >= scope.window[0]) & (samples.start < scope.window[1])
    kept &= scope.has_process(samples.threads & ~np.int64(0xFFFFFF))[samples.thread]
    if thread is not None:
        kept &= samples.threads[samples.thread] == thread
    rows = np.flatnonzero(kept)
    builder = TrieBuilder()
    node = chain_nodes(report.chains(Kind.SAMPLE_CHAIN), samples.chain[rows], builder, rules)
    inside = np.flatnonzero(node != DROPPED)
    tree = weighted(builder, node[inside], np.ones(len(inside), np.int64), "samples")
    return Stacks(tree, rows[inside], node[inside], (*rules.labels, *_broken(tree)))


def call_stacks(
    report: Report,
    source: StackSource,
    scope: Scope = WHOLE_REPORT,
    *,
    rules: FrameRules = NO_RULES,
) -> Stacks:
    """Folds the time of CUDA API or OS runtime calls by their backtrace, the call as leaf.

    Only calls that carry a backtrace take part: CUDA's backtrace duplicates stand for their calls,
    and of nested OS calls the outermost counts.

    Args:
        report: the report.
        source: ``StackSource.CUDA`` or ``StackSource.OSRT``.
        scope: restricts time and processes; calls that straddle the window are clipped.
        rules: changes frames.

    Raises:
        NoDataError: no call of this kind has a backtrace.
    """
    calls: ThreadEvents
    if source is StackSource.CUDA:
        api = report.api
        calls, chain, kind = api, api.callchain, Kind.CUDA_CHAIN
        takes = (api.event_class == 67) if (api.event_class == 67).any() else chain > 0
        lack = Capability.CUDA_BACKTRACES
    else:
        osrt = report.osrt
        calls, chain, kind = osrt, osrt.callchain, Kind.OSRT_CHAIN
        takes, lack = (chain > 0) & (osrt.nesting <= 0), Capability.OSRT_BACKTRACES
    rows = row_numbers(calls, scope.threads(calls))
    rows = rows[takes[rows]]
    if not takes.any():
        raise NoDataError(f"{report.name}: {report.lacks(lack) or 'no call has a backtrace'}")
    builder = TrieBuilder()
    above = chain_nodes(report.chains(kind), chain[rows], builder, rules)
    inside = np.flatnonzero(above != DROPPED)
    leaves = np.array([builder.label(api_name(name)) for name in calls.names], np.int64)
    node = _below(builder, above[inside], calls.name[rows[inside]], leaves)
    start, end = clipped(calls, rows[inside], scope.window)
    tree = weighted(builder, node, end - start, "ns")
    return Stacks(tree, rows[inside], node, (*rules.labels, *_broken(tree)))


def _broken(tree: WeightedTree) -> tuple[str, ...]:
    """What is meant where nsys could not walk stacks to their outermost frame."""
    labels = tree.trie.labels
    if BROKEN not in labels:
        return ()
    label, outer = tree.trie.label, tree.trie.label[tree.trie.parent]
    first = [code for code, text in enumerate(labels) if _FIRST.fullmatch(text)]
    broken = labels.index(BROKEN)
    whole = (outer == broken) & np.isin(label, first)
    lost = int(tree.weight[label == broken].sum() - tree.weight[whole].sum())
    if not lost:
        return ()
    share = format_share(lost, int(tree.weight[ROOT]))
    what = "samples are" if tree.unit == "samples" else "time is"
    return (f"{share} of the {what} under {BROKEN}, its callers lost by nsys: {UNBROKEN}",)


def chain_nodes(
    chains: CallChains, wanted: Int64, builder: TrieBuilder, rules: FrameRules
) -> Int64:
    """Trie node of each event's call chain, outermost frame first.

    Args:
        chains: frames sorted by (id, depth), depth 0 the innermost.
        wanted: chain id of each event.
        builder: receives the frames.
        rules: changes frames.

    Returns:
        int64 (len(wanted),); events without a chain belong to ``[no call chain]``, -1 = dropped.
    """
    place, ids = factorise(wanted)
    first = np.searchsorted(chains.id, ids, side="left")
    final = np.searchsorted(chains.id, ids, side="right")
    codes = rules.codes(chains.symbols, builder)
    libraries = rules.codes(tuple(map(library, chains.modules)), builder)
    unnamed = np.fromiter(map(rules.is_unnamed, chains.symbols), bool, len(chains.symbols))
    nodes, last = np.full(len(ids), ROOT, np.int64), np.zeros(len(ids), np.int64)
    going = np.arange(len(ids))
    for level in range(int((final - first).max(initial=0))):
        going = going[(final[going] - first[going] > level) & (nodes[going] != DROPPED)]
        row = final[going] - 1 - level
        bare = unnamed[chains.symbol[row]]
        code = np.where(bare, libraries[chains.module[row]], codes[chains.symbol[row]])
        nodes[going[code == DROPPED]] = DROPPED
        kept = (code > 0) & ~(bare & (code == last[going]))
        last[going] = code
        if kept.any():
            nodes[going[kept]] = builder.children(nodes[going[kept]], code[kept])
    nodes[final == first] = builder.add((NO_CHAIN,))
    return nodes[place]
