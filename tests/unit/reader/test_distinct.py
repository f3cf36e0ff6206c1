"""Equal rows are found whatever their hashes."""

from __future__ import annotations

import numpy as np
import pytest

from nsys_tui.reader.texts import distinct_rows, salt


@pytest.mark.parametrize("words", [1, 3])
@pytest.mark.parametrize("different", [1, 7, 3000])
def test_groups_are_those_of_a_dictionary(words: int, different: int) -> None:
    rng = np.random.default_rng(different)
    values = rng.integers(0, 2**64, (different, words), np.uint64, endpoint=False)
    rows = values[rng.integers(0, different, 5000)]
    check(rows)


def test_rows_that_meet_in_every_slot_stay_apart() -> None:
    inverse = np.uint64(pow(int(salt(0)), -1, 2**64))
    second = np.uint64(int(salt(1)) * int(inverse) % 2**64)
    one = np.arange(50, dtype=np.uint64)
    rows = np.stack([one * second, one], axis=1)  # all hashes are 0
    check(rows, merged=False)


def check(rows: np.ndarray[tuple[int, int], np.dtype[np.uint64]], merged: bool = True) -> None:
    groups, firsts = distinct_rows(rows)
    assert (rows[firsts][groups] == rows).all()
    if merged:
        assert len(firsts) == len({row.tobytes() for row in rows})
    assert sorted(set(groups.tolist())) == list(range(len(firsts)))
