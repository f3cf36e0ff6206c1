"""Folded stacks as text: ``a;b;c 123`` per line, for flamegraph.pl, speedscope and inferno."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from nsys_tui.model.arrays import Bool
from nsys_tui.model.groups import sums
from nsys_tui.model.table import Document, Form, Unit, column, columns, number, records
from nsys_tui.model.tree import ROOT, Trie, TrieBuilder, WeightedTree, shortened

UNNAMED: Final = "[unnamed]"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def folded_frame(text: str) -> str:
    """One frame as flamegraph.pl can read it.

    The separator ``;`` becomes ``_``, control characters and line breaks become a space. A frame
    never is empty.
    """
    return _CONTROL.sub(" ", text).replace(";", "_").strip() or UNNAMED


def folded_lines(tree: WeightedTree) -> Iterator[str]:
    """One line per distinct stack, sorted; weights are whole ns or samples and add up to the total.

    Stacks that become equal by ``folded_frame`` are summed; a stack of zero weight is kept, since
    zero-length events exist.
    """
    builder = TrieBuilder()
    codes = np.array([builder.label(folded_frame(text)) for text in tree.trie.labels], np.int64)
    nodes = builder.graft(tree.trie.parent, codes[tree.trie.label])
    weight = sums(nodes, tree.self_weight, len(builder))
    ends = np.bincount(nodes, (tree.self_weight != 0) | (tree.self_count != 0), len(builder)) > 0
    for path, node in _sorted_paths(builder.trie(), ends):
        yield f"{';'.join(shortened(path)) or UNNAMED} {weight[node]}"


def _sorted_paths(trie: Trie, ends: Bool) -> Iterator[tuple[list[str], int]]:
    """The paths to some nodes in the order of their texts; each list is that of the one before.

    Frames hold no ``;``, so siblings are in the order of what their lines go on with.
    """
    path: list[str] = []
    pending = [("", ROOT, 0, True), *([("", ROOT, 0, False)] if ends[ROOT] else [])]
    while pending:
        _, node, depth, goes_on = pending.pop()
        del path[max(depth - 1, 0) :]
        if node != ROOT:
            path.append(trie.labels[trie.label[node]])
        if not goes_on:
            yield path, node
            continue
        following = []
        for child in trie.children_of(node).tolist():
            frame = trie.labels[trie.label[child]]
            following.append((f"{frame};", child, depth + 1, True))
            if ends[child]:
                following.append((frame, child, depth + 1, False))
        pending += sorted(following, reverse=True)


def _stacks(tree: WeightedTree, _: Any) -> Iterator[dict[str, Any]]:
    trie = tree.trie
    for node in np.flatnonzero(tree.self_count).tolist():
        yield {
            "frames": trie.shown_path(node),
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
