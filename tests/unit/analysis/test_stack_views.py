from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from stack_making import folded, from_stacks

from nsys_tui.analysis.stacks.views import (
    View,
    callees,
    callers,
    collapse_recursion,
    first_seen,
    hide_small,
    located,
    matched_weight,
    merge_similar,
    totals,
)
from nsys_tui.names import similar_name

if TYPE_CHECKING:
    from nsys_tui.model.tree import WeightedTree

Stack = tuple[tuple[str, ...], int]
STACKS = st.lists(
    st.tuples(st.lists(st.sampled_from("abc"), max_size=5).map(tuple), st.integers(1, 9)),
    max_size=10,
)


def stacks_of(tree: WeightedTree) -> dict[tuple[str, ...], int]:
    return {frames: weight for frames, weight in folded(tree) if weight}


def summed(stacks: list[Stack]) -> dict[tuple[str, ...], int]:
    total: dict[tuple[str, ...], int] = {}
    for frames, weight in stacks:
        total[frames] = total.get(frames, 0) + weight
    return total


def label_of(tree: WeightedTree, name: str) -> int:
    return tree.trie.labels.index(name) if name in tree.trie.labels else -1


@settings(max_examples=100, deadline=None)
@given(STACKS)
def test_recursion_collapses_to_one_frame(stacks: list[Stack]) -> None:
    view = collapse_recursion(from_stacks(stacks))
    expected = summed([(tuple(key for key, _ in groupby(f)), w) for f, w in stacks])
    assert stacks_of(view.tree) == expected


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(("step 1", "step 22", "fwd")), max_size=3).map(tuple),
            st.sampled_from(("gemm_8", "gemm_16")),
            st.integers(1, 9),
        ),
        max_size=10,
    )
)
def test_similar_ranges_are_one_and_operations_keep_their_names(
    stacks: list[tuple[tuple[str, ...], str, int]],
) -> None:
    view = merge_similar(from_stacks([((*ranges, leaf), w) for ranges, leaf, w in stacks]))
    merged = {"step 1": "step #", "step 22": "step #", "fwd": "fwd"}
    expected = summed([((*(merged[r] for r in ranges), leaf), w) for ranges, leaf, w in stacks])
    assert stacks_of(view.tree) == expected
    of_ranges = merge_similar(view.tree, leaves=True)
    assert stacks_of(of_ranges.tree) == summed(
        [((*path[:-1], similar_name(path[-1])), w) for path, w in expected.items()]
    )


def test_a_place_is_found_again_as_far_as_it_exists() -> None:
    apart = from_stacks([(("step 1", "fwd", "k"), 3), (("step 2", "fwd", "k"), 4)])
    merged = merge_similar(apart).tree
    paths = {
        ("step 2", "fwd"): ("step #", "fwd"),
        ("step 2", "bwd", "k"): ("step #",),
        ("other",): (),
    }
    for asked, there in paths.items():
        assert merged.trie.path(located(merged.trie, asked)) == there
    assert apart.trie.path(located(apart.trie, ("step #", "fwd"))) == ("step 1", "fwd")
    assert apart.trie.path(located(apart.trie, ("step 2", "fwd"))) == ("step 2", "fwd")


@settings(max_examples=100, deadline=None)
@given(STACKS)
def test_callees_are_what_follows_the_first_occurrence(stacks: list[Stack]) -> None:
    tree = from_stacks(stacks)
    expected = summed([(f[f.index("b") :], w) for f, w in stacks if "b" in f])
    assert stacks_of(callees(tree, label_of(tree, "b")).tree) == expected


@settings(max_examples=100, deadline=None)
@given(STACKS)
def test_callers_are_what_precedes_it_upside_down(stacks: list[Stack]) -> None:
    tree = from_stacks(stacks)
    expected = summed([(f[f.index("b") :: -1], w) for f, w in stacks if "b" in f])
    assert stacks_of(callers(tree, label_of(tree, "b")).tree) == expected


@settings(max_examples=100, deadline=None)
@given(STACKS)
def test_matched_weight_counts_each_stack_once(stacks: list[Stack]) -> None:
    tree = from_stacks(stacks)
    matches = tree.trie.label == label_of(tree, "b")
    assert matched_weight(tree, matches) == sum(w for f, w in stacks if "b" in f)


def test_small_frames_become_one_counted_frame() -> None:
    tree = from_stacks([(("a", "x"), 100), (("a", "y"), 1), (("a", "z", "deep"), 2), (("b",), 1)])
    view = hide_small(tree, 0.05)
    assert stacks_of(view.tree) == {
        ("a", "x"): 100,
        ("a", "[2 smaller]"): 3,
        ("[1 smaller]",): 1,
    }
    assert total(view) == 104


def total(view: View) -> int:
    return int(view.tree.weight[0])


def test_a_frame_is_first_seen_when_its_first_event_starts() -> None:
    tree = from_stacks([(("a", "x"), 1), (("a", "y"), 1), (("b",), 1)])
    nodes = {tree.trie.path(n): n for n in range(len(tree.trie))}
    events = np.array([nodes[("a", "y")], nodes[("b",)], nodes[("a", "x")]])
    first = first_seen(tree, events, np.array([30, 5, 10]))
    assert first[nodes[("a",)]] == 10
    assert first[nodes[("b",)]] == 5
    assert first[0] == 5


@settings(max_examples=100, deadline=None)
@given(STACKS)
def test_a_function_is_credited_once_for_every_stack_it_is_in(stacks: list[Stack]) -> None:
    tree = from_stacks(stacks)
    weight, count = totals(tree)
    for name in "abc":
        code = label_of(tree, name)
        there = [each for frames, each in stacks if name in frames]
        assert code < 0 or (weight[code], count[code]) == (sum(there), len(there))
