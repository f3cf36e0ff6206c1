"""LinePane: a pane of ready-made lines, with a cursor where they can be chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rich.segment import Segment
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from nsys_tui.names import both_ends, cell_len, cut, pad, visible
from nsys_tui.render.cells import BOLD, MUTED, Emphasis, style
from nsys_tui.render.glyphs import is_drawn
from nsys_tui.ui.pane_text import wrapped
from nsys_tui.ui.widgets.frame import ScrolledPane

Line: TypeAlias = "Sequence[tuple[str, int]]"
"""Runs of (text, style code), as ``Row.runs`` of ``render`` gives them."""
Built: TypeAlias = "tuple[Sequence[Line], Sequence[object]]"
"""Lines, and what each stands for."""


MOST: Final = 4
"""Lines of a verdict."""
CURSOR: Final = style(emphasis=Emphasis.REVERSE | Emphasis.BOLD)


class LinePane(ScrolledPane):
    """Shows lines; with ``choices`` the cursor moves over those that stand for something.

    Args:
        heading: text on the frame's upper edge.
        remark: text at the right end of that edge.
        framed: False leaves the frame to a parent.
        always_cursor: show the cursor also without focus.
        names: texts are names, whose ends are kept where they are too long.
    """

    @dataclass
    class LineMessage(Message):
        """Something about a line."""

        pane: LinePane
        choice: object

    class Chosen(LineMessage):
        """A line was double-clicked or Enter was pressed on it."""

    class Moved(LineMessage):
        """The cursor stands on another line, or the pane got the focus."""

    class Resized(Message):
        """The pane has another size, and lines of that width."""

    @dataclass
    class Clicked(Message):
        """A cell of lines that are drawn, not chosen from, was clicked.

        Attributes:
            column: the cell.
            twice: whether it was a double click.
        """

        pane: LinePane
        column: int
        twice: bool

    def __init__(
        self,
        heading: str = "",
        remark: str = "",
        *,
        id: str | None = None,  # noqa: A002
        framed: bool = True,
        always_cursor: bool = False,
        names: bool = False,
    ) -> None:
        super().__init__(id=id)
        self._names = names
        self.framed = framed
        self._always_cursor = always_cursor
        self._lines: Sequence[Line] = ()
        self._choices: Sequence[object] = ()
        self._build: Callable[[int], Built] | None = None
        self.cursor = 0
        self.heading(heading, remark)

    def show_built(self, build: Callable[[int], Sequence[Line]]) -> None:
        """Replaces the lines by what ``build`` gives for a width, now and after each resizing."""
        self.show_choices(lambda width: (build(width), ()))

    def show_choices(self, build: Callable[[int], Built]) -> None:
        """The same with lines that can be chosen."""
        self._build = build
        self.rebuild()

    def on_resize(self) -> None:
        """Lines that depend on the width are built anew."""
        self.rebuild()
        self.post_message(self.Resized())

    def watch_show_vertical_scrollbar(self) -> None:
        """A scrollbar takes a column, and Textual tells of no resizing then."""
        self.rebuild()

    def rebuild(self) -> None:
        """Builds the lines anew, after what they depend on has changed; the choice stays."""
        if self._build is not None:
            chosen = self.choice
            lines, choices = self._build(max(1, self.room))
            if chosen is not None and chosen in choices:
                self.cursor = choices.index(chosen)
            self._set(lines, choices)

    def show(self, lines: Sequence[Line], choices: Sequence[object] = ()) -> None:
        """Replaces the lines.

        Args:
            lines: runs of text per line; untrusted text is made visible when drawn.
            choices: per line what it stands for, None for a line that cannot be chosen; empty when
                no line can.
        """
        self._build = None
        self._set(lines, choices)

    def show_texts(self, texts: Iterable[str], ink: int = 0) -> None:
        """Shows texts that are folded to the pane's width."""
        whole = [*texts]
        self.show_built(
            lambda width: [[(line, ink)] for text in whole for line in wrapped(text, width)]
        )

    def say(self, text: str) -> None:
        """Shows a text in the place of lines, such as why there are none."""
        self.show([[(line, MUTED)] for line in text.splitlines()])

    def _set(self, lines: Sequence[Line], choices: Sequence[object]) -> None:
        changed, self._choices = lines != self._lines, choices
        self._lines, cursor = lines, self.cursor
        self.virtual_size = Size(0, len(lines))
        self.cursor = self._nearest(min(cursor, max(0, len(lines) - 1)), 1)
        if changed or cursor != self.cursor:
            self.refresh()

    @property
    def _shows_cursor(self) -> bool:
        return self._always_cursor or self.has_focus

    @property
    def choice(self) -> object:
        """What the line under the cursor stands for, or None."""
        return self._choices[self.cursor] if self.cursor < len(self._choices) else None

    @property
    def text_under_cursor(self) -> str:
        """The line under the cursor as plain text."""
        lines = self._lines[self.cursor : self.cursor + 1]
        return "".join(text for line in lines for text, _ in line).strip()

    def render_line(self, y: int) -> Strip:
        """Draws one line, cut to the width; the chosen one is reversed and marked."""
        row = self.scroll_offset.y + y
        width = self.room
        inks = self.app.inks
        if row >= len(self._lines):
            return Strip.blank(width, inks[0])
        is_cursor = row == self.cursor and self.choice is not None and self._shows_cursor
        segments: list[Segment] = []
        room = width
        for text, code in self._lines[row]:
            shown = _fitting(visible(text), room, both=self._names)
            room -= cell_len(shown)
            segments.append(Segment(shown, inks[code]))
        segments.append(Segment(" " * room, inks[0]))
        if is_cursor:
            segments = [s if is_drawn(s.text) else Segment(s.text, inks[CURSOR]) for s in segments]
            if (first := segments[0]).text.startswith(" "):
                segments[:1] = [Segment(">", inks[CURSOR]), Segment(first.text[1:], first.style)]
        return Strip(segments, width)

    def action_move(self, step: int) -> None:
        """Moves the cursor, or scrolls where nothing can be chosen."""
        if not self._choices:
            self.scroll_relative(y=step, animate=False)
            return
        target = min(max(self.cursor + step, 0), len(self._choices) - 1)
        self.cursor = self._nearest(target, 1 if step > 0 else -1)
        self.scroll_to_cursor()
        self.refresh()
        self.post_message(self.Moved(self, self.choice))

    def scroll_to_cursor(self) -> None:
        """Brings the line under the cursor into view, with those below that tell more of it."""
        lines = self._choices[self.cursor + 1 :]
        more = next((n for n, choice in enumerate(lines) if choice is not None), len(lines))
        # Forced: until a layout shows the scrollbar of lines that are new, Textual scrolls nothing.
        self.scroll_to_region(Region(0, self.cursor, 1, 1 + more), animate=False, force=True)

    def on_focus(self) -> None:
        """Tells what is under the cursor."""
        self.post_message(self.Moved(self, self.choice))

    def action_nav_open(self) -> None:
        """Tells the screen what was chosen."""
        if self.choice is not None:
            self.post_message(self.Chosen(self, self.choice))

    def action_copy_cell(self) -> None:
        """Copies the line under the cursor."""
        self.app.copy(self.text_under_cursor, "1 line")

    def action_copy_row(self) -> None:
        """Copies all lines of the pane."""
        text = "\n".join("".join(text for text, _ in line).rstrip() for line in self._lines)
        self.app.copy(text, f"{len(self._lines)} lines")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enter works only where there is something to choose."""
        if action == "nav_open":
            return self.choice is not None
        return super().check_action(action, parameters)

    def on_click(self, event: events.Click) -> None:
        """A click moves the cursor, a double click chooses."""
        spot = event.get_content_offset(self)
        if spot is None:
            return
        if not self._choices:
            self.post_message(self.Clicked(self, spot.x, event.chain > 1))
            return
        line = self.scroll_offset.y + spot.y
        if line < len(self._choices) and self._choices[line] is not None:
            self.cursor = line
            self.refresh()
            self.post_message(self.Moved(self, self.choice))
            if event.chain > 1:
                self.action_nav_open()

    def _nearest(self, row: int, step: int) -> int:
        """The chooseable line at ``row`` or the next one in the direction, else in the other."""
        rows = range(len(self._choices))
        ahead = [r for r in rows if self._choices[r] is not None and (r - row) * step >= 0]
        behind = [r for r in rows if self._choices[r] is not None and (r - row) * step < 0]
        return min(ahead or behind or [row], key=lambda r: abs(r - row))


def _fitting(text: str, room: int, *, both: bool) -> str:
    """A text in some cells; where words are left out ``~`` says so."""
    if cell_len(text.rstrip()) <= room or is_drawn(text):
        return cut(text, room)
    return pad(both_ends(text, room) if both else text, room)


class Verdict(LinePane, can_focus=False):
    """What a screen says first, in as many lines as that takes: read, not chosen from."""

    DEFAULT_CSS = """
    Verdict { height: 1; }
    """

    def __init__(self) -> None:
        super().__init__(id="verdict", framed=False)

    def tell(self, text: str) -> None:
        """Shows it."""

        def build(width: int) -> list[Line]:
            lines = wrapped(text, width - 1)
            if len(lines) > MOST:
                lines[MOST - 1 :] = [wrapped(lines[MOST - 1], width - 4)[0] + " .."]
            self.styles.height = max(1, len(lines))
            return [[(f" {line}", BOLD)] for line in lines]

        self.show_built(build)
