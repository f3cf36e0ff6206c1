from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.analysis.tree_order import tree_order
from nsys_tui.model.tree import Trie, TrieBuilder
from nsys_tui.ui.widgets.tree.rows import first_folds, rest_of, tree_lines, with_ancestors


def trie_of(parents: list[int]) -> Trie:
    builder = TrieBuilder()
    for node, parent in enumerate(parents, 1):
        assert builder.child(parent, builder.label(f"n{node}")) == node
    return builder.trie()


TREES = st.lists(st.integers(0, 10**6), max_size=25).map(
    lambda draws: trie_of([draw % (number + 1) for number, draw in enumerate(draws)])
)


def walk(
    trie: Trie,
    rank: list[int],
    expanded: list[bool],
    hidden: list[bool],
    keep: list[bool],
    node: int = 0,
) -> list[int]:
    """The same lines by recursion."""
    lines: list[int] = []
    children = [child for child in range(1, len(trie)) if trie.parent[child] == node]
    for child in sorted(children, key=lambda c: (rank[c], c)):
        if keep[child] and not hidden[child]:
            lines.append(child)
            if expanded[child]:
                lines += walk(trie, rank, expanded, hidden, keep, child)
    if any(hidden[child] and keep[child] for child in children):
        lines.append(rest_of(node))
    return lines


@settings(max_examples=100, deadline=None)
@given(TREES, st.data())
def test_lines_are_those_of_a_recursive_walk(trie: Trie, data: st.DataObject) -> None:
    size = len(trie)
    rank = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    flags = [data.draw(st.lists(st.booleans(), min_size=size, max_size=size)) for _ in range(3)]
    expanded, hidden, keep = flags
    order = tree_order(trie, np.argsort(rank, kind="stable"))
    found = tree_lines(trie, order, *(np.array(flag, bool) for flag in flags))
    assert found.tolist() == walk(trie, rank, expanded, hidden, keep)


@settings(max_examples=60, deadline=None)
@given(TREES)
def test_a_subtree_is_a_stretch_of_the_order(trie: Trie) -> None:
    order = tree_order(trie)
    assert sorted(order.position.tolist()) == list(range(len(trie)))
    for node in range(len(trie)):
        inside = order.inside(node, np.arange(len(trie)))
        below = {n for n in range(len(trie)) if node in ancestors_of(trie, n)}
        assert set(np.flatnonzero(inside).tolist()) == below
        assert len(below) == order.size[node]


def ancestors_of(trie: Trie, node: int) -> list[int]:
    found = [node]
    while (node := int(trie.parent[node])) >= 0:
        found.append(node)
    return found


def test_a_filter_keeps_what_stands_above_a_match() -> None:
    trie = trie_of([0, 1, 1, 0])
    chosen = np.array([False, False, False, True, False])
    assert np.flatnonzero(with_ancestors(trie, chosen)).tolist() == [0, 1, 3]


def test_the_heaviest_nodes_are_opened_while_their_lines_fit() -> None:
    # 1 and 2 are tops; 1 has one child, 2 has three.
    trie = trie_of([0, 0, 1, 2, 2, 2])
    weight = np.array([0, 10, 90, 1, 5, 5, 5])
    present = np.ones(7, bool)
    assert np.flatnonzero(first_folds(trie, 5, present, weight)).tolist() == [2]
    assert np.flatnonzero(first_folds(trie, 4, present, weight)).tolist() == []
    assert 1 in np.flatnonzero(first_folds(trie, 6, present, weight)).tolist()
