"""A comparison as text: for a terminal, for a pull request, and as one table of plain numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsys_tui.analysis.compare.side import GROUPS, WHOLE
from nsys_tui.model.table import Column, Table
from nsys_tui.names import visible
from nsys_tui.text.folding import indented
from nsys_tui.text.formats import Format
from nsys_tui.text.tables import render
from nsys_tui.units import format_bytes, format_count, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsys_tui.analysis.compare.comparison import Comparison
    from nsys_tui.analysis.compare.rows import Row
    from nsys_tui.analysis.compare.side import Side

TOP: Final = 15
SECTIONS: Final = ("summary", *GROUPS, "findings")


def as_text(
    found: Comparison,
    sections: Sequence[str] = SECTIONS,
    top: int = TOP,
    room: int | None = None,
) -> str:
    """The whole comparison in aligned columns: what is unfair first, then verdict and tables.

    Args:
        found: the comparison.
        sections: which of ``SECTIONS`` are printed.
        top: rows of each table, 0 for all.
        room: cells of a line; None for any.
    """
    chosen = Format("column", limit=None, room=room)
    head = [*_sides(found), *_unfair_lines(found), "", _headline(found), ""]
    parts = [indented(line, room, "") for line in head]
    for table in tables(found, sections, top):
        parts.append(visible(table.title))
        if len(table):
            parts.append(render(table, chosen).rstrip("\n"))
        parts += [indented(visible(note), room) for note in table.notes]
        parts.append("")
    parts += [indented(f"note: {visible(note)}", room, "") for note in found.notes]
    return "\n".join(parts).rstrip("\n") + "\n"


def as_markdown(found: Comparison, sections: Sequence[str] = SECTIONS, top: int = TOP) -> str:
    """The comparison for a pull request: verdict and summary open, the rest folded away."""
    parts = [f"### {_headline(found)}", "", render(_sides_table(found), "markdown")]
    if found.differences:
        parts += ["**Not the same on both sides:**", ""]
        parts.append(render(_differences_table(found), "markdown"))
    for table in tables(found, sections, top):
        if not len(table) and table.name not in ("summary", "findings"):
            continue
        body = [render(table, "markdown")] if len(table) else []
        body += [f"{visible(note)}\n" for note in table.notes]
        if table.name == "summary":
            parts += body
        else:
            parts += [f"<details><summary>{table.title}</summary>\n", *body, "</details>\n"]
    parts += [f"_{visible(note)}_\n" for note in found.notes]
    return "\n".join(parts)


def _sides(found: Comparison) -> list[str]:
    sides = (("A", found.a), ("B", found.b))
    return [f"{letter}: {visible(s.label)}  ({visible(side_text(s))})" for letter, s in sides]


def side_text(side: Side) -> str:
    """What a side is: its GPUs and its steps."""
    gpus = side.facts.get("GPUs", "no GPU work")
    steps = side.steps
    if side.by_step:
        return f"{gpus}; {len(steps)} steady steps {steps.rule}: {steps.name}"
    return f"{gpus}; {format_duration(side.base_ns)} as a whole"


def _unfair_lines(found: Comparison) -> list[str]:
    lines = []
    for difference in found.differences:
        sign = "! unfair" if difference.unfair else "  differs"
        text = f"{difference.what}: {difference.a} | {difference.b}"
        lines.append(f"{sign}: {visible(text)}")
    return lines


def _headline(found: Comparison) -> str:
    threshold = f"threshold {100 * found.threshold:g}%"
    return visible(f"{found.verdict}: {found.judgement.reason} ({threshold})")


def _sides_table(found: Comparison) -> Table:
    sides = (found.a, found.b)
    return Table(
        "sides",
        "Sides",
        (Column("Side"), Column("Report"), Column("What")),
        (["A", "B"], [s.label for s in sides], [side_text(s) for s in sides]),
    )


def _differences_table(found: Comparison) -> Table:
    listed = found.differences
    return Table(
        "differences",
        "Not the same on both sides",
        (Column("What"), Column("A"), Column("B"), Column("Unfair")),
        (
            [difference.what for difference in listed],
            [difference.a for difference in listed],
            [difference.b for difference in listed],
            ["yes" if difference.unfair else "" for difference in listed],
        ),
    )


def tables(found: Comparison, sections: Iterable[str] = SECTIONS, top: int = TOP) -> list[Table]:
    """The sections as tables of text, in their order."""
    listed = []
    for section in SECTIONS:
        if section not in sections:
            continue
        if section == "summary":
            listed.append(_summary_table(found))
        elif section == "findings":
            listed.append(_findings_table(found))
        else:
            listed.append(_group_table(found, section, top))
    return listed


def all_tables(found: Comparison, sections: Sequence[str], top: int = TOP) -> list[Table]:
    """The sides, how they differ, and the sections."""
    differing = [_differences_table(found)] if found.differences else []
    return [_sides_table(found), *differing, *tables(found, sections, top)]


def _right(header: str, texts: Sequence[str]) -> tuple[Column, list[str]]:
    """A column of figures written out, aligned right."""
    width = max(map(len, (header, *texts)))
    return Column(header.rjust(width)), [text.rjust(width) for text in texts]


def _table(
    name: str, title: str, columns: Sequence[tuple[Column, Sequence[Any]]], *notes: str
) -> Table:
    heads, data = zip(*columns, strict=True)
    return Table(name, title, tuple(heads), tuple(data), tuple(note for note in notes if note))


def _summary_table(found: Comparison) -> Table:
    rows = [row for row in found.summary if row.a_total or row.b_total or row.key == "wall"]
    what = "a step, medians" if found.by_step else "the whole"
    return _table(
        "summary",
        f"Time per GPU of {what}",
        [
            (Column("Figure"), [row.name for row in rows]),
            _right("A", [amount(row, row.a_total) for row in rows]),
            _right("B", [amount(row, row.b_total) for row in rows]),
            _right("Delta", [delta_text(row) for row in rows]),
            _right("Change", [ratio_text(row) for row in rows]),
            (Column("Verdict"), [row.words for row in rows]),
        ],
    )


def _group_table(found: Comparison, group: str, top: int) -> Table:
    rows = found.groups[group]
    shown = rows[:top] if top else rows
    hidden = len(rows) - len(shown)
    changed = sum(row.verdict in ("better", "worse") for row in rows[len(shown) :])
    more = f"{format_count(hidden)} more names, {changed} of them changed (--top 0 shows all)"
    per = " per step" if found.by_step else ""
    columns = [
        _right("Delta", [delta_text(row) for row in shown]),
        _right("Change", [ratio_text(row) for row in shown]),
        _right("A", [amount(row, row.a_total) for row in shown]),
        _right("B", [amount(row, row.b_total) for row in shown]),
        _right("Count A", [count_text(row.a_count) for row in shown]),
        _right("Count B", [count_text(row.b_count) for row in shown]),
    ]
    if group == "copies":
        columns += [
            _right("Bytes A", [format_bytes(round(row.a_bytes)) for row in shown]),
            _right("Bytes B", [format_bytes(round(row.b_bytes)) for row in shown]),
        ]
    columns += [
        (Column("Verdict"), [row.words for row in shown]),
        (Column("Name"), [row.name for row in shown]),
    ]
    return _table(
        group,
        f"{GROUPS[group]}{per}, largest difference first",
        columns,
        more if hidden else "",
        "" if rows else found.why_empty(group),
    )


def _findings_table(found: Comparison) -> Table:
    listed = [change for change in found.findings or () if change.status != "in both"]
    both = len(found.findings or ()) - len(listed)
    why = "not compared: --findings runs the expert rules on both sides"
    return _table(
        "findings",
        "Findings",
        [
            (Column("Status"), [change.status for change in listed]),
            (Column("Severity"), [change.known.severity for change in listed]),
            (Column("Rule"), [change.rule for change in listed]),
            (Column("Finding"), [change.known.title for change in listed]),
        ],
        why if found.findings is None else f"{both} findings on both sides",
    )


def amount(row: Row, value: float) -> str:
    """A figure in its unit: ``3.66 s``, ``84.1%``."""
    return f"{100 * value / WHOLE:.1f}%" if row.share else format_duration(round(value))


def delta_text(row: Row) -> str:
    """``-640.0 ms``, ``+12.3 pt``, ``0``."""
    if row.share:
        points = 100 * row.delta / WHOLE
        return f"{points:+.1f} pt" if round(points, 1) else "0"
    delta = round(row.delta)
    return f"{'+' if delta > 0 else ''}{format_duration(delta)}" if delta else "0"


def ratio_text(row: Row) -> str:
    """``-17.5%``, ``new``, ``gone``; ``-`` where there is nothing to be relative to."""
    if row.kind in ("new", "gone"):
        return row.kind
    ratio = row.change.ratio
    return "-" if ratio is None else f"{100 * ratio:+.1f}%" if round(100 * ratio, 1) else "0.0%"


def count_text(count: float) -> str:
    """A count, or a mean count per step with a decimal where it is not whole."""
    return format_count(int(count)) if count == int(count) else f"{count:,.1f}"
