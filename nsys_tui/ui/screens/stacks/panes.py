"""What the stacks screen shows: folding by the options, facts of a frame, its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nsys_tui.analysis.stacks import views as stack_views
from nsys_tui.analysis.stacks.folding import TITLES, Stacks, StackSource, gpu_stacks
from nsys_tui.analysis.stacks.frame_rules import FrameRules
from nsys_tui.analysis.stacks.sources import NEEDED, host_stacks, sources
from nsys_tui.export.folded import DOCUMENT, flame_graph, folded_lines
from nsys_tui.model.groups import sums
from nsys_tui.model.kinds import Kind
from nsys_tui.model.table import Unit
from nsys_tui.model.tree import ROOT, WeightedTree
from nsys_tui.names import cell_len, cut, similar_name
from nsys_tui.render.cells import MUTED
from nsys_tui.render.icicle import Icicle, lay_out
from nsys_tui.text.documents import document_text
from nsys_tui.ui.pane_text import wrapped
from nsys_tui.ui.saving import Writer, text_writer
from nsys_tui.ui.stack_options import Options, Order
from nsys_tui.ui.widgets.table.columns import TableColumn, counts, numbers, texts
from nsys_tui.units import format_count, format_duration, format_percent, format_share, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_tui.analysis.stacks.views import View
    from nsys_tui.analysis.window import Scope
    from nsys_tui.model.arrays import Indices, Int64
    from nsys_tui.model.events import EventSet
    from nsys_tui.model.progress import Progress
    from nsys_tui.model.report import Report
    from nsys_tui.ui.widgets.lines import Line
    from nsys_tui.ui.widgets.tree.tree import VirtualTree

SMALL_SHARE = 0.005
MANY_NAMES = 100
"""From so many different names on it is worth merging similar ones."""
LOOKED_AT = 5000
"""Names of ranges that tell whether they are."""


@dataclass(frozen=True, eq=False)
class Viewed:
    """Folded stacks with names merged, recursion collapsed and small frames hidden, or not."""

    views: tuple[View, ...]
    """From the folded tree to this one."""
    tree: WeightedTree
    codes: Indices
    """Label of each function that took something, the heaviest first."""
    functions: tuple[TableColumn, ...]
    """Their table."""

    def row_of(self, frame: str) -> int | None:
        """Row of a function, also by the name that merged frames share; None where it is not."""
        names = [self.tree.trie.labels[code] for code in self.codes]
        return next((names.index(n) for n in (frame, similar_name(frame)) if n in names), None)

    def frame(self, row: int) -> str:
        """The function of a row."""
        return self.tree.trie.labels[int(self.codes[row])]

    def heaviest(self, row: int) -> tuple[str, ...]:
        """Path to the heaviest place of the function of a row."""
        places = np.flatnonzero(self.tree.trie.label == self.codes[row])
        return self.tree.trie.path(int(places[np.argmax(self.tree.weight[places])]))


@dataclass(frozen=True, eq=False)
class Shown:
    """What the screen shows now."""

    stacks: Stacks
    viewed: Viewed
    views: tuple[View, ...]
    """From the folded tree to the one on the screen."""
    tree: WeightedTree
    order: Any
    callers: WeightedTree | None = None
    hint: str = ""
    """What would make the picture clearer."""
    laid: Icicle | None = None
    """The tree laid out."""

    def folded_nodes(self, node: int) -> Indices:
        """Nodes of the folded tree that a node on the screen stands for."""
        nodes = np.array([node])
        for view in reversed(self.views):
            nodes = np.flatnonzero(np.isin(view.of_node, nodes))
        return nodes

    def frame(self, node: int) -> str:
        """The frame of a node; of the root that with most of its own."""
        codes = self.tree.trie.label
        code = codes[node] if node else np.bincount(codes, weights=self.tree.self_weight).argmax()
        return self.tree.trie.labels[int(code)]


def fold(report: Report, options: Options, scope: Scope, names: str, progress: Progress) -> Stacks:
    """Folds the chosen source over a part of the report."""
    if options.source is StackSource.GPU:
        return gpu_stacks(
            report, scope, names=names, across_threads=options.across, progress=progress
        )
    rules = FrameRules(addresses=options.addresses)
    return host_stacks(report, options.source, scope, rules, options.thread)


def busiest_threads(report: Report, source: StackSource) -> list[int]:
    """globalTids of a source in ``OF_THREADS``, most samples or switches first."""
    samples = report.samples
    if source is StackSource.CPU:
        tids = samples.threads[samples.thread]
    else:
        tids = report.numbers(Kind.SCHEDULING, "global_tid")[1]
    threads, counts = np.unique(tids, return_counts=True)
    busiest: list[int] = threads[np.argsort(-counts, kind="stable")].tolist()
    return busiest


def merges_at_first(report: Report) -> bool:
    """Whether most names of ranges differ in numbers only, as PyTorch's (op_id, seq) do."""
    names = report.ranges.names[:LOOKED_AT]
    return len(names) >= MANY_NAMES and 4 * len(set(map(similar_name, names))) <= len(names)


