"""A fleet as one document for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsys_tui.fleet.fleet import Clock, Fleet
from nsys_tui.fleet.table_parts import Ask
from nsys_tui.fleet.tables import SECTIONS
from nsys_tui.model.table import (
    OPEN,
    Column,
    Document,
    Form,
    column,
    columns,
    data,
    number,
    record,
    records,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.model.table import Table


@dataclass(frozen=True)
class FleetAnswer:
    """A fleet with the sections that were asked for."""

    fleet: Fleet
    ask: Ask
    wanted: Sequence[str]
    verdict: str = ""
    """What it comes to; empty where only sections were asked for."""

    def sections(self) -> dict[str, Table]:
        """The sections by name."""
        return {
            name.replace("-", "_"): SECTIONS[name](self.fleet, self.ask) for name in self.wanted
        }


_NO_RANKS: Final = Fleet((), (), Clock.AUTO)


def _section(name: str) -> Column:
    """A section: its columns in any fleet, and others that a fleet may have."""
    asked = (SECTIONS[name](_NO_RANKS, Ask(by_rank=by_rank)).columns for by_rank in (False, True))
    always, by_rank = asked
    known = (column for column in always if column in by_rank)
    rows = records("rows", (*known, *OPEN), lambda table, _: table)
    inner = (rows, column("notes", form=Form.LIST))
    return Column(key=name.replace("-", "_"), inner=inner, optional=True)


_LEFT: Final = (data("report", lambda failure, _: failure.path), *columns("reason"))
DOCUMENT: Final = Document(
    "fleet",
    (
        number("ranks", lambda answer, _: len(answer.fleet.members)),
        data("verdict", lambda answer, _: answer.verdict or None, optional=True),
        data("clock", lambda answer, _: answer.fleet.clock),
        data("span_ns", lambda answer, _: answer.fleet.span, form=Form.LIST),
        records("skipped", _LEFT, lambda answer, _: answer.fleet.failures),
        records("left_out", _LEFT, lambda answer, _: answer.fleet.left_out),
        record("sections", tuple(map(_section, SECTIONS)), lambda answer, _: answer.sections()),
    ),
)
"""A fleet as JSON; rows of a section have the columns of its table, by key."""
