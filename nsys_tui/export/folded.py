"""Folded stacks as text: ``a;b;c 123`` per line, for flamegraph.pl, speedscope and inferno."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsys_tui.model.table import (
    Document,
    Form,
    Unit,
    column,
    columns,
    number,
    records,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_tui.model.tree import WeightedTree

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def folded_frame(text: str) -> str:
    """One frame as flamegraph.pl can read it.

    The separator ``;`` becomes ``_``, control characters and line breaks become a space. A frame
    never is empty.
    """
    return _CONTROL.sub(" ", text).replace(";", "_").strip() or "[unnamed]"


def folded_lines(tree: WeightedTree) -> Iterator[str]:
    """One line per distinct stack, sorted; weights are whole ns or samples and add up to the total.

    Stacks that become equal by ``folded_frame`` are summed; a stack of zero weight is kept, since
    zero-length events exist.
    """
    trie = tree.trie
    frames = [folded_frame(text) for text in trie.labels]
    # Parents come before children, so each path is written once and its children lengthen it.
    paths = frames[:1]
    for parent, label in zip(trie.parent[1:].tolist(), trie.label[1:].tolist(), strict=True):
        paths.append(f"{paths[parent]};{frames[label]}" if parent else frames[label])
    sums: dict[str, int] = {}
    for node in np.flatnonzero((tree.self_weight != 0) | (tree.self_count != 0)).tolist():
        path = paths[node]
        sums[path] = sums.get(path, 0) + int(tree.self_weight[node])
    for path in sorted(sums):
        yield f"{path} {sums[path]}"


def _stacks(tree: WeightedTree, _: Any) -> Iterator[dict[str, Any]]:
    trie = tree.trie
    for node in np.flatnonzero(tree.self_count).tolist():
        yield {
            "frames": trie.path(node),
            "weight": tree.self_weight[node],
            "count": tree.self_count[node],
        }


DOCUMENT: Final = Document(
    "stacks",
    (
        column("unit"),
        number("total", lambda tree, _: tree.self_weight.sum()),
        number("count", lambda tree, _: tree.self_count.sum()),
        records(
            "stacks",
            (column("frames", form=Form.LIST), *columns("weight count", Unit.COUNT)),
            _stacks,
        ),
    ),
)
"""Stacks as JSON: weights in ``unit``."""
