"""Areas: a span of time on some lanes, and what happened there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.timeline.area import Area, area
from nsys_tui.names import cell_len, cut, visible
from nsys_tui.render.cells import Emphasis, Ink, category_ink, style
from nsys_tui.render.glyphs import LETTERS
from nsys_tui.state import Selection, Window
from nsys_tui.times import window_text
from nsys_tui.ui.screens.timeline.core import TimelineCore
from nsys_tui.ui.screens.timeline.place import keys_of
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.units import format_count, format_duration, format_share

if TYPE_CHECKING:
    from nsys_tui.analysis.timeline.lineup import Lineup
    from nsys_tui.analysis.timeline.tracks import Track
    from nsys_tui.state import ViewState

    Line = list[tuple[str, int]]

MUTED: Final = style(Ink.MUTED)
LOW_NAME: Final = 24
"""Cells of a name where there are few lines."""
TITLE: Final = style(emphasis=Emphasis.BOLD)


class Areas(TimelineCore):
    """Actions on areas."""

    def action_timeline_area(self) -> None:
        """Begins an area at the cursor, or ends it there."""
        if self.area_from is None:
            self.area_from = (self.cursor_time, self._lane_key)
            self.app.say("area begins: v ends it, esc gives it up")
            self.redraw()
        else:
            start, lane = self.area_from
            self.area_from = None
            self.app.say("")
            self.select_area(start, self.cursor_time, lane, self._lane_key)

    def select_area(self, start: int, end: int, first: str, last: str) -> None:
        """Selects an area: the lanes between two rows, or all where it is one and the same.

        The column of the cursor belongs to the area.
        """
        lo, hi = sorted((start, end))
        cell = self.canvas.view.cell(hi)
        if cell is not None:
            hi = max(int(self.canvas.view.edges[cell + 1]), lo + 1)
        lanes: tuple[str, ...] = ()
        if first != last:
            found = (self.rows.number(first), self.rows.number(last))
            numbers = [number for number in found if number is not None]
            chosen = self.rows[min(numbers) : max(numbers) + 1]
            lanes = tuple(key for track in chosen for key in keys_of(track))
        span = Window(lo, max(hi, lo + 1))
        self.point(selection=Selection("area", (), span, lanes, label="area"))

    def state_changed(self, old: ViewState, new: ViewState) -> None:
        """A new area is counted."""
        super().state_changed(old, new)
        if old.selection != new.selection or old.display.names != new.display.names:
            self.count_area()

    def count_area(self) -> None:
        """Counts the selected area in a worker."""
        selection = self.state.selection
        if selection is None or selection.kind != "area" or selection.span is None:
            return
        span, names, keys = selection.span, self.state.display.names, frozenset(selection.lanes)
        lineup, hidden = self.store.filtered.lineup, self.state.display.hidden
        folded = self._folded & keys

        def count() -> Area:
            tracks = tracks_in(lineup, hidden, keys, folded)
            return area(tracks, (span.start, span.end), names)

        self.compute("area", count, self._show_area)

    def _show_area(self, found: Area) -> None:
        self.area = found
        span = Window(*found.span)
        text = window_text(span, self.state.display.time, self.report)
        lanes = self.state.selection.lanes if self.state.selection is not None else ()
        where = f"{len(lanes)} lanes" if lanes else "all lanes"
        title = f"Area {text}, {format_duration(span.width)}"
        side = self.query_one("#area", LinePane)
        side.heading(title, where)
        side.show_built(lambda width: area_lines(found, width, ascii_only=self.app.ascii))
        if self.state.selection is not None and self.state.selection.kind == "area":
            self.strip.heading(f"{title}, {where}", "enter: all")
            self.strip.show_built(
                lambda width: (low_lines if self.strip_is_low else area_lines)(
                    found, width, ascii_only=self.app.ascii
                )
            )

    def show_report(self) -> None:
        """No area yet."""
        super().show_report()
        pane = self.query_one("#area", LinePane)
        pane.heading("Area (v)")
        pane.show([[(" v begins an area, v ends it", MUTED)]])

    def clear_area(self) -> bool:
        """Gives up an unfinished area; tells whether there was one."""
        unfinished = self.area_from is not None
        self.area_from = None
        if unfinished:
            self.app.say("")
            self.redraw()
        return unfinished


def tracks_in(
    lineup: Lineup, hidden: frozenset[str], keys: frozenset[str], folded: frozenset[str]
) -> list[Track]:
    """Tracks of some rows, with what is folded away below them; all that are not hidden."""
    shown = [lineup.tracks[place] for place in lineup.unhidden(hidden).tolist()]
    if not keys:
        return shown
    return [t for t in shown if t.key in keys or folded.intersection(t.parents)]


def area_lines(found: Area, width: int, *, ascii_only: bool = False) -> list[Line]:
    """Categories, then names; side by side where there is room."""
    categories = _categories(found)
    names = _names(found, width, ascii_only=ascii_only)
    if width < 76:
        return [*categories, [], *names]
    left = 38
    names = _names(found, width - left - 2, ascii_only=ascii_only)
    lines: list[Line] = []
    for number in range(max(len(categories), len(names))):
        line = categories[number] if number < len(categories) else []
        used = sum(len(text) for text, _ in line)
        rest = names[number] if number < len(names) else []
        lines.append([*line, (" " * (left - used), 0), *rest])
    return lines


def _categories(found: Area) -> list[Line]:
    lines: list[Line] = [[(f" {'category':<9}{'time':>10}{'%':>7}{'events':>9}", TITLE)]]
    for row in found.categories:
        share = format_share(row.busy, row.of).rstrip("%") if row.of else "-"
        text = f" {row.name:<9}{format_duration(row.busy, 3):>10}{share:>7}{row.events:>9,}"
        lines.append([(text, 0)])
    return lines


def _names(found: Area, width: int, *, ascii_only: bool) -> list[Line]:
    lines: list[Line] = [[(f" {'top in area':<{max(12, width - 22)}}{'time':>10}{'n':>9}", TITLE)]]
    room = max(8, width - 24)
    for row in found.names:
        name = squeezed(visible(row.name, ascii_only), room)
        more = f"+{row.straddling}" if row.straddling else ""
        figures = f"{format_duration(row.total, 3):>10}{format_count(row.events) + more:>9}"
        letter = (f" {LETTERS[row.category]} ", style(category_ink(row.category)))
        lines.append([letter, (f"{name:<{room}}{figures}", 0)])
    if found.more_names:
        lines.append([(f" and {found.more_names:,} more names", MUTED)])
    return lines


def low_lines(found: Area, width: int, *, ascii_only: bool = False) -> list[Line]:
    """The same in a few lines: the GPU's categories, then names, then the host's categories."""
    work: list[tuple[str, int]] = []
    host: list[tuple[str, int]] = []
    for row in found.categories:
        share = f" {format_share(row.busy, row.of)}" if row.of else ""
        text = f"{row.name} {format_duration(row.busy, 3)}{share} {format_count(row.events)}x"
        (work if row.of else host).append((text, 0))
    names: list[tuple[str, int]] = []
    for entry in found.names:
        name = squeezed(visible(entry.name, ascii_only), LOW_NAME)
        text = f"{name} {format_duration(entry.total, 3)} {format_count(entry.events)}x"
        names.append((text, category_ink(entry.category)))
    return [*_flow(work, width), *_flow(names, width), *_flow(host, width)]


def _flow(parts: list[tuple[str, int]], width: int) -> list[Line]:
    lines: list[Line] = []
    used = width
    for text, code in parts:
        if used + cell_len(text) + 3 > width:
            lines.append([])
            used = 0
        lines[-1].append((f" {text}  ", code))
        used += cell_len(text) + 3
    return lines


def squeezed(name: str, cells: int) -> str:
    """A name cut in the middle: kernels of one library differ at their ends."""
    if cell_len(name) <= cells or not name.isascii():
        return cut(name, cells)
    head = (cells - 1) // 2
    return f"{name[:head]}~{name[head + 1 - cells :]}"
