"""Similar ranges as one: ``layer 0`` … ``layer 31`` are one node of the tree, wherever they stand.

Names that differ in their numbers only are merged level by level, so that what lies below them is
merged too: the forward pass of all steps is one line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.analysis.nvtx.operation_paths import NO_CALL, NO_RANGE
from nsys_tui.model.tree import TrieBuilder
from nsys_tui.names import similar_name, strip_op_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from nsys_tui.analysis.nvtx.paths import Paths
    from nsys_tui.model.events import Int32

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
            thread: replace(own, nodes=node[own.nodes]) for thread, own in paths.threads.items()
        },
        node=np.where(paths.node >= 0, node[np.maximum(paths.node, 0)], -1),
    )
    own = builder.trie()
    labels = _common(trie.labels, node, trie.label, [own.labels[c] for c in own.label.tolist()])
    names = _common(trie.labels, code, np.arange(len(trie.labels)), own.labels)
    return SimilarPaths(merged, labels, names, node)


def _common(
    texts: Sequence[str],
    group: NDArray[np.integer],
    label: NDArray[np.integer],
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
    plain = [strip_op_id(name) for name in names]
    if len(set(plain)) == 1:
        return f"{plain[0]} ({len(names)} similar)"
    numbers = [_NUMBER.findall(name) for name in plain]
    varying = [
        place for place, column in enumerate(zip(*numbers, strict=False)) if len(set(column)) > 1
    ]
    texts = dict.fromkeys(varying, "#")
    if len(varying) == 1 and all(len(own[varying[0]]) <= _LONGEST for own in numbers):
        values = sorted(int(own[varying[0]]) for own in numbers)
        texts[varying[0]] = f"{values[0]}..{values[-1]}"
    places = iter(range(len(numbers[0])))

    def shown(match: re.Match[str]) -> str:
        return texts.get(next(places), match.group())

    return f"{_NUMBER.sub(shown, plain[0])} ({len(names)} similar)"
