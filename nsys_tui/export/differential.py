"""Folded stacks of two sides as text for flamegraph.pl, and as a differential flame graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nsys_tui.analysis.compare.stacks import DifferentialStacks
from nsys_tui.export.folded import flame_graph, folded_frame
from nsys_tui.units import format_count, format_difference, format_duration

LESS: Final = 215
"""Hue of frames that take less time: blue, since green and red look alike to too many."""
MORE: Final = 32
"""Hue of frames that take more time: orange."""


def differential_lines(stacks: DifferentialStacks) -> Iterator[str]:
    """``a;b;c 120 90`` per stack, A's weight before B's, sorted; stacks made equal are summed."""
    sums: dict[str, tuple[int, int]] = {}
    for frames, a, b in stacks.folded():
        line = ";".join(folded_frame(frame) for frame in frames)
        before = sums.get(line, (0, 0))
        sums[line] = before[0] + a, before[1] + b
    for line in sorted(sums):
        yield f"{line} {sums[line][0]} {sums[line][1]}"


def differential_graph(stacks: DifferentialStacks, title: str) -> str:
    """A flame graph as wide as B, with frames that take less time blue, with more orange."""

    def paint(node: int) -> tuple[str, str]:
        a, b = int(stacks.a.weight[node]), int(stacks.b.weight[node])
        change = float(stacks.change[node])
        hue = LESS if change < 0 else MORE
        colour = f"hsl({hue},90%,{95 - 38 * abs(change):.0f}%)"
        return colour, f"; A {format_duration(a)}, {format_difference(b - a)}"

    return flame_graph(stacks.b, title, _notes(stacks), paint)


def _notes(stacks: DifferentialStacks) -> tuple[str, ...]:
    notes = ["Widths are B's. Blue: less time than in A; orange: more; pale: the same."]
    if stacks.by_step:
        notes.append("Weights are means per steady step.")
    count, weight = stacks.gone
    if count:
        lost = f"{format_count(count)} stacks of A ({format_duration(weight)}) are gone in B"
        notes.append(f"{lost} and have no width here: exchange A and B to see them.")
    return tuple(notes)
