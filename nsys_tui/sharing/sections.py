"""The sections of a page about one report, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from nsys_tui.analysis.links import finding_link
from nsys_tui.analysis.rules.answer import none_found
from nsys_tui.analysis.rules.finding import Finding, command_of
from nsys_tui.model.table import Column, Unit, column, table_of
from nsys_tui.sharing.answer import Shared, captured
from nsys_tui.sharing.pictures import evidence, step_chart
from nsys_tui.sharing.tables import table_html
from nsys_tui.sharing.words import text_of
from nsys_tui.units import format_duration, format_share

_PARTS: Final = {
    "findings": "Findings",
    "time": "Where the time went",
    "steps": "Steps",
    "tables": "Tables",
    "flame": "Flame graph",
    "capture": "How it was captured",
    "unseen": "What was not looked at",
}
"""Sections by the end of their anchors."""
_TIMES: Final = ("devices", "memory", "threads", "mpi", "osrt")
"""Sections of the overview that say where time went."""
BOUND: Final = (
    column("name", "Class"),
    Column("Time", Unit.NS, read=lambda part, _: part.ns),
    Column("Share", Unit.PERCENT, 1, read=lambda part, _: 100 * part.share),
)
UNSEEN: Final = (column("what", "What"), column("reason", "Why, and what records it"))


class Detail(NamedTuple):
    """How much of everything a page holds."""

    rows: int
    """Of each table."""
    pictures: int
    """Findings with a picture, in each report."""
    pixels: float
    """Of the narrowest frame of a flame graph."""
    name: int
    """Characters of a name."""


def entry_of(of: Shared, prefix: str) -> str:
    """Verdict and contents."""
    listed = "".join(
        f'<li><a href="#{prefix}{anchor}">{heading}</a></li>' for anchor, heading in _PARTS.items()
    )
    name = text_of(of.report.name)
    return (
        f'<p class="verdict">{text_of(of.verdict, 600)}.</p>\n'
        f'<nav aria-label="Contents of {name}"><ul>{listed}</ul></nav>\n'
    )


def body_of(of: Shared, prefix: str, detail: Detail, flame: str) -> Iterator[str]:
    """All sections of a report.

    Args:
        of: what is told.
        prefix: before the anchors, which are unique in a page.
        detail: how much of it.
        flame: the flame graph, empty for none.
    """
    makers = {
        "findings": _findings(of, prefix, detail),
        "time": _time(of, detail),
        "steps": _steps(of, detail),
        "tables": _tables(of, detail),
        "flame": _flame(flame),
        "capture": _capture(of, detail),
        "unseen": _unseen(of, detail),
    }
    for anchor, pieces in makers.items():
        label = f"{prefix}{anchor}"
        yield f'<section aria-labelledby="{label}"><h2 id="{label}">{_PARTS[anchor]}</h2>\n'
        yield from pieces
        yield "</section>\n"


def _findings(of: Shared, prefix: str, detail: Detail) -> Iterator[str]:
    if not of.findings:
        told = "<code>nsys-tui analyze --help-rules</code> says what was looked for"
        yield f"<p>{none_found(of.report).replace('n', 'N', 1)}; {told}.</p>"
    for number, finding in enumerate(of.findings):
        yield from _finding(of, finding, f"{prefix}finding-{number}", number < detail.pictures)


def _finding(of: Shared, finding: Finding, anchor: str, drawn: bool) -> Iterator[str]:
    report = of.report
    yield f'<article class="{finding.severity}" aria-labelledby="{anchor}">'
    yield f'<h3 id="{anchor}">{text_of(finding.title)}</h3>\n<dl>'
    facts = {"Severity": str(finding.severity)}
    if finding.saved_ns:
        share = format_share(finding.saved_ns, finding.of_ns)
        facts["Could give back"] = f"up to ≈{format_duration(finding.saved_ns)} ({share})"
    facts["Confidence"] = f"{finding.confidence}" + (f": {finding.doubt}" if finding.doubt else "")
    facts["What to do"] = finding.advice
    if finding.same_as:
        facts["Overlaps with"] = finding.same_as
    for term, text in facts.items():
        yield f"<dt>{term}</dt><dd>{text_of(text, 600)}</dd>"
    commands = {
        "Command": command_of(finding.command, report.name),
        "Settled by": command_of(finding.settle, report.name)
        if finding.settle != finding.command
        else "",
        "Open there": command_of("nsys-tui REPORT", finding_link(report, finding)),
    }
    for term, text in commands.items():
        if text:
            yield f"<dt>{term}</dt><dd><code>{text_of(text, 600)}</code></dd>"
    yield "</dl>\n"
    if drawn and (picture := evidence(report, finding)):
        yield (
            f'<figure><div class="scroll" tabindex="0" role="region" '
            f'aria-label="Timeline">{picture}</div>'
            "<figcaption>The timeline around it; dashed: where it shows best"
            f"{', shaded: the GPU idle because of it' if finding.lost is not None else ''}."
            "</figcaption></figure>\n"
        )
    yield "</article>\n"


def _time(of: Shared, detail: Detail) -> Iterator[str]:
    if of.bound:
        table = table_of("bound", "Time of all GPUs by class", BOUND, of.bound)
        yield table_html(table, detail.rows, detail.name)
    for one in (of.overview[name] for name in _TIMES if name in of.overview):
        yield table_html(one, detail.rows, detail.name)


def _steps(of: Shared, detail: Detail) -> Iterator[str]:
    if of.steps is None:
        yield "<p>No steps were found: no NVTX range and no pattern of kernels tells them.</p>"
        return
    yield (
        '<figure><div class="scroll" tabindex="0" role="region" aria-label="Step chart">'
        f"{step_chart(of.steps)}</div><figcaption>Time of each step; dashed: the median; "
        "coloured: outliers.</figcaption></figure>\n"
    )
    for table in (of.steps.phases(), of.steps.each(exact=False)):
        yield table_html(table, detail.rows, detail.name)


def _tables(of: Shared, detail: Detail) -> Iterator[str]:
    for heading, table in of.tables.items():
        yield f"<h3>{heading}</h3>\n"
        yield table_html(table, detail.rows, detail.name, heading)
    for heading, why in of.lacking.items():
        yield f'<h3>{heading}</h3>\n<p class="note">{text_of(why)}</p>\n'


def _flame(flame: str) -> Iterator[str]:
    if not flame:
        yield "<p>There is nothing recorded to draw.</p>"
        return
    yield (
        '<p class="note">A click or Enter zooms into a frame, Escape comes back; arrows go from '
        "frame to frame.</p>\n"
        '<div class="scroll" tabindex="0" role="region" aria-label="Flame graph">'
        f"{flame}</div>\n"
    )


def _capture(of: Shared, detail: Detail) -> Iterator[str]:
    yield table_html(captured(of), 200, detail.name, _PARTS["capture"])
    for note in of.notes[:20]:
        yield f'<p class="note">{text_of(note, 400)}</p>\n'


def _unseen(of: Shared, detail: Detail) -> Iterator[str]:
    if of.not_looked_at:
        table = table_of("unseen", "Questions without an answer", UNSEEN, of.not_looked_at)
        yield table_html(table, 200, detail.name)
    missing = of.overview["missing"]
    yield table_html(missing, 200, detail.name)
