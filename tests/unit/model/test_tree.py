"""Trees of any depth: sums, paths and texts against loops, and no recursion of Python's."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.analysis.nvtx.table import outermost
from nsys_tui.analysis.tree_order import tree_order
from nsys_tui.export.folded import flame_graph, folded_lines
from nsys_tui.model import tree as trees
from nsys_tui.model.tree import MOST_FRAMES, ROOT, Trie, TrieBuilder, shortened, weighted

PARENTS = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 3)), max_size=40)


def grown(data: list[tuple[int, int]]) -> Trie:
    """A tree whose k-th node hangs below one of those before it."""
    builder = TrieBuilder()
    for below, label in data:
        builder.child(below % len(builder), builder.label("wxyz"[label]))
    return builder.trie()


def ancestors(trie: Trie, node: int) -> list[int]:
    found = []
    while node >= 0:
        found.append(node)
        node = int(trie.parent[node])
    return found


@settings(max_examples=60, deadline=None)
@given(PARENTS, st.data())
def test_sums_up_and_down_a_tree_equal_loops(
    data: list[tuple[int, int]], draw: st.DataObject
) -> None:
    trie = grown(data)
    own = np.array(draw.draw(st.lists(st.integers(-9, 99), min_size=len(trie), max_size=len(trie))))
    above = [ancestors(trie, node) for node in range(len(trie))]
    for node in range(len(trie)):
        inside = [other for other in range(len(trie)) if node in above[other]]
        assert trie.summed(own)[node] == sum(own[inside])
        assert trie.least(own)[node] == min(own[inside])
        assert trie.path_sums(own)[node] == sum(own[above[node]])
        assert trie.depth[node] == len(above[node]) - 1
        assert trie.below(3 % len(trie))[node] == (3 % len(trie) in above[node])
        labels = [trie.label[other] for other in above[node][1:] if other != ROOT]
        assert outermost(trie)[node] == (trie.label[node] not in labels)
    order = tree_order(trie)
    for node in range(len(trie)):
        place = int(order.position[node])
        inside = sorted(other for other in range(len(trie)) if node in above[other])
        assert sorted(order.nodes[place : place + order.size[node]].tolist()) == inside


@settings(max_examples=60, deadline=None)
@given(PARENTS)
def test_grafting_leaves_frames_out(data: list[tuple[int, int]]) -> None:
    trie, builder = grown(data), TrieBuilder()
    codes = np.array(
        [{"": 0, "w": 0, "x": -1}.get(text, builder.label(text)) for text in trie.labels]
    )
    nodes = builder.graft(trie.parent, codes[trie.label])
    copy = builder.trie()
    for node in range(len(trie)):
        path = trie.path(node)
        if "x" in path:
            assert nodes[node] == -1
        else:
            assert copy.path(int(nodes[node])) == tuple(frame for frame in path if frame != "w")


def chain(length: int) -> tuple[TrieBuilder, list[int]]:
    builder = TrieBuilder()
    nodes = [ROOT]
    for number in range(length):
        nodes.append(builder.child(nodes[-1], builder.label(f"f{number}")))
    return builder, nodes[1:]


def test_a_path_of_forty_thousand_frames_is_cut_in_the_middle_and_counted() -> None:
    builder, nodes = chain(40_000)
    tree = weighted(builder, np.array(nodes[-2:]), np.array([5, 7]), "ns")
    assert tree.weight[0] == 12
    lines = list(folded_lines(tree))
    assert [line.rsplit(" ", 1)[1] for line in lines] == ["5", "7"]
    frames = lines[1].rsplit(" ", 1)[0].split(";")
    half = MOST_FRAMES // 2
    assert len(frames) == MOST_FRAMES
    assert frames[:half] == [f"f{number}" for number in range(half)]
    assert frames[half] == f"[... {40_000 - MOST_FRAMES + 1} frames]"
    assert frames[half + 1 :] == [f"f{number}" for number in range(40_001 - half, 40_000)]
    graph = flame_graph(tree, "deep")
    assert graph.count('class="frame"') == MOST_FRAMES + 1
    assert f"[... {40_000 - MOST_FRAMES} frames]" in graph


def test_paths_that_fit_are_whole() -> None:
    frames = tuple(f"f{number}" for number in range(MOST_FRAMES))
    assert shortened(frames) == frames
    assert len(shortened((*frames, "one more"))) == MOST_FRAMES


@given(PARENTS, st.integers(2, 4))
def test_a_cut_path_is_that_of_all_its_frames(data: list[tuple[int, int]], most: int) -> None:
    with patch.multiple(trees, MOST_FRAMES=2 * most, _HALF=most):
        trie = grown(data)
        for node in range(len(trie)):
            assert trie.shown_path(node) == shortened(trie.path(node))
