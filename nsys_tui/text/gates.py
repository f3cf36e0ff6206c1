"""Gates of a comparison as text, markdown and JUnit XML."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Final

from nsys_tui.model.table import Column, table_of
from nsys_tui.names import visible
from nsys_tui.text.tables import render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.analysis.compare.comparison import Comparison
    from nsys_tui.analysis.compare.judgement import Outcome

_COLUMNS: Final = (
    Column("Gate", read=lambda outcome, _: outcome.gate.text),
    Column("Verdict"),
    Column("Reason"),
)


def as_text(outcomes: Sequence[Outcome]) -> str:
    """A line for each gate."""
    lines = [f"gate {each.gate.text}: {each.verdict}: {each.reason}" for each in outcomes]
    return "".join(f"{visible(line)}\n" for line in ("", *lines)) if lines else ""


def as_markdown(outcomes: Sequence[Outcome]) -> str:
    """A table of the gates; nothing without any."""
    if not outcomes:
        return ""
    return "\n" + render(table_of("gates", "Gates", _COLUMNS, outcomes), "markdown")


def as_junit(found: Comparison, outcomes: Sequence[Outcome], doubt_fails: bool) -> str:
    """JUnit XML: a test case for each gate, or for the verdict where there is none.

    Args:
        found: the comparison.
        outcomes: what became of the gates.
        doubt_fails: whether what is inconclusive is a failure; else it is skipped.
    """
    cases = [(each.gate.text, str(each.verdict), each.reason) for each in outcomes]
    cases = cases or [("verdict", str(found.verdict), found.judgement.reason)]
    tags = [_tag(verdict, doubt_fails) for _, verdict, _ in cases]
    suite = ET.Element(
        "testsuite",
        name="nsys-tui compare",
        tests=str(len(cases)),
        failures=str(tags.count("failure")),
        errors=str(tags.count("error")),
        skipped=str(tags.count("skipped")),
    )
    for (name, verdict, reason), tag in zip(cases, tags, strict=True):
        case = ET.SubElement(suite, "testcase", classname="compare", name=visible(name))
        if tag:
            ET.SubElement(case, tag, message=visible(f"{verdict}: {reason}"))
        else:
            ET.SubElement(case, "system-out").text = visible(f"{verdict}: {reason}")
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suite, encoding="unicode")}\n'


def _tag(verdict: str, doubt_fails: bool) -> str:
    if verdict == "inconclusive":
        return "failure" if doubt_fails else "skipped"
    return {"worse": "failure", "not comparable": "error"}.get(verdict, "")
