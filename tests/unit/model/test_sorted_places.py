from __future__ import annotations

import numpy as np
import pytest

from nsys_tui.model.groups import sorted_places, sums


@pytest.mark.parametrize("far", [9, 1 << 62], ids=["packed", "too far apart to be packed"])
@pytest.mark.parametrize("descending", [False, True])
def test_equal_values_keep_their_order(far: int, descending: bool) -> None:
    values = np.array([5, far, -far, 5, 5, far])
    ranked = sorted(range(6), key=lambda place: -values[place] if descending else values[place])
    assert sorted_places(values, descending=descending).tolist() == ranked


def test_sums_of_any_width_are_exact() -> None:
    values = np.array([2**31 - 1, 5, 2**31 - 1], np.int32)
    assert sums(np.array([1, 0, 1]), values, 3).tolist() == [5, 2**32 - 2, 0]
