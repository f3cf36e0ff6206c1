"""Framed: what makes a widget a pane: a frame with a heading, its remark, and a sign of focus."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.scroll_view import ScrollView
from textual.strip import Strip

from nsys_tui.names import cell_len, pad, visible
from nsys_tui.ui.runtime.faults import KeepsDrawing

if TYPE_CHECKING:
    from nsys_tui.render.cells import Cells
    from nsys_tui.ui.host import Host

FAR: Final = 1 << 62
_BORDER_CELLS = 6
"""Corner, line and blank on either side of a heading."""


def heading_text(left: str, right: str, width: int, focused: bool) -> str:
    """``Time split ───── enter: go`` for a frame of ``width`` cells.

    Of the right part, what stands before two blanks gives way first, then all of it.
    """
    room = max(0, width - _BORDER_CELLS)
    left = visible(f"> {left}" if focused else left)
    right = visible(right)
    while right and cell_len(left) + cell_len(right) + 3 > room:
        right = right.partition("  ")[2].lstrip()
    left = pad(left, room).rstrip()
    fill = room - cell_len(left) - cell_len(right) - 2
    return f"{left} {'─' * fill} {right}" if right else left


class Framed(KeepsDrawing):
    """Mixin for widgets that are panes; put it after the widget class.

    The frame comes from the app's style sheet (class ``framed``). A focused pane shows ``>`` before
    its heading, so that focus is seen without colour.
    """

    framed = True
    """False leaves the frame to a parent."""
    _heading: tuple[str, str] = ("", "")

    def heading(self, left: str, right: str = "") -> None:
        """Sets the heading and the remark at the right end of the upper edge."""
        if (left, right) != self._heading:
            self._heading = (left, right)
            self._draw_heading()

    def on_mount(self) -> None:
        """Joins the style of panes."""
        self.set_class(self.framed, "framed")
        self._draw_heading()

    def on_resize(self) -> None:
        """The fill between heading and remark follows the width."""
        self._draw_heading()

    def on_focus(self) -> None:
        """Shows the sign of focus."""
        self._draw_heading(focused=True)

    def on_blur(self) -> None:
        """Hides the sign of focus."""
        self._draw_heading(focused=False)

    def _draw_heading(self, focused: bool | None = None) -> None:
        shown = self.has_focus if focused is None else focused
        text = heading_text(*self._heading, self.outer_size.width, shown)
        self.border_title = Content(text)


class DrawnPane(Framed):
    """A pane of drawn rows, which are drawn anew when something that they depend on has changed."""

    app: Host
    _drawn: tuple[object, Cells] | None = None

    @abstractmethod
    def depends_on(self) -> tuple[object, ...]:
        """What the drawing depends on besides size, focus, theme and characters."""

    @abstractmethod
    def draw(self) -> Cells:
        """The rows from top to bottom."""

    def redraw(self) -> None:
        """Draws anew: what is drawn is not the same any more."""
        self._drawn = None
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One of the rows."""
        width, inks = self.size.width, self.app.inks
        key = (self.size, self.has_focus, id(inks), self.app.ascii, *self.depends_on())
        if self._drawn is None or self._drawn[0] != key:
            self._drawn = (key, self.draw())
        rows = self._drawn[1]
        if y >= len(rows):
            return Strip.blank(width, inks[0])
        return Strip([Segment(text, inks[code]) for text, code in rows[y].runs()], width)


class ScrolledPane(ScrollView, Framed, can_focus=True):
    """A pane of lines with a cursor that keys move."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", f"move(-{FAR})", show=False),
        Binding("end,G", f"move({FAR})", show=False),
    ]
    DEFAULT_CSS: ClassVar[str] = """
    ScrolledPane { overflow-x: hidden; overflow-y: auto; }
    """
    app: Host

    @property
    def room(self) -> int:
        """Columns for text: a scrollbar takes one."""
        return self.size.width - self.scrollbar_size_vertical

    @abstractmethod
    def action_move(self, step: int) -> None:
        """Moves the cursor by lines."""

    def action_page(self, direction: int) -> None:
        """Moves the cursor by what is visible."""
        self.action_move(direction * max(1, self.size.height - 1))
