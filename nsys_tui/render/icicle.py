"""Icicles: a tree of frames as rows of blocks, a child below its parent, as wide as its weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nsys_tui.model.arrays import Bool, Indices, Int64, Integers
from nsys_tui.model.tree import Trie
from nsys_tui.names import fit, visible
from nsys_tui.render.cells import MUTED, Cells, Emphasis, Ink, Row, slot_ink, split_cells, style
from nsys_tui.render.glyphs import Glyphs

LABELLED = 3
CHANGED = {int(Ink.BETTER): "<", int(Ink.WORSE): ">"}
"""Fills of frames that take less or more time, where there are no grounds."""
RUN = 4


@dataclass(frozen=True, eq=False)
class Icicle:
    """Where each frame lies, in units of weight from the left edge of the whole tree."""

    trie: Trie
    weight: Int64
    """Total of each node, int64 [n]; children never exceed their parent."""
    left: Int64
    """Left edge of each node, int64 [n]."""

    @property
    def right(self) -> Int64:
        """Right edge of each node."""
        return self.left + self.weight

    def below(self, root: int, depth: int) -> Indices:
        """Nodes ``depth`` levels under ``root`` in its subtree, from left to right."""
        level = int(self.trie.depth[root]) + depth
        if level >= len(self.trie.levels):
            return np.empty(0, np.intp)
        nodes = self.trie.levels[level]
        low, high = self.left[root], self.left[root] + self.weight[root]
        inside = (self.left[nodes] >= low) & (self.right[nodes] <= high) & (self.weight[nodes] > 0)
        nodes = nodes[inside]
        return np.asarray(nodes[np.argsort(self.left[nodes], kind="stable")])

    def seen(self, root: int, level: int) -> Indices:
        """Nodes of a level of the tree while ``root`` fills the width: a caller of it, or below."""
        above = int(self.trie.depth[root]) - level
        if above <= 0:
            return self.below(root, -above)
        for _ in range(above):
            root = int(self.trie.parent[root])
        return np.array([root])

    def node_at(self, root: int, width: int, column: int, level: int) -> int | None:
        """The frame drawn in a cell of a level, for the pointer; None where there is none."""
        nodes = self.seen(root, level)
        first, last = self.cells(nodes, root, width)
        hit = np.flatnonzero((first <= column) & (column < last))
        return int(nodes[hit[0]]) if len(hit) else None

    def cells(self, nodes: Indices, root: int, width: int) -> tuple[Int64, Int64]:
        """First cell of each node and the one after its last, edges rounded to the nearest."""
        edges = np.stack((self.left[nodes], self.right[nodes])) - self.left[root]
        whole, edges = _fitting(max(int(self.weight[root]), 1), edges, 2 * width)
        first, last = np.clip((2 * width * edges + whole) // (2 * whole), 0, width)
        return first, last


def _fitting(whole: int, values: Int64, factor: int) -> tuple[int, Int64]:
    """A whole and parts of it, halved until ``factor`` times each of them is an int64."""
    spare = max(0, (whole * factor).bit_length() - 62)
    return max(whole >> spare, 1), values >> spare


def lay_out(trie: Trie, weight: Int64, order: Int64 | None = None) -> Icicle:
    """Places the children of every node side by side.

    Args:
        trie: the tree.
        weight: total of each node, int64 [n].
        order: key by which siblings are sorted, such as the time they first occur; by default the
            heaviest comes first (left-heavy).
    """
    left = np.zeros(len(trie), np.int64)
    for nodes in trie.levels[1:]:
        parent = trie.parent[nodes]
        key = -weight[nodes] if order is None else order[nodes]
        ranked = nodes[np.lexsort((key, parent))]
        parent = trie.parent[ranked]
        before = np.cumsum(weight[ranked]) - weight[ranked]
        heads = np.flatnonzero(np.append(True, parent[1:] != parent[:-1]))
        sizes = np.diff(np.append(heads, len(ranked)))
        left[ranked] = left[parent] + before - np.repeat(before[heads], sizes)
    return Icicle(trie, weight, left)


def draw_icicle(
    icicle: Icicle,
    width: int,
    height: int,
    glyphs: Glyphs,
    label: Callable[[int], str],
    *,
    root: int = 0,
    skip: int = 0,
    selected: int | None = None,
    matches: Bool | None = None,
    inks: Integers | None = None,
) -> Cells:
    """Draws the subtree of ``root``, which fills a row, below its callers, which are as wide.

    Args:
        icicle: the layout.
        width: cells of a row.
        height: rows.
        glyphs: blocks or brackets.
        label: text of a node; made visible and fitted here.
        root: the frame zoomed to.
        skip: levels of the tree that are scrolled away.
        selected: node shown in bold reverse.
        matches: mask of the nodes that a search found, underlined.
        inks: even ink of each node; by default one of the slots by the frame's name, so that the
            same name has the same colour wherever it occurs.
    """
    rows = []
    for line in range(height):
        nodes = icicle.seen(root, skip + line)
        if not len(nodes):
            break
        painter = _Line(icicle, nodes, root, width, glyphs)
        painter.paint(inks)
        painter.write(label)
        painter.count(label)
        painter.emphasise(selected, matches)
        rows.append(painter.row)
    return rows + [Row.blank(width) for _ in range(height - len(rows))]


class _Line:
    """One level while it is drawn."""

    def __init__(
        self, icicle: Icicle, nodes: Indices, root: int, width: int, glyphs: Glyphs
    ) -> None:
        self.icicle, self.glyphs, self.row = icicle, glyphs, Row.blank(width)
        first, last = icicle.cells(nodes, root, width)
        whole, weight = _fitting(max(int(icicle.weight[root]), 1), icicle.weight[nodes], 2 * width)
        wide = (last > first) & (weight * width >= whole)
        self.nodes, self.first, self.last = nodes[wide], first[wide], last[wide]
        self.narrow = nodes[~wide]
        begin = icicle.left[self.narrow] - icicle.left[root]
        whole, begin = _fitting(max(int(icicle.weight[root]), 1), begin, 2 * width)
        self.narrow_cells = np.clip(begin * width // whole, 0, width - 1)
        self.taken = np.zeros(width, bool)
        self.calls_root = bool(icicle.trie.depth[nodes[0]] < icicle.trie.depth[root])

    def paint(self, inks: Integers | None) -> None:
        """Grounds or fills of the frames that have cells."""
        for node, first, last in self._frames():
            self.taken[first:last] = True
            if self.calls_root:
                self.row.styles[first:last] = MUTED
                continue
            name = int(self.icicle.trie.label[node])
            ink = slot_ink(name) if inks is None else int(inks[node])
            if self.glyphs.solid:
                self.row.styles[first:last] = style(Ink.CONTRAST, ink)
                continue
            self.row.styles[first:last] = style(ink)
            self.row.chars[first:last] = [CHANGED.get(ink, "-")] * (last - first)

    def _frames(self) -> list[tuple[int, int, int]]:
        columns = (self.nodes.tolist(), self.first.tolist(), self.last.tolist())
        return list(zip(*columns, strict=True))

    def write(self, label: Callable[[int], str]) -> None:
        """Labels, and what parts a frame from the one at its left."""
        chars = self.row.chars
        for node, first, last in self._frames():
            if first and (not self.glyphs.solid or self.taken[first - 1]):
                chars[first] = "|" if not self.glyphs.solid else self.glyphs.separator
                first += 1
            if not self.glyphs.solid and last - first >= LABELLED - 1:
                last -= 1
                chars[last] = "|"
            cells = split_cells(fit(visible(label(node), self.glyphs.ascii_only), last - first))
            if cells and len(cells) < last - first:
                cells.append(" ")
            chars[first : first + len(cells)] = cells

    def count(self, label: Callable[[int], str]) -> None:
        """Marks frames without a cell as ``~212~``, with the name of the heaviest."""
        free = ~self.taken[self.narrow_cells]
        spots = np.bincount(self.narrow_cells[free], minlength=self.row.width)
        filled = np.zeros(self.row.width + 2, np.int8)
        filled[1:-1] = spots > 0
        for begin, end in np.flatnonzero(np.diff(filled)).reshape(-1, 2).tolist():
            self.row.put(begin, self.glyphs.merged * (end - begin), MUTED)
            text = f"{self.glyphs.merged}{int(spots[begin:end].sum())}{self.glyphs.merged}"
            if end - begin < max(RUN, len(text)):
                continue
            inside = self.narrow[(self.narrow_cells >= begin) & (self.narrow_cells < end)]
            name = label(int(inside[self.icicle.weight[inside].argmax()]))
            text += fit(visible(name, self.glyphs.ascii_only), end - begin - len(text))
            self.row.put(begin, text)

    def emphasise(self, selected: int | None, matches: Bool | None) -> None:
        """The selected frame and the ones that a search found."""
        for node, first, last in self._frames():
            if node == selected:
                self.row.emphasise(first, last, Emphasis.REVERSE | Emphasis.BOLD)
            if matches is not None and matches[node]:
                self.row.emphasise(first, last, Emphasis.UNDERLINE)
