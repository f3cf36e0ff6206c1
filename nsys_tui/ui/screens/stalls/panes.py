"""Idle time by cause, as a pane and as one line; and what the table of stalls leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsys_tui.analysis.stalls.rows import HEAD, TAIL
from nsys_tui.names import cell_len, visible
from nsys_tui.render.cells import MUTED, STALL
from nsys_tui.ui.screens.stalls.columns import plain_duration
from nsys_tui.units import format_count, format_duration, format_share, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.analysis.stalls.gaps import Stalls
    from nsys_tui.analysis.stalls.rows import StallGroup
    from nsys_tui.render.cells import Line
    from nsys_tui.render.glyphs import Glyphs


BAR: Final = 6
BELOW: Final = "below threshold"
NOT_CAUSES: Final = (HEAD, TAIL, BELOW)


@dataclass(frozen=True)
class Sums:
    """Idle time over all GPUs in scope."""

    causes: tuple[StallGroup, ...]
    """Between operations, largest first."""
    below_count: int
    below_ns: int
    head_ns: int
    tail_ns: int
    inner_ns: int
    """Between the first and the last operation of each GPU."""
    base_ns: int
    """What shares of time are of: span or window, for each GPU."""
    device_count: int
    exposed_ns: int
    """Communication that nothing hides; not idle, but waiting too."""
    notes: tuple[str, ...]

    @property
    def inner_share(self) -> str:
        """Idle between operations as a share of the time of all GPUs."""
        return format_share(self.inner_ns, self.base_ns)


def sums_of(
    result: Stalls, groups: Sequence[StallGroup], base_ns: int, exposed_ns: int, notes: list[str]
) -> Sums:
    """Adds up the devices.

    Args:
        result: the stalls.
        groups: idle time by cause.
        base_ns: length of the span or window of one GPU.
        exposed_ns: exposed communication of all GPUs.
        notes: what makes causes coarser.
    """
    totals = result.totals
    head, tail = sum(t.head_ns for t in totals), sum(t.tail_ns for t in totals)
    return Sums(
        causes=tuple(group for group in groups if group.key not in NOT_CAUSES),
        below_count=sum(t.below_count for t in totals),
        below_ns=sum(t.below_ns for t in totals),
        head_ns=head,
        tail_ns=tail,
        inner_ns=result.idle_ns - head - tail,
        base_ns=base_ns * len(totals),
        device_count=len(totals),
        exposed_ns=exposed_ns,
        notes=tuple(notes),
    )


def sum_lines(sums: Sums, threshold_ns: int, width: int) -> list[Line]:
    """Two lines for screens without room for the pane: causes, and what is not in the table."""
    if not sums.device_count:
        return []
    rest = (
        f"below {plain_duration(threshold_ns)}: {plural(sums.below_count, 'gap')},"
        f" {format_duration(sums.below_ns)};"
        f"  before work {format_duration(sums.head_ns)}, after {format_duration(sums.tail_ns)}"
    )
    lines: list[Line] = [[(f" {_causes_text(sums, width - 2)}", 0)], [(f" {rest}", MUTED)]]
    return lines + [[(f" {note}", MUTED)] for note in sums.notes]


def _causes_text(sums: Sums, width: int) -> str:
    """As many causes as fit, and how many do not."""
    text = ""
    for place, group in enumerate(sums.causes):
        part = f"{group.key} {format_duration(group.idle_ns)} ({format_count(group.count)})"
        left = len(sums.causes) - place - 1
        more = f", {left} more (g)" if left else ""
        joined = f"{text}, {part}" if text else part
        if text and cell_len(joined + more) > width:
            return f"{text}, {left + 1} more (g)"
        text = joined
    return text or "no gap from the threshold on"


def cause_lines(sums: Sums, threshold_ns: int, width: int, glyphs: Glyphs) -> list[Line]:
    """The pane: a bar, share of idle time between operations, total, gaps and name of each cause.

    Args:
        sums: the figures.
        threshold_ns: shortest gap listed.
        width: cells of a line.
        glyphs: the characters of this terminal.
    """
    if not sums.device_count:
        return []
    lines: list[Line] = [[(f"{'':<{BAR}}of idle      time   gaps  cause", MUTED)]]
    for group in sums.causes:
        share = group.idle_ns / sums.inner_ns if sums.inner_ns else 0.0
        bar = glyphs.bar * max(1, round(BAR * share))
        figures = (
            f" {format_share(group.idle_ns, sums.inner_ns):>6} {format_duration(group.idle_ns):>9}"
            f" {format_count(group.count):>6}  "
        )
        lines.append([(f"{bar:<{BAR}}", STALL), (figures, 0), (visible(group.key), 0)])
    below = format_share(sums.below_ns, sums.inner_ns)
    figures = (
        f" {below:>6} {format_duration(sums.below_ns):>9} {format_count(sums.below_count):>6}  "
    )
    lines.append([(f"{'':<{BAR}}{figures}below {plain_duration(threshold_ns)}", MUTED)])
    apart = (
        ("between operations", sums.inner_ns, f"  {sums.inner_share} of GPU time"),
        (HEAD, sums.head_ns, ""),
        (TAIL, sums.tail_ns, ""),
        ("exposed communication", sums.exposed_ns, "  busy, not hidden"),
    )
    lines.append([("", 0)])
    lines += [
        [(f"{label:<27}{format_duration(ns):>9}{more}"[:width], 0)] for label, ns, more in apart
    ]
    return [*lines, *([(note, MUTED)] for note in sums.notes)]
