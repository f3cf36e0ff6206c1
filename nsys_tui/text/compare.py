"""A comparison and its gates as text: for a terminal, a pull request, CI, and as plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from nsys_tui.analysis.compare.comparison import Comparison
from nsys_tui.analysis.compare.judgement import Outcome
from nsys_tui.analysis.compare.rows import Row
from nsys_tui.analysis.compare.side import GROUPS, WHOLE, Side
from nsys_tui.model.table import Column, Table, table_of
from nsys_tui.names import visible
from nsys_tui.redaction import redacted
from nsys_tui.text.folding import indented
from nsys_tui.text.formats import whole
from nsys_tui.text.tables import render
from nsys_tui.units import (
    format_bytes,
    format_change,
    format_count,
    format_difference,
    format_duration,
    format_share,
)

TOP: Final = 15
SECTIONS: Final = ("summary", *GROUPS, "findings")


def as_text(
    comparison: Comparison,
    sections: Sequence[str] = SECTIONS,
    top: int = TOP,
    room: int | None = None,
) -> str:
    """The comparison in aligned columns: what is unfair first, then verdict and tables.

    All but the findings, for which ``findings_as_text`` is.

    Args:
        comparison: the comparison.
        sections: which of ``SECTIONS`` are printed.
        top: rows of each table, 0 for all.
        room: cells of a line; None for any.
    """
    told = change_sentences(comparison) if "summary" in sections else []
    parts = [indented(f"  {visible(text)}", room, "") for text in told] + [""]
    for table in tables(comparison, set(sections) - {"findings"}, top):
        if len(sections) > 1 and not len(table) and not comparison.unknown_in(table.name):
            continue
        parts += [*_lines(table, room), ""]
    parts += [indented(f"note: {visible(note)}", room, "") for note in comparison.notes]
    return head_as_text(comparison, room) + "\n".join(parts).rstrip("\n") + "\n"


def head_as_text(comparison: Comparison, room: int | None = None) -> str:
    """How the text begins: what is compared, what is unfair, and the verdict."""
    head = [*_sides(comparison), *_unfair_lines(comparison), "", headline(comparison)]
    return "".join(indented(line, room, "") + "\n" for line in head)


def findings_as_text(comparison: Comparison, room: int | None = None) -> str:
    """The findings in aligned columns, which come last: to find them takes longest."""
    return "\n".join(["", *_lines(_findings_table(comparison), room), ""])


def _lines(table: Table, room: int | None) -> list[str]:
    body = [render(table, whole("column", room)).rstrip("\n")]
    notes = [indented(visible(note), room) for note in table.notes]
    return [visible(table.title), *(body if len(table) else []), *notes]


def as_markdown(comparison: Comparison, sections: Sequence[str] = SECTIONS, top: int = TOP) -> str:
    """The comparison for a pull request: verdict and summary open, the rest folded away."""
    parts = [f"### {headline(comparison)}", ""]
    table = table_of("changes", "Changes", _CHANGES, change_sentences(comparison))
    parts += [render(table, "markdown")] if len(table) else []
    parts.append(render(_sides_table(comparison), "markdown"))
    if comparison.differences:
        parts += ["**Not the same on both sides:**", ""]
        parts.append(render(_differences_table(comparison), "markdown"))
    for table in tables(comparison, sections, top):
        if not len(table) and table.name not in ("summary", "findings"):
            continue
        body = [render(table, "markdown")] if len(table) else []
        body += [f"{visible(note)}\n" for note in table.notes]
        if table.name == "summary":
            parts += body
        else:
            parts += [f"<details><summary>{table.title}</summary>\n", *body, "</details>\n"]
    parts += [f"_{visible(note)}_\n" for note in comparison.notes]
    return "\n".join(parts)


def _sides(comparison: Comparison) -> list[str]:
    sides = (("A", comparison.a), ("B", comparison.b))
    return [f"{letter}: {visible(s.label)}  ({visible(side_text(s))})" for letter, s in sides]


def change_sentences(comparison: Comparison) -> list[str]:
    """The largest changes that are told, a sentence each."""
    per = f"{'per step' if comparison.by_step else 'in all'}{comparison.together}"
    return [f"{row.name} {_became(row)}, {delta_text(row)} {per}" for row in comparison.largest]


def _became(row: Row) -> str:
    """``is new``, ``is slower (+5.0%)``, ``has more calls (time +12.0%)``."""
    if row.kind in ("new", "gone"):
        return f"is {row.kind}"
    verb = {"calls": "has", "bytes": "moves", "threads": "launches"}.get(row.kind.split()[-1], "is")
    return f"{verb} {row.kind} ({'' if verb == 'is' else 'time '}{ratio_text(row)})"


def side_text(side: Side) -> str:
    """What a side is: its GPUs and its steps."""
    gpus = side.facts.get("GPUs", "no GPU work")
    steps = side.steps
    if side.by_step:
        return f"{gpus}; {len(steps)} steady steps {steps.rule}: {steps.name}"
    return f"{gpus}; {format_duration(side.base_ns)} as a whole" if side.base_ns else "no events"


def _unfair_lines(comparison: Comparison) -> list[str]:
    lines = []
    for difference in comparison.differences:
        sign = "! unfair" if difference.unfair else "  differs"
        text = f"{difference.what}: {difference.a} | {difference.b}"
        lines.append(f"{sign}: {visible(text)}")
    return lines


def headline(comparison: Comparison) -> str:
    """The verdict and its reason."""
    threshold = f"threshold {100 * comparison.threshold:g}%"
    return visible(f"{comparison.verdict}: {comparison.judgement.reason} ({threshold})")


def _sides_table(comparison: Comparison) -> Table:
    sides = [("A", comparison.a), ("B", comparison.b)]
    return table_of("sides", "Sides", _SIDES, sides)


_CHANGES: Final = (Column("Change", read=lambda text, _: text),)
_SIDES: Final = (
    Column("Side", read=lambda pair, _: pair[0]),
    Column("Report", read=lambda pair, _: pair[1].label),
    Column("What", read=lambda pair, _: side_text(pair[1])),
)
_DIFFERENCES: Final = (
    *(Column("What"), Column("A"), Column("B")),
    Column("Unfair", read=lambda difference, _: "yes" if difference.unfair else ""),
)
_FINDINGS: Final = (
    Column("Status"),
    Column("Severity", read=lambda change, _: change.known.severity),
    Column("Rule"),
    Column("Finding", read=lambda change, _: change.known.title),
)


def _differences_table(comparison: Comparison) -> Table:
    title = "Not the same on both sides"
    return table_of("differences", title, _DIFFERENCES, comparison.differences)


def tables(
    comparison: Comparison, sections: Iterable[str] = SECTIONS, top: int = TOP
) -> list[Table]:
    """The sections as tables of text, in their order."""
    makers = {"summary": _summary_table, "findings": _findings_table}
    every = set(GROUPS).issubset(sections)
    return [
        makers[section](comparison) if section in makers else _group_table(comparison, section, top)
        for section in SECTIONS
        if section in sections and (section in makers or comparison.has(section) or not every)
    ]


def all_tables(comparison: Comparison, sections: Sequence[str], top: int = TOP) -> list[Table]:
    """The sides, how they differ, and the sections."""
    differing = [_differences_table(comparison)] if comparison.differences else []
    return [_sides_table(comparison), *differing, *tables(comparison, sections, top)]


_FIGURES: Final[dict[str, Callable[[Row], str]]] = {
    "A": lambda row: amount(row, row.a_total),
    "B": lambda row: amount(row, row.b_total),
    "Delta": lambda row: delta_text(row),
    "Change": lambda row: ratio_text(row),
    "Change each": lambda row: ratio_text(row),
    "Count A": lambda row: count_text(row.a_count),
    "Count B": lambda row: count_text(row.b_count),
    "Bytes A": lambda row: format_bytes(round(row.a_bytes)),
    "Bytes B": lambda row: format_bytes(round(row.b_bytes)),
}


def _rows_table(
    name: str, title: str, headers: Sequence[str], rows: Sequence[Row], *notes: str
) -> Table:
    """Rows of figures written out and aligned right, among texts."""
    pairs = []
    for header in headers:
        if make := _FIGURES.get(header):
            texts = [make(row) for row in rows]
            width = max(map(len, (header, *texts)))
            header, texts = header.rjust(width), [text.rjust(width) for text in texts]
        else:
            texts = [row.words if header == "Verdict" else row.name for row in rows]
        pairs.append((Column(header), texts))
    return Table.of(name, title, pairs, filter(None, notes))


def _summary_table(comparison: Comparison) -> Table:
    rows = [row for row in comparison.summary if row.a_total or row.b_total or row.key == "wall"]
    per_gpu = " per GPU" * ("busy" in comparison.a.metrics or "busy" in comparison.b.metrics)
    title = f"Time{per_gpu} of {'a step, means' if comparison.by_step else 'the whole'}"
    return _rows_table("summary", title, ("Figure", "A", "B", "Delta", "Change", "Verdict"), rows)


def _group_table(comparison: Comparison, group: str, top: int) -> Table:
    rows = comparison.groups[group]
    shown = rows[:top] if top else rows
    hidden = len(rows) - len(shown)
    told = ("better", "worse", "new", "gone")
    changed = sum(row.verdict in told for row in rows[len(shown) :])
    more = f"{format_count(hidden)} more names, {changed} of them changed (--top 0 shows all)"
    per = ", mean per step" if comparison.by_step else ", in all"
    per += comparison.together if group in ("kernels", "copies", "stalls") else ""
    change = "Change" if comparison.by_step else "Change each"
    headers = ["Delta", change, "A", "B", "Count A", "Count B"]
    headers += ["Bytes A", "Bytes B"] if group == "copies" else []
    return _rows_table(
        group,
        f"{GROUPS[group]}{per}, largest difference first",
        [*headers, "Verdict", "Name"],
        shown,
        more if hidden else "",
        "" if rows else comparison.why_empty(group),
    )


def _findings_table(comparison: Comparison) -> Table:
    listed = [change for change in comparison.findings or () if change.status != "in both"]
    both = len(comparison.findings or ()) - len(listed)
    note = f"{both} finding{'s' * (both != 1)} on both sides"
    if comparison.findings is None:
        note = "not compared: --findings runs the expert rules on both sides"
    return table_of("findings", "Findings", _FINDINGS, listed, notes=(note,))


def amount(row: Row, value: float) -> str:
    """A figure in its unit: ``3.66 s``, ``84.1%``."""
    return format_share(value, WHOLE) if row.share else format_duration(round(value))


def delta_text(row: Row) -> str:
    """``-640.0 ms``, ``+12.3 pt``, ``0 ns``."""
    if row.share:
        return format_change(row.delta / WHOLE).replace("%", " pt")
    return format_difference(row.delta)


def ratio_text(row: Row) -> str:
    """``-17.5%``, ``new``, ``gone``; ``-`` where there is nothing to be relative to."""
    if row.kind in ("new", "gone"):
        return row.kind
    ratio = row.change.ratio
    return "-" if ratio is None else format_change(ratio)


def count_text(count: float) -> str:
    """A count, or a mean count per step with a decimal where it is not whole."""
    return format_count(int(count)) if count == int(count) else f"{count:,.1f}"


_COLUMNS: Final = (
    Column("Gate", read=lambda outcome, _: outcome.gate.text),
    Column("Verdict"),
    Column("Reason"),
)


def gates_as_text(outcomes: Sequence[Outcome]) -> str:
    """A line for each gate."""
    lines = [f"gate {each.gate.text}: {each.verdict}: {each.reason}" for each in outcomes]
    return "".join(f"{visible(line)}\n" for line in ("", *lines)) if lines else ""


def gates_as_markdown(outcomes: Sequence[Outcome]) -> str:
    """A table of the gates; nothing without any."""
    if not outcomes:
        return ""
    return "\n" + render(table_of("gates", "Gates", _COLUMNS, outcomes), "markdown")


def gates_as_junit(comparison: Comparison, outcomes: Sequence[Outcome], doubt_fails: bool) -> str:
    """JUnit XML: a test case for each gate, or for the verdict, which does not fail as worse.

    Args:
        comparison: the comparison.
        outcomes: what became of the gates.
        doubt_fails: whether what is inconclusive is a failure; else it is skipped.
    """
    import xml.etree.ElementTree as ET

    cases = [(each.gate.text, str(each.verdict), each.reason) for each in outcomes]
    cases = cases or [("verdict", str(comparison.verdict), comparison.judgement.reason)]
    doubt = "failure" if doubt_fails else "skipped"
    bad = {"inconclusive": doubt, "not comparable": "error"} | (
        {"worse": "failure"} if outcomes else {}
    )
    tags = [bad.get(verdict, "") for _, verdict, _ in cases]
    suite = ET.Element(
        "testsuite",
        name="nsys-tui compare",
        tests=str(len(cases)),
        failures=str(tags.count("failure")),
        errors=str(tags.count("error")),
        skipped=str(tags.count("skipped")),
    )
    for (name, verdict, reason), tag in zip(cases, tags, strict=True):
        case = ET.SubElement(suite, "testcase", classname="compare", name=_told(name))
        if tag:
            ET.SubElement(case, tag, message=_told(f"{verdict}: {reason}"))
        else:
            ET.SubElement(case, "system-out").text = _told(f"{verdict}: {reason}")
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suite, encoding="unicode")}\n'


def _told(text: str) -> str:
    return visible(redacted(text))
