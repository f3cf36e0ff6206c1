"""Codes for combinations of columns, learned piece by piece."""

from __future__ import annotations

import numpy as np
import pytest

from nsys_tui.errors import UnreadableReportError
from nsys_tui.reader.gather import Tuples


def test_combinations_keep_their_codes_however_many_values_a_column_turns_out_to_have() -> None:
    random, tuples, pieces = np.random.default_rng(1), Tuples(4), []
    for streams in (3, 3, 10, 2**40, 2**40, 2**40):
        columns = [random.integers(-1, high, 9000) for high in (4, 2, 60, streams)]
        pieces.append((columns, tuples.encode(columns)))
    values = tuples.values
    assert len(set(values)) == len(values) > 2**14
    for columns, codes in pieces:
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        assert [values[code] for code in codes.tolist()] == rows


def test_ids_that_are_all_different_are_damage_and_not_mixed_up() -> None:
    with pytest.raises(UnreadableReportError, match="cannot read"):
        Tuples(4).encode([np.arange(70_000)] * 4)
