from __future__ import annotations

import io
import json

import numpy as np
import pytest

from nsys_tui.export.tables import store_parquet
from nsys_tui.model.table import Table
from nsys_tui.text.tables import render
from nsys_tui.ui.widgets.table.columns import Drawn, counts, natural, numbers, strings, written
from nsys_tui.ui.widgets.table.rows import Arrangement, arrange


def test_a_missing_number_is_a_dash_and_stays_out_of_counts() -> None:
    column = numbers("avg", 8, np.array([1.5, np.nan]), "{:.1f}".format)
    assert [column.text(0), column.text(1)] == ["1.5", "-"]
    assert [tally.rows for tally in column.tally(None)[0]] == [1]


def test_texts_sort_as_people_do() -> None:
    labels = ["step 10", "Step 9", "alpha", "step 10"]
    column = strings("name", 8, labels)
    order = np.argsort(column.keys(), kind="stable")
    assert [labels[row] for row in order] == ["alpha", "Step 9", "step 10", "step 10"]
    assert natural("a" + "1" * 10_000) > natural("a"), "endless digits are compared as text"


def test_frequencies_of_texts_count_each_value_most_frequent_first() -> None:
    column = strings("kind", 8, ["API", "kernel", "API", "NVTX", "API"])
    found, distinct = column.tally(None)
    assert [(t.text, t.rows) for t in found] == [("API", 3), ("kernel", 1), ("NVTX", 1)]
    assert distinct == 3
    some, _ = column.tally(np.array([1, 2]))
    assert {(t.text, t.rows) for t in some} == {("API", 1), ("kernel", 1)}
    assert column.within(found[0].low, found[0].high).tolist() == [True, False, True, False, True]


def test_few_numbers_are_counted_one_by_one() -> None:
    column = counts("calls", 8, np.array([240, 20, 240, 7]))
    assert [(t.text, t.rows) for t in column.tally(None)[0]] == [("240", 2), ("7", 1), ("20", 1)]


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_bins_of_many_numbers_hold_every_row_exactly_once(dtype: type) -> None:
    rng = np.random.default_rng(3)
    values: np.ndarray = rng.lognormal(8, 2, 5_000).astype(dtype)
    column = numbers("duration", 8, values, str)
    found, _ = column.tally(None)
    assert sum(tally.rows for tally in found) == 5_000
    hits = np.zeros(5_000, int)
    for tally in found:
        inside = column.within(tally.low, tally.high)
        assert int(inside.sum()) == tally.rows, tally
        hits += inside
    assert (hits == 1).all()


def test_written_texts_are_built_only_when_all_rows_are_needed() -> None:
    loaded = []

    def load() -> tuple[np.ndarray, list[str]]:
        loaded.append(True)
        return np.array([1, 0]), ["b", "a"]

    column = written("path", 9, lambda row: "ab"[row], load)
    assert column.text(0) == "a"
    assert not loaded
    assert column.keys().tolist() == [0, 1]
    assert column.hits(lambda text: text == "b").tolist() == [False, True]
    assert loaded == [True]


def test_a_drawn_column_sorts_by_the_order_it_was_given() -> None:
    drawn = Drawn(header="when", width=4, draw=str, order=lambda: np.array([2, 1]))
    assert drawn.keys().tolist() == [2, 1]
    assert not drawn.is_text


def test_numbers_beyond_float_precision_are_stored_whole_beside_absent_ones() -> None:
    values = np.array([2**53 + 1, -1, 2**63 - 1])
    made = numbers("id", 8, values, str, absent=-1)
    assert [made.text(row) for row in range(3)] == [str(2**53 + 1), "-", str(2**63 - 1)]
    column, stored = made.stored(np.arange(3))
    table = Table("ids", "Ids", (column,), (stored,))
    assert render(table, "csv").splitlines() == ["id", str(2**53 + 1), "", str(2**63 - 1)]
    assert json.loads(render(table, "json"))[1] == {"id": None}
    assert table.rows() == [(2**53 + 1,), (None,), (2**63 - 1,)]
    parquet = pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    store_parquet(table, file, lambda _: None)
    assert parquet.read_table(io.BytesIO(file.getvalue()))["id"].to_pylist() == [
        2**53 + 1,
        None,
        2**63 - 1,
    ]


def test_masked_numbers_are_dashes_sort_last_and_are_neither_picked_nor_tallied() -> None:
    large = 2**53
    values = np.ma.masked_array([large + 1, 0, large, 5], [False, True, False, False])
    made = numbers("min", 8, values, str)
    assert [made.text(row) for row in range(4)] == [str(large + 1), "-", str(large), "5"]
    for descending, order in ((False, [3, 2, 0, 1]), (True, [0, 2, 3, 1])):
        wanted = Arrangement(sort="min", descending=descending)
        assert arrange((made,), 4, wanted).tolist() == order  # type: ignore[union-attr]
    assert made.within(0, 10).tolist() == [False, False, False, True]
    tallies, distinct = made.tally(None)
    assert distinct == 3
    assert {tally.text for tally in tallies} == {str(large + 1), str(large), "5"}
    table = Table("t", "T", *([part] for part in made.stored(np.array([1, 0]))))  # type: ignore[arg-type]
    assert table.rows() == [(None,), (large + 1,)]
    absent = numbers("id", 8, np.array([3, -1, 2]), str, absent=-1)
    assert arrange((absent,), 3, Arrangement(sort="id")).tolist() == [2, 0, 1]  # type: ignore[union-attr]
    assert absent.within(-5, 5).tolist() == [True, False, True]
