"""The summary of a comparison as lines: what is unfair first, then the verdict and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nsys_tui.analysis.compare.comparison import Comparison
from nsys_tui.analysis.compare.judgement import FORCE
from nsys_tui.analysis.compare.rows import Row
from nsys_tui.analysis.compare.stats import Verdict
from nsys_tui.names import cut, visible
from nsys_tui.render.cells import BOLD, MUTED, Line
from nsys_tui.text.compare import amount, change_sentences, delta_text, ratio_text
from nsys_tui.ui.pane_text import wrapped
from nsys_tui.ui.screens.compare.changes import VERDICT_INKS
from nsys_tui.ui.screens.compare.pair import EVERYTHING
from nsys_tui.units import format_duration

FIRST: Final = ("wall", "busy_share", "exposed_comm", "idle")
"""Figures that come first, because a short pane shows few."""
UNLIKE: Final = " a part against a whole: only % each is of like with like; 0: whole of both"


def summary_lines(
    comparison: Comparison, width: int, titles: Sequence[str] = (), *, single: bool = False
) -> list[Line]:
    """Everything that is said about the whole.

    Args:
        comparison: the comparison.
        width: cells of a line.
        titles: what is looked at of A and B; none where it is everything.
        single: it is one iteration on either side, which has no spread.
    """
    lines: list[Line] = []
    unfair = [difference.what for difference in comparison.differences if difference.unfair]
    if unfair:
        text = f"not fair, these differ: {', '.join(unfair)}"
        lines.append([(" ! ", BOLD), (visible(cut(text, max(width - 3, 1))), BOLD)])
    if titles and not single:
        lines.append(_only(titles, width))
    lines += _single(comparison, titles, width) if single else _verdict(comparison, width)
    if not comparison.by_step and EVERYTHING in titles:
        lines.append([(UNLIKE, MUTED)])
    else:
        inks = [VERDICT_INKS.get(row.verdict, 0) for row in comparison.largest]
        for ink, text in zip(inks, change_sentences(comparison), strict=True):
            lines.append([(" > ", ink), (visible(cut(text, max(width - 3, 1))), 0)])
    head = f" {'':17}{'A':>10} {'B':>10} {'delta':>10} {'%':>7}  verdict"
    lines.append([(head, MUTED)])
    rows = {row.key: row for row in comparison.summary}
    keys = [*FIRST, *(key for key in rows if key not in FIRST)]
    shown = [rows[key] for key in keys if key in rows and _counts(rows[key])]
    steps = f" ({len(comparison.b.steps)} steps)" if comparison.by_step else ""
    lines += [_figure(row, steps) for row in shown]
    for difference in comparison.differences:
        sign = "! " if difference.unfair else "- "
        text = f" {sign}{difference.what}: {difference.a} | {difference.b}"
        lines.append([(visible(text), 0 if difference.unfair else MUTED)])
    lines += [[(f" * {visible(note)}", MUTED)] for note in comparison.notes]
    return lines


def _single(comparison: Comparison, titles: Sequence[str], width: int) -> list[Line]:
    """How much longer one iteration takes than another: there is nothing to judge."""
    wall = comparison.row("wall")
    if wall is None:
        return []
    more = "longer" if wall.delta > 0 else "shorter"
    amounts = f"{amount(wall, wall.b_total)} against {amount(wall, wall.a_total)}"
    took = format_duration(round(abs(wall.delta)))
    text = f"{titles[1]} takes {took} {more} than {titles[0]}: {amounts} ({ratio_text(wall)})"
    return [[(f" {visible(line)}", BOLD)] for line in wrapped(text, width - 2)]


def _only(titles: Sequence[str], width: int) -> Line:
    """Which parts of A and B are compared."""
    room = max((width - len(" only A:   B: ")) // 2, 1)
    a, b = (visible(cut(title, room)) for title in titles)
    return [(" only A: ", MUTED), (a, 0), ("  B: ", MUTED), (b, 0)]


def _counts(row: Row) -> bool:
    return bool(row.a_total or row.b_total) or row.key == "wall"


def _verdict(comparison: Comparison, width: int) -> list[Line]:
    ink = VERDICT_INKS.get(comparison.verdict, 0) | BOLD
    reason = comparison.judgement.reason.replace(FORCE, f"nsys-tui compare {FORCE}")
    first, *rest = wrapped(f"{comparison.verdict}: {reason}", width - 4)
    word, colon, text = first.partition(": ")
    return [
        [(f" {word}{colon}", ink), (text, 0)],
        *([(f"   {line}", 0)] for line in rest),
    ]


def _figure(row: Row, steps: str) -> Line:
    name = f"{row.name}{steps if row.key == 'wall' else ''}"
    cells = f"{amount(row, row.a_total):>10} {amount(row, row.b_total):>10} {delta_text(row):>10}"
    word = row.kind if row.verdict is Verdict.UNKNOWN else str(row.verdict)
    ratio = "" if row.share else ratio_text(row)
    return [
        (f" {cut(name, 17):<17}{cells} {ratio:>7}  ", 0),
        (word, VERDICT_INKS.get(row.verdict, 0)),
    ]