def event_set(report: Report, source: StackSource) -> EventSet:
    """The events that a source folds."""
    if source is StackSource.GPU:
        return report.operations
    if source is StackSource.CPU:
        return report.samples
    if source is StackSource.NVTX:
        return report.ranges
    return report.api if source is StackSource.CUDA else report.osrt


def viewed(stacks: Stacks, options: Options) -> Viewed:
    """Applies the options that make other frames of those folded."""
    views: list[View] = []
    tree, leaves = stacks.tree, options.source is StackSource.NVTX
    for wanted, change in (
        (options.merges, lambda t: stack_views.merge_similar(t, leaves=leaves)),
        (options.recursion, stack_views.collapse_recursion),
        (options.small, lambda t: stack_views.hide_small(t, SMALL_SHARE)),
    ):
        if wanted:
            views.append(change(tree))
            tree = views[-1].tree
    total, count = stack_views.totals(tree)
    codes = np.argsort(-total, kind="stable")[: np.count_nonzero(total)]
    self_weight = sums(tree.trie.label, tree.self_weight, len(total))
    figures = _figures(tree, total[codes], self_weight[codes], count[codes], extra=True)
    name = texts("function", 12, codes, tree.trie.labels, grow=True, names=True)
    return Viewed(tuple(views), tree, codes, (*figures, name))


def arranged(report: Report, stacks: Stacks, views: Viewed, options: Options) -> Shown:
    """Lays out the stacks as they are looked at."""
    tree, order = views.tree, None
    if options.order is Order.TIME:
        events = event_set(report, options.source)
        node = stacks.node
        for view in views.views:
            node = view.of_node[node]
        order = stack_views.first_seen(tree, node, events.start[stacks.rows])
    row = views.row_of(options.frame)
    if options.order is Order.SANDWICH and row is not None:
        label = int(views.codes[row])
        below, above = stack_views.callees(tree, label), stack_views.callers(tree, label).tree
        return Shown(stacks, views, (*views.views, below), below.tree, None, above)
    laid = lay_out(tree.trie, tree.weight, order)
    return Shown(stacks, views, views.views, tree, order, hint=_hint(tree, options), laid=laid)


def _hint(tree: WeightedTree, options: Options) -> str:
    """Says that similar frames are merged, or can be where that leaves at most half of them."""
    if options.merges:
        return "names that differ in numbers only are one: m tells them apart"
    names = tree.trie.labels
    if options.source not in (StackSource.GPU, StackSource.NVTX):
        bare = not options.addresses and any(name.endswith("]") and ".so" in name for name in names)
        return (
            "[library] is code without symbols in it: m tells its addresses apart" if bare else ""
        )
    alike = len({similar_name(name) for name in names})
    if len(names) < max(2 * alike, MANY_NAMES):
        return ""
    return f"m merges names that differ in numbers only: {len(names)} become {alike}"


def heading(options: Options, thread: str, room: int, extra: str, zoomed: str) -> tuple[str, str]:
    """Both sides of the icicle's heading; the orders that are not chosen give way first.

    Args:
        options: how the stacks are folded.
        thread: name of the thread that they are of; empty for all.
        room: cells.
        extra: what to say instead of options and zoom; empty for nothing.
        zoomed: what to say of the zoom; empty without one.
    """
    flags = {
        "~across threads": options.across,
        "merged": options.merges,
        "recursion": options.recursion,
        "small hidden": options.small,
        zoomed: bool(zoomed),
    }
    right = extra or ", ".join(text for text, is_set in flags.items() if is_set)
    left = f"{TITLES[options.source]}{'  ' if thread else ''}{thread}  v: "
    orders = " ".join(f"[{o}]" if o is options.order else str(o) for o in Order)
    if right and cell_len(left + orders + right) > room:
        orders = f"[{options.order}]"
    left += orders
    return left, cut(right, max(room - cell_len(left), 0))


