"""The changes of one group by name: which rows there are, and which of them changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_tui.analysis.compare.stats import THRESHOLD
from nsys_tui.ui.screens.compare.columns import BARRED, GROUPS, finding_columns, row_columns
from nsys_tui.ui.widgets.table.table import VirtualTable

if TYPE_CHECKING:
    from nsys_tui.analysis.compare.comparison import Comparison
    from nsys_tui.analysis.compare.rows import Row


class ChangesTable(VirtualTable):
    """Rows of a group, the largest change first."""

    def __init__(self, empty: str) -> None:
        super().__init__("Kernels", empty=empty, id="changes")
        self.group = "kernels"
        self.threshold = THRESHOLD
        self.found: Comparison | None = None
        self._rows: tuple[Row, ...] = ()

    @property
    def change(self) -> Row | None:
        """The change under the cursor."""
        place = self.row
        return self._rows[place] if place is not None and place < len(self._rows) else None

    def forget(self) -> None:
        """Other reports: nothing is compared yet."""
        self.found, self._rows = None, ()
        self.show_rows((), 0)

    def tell(self, text: str) -> None:
        """Says why there are no rows."""
        self.empty = text
        self.refresh()

    def turn(self) -> None:
        """The next group."""
        order = [*GROUPS]
        self.group = order[(order.index(self.group) + 1) % len(order)]
        self.fill()

    def open_on_rows(self) -> None:
        """Another pair is shown by what both have rows of: not every report has kernels."""
        groups = self.found.groups if self.found is not None else {}
        held = [name for name, (_, keys) in GROUPS.items() if any(groups[key] for key in keys)]
        if held and self.group not in (*held, "findings"):
            self.group = held[0]
            self.fill()

    def fill(self) -> None:
        """The rows of the group; the cursor stays on its name."""
        found = self.found
        if found is None:
            return
        here = self.change.name if self.change is not None else ""
        self.title, groups = GROUPS[self.group]
        if self.group == "findings":
            self._rows = ()
            changes = found.findings or ()
            self.note = "" if found.findings is not None else "running the rules ..."
            self.empty = "no findings on either side" if found.findings is not None else "..."
            self.show_rows(finding_columns(changes), len(changes))
            return
        rows = [row for group in groups for row in found.groups[group]]
        self._rows = tuple(sorted(rows, key=lambda row: (-abs(row.delta), -row.a_total)))
        per = "per step, " if found.by_step else ""
        signs = "" if self.size.width >= BARRED else "  < less  > more"
        self.note = f"{per}by |delta|{signs}  threshold {100 * self.threshold:g}%"
        self.empty = next(
            (note for note in found.notes if groups[0] in note.lower()), found.why_empty(groups[0])
        )
        names = [row.name for row in self._rows]
        row = names.index(here) if here in names else None
        columns = row_columns(self._rows, self.size.width, self.app.glyphs.bar)
        self.show_rows(columns, len(self._rows), row=row)

    def step_change(self, step: int) -> bool:
        """Goes to the next row that is better or worse; False where none is."""
        changed = [place for place in range(self.shown) if self._has_changed(self.row_at(place))]
        ahead = [place for place in changed if (place - self.cursor) * step > 0]
        if changed:
            near = min(ahead, key=lambda p: abs(p - self.cursor)) if ahead else changed[0]
            self.put_cursor(near)
        return bool(changed)

    def _has_changed(self, row: int) -> bool:
        if self.group == "findings":
            findings = self.found.findings if self.found is not None else None
            return findings is not None and findings[row].status != "in both"
        return bool(self._rows) and self._rows[row].verdict in ("better", "worse")
