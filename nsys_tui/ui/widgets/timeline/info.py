"""The line below the lanes: filter, search, hidden lanes."""

from __future__ import annotations

from typing import ClassVar

from textual.content import Content
from textual.visual import VisualType

from nsys_tui.names import cell_len, cut, visible
from nsys_tui.ui.widgets.chrome import Line


class InfoLine(Line):
    """A text at the left and one at the right; the left one gives way."""

    DEFAULT_CSS: ClassVar[str] = """
    InfoLine { color: $muted; }
    """

    def render(self) -> VisualType:
        """Both texts with blanks between."""
        left, right = (visible(str(part)) for part in (*self._shown, "", "")[:2])
        room = max(0, self.size.width - cell_len(right) - 2)
        left = cut(left, room)
        return Content(f"{left}{' ' * (self.size.width - cell_len(left) - cell_len(right))}{right}")
