"""Folded stacks as text: ``a;b;c 123`` per line, for flamegraph.pl, speedscope and inferno."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

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
    sums: dict[str, int] = {}
    for frames, weight in tree.folded():
        line = ";".join(folded_frame(frame) for frame in frames)
        sums[line] = sums.get(line, 0) + weight
    for line in sorted(sums):
        yield f"{line} {sums[line]}"


def as_json(tree: WeightedTree, notes: tuple[str, ...] = ()) -> dict[str, Any]:
    """The stacks as data: ``unit``, ``total``, and per stack its frames, weight and count."""
    trie = tree.trie
    stacks = [
        {
            "frames": list(trie.path(node)),
            "weight": int(tree.self_weight[node]),
            "count": int(tree.self_count[node]),
        }
        for node in range(len(trie))
        if tree.self_count[node]
    ]
    return {
        "unit": tree.unit,
        "total": int(tree.self_weight.sum()),
        "count": int(tree.self_count.sum()),
        "notes": list(notes),
        "stacks": stacks,
    }
