from __future__ import annotations

import numpy as np

from nsys_tui.model.table import Column, Table, Unit
from nsys_tui.ui.widgets.table.result_columns import columns_of


def test_unknown_numbers_are_dashes_and_known_ones_stay_whole() -> None:
    large = 2**53 + 1
    for values in ([large, None], np.ma.masked_array([large, 0], [False, True])):
        for unit in (Unit.BYTES, Unit.NS, Unit.COUNT, Unit.NONE):
            table = Table("t", "T", (Column("n", unit),), (values,))
            (column,) = columns_of(table)
            assert column.text(1) == "-"
            assert column.stored(np.arange(2))[1].tolist() == [large, None]  # type: ignore[union-attr]
    mixed = columns_of(Table("t", "T", (Column("n", Unit.NONE, 2),), ([0.5, None],)))[0]
    assert [mixed.text(0), mixed.text(1)] == ["0.50", "-"]
