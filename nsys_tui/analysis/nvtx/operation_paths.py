"""The NVTX path of every GPU operation of a report, and the same paths with similar names as one.

Definitions: "An operation belongs". Names that differ in their numbers only are merged level by
level, wherever they stand, so that what lies below them is merged too: ``layer 0`` … ``layer 31``
are one node of the tree, and the forward pass of all steps is one line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from nsys_tui.analysis.nvtx.paths import Paths, nvtx_paths
from nsys_tui.model.arrays import Indices, Int32, Int64, Integers
from nsys_tui.model.groups import rows_of_codes
from nsys_tui.model.progress import Progress, silent
from nsys_tui.model.report import Report
from nsys_tui.model.target import PROCESS_MASK
from nsys_tui.model.tree import ROOT, Trie, TrieBuilder
from nsys_tui.names import similar_name, strip_op_id
from nsys_tui.redaction import HIDDEN

NO_CALL: Final = "[no API call]"
NO_RANGE: Final = "[no NVTX range]"
BORROWED: Final = "~"
"""Before the outermost frame of a path that another thread had open."""


def attribute(
    report: Report, paths: Paths, rows: Indices, *, across_threads: bool = False
) -> Int64:
    """Finds the path of each operation: the one at its call's start on the call's thread.

    Args:
        report: the report.
        paths: its NVTX paths; roots for unattributed operations are added to its trie.
        rows: operations, ascending row numbers.
        across_threads: an operation whose own path is empty takes that of the thread of its process
            which, among those with a range open then, has the most range time (tie: lower tid).

    Returns:
        trie node of each operation's path, int64 (len(rows),). Operations without a call belong to
        the root ``[no API call]``, those without a path to ``[no NVTX range]``.
    """
    api, calls = report.api, report.calls[rows]
    nodes = np.full(len(rows), paths.builder.add((NO_CALL,)), np.int64)
    called = np.flatnonzero(calls >= 0)
    if not len(called):
        return nodes
    known = calls[called]
    thread, times = api.thread[known], api.start[known]
    node = np.zeros(len(called), np.int64)
    for code, places in enumerate(rows_of_codes(thread, len(api.threads))):
        if len(places):
            node[places] = paths.node_at(int(api.threads[code]), times[places])
    if across_threads:
        process = api.thread_process[thread]
        _borrow(node, process, times, paths)
    node[node == ROOT] = paths.builder.add((NO_RANGE,))
    nodes[called] = node
    return nodes


def _borrow(node: Int64, process: Int64, times: Int64, paths: Paths) -> None:
    """Fills empty paths with those of other threads of the process, the busiest thread first."""
    for owner in np.unique(process[node == ROOT]):
        threads = [t for t in paths.threads.values() if t.thread & PROCESS_MASK == owner]
        for lender in sorted(threads, key=lambda one: (-one.range_time, one.thread)):
            empty = np.flatnonzero((node == ROOT) & (process == owner))
            if not len(empty):
                break
            node[empty] = -lender.node_at(times[empty])
    borrowed = np.unique(node[node < 0])
    trie = paths.builder.trie()
    lent = [trie.path(-int(n)) for n in borrowed]
    marked = np.array([paths.builder.add((BORROWED + p[0], *p[1:])) for p in lent], np.int64)
    taken = node < 0
    node[taken] = marked[np.searchsorted(borrowed, node[taken])]


CHUNK: Final = 1_000_000
"""Operations attributed at a time: bounds the memory for five million of them."""


@dataclass(frozen=True, eq=False)
class OperationPaths:
    """Paths by operation; nothing here changes any more, so threads may share it."""

    paths: Paths
    trie: Trie
    node: Int32
    """Trie node of each row of ``Report.operations``; ``[no API call]`` and ``[no NVTX range]``
    are nodes of their own."""

    @cached_property
    def innermost_labels(self) -> list[str]:
        """Innermost frame of each node."""
        return [self.trie.labels[code] for code in self.trie.label.tolist()]

    def text(self, node: int) -> str:
        """A path as one line: ``step 4 > forward > layer 3``."""
        return " > ".join(self.trie.path(node))


def operation_paths(report: Report, progress: Progress = silent) -> OperationPaths:
    """Attributes all operations (definitions: "An operation belongs").

    Args:
        report: the report; API calls and ranges are loaded.
        progress: told how many operations were attributed.
    """
    paths = nvtx_paths(report, progress=progress)
    for root in (NO_CALL, NO_RANGE):
        paths.builder.add((root,))
    total = len(report.operations)
    node = np.empty(total, np.int32)
    for begin in range(0, total, CHUNK):
        progress("finding the ranges of operations", begin, total)
        rows = np.arange(begin, min(begin + CHUNK, total))
        node[rows] = attribute(report, paths, rows)
    progress("finding the ranges of operations", total, total)
    return OperationPaths(paths, paths.builder.trie(), node)


_NUMBER: Final = re.compile(r"\d+")
_LONGEST: Final = 18
"""Digits of a number that is compared as one."""


@dataclass(frozen=True, eq=False)
class SimilarPaths:
    """NVTX paths over merged nodes."""

    paths: Paths
    """As the report's own, with merged nodes everywhere."""
    labels: tuple[str, ...]
    """What each merged node is called; empty for the root."""
    names: tuple[str, ...]
    """What each label of the merged trie is called, wherever it stands."""
    node: Int32
    """Merged node of each node of the original trie."""


