"""Help: the keys that work here and what words mean, searchable; Enter runs a key's action."""

from __future__ import annotations

from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import Binding, BindingType
from textual.widgets import Input

from nsys_tui.analysis.rules.finding import Finding
from nsys_tui.analysis.rules.ranking import RULES
from nsys_tui.names import cell_len, cut, pad
from nsys_tui.render.cells import BOLD, KEY, MUTED, Line, category_ink, style
from nsys_tui.render.glyphs import FILLS
from nsys_tui.text.definitions import Definition, define, definitions, on_screen
from nsys_tui.text.folding import wrapped
from nsys_tui.ui.dialogs.picker import DialogBox
from nsys_tui.ui.keymap import GLOBAL, Action, effective_keys, shown_key
from nsys_tui.ui.matching import Entry, matching
from nsys_tui.ui.runtime.batched_screen import Dialog
from nsys_tui.ui.runtime.line_input import LineInput
from nsys_tui.ui.widgets.chrome import KeyLine
from nsys_tui.ui.widgets.lines import CURSOR, LinePane
from nsys_tui.ui.widgets.table.grid import Grid
from nsys_tui.ui.widgets.table.table import VirtualTable
from nsys_tui.ui.widgets.tree.tree import VirtualTree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from nsys_tui.ui.front import FrontScreen
    from nsys_tui.ui.host import Host


BESIDE: Final = 150
"""Cells from which this view's keys and those of every view stand side by side."""
TOLD: Final = 2
"""Most definitions of the thing under the cursor."""


class HelpScreen(Dialog[str]):
    """Returns the id of the action to run, or None.

    Args:
        here: actions of the screen below that work now.
        everywhere: the global ones that work now.
        name: what the screen below is called.
        terms: what its columns and figures are called.
        found: what is meant by the thing under the cursor, told first.
        typed: what stands in the box at first.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", show=False, priority=True),
        Binding("up", "step(-1)", show=False, priority=True),
        Binding("down", "step(1)", show=False, priority=True),
        Binding("pageup", "step(-10)", show=False, priority=True),
        Binding("pagedown", "step(10)", show=False, priority=True),
    ]
    DEFAULT_CSS: ClassVar[str] = """
    HelpScreen { align: left top; }
    HelpScreen DialogBox { margin-top: 2; height: 1fr; width: 1fr; }
    """
    app: Host

    def __init__(
        self,
        here: Sequence[Action],
        everywhere: Sequence[Action],
        name: str,
        terms: Sequence[Definition] = (),
        typed: str = "",
        meanings: Sequence[Definition] = (),
    ) -> None:
        super().__init__()
        self._found_here = meanings
        self._here, self._everywhere, self._name, self._terms = here, everywhere, name, terms
        self._chosen = 0
        self._typed, self._first = "", typed
        self._shown: list[Action] = []

    def compose(self) -> ComposeResult:
        """Everything below the tabs."""
        box = DialogBox(
            LinePane(framed=False),
            LineInput(
                self._first,
                placeholder="type to find keys and words; enter runs the action",
                compact=True,
            ),
        )
        box.heading("Help", "esc close")
        yield box
        yield KeyLine()

    def on_mount(self) -> None:
        """Shows all keys."""
        self.query_one(Input).focus()
        self.query_one(LinePane).can_focus = False
        keys = (("type", "to filter", 1), ("enter", "run", 2), ("esc", "close", 3))
        self.query_one(KeyLine).show_keys(
            tuple((key, Action("", (), label, "", rank)) for key, label, rank in keys)
        )
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        """Columns follow the width."""
        self._draw()

    def on_input_changed(self) -> None:
        """Filters anew."""
        self._draw()

    def action_step(self, step: int) -> None:
        """Moves over the keys, left column first; below the last one are the words."""
        if step > 0 and self._chosen >= len(self._shown) - 1:
            self.query_one(LinePane).scroll_relative(y=step, animate=False)
            return
        self._chosen = min(max(self._chosen + step, 0), max(0, len(self._shown) - 1))
        self._draw()

    def action_take(self) -> None:
        """Runs what is under the cursor."""
        self._draw()
        if self._shown:
            self.dismiss(self._shown[self._chosen].id)

    def _keys(self, action: Action) -> str:
        return " ".join(shown_key(key) for key in effective_keys(action, self.app.keymap)[:3])

    def _draw(self) -> None:
        pane, typed = self.query_one(LinePane), self.query_one(Input).value
        if typed != self._typed:
            self._typed, self._chosen = typed, 0
        width = max(40, pane.size.width)
        lines = self._found(typed, width) if typed.strip() else self._table(width)
        pane.show(lines)
        at = next((n for n, line in enumerate(lines) if any(c == CURSOR for _, c in line)), 0)
        top, height = pane.scroll_offset.y, max(1, pane.size.height)
        if not top <= at < top + height:
            pane.scroll_to(y=max(0, at - height + 1), animate=False)

    def _found(self, typed: str, width: int) -> list[Line]:
        entries = [
            Entry(f"{action.label}: {action.help}", self._keys(action), action)
            for action in (*self._here, *self._everywhere)
        ]
        self._shown = [entry.value for entry in matching(entries, typed)]
        terms = [*dict.fromkeys((*self._terms, *definitions()))]
        named = [Entry(", ".join((term.name, *term.also)), value=term) for term in terms]
        meanings = _meanings([entry.value for entry in matching(named, typed)], width)
        if not (self._shown or meanings):
            return [[("no key does that here, and no word is called so", MUTED)]]
        return [*(self._cell(number, width, 20) for number in range(len(self._shown))), *meanings]

    def _table(self, width: int) -> list[Line]:
        """This view's keys, and those of every view below them or, with room, beside them."""
        self._shown = [*self._here, *self._everywhere]
        column = width // 2 if width >= BESIDE else width
        cells = [self._cell(number, column, 14) for number in range(len(self._shown))]
        here: list[Line] = [[(pad(f"THIS VIEW: {self._name}", column), BOLD)]]
        here = [*here, *cells[: len(self._here)]] if self._here else []
        everywhere: list[Line] = [[("EVERYWHERE", BOLD)], *cells[len(self._here) :]]
        blank: Line = [(" " * column, 0)]
        keys = [*here, *everywhere]
        if here and column < width:
            keys = [[*(a or blank), *(b or [])] for a, b in zip_longest(here, everywhere)]
        gap: list[Line] = [[]] if self._found_here else []
        words: list[Line] = [[("", 0)], [("WHAT THE WORDS MEAN", BOLD)]] if self._terms else []
        found = _meanings(self._found_here, width)
        return [*found, *gap, *keys, *self._notes(), *words, *_meanings(self._terms, width)]

    def _cell(self, number: int, width: int, keys: int) -> Line:
        action = self._shown[number]
        chosen = number == self._chosen
        key = pad(whole_keys(self._keys(action), keys), keys)
        room = width - keys - 3
        shown = pad(cut(action.help, room), room)
        if chosen:
            return [(f">{key} {shown} ", CURSOR)]
        return [(f" {key} ", KEY), (f"{shown} ", 0)]

    def _notes(self) -> list[Line]:
        legend: Line = [("LEGEND  ", BOLD)]
        for category in FILLS:
            fill = self.app.glyphs.fill(category)
            legend += [(fill, style(category_ink(category))), (f" {category.name.lower()}  ", 0)]
        terminal, config = self.app.terminal, self.app.config
        reasons = [f"{name} {why}" for name, why in terminal.reasons.items() if name != "app"]
        facts = [
            ". idle   ! idle with a known cause   ≈ estimate   ~38~ = 38 narrow frames of a stack",
            "mouse: Shift+drag selects text as usual; --no-mouse leaves the mouse to the terminal",
            f"config: {config.path}{'' if config.path.exists() else ' (not there: defaults)'}",
            f"terminal: {terminal.colours} colours, {'ASCII' if terminal.ascii else 'Unicode'}"
            f" ({'; '.join(reasons)})",
        ]
        return [[("", 0)], legend, *([(f"        {fact}", MUTED)] for fact in facts)]


