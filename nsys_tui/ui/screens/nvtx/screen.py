"""NVTX: the tree of ranges with GPU work projected on it, kernels and iterations of a range."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from textual.containers import Horizontal

from nsys_tui.analysis.nvtx.operation_paths import operation_paths, similar_paths
from nsys_tui.analysis.nvtx.table import NvtxFlat, NvtxTable, nvtx_table
from nsys_tui.analysis.timeline.events import find
from nsys_tui.model.arrays import Indices
from nsys_tui.model.capabilities import Capability
from nsys_tui.model.events import Ranges
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.names import similar_name
from nsys_tui.state import Selection, ViewState
from nsys_tui.ui.keymap import Action
from nsys_tui.ui.scoping import report_scope
from nsys_tui.ui.screens.nvtx import columns
from nsys_tui.ui.screens.nvtx.detail import RangeDetail
from nsys_tui.ui.screens.tables import Look
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.ui.widgets.table.actions import TABLE, TREE, WHOLE
from nsys_tui.ui.widgets.table.grid import Grid
from nsys_tui.ui.widgets.table.table import VirtualTable
from nsys_tui.ui.widgets.tree.tree import VirtualTree

ACTIONS = (
    *TREE,
    *TABLE,
    Action("tree.flat", ("i",), "flat", "ranges by name, whatever their path; again the tree", 6),
    Action(
        "tree.similar", ("g",), "similar", "one line for names that differ in numbers, or not", 7
    ),
    Action("table.instances", ("I",), "instances", "the instances of a range", 8),
    Action("nvtx.steps", ("t",), "steps", "every step: its time, its phases, outliers", 9),
    Action("timeline.iteration_next", (")",), "iteration", "next iteration"),
    Action("timeline.iteration_previous", ("(",), "iteration", "previous iteration"),
    WHOLE,
)


@dataclass(frozen=True)
class NvtxLook(Look):
    """How the screen looked; ``inner`` is the list by name, if that was seen."""

    step: int | None = None


class NvtxScreen(RangeDetail):
    """NVTX ranges as a tree or by name."""

    SCREEN = "nvtx"
    ACTIONS = ACTIONS
    AUTO_FOCUS = "#tree"
    SORTED_BY = "total"
    READING, MAKING = "reading NVTX ranges ...", "projecting GPU work on the ranges ..."
    BUSY = "computing"
    wish: bool = True
    """Whether similar names are one line."""
    DEFAULT_CSS: ClassVar[str] = """
    NvtxScreen #upper { height: 1fr; }
    NvtxScreen #tree, NvtxScreen #flat { width: 1fr; }
    NvtxScreen #under { width: 25%; min-width: 40; }
    NvtxScreen #flat, NvtxScreen.-narrow #under { display: none; }
    NvtxScreen #steps { width: 1fr; }
    NvtxScreen #instances { width: 1fr; display: none; }
    NvtxScreen.-flat #tree { display: none; }
    NvtxScreen.-flat #flat { display: block; }
    NvtxScreen.-instances #lower { height: 1fr; }
    NvtxScreen.-instances #steps { display: none; }
    NvtxScreen.-instances #instances { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown_merge: bool | None = None
        self._shown_table: NvtxTable | None = None

    def body(self) -> Iterable[Any]:
        """Tree and kernels above, iterations or instances below."""
        yield Horizontal(
            VirtualTree("NVTX tree", share_filter=True, id="tree"),
            VirtualTable("NVTX by name", share_filter=True, id="flat"),
            VirtualTable("Kernels under it", id="under"),
            id="upper",
        )
        yield Horizontal(
            LinePane("per iteration", id="steps"),
            VirtualTable("Instances", id="instances"),
            id="lower",
        )

    def clear(self) -> None:
        """Nothing is known of the report yet."""
        self.detail = self.step = None
        self._shown_merge = self._shown_table = None
        super().clear()

    def display_changed(self, old: ViewState, new: ViewState) -> None:
        """Names and times are written anew."""
        if old.display != new.display and self.detail is not None:
            self._look(self.detail.row)

    def filter_by(self, pattern: str) -> None:
        """Only ranges whose name fits."""
        self.by_path.filter_by(pattern)
        self.by_name.filter_by(pattern)

    def work(self, report: Report) -> Callable[[Progress], NvtxTable]:
        """Projects GPU work on the ranges that window and scope let through."""
        merge, flat, memo = self.wish, self.is_flat, self.session.memo
        scope = report_scope(report, self.state)

        def make(progress: Progress) -> NvtxTable:
            raw = memo("operation_paths", lambda: operation_paths(report, progress=progress))
            progress("merging similar names", 0, len(raw.trie))
            similar = memo(("similar_paths", merge), lambda: similar_paths(raw.paths, merge=merge))
            return nvtx_table(report, raw, similar, scope, progress)

        def work(progress: Progress) -> NvtxTable:
            whole = scope.window is None
            fresh = partial(make, progress)
            table = memo(("nvtx_table", merge, scope), fresh) if whole else fresh()
            # What drawing needs is made here, not on the screen's thread.
            _ = table.flat if flat else (table.dull, table.present, table.trie.children)
            return table

        return work

    def show_result(self, report: Report, result: NvtxTable) -> None:
        """Fills tree or list; folds and cursor stay where the nodes are the same."""
        name, self._shown_table = self._flat_name(), result
        glyphs = self.app.glyphs
        why = "no NVTX range in this window: 0 shows the whole trace"
        why = why if len(report.ranges) else report.lacks(Capability.NVTX) or "no NVTX ranges"
        self.by_path.empty = self.by_name.empty = why
        self.by_path.note = self.by_name.note = ""
        if self.is_flat:
            self._show_flat(result, name)
        else:
            same = self._shown_merge == self.wish
            self._shown_merge = self.wish
            on_gpu = len(report.operations) > 0
            self.by_path.title = f"NVTX tree ({'gpu-projected' if on_gpu else 'host time'})"
            self.by_path.show_tree(
                result.trie,
                result.labels,
                columns.tree_columns(result, glyphs, self.wide),
                dull=result.dull,
                weight=result.tree.host,
                present=result.present if len(report.ranges) else np.zeros(len(result.trie), bool),
                keep_folds=same,
            )
        if not self.main.shown:
            self._clear_detail()

    def _flat_name(self) -> str:
        """The name under the cursor of the list, if it was shown: making it takes a worker."""
        table, row = self._shown_table, self.by_name.row
        flat: NvtxFlat | None = None if table is None else vars(table).get("flat")
        if table is None or flat is None or row is None or row >= len(flat):
            return ""
        return table.names[int(flat.label[row])]

    def _show_flat(self, table: NvtxTable, name: str) -> None:
        glyphs = self.app.glyphs
        if len(table.report.ranges):
            names = [table.names[code] for code in table.flat.label.tolist()]
            row = names.index(name) if name in names else None
            shown = columns.flat_columns(table, glyphs, self.wide)
            self.by_name.show_rows(shown, len(table.flat), row=row)
        else:
            self.by_name.show_rows((), 0)

    def go_to(self, selection: Selection) -> None:
        """Puts the cursor on a range name or on the path of a selected range."""
        table = self.result
        if table is None or self.is_flat:
            return
        if selection.kind == "range_name" and selection.key:
            nodes = nodes_of(table, str(selection.key[0]))
            if len(nodes):
                self.by_path.reveal(int(nodes[np.argmax(table.tree.host[nodes])]))
        elif (hit := find(table.report, selection.kind, selection.key)) is not None:
            events, row = hit
            if isinstance(events, Ranges) and table.tree.range_node[row] > 0:
                self.by_path.reveal(int(table.tree.range_node[row]))

    def on_grid_moved(self, message: Grid.Moved) -> None:
        """Another line: its kernels, instances and iterations."""
        if message.grid is self.main and message.row is not None and message.row >= 0:
            self._look(message.row)

    def action_tree_flat(self) -> None:
        """Ranges by name, or the tree again."""
        self.toggle_class("-flat")
        self.make()
        self.main.focus()

    def action_tree_similar(self) -> None:
        """One line for similar names, or one each."""
        self.change(not self.wish)

    def action_nvtx_steps(self) -> None:
        """Goes to the table of steps."""
        self.app.show("steps")

    def action_nav_escape(self) -> None:
        """Leaves the instances, the chosen iteration, or the list by name."""
        if self.in_instances:
            self.leave_instances()
        elif self.step is not None:
            self.step = None
            if self.detail is not None:
                self._show_steps(self.detail)
        else:
            self.action_tree_flat()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape is the screen's only while there is a mode to leave."""
        if action == "nav_escape":
            return self.in_instances or self.step is not None or self.is_flat
        return super().check_action(action, parameters)

    def view(self) -> NvtxLook:
        """Folds, sort, scroll and cursor."""
        flat = self.by_name.view() if self.is_flat else None
        return NvtxLook(self.wish, self.by_path.view(), flat, self.step)

    def restore(self, view: Any) -> None:
        """Takes them up again, at once or when the lines are there."""
        if isinstance(view, NvtxLook) and (view.inner is not None) != self.is_flat:
            self.action_tree_flat()
        super().restore(view)

    def take_up(self, view: Look) -> None:
        """The lines are there."""
        if isinstance(view, NvtxLook):
            self.step = view.step
        if view.inner is not None:
            self.by_name.restore(view.inner)
        elif self.by_path.shown:
            super().take_up(view)


def nodes_of(table: NvtxTable, name: str) -> Indices:
    """Nodes of a range name as the overview writes it: digits as ``#``, without domain."""
    codes: list[int] = []
    for form in (str, similar_name):
        wanted = form(name)
        texts = enumerate(map(form, table.trie.labels))
        codes = codes or [c for c, text in texts if text == wanted or text.endswith(f":{wanted}")]
    return np.flatnonzero(np.isin(table.trie.label, codes))
