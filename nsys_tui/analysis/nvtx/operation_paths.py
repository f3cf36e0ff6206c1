"""The NVTX path of every GPU operation of a report, found once and shared by all who ask."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.nvtx.attribution import NO_CALL, NO_RANGE, attribute
from nsys_tui.analysis.nvtx.paths import nvtx_paths
from nsys_tui.model.progress import Progress, silent

if TYPE_CHECKING:
    from nsys_tui.analysis.nvtx.paths import Paths
    from nsys_tui.model.events import Int32
    from nsys_tui.model.report import Report
    from nsys_tui.model.tree import Trie

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
