"""An export of nsys is recognised by its tables, of whatever generation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from paths import needs_reports, report_paths

from nsys_tui.model.capabilities import Capability
from nsys_tui.reader.schema import TABLES, is_nsys_export
from nsys_tui.reader.sqlite import Database

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "tables",
    [["StringIds"], ["CUPTI_ACTIVITY_KIND_KERNEL"], ["t", "NVTX_EVENTS"], ["EXPORT_META_DATA"]],
)
def test_one_table_of_nsys_is_enough(tables: list[str]) -> None:
    assert is_nsys_export(tables)


@pytest.mark.parametrize("tables", [[], ["events"], ["stringids"], ["EXTRAP_KERNEL", "view_ops"]])
def test_tables_of_other_programs_are_not(tables: list[str]) -> None:
    assert not is_nsys_export(tables)


def test_what_is_lost_without_a_column_is_words_or_a_capability_that_exists() -> None:
    lost = [what for table in TABLES.values() for what in (table.gives, *table.lost.values())]
    misspelt = [what for what in lost if what.isupper() and not isinstance(what, Capability)]
    assert not misspelt
    assert {what for what in lost if isinstance(what, Capability)} == set(Capability)


def test_columns_without_which_something_is_lost_are_declared() -> None:
    for table in TABLES.values():
        assert set(table.lost) <= set(table.columns), table.name


@needs_reports
@pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
def test_real_exports_are_recognised_even_without_strings(path: Path) -> None:
    with Database.open(path) as db:
        assert is_nsys_export(set(db.tables) - {"StringIds"})