def similar_paths(paths: Paths, *, merge: bool = True) -> SimilarPaths:
    """Merges the nodes of a report's paths whose names differ in numbers only.

    Args:
        paths: the report's paths.
        merge: False keeps every name apart; the result has the same form.
    """
    trie = paths.builder.trie()
    builder = TrieBuilder()
    keys = [similar_name(text) if merge else text for text in trie.labels]
    code = np.array([builder.label(key) for key in keys], np.int64)
    node = builder.graft(trie.parent, code[trie.label]).astype(np.int32)
    # Operations without a path have roots of their own; made here, because later on the trie is
    # shared by threads and must not grow.
    for root in (NO_CALL, NO_RANGE):
        builder.add((root,))
    merged = replace(
        paths,
        builder=builder,
        threads={
            thread: replace(thread_paths, nodes=node[thread_paths.nodes])
            for thread, thread_paths in paths.threads.items()
        },
        node=np.where(paths.node >= 0, node[np.maximum(paths.node, 0)], -1),
    )
    of_merged = builder.trie()
    texts = [of_merged.labels[code] for code in of_merged.label.tolist()]
    labels = _common(trie.labels, node, trie.label, texts)
    names = _common(trie.labels, code, np.arange(len(trie.labels)), of_merged.labels)
    return SimilarPaths(merged, labels, names, node)


def _common(
    texts: Sequence[str],
    group: Integers,
    label: Integers,
    otherwise: Sequence[str],
) -> tuple[str, ...]:
    """The common name of the labels of each group; ``otherwise`` where a group has none."""
    width, size = max(len(texts), 1), len(otherwise)
    pairs = np.unique(group.astype(np.int64) * width + label)
    parts = np.split(pairs % width, np.searchsorted(pairs // width, np.arange(1, size)))
    names = [[texts[code] for code in part.tolist()] for part in parts]
    return tuple(
        similar_label(own) if own else other for own, other in zip(names, otherwise, strict=True)
    )


def similar_label(names: Sequence[str]) -> str:
    """One name for several that differ in numbers: ``layer 0..31 (32 similar)``.

    Args:
        names: distinct names that are equal once their numbers are left out.
    """
    if len(names) == 1:
        return names[0]
    if HIDDEN in (alike := similar_name(names[0])):
        return f"{alike} ({len(names)} similar)"
    plain = [strip_op_id(name) for name in names]
    if len(set(plain)) == 1:
        return f"{plain[0]} ({len(names)} similar)"
    numbers = [_NUMBER.findall(name) for name in plain]
    varying = [
        place for place, column in enumerate(zip(*numbers, strict=False)) if len(set(column)) > 1
    ]
    texts = dict.fromkeys(varying, "#")
    if len(varying) == 1 and all(len(numbers_of[varying[0]]) <= _LONGEST for numbers_of in numbers):
        values = sorted(int(numbers_of[varying[0]]) for numbers_of in numbers)
        texts[varying[0]] = f"{values[0]}..{values[-1]}"
    places = iter(range(len(numbers[0])))

    def shown(match: re.Match[str]) -> str:
        return texts.get(next(places), match.group())

    return f"{_NUMBER.sub(shown, plain[0])} ({len(names)} similar)"
