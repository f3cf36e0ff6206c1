"""A fleet as one document for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsys_tui.fleet.tables import SECTIONS
from nsys_tui.model.table import (
    OPEN,
    Document,
    Form,
    column,
    columns,
    data,
    number,
    records,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.fleet.fleet import Fleet
    from nsys_tui.fleet.table_parts import Ask
    from nsys_tui.model.table import Table


@dataclass(frozen=True)
class FleetAnswer:
    """A fleet with the sections that were asked for."""

    fleet: Fleet
    ask: Ask
    wanted: Sequence[str]

    def sections(self) -> dict[str, Table]:
        """The sections by name."""
        return {
            name.replace("-", "_"): SECTIONS[name](self.fleet, self.ask) for name in self.wanted
        }


_SECTION: Final = (records("rows", OPEN, lambda table, _: table), column("notes", form=Form.LIST))
_LEFT: Final = (data("report", lambda failure, _: failure.path), *columns("reason"))
DOCUMENT: Final = Document(
    "fleet",
    (
        number("ranks", lambda answer, _: len(answer.fleet.members)),
        data("clock", lambda answer, _: answer.fleet.clock),
        data("span_ns", lambda answer, _: answer.fleet.span, form=Form.LIST),
        records("skipped", _LEFT, lambda answer, _: answer.fleet.failures),
        records("left_out", _LEFT, lambda answer, _: answer.fleet.left_out),
        records("sections", _SECTION, lambda answer, _: answer.sections(), Form.MAP),
    ),
)
"""A fleet as JSON; the columns of a section are those of its table, by key."""
