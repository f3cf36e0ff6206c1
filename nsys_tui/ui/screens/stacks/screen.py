"""Stacks: GPU time by NVTX path, CPU samples or backtraces as an icicle or a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from textwrap import wrap
from typing import Any, ClassVar

from textual import events
from textual.containers import Horizontal, Vertical
from textual.getters import query_one

from nsys_tui.analysis.stacks import views as stack_views
from nsys_tui.analysis.stacks.folding import TITLES, StackSource
from nsys_tui.analysis.stacks.sources import OF_THREADS, first_source, sources
from nsys_tui.errors import NoDataError
from nsys_tui.export.folded import folded_frame
from nsys_tui.model.progress import Progress
from nsys_tui.model.report import Report
from nsys_tui.model.tree import ROOT
from nsys_tui.render.cells import MUTED
from nsys_tui.state import cycled
from nsys_tui.ui.evidence import show_on_timeline
from nsys_tui.ui.saving import Writer
from nsys_tui.ui.scoping import report_scope
from nsys_tui.ui.screens.result import CANCELLED
from nsys_tui.ui.screens.stacks.actions import ACTIONS
from nsys_tui.ui.screens.stacks.finder import FrameFinder
from nsys_tui.ui.screens.stacks.panes import (
    Shown,
    Viewed,
    arranged,
    busiest_threads,
    event_set,
    fold,
    frame_facts,
    heading,
    merges_at_first,
    next_source,
    picture_writers,
    show_as_tree,
    viewed,
)
from nsys_tui.ui.stack_options import Options, Order
from nsys_tui.ui.widgets.icicle import IciclePane
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.ui.widgets.table.grid import Grid
from nsys_tui.ui.widgets.table.table import VirtualTable
from nsys_tui.ui.widgets.tree.tree import VirtualTree

KINDS = dict.fromkeys((StackSource.CPU, StackSource.ON), "on-cpu") | {
    StackSource.GPU: "path",
    StackSource.NVTX: "path",
    StackSource.OFF: "off-cpu",
}
"""Word for what is folded."""
NARROW = 76
SPARE_CELLS = 11
"""Of a heading: corners, blanks, the sign of focus, and a gap before the remark."""


def toggles(option: str) -> Callable[[StacksScreen], None]:
    """An action that does something, or leaves it again."""
    return lambda screen: screen.change(**{option: not getattr(screen.options, option)})


class StacksScreen(FrameFinder):
    """Screen 6."""

    SCREEN = KIND = "stacks"
    ACTIONS = ACTIONS
    BY_NAMES = True
    AUTO_FOCUS = "#icicle"
    DEFAULT_CSS: ClassVar[str] = """
    StacksScreen #main { width: 1fr; }
    StacksScreen #callers { height: 8; display: none; }
    StacksScreen.-sandwich #callers { display: block; }
    StacksScreen #icicle { height: 1fr; }
    StacksScreen #frame { height: 6; }
    StacksScreen #tree { height: 1fr; display: none; }
    StacksScreen.-tree #tree { display: block; }
    StacksScreen.-tree #icicle { display: none; }
    StacksScreen #functions { width: 100%; height: 1fr; display: none; }
    StacksScreen.-sandwich #functions, StacksScreen.-xwide #functions { display: block; }
    StacksScreen.-wide #functions, StacksScreen.-xwide #functions { width: 47%; max-width: 90; }
    StacksScreen.-narrow #split { layout: vertical; }
    StacksScreen.-narrow #main { height: 2fr; }
    StacksScreen.-narrow.-sandwich #frame { display: none; }
    StacksScreen.-narrow #callers { height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.options = Options()
        self.shown: Shown | None = None
        self._place: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        """Paths of the selected frame and of the frame that fills the pane, outside a sandwich."""

    def body(self) -> Iterable[Any]:
        """The icicle over the facts of the selected frame; its functions beside it."""
        icicle, above = IciclePane(id="icicle"), IciclePane(id="callers")
        above.heading("Callers")
        above.tells_own = False
        yield Horizontal(
            Vertical(
                above,
                icicle,
                VirtualTree("Stacks", id="tree"),
                LinePane("Frame", id="frame"),
                id="main",
            ),
            VirtualTable("Functions", id="functions"),
            id="split",
        )

    functions = query_one("#functions", VirtualTable)
    """The table of functions."""

    def clear(self) -> None:
        """Another report: nothing is folded yet."""
        self.shown, self.options, self._place = None, Options(), ((), ())
        self._say("reading …")

    def load_finished(self) -> None:
        """Opens on a source that has data, unless one was asked for."""
        report = self.report
        is_read = report is not None and report.loaded("operations") and report.loaded("ranges")
        if report is not None and is_read and self.options == Options():
            source, similar = first_source(report), merges_at_first(report)
            self.options = Options(source=source, similar=similar)
        super().load_finished()

    @property
    def words_here(self) -> list[str]:
        """The selected frame where it stands for what was not recorded, and what is folded."""
        stacks, node = self.icicle.stacks, self.icicle.selected
        name = stacks.trie.labels[stacks.trie.label[node]] if stacks is not None else ""
        of_library = name.startswith("[") and ".so" in name
        return ["[library]" if of_library else name, KINDS.get(self.options.source, "stack")]

    def view(self) -> Options:
        """For going back."""
        return self.options

    def restore(self, view: Any) -> None:
        """Takes up the options again."""
        if isinstance(view, Options) and view != self.options:
            self.options = view
            self.make()

    def work(self, report: Report) -> Callable[[Progress], Shown | NoDataError]:
        """Folds the chosen source, and arranges it as it is looked at."""
        options, memo = self.options, self.session.memo
        scope, names = report_scope(report, self.state), str(self.state.display.names)

        def work(progress: Progress) -> Shown | NoDataError:
            try:
                how = (options.source, options.across, options.thread, options.addresses)
                folded = memo(
                    ("stacks", *how, scope, names),
                    lambda: fold(report, options, scope, names, progress),
                )
                shape = (options.merges, options.recursion, options.small)
                stacks = memo(
                    ("viewed", *how, scope, names, *shape), lambda: viewed(folded, options)
                )
                return arranged(report, folded, stacks, options)
            except NoDataError as error:
                return error

        return work

    def say_busy(self) -> None:
        """What is shown stays."""
        self._heading("folding …")

    def say_stopped(self, why: str) -> None:
        """What is shown stays."""
        self._heading("cancelled" if why == CANCELLED else "failed")
        if self.shown is None:
            self._say(*why.splitlines())

    def show_result(self, report: Report, result: Shown | NoDataError) -> None:
        """Draws the stacks, or says why there are none."""
        pane, stacks = self.icicle, result
        self._keep_place(pane)
        self.set_class(isinstance(stacks, Shown) and stacks.callers is not None, "-sandwich")
        if isinstance(stacks, NoDataError):
            reason = str(stacks).partition(": ")[2] or str(stacks)
            others = ["s: another source"] if sources(report) else []
            self._show_nothing(pane, *wrap(reason, NARROW), *others)
            return
        if not int(stacks.stacks.tree.self_count.sum()):
            whole = "0: the whole trace" if self.state.window is not None else "a filter is set"
            self._show_nothing(pane, "nothing of this source here", "s: another source", whole)
            return
        self._show_functions(stacks.viewed)
        self.shown = stacks
        if stacks.callers is not None:
            self.query_one("#callers", IciclePane).show(stacks.callers)
        pane.show(stacks.tree, stacks.order, stacks.laid)
        if self.has_class("-tree"):
            self._fill_tree()
        if stacks.callers is None:
            selected, zoomed = (stack_views.located(stacks.tree.trie, p) for p in self._place)
            pane.zoom(zoomed)
            pane.select(selected)
        else:
            children = stacks.tree.trie.children_of(ROOT)
            pane.select(int(children[0]) if len(children) else ROOT)
        self.search_again()
        self._heading()

    def _show_nothing(self, pane: IciclePane, *lines: str) -> None:
        self.shown = None
        pane.say(*lines)
        self._say()

    def _keep_place(self, pane: IciclePane) -> None:
        """Remembers where the reader is: another order or view of the stacks keeps the place."""
        if pane.stacks is not None and self.shown is not None and self.shown.callers is None:
            trie = pane.stacks.trie
            self._place = (trie.path(pane.selected), trie.path(pane.root))

    def _fill_tree(self) -> None:
        """The icicle's stacks as a tree; a hidden tree has no width to lay columns out in."""
        pane, tree = self.icicle, self.query_one("#tree", VirtualTree)
        if pane.stacks is not None and tree.size.width:
            show_as_tree(tree, pane.stacks, pane.selected)

    def action_stacks_tree(self) -> None:
        """Shows the stacks as a tree, at the selected frame, or as an icicle again."""
        pane, tree = self.icicle, self.query_one("#tree", VirtualTree)
        shown = not self.has_class("-tree")
        self.set_class(shown, "-tree")
        if shown:
            tree.focus()
            self.call_after_refresh(self._fill_tree)
        else:
            if tree.node:
                pane.select(tree.node)
            pane.focus()

    def _heading(self, extra: str = "") -> None:
        pane, thread = self.icicle, self.options.thread
        named = self.report.thread_name(thread) if self.report and thread is not None else ""
        zoomed = "zoomed: esc out" if pane.root != ROOT else ""
        room = pane.outer_size.width - SPARE_CELLS
        pane.heading(*heading(self.options, named, room, extra, zoomed))

    def on_resize(self, event: events.Resize) -> None:
        """The heading has room for other orders."""
        super().on_resize(event)
        self.call_after_refresh(self._heading)

    def _say(self, *lines: str) -> None:
        self._heading()
        self.query_one("#frame", LinePane).show([[(line, MUTED)] for line in lines])

    def on_icicle_pane_moved(self, message: IciclePane.Moved) -> None:
        """Facts of the selected frame."""
        message.stop()
        if (shown := self.shown) is not None:
            facts = partial(frame_facts, shown, self.icicle.selected, self.found_text())
            self.query_one("#frame", LinePane).show_built(facts)
            self._heading()

    def _show_functions(self, stacks: Viewed) -> None:
        """The functions of these stacks; the cursor goes to the one in the middle."""
        table, row = self.functions, stacks.row_of(self.options.frame)
        if self.shown is None or self.shown.viewed is not stacks:
            table.prefer("self")
            table.show_rows(stacks.functions, len(stacks.codes), row=row)
        elif row is not None and row != table.row:
            table.put_cursor(table.position_of(row) or 0)

    def on_grid_moved(self, message: Grid.Moved) -> None:
        """Another function comes between its callers and callees, in a sandwich."""
        if self.options.order is Order.SANDWICH:
            self._put_in_the_middle(message)

    def on_grid_opened(self, message: Grid.Opened) -> None:
        """Puts a function between its callers and callees; from there to its heaviest place."""
        if self.options.order is not Order.SANDWICH:
            self._put_in_the_middle(message)
        elif message.grid is self.functions and self.shown is not None:
            self._place = (self.shown.viewed.heaviest(message.row), ())
            self.change(order=Order.HEAVY)
            self.icicle.focus()

    def _put_in_the_middle(self, message: Grid.RowMessage) -> None:
        if message.grid is not self.functions or self.shown is None or message.row is None:
            return
        frame = self.shown.viewed.frame(message.row)
        if frame != self.options.frame or self.options.order is not Order.SANDWICH:
            self.change(order=Order.SANDWICH, frame=frame)

    def change(self, **changes: Any) -> None:
        """Has the stacks folded or arranged in another way."""
        self.options = replace(self.options, **changes)
        self.make()

    def action_stacks_order(self) -> None:
        """Left-heavy, time order, or the selected frame between its callers and callees.

        Where none is selected, the frame with most of its own.
        """
        order, frame = cycled(self.options.order), ""
        if order is Order.SANDWICH and self.shown is not None:
            frame = self.shown.frame(self.icicle.selected)
        self.change(order=order, frame=frame)
        (self.functions if order is Order.SANDWICH else self.icicle).focus()

    def action_stacks_source(self) -> None:
        """The next source that the report has data of."""
        if (report := self.report) is None:
            return
        following, options = next_source(report, self.options.source)
        if options:
            self.app.say(f"no more sources here: record with nsys profile {options}")
        if following is self.options.source:
            return
        self.shown, self._place = None, ((), ())
        self.change(source=following, thread=None, frame="", order=Order.HEAVY)

    def action_stacks_thread(self) -> None:
        """The next sampled thread, then all again."""
        if self.report is None or self.options.source not in OF_THREADS:
            self.app.say("threads are told apart on and off the CPU: s changes the source")
            return
        busiest = busiest_threads(self.report, self.options.source)
        choices = [None, *busiest]
        self.change(thread=choices[(choices.index(self.options.thread) + 1) % len(choices)])

    def action_stacks_similar(self) -> None:
        """Merges frames that differ in numbers only, or addresses, or tells them apart."""
        options = self.options
        if options.source in (StackSource.GPU, StackSource.NVTX):
            self.change(similar=not options.similar)
        else:
            self.change(addresses=not options.addresses)

    action_stacks_across = toggles("across")
    action_stacks_recursion = toggles("recursion")
    action_stacks_hide_small = toggles("small")

    def action_timeline_whole(self) -> None:
        """Out of all zooms; where there is none, the whole trace again."""
        if self.icicle.root == ROOT:
            super().action_timeline_whole()
        while self.icicle.zoom_out():
            self._heading()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What is zoomed can be left, too."""
        allowed = super().check_action(action, parameters)
        return allowed or (action == "timeline_whole" and self.icicle.root != ROOT)

    def action_nav_escape(self) -> None:
        """Out of the search, then out of the zoom, then back."""
        if self.pattern:
            self.pattern = ""
            self.search_again()
        elif not self.icicle.zoom_out():
            self.app.GLOBAL_COMMANDS["nav.escape"](self.app)
        self._heading()

    def action_copy_cell(self) -> None:
        """Copies the frame's name."""
        pane = self.icicle
        if pane.stacks is not None:
            trie = pane.stacks.trie
            self.app.copy(trie.labels[trie.label[pane.selected]] or "all", "1 frame")

    def action_copy_row(self) -> None:
        """Copies the stack to the selected frame as folded text."""
        pane = self.icicle
        if pane.stacks is not None:
            path = ";".join(folded_frame(f) for f in pane.stacks.trie.path(pane.selected)) or "all"
            self.app.copy(f"{path} {int(pane.stacks.weight[pane.selected])}", "1 folded stack")

    def writers(self) -> Mapping[str, Writer]:
        """The flame graph as it is on the screen; the tree has its own rows."""
        pane = self.icicle
        if self.shown is None or not isinstance(self.focused, IciclePane):
            return {}
        title = f"{self.session.name}: {TITLES[self.options.source]}"
        return picture_writers(self.shown, pane.root, title)

    def action_stacks_timeline(self) -> None:
        """Shows the longest event of the selected frame on the timeline."""
        if self.shown is None or self.report is None:
            return
        pane = self.icicle
        nodes = self.shown.folded_nodes(pane.selected)
        events, stacks = event_set(self.report, self.options.source), self.shown.stacks

        def show(row: int | None) -> None:
            if row is None:
                self.app.say("no event of this frame to show over time")
            else:
                show_on_timeline(self.app, events, row)

        self.compute("longest", lambda: stacks.longest(events, nodes), show)
