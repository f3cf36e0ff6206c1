"""The NVTX path of every GPU operation of a report, found once and shared by all who ask.

Definitions: "An operation belongs".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.nvtx.paths import Paths, ThreadPaths, nvtx_paths
from nsys_tui.model.groups import rows_of_codes
from nsys_tui.model.progress import Progress, silent
from nsys_tui.model.target import PROCESS_MASK
from nsys_tui.model.tree import ROOT, Trie

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nsys_tui.model.events import Int32, Int64
    from nsys_tui.model.report import Report

NO_CALL: Final = "[no API call]"
NO_RANGE: Final = "[no NVTX range]"
BORROWED: Final = "~"
"""Before the outermost frame of a path that another thread had open."""


def attribute(
    report: Report, paths: Paths, rows: NDArray[np.intp], *, across_threads: bool = False
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
    found = np.zeros(len(called), np.int64)
    for code, places in enumerate(rows_of_codes(thread, len(api.threads))):
        if len(places):
            found[places] = paths.node_at(int(api.threads[code]), times[places])
    if across_threads:
        process = api.thread_process[thread]
        _borrow(found, process, times, paths)
    found[found == ROOT] = paths.builder.add((NO_RANGE,))
    nodes[called] = found
    return nodes


def _borrow(found: Int64, process: Int64, times: Int64, paths: Paths) -> None:
    """Fills empty paths with those of other threads of the process, the busiest thread first."""
    for owner in np.unique(process[found == ROOT]):
        threads = [t for t in paths.threads.values() if t.thread & PROCESS_MASK == owner]
        for lender in sorted(threads, key=_most_range_time_first):
            empty = np.flatnonzero((found == ROOT) & (process == owner))
            if not len(empty):
                break
            found[empty] = -lender.node_at(times[empty])
    borrowed = np.unique(found[found < 0])
    trie = paths.builder.trie()
    marked = np.array([paths.builder.add(_marked(trie.path(-int(n)))) for n in borrowed], np.int64)
    taken = found < 0
    found[taken] = marked[np.searchsorted(borrowed, found[taken])]


def _most_range_time_first(thread: ThreadPaths) -> tuple[int, int]:
    return -thread.range_time, thread.thread


def _marked(path: tuple[str, ...]) -> tuple[str, ...]:
    return (BORROWED + path[0], *path[1:])


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
