"""What of a comparison can be written to a file."""

from __future__ import annotations

from nsys_tui.analysis.compare.answer import DOCUMENT
from nsys_tui.analysis.compare.comparison import Comparison
from nsys_tui.analysis.compare.stacks import DifferentialStacks
from nsys_tui.export.differential import differential_graph, differential_lines
from nsys_tui.text.compare import as_markdown
from nsys_tui.text.documents import document_text
from nsys_tui.ui.saving import Writer, text_writer


def comparison_writers(comparison: Comparison) -> dict[str, Writer]:
    """The whole comparison; other suffixes hold the table that is shown."""
    return {
        ".md": text_writer(lambda: [as_markdown(comparison)], 0),
        ".json": text_writer(
            lambda: document_text(DOCUMENT, comparison, None, comparison.notes), 0
        ),
    }


def flame_writers(stacks: DifferentialStacks, title: str) -> dict[str, Writer]:
    """The flame graph of the difference, and its stacks with both weights."""
    return {
        ".svg": text_writer(lambda: [differential_graph(stacks, title)], 0),
        ".folded": text_writer(lambda: (f"{line}\n" for line in differential_lines(stacks)), 0),
    }
