"""The panes below the kernel table as lines: facts about a row, and its durations as a chart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsys_tui.names import cut, visible
from nsys_tui.render.spark import MARGIN, draw_histogram
from nsys_tui.ui.pane_text import labelled
from nsys_tui.units import format_bytes, format_count, format_duration, out_of

if TYPE_CHECKING:
    from nsys_tui.analysis.kernel_facts import KernelFacts, Parts
    from nsys_tui.render.cells import Line
    from nsys_tui.render.glyphs import Glyphs
    from nsys_tui.render.spark import Histogram


NAME_LIMIT: Final = 2_000
"""Characters of a full name that are wrapped into lines."""


def bins_for(width: int) -> int:
    """Bins of a chart of durations in a pane of ``width`` cells."""
    return max(8, min(width - MARGIN - 1, 96))


def histogram_lines(found: Histogram, height: int, glyphs: Glyphs) -> list[Line]:
    """Durations by equal factors; the axis is labelled at its edges."""
    rows = draw_histogram(found, max(1, height - 2), glyphs, format_duration)
    return [row.runs() for row in rows]


def fact_lines(facts: KernelFacts, where: str, width: int, note: str = "") -> list[Line]:
    """What the instances of a row have in common, most telling first.

    Args:
        facts: the facts.
        where: GPUs and streams of the row.
        width: cells of a line.
        note: a sentence on top, such as a count of straddling operations.
    """
    pairs = [("", note)] if note else []
    pairs.append(("where", where))
    if facts.shapes.listed:
        pairs.append(("shape", parts_text(facts.shapes)))
    if facts.registers is not None and facts.shared is not None:
        shared = " to ".join(dict.fromkeys(format_bytes(size) for size in facts.shared))
        pairs.append(("regs", f"{_span(facts.registers)}  smem {shared}"))
    if facts.bytes:
        rate = f", {format_bytes(facts.bytes * 10**9 // facts.time)}/s" if facts.time else ""
        pairs.append(("bytes", f"{format_bytes(facts.bytes)}{rate}"))
    pairs.append(("gap p50", f"{_time(facts.gap)}  launch {_time(facts.latency)}"))
    if facts.callers.listed:
        pairs.append(("called by", parts_text(facts.callers)))
    if facts.uncalled:
        pairs.append(("", f"{out_of(facts.uncalled, facts.count)} without an API call"))
    if facts.ranges.listed:
        pairs.append(("nvtx", parts_text(facts.ranges)))
    more = f"  (+{facts.name_count - 1:,} more)" if facts.name_count > 1 else ""
    full = cut(visible(facts.names[0][:NAME_LIMIT]), NAME_LIMIT) if facts.names else ""
    pairs.append(("name", full + more))
    return [line for label, text in pairs for line in labelled(label, text, width)]


def parts_text(parts: Parts) -> str:
    """``mlp 62%, attn 38%, 3 more``; a single part needs no share."""
    if len(parts.listed) == 1 and not parts.more and parts.listed[0].share > 0.9995:
        return visible(parts.listed[0].text)
    texts = [f"{visible(part.text)} {100 * part.share:.0f}%" for part in parts.listed]
    return ", ".join([*texts, *([f"{parts.more} more"] if parts.more else [])])


def _span(pair: tuple[int, int]) -> str:
    return " to ".join(dict.fromkeys(format_count(value) for value in pair))


def _time(ns: float | None) -> str:
    return "-" if ns is None else format_duration(ns)
