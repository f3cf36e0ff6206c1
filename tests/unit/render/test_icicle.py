from __future__ import annotations

import numpy as np
from stack_making import from_stacks

from nsys_tui.render.cells import Emphasis, as_text, parts
from nsys_tui.render.glyphs import ASCII, UNICODE
from nsys_tui.render.icicle import Icicle, draw_icicle, lay_out

STACKS = {
    "step;forward;mlp": 24,
    "step;forward;attn": 16,
    "step;backward": 20,
    "step": 4,
    "data": 8,
}
TREE = from_stacks([(path.split(";"), weight) for path, weight in STACKS.items()])


def label(node: int) -> str:
    return TREE.trie.labels[TREE.trie.label[node]] or "all"


def node_of(name: str) -> int:
    return next(node for node in range(len(TREE.trie)) if label(node) == name)


def test_left_heavy_in_ascii() -> None:
    drawn = draw_icicle(lay_out(TREE.trie, TREE.weight), 36, 5, ASCII, label)
    assert as_text(drawn).splitlines() == [
        "all -------------------------------|",
        "step --------------------------||--|",
        "forward -----------||backward|      ",
        "mlp -------||attn -|                ",
        " " * 36,
    ]


def test_unicode_frames_are_grounds_with_separators() -> None:
    drawn = draw_icicle(lay_out(TREE.trie, TREE.weight), 36, 4, UNICODE, label)
    assert drawn[3].text() == "mlp         ▏attn                   "
    grounds = [parts(int(code)).ground for code in drawn[3].styles]
    assert grounds[0] == grounds[11] != grounds[12]
    assert grounds[20:] == [0] * 16


def test_time_order_and_zoom() -> None:
    first_seen = np.zeros(len(TREE.trie), np.int64)
    for time, name in enumerate(("data", "step", "backward", "forward", "attn", "mlp")):
        first_seen[node_of(name)] = time
    icicle = lay_out(TREE.trie, TREE.weight, first_seen)
    rows = draw_icicle(icicle, 32, 3, ASCII, label, root=node_of("step"), skip=1)
    assert as_text(rows).splitlines() == [
        "step --------------------------|",
        "backward ||forward ----------|  ",
        "          |attn -||mlp ------|  ",
    ]


def test_callers_of_the_frame_that_fills_the_width_stay_above_it() -> None:
    icicle = lay_out(TREE.trie, TREE.weight)
    rows = draw_icicle(icicle, 32, 4, ASCII, label, root=node_of("forward"))
    assert as_text(rows).splitlines() == [
        "all                            |",
        "step                           |",
        "forward -----------------------|",
        "mlp --------------||attn ------|",
    ]
    assert icicle.node_at(node_of("forward"), 32, 31, 1) == node_of("step")


def test_children_lie_inside_their_parents_and_never_overlap() -> None:
    icicle = lay_out(TREE.trie, TREE.weight)
    for node in range(1, len(TREE.trie)):
        parent = int(TREE.trie.parent[node])
        assert icicle.left[node] >= icicle.left[parent]
        assert icicle.right[node] <= icicle.right[parent]
    for level in TREE.trie.levels:
        nodes = level[np.argsort(icicle.left[level])]
        assert (icicle.left[nodes][1:] >= icicle.right[nodes][:-1]).all()


def test_frames_too_narrow_are_counted_on_the_spot() -> None:
    stacks = [(["main", f"f{number}"], 1) for number in range(300)] + [(["main", "big"], 300)]
    tree = from_stacks(stacks)
    drawn = draw_icicle(
        lay_out(tree.trie, tree.weight),
        40,
        3,
        ASCII,
        lambda node: tree.trie.labels[tree.trie.label[node]] or "all",
    )
    assert drawn[2].text() == "big ---------------|~300~f0~~~~~~~~~~~~~"


def test_the_pointer_finds_what_is_drawn() -> None:
    icicle: Icicle = lay_out(TREE.trie, TREE.weight)
    assert icicle.node_at(0, 36, 3, 2) == node_of("forward")
    assert icicle.node_at(0, 36, 25, 2) == node_of("backward")
    assert icicle.node_at(0, 36, 34, 2) is None
    assert icicle.node_at(0, 36, 3, 9) is None


def test_selection_and_matches() -> None:
    matches = np.zeros(len(TREE.trie), bool)
    matches[node_of("mlp")] = True
    drawn = draw_icicle(
        lay_out(TREE.trie, TREE.weight),
        36,
        4,
        ASCII,
        label,
        selected=node_of("backward"),
        matches=matches,
    )
    flags = [[parts(int(code)).emphasis for code in row.styles] for row in drawn]
    assert flags[2][25] == Emphasis.REVERSE | Emphasis.BOLD
    assert flags[3][2] == Emphasis.UNDERLINE
    assert not flags[1][2]


def test_levels_scroll_away() -> None:
    icicle = lay_out(TREE.trie, TREE.weight)
    assert draw_icicle(icicle, 36, 2, ASCII, label, skip=2)[0].text().startswith("forward")


def test_weights_at_the_far_end_of_int64_are_drawn() -> None:
    far = 2**62
    stacks = [(["a"], far // 2), (["b"], far // 4), *([[f"c{n}"], 1] for n in range(20))]
    tree = from_stacks(stacks)  # type: ignore[arg-type]
    names = tree.trie.labels

    def text(node: int) -> str:
        return names[tree.trie.label[node]] or "all"

    icicle = lay_out(tree.trie, tree.weight)
    rows = draw_icicle(icicle, 60, 3, ASCII, text)
    assert as_text(rows).splitlines()[1].startswith("a ----------------------")
    assert icicle.node_at(0, 60, 0, 1) == next(n for n in range(len(tree.trie)) if text(n) == "a")
    assert icicle.node_at(0, 60, 50, 1) == next(n for n in range(len(tree.trie)) if text(n) == "b")
