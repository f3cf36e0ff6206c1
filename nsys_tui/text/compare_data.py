"""A comparison as data: JSON values, and one table of plain numbers for csv."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_tui.analysis.compare.side import GROUPS, WHOLE
from nsys_tui.model.table import Column, Table, Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsys_tui.analysis.compare.comparison import Comparison
    from nsys_tui.analysis.compare.findings import FindingChange
    from nsys_tui.analysis.compare.rows import Row
    from nsys_tui.analysis.compare.side import Side

SECTIONS = ("summary", *GROUPS)
"""Sections with rows of figures."""


def as_table(found: Comparison, sections: Sequence[str] = SECTIONS) -> Table:
    """All rows as plain numbers: times in ns, shares and changes as parts of 1."""
    rows = [("summary", row) for row in found.summary if "summary" in sections]
    rows += [(key, row) for key in GROUPS if key in sections for row in found.groups[key]]

    def numbers(header: str, of: Callable[[Row], float | None], digits: int = 3) -> Any:
        return Column(header, Unit.NONE, digits), [of(row) for _, row in rows]

    columns = (
        (Column("Section"), [section for section, _ in rows]),
        (Column("Name"), [row.name for _, row in rows]),
        numbers("A", lambda row: row.a_total / _scale(row), 6),
        numbers("B", lambda row: row.b_total / _scale(row), 6),
        numbers("Delta", lambda row: row.delta / _scale(row), 6),
        numbers("Count A", lambda row: row.a_count),
        numbers("Count B", lambda row: row.b_count),
        numbers("Change", lambda row: row.change.ratio, 6),
        numbers("Low", lambda row: row.change.interval and row.change.interval[0], 6),
        numbers("High", lambda row: row.change.interval and row.change.interval[1], 6),
        (Column("Basis"), [_basis(row) for _, row in rows]),
        (Column("Kind"), [row.kind for _, row in rows]),
        (Column("Verdict"), [str(row.verdict) for _, row in rows]),
    )
    heads, data = zip(*columns, strict=True)
    return Table("compare", "Comparison", tuple(heads), tuple(data))


def as_json(found: Comparison) -> dict[str, Any]:
    """The whole comparison as JSON values: times in ns, shares and changes as parts of 1."""
    judgement = found.judgement
    return {
        "verdict": str(found.verdict),
        "basis": judgement.basis,
        "reason": judgement.reason,
        "change": judgement.change and judgement.change.ratio,
        "interval": judgement.change and judgement.change.interval,
        "threshold": found.threshold,
        "seed": found.seed,
        "a": _side(found.a),
        "b": _side(found.b),
        "differences": [
            {"what": d.what, "a": d.a, "b": d.b, "unfair": d.unfair} for d in found.differences
        ],
        "totals_are": "means per step" if found.by_step else "sums",
        "summary": {row.key: _row(row) for row in found.summary},
        **{key: [_row(row) for row in rows] for key, rows in found.groups.items()},
        "findings": found.findings and [_finding(change) for change in found.findings],
        "notes": list(found.notes),
    }


def _side(side: Side) -> dict[str, Any]:
    steps = side.steps
    return {
        "label": side.label,
        "facts": dict(side.facts),
        "gpus": side.device_count,
        "base_ns": side.base_ns,
        "steps": {
            "rule": str(steps.rule),
            "name": steps.name or None,
            "steady": side.steps_found,
            "compared": len(steps) if side.by_step else 0,
        },
        "notes": list(side.notes),
    }


def _row(row: Row) -> dict[str, Any]:
    scale, unit = _scale(row), "share" if row.share else "ns"
    change = row.change
    found = {
        "name": row.name,
        f"a_{unit}": row.a_total / scale,
        f"b_{unit}": row.b_total / scale,
        f"delta_{unit}": row.delta / scale,
        "a_count": row.a_count,
        "b_count": row.b_count,
        "change": change.ratio,
        "interval": change.interval,
        f"a_median_{unit}": change.a / scale,
        f"b_median_{unit}": change.b / scale,
        "basis": _basis(row),
        "kind": row.kind,
        "verdict": str(row.verdict),
    }
    if row.a_bytes or row.b_bytes:
        found |= {"a_bytes": row.a_bytes, "b_bytes": row.b_bytes}
    return found


def _finding(change: FindingChange) -> dict[str, Any]:
    return {
        "status": change.status,
        "rule": change.rule,
        "severity": change.known.severity,
        "a": change.a and change.a.title,
        "b": change.b and change.b.title,
        "a_saved_ns": change.a and change.a.saved_ns,
        "b_saved_ns": change.b and change.b.saved_ns,
    }


def _scale(row: Row) -> int:
    return WHOLE if row.share else 1


def _basis(row: Row) -> str:
    return "steps" if row.by_step else "instances"
