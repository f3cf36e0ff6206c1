"""Folded stacks, of one side or two, as text for flamegraph.pl and speedscope, or as a flame graph.

The graph is an SVG that stands alone: zoom by click, search by regular expression, no network.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from html import escape
from importlib.resources import files
from typing import Any, Final, TypeAlias

import numpy as np

from nsys_tui.analysis.compare.stacks import DifferentialStacks
from nsys_tui.model.arrays import Bool, Int64
from nsys_tui.model.groups import sums
from nsys_tui.model.table import Document, Form, Unit, column, columns, number, records
from nsys_tui.model.tree import MOST_FRAMES, ROOT, Trie, TrieBuilder, WeightedTree, shortened
from nsys_tui.names import cell_len, cut, visible
from nsys_tui.units import format_count, format_share, plural

LESS: Final = 215
"""Hue of frames that take less time: blue, since green and red look alike to too many."""
MORE: Final = 32
"""Hue of frames that take more time: orange."""


def differential_lines(stacks: DifferentialStacks) -> Iterator[str]:
    """``a;b;c 120 90`` per stack, A's weight before B's, sorted; stacks made equal are summed."""
    weights: dict[str, tuple[int, int]] = {}
    for frames, a, b in stacks.folded():
        line = ";".join(folded_frame(frame) for frame in frames)
        before = weights.get(line, (0, 0))
        weights[line] = before[0] + a, before[1] + b
    for line in sorted(weights):
        yield f"{line} {weights[line][0]} {weights[line][1]}"


def differential_graph(stacks: DifferentialStacks, title: str) -> str:
    """A flame graph as wide as B, with frames that take less time blue, with more orange."""

    def paint(node: int) -> tuple[str, str]:
        a = stacks.a.amount(int(stacks.a.weight[node]))
        change = float(stacks.change[node])
        hue = LESS if change < 0 else MORE
        colour = f"hsl({hue},90%,{95 - 38 * abs(change):.0f}%)"
        return colour, f"; A {a}, {stacks.difference(node)}"

    return flame_graph(stacks.b, title, _notes(stacks), paint)


def _notes(stacks: DifferentialStacks) -> tuple[str, ...]:
    notes = ["Widths are B's. Blue: less than in A; orange: more; pale: the same."]
    if stacks.by_step:
        notes.append(f"Weights are {'' if stacks.is_sampled else 'means '}{stacks.steps}.")
    count, weight = stacks.gone
    if count:
        lost = f"{format_count(count)} stacks of A ({stacks.a.amount(weight)}) are gone in B"
        notes.append(f"{lost} and have no width here: exchange A and B to see them.")
    return tuple(notes)


UNNAMED: Final = "[unnamed]"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def folded_frame(text: str) -> str:
    """One frame as flamegraph.pl can read it.

    The separator ``;`` becomes ``_``, control characters and line breaks become a space, what turns
    the direction of writing or is not seen is escaped. A frame never is empty.
    """
    return visible(_CONTROL.sub(" ", text)).replace(";", "_").strip() or UNNAMED


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


Paint: TypeAlias = Callable[[int], tuple[str, str]]
"""CSS colour of a node (trusted), and what its tooltip says besides."""

WIDTH: Final = 1200
ROW: Final = 17
_TOP: Final = 56
_MARGIN: Final = 10
SMALLEST: Final = 0.1
"""Frames narrower than this many pixels are left out and counted."""
_CHAR: Final = 6.6
_NOT_XML: Final = re.compile(r"[\ufffe\uffff]")

_OWN: Final = files(__package__)
_STYLE: Final = _OWN.joinpath("flame.css").read_text("utf-8")
SCRIPT: Final = _OWN.joinpath("flame.js").read_text("utf-8")
"""Zooms and searches every flame graph of a page."""


def flame_graph(
    tree: WeightedTree,
    title: str,
    notes: tuple[str, ...] = (),
    paint: Paint | None = None,
    order: Int64 | None = None,
) -> str:
    """Draws folded stacks as an SVG document, the root at the top.

    Args:
        tree: the stacks.
        title: heading; escaped like everything else.
        notes: sentences below the heading.
        paint: colour of each node and a remark for its tooltip; by default the colour depends on
            the frame's name.
        order: key by which siblings stand side by side; by default the widest comes first.
    """
    body = flame_svg(tree, title, notes, paint, order)
    opening, _, rest = body.partition("\n")
    return "\n".join(
        (
            '<?xml version="1.0" encoding="UTF-8"?>',
            opening.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1),
            f"<style>{_STYLE}</style>",
            rest.removesuffix("</svg>\n") + f"<script><![CDATA[{SCRIPT}]]></script>",
            "</svg>\n",
        )
    )


def flame_svg(
    tree: WeightedTree,
    title: str,
    notes: tuple[str, ...] = (),
    paint: Paint | None = None,
    order: Int64 | None = None,
    smallest: float = SMALLEST,
    shown: Callable[[str], str] = str,
) -> str:
    """The same as an element of a page that brings ``SCRIPT`` and a style of its own.

    Args:
        tree: the stacks.
        title: heading.
        notes: sentences below.
        paint: colour of each node and a remark.
        order: key by which siblings stand side by side.
        smallest: pixels of the narrowest frame that is drawn.
        shown: what stands for a frame's name.
    """
    layout = _Layout(tree, paint, order, smallest, shown)
    rows = layout.depth + len(notes) + 2 + bool(layout.deeper)
    height = _TOP + ROW * rows + 2 * _MARGIN
    left_out = []
    if layout.hidden:
        hidden = plural(layout.hidden, "frame")
        left_out.append(f"not drawn: {hidden} narrower than {smallest:g} px")
    if layout.deeper:
        left_out.append(f"[... {layout.deeper} frames] deeper than {MOST_FRAMES} are not drawn")
    notes = (*left_out, *notes)
    below = _TOP + ROW * (layout.depth + 1) + ROW
    button = 'tabindex="0" role="button"'
    lines = [
        f'<svg class="flame" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" data-wide="{WIDTH - 2 * _MARGIN}" data-left="{_MARGIN}">',
        f'<rect class="ground" width="{WIDTH}" height="{height}"/>',
        f'<text class="title" x="{_MARGIN}" y="22">{_xml(title)}</text>',
        f'<text class="button reset" {button} x="{_MARGIN}" y="42">whole</text>',
        f'<text class="button search" {button} x="{_MARGIN + 50}" y="42">search</text>',
        f'<text class="hits" x="{_MARGIN + 110}" y="42"></text>',
        f'<text class="info" x="{_MARGIN + 330}" y="42"></text>',
        *layout.frames,
        *(
            f'<text x="{_MARGIN}" y="{below + ROW * place}">{_xml(note)}</text>'
            for place, note in enumerate(notes)
        ),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


class _Layout:
    """Frames from the root down, each below its parent."""

    def __init__(
        self,
        tree: WeightedTree,
        paint: Paint | None,
        order: Int64 | None,
        smallest: float,
        shown: Callable[[str], str],
    ) -> None:
        self._paint, self._smallest, self._shown = paint, smallest, shown
        self.frames: list[str] = []
        self.hidden = 0
        self.deeper = int(np.count_nonzero(tree.trie.depth > MOST_FRAMES))
        self.depth = 0
        self._tree = tree
        self._weight = tree.weight
        self._key = -tree.weight if order is None else order
        self._total = int(self._weight[0])
        if self._total > 0:
            self._draw()

    def _draw(self) -> None:
        smallest = self._total * self._smallest / WIDTH
        pending = [(0, 0, 0)]
        while pending:
            node, before, depth = pending.pop()
            self.frames.append(self._frame(node, before, depth))
            self.depth = max(self.depth, depth)
            children = self._tree.trie.children_of(node)
            children = children[np.argsort(self._key[children], kind="stable")]
            for child in children.tolist():
                if depth >= MOST_FRAMES:
                    break
                if self._weight[child] < smallest:
                    self.hidden += 1
                else:
                    pending.append((child, before, depth + 1))
                before += int(self._weight[child])

    def _frame(self, node: int, before: int, depth: int) -> str:
        trie, weight = self._tree.trie, int(self._weight[node])
        name = self._shown(trie.labels[trie.label[node]]) if node else "all"
        part, offset = weight / self._total, before / self._total
        width = part * (WIDTH - 2 * _MARGIN)
        x, y = _MARGIN + offset * (WIDTH - 2 * _MARGIN), _TOP + depth * ROW
        room = int((width - 4) / _CHAR)
        label = "" if room < 3 else name if cell_len(name) <= room else cut(name, room - 1) + "…"
        amount = self._tree.amount(weight)
        count = format_count(int(self._tree.count[node]))
        colour, remark = self._paint(node) if self._paint else (_colour(name), "")
        tip = f"{name}: {amount}, {format_share(part)}, {count} times{remark}"
        return (
            f'<g class="frame" tabindex="{0 if node == 0 else -1}" role="button" '
            f'data-name="{_xml(name)}" data-x="{offset:.9f}" '
            f'data-w="{part:.9f}" data-depth="{depth}"><title>{_xml(tip)}</title>'
            f'<rect x="{x:.2f}" y="{y}" width="{max(width, 0.1):.2f}" height="{ROW - 1}" '
            f'fill="{colour}" rx="1"/>'
            f'<text x="{x + 3:.2f}" y="{y + 12}">{_xml(label)}</text></g>'
        )


def _xml(text: str) -> str:
    return escape(_NOT_XML.sub("�", visible(text)), quote=True)


def _colour(name: str) -> str:
    """A warm colour that depends on the name alone, so that two graphs can be laid side by side."""
    seed = zlib.crc32(name.encode("utf-8", "replace"))
    return f"hsl({10 + seed % 45},{60 + seed // 64 % 30}%,{66 + seed // 4096 % 14}%)"