def picture_writers(shown: Shown, root: int, title: str) -> dict[str, Writer]:
    """Writers of the stacks on the screen: a flame graph, folded stacks, and data.

    Args:
        shown: what is on the screen.
        root: the frame that it is zoomed to.
        title: heading of the flame graph.
    """
    tree, nodes = stack_views.under(shown.tree, root)
    order = None if shown.order is None else shown.order[nodes]
    notes, size = shown.stacks.notes, len(tree.trie)

    def data() -> Iterator[str]:
        return document_text(DOCUMENT, tree, None, notes)

    folded = text_writer(lambda: (f"{line}\n" for line in folded_lines(tree)), size)
    return {
        ".svg": text_writer(lambda: [flame_graph(tree, title, notes, order=order)], size),
        ".folded": folded,
        ".txt": folded,
        ".json": text_writer(data, size),
    }


def frame_facts(shown: Shown, node: int, searched: str, width: int) -> list[Line]:
    """Lines of the pane under the icicle; only what is told of all frames is wrapped."""
    tree = shown.tree
    trie, weight = tree.trie, tree.weight
    whole, mine, self_weight = int(weight[ROOT]), int(weight[node]), int(tree.self_weight[node])
    name = trie.labels[trie.label[node]] if node else f"all ({tree.amount(whole)})"
    events = "sample" if tree.unit == "samples" else "event"
    parent = int(trie.parent[node])
    of_parent = f", {format_share(mine, int(weight[parent]))} of its caller" if node else ""
    of_all = f", {format_share(self_weight, whole)}" if self_weight else ""
    lines: list[Line] = [
        [(name, 0)],
        [
            (
                f"total {tree.amount(mine)}, {format_share(mine, whole)}{of_parent}   "
                f"self {tree.amount(self_weight)}{of_all}  "
                f" {plural(int(tree.count[node]), events)}",
                0,
            )
        ],
        [
            (
                f"depth {int(trie.depth[node])}, {plural(len(trie.children_of(node)), 'callee')}, "
                f"{plural(int((trie.label == trie.label[node]).sum()), 'place')} of this frame"
                f"{_inside(trie.path(parent)) if node else ''}",
                MUTED,
            )
        ],
    ]
    if searched:
        lines.append([(searched, 0)])
    told = [note for note in (*shown.stacks.notes, shown.hint) if note]
    return lines + [[(line, MUTED)] for note in told for line in wrapped(note, width)]


def _inside(frames: tuple[str, ...]) -> str:
    """The callers of a frame, innermost first: what a narrow pane cuts off matters least."""
    return f", in {' < '.join(reversed(frames))}" if frames else ""


def show_as_tree(pane: VirtualTree, stacks: WeightedTree, selected: int) -> None:
    """Frame, total, share, self and count of each node, with the selected one in view."""
    trie = stacks.trie
    frame = texts("frame", 30, trie.label, trie.labels, grow=True)
    columns = (frame, *_figures(stacks, stacks.weight, stacks.self_weight, stacks.count))
    pane.prefer("total")
    pane.show_tree(trie, [trie.labels[code] for code in trie.label], columns, weight=stacks.weight)
    if selected != ROOT:
        pane.reveal(selected)


def next_source(report: Report, now: StackSource) -> tuple[StackSource, str]:
    """The next source with data, and once all were seen what would record others."""
    recorded = sources(report) or [StackSource.GPU]
    place = recorded.index(now) + 1 if now in recorded else 0
    needs = dict.fromkeys(kind for source, kind in NEEDED.items() if source not in recorded)
    lacks = [report.lacks(kind) for kind in needs]
    options = " ".join(filter(None, (why.partition("nsys profile ")[2] for why in lacks)))
    return recorded[place % len(recorded)], options if place == len(recorded) else ""


def _figures(
    tree: WeightedTree, weight: Int64, self_weight: Int64, count: Int64, *, extra: bool = False
) -> tuple[TableColumn, ...]:
    whole = max(int(tree.weight[ROOT]), 1)
    written = format_duration if tree.unit == "ns" else format_count
    unit = Unit.NS if tree.unit == "ns" else Unit.COUNT
    shares = 100 * weight / whole
    return (
        numbers("total", 10, weight, written, unit=unit),
        numbers("of sum", 7, shares, format_percent, unit=Unit.PERCENT, decimals=2),
        numbers("self", 10, self_weight, written, unit=unit),
        counts("count", 9, count, extra=extra),
    )
