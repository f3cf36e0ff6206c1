"""FindingsPane: what is wrong, the worst first, the one under the cursor told in full."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nsys_tui.analysis.rules.finding import Finding, command_of
from nsys_tui.render.cells import BOLD, Line
from nsys_tui.ui.findings import Findings
from nsys_tui.ui.screens.overview import data, panes
from nsys_tui.ui.widgets.lines import Built, LinePane
from nsys_tui.units import format_share


class FindingsPane(LinePane):
    """Shows facts of the report until there are findings."""

    _titled = ""
    """Heading of the findings; empty until there are some."""
    _report = ""
    """Its name, for commands."""
    whole = 0
    """Lines of all findings told in full; 0 while there are none."""

    def show_findings(
        self,
        findings: Findings,
        name: str,
        place: Callable[[Finding], str],
        facts: Callable[[int], list[Line]],
    ) -> None:
        """Fills the pane.

        Args:
            findings: one at least.
            name: of the report.
            place: tells where a finding is.
            facts: lines of a width that stand below.
        """
        ranked, unseen = findings.ranked, findings.unseen

        def gain(entry: Finding) -> str:
            return format_share(entry.saved_ns, entry.of_ns) if entry.saved_ns > 0 else ""

        def told(
            doubted: Sequence[object], full: Sequence[object], width: int
        ) -> tuple[list[Line], list[Finding | None]]:
            return panes.finding_lines(ranked, full, width, place, gain, doubted, name)

        def build(width: int) -> Built:
            chosen = self.choice or ranked[0]
            more = panes.unseen_lines(unseen, width, chosen=chosen is unseen)
            below = facts(width)
            lines, choices = told([], ranked, width)
            self.whole = len(lines + more)
            if self.whole > self.size.height:
                lines, choices = told([], [chosen], width)
            for doubted in ([chosen], ranked) if not below else ():
                wider = told(doubted, ranked, width)
                if len(wider[0] + more) <= self.size.height:
                    lines, choices = wider
            rest: list[object] = [unseen, *[None] * (len(more) - 1)] * bool(more)
            head: list[Line] = [[("Report", BOLD)]] if below else []
            rest += (panes.Chosen("fact", str(number)) for number in range(len(head + below)))
            return [*lines, *more, *head, *below], [*choices, *rest]

        self.show_choices(build)
        self._report = name
        priced = ", % of the time each could give back" * any(map(gain, ranked))
        self._titled = f"Findings ({len(ranked)}){priced}"
        self._head()

    def forget(self) -> None:
        """Nothing is found yet."""
        self._titled, self.whole = "", 0
        self.heading("Report")

    def _head(self) -> None:
        """How many there are, and what records or prints the one under the cursor."""
        command = self.choice.command if isinstance(self.choice, Finding) else ""
        record = "p: record it" if data.recording(self.choice) else ""
        self.heading(self._titled, record or command_of(command, self._report))

    def on_line_pane_moved(self) -> None:
        """The finding under the cursor is told in full."""
        if self._titled:
            self.rebuild()
            self.scroll_to_cursor()
            self._head()