def open_help(app: Host, typed: str = "") -> None:
    """Shows help for the screen in front, or on a word, and runs what is chosen."""
    front = app.front
    if front is None:
        return
    here = [action for action in front.ACTIONS if app.handler(action.id)]
    ids = {action.id for action in here}
    everywhere = [a for a in GLOBAL if a.id not in ids and app.handler(a.id)]
    grids = (*front.query(VirtualTable), *front.query(VirtualTree))
    headers = [column.header for grid in grids for column in grid.columns]
    meanings = under_cursor(front)
    words = [*front.words_here, *headers]
    terms = [term for term in on_screen(front.SCREEN, words) if term not in meanings]
    help_screen = HelpScreen(here, everywhere, front.long_name, terms, typed, meanings)
    app.ask(help_screen, partial(app.call_later, app.action_do))


def under_cursor(front: FrontScreen) -> list[Definition]:
    """What is meant by the row, cell, line or event under the cursor: the most telling few."""
    pane, texts = front.focused, front.words_here
    if isinstance(pane, LinePane) and isinstance(pane.choice, Finding):
        rule = RULES.get(pane.choice.rule)
        return [Definition(rule.title, (), "", (), " ".join(rule.help.split()))] if rule else []
    if isinstance(pane, LinePane) and (hint := getattr(pane.choice, "hint", "")):
        return [Definition(getattr(pane.choice, "label", ""), (), "", (), hint)]
    if isinstance(pane, LinePane):
        line = pane.text_under_cursor
        texts = [] if line.endswith("?") else [line.split("  ")[0], *line.split()[:1]]
    elif isinstance(pane, Grid) and pane.row is not None and pane.columns:
        chosen = pane.columns[pane.column]
        cells = (pane.cell(pane.row, column)[0] for column in pane.columns if column.is_text)
        texts = [pane.cell(pane.row, chosen)[0], *cells, chosen.header]
    words = [part.strip() for text in texts for part in (text, text.partition(":")[0])]
    return list(dict.fromkeys(one for word in words if word for one in define(word)))[:TOLD]


def _meanings(terms: Sequence[Definition], width: int) -> list[Line]:
    """A heading and a paragraph for each."""
    lines: list[Line] = []
    for term in terms:
        lines += [[("", 0)], [(f" {term.name}", BOLD)]]
        lines += [[(f"   {line}", 0)] for line in wrapped(term.text, width - 5)]
    return lines


def whole_keys(keys: str, room: int) -> str:
    """As many of some keys as fit; one that is too long by itself is cut."""
    while cell_len(keys) > room and " " in keys:
        keys = keys.rpartition(" ")[0]
    return cut(keys, room)
