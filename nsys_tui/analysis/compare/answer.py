"""A comparison as one table of plain numbers, and as one document for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from nsys_tui.analysis.compare.comparison import Comparison
from nsys_tui.analysis.compare.rows import Row
from nsys_tui.analysis.compare.side import GROUPS, WHOLE
from nsys_tui.model.table import (
    Column,
    Document,
    Form,
    Table,
    Unit,
    column,
    columns,
    data,
    number,
    record,
    records,
    table_of,
)

SECTIONS: Final = ("summary", *GROUPS)
"""Sections with rows of figures."""


def rows_table(comparison: Comparison, sections: Sequence[str] = SECTIONS) -> Table:
    """All rows as plain numbers: times in ns, shares and changes as parts of 1."""
    rows = [("summary", row) for row in comparison.summary if "summary" in sections]
    rows += [(key, row) for key in GROUPS if key in sections for row in comparison.groups[key]]
    return table_of("compare", "Comparison", _PLAIN, rows)


def _basis(row: Row) -> str:
    return "steps" if row.by_step else "instances"


def _scale(row: Row) -> int:
    return WHOLE if row.share else 1


def _number(header: str, read: Callable[[Row], float | None], digits: int = 6) -> Column:
    return Column(header, Unit.NONE, digits, read=lambda pair, _: read(pair[1]))


_PLAIN: Final = (
    Column("Section", read=lambda pair, _: pair[0]),
    Column("Name", read=lambda pair, _: pair[1].name),
    data("unit", lambda pair, _: "share" if pair[1].share else "ns"),
    _number("A", lambda row: row.a_total / _scale(row)),
    _number("B", lambda row: row.b_total / _scale(row)),
    _number("Delta", lambda row: row.delta / _scale(row)),
    _number("Count A", lambda row: row.a_count, 3),
    _number("Count B", lambda row: row.b_count, 3),
    _number("Change", lambda row: row.change.ratio),
    _number("Low", lambda row: row.change.interval and row.change.interval[0]),
    _number("High", lambda row: row.change.interval and row.change.interval[1]),
    Column("Basis", read=lambda pair, _: _basis(pair[1])),
    Column("Statistic", read=lambda pair, _: pair[1].statistic),
    Column("Kind", read=lambda pair, _: pair[1].kind),
    Column("Verdict", read=lambda pair, _: pair[1].verdict),
)


def _amounts(unit: str) -> list[Column]:
    """Figures of a row in ns or as shares; a row has one or the other."""
    figures: dict[str, Callable[[Row], float]] = {
        "a": lambda row: row.a_total,
        "b": lambda row: row.b_total,
        "delta": lambda row: row.delta,
        "a_median": lambda row: row.change.medians[0],
        "b_median": lambda row: row.change.medians[1],
    }

    def reader(figure: Callable[[Row], float]) -> Any:
        return lambda row, _: figure(row) / _scale(row) if row.share == (unit == "share") else None

    return [data(f"{key}_{unit}", reader(figure), optional=True) for key, figure in figures.items()]


def _bytes(key: str) -> Column:
    """Bytes of copies; not there where neither side has any."""
    return data(
        key,
        lambda row, _: getattr(row, key) if row.a_bytes or row.b_bytes else None,
        Unit.NONE,
        optional=True,
    )


_ROW: Final = (
    column("name"),
    *_amounts("ns"),
    *_amounts("share"),
    *columns("a_count b_count", Unit.NONE),
    data("change", lambda row, _: row.change.ratio, Unit.NONE),
    data("interval", lambda row, _: row.change.interval, Unit.NONE, form=Form.LIST),
    data("basis", lambda row, _: _basis(row)),
    *columns("statistic kind verdict"),
    _bytes("a_bytes"),
    _bytes("b_bytes"),
)
_STEPS: Final = (
    data("rule", lambda side, _: side.steps.rule),
    data("name", lambda side, _: side.steps.name or None),
    number("steady", lambda side, _: side.steps_found),
    number("compared", lambda side, _: len(side.steps) if side.by_step else 0),
)
_SIDE: Final = (
    column("label"),
    column("facts", form=Form.MAP),
    number("gpus", lambda side, _: side.device_count),
    number("runs", lambda side, _: side.run_count),
    column("base_ns"),
    record("steps", _STEPS, lambda side, _: side),
    column("notes", form=Form.LIST),
)


def _of(side: str, name: str) -> Any:
    """Reads what a finding is on one side, null where it is not there."""
    return lambda change, _: getattr(getattr(change, side), name, None)


_FINDING: Final = (
    *columns("status rule"),
    data("severity", lambda change, _: change.known.severity),
    data("a", _of("a", "title")),
    data("b", _of("b", "title")),
    data("a_saved_ns", _of("a", "saved_ns")),
    data("b_saved_ns", _of("b", "saved_ns")),
)


_GATE: Final = (
    data("gate", lambda outcome, _: outcome.gate.text),
    *columns("verdict reason"),
    data("rows", lambda outcome, _: [row.name for row in outcome.rows], form=Form.LIST),
)


def _judged(key: str, name: str, **options: Any) -> Column:
    """A figure of the change that the verdict is about."""

    def read(comparison: Comparison, _: Any) -> Any:
        return comparison.judgement.change and getattr(comparison.judgement.change, name)

    return data(key, read, Unit.NONE, **options)


def _group(key: str) -> Column:
    return records(key, _ROW, lambda comparison, _: comparison.groups[key])


DOCUMENT: Final = Document(
    "compare",
    (
        column("verdict"),
        data("basis", lambda found, _: found.judgement.basis),
        data("reason", lambda found, _: found.judgement.reason),
        _judged("change", "ratio"),
        _judged("interval", "interval", form=Form.LIST),
        data("settle", lambda found, _: found.judgement.settle or None),
        column("threshold", unit=Unit.NONE),
        column("noise", unit=Unit.NONE),
        column("seed", unit=Unit.COUNT),
        record("a", _SIDE),
        record("b", _SIDE),
        records("differences", (*columns("what a b"), *columns("unfair", Unit.FLAG))),
        data("totals_are", lambda found, _: "means per step" if found.by_step else "sums"),
        records(
            "summary", _ROW, lambda found, _: {row.key: row for row in found.summary}, Form.MAP
        ),
        *map(_group, GROUPS),
        records("findings", _FINDING),
        records("gates", _GATE),
    ),
)
"""A comparison as JSON."""
